"""Pictures for the pages of the recipes: charts of Altair, in the look of `lengthwise.report`.

- learning_curves: validation loss against time and epochs.
- learning_panels: the same, a panel for each strategy.
- speed_up_curves: epoch time and speed-up against the number of buckets.
- loss_differences: differences of losses and their intervals, by strategy.
- knob_curves: padding and batch length against the knob of each strategy.
- order_dots: lengths along the epoch, by strategy.
- sweep: every strategy measured over the range of its knob.
- strategy_looks, rising_looks: colours and dashes of curves.
- save: writes a picture, an .svg also in the colours of a dark page.
"""

from lengthwise_recipes.pictures.curves import TOGETHER as TOGETHER
from lengthwise_recipes.pictures.curves import learning_curves as learning_curves
from lengthwise_recipes.pictures.curves import learning_panels as learning_panels
from lengthwise_recipes.pictures.curves import speed_up_curves as speed_up_curves
from lengthwise_recipes.pictures.differences import loss_differences as loss_differences
from lengthwise_recipes.pictures.dots import order_dots as order_dots
from lengthwise_recipes.pictures.knobs import knob_curves as knob_curves
from lengthwise_recipes.pictures.looks import DASHES as DASHES
from lengthwise_recipes.pictures.looks import rising_looks as rising_looks
from lengthwise_recipes.pictures.looks import save as save
from lengthwise_recipes.pictures.looks import strategy_looks as strategy_looks
from lengthwise_recipes.pictures.sweeps import sweep as sweep

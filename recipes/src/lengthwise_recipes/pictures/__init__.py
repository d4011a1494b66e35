"""Pictures for the pages of the recipes, by matplotlib. Importing this package needs matplotlib.

- learning_curves: validation loss against time and epochs.
- learning_panels: the same, a panel for each strategy.
- speed_up_curves: epoch time and speed-up against the number of buckets.
- distinct_looks: the looks of strategies; related strategies differ by dashes.
- shade_looks: the looks of labels that differ in a number.
- loss_differences: differences of losses and their intervals, by strategy.
- knob_curves: padding and batch length against the knob of each strategy.
- order_dots: lengths along the epoch, by strategy.
- sweep: every strategy measured over the range of its knob.
- save: writes a picture.
"""

from lengthwise_recipes.pictures.differences import Difference as Difference
from lengthwise_recipes.pictures.differences import loss_differences as loss_differences
from lengthwise_recipes.pictures.knobs import knob_curves as knob_curves
from lengthwise_recipes.pictures.learning import TOGETHER as TOGETHER
from lengthwise_recipes.pictures.learning import distinct_looks as distinct_looks
from lengthwise_recipes.pictures.learning import learning_curves as learning_curves
from lengthwise_recipes.pictures.learning import learning_panels as learning_panels
from lengthwise_recipes.pictures.learning import shade_looks as shade_looks
from lengthwise_recipes.pictures.orders import order_dots as order_dots
from lengthwise_recipes.pictures.speed_ups import PROCESSES as PROCESSES
from lengthwise_recipes.pictures.speed_ups import speed_up_curves as speed_up_curves
from lengthwise_recipes.pictures.style import save as save
from lengthwise_recipes.pictures.sweeps import sweep as sweep

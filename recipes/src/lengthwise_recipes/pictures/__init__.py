"""Pictures by matplotlib for the pages of the recipes. Only those who draw import them.

learning_curves    validation loss against time and epochs
learning_panels    the same, a panel for each strategy
speed_up_curves    epoch time and speed-up against the number of buckets
distinct_looks     the looks of strategies, relatives told apart by dashes
shade_looks        looks of strategies that differ in a number
loss_differences   differences of losses and their intervals, strategy by strategy
knob_curves        each strategy's knob against padding and batch length
order_dots         lengths along the epoch, strategy by strategy
sweep              every strategy measured over the range of its knob
save               writes a picture
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

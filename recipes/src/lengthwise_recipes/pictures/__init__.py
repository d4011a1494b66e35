"""Pictures of what was trained; like `lengthwise.plot`, and in its look. Only who draws imports them.

learning_curves    validation loss against time and epochs
speed_up_bars      epoch time and speed-up against the number of buckets
loss_differences   differences of losses and their intervals, strategy by strategy
"""

from lengthwise_recipes.pictures.differences import Difference as Difference
from lengthwise_recipes.pictures.differences import loss_differences as loss_differences
from lengthwise_recipes.pictures.learning import learning_curves as learning_curves
from lengthwise_recipes.pictures.speed_ups import speed_up_bars as speed_up_bars

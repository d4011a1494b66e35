"""Limits of mixing at a padding: of any batches, of small ones, of one epoch, and of steps of several batches.

- bounds: `mixing_limit`, `batch_limit`, `epoch_limit` and `step_limit`, the most mixing at a padding.
- measured: compares plans with these limits.
- levels: the lengths in groups, and the joint law with the least information about them.
- batches, epochs, steps: the proof of each limit.
- kernels: the compiled loops.
"""

from lengthwise_recipes.limits.bounds import batch_limit as batch_limit
from lengthwise_recipes.limits.bounds import epoch_limit as epoch_limit
from lengthwise_recipes.limits.bounds import mixing_limit as mixing_limit
from lengthwise_recipes.limits.bounds import step_limit as step_limit

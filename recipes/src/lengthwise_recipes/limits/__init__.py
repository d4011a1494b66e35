"""Limits of mixing lower than `lengthwise.mixing_limit`, for what real batches are: small, one epoch, in steps.

bounds    `batch_limit`, `epoch_limit` and `step_limit`: the most mixing at a padding
measured  how near plans come to them; pools: how near any batching of a small set comes
levels    the lengths in groups, and the law that tells least about them
batches   one of a batch is as long as it is padded to; epochs: each is taken once; steps: sets of padded lengths
kernels   the loops, as machine code
"""

from lengthwise_recipes.limits.bounds import batch_limit as batch_limit
from lengthwise_recipes.limits.bounds import epoch_limit as epoch_limit
from lengthwise_recipes.limits.bounds import step_limit as step_limit

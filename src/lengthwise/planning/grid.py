"""Grid: full steps of batches are dealt to the ranks, and the steps are put in order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lengthwise._random import Key
from lengthwise.choices.batching import Batching
from lengthwise.choices.world import World
from lengthwise.planning.batches import Batches
from lengthwise.planning.custom import check_arrangement, check_grid, is_custom


def deal_and_arrange(
    batches: Batches, numbers: NDArray[np.int64], world: World, batching: Batching, *, deal: Key, arrange: Key
) -> NDArray[np.int64]:
    """The grid of the batches `numbers` [portions, each]: [steps, micro_batches, ranks].

    Args:
        deal: The key of the deal.
        arrange: The key of the order of the steps.
    """
    grid = batching.deal.grid(numbers, batches.costs, world, deal)
    if is_custom(batching.deal):
        grid = check_grid(grid, numbers, world)
    steps = grid.reshape(len(grid), world.slots)
    # All that an arrangement sees of a step: its costliest batch, which must fit into memory, and its mean length.
    costliest = batches.costs[steps].max(axis=1, initial=0.0)
    taken = batching.arrange(costliest, batches.lengths[steps].sum(axis=1) / world.slots, arrange)
    return grid[check_arrangement(taken, len(grid)) if is_custom(batching.arrange) else taken]


def in_grid(batches: Batches, grid: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which batches the grid holds: [batches]."""
    held = np.zeros(len(batches.costs), bool)
    held[grid.reshape(-1)] = True
    return held

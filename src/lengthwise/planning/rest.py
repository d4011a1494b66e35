"""The rest of an epoch: what earlier runs left of it, for another number of ranks.

    8 ranks took 120 batches each, then the job went on with 6 ranks
    after = [(8, 1, 120)]

Where the next run's steps are of as many batches, and whole steps were taken, the same steps follow: its ranks share
them out anew. Elsewhere the batches that no rank took are dealt and arranged again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.batching import Batching
from lengthwise.choices.deal import World, share_out
from lengthwise.planning.batches import Batches, select
from lengthwise.planning.grid import deal_and_arrange, in_grid
from lengthwise.planning.tail import complete_steps


class Run(NamedTuple):
    """One that took the beginning of an epoch, or of what was left of it: `taken` batches on each of its ranks."""

    world: World
    taken: int


def check_runs(runs: Sequence[Sequence[int]]) -> list[Run]:
    """The runs of `make_plan(after=...)`, refused where they are not three whole numbers each."""
    remedy = "Give (world_size, micro_batches, batches that each rank took) of each run."
    if not isinstance(runs, tuple | list):
        raise checks.type_error("after", "a list of runs", runs, remedy)
    for run in runs:
        if not isinstance(run, tuple | list) or len(run) != 3:
            raise checks.type_error("after", "of three whole numbers each", run, remedy)
        for number, least in zip(run, (1, 1, 0), strict=True):
            checks.check_whole("after", number, minimum=least, remedy=remedy)
    return [Run(World(int(ranks), int(micro_batches)), int(taken)) for ranks, micro_batches, taken in runs]


class Rest(NamedTuple):
    """What a run leaves to the next: batches, their grid for its world, and the members that were taken."""

    batches: Batches
    grid: NDArray[np.int64]
    taken: NDArray[np.int64]


def take_run(
    batches: Batches, grid: NDArray[np.int64], run: Run, world: World, batching: Batching, keys: Sequence[Key]
) -> Rest:
    """Takes what `run` took, and shares out what it left to the next run's `world`.

    Args:
        grid: Of the run, [steps, micro_batches, ranks].
        keys: For the tail, the deal and the arrangement.
    """
    remedy = "Give what the checkpoint says."
    checks.check_whole("after", run.taken, minimum=0, maximum=grid.shape[0] * grid.shape[1], remedy=remedy)
    seen = in_grid(batches, grid.reshape(-1, run.world.world_size)[: run.taken])
    taken = batches.members[np.repeat(seen, np.diff(batches.offsets))]
    whole_steps, torn = divmod(run.taken, run.world.micro_batches)
    if world.slots == run.world.slots and not torn:
        steps = grid[whole_steps:].reshape(-1, world.slots)
        return Rest(batches, share_out(steps, batches.costs, world.world_size), taken)
    unseen = select(batches, in_grid(batches, grid) & ~seen)
    return Rest(*_deal_again(unseen, world, batching, keys), taken)


def _deal_again(
    batches: Batches, world: World, batching: Batching, keys: Sequence[Key]
) -> tuple[Batches, NDArray[np.int64]]:
    tail, deal, arrange = keys
    batches, (numbers,) = complete_steps(
        [batches], world.slots, tail=batching.deal.tail, cost=batching.cost, keys=[tail]
    )
    portions = len(batching.deal.portions(0, world, deal))
    if portions > 1:  # the sequences of a rank's own are spread by now: each portion gets batches of every cost
        numbers = numbers[np.argsort(batches.costs[numbers], kind="stable")]
    numbers = numbers.reshape(-1, portions).T
    return batches, deal_and_arrange(batches, numbers, world, batching, deal=deal, arrange=arrange)

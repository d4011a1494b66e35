"""The rest of an epoch: what earlier runs left of it, for another number of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _checks
from lengthwise._random import Key
from lengthwise.batching import Batching
from lengthwise.deal import batches_wanted, fill, share_out
from lengthwise.planning.batches import Batches, split, taken_out


class Run(NamedTuple):
    """One that took the beginning of an epoch, or of what was left of it: `taken` batches on each of its ranks."""

    world_size: int
    micro_batches: int
    taken: int


def checked_runs(runs: Sequence[Sequence[int]]) -> list[Run]:
    """The runs of `make_plan(after=...)`, refused where they are not three whole numbers each."""
    remedy = "Give (world_size, micro_batches, batches that each rank took) of each run."
    for run in runs:
        if not isinstance(run, tuple | list) or len(run) != 3:
            raise _checks.type_error("after", "of three whole numbers each", run, remedy)
        for number, least in zip(run, (1, 1, 0), strict=True):
            _checks.check_whole("after", number, minimum=least, remedy=remedy)
    return [Run(*map(int, run)) for run in runs]


def in_grid(batches: Batches, grid: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which batches the grid holds: [batches]."""
    held = np.zeros(len(batches.costs), bool)
    held[grid.reshape(-1)] = True
    return held


def left_over(
    batches: Batches, grid: NDArray[np.int64], taken: int, places: tuple[int, int], batching: Batching, keys: list[Key]
) -> tuple[Batches, NDArray[np.int64], NDArray[np.int64]]:
    """What a run leaves: batches, their grid for the next, and the members that it took.

    Where the next run's steps are of as many batches, and whole steps were taken, it takes the same steps: its ranks
    share them out anew. Elsewhere the batches that no rank took are dealt and arranged again.

    Args:
        grid: Of the run, [steps, micro_batches, ranks].
        taken: Batches that each of its ranks took.
        places: World size and micro-batches of the next run.
        keys: For the tail, the deal and the arrangement.
    """
    remedy = "Give what the checkpoint says."
    _checks.check_whole("after", taken, minimum=0, maximum=grid.shape[0] * grid.shape[1], remedy=remedy)
    (world_size, micro_batches), size = places, grid.shape[1] * grid.shape[2]
    seen = in_grid(batches, grid.reshape(-1, grid.shape[2])[:taken])
    gone = batches.members[np.repeat(seen, np.diff(batches.offsets))]
    if world_size * micro_batches == size and taken % grid.shape[1] == 0:
        steps = grid[taken // grid.shape[1] :].reshape(-1, size)
        return batches, share_out(steps, batches.costs, world_size), gone
    unseen = taken_out(batches, in_grid(batches, grid) & ~seen)
    return *_dealt_again(unseen, world_size, micro_batches, batching, keys), gone


def _dealt_again(
    batches: Batches, world_size: int, micro_batches: int, batching: Batching, keys: list[Key]
) -> tuple[Batches, NDArray[np.int64]]:
    slots, tail = world_size * micro_batches, batching.deal.tail
    wanted = batches_wanted([len(batches.costs)], slots, tail=tail)
    if tail == "split":
        batches = split(batches, wanted, batching)
        wanted = batches_wanted([len(batches.costs)], slots, tail=tail)
    numbers = fill(np.arange(len(batches.costs)), batches.costs, wanted, key=keys[0])
    portions = len(batching.deal.portions(0, world_size, keys[1]))
    if portions > 1:  # the sequences of a rank's own are spread by now: each portion gets batches of every cost
        numbers = numbers[np.argsort(batches.costs[numbers], kind="stable")]
    return batches, dealt(batches, numbers.reshape(-1, portions).T, (world_size, micro_batches), batching, keys[1:])


def dealt(
    batches: Batches, numbers: NDArray[np.int64], places: tuple[int, int], batching: Batching, keys: list[Key]
) -> NDArray[np.int64]:
    """The grid of the batches `numbers` [portions, each], dealt and arranged: [steps, micro_batches, ranks]."""
    grid = batching.deal.grid(numbers, batches.costs, *places, keys[0])
    flat = grid.reshape(-1, grid.shape[1] * grid.shape[2])
    lengths = batches.levels[flat].mean(axis=1)
    return grid[batching.arrange(batches.costs[flat].max(axis=1, initial=0.0), lengths, keys[1])]

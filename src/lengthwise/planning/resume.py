"""Resume: the batches of an epoch that earlier runs left, for another number of ranks.

    8 ranks took 120 batches each, then the job went on with 6 ranks
    after = [(8, 1, 120)]

If whole steps were taken, and a step of the next run has as many batches, the same steps follow on its ranks. Otherwise
the batches that no rank took are dealt and arranged again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.batching import Batching
from lengthwise.choices.deal import Stratified, World, check_world, share_out
from lengthwise.planning.epoch import (
    complete_steps,
    count_portions,
    count_whole_steps,
    deal_and_arrange,
    in_grid,
    split_batches,
)
from lengthwise.planning.portion import Portion, select

_MAX_RUNS = 1_000  # within an epoch: all are planned, one after another


class EarlierRun(NamedTuple):
    """A run that took the next part of an epoch: `batches` on each of the ranks of `world`."""

    world: World
    batches: int

    @property
    def numbers(self) -> tuple[int, int, int]:
        """(world_size, micro_batches, batches), as in `make_plan(after=...)` and in a checkpoint."""
        return self.world.world_size, self.world.micro_batches, self.batches


def read_runs(
    runs: object,
    *,
    name: str = "after",
    remedy: str = "Give (world_size, micro_batches, batches that each rank took) of each run.",
) -> tuple[EarlierRun, ...]:
    """Reads runs, each from three whole numbers.

    Args:
        runs: A list of `EarlierRun.numbers`.
        name: The name of `runs` in an error.
        remedy: The advice of an error.

    >>> read_runs([(8, 1, 120), (6, 1, 40)])[1]
    EarlierRun(world=World(world_size=6, micro_batches=1), batches=40)
    """
    if not isinstance(runs, tuple | list) or any(not isinstance(run, tuple | list) or len(run) != 3 for run in runs):
        raise checks.value_error(name, "a list of runs, each of three whole numbers", runs, remedy)
    if len(runs) > _MAX_RUNS:
        raise checks.value_error(name, f"at most {_MAX_RUNS}", len(runs), remedy)
    return tuple(_read_run(run, name, remedy) for run in runs)


def _read_run(numbers: Sequence[object], name: str, remedy: str) -> EarlierRun:
    world_size, micro_batches, batches = (
        checks.check_whole(name, number, minimum=least, remedy=remedy)
        for number, least in zip(numbers, (1, 1, 0), strict=True)
    )
    return EarlierRun(check_world(world_size, micro_batches, remedy=remedy), batches)


def take_runs(
    batches: Portion, grid: NDArray[np.int64], runs: Sequence[EarlierRun], world: World, batching: Batching, key: Key
) -> tuple[Portion, NDArray[np.int64], NDArray[np.int64]]:
    """Takes the batches of `runs`, one run after another, and shares out the others to `world`.

    Args:
        batches: The batches of the epoch.
        grid: [steps, micro_batches, ranks], the grid of the first run.
        runs: The earlier runs, first to last.
        world: The ranks and micro-batches of the run that is planned.
        batching: The choices.
        key: The key of the epoch.

    Returns:
        The batches that are left, their grid, and the members that the runs took.
    """
    members = np.empty(0, np.int64)
    worlds = [*(run.world for run in runs[1:]), world]
    remedy = "Give what the checkpoint says."
    for number, (run, next_world) in enumerate(zip(runs, worlds, strict=True)):
        checks.check_whole("after", run.batches, minimum=0, maximum=grid.shape[0] * grid.shape[1], remedy=remedy)
        # The first rows of [steps x micro_batches, ranks]: 5 batches on each of 8 ranks are the first 5 rows.
        seen = in_grid(batches, grid.reshape(-1, run.world.world_size)[: run.batches])
        run_members = batches.members[np.repeat(seen, np.diff(batches.offsets))]
        # 5 batches on each rank, at 2 micro-batches a step: 2 whole steps, and 1 batch of a third.
        whole_steps, torn = divmod(run.batches, run.world.micro_batches)
        if next_world.slots == run.world.slots and not torn:
            # A row of `steps` is a step for any ranks: 4 ranks x 2 micro-batches and 8 ranks x 1 both take 8 batches.
            steps = grid[whole_steps:].reshape(-1, next_world.slots)
            grid = share_out(steps, batches.balances, next_world.world_size)
        else:
            # A batch with two places in the grid is taken at the first one, perhaps by an earlier run.
            seen |= np.isin(batches.members[batches.offsets[:-1]], members)
            unseen = select(batches, in_grid(batches, grid) & ~seen)
            # Three lanes for each run: with the same lanes, the second run would repeat the draws of the first.
            keys = [key.at("rest", lane=3 * number + use) for use in range(3)]
            batches, grid = _deal_again(unseen, next_world, batching, keys)
        members = np.concatenate([members, run_members])
    return batches, grid, members


def _deal_again(
    batches: Portion, world: World, batching: Batching, keys: Sequence[Key]
) -> tuple[Portion, NDArray[np.int64]]:
    tail_key, deal_key, arrange_key = keys
    tail = batching.deal.tail
    batches = split_batches(batches, world.slots, batching)
    steps = count_whole_steps(len(batches.costs), world.slots, tail)
    batches, (numbers,) = complete_steps([batches], world.slots, steps, tail=tail, keys=[tail_key])
    if batching.takes_random_steps:  # each new step mixes batches of every length
        batching = replace(batching, deal=Stratified(tail=tail))
        numbers = numbers[np.argsort(batches.lengths[numbers], kind="stable")]
    portions = count_portions(batching.deal, len(batches.members), world)
    if portions > 1:  # the portions of the ranks are mixed by now: each gets batches of every cost, in turn
        numbers = numbers[np.argsort(batches.balances[numbers], kind="stable")]
    # In turn: [3, 1, 2, 0] for 2 portions are [3, 2] and [1, 0].
    numbers = numbers.reshape(-1, portions).T
    return batches, deal_and_arrange(batches, numbers, world, batching, deal=deal_key, arrange=arrange_key)

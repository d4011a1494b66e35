"""`make_plan`: the verbs in a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _checks
from lengthwise._random import Key
from lengthwise.batching import Batching
from lengthwise.lengths import as_lengths, fingerprint
from lengthwise.plan import Plan
from lengthwise.planning.batches import Batches, taken_out
from lengthwise.planning.drafts import Draft, drafts, longest_needed, merged, one_length
from lengthwise.planning.rest import Run, checked_runs, dealt, in_grid, left_over


def make_plan(
    lengths: ArrayLike,
    batching: Batching,
    *,
    seed: int = 0,
    epoch: int = 0,
    world_size: int = 1,
    micro_batches: int = 1,
    after: Sequence[Sequence[int]] = (),
) -> Plan:
    """Plans one epoch for every rank. Same inputs, same plan, on every platform and in every process.

    Args:
        lengths: [n], or [n, dims] where a sequence has several (source and target, say).
        batching: The choices.
        seed: Names the run: no two seeds draw the same.
        epoch: Each epoch is planned afresh, and needs no other.
        world_size: How many ranks share out the batches of a step.
        micro_batches: How many batches each rank takes in one step (gradient accumulation).
        after: Runs that took the beginning of the epoch, in turn: (world_size, micro_batches, batches that each rank
            took). What they left is planned: the same steps, where as many batches make a step and whole steps were
            taken; else the batches that no rank took, dealt anew.

    Returns:
        A plan with the same number of steps on every rank, and every sequence in it exactly once, unless a choice was
        asked to drop or repeat, or a step has more places than single sequences are left to fill: some are then taken
        again, with a weight of 0 in `loss_scales`. `plan.dropped()`, `plan.repeated()` and `plan.over_limit()` list
        those. Of no steps, where the runs of `after` took everything.

    Raises:
        ValueError: A length is not positive, a choice does not suit the lengths, or all are to be dropped.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder())
    >>> [batch.tolist() for batch in make_plan([5, 9, 2, 4], batching).batches()]
    [[2, 3], [0, 1]]
    >>> [batch.tolist() for batch in make_plan([5, 9, 2, 4], batching, after=[(1, 1, 1)]).batches()]
    [[0, 1]]
    """
    array = as_lengths(lengths)
    if not isinstance(batching, Batching):
        raise _checks.type_error("batching", "a Batching", batching, "Make one: Batching(budget=20_000), say.")
    _checks.check_whole("world_size", world_size, minimum=1, remedy="Give the number of ranks.")
    _checks.check_whole("micro_batches", micro_batches, minimum=1, remedy="Give the batches a rank takes in a step.")
    runs = checked_runs(after)
    key = Key(seed=seed, epoch=epoch)
    spans = None if batching.chunks is None else batching.chunks(one_length(array))
    items = (array if array.ndim == 2 else array[:, None]) if spans is None else (spans[:, 2] - spans[:, 1])[:, None]
    _check_countable(items)
    places = [(run.world_size, run.micro_batches) for run in runs] + [(world_size, micro_batches)]
    drawn = drafts(items, batching, places[0][0], key)
    batches, grid = _first_grid(drawn, len(items), places[0], batching, key)
    batches, grid, delivered = _after(runs, batches, grid, places, batching, key)
    used = in_grid(batches, grid)
    if not used.all():  # a tail that drops, or what earlier runs took
        batches, grid = taken_out(batches, used), (np.cumsum(used) - 1)[grid]
    return Plan(
        sequences=batches.members,
        offsets=batches.offsets,
        padded_lengths=batches.padded_lengths,
        costs=batches.costs,
        grid=np.ascontiguousarray(grid),
        spans=spans,
        delivered=delivered,
        count=len(items),
        batching=batching.to_json(),
        seed=int(seed),
        epoch=int(epoch),
        lengths_fingerprint=fingerprint(array),
        limit=batching.cut.limit(batching.cost, longest_needed(items, drawn)) if len(items) else np.inf,
    )


def _first_grid(
    drawn: list[Draft], count: int, places: tuple[int, int], batching: Batching, key: Key
) -> tuple[Batches, NDArray[np.int64]]:
    """The whole epoch, for the world size and micro-batches of its first run."""
    batches, numbers = merged(drawn, batching, places[0] * places[1], key)
    if count and not numbers.size:
        remedy = "Choose tail='split', smaller batches, or a policy that drops less."
        raise _checks.value_error("plan", "of at least one step", f"{len(batches.costs)} batches", remedy)
    return batches, dealt(batches, numbers, places, batching, [key.at("deal"), key.at("arrange")])


def _after(
    runs: list[Run],
    batches: Batches,
    grid: NDArray[np.int64],
    places: list[tuple[int, int]],
    batching: Batching,
    key: Key,
) -> tuple[Batches, NDArray[np.int64], NDArray[np.int64] | None]:
    """What the runs left, each of what the one before it left; and the members they took, rising."""
    taken = [np.empty(0, np.int64)]
    for number, run in enumerate(runs):
        keys = [key.at("rest", lane=3 * number + use) for use in range(3)]
        batches, grid, gone = left_over(batches, grid, run.taken, places[number + 1], batching, keys)
        taken.append(gone)
    return batches, grid, np.unique(np.concatenate(taken)) if runs else None


def _check_countable(items: NDArray[np.int64]) -> None:
    """Refuses what could be padded to 2**53 frames or more: beyond, sums and costs are no longer exact."""
    frames = len(items) * float(items.max(axis=0, initial=0).astype(np.float64).sum())
    if frames >= 2.0**53:
        rule = "few and short enough to be padded to less than 2**53 frames"
        remedy = "Check their unit; plan fewer sequences at a time."
        raise _checks.value_error("lengths", rule, frames, remedy)

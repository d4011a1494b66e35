"""Planning: the verbs in a row.

lengths -> chunks? -> portions? -> order -> cut -> deal -> arrange -> Plan

items     [n, dims]   the lengths of what is planned: sequences, or chunks of them
members   [k]         the items of one portion (of all, where there are no portions)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _checks
from lengthwise._random import Key
from lengthwise.batching import Batching
from lengthwise.cost import costs_of
from lengthwise.cut import OversizeError
from lengthwise.deal import batches_wanted, fill, split_largest
from lengthwise.lengths import as_lengths, fingerprint
from lengthwise.order import Bucketed, Order
from lengthwise.plan import Plan


def make_plan(
    lengths: ArrayLike,
    batching: Batching,
    *,
    seed: int = 0,
    epoch: int = 0,
    world_size: int = 1,
    micro_batches: int = 1,
) -> Plan:
    """Plans one epoch for every rank. Same inputs, same plan, on every platform and in every process.

    Args:
        lengths: [n], or [n, dims] where a sequence has several (source and target, say).
        batching: The choices.
        seed: Names the run: two seeds never share an epoch.
        epoch: Each epoch is planned afresh, and needs no other.
        world_size: How many ranks share out the batches of a step.
        micro_batches: How many batches each rank takes in one step (gradient accumulation).

    Returns:
        A plan with the same number of steps on every rank, and every sequence in it exactly once, unless a choice was
        asked to drop or repeat; `plan.dropped()`, `plan.repeated()` and `plan.over_limit()` list those.

    Raises:
        ValueError: A length is not positive, a choice does not suit the lengths, or nothing is left to take.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder())
    >>> [batch.tolist() for batch in make_plan([5, 9, 2, 4], batching).batches()]
    [[2, 3], [0, 1]]
    """
    array = as_lengths(lengths)
    if not isinstance(batching, Batching):
        raise _checks.type_error("batching", "a Batching", batching, "Make one: Batching(budget=20_000), say.")
    _checks.check_whole("world_size", world_size, minimum=1, remedy="Give the number of ranks.")
    _checks.check_whole("micro_batches", micro_batches, minimum=1, remedy="Give the batches a rank takes in a step.")
    key = Key(seed=seed, epoch=epoch)
    spans = None if batching.chunks is None else batching.chunks(_one_length(array))
    items = (array if array.ndim == 2 else array[:, None]) if spans is None else (spans[:, 2] - spans[:, 1])[:, None]
    _check_countable(items)
    drafts = _drafts(items, batching, world_size, key)
    batches, numbers = _merged(drafts, batching, world_size * micro_batches, key)
    if len(items) and not numbers.size:
        remedy = "Choose tail='split', smaller batches, or a policy that drops less."
        raise _checks.value_error("plan", "of at least one step", f"{len(batches.costs)} batches", remedy)
    grid = batching.deal.grid(numbers, batches.costs, world_size, micro_batches, key.at("deal"))
    grid = grid[_arrangement(grid, batches, batching, key.at("arrange"))]
    batches, grid = _without_unused(batches, grid)
    return Plan(
        sequences=batches.members,
        offsets=batches.offsets,
        padded_lengths=batches.padded_lengths,
        costs=batches.costs,
        grid=np.ascontiguousarray(grid),
        spans=spans,
        count=len(items),
        batching=batching.to_json(),
        seed=int(seed),
        epoch=int(epoch),
        lengths_fingerprint=fingerprint(array),
        limit=batching.cut.limit(batching.cost, _longest(items, drafts)) if len(items) else np.inf,
    )


class _Draft(NamedTuple):
    """Members in order, cut; `needed` [k, dims] is what each must be padded to, `walls` the borders of buckets."""

    members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    walls: NDArray[np.int64]
    needed: NDArray[np.int64]


class _Batches(NamedTuple):
    """The batches of all portions, portion after portion. `levels` [batches] tells how long the bucket of each is."""

    members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    padded_lengths: NDArray[np.int64]
    costs: NDArray[np.float64]
    levels: NDArray[np.float64]


def _drafts(items: NDArray[np.int64], batching: Batching, world_size: int, key: Key) -> list[_Draft]:
    order = batching.order
    if isinstance(order, Bucketed) and len(items):  # on all sequences, so that portions share their edges
        order = order.settled(items.sum(axis=1).astype(np.float64))
    portions = batching.deal.portions(len(items), world_size, key)
    lanes = [key.at("order", lane=lane) for lane in range(len(portions))]
    return [_draft(items, members, batching, order, lane) for members, lane in zip(portions, lanes, strict=True)]


def _draft(items: NDArray[np.int64], members: NDArray[np.int64], batching: Batching, order: Order, key: Key) -> _Draft:
    if not len(members):
        none = np.empty(0, np.int64)
        return _Draft(members, np.zeros(1, np.int64), none, items[members])
    longest = items.max(axis=0)
    shares = items.sum(axis=0) / items.sum()  # of each dimension in the size of a sequence

    def batch_sizes(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        lengths = np.ceil(np.outer(sizes, shares)).astype(np.int64)
        return batching.cut.batch_sizes(lengths, cost=batching.cost, longest=longest)

    own = items[members]
    sequences, walls, edges = order(own.sum(axis=1).astype(np.float64), key, batch_sizes)
    needed = own[sequences] if edges is None else np.maximum(_one_length(own)[sequences], edges)[:, None]
    longest = np.maximum(longest, needed.max(axis=0, initial=0))  # an edge may be longer than any sequence
    try:
        kept, offsets = batching.cut(needed, walls, cost=batching.cost, longest=longest)
    except OversizeError as error:
        sequence = int(members[sequences[error.position]])
        raise OversizeError(error.budget, error.cost, error.position, sequence=sequence) from None
    return _Draft(members[sequences[kept]], offsets, np.searchsorted(kept, walls), needed[kept])


def _longest(items: NDArray[np.int64], drafts: list[_Draft]) -> NDArray[np.int64]:
    """The longest that anything is padded to, or would be if it were not dropped: [dims]."""
    return np.max([items.max(axis=0), *(draft.needed.max(axis=0, initial=0) for draft in drafts)], axis=0)


def _merged(drafts: list[_Draft], batching: Batching, slots: int, key: Key) -> tuple[_Batches, NDArray[np.int64]]:
    """Brings the portions to equal numbers of batches: all batches, and which take part, [portions, each]."""
    tail, places = batching.deal.tail, slots // len(drafts)
    wanted = batches_wanted([len(draft.offsets) - 1 for draft in drafts], places, tail=tail)
    if tail == "split":
        drafts = [draft._replace(offsets=split_largest(draft.offsets, wanted)) for draft in drafts]
        wanted = batches_wanted([len(draft.offsets) - 1 for draft in drafts], places, tail=tail)
    parts = [_padded(draft, batching) for draft in drafts]
    ends = np.cumsum([0] + [len(part.members) for part in parts])
    offsets = np.concatenate([part.offsets[:-1] + end for part, end in zip(parts, ends, strict=False)] + [ends[-1:]])
    batches = _Batches(
        np.concatenate([part.members for part in parts]),
        offsets,
        np.concatenate([part.padded_lengths for part in parts]),
        np.concatenate([part.costs for part in parts]),
        np.concatenate([part.levels for part in parts]),
    )
    borders = np.cumsum([0] + [len(part.costs) for part in parts])
    numbers = [
        fill(np.arange(borders[lane], borders[lane + 1]), batches.costs, wanted, key=key.at("tail", lane=lane))
        for lane in range(len(parts))
    ]
    return batches, np.stack(numbers)


def _padded(draft: _Draft, batching: Batching) -> _Batches:
    """What each batch of the draft is padded to, and costs."""
    starts, sizes = draft.offsets[:-1], np.diff(draft.offsets)
    none = np.empty((0, draft.needed.shape[1]), np.int64)
    padded = np.maximum.reduceat(draft.needed, starts, axis=0) if len(starts) else none
    costs = costs_of(batching.cost, sizes, padded) if len(starts) else np.empty(0)
    levels = padded.sum(axis=1).astype(np.float64)
    if len(draft.walls):
        bucket = np.searchsorted(draft.walls, starts, side="right")
        longest = np.zeros(len(draft.walls) + 1)
        np.maximum.at(longest, bucket, levels)
        levels = longest[bucket]
    return _Batches(draft.members, draft.offsets, padded, costs, levels)


def _arrangement(grid: NDArray[np.int64], batches: _Batches, batching: Batching, key: Key) -> NDArray[np.int64]:
    flat = grid.reshape(-1, grid.shape[1] * grid.shape[2])
    return batching.arrange(batches.costs[flat].max(axis=1, initial=0.0), batches.levels[flat].mean(axis=1), key)


def _without_unused(batches: _Batches, grid: NDArray[np.int64]) -> tuple[_Batches, NDArray[np.int64]]:
    """Leaves out the batches that no rank takes (a tail that drops), and renumbers the rest."""
    used = np.zeros(len(batches.costs), bool)
    used[grid.reshape(-1)] = True
    if used.all():
        return batches, grid
    sizes = np.diff(batches.offsets)
    kept = _Batches(
        batches.members[np.repeat(used, sizes)],
        np.concatenate([[0], np.cumsum(sizes[used])]),
        batches.padded_lengths[used],
        batches.costs[used],
        batches.levels[used],
    )
    return kept, (np.cumsum(used) - 1)[grid]


def _check_countable(items: NDArray[np.int64]) -> None:
    """Refuses what could be padded to 2**53 frames or more: beyond, sums and costs are no longer exact."""
    frames = len(items) * float(items.max(axis=0, initial=0).astype(np.float64).sum())
    if frames >= 2.0**53:
        rule = "few and short enough to be padded to less than 2**53 frames"
        remedy = "Check their unit; plan fewer sequences at a time."
        raise _checks.value_error("lengths", rule, frames, remedy)


def _one_length(array: NDArray[np.int64]) -> NDArray[np.int64]:
    flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if flat.ndim != 1:
        remedy = (
            "Give one length each, lengths[:, 0] say (on the command line: FILE:0), for chunks and padding to edges."
        )
        raise _checks.value_error("lengths", "of shape [n]", array.shape, remedy)
    return flat

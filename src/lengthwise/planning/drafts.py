"""Drafts: the members of each portion in order, and cut; not yet padded, not yet dealt."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _checks
from lengthwise._random import Key
from lengthwise.batching import Batching
from lengthwise.cut import OversizeError
from lengthwise.deal import batches_wanted, fill, split_largest
from lengthwise.order import Bucketed, Order
from lengthwise.planning.batches import Batches, joined, padded


class Draft(NamedTuple):
    """Members in order, cut; `needed` [k, dims] is what each must be padded to, `walls` the borders of buckets."""

    members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    walls: NDArray[np.int64]
    needed: NDArray[np.int64]


def drafts(items: NDArray[np.int64], batching: Batching, world_size: int, key: Key) -> list[Draft]:
    order = batching.order
    if isinstance(order, Bucketed) and len(items):  # on all sequences, so that portions share their edges
        order = order.settled(items.sum(axis=1).astype(np.float64))
    portions = batching.deal.portions(len(items), world_size, key)
    lanes = [key.at("order", lane=lane) for lane in range(len(portions))]
    return [draft(items, members, batching, order, lane) for members, lane in zip(portions, lanes, strict=True)]


def draft(items: NDArray[np.int64], members: NDArray[np.int64], batching: Batching, order: Order, key: Key) -> Draft:
    if not len(members):
        none = np.empty(0, np.int64)
        return Draft(members, np.zeros(1, np.int64), none, items[members])
    longest = items.max(axis=0)
    shares = items.sum(axis=0) / items.sum()  # of each dimension in the size of a sequence

    def batch_sizes(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        lengths = np.ceil(np.outer(sizes, shares)).astype(np.int64)
        return batching.cut.batch_sizes(lengths, cost=batching.cost, longest=longest)

    own = items[members]
    sequences, walls, edges = order(own.sum(axis=1).astype(np.float64), key, batch_sizes)
    needed = own[sequences] if edges is None else np.maximum(one_length(own)[sequences], edges)[:, None]
    longest = np.maximum(longest, needed.max(axis=0, initial=0))  # an edge may be longer than any sequence
    try:
        kept, offsets = batching.cut(needed, walls, cost=batching.cost, longest=longest)
    except OversizeError as error:
        sequence = int(members[sequences[error.position]])
        raise OversizeError(error.budget, error.cost, error.position, sequence=sequence) from None
    return Draft(members[sequences[kept]], offsets, np.searchsorted(kept, walls), needed[kept])


def longest_needed(items: NDArray[np.int64], drafts: list[Draft]) -> NDArray[np.int64]:
    """The longest that anything is padded to, or would be if it were not dropped: [dims]."""
    return np.max([items.max(axis=0), *(draft.needed.max(axis=0, initial=0) for draft in drafts)], axis=0)


def merged(drafts: list[Draft], batching: Batching, slots: int, key: Key) -> tuple[Batches, NDArray[np.int64]]:
    """Brings the portions to equal numbers of batches: all batches, and which take part, [portions, each]."""
    tail, places = batching.deal.tail, slots // len(drafts)
    wanted = batches_wanted([len(draft.offsets) - 1 for draft in drafts], places, tail=tail)
    if tail == "split":
        drafts = [draft._replace(offsets=split_largest(draft.offsets, wanted)) for draft in drafts]
        wanted = batches_wanted([len(draft.offsets) - 1 for draft in drafts], places, tail=tail)
    parts = [_padded(draft, batching) for draft in drafts]
    batches = joined(parts)
    borders = np.cumsum([0] + [len(part.costs) for part in parts])
    numbers = [
        fill(np.arange(borders[lane], borders[lane + 1]), batches.costs, wanted, key=key.at("tail", lane=lane))
        for lane in range(len(parts))
    ]
    return batches, np.stack(numbers)


def _padded(draft: Draft, batching: Batching) -> Batches:
    """The batches of the draft; those between two walls share the level of their longest."""
    batches = padded(draft.members, draft.offsets, draft.needed, batching)
    if not len(draft.walls):
        return batches
    bucket = np.searchsorted(draft.walls, draft.offsets[:-1], side="right")
    longest = np.zeros(len(draft.walls) + 1)
    np.maximum.at(longest, bucket, batches.levels)
    return batches._replace(levels=longest[bucket])


def one_length(array: NDArray[np.int64]) -> NDArray[np.int64]:
    flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if flat.ndim != 1:
        remedy = (
            "Give one length each, lengths[:, 0] say (on the command line: FILE:0), for chunks and padding to edges."
        )
        raise _checks.value_error("lengths", "of shape [n]", array.shape, remedy)
    return flat

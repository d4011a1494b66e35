"""Batches on their way to a plan: what they hold, what each is padded to, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.batching import Batching
from lengthwise.cost import costs_of
from lengthwise.deal import split_largest


class Batches(NamedTuple):
    """Batch b is members[offsets[b]:offsets[b + 1]].

    needed          [m, dims]         what each member must be padded to at least
    padded_lengths  [batches, dims]   what each batch is padded to: the most that its members need
    costs           [batches]
    levels          [batches]         how long the bucket of each batch is; where there are no buckets, the batch itself
    """

    members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    needed: NDArray[np.int64]
    padded_lengths: NDArray[np.int64]
    costs: NDArray[np.float64]
    levels: NDArray[np.float64]


def padded(
    members: NDArray[np.int64],
    offsets: NDArray[np.int64],
    needed: NDArray[np.int64],
    batching: Batching,
    levels: NDArray[np.float64] | None = None,
) -> Batches:
    """The batches that `offsets` cut `members` into, padded and priced; `levels` are their own where none are given."""
    if len(offsets) == 1:
        none = np.empty(0)
        return Batches(members, offsets, needed, np.empty((0, needed.shape[1]), np.int64), none, none)
    lengths = np.maximum.reduceat(needed, offsets[:-1], axis=0)
    costs = costs_of(batching.cost, np.diff(offsets), lengths)
    own = lengths.sum(axis=1).astype(np.float64)
    return Batches(members, offsets, needed, lengths, costs, own if levels is None else levels)


def joined(parts: Sequence[Batches]) -> Batches:
    """The batches of all parts, part after part."""
    ends = np.cumsum([0] + [len(part.members) for part in parts])
    starts = [part.offsets[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
    fields = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Batches._fields}
    return Batches(**(fields | {"offsets": np.concatenate([*starts, ends[-1:]])}))


def taken_out(batches: Batches, used: NDArray[np.bool_]) -> Batches:
    """The batches marked in `used` [batches], and no other."""
    sizes = np.diff(batches.offsets)
    kept = np.repeat(used, sizes)
    return Batches(
        batches.members[kept],
        np.concatenate([[0], np.cumsum(sizes[used])]),
        batches.needed[kept],
        batches.padded_lengths[used],
        batches.costs[used],
        batches.levels[used],
    )


def split(batches: Batches, wanted: int, batching: Batching) -> Batches:
    """Halves the batches of most sequences until there are `wanted`; the halves stay in their batch's bucket."""
    offsets = split_largest(batches.offsets, wanted)
    levels = batches.levels[np.searchsorted(batches.offsets, offsets[:-1], side="right") - 1]
    return padded(batches.members, offsets, batches.needed, batching, levels)

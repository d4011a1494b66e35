"""Batches before they are a plan: what they hold, what each is padded to, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.choices.cost import Cost, costs_of, costs_of_rows
from lengthwise.choices.multiples import fill_up


class Batches(NamedTuple):
    """Batch b is members[offsets[b]:offsets[b + 1]].

    needed          [m, dims]         what each member must be padded to at least; or [0, dims], once
                                      no batch is split or packed any more
    padded_lengths  [batches, dims]   what each batch is padded to: the most that its members need
    costs           [batches]
    bucket_lengths  [batches]         how long the longest of each batch's bucket is; None where there are no buckets
    capacity                          of a row, where sequences are packed into rows
    """

    members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    needed: NDArray[np.int64]
    padded_lengths: NDArray[np.int64]
    costs: NDArray[np.float64]
    bucket_lengths: NDArray[np.float64] | None
    capacity: int | None = None

    @property
    def lengths(self) -> NDArray[np.float64]:
        """The length by which steps are put in order: of the batch's bucket, or, without buckets, of the batch."""
        if self.bucket_lengths is not None:
            return self.bucket_lengths
        lengths = self.padded_lengths[:, 0].astype(np.float64)  # below 2**53, and exact
        for column in self.padded_lengths.T[1:]:
            lengths += column
        return lengths


def pad(
    members: NDArray[np.int64],
    offsets: NDArray[np.int64],
    needed: NDArray[np.int64],
    cost: Cost,
    *,
    capacity: int | None = None,
    multiple: int = 1,
) -> Batches:
    """The batches that `offsets` cut `members` into, padded and priced.

    Where rows have a `capacity`, each batch is padded to it. Otherwise its rows are filled up to a `multiple`.
    """
    if len(offsets) == 1:  # no batches: `reduceat` wants at least one start
        return Batches(members, offsets, needed, np.empty((0, needed.shape[1]), np.int64), np.empty(0), None, capacity)
    if capacity is not None:
        lengths = np.full((len(offsets) - 1, 1), capacity)
        costs = costs_of_rows(cost, needed, offsets, capacity)
        return Batches(members, offsets, needed, lengths, costs, None, capacity)
    # Members that need [5, 9, 2, 4], cut at [0, 2, 4], are padded to [9, 4].
    lengths = np.maximum.reduceat(needed, offsets[:-1], axis=0)
    costs = costs_of(cost, fill_up(np.diff(offsets), multiple), lengths)
    return Batches(members, offsets, needed, lengths, costs, None)


def join(parts: Sequence[Batches]) -> Batches:
    """The batches of all parts, part after part."""
    if len(parts) == 1:
        return parts[0]
    # Parts of 3 and 4 members have the ends [0, 3, 7]: the offsets of the second part rise by 3.
    ends = np.cumsum([0] + [len(part.members) for part in parts])
    starts = [part.offsets[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return Batches(
        np.concatenate([part.members for part in parts]),
        np.concatenate([*starts, ends[-1:]]),
        np.concatenate([part.needed for part in parts]),
        np.concatenate([part.padded_lengths for part in parts]),
        np.concatenate([part.costs for part in parts]),
        None if parts[0].bucket_lengths is None else np.concatenate([part.lengths for part in parts]),
        parts[0].capacity,
    )


def select(batches: Batches, chosen: NDArray[np.bool_]) -> Batches:
    """The batches marked in `chosen` [batches], and no other."""
    sizes = np.diff(batches.offsets)
    kept = np.repeat(chosen, sizes)  # of batches of [2, 1, 2], the first and last: members [1, 1, 0, 1, 1]
    return Batches(
        batches.members[kept],
        np.concatenate([[0], np.cumsum(sizes[chosen])]),
        batches.needed[kept] if len(batches.needed) else batches.needed,
        batches.padded_lengths[chosen],
        batches.costs[chosen],
        None if batches.bucket_lengths is None else batches.bucket_lengths[chosen],
        batches.capacity,
    )

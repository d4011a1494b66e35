"""Rows: whole sequences packed into rows of a fixed capacity, and several rows a batch.

    lengths   [m]   in order
    kept      [k]   positions, batch by batch and row by row

Only the rest of a row is padding. Sequences of a row must not attend to each other: `lengthwise.torch.RowCollate` gives
the arguments of attention for that.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels, checks
from lengthwise._random import argsort
from lengthwise.choices.arithmetic import distinct, one_length
from lengthwise.choices.cost import Cost, Padded
from lengthwise.choices.cut import Cuts, OversizeError

_POOL = 1_024
# Lengths for which the pool seeks a partner. With 0, 16 and 64 such lengths, rows were 0.9964, 0.9959 and 0.9943 full,
# and had a randomness of 0.79, 0.80 and 0.83, at a mean length of 1,400. Pairs use up the short sequences, which fill
# gaps best.
_PAIRED = 16
_MOST = 2**24  # frames in a row: the tables of the kernels then take 256 MiB
_UNLIMITED = 2**62  # sequences in a row without a limit


class LongerThanRowError(OversizeError):
    """A sequence is longer than a row. The `budget` of the error is the capacity, and its `cost` the length."""

    def _sentence(self, at: str) -> str:
        chunks = "cut sequences into chunks first: chunks=Chunks(capacity) (lengthwise plan --chunk CAPACITY)"
        if self.span:
            chunks = "give chunks of at most a row"
        remedy = "Raise it, choose oversize='drop' (on the command line: --cut rows:CAPACITY,oversize=drop)"
        rule = f"at least the longest sequence, {self.cost:.16g}"
        return checks.sentence("capacity", rule, int(self.budget), f"{remedy}, or {chunks}.", at=at)


@dataclass(frozen=True, slots=True)
class Rows:
    """Packing: each row of a batch holds several whole sequences, of at most `capacity` frames in sum.

    By "pool", rows are filled one after another from the next `pool` sequences of the order. A row takes those that
    came first, until one does not fit. From then on it takes the longest that fits, or the first of a pair that leaves
    less room. `pool=1` is next fit: each row is filled in order until the next sequence does not fit. No pool puts a
    sequence into a later row than next fit does.

    By "best-fit", the longest sequence comes first, and each goes into the fullest row that has room (best-fit
    decreasing). That fills rows best, but puts the same lengths together in every epoch: the longest with the shortest,
    then rows of similar lengths.

    Two mistakes are usual: sequences of a row attend to each other, or a loss crosses their border. Rows are padded to
    `capacity`. The cost of a batch is the sum of the costs of its sequences, each priced by itself. By default that is
    their frames, which are about the same in all full rows. So give a cost that counts attention, such as
    `Quadratic(linear=1, quadratic=0.001)`, or ranks wait for the slowest. Sequences need one length each.

    Args:
        capacity: The number of frames (tokens) in a row, at most 2**24.
        rows: The number of rows in a batch. The last batch may have fewer, and a tail may split batches.
        by: "pool" or "best-fit".
        pool: The number of sequences that wait for a row, if `by` is "pool"; by default 1,024. A larger pool fills rows
            better, and mixes less. A sequence overtakes at most `pool` others.
        oversize: The policy for a sequence longer than a row: "error" or "drop". `Chunks(capacity)` splits sequences.
        max_in_row: The most sequences in one row; by default any number that fits. A row with this number is closed,
            even if it has room. Give `RowCollate` the same number.

    References:
        Best-fit decreasing and next fit: Johnson 1973, "Near-optimal bin packing algorithms".

    >>> import lengthwise as lw
    >>> order = lw.Sorted(descending=True)
    >>> batching = lw.Batching(cut=Rows(10, rows=2), order=order, arrange=lw.InOrder())
    >>> plan = lw.make_plan([5, 9, 2, 4, 1], batching)
    >>> [[row.tolist() for row in plan.rows(batch)] for batch in plan.grid.reshape(-1)]
    [[[1, 4]], [[0, 3], [2]]]
    """

    capacity: int
    _: KW_ONLY
    rows: int = 1
    by: str = "pool"
    pool: int | None = None
    oversize: str = "error"
    max_in_row: int | None = None

    def __post_init__(self) -> None:
        checks.keep_whole(self, "capacity", maximum=_MOST, remedy="Give the tokens of a row, such as 4096.")
        checks.keep_whole(self, "rows", remedy="Give the rows in a batch, such as 8.")
        checks.check_choice("by", self.by, ("pool", "best-fit"))
        checks.check_choice("oversize", self.oversize, ("error", "drop"))
        checks.keep(self, max_in_row=check_in_row(self.max_in_row))
        remedy = "Give how many sequences wait for a row, such as 1024."
        checks.keep_whole(self, "pool", remedy=remedy, optional=True)
        if self.pool is not None and self.by != "pool":
            raise checks.value_error("pool", "left out with best-fit", self.pool, "All sequences wait there.")

    def __call__(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]
    ) -> Cuts:
        sizes = np.ascontiguousarray(one_length(lengths))
        places = np.flatnonzero(sizes <= self.capacity)
        if len(places) < len(sizes) and self.oversize == "error":
            longest_at = int(sizes.argmax())
            raise LongerThanRowError(self.capacity, float(sizes[longest_at]), longest_at)
        # Boundaries count the kept positions: if position 1 of 5 is dropped, the boundary 3 becomes 2.
        borders = distinct(np.array([0, *np.searchsorted(places, boundaries), len(places)])).tolist()
        parts = [(start, *self._pack(sizes[places[start:stop]])) for start, stop in pairwise(borders)]
        packed = np.concatenate([np.empty(0, np.int64), *(start + members for start, members, _ in parts)])
        offsets = np.concatenate([*(start + ends[:-1] for start, _, ends in parts), [len(places)]])
        return Cuts(places[packed], offsets.astype(np.int64))

    def find_rows(self, lengths: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the starts of the rows of batches of `lengths` [m, 1], by `row_offsets`."""
        return row_offsets(np.ascontiguousarray(lengths[:, 0]), offsets, self.capacity, self.max_in_row)

    def max_cost(self, cost: Cost, longest: NDArray[np.int64]) -> float:
        """Returns the frames of all rows of a batch for the cost `Padded`; infinity for any other cost."""
        return float(self.capacity * self.rows) if type(cost) is Padded else np.inf

    def batch_sizes(self, lengths: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]) -> NDArray[np.float64]:
        in_row = np.minimum(self.max_in_row or _UNLIMITED, self.capacity / lengths.sum(axis=1))
        return np.maximum(1.0, self.rows * in_row)

    def _pack(self, lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Packs `lengths` [n], between two boundaries: the members of the batches, and their offsets."""
        members, offsets = np.empty(len(lengths), np.int64), np.empty(len(lengths) + 1, np.int64)
        most = self.max_in_row or _UNLIMITED
        # The tables of the kernels have an entry for each frame of a row: no more than a small group fills.
        capacity = min(self.capacity, int(lengths.sum()))
        if self.by == "pool":
            pool = min(self.pool or _POOL, len(lengths))
            batches = _kernels.pool_rows(lengths, capacity, most, pool, self.rows, _PAIRED, members, offsets)
        else:
            row_of = np.empty(len(lengths), np.int64)
            # Longest first, equal lengths in their order.
            order, counts = argsort(capacity - lengths), np.bincount(lengths, minlength=capacity + 1)
            rows = _kernels.best_fit(counts, most, row_of)
            batches = _kernels.batch_rows(order, row_of, rows, min(self.rows, rows), members, offsets)
        return members, offsets[: batches + 1].copy()


def check_in_row(most: object) -> int | None:
    """Returns the most sequences in a row as an int, or None."""
    remedy = "Give the most sequences in a row, such as 64, or leave it out."
    return None if most is None else checks.check_whole("max_in_row", most, minimum=1, remedy=remedy)


def row_offsets(
    lengths: NDArray[np.int64], offsets: NDArray[np.int64], capacity: int, most: int | None = None
) -> NDArray[np.int64]:
    """Returns the starts of the rows, and the end, if each batch fills its rows in order: [rows + 1].

    A row ends before the first sequence that does not fit, or once it holds `most` sequences. No other way to put a
    batch into rows in its order takes fewer rows.

    Args:
        lengths: [m], batch by batch.
        offsets: [batches + 1].
        capacity: Frames of a row.
        most: The most sequences in a row; None for any number.

    >>> row_offsets(np.array([5, 4, 3, 9, 1, 2]), np.array([0, 3, 6]), 10)
    array([0, 2, 3, 5, 6])
    >>> row_offsets(np.array([5, 1, 3, 9, 1, 2]), np.array([0, 3, 6]), 10, 2)
    array([0, 2, 3, 5, 6])
    """
    starts = np.empty(len(lengths) + 1, np.int64)
    rows = _kernels.fill_rows(lengths, offsets, capacity, most or _UNLIMITED, starts)
    return starts[: rows + 1].copy()


def find_places(lengths: NDArray[np.int64], starts: NDArray[np.int64], capacity: int) -> NDArray[np.int64]:
    """Returns the start of each sequence in rows laid end to end.

    Args:
        lengths: [m], row by row.
        starts: [rows + 1], the starts of the rows, and the end, by `row_offsets`.
        capacity: Frames of a row.

    >>> find_places(np.array([3, 2, 2]), np.array([0, 2, 3]), 6)
    array([0, 3, 6])
    """
    row_of = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    packed = np.cumsum(lengths) - lengths  # the starts without padding
    return row_of * capacity + packed - packed[starts[:-1]][row_of] if len(lengths) else packed


def number_frames(
    lengths: NDArray[np.int64], places: NDArray[np.int64], starts: NDArray[np.int64], rows: int, capacity: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Numbers the frames of packed rows.

    Args:
        lengths: [m], row by row.
        places: [m], by `find_places`.
        starts: [filled rows + 1], as in `find_places`.
        rows: The number of all rows, including those that hold only padding.
        capacity: Frames of a row.

    Returns:
        The position of each frame within its sequence, and its segment: 1, 2, ... within a row, 0 on padding; both
        [rows, capacity]. And the starts of the segments in rows laid end to end, and the end; padding is a segment.
    """
    # Rows end at multiples of the capacity, and the padding of a row begins where its last sequence ends.
    ends = places + lengths
    borders = np.unique(np.concatenate([places, ends, np.arange(rows + 1) * capacity]))
    sizes = np.diff(borders)
    positions = np.arange(rows * capacity) - np.repeat(borders[:-1], sizes)
    # Three samples in rows that begin with samples 0 and 2 have the numbers 1 and 2 in the first row, 1 in the second.
    number = np.zeros(len(sizes), np.int64)
    number[np.searchsorted(borders, places)] = 1 + np.arange(len(lengths)) - np.repeat(starts[:-1], np.diff(starts))
    segments = np.repeat(number, sizes)
    return positions.reshape(rows, capacity), segments.reshape(rows, capacity), borders

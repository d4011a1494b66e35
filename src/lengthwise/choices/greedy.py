"""Greedy: the limits of a batch; batches filled in order up to them, and the largest batch sizes within a budget."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise.choices.arithmetic import raise_counts
from lengthwise.choices.cost import Cost, Padded, coefficients_of, costs_of

_CALLED = 2**14  # batches priced in one call of a user's cost: with so many, the call itself takes little of the time
_LEAST_AHEAD = 8  # sequences that a batch is first tried with; doubled until batches close
_OPEN = 2**62  # the size of a batch that did not close: larger than any, even if a position is added
_MOST_COUNTED = 2**40  # sequences: no batch is larger


class Limits(NamedTuple):
    """The limits of a batch: `max_sequences`, and `budget` in cost; or a `batch_size` alone, whatever the batches cost.

    Rows are filled up to a `count_multiple`. A batch is as cheap as can be by `balance`, or else by the cost.
    """

    cost: Cost
    budget: float = np.inf
    max_sequences: int = 2**62  # more than any data set has
    count_multiple: int = 1
    batch_size: int | None = None
    balance: Cost | None = None

    def for_kernels(self, lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], _kernels.Bounds | None]:
        """Returns lengths [m, dims] and limits as kernels take them; no limits for a cost without coefficients."""
        # A batch of `Padded(dims="largest")` costs as much as if each sequence had its largest length alone.
        if self.cost == Padded(dims="largest") and self.balance in (None, self.cost) and lengths.shape[1] > 1:
            lengths = lengths.max(axis=1, keepdims=True)
        return lengths, self.bounds(lengths.shape[1])

    def bounds(self, dims: int) -> _kernels.Bounds | None:
        """Returns the limits as kernels take them, for `dims` lengths; None for a cost without coefficients."""
        ours, balance = coefficients_of(self.cost, dims), coefficients_of(self.balance or self.cost, dims)
        if ours is None or balance is None:
            return None
        most, multiple = int(self.max_sequences), int(self.count_multiple)
        return _kernels.Bounds(ours, float(self.budget), most, multiple, balance, np.empty(dims))


def cut_greedily(
    lengths: NDArray[np.int64], boundaries: NDArray[np.int64], limits: Limits, *, overshoot: bool = False
) -> NDArray[np.int64]:
    """Returns the offsets of batches filled in order up to the budget, or with `overshoot` until they reach it.

    Without `overshoot`, a sequence that alone is over the budget stands alone. Costs with coefficients run compiled.
    Any other cost, also of a subclass, is called for some thousand (count, padded lengths) at once.

    With a `count_multiple`, a batch takes the most sequences that fit when its rows are filled up to the next multiple.
    If fewer sequences fit than the multiple, the batch takes as many as fit.
    """
    kernel_lengths, bounds = limits.for_kernels(lengths)
    if bounds is None:
        return _cut_by_calls(lengths, boundaries, limits, overshoot)
    count, bounds = len(lengths), bounds._replace(overshoot=overshoot)
    offsets = np.zeros(count + 1, np.int64)  # room for batches of single sequences
    order = np.arange(count), 0, count, number_parts(boundaries, count)
    batches, *_ = _kernels.cut_batches(kernel_lengths, *order, bounds, np.inf, False, offsets[1:])
    return offsets[: batches + 1].copy()


def number_parts(boundaries: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Numbers the parts between boundaries: [count], the part of each position; empty if there are no boundaries.

    >>> number_parts(np.array([2, 3]), 5)
    array([0, 0, 1, 2, 2])
    """
    widths = np.diff(boundaries, prepend=0, append=count) if len(boundaries) else boundaries
    return np.repeat(np.arange(len(widths)), widths)


def _cut_by_calls(
    lengths: NDArray[np.int64], boundaries: NDArray[np.int64], limits: Limits, overshoot: bool
) -> NDArray[np.int64]:
    """Cuts greedily by any callable, with few calls that each price many batches.

    The start of a batch is known only once the batch before has ended. So one call prices the batches that would start
    at each position of a stretch. If batches that start at 0..4 would hold [2, 3, 1, 2, 2], they are 0-1, 2 and 3-4.
    """
    count = len(lengths)
    borders, places = np.append(boundaries, count), np.arange(count)
    # The most sequences of a batch, by the position where it starts.
    room = np.minimum(borders[np.searchsorted(borders, places, side="right")] - places, limits.max_sequences)
    offsets = [0]
    ahead = _LEAST_AHEAD  # sequences that a batch is tried with
    while (start := offsets[-1]) < count:
        stop = min(count, start + max(1, _CALLED // ahead))
        ahead = min(ahead, int(room[start:stop].max()))
        counts = raise_counts(np.arange(1, ahead + 1), limits.count_multiple)
        costs = _price_from(lengths, start, stop, counts, limits.cost)
        # The sequence that closes a batch is in it only if the batch may overshoot.
        closing = costs >= limits.budget if overshoot else costs > limits.budget
        sizes = np.maximum(np.where(closing.any(axis=1), closing.argmax(axis=1) + overshoot, _OPEN), 1)
        # A batch also ends at a boundary, and at the most sequences, before the budget is reached.
        sizes = np.minimum(sizes, room[start:stop])
        ends = np.where(sizes <= ahead, np.arange(start, stop) + sizes, -1).tolist()
        first = len(offsets)
        while offsets[-1] < stop and (end := ends[offsets[-1] - start]) > 0:
            offsets.append(end)
        # If the stretch ended early, a batch has more than `ahead` sequences: try twice as many.
        # Otherwise try twice those of the largest batch.
        grown = int(np.diff(offsets[first - 1 :]).max(initial=1))
        ahead = 2 * ahead if offsets[-1] < stop else max(_LEAST_AHEAD, 2 * grown)
    return np.array(offsets, np.int64)


def _price_from(
    lengths: NDArray[np.int64], start: int, stop: int, counts: NDArray[np.int64], cost: Cost
) -> NDArray[np.float64]:
    """Prices batches of 1, 2, ..., `ahead` sequences from each position start..stop-1 on.

    Args:
        counts: [ahead], the counts to price: those of the sequences, filled up to the multiple.

    Returns:
        [stop - start, ahead].
    """
    ahead = len(counts)
    rows = np.zeros((stop - start + ahead - 1, lengths.shape[1]), np.int64)
    reached = lengths[start : stop + ahead - 1]
    rows[: len(reached)] = reached
    # For lengths [5, 9, 2, 4] and ahead = 2, the longest of each batch are [[5, 9], [9, 9], [2, 4]] from 0, 1 and 2.
    windows = np.lib.stride_tricks.sliding_window_view(rows, ahead, axis=0)
    longest = np.maximum.accumulate(windows, axis=2).transpose(0, 2, 1).reshape(-1, lengths.shape[1])
    return costs_of(cost, np.tile(counts, stop - start), longest).reshape(-1, ahead)


def sizes_within(lengths: NDArray[np.int64], cost: Cost, budget: float) -> NDArray[np.int64]:
    """Finds the largest count, from 1 to 2**40 - 1, whose cost at each of `lengths` [k, dims] is within the budget."""

    def fits(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        return costs_of(cost, counts, lengths) <= budget

    # Doubling asks for no cost that is far over the budget: it could be beyond all floats.
    low, high = np.ones(len(lengths), np.int64), np.full(len(lengths), 2)
    while np.any(growing := fits(high) & (high < _MOST_COUNTED)):
        low, high = np.where(growing, high, low), np.where(growing, 2 * high, high)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        fitting = fits(middle)
        low, high = np.where(fitting, middle, low), np.where(fitting, high, middle)
    return low

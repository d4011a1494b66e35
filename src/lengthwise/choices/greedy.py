"""Greedy: batches filled in order up to a budget, and how many sequences of a length a budget holds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise.choices.arithmetic import fill_up
from lengthwise.choices.cost import Cost, check_finite, costs_of, prices_of, split_price

_ASKED = 2**14  # costs that one call of a user's own cost is asked for: enough that the call itself hardly counts
_LEAST_AHEAD = 8  # sequences that a batch is first tried with; doubled until batches close
_BEYOND = 2**62  # the size of a batch that did not close: larger than any, also when a position is added
_MOST_COUNTED = 2**40  # sequences: no batch is larger

_Fit = Callable[[NDArray[np.int64]], NDArray[np.bool_]]  # whether so many sequences are within a budget, at each place


def cut_greedily(
    lengths: NDArray[np.int64],
    boundaries: NDArray[np.int64],
    *,
    cost: Cost,
    budget: float,
    most: int | None = None,
    overshoot: bool = False,
    multiple: int = 1,
) -> NDArray[np.int64]:
    """The offsets of batches filled in order up to `budget`, or, where `overshoot`, until they reach it.

    A sequence over the budget by itself stands alone. The costs of this package run compiled. Any other cost, and any
    class that extends one of them, is called for some thousand (count, padded lengths) at a time.

    With a `multiple`, a batch takes as many sequences as fit when its rows are filled up to the next multiple. Where
    not so many fit, it takes what does.
    """
    most = most or len(lengths)
    prices = prices_of(cost, lengths.shape[1])
    if prices is None:
        return _cut_by_calls(lengths, boundaries, cost, budget, most, overshoot, multiple)
    offsets = np.empty(len(lengths) + 1, np.int64)  # as many as there may be: of single sequences
    batches = _kernels.greedy_cut(lengths, boundaries, prices, float(budget), most, multiple, overshoot, offsets)
    return offsets[: batches + 1].copy()


def _cut_by_calls(
    lengths: NDArray[np.int64],
    boundaries: NDArray[np.int64],
    cost: Cost,
    budget: float,
    most: int,
    overshoot: bool,
    multiple: int,
) -> NDArray[np.int64]:
    """The same by any callable, with few calls that each price many batches.

    A batch starts where the one before it ends, which is not known ahead. So one call prices the batches that would
    start at each position of a stretch. If batches from the positions 0..4 would hold [2, 3, 1, 2, 2] sequences, the
    batches are 0-1, 2 and 3-4.
    """
    count = len(lengths)
    borders, places = np.append(boundaries, count), np.arange(count)
    # The most sequences of a batch, by the position where it starts.
    room = np.minimum(borders[np.searchsorted(borders, places, side="right")] - places, most)
    offsets = [0]
    ahead = _LEAST_AHEAD  # how many sequences a batch is tried with
    while (start := offsets[-1]) < count:
        stop = min(count, start + max(1, _ASKED // ahead))
        ahead = min(ahead, int(room[start:stop].max()))
        costs = _price_from(lengths, start, stop, fill_up(np.arange(1, ahead + 1), multiple), cost)
        sizes = _count_until(costs >= budget if overshoot else costs > budget, with_last=overshoot)
        # A batch also ends at a boundary, and at `most` sequences, before the budget is reached.
        sizes = np.minimum(sizes, room[start:stop])
        ends = np.where(sizes <= ahead, np.arange(start, stop) + sizes, -1).tolist()
        known = len(offsets)
        while offsets[-1] < stop and (end := ends[offsets[-1] - start]) > 0:
            offsets.append(end)
        # Where the stretch ended early, batches are longer than `ahead`: try twice as many. Else twice the largest.
        grown = int(np.diff(offsets[known - 1 :]).max(initial=1))
        ahead = 2 * ahead if offsets[-1] < stop else max(_LEAST_AHEAD, 2 * grown)
    return np.array(offsets, np.int64)


def _count_until(closed: NDArray[np.bool_], *, with_last: bool) -> NDArray[np.int64]:
    """How many sequences batches take, at least one, by which of the next ones close each, [k, ahead]: [k].

    The sequence that closes a batch is in it only `with_last`. `_BEYOND` where none of the next `ahead` closes it.
    """
    return np.maximum(np.where(closed.any(axis=1), closed.argmax(axis=1) + with_last, _BEYOND), 1)


def _price_from(
    lengths: NDArray[np.int64], start: int, stop: int, counts: NDArray[np.int64], cost: Cost
) -> NDArray[np.float64]:
    """What batches of the next 1, 2, ... sequences from each of start..stop-1 on cost, priced as `counts` [ahead].

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


def sizes_within(lengths: NDArray[np.int64], cost: Cost, budget: float) -> NDArray[np.float64]:
    """The largest count, from 1 to 2**40 - 1, whose cost at each of `lengths` [k, dims] is within the budget: [k]."""
    prices, near = prices_of(cost, lengths.shape[1]), None
    if prices is None:

        def fit(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
            return costs_of(cost, counts, lengths) <= budget

    else:
        once, each = split_price(prices, lengths.astype(np.float64))
        with np.errstate(all="ignore"):  # `fit` says what is not finite
            count = np.divide(budget - once, each, out=np.full(len(lengths), float(_MOST_COUNTED)), where=each > 0)
            near = count.clip(2, _MOST_COUNTED - 1).astype(np.int64)

        def fit(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
            with np.errstate(all="ignore"):
                costs = once + counts * each
            check_finite(costs)
            return costs <= budget

    low, high = _bounds_near(near, fit) if near is not None else _bounds_from(len(lengths), fit)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        fits = fit(middle)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low.astype(np.float64)


def _bounds_near(near: NDArray[np.int64], fit: _Fit) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A count that fits, or 1, and a larger one that does not, or 2**40: one to either side of each of `near`."""
    low, high = near - 1, np.minimum(near + 2, _MOST_COUNTED)
    if ((low == 1) | fit(low)).all() and ((high == _MOST_COUNTED) | ~fit(high)).all():
        return low, high
    return _bounds_from(len(near), fit)


def _bounds_from(places: int, fit: _Fit) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """As `_bounds_near`, at so many places where nobody has guessed: doubles the count until it no longer fits."""
    low, high = np.ones(places, np.int64), np.full(places, 2)
    while np.any(growing := fit(high) & (high < _MOST_COUNTED)):
        low = np.where(growing, high, low)
        high = np.where(growing, high * 2, high)
    return low, high

"""Least cost: the cut of an order that costs least in sum, each batch within a budget.

    lengths   2 2 2 9 9       a budget of 36 padded frames
    greedy    2 2 2 9 | 9     36 + 9
    optimal   2 2 2 | 9 9     6 + 18, in as few batches

A cut is a path over the positions 0..m, and a batch a step from its first sequence to behind its last. The best way to
each position is found once, from the front: by costs, or, for the fewest batches, by (batches, costs).

With one length a sequence, the best cut of the sorted order is the best of all ways to make as few batches. Why? Take
any batches, and keep how many sequences each holds. Give the shortest sequences to the batch that is padded least, the
next to the next. Then no batch is padded to more than before. There, and by a cost of this package, it takes no longer
than a greedy cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels, checks
from lengthwise.choices.cost import Cost, Largest, Padded, Quadratic, prices_of
from lengthwise.choices.greedy import ASKED, LEAST_AHEAD, price_from, room_of, settle_most
from lengthwise.choices.multiples import fill_up


def cut_at_least_cost(
    lengths: NDArray[np.int64],
    boundaries: NDArray[np.int64],
    *,
    cost: Cost,
    budget: float,
    fewest: bool,
    most: int | None = None,
    multiple: int = 1,
) -> NDArray[np.int64]:
    """The offsets of the batches that cost least in sum, each within `budget`; a sequence over it stands alone.

    Args:
        lengths: [m, dims], in order.
        boundaries: Rising positions that no batch may cross.
        cost: What a batch costs. The costs of this package run compiled, any other is called as by the greedy cut.
        budget: What a batch may cost.
        fewest: Whether only cuts into the fewest batches are tried.
        most: The most sequences of a batch.
        multiple: What counts are multiples of, by the rules of the greedy cut.

    Returns:
        [batches + 1]. Of cuts that cost the same, one of the fewest batches.
    """
    count = len(lengths)
    most, multiple = settle_most(most, multiple, count)
    number, total, first = np.full(count + 1, -1), np.zeros(count + 1), np.zeros(count + 1, np.int64)
    number[0] = 0
    best = (number, total, first)
    prices = prices_of(cost, lengths.shape[1])
    if prices is not None and fewest and multiple == 1 and not len(boundaries) and _rise(lengths):
        ways = np.empty(count + 1, np.int64)
        one = np.ascontiguousarray(lengths[:, 0])
        _kernels.least_cost_cut_of_sorted(one, prices, float(budget), most, *best, ways)
    elif prices is not None:
        _kernels.least_cost_cut(lengths, boundaries, prices, float(budget), most, multiple, fewest, *best)
    else:
        _reach_by_calls(lengths, boundaries, cost, budget, most, multiple, fewest, best)
    offsets = np.empty(number[count] + 1, np.int64)
    _kernels.follow_back(number, first, offsets)
    return offsets


def check_prices_batch(cost: Cost) -> None:
    """Refuses a cost of this package by which batches cost nothing by themselves."""
    free = isinstance(cost, Padded | Largest) or (
        isinstance(cost, Quadratic) and not cost.per_batch and not np.any(cost.per_length)
    )
    if free and type(cost) in (Padded, Largest, Quadratic):
        rule = "one that prices a batch, for a cut by 'cheapest'"
        remedy = "Take Quadratic(per_batch=500), or by='optimal': by this cost every sequence would stand alone."
        raise checks.value_error("cost", rule, cost, remedy)


def _rise(lengths: NDArray[np.int64]) -> bool:
    """Whether sequences have one length each, and none is shorter than the one before it."""
    return lengths.shape[1] == 1 and bool((lengths[1:, 0] >= lengths[:-1, 0]).all())


def _reach_by_calls(
    lengths: NDArray[np.int64],
    boundaries: NDArray[np.int64],
    cost: Cost,
    budget: float,
    most: int,
    multiple: int,
    fewest: bool,
    best: tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]],
) -> None:
    """What the kernel does, by any callable: one call prices all batches from a stretch of positions on."""
    count, to_border = len(lengths), room_of(len(lengths), boundaries)
    start, ahead = 0, LEAST_AHEAD  # how many sequences a batch is tried with
    while start < count:
        stop = min(count, start + max(1, ASKED // ahead))
        ahead = min(ahead, most, int(to_border[start:stop].max()))
        sizes = np.arange(1, ahead + 1)
        filled = price_from(lengths, start, stop, fill_up(sizes, multiple), cost)
        open_ended = (filled[:, -1] <= budget) & (np.minimum(to_border[start:stop], most) > ahead)
        if open_ended.any():  # longer batches would fit
            ahead *= 2
            continue
        costs = filled if multiple == 1 else price_from(lengths, start, stop, sizes, cost)
        _kernels.reach_from(start, costs, filled, to_border, budget, most, multiple, fewest, *best)
        start = stop
        ahead = max(LEAST_AHEAD, 2 * int((filled <= budget).sum(axis=1).max()))

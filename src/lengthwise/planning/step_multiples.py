"""Steps whose batches hold multiples: how a step is cut so that each batch of it holds 8, 16, 24 ... sequences.

    step      90 9 9 9 9 2 2 2 2 2 2      multiples of 4, a budget of 100
    batches   90 9 9 | 9 9 2 2 | 2 2 2 2   four do not fit beside 90, so that its batch holds the three that are over

Steps are as large as they may be and still leave nothing over. So only the last step holds what is left. This serves
costs that must be called; those of this package are priced by the kernels of `_kernels.step_multiples`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise.choices.cost import Cost
from lengthwise.choices.greedy import LEAST_AHEAD, price_from
from lengthwise.choices.multiples import fill_up


class StepBounds(NamedTuple):
    """What a step holds: `slots` batches of at most `budget` in `cost`, and of `most` sequences, each a `multiple`.

    Where `step_size` is not 0, that many sequences make a full step, and not as many as the batches hold.
    """

    slots: int
    budget: float
    most: int
    cost: Cost
    multiple: int = 1
    step_size: int = 0


class _Found(NamedTuple):
    """The fewest batches: where they begin, and the end; and what the costliest costs."""

    offsets: NDArray[np.int64]
    costliest: float


def leaves_nothing(lengths: NDArray[np.int64], bounds: StepBounds) -> bool:
    """Whether a step of `lengths` [n, dims], in the order they are cut, is whole batches of multiples alone."""
    found = _Ways(lengths, bounds).find(bounds.budget, loose=False)
    return found is not None and len(found.offsets) - 1 <= bounds.slots


def level_multiples(lengths: NDArray[np.int64], bounds: StepBounds) -> NDArray[np.int64] | None:
    """Cuts a step into at most `slots` batches of multiples, the costliest of which costs the least possible.

    Returns:
        [batches + 1], where batches begin, and the end. What is over a multiple is in the last batch, if that cannot be
        avoided. None where even so the step needs more batches.
    """
    ways = _Ways(lengths, bounds)
    for loose in (False, True):
        best = ways.find(bounds.budget, loose=loose)
        if best is None or len(best.offsets) - 1 > bounds.slots:
            continue
        # Both ends move to costs that occur, as in the kernel `level_step`, and so they meet exactly.
        low = 0.0
        while low < best.costliest:
            middle = low + (best.costliest - low) / 2.0
            if middle >= best.costliest:  # neighbours among the floats
                break
            found = ways.find(middle, loose=loose)
            if found is None or len(found.offsets) - 1 > bounds.slots:
                low = ways.more
            else:
                best = found
        return best.offsets
    return None


class _Ways:
    """All ways to cut a step whose cost must be called; it is called once for all of them."""

    def __init__(self, lengths: NDArray[np.int64], bounds: StepBounds) -> None:
        self.count, self.bounds = len(lengths), bounds
        self.more = np.inf  # the next budget above that of the last try which may allow another batch
        self.costs, self.full = _price(lengths, bounds)

    def find(self, budget: float, *, loose: bool) -> _Found | None:
        """The fewest batches of at most `budget` each; None where no way leads to the end."""
        count, bounds = self.count, self.bounds
        number, first = np.empty(count + 1, np.int64), np.zeros(count + 1, np.int64)
        paid = np.empty(count + 1)
        limits = (float(budget), float(bounds.budget), bounds.most, bounds.multiple, loose)
        self.more = _kernels.reach_multiples_from(self.costs, self.full, *limits, number, paid, first)
        if number[count] < 0:
            return None
        offsets = np.empty(number[count] + 1, np.int64)
        _kernels.follow_back(number, first, offsets)
        return _Found(offsets, float(paid[count]))


def _price(lengths: NDArray[np.int64], bounds: StepBounds) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What the next 1, 2, ... sequences from each on cost, filled up, as far as any fit; and what a multiple costs."""
    count, ahead = len(lengths), LEAST_AHEAD
    most, multiple, cost = min(count, bounds.most), bounds.multiple, bounds.cost
    while True:
        ahead = min(ahead, most)
        costs = price_from(lengths, 0, count, fill_up(np.arange(1, ahead + 1), multiple), cost)
        open_ended = costs[: count - ahead, -1] <= bounds.budget
        if ahead == most or not open_ended.any():
            break
        ahead *= 2
    # As long as the next sequences are. More than `ahead` of them do not fit, however short the others are.
    within = min(multiple, ahead)
    return costs, price_from(lengths, 0, count, np.full(within, multiple), cost)[:, -1]

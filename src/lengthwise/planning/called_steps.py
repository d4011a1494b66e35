"""Called steps: what the kernels do for costs of this package, here by any cost, which must be called.

step     9 5 4 4 2        a budget of 30 padded frames, for two batches
greedy   9 5 4 | 4 2      27 and 8
level    9 5 | 4 4 2      18 and 12: under no smaller budget are two batches enough
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise.choices.cost import costs_of
from lengthwise.choices.greedy import cut_greedily
from lengthwise.planning.step_multiples import StepBounds, leaves_nothing, level_multiples

_NO_BOUNDARIES = np.empty(0, np.int64)


class Queue(NamedTuple):
    """Sequences in order, from which steps are filled.

    needed   [m, dims]   what each must be padded to at least
    sizes    [m]         whole numbers, by which a step is sorted, from the largest; equal ones stand as they come
    """

    needed: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def sort(self, start: int, stop: int) -> NDArray[Any]:
        """The positions from `start` to before `stop`, from the largest to the smallest."""
        positions = make_room(stop - start, len(self.sizes))
        _kernels.sort_steps(self.sizes[start:stop], np.array([stop - start]), positions)
        return start + positions


class Steps(NamedTuple):
    """Steps of sequences: how many each takes [steps], and their positions, step by step, each from its largest."""

    taken: NDArray[np.int64]
    positions: NDArray[Any]


def make_room(size: int, most: int) -> NDArray[Any]:
    """Room for numbers of at most `most`, of half the bytes where those are enough."""
    return np.empty(size, np.uint32 if most < 2**32 else np.int64)


def fill_by_calls(queue: Queue, bounds: StepBounds) -> Steps:
    """Steps in order, the last of them of what is left: doubles what fits into a step, and bisects."""
    count, slots = len(queue.needed), bounds.slots
    sizes: list[int] = []
    positions = make_room(count, count)
    start = 0
    while start < count:
        left = count - start
        # One sequence in each batch always fits, for one that is over the budget stands alone. The first guess is an
        # eighth more than the step before took, because random steps of one order differ little.
        fits = min(slots, left)
        reach = min(left, sizes[-1] + sizes[-1] // 8 + 1 if sizes else 2 * slots)
        while reach > fits and fits_in_step(queue, start, start + reach, bounds):
            fits, reach = reach, min(left, 2 * reach)
        while reach - fits > 1:
            middle = (fits + reach) // 2
            if fits_in_step(queue, start, start + middle, bounds):
                fits = middle
            else:
                reach = middle
        sizes.append(fits if bounds.multiple == 1 or fits == left else _round_down(queue, start, fits, bounds))
        stop = start + sizes[-1]
        positions[start:stop] = queue.sort(start, stop)
        start = stop
    return Steps(np.array(sizes, np.int64), positions)


def _round_down(queue: Queue, start: int, fits: int, bounds: StepBounds) -> int:
    """The most sequences, of at most `fits`, that make batches of multiples alone; or `fits`, where no such are near.

    Of 29 that fit, in multiples of 8, these are 24. With a batch of 3, where 8 do not fit, they are 27.
    """
    least = max(bounds.slots, fits - bounds.multiple + 1)
    for size in range(fits, least - 1, -1):
        if leaves_nothing(queue.needed[queue.sort(start, start + size)], bounds):
            return size
    return fits


def fits_in_step(queue: Queue, start: int, stop: int, bounds: StepBounds) -> bool:
    """Whether the sequences from `start` to before `stop` make no more batches than a step has."""
    return count_batches(queue.needed[queue.sort(start, stop)], bounds) <= bounds.slots


def count_batches(lengths: NDArray[np.int64], bounds: StepBounds) -> int:
    """How many batches a step of `lengths` [n, dims], sorted, needs under the budget."""
    return len(_cut_under(lengths, bounds, bounds.budget)) - 1


def _cut_under(lengths: NDArray[np.int64], bounds: StepBounds, budget: float) -> NDArray[np.int64]:
    most, multiple = bounds.most, bounds.multiple
    return cut_greedily(lengths, _NO_BOUNDARIES, cost=bounds.cost, budget=budget, most=most, multiple=multiple)


def cut_evenly_by_calls(needed: NDArray[np.int64], taken: NDArray[np.int64], bounds: StepBounds) -> NDArray[np.int64]:
    """The offsets of the batches of all steps: the costliest of each step as cheap as can be.

    Args:
        needed: [m, dims], step by step, each sorted.
        taken: [steps], how many sequences each takes.
        bounds: What a step holds.
    """
    stops = np.cumsum(taken)
    offsets = [np.zeros(1, np.int64)]
    for start, stop in zip(stops - taken, stops, strict=True):
        offsets.append(start + _level(needed[start:stop], bounds)[1:])
    return np.concatenate(offsets)


def _level(lengths: NDArray[np.int64], bounds: StepBounds) -> NDArray[np.int64]:
    """The offsets of one step; what the kernel `level_step` does, and for multiples `cut_steps_to_multiples`."""
    if bounds.multiple > 1:
        offsets = level_multiples(lengths, bounds)
        if offsets is not None:
            return _split(offsets, bounds)
        # Sequences of several lengths that others were lent from: few fit more tightly than by multiples.
        bounds = bounds._replace(multiple=1)
    # A budget of `high` is enough, one below `low` is not. Each try moves one of them to a cost that a batch has, or
    # would have with one sequence more. So they meet exactly at the least budget.
    low, budget = 0.0, bounds.budget
    high, _ = _price(lengths, _cut_under(lengths, bounds, budget), bounds, budget)
    while low < high:
        middle = low + (high - low) / 2.0
        # Between neighbouring floats there is no middle.
        if middle >= high:
            break
        offsets = _cut_under(lengths, bounds, middle)
        costliest, more = _price(lengths, offsets, bounds, middle)
        low, high = (more, high) if len(offsets) - 1 > bounds.slots else (low, costliest)
    return _split(_cut_under(lengths, bounds, high), bounds)


def _split(offsets: NDArray[np.int64], bounds: StepBounds) -> NDArray[np.int64]:
    """The batches with those of most sequences halved, until there are enough for a step."""
    ends = np.empty(bounds.slots, np.int64)
    ends[: len(offsets) - 1] = offsets[1:]
    if bounds.multiple == 1:
        batches = _kernels.split_widest(ends, len(offsets) - 1, bounds.slots)
    else:
        batches = _kernels.split_multiples(ends, len(offsets) - 1, bounds.slots, bounds.multiple)
    return np.concatenate([[0], ends[:batches]])


def _price(
    lengths: NDArray[np.int64], offsets: NDArray[np.int64], bounds: StepBounds, budget: float
) -> tuple[float, float]:
    """The costliest batch within the budget, and the least budget under which a batch would take one sequence more."""
    counts, longest = np.diff(offsets), np.maximum.reduceat(lengths, offsets[:-1])
    costs = costs_of(bounds.cost, counts, longest)
    # Lengths 9 5 4 | 3 2: the first batch costs 3 x 9, and with the next sequence 4 x 9. The last has no next one.
    growing = counts[:-1] < bounds.most
    further = np.maximum(longest[:-1], lengths[offsets[1:-1]])
    grown = costs_of(bounds.cost, counts[:-1] + 1, further)[growing]
    return float(costs[costs <= budget].max(initial=0.0)), float(grown.min(initial=np.inf))

"""Steps first: sequences fill whole steps in order, and each step is sorted and cut into its batches.

    order   9 2 5 4 | 3 8 7 1           two steps of 4 sequences, for 2 batches each
    steps   (9) (5 4 2) | (8 7) (3 1)   sorted from the longest; padded frames 9 and 15, 16 and 6

A step is a sample of the order: random where the order is. Its batches are nearly sorted, and cost nearly the same.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise.choices.bands import line_up
from lengthwise.choices.columns import longest_of, sum_rows
from lengthwise.choices.cost import Cost, costs_alone, costs_of, prices_of
from lengthwise.choices.cut import Cut, FixedSize, OversizeError
from lengthwise.choices.deal import RandomSteps
from lengthwise.choices.greedy import cut_greedily, settle_most
from lengthwise.choices.multiples import count_multiple
from lengthwise.planning.step_multiples import Limits, leaves_nothing, level_multiples

_UNBOUNDED = 2**62  # sequences in a batch: more than any data set has
_ASKED = 1_000  # sequences that tell about how many a step takes
_MOVED = 2**16  # sequences that are put in order at once
_NO_BOUNDARIES = np.empty(0, np.int64)


class Capacity(NamedTuple):
    """What a step holds: `slots` batches of at most `budget` in cost and `most` sequences each.

    Where `step_size` is not 0, that many sequences make a full step, and not as many as the batches hold. `multiple` is
    that of the sequences in a batch.
    """

    slots: int
    budget: float
    most: int
    step_size: int
    multiple: int = 1

    @property
    def limits(self) -> Limits:
        return Limits(self.slots, self.budget, self.most, self.multiple)


class Rows(NamedTuple):
    """Sequences in order.

    needed   [m, dims]   what each must be padded to at least
    sizes    [m]         int64, by which a step is sorted, from the largest; equal ones stand as they come
    """

    needed: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def sort(self, start: int, stop: int) -> NDArray[Any]:
        """The positions from `start` to before `stop`, from the largest to the smallest."""
        positions = _room(stop - start, len(self.sizes))
        _kernels.sort_steps(self.sizes[start:stop], np.array([stop - start]), positions)
        return start + positions


class Steps(NamedTuple):
    """Steps of sequences: how many each takes [steps], and their positions, step by step, each from its largest."""

    taken: NDArray[np.int64]
    positions: NDArray[Any]


def form_steps(
    sequences: NDArray[np.int64],
    needed: NDArray[np.int64],
    cut: Cut,
    deal: RandomSteps,
    capacity: Capacity,
    *,
    cost: Cost,
    bands: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cuts sequences in order into steps, and each step into batches of about equal cost.

    Only the last step may have fewer batches, where fewer sequences are left than the steps have places. And only the
    last holds what is left over a multiple of sequences, where the cut has one; `step_multiples` has the rules.

    Args:
        sequences: [m], in the order's order. They are moved within this array, where all of them are kept.
        needed: [m, dims], what each of them must be padded to at least. As `sequences`.
        cut: What becomes of a sequence over the budget.
        deal: What becomes of the last step, and whether batches may differ in count.
        capacity: What a step holds.
        cost: What a batch costs.
        bands: How sequences of several lengths are sorted inside of a step: by `line_up`, or, for 0, by their sum.

    Returns:
        The sequences batch after batch, those of a step from its longest to its shortest: [kept]; what each must be
        padded to, [kept, dims]; and the offsets of the batches.

    Raises:
        OversizeError: A sequence costs more than the budget by itself, and the cut does not say what becomes of it.
    """
    kept = _keep(needed, cut, cost, capacity.budget)
    if kept is not None:
        sequences, needed = sequences[kept], needed[kept]
    rows = Rows(needed, _sizes_of(needed, bands))
    steps = _fill(rows, cost, capacity)
    # The last step may be short of sequences. It is left out, or given one for each of its batches.
    if deal.tail == "drop" or getattr(cut, "drop_incomplete", False):
        steps = steps if _is_full(rows, steps.taken, cost, capacity) else _drop_last(steps)
    else:
        steps = _lend(rows, steps, cost, capacity)
    sequences, needed = (_put_in_steps(each, steps) for each in (sequences, needed))
    if deal.even:
        return sequences, needed, _cut_evenly(needed, steps.taken, cost, capacity)
    return sequences, needed, _cut_by_count(steps.taken, capacity.slots)


def _put_in_steps(rows: NDArray[np.int64], steps: Steps) -> NDArray[np.int64]:
    """`rows` [m] or [m, dims] in the order of the positions, moved within the array: a copy would be a third of all."""
    moved = rows[:, 0] if rows.ndim == 2 and rows.shape[1] == 1 else rows  # NumPy is slow on rows of one number
    ends, count = np.cumsum(steps.taken), len(steps.positions)
    # A step holds the rows that stood there. So some steps at once are moved by themselves: they stay in the cache.
    blocks = ends[np.unique(np.searchsorted(ends, np.arange(_MOVED, count, _MOVED)))].tolist()
    for start, stop in pairwise([0, *blocks, count]):
        moved[start:stop] = moved.take(steps.positions[start:stop], axis=0)
    return rows[:count]


def capacity_of(cut: Cut, cost: Cost, longest: NDArray[np.int64], slots: int) -> Capacity:
    """What a step holds by a cut that `check_cut` lets pass."""
    if isinstance(cut, FixedSize):
        return Capacity(slots, np.inf, _UNBOUNDED, cut.batch_size * slots)
    most, multiple = settle_most(getattr(cut, "max_sequences", None), count_multiple(cut), _UNBOUNDED)
    return Capacity(slots, cut.max_cost(cost, longest), most, 0, multiple)


def _keep(needed: NDArray[np.int64], cut: Cut, cost: Cost, budget: float) -> NDArray[np.int64] | None:
    """The positions that stay: all, said by None, but those that are to be dropped for costing more than the budget."""
    policy = getattr(cut, "oversize", "alone")
    if policy == "alone":
        # Nothing to take out: whoever cuts a step lets a sequence over the budget stand alone.
        return None
    # A cost of this package does not fall as lengths rise. If the longest is within the budget, all are.
    known = prices_of(cost, needed.shape[1]) is not None
    if known and costs_alone(cost, longest_of(needed)[None, :])[0] <= budget:
        return None
    costs = costs_alone(cost, needed)
    if policy == "error" and len(costs) and costs.max() > budget:
        costliest = int(costs.argmax())
        raise OversizeError(budget, float(costs[costliest]), costliest)
    return np.flatnonzero(costs <= budget)


def _sizes_of(needed: NDArray[np.int64], bands: int) -> NDArray[np.int64]:
    """By what sequences are sorted: [m], spread over less than 2**31, so that a size and a place fit into one word."""
    sizes = line_up(needed, bands).astype(np.int64) if bands else np.ascontiguousarray(sum_rows(needed))
    if sizes.max(initial=0) - sizes.min(initial=0) < 2**31:
        return sizes
    return np.unique(sizes, return_inverse=True)[1].reshape(-1)


def _drop_last(steps: Steps) -> Steps:
    taken = steps.taken[:-1]
    return Steps(taken, steps.positions[: taken.sum()])


def _is_full(rows: Rows, taken: NDArray[np.int64], cost: Cost, capacity: Capacity) -> bool:
    """Whether the last step has no room for another sequence as short as its shortest."""
    if not len(taken) or capacity.step_size:
        return not len(taken) or taken[-1] == capacity.step_size
    stop = int(taken.sum())
    step = rows.needed[rows.sort(stop - int(taken[-1]), stop)]
    # The same step with its shortest sequence twice: if that needs one batch more, the step was full.
    longer = np.concatenate([step, step[-1:]])
    return len(_cut_under(longer, cost, capacity, capacity.budget)) - 1 > capacity.slots


def lend(sizes: NDArray[np.int64], slots: int, multiple: int = 1) -> NDArray[np.int64]:
    """Gives the last step a sequence for each batch, where the steps before it have some to spare.

    Where the step before is then short of them itself, the one before that lends to it.

    >>> lend(np.array([9, 5, 1]), 4).tolist()  # the last two keep 4 each, and the first lends them the rest
    [7, 4, 4]

    With a `multiple` they lend so many at a time, unless they would have too few themselves.

    >>> lend(np.array([64, 64, 1]), 4, 8).tolist()
    [64, 56, 9]
    """
    # Fewer sequences than places, whoever lends: the tail takes some batches again instead.
    if not len(sizes) or sizes.sum() < slots * len(sizes):
        return sizes
    lent = sizes.copy()
    for step in range(len(lent) - 1, 0, -1):
        missing = -(-(slots - lent[step]) // multiple) * multiple
        if missing <= 0:
            break
        lent[step] += missing
        lent[step - 1] -= missing
    return lent if multiple == 1 or lent.min() >= slots else lend(sizes, slots)


def _lend(rows: Rows, steps: Steps, cost: Cost, capacity: Capacity) -> Steps:
    """As `lend`, by multiples where the budget allows it, with the steps that lent or were given some sorted anew."""
    taken = lend(steps.taken, capacity.slots, capacity.multiple)
    if capacity.multiple > 1 and not _hold(rows, steps, taken, cost, capacity):
        taken = lend(steps.taken, capacity.slots)
    for start, stop in _changed(steps.taken, taken):
        steps.positions[start:stop] = rows.sort(start, stop)
    return Steps(taken, steps.positions)


def _hold(rows: Rows, steps: Steps, lent: NDArray[np.int64], cost: Cost, capacity: Capacity) -> bool:
    """Whether the steps that lent, or were lent to, still are within the budget."""
    changed = _changed(steps.taken, lent)
    return all(_count_batches(rows, start, stop, cost, capacity) <= capacity.slots for start, stop in changed)


def _changed(taken: NDArray[np.int64], lent: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Where the steps of other sequences than before begin and end."""
    stops, before = np.cumsum(lent), np.cumsum(taken)
    changed = (stops != before) | (stops - lent != before - taken)
    return list(zip((stops - lent)[changed].tolist(), stops[changed].tolist(), strict=True))


def _fill(rows: Rows, cost: Cost, capacity: Capacity) -> Steps:
    """Steps in order, the last of them of what is left."""
    count = len(rows.needed)
    if capacity.step_size:
        # 10 sequences in steps of 4: [4, 4, 2].
        taken = np.minimum(capacity.step_size, count - np.arange(0, count, capacity.step_size))
        positions = _room(count, count)
        _kernels.sort_steps(rows.sizes, taken, positions)
        return Steps(taken, positions)
    prices = prices_of(cost, rows.needed.shape[1])
    if prices is None:
        return _fill_by_calls(rows, cost, capacity)
    # As many steps as there may be: of one sequence in each batch.
    taken, positions = _room(-(-count // capacity.slots), count), _room(count, count)
    slots, budget, most, multiple = capacity.limits
    if multiple > 1:
        rules = (prices, budget, most, multiple, slots)
        steps = _kernels.fill_steps_of_multiples(rows.needed, rows.sizes, *rules, taken, positions)
    else:
        guess = _guess(rows, cost, capacity)
        steps = _kernels.fill_steps(rows.needed, rows.sizes, prices, budget, most, slots, guess, taken, positions)
    return Steps(taken[:steps].astype(np.int64), positions)


def _room(size: int, most: int) -> NDArray[Any]:
    """Room for numbers of at most `most`, of half the bytes where those are enough."""
    return np.empty(size, np.uint32 if most < 2**32 else np.int64)


def _guess(rows: Rows, cost: Cost, capacity: Capacity) -> int:
    """About how many sequences the budget of a step pays for, were they not padded: 1 at least."""
    asked = costs_alone(cost, rows.needed[:_ASKED])
    mean = max(float(asked.sum()) / max(1, len(asked)), capacity.budget / capacity.most)
    count = len(rows.needed)
    return max(1, int(min(count, capacity.slots * capacity.budget / mean)) if mean > 0.0 else count)


def _fill_by_calls(rows: Rows, cost: Cost, capacity: Capacity) -> Steps:
    """The same by any callable: doubles what fits into a step, and bisects."""
    count, slots = len(rows.needed), capacity.slots
    sizes: list[int] = []
    positions = _room(count, count)
    start = 0
    while start < count:
        left = count - start
        # One sequence in each batch always fits, for one that is over the budget stands alone. The first guess is an
        # eighth more than the step before took, because random steps of one order differ little.
        fits = min(slots, left)
        reach = min(left, sizes[-1] + sizes[-1] // 8 + 1 if sizes else 2 * slots)
        while reach > fits and _count_batches(rows, start, start + reach, cost, capacity) <= slots:
            fits, reach = reach, min(left, 2 * reach)
        while reach - fits > 1:
            middle = (fits + reach) // 2
            if _count_batches(rows, start, start + middle, cost, capacity) <= slots:
                fits = middle
            else:
                reach = middle
        sizes.append(fits if capacity.multiple == 1 or fits == left else _round(rows, start, fits, cost, capacity))
        stop = start + sizes[-1]
        positions[start:stop] = rows.sort(start, stop)
        start = stop
    return Steps(np.array(sizes, np.int64), positions)


def _round(rows: Rows, start: int, fits: int, cost: Cost, capacity: Capacity) -> int:
    """The most sequences, of at most `fits`, that make batches of multiples alone; or `fits`, where no such are near.

    Of 29 that fit, in multiples of 8, these are 24. With a batch of 3, where 8 do not fit, they are 27.
    """
    least = max(capacity.slots, fits - capacity.multiple + 1)
    for size in range(fits, least - 1, -1):
        step = rows.needed[rows.sort(start, start + size)]
        if leaves_nothing(step, cost, capacity.limits):
            return size
    return fits


def _count_batches(rows: Rows, start: int, stop: int, cost: Cost, capacity: Capacity) -> int:
    """How many batches the sequences of a step need under the budget."""
    return len(_cut_under(rows.needed[rows.sort(start, stop)], cost, capacity, capacity.budget)) - 1


def _cut_under(lengths: NDArray[np.int64], cost: Cost, capacity: Capacity, budget: float) -> NDArray[np.int64]:
    limits = {"budget": budget, "most": capacity.most, "multiple": capacity.multiple}
    return cut_greedily(lengths, _NO_BOUNDARIES, cost=cost, **limits)


def _cut_evenly(
    needed: NDArray[np.int64], taken: NDArray[np.int64], cost: Cost, capacity: Capacity
) -> NDArray[np.int64]:
    """The offsets of the batches: the costliest of each step as cheap as can be. `needed` [m, dims] is sorted."""
    if capacity.slots == 1:
        return np.concatenate([[0], np.cumsum(taken)])
    prices = prices_of(cost, needed.shape[1])
    if prices is None:
        return _cut_evenly_by_calls(needed, taken, cost, capacity)
    slots, budget, most, multiple = capacity.limits
    offsets = np.empty(len(taken) * slots + 1, np.int64)
    if multiple > 1:
        rules = (prices, budget, most, multiple, slots)
        batches = _kernels.cut_steps_to_multiples(needed, taken, *rules, offsets)
    else:
        batches = _kernels.cut_steps(needed, taken, prices, budget, most, slots, offsets)
    return offsets[: batches + 1].copy()


def _cut_evenly_by_calls(
    needed: NDArray[np.int64], taken: NDArray[np.int64], cost: Cost, capacity: Capacity
) -> NDArray[np.int64]:
    stops = np.cumsum(taken)
    offsets = [np.zeros(1, np.int64)]
    for start, stop in zip(stops - taken, stops, strict=True):
        offsets.append(start + _level(needed[start:stop], cost, capacity)[1:])
    return np.concatenate(offsets)


def _level(lengths: NDArray[np.int64], cost: Cost, capacity: Capacity) -> NDArray[np.int64]:
    """What the kernel `level_step` does, by any callable; and for multiples of sequences."""
    if capacity.multiple > 1:
        offsets = level_multiples(lengths, cost, capacity.limits)
        if offsets is not None:
            return _split(offsets, capacity)
        # Sequences of several lengths that others were lent from: few fit more tightly than by multiples.
        capacity = capacity._replace(multiple=1)
    # A budget of `high` is enough, one below `low` is not. Each try moves one of them to a cost that a batch has, or
    # would have with one sequence more. So they meet exactly at the least budget.
    low, (high, _) = 0.0, _price(lengths, _cut_under(lengths, cost, capacity, capacity.budget), cost, capacity)
    while low < high:
        middle = low + (high - low) / 2.0
        # Between neighbouring floats there is no middle.
        if middle >= high:
            break
        offsets = _cut_under(lengths, cost, capacity, middle)
        costliest, more = _price(lengths, offsets, cost, capacity, middle)
        low, high = (more, high) if len(offsets) - 1 > capacity.slots else (low, costliest)
    return _split(_cut_under(lengths, cost, capacity, high), capacity)


def _split(offsets: NDArray[np.int64], capacity: Capacity) -> NDArray[np.int64]:
    """The batches with those of most sequences halved, until there are enough for a step."""
    ends = np.empty(capacity.slots, np.int64)
    ends[: len(offsets) - 1] = offsets[1:]
    if capacity.multiple == 1:
        batches = _kernels.split_widest(ends, len(offsets) - 1, capacity.slots)
    else:
        batches = _kernels.split_multiples(ends, len(offsets) - 1, capacity.slots, capacity.multiple)
    return np.concatenate([[0], ends[:batches]])


def _price(
    lengths: NDArray[np.int64], offsets: NDArray[np.int64], cost: Cost, capacity: Capacity, budget: float | None = None
) -> tuple[float, float]:
    """The costliest batch within the budget, and the least budget under which a batch would take one sequence more."""
    budget = capacity.budget if budget is None else budget
    counts, longest = np.diff(offsets), np.maximum.reduceat(lengths, offsets[:-1])
    costs = costs_of(cost, counts, longest)
    # Lengths 9 5 4 | 3 2: the first batch costs 3 x 9, and with the next sequence 4 x 9. The last has no next one.
    growing = counts[:-1] < capacity.most
    grown = costs_of(cost, counts[:-1] + 1, np.maximum(longest[:-1], lengths[offsets[1:-1]]))[growing]
    return float(costs[costs <= budget].max(initial=0.0)), float(grown.min(initial=np.inf))


def _cut_by_count(taken: NDArray[np.int64], slots: int) -> NDArray[np.int64]:
    """The offsets of batches of as equal counts as can be."""
    batches = np.minimum(taken, slots)
    # Steps of [3, 2] sequences, 2 batches each: `within` is [0, 1, 0, 1], and the offsets are [0, 1, 3, 4, 5].
    within = np.arange(batches.sum()) - np.repeat(np.cumsum(batches) - batches, batches)
    starts = within * np.repeat(taken, batches) // np.repeat(batches, batches)
    return np.append(np.repeat(np.cumsum(taken) - taken, batches) + starts, taken.sum())

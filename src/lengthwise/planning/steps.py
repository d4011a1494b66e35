"""Steps first: sequences fill whole steps in order, and each step is sorted and cut into its batches.

    order   9 2 5 4 | 3 8 7 1           two steps of 4 sequences, for 2 batches each
    steps   (9) (5 4 2) | (8 7) (3 1)   sorted from the longest; padded frames 9 and 15, 16 and 6

A step is a sample of the order: random where the order is. Its batches are nearly sorted, and cost nearly the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise.choices.bands import line_up
from lengthwise.choices.columns import longest_of, sum_rows
from lengthwise.choices.cost import Cost, check_priced, costs_alone, prices_of
from lengthwise.choices.cut import Cut, FixedSize, keep_within
from lengthwise.choices.deal import RandomSteps
from lengthwise.choices.greedy import cut_greedily
from lengthwise.choices.multiples import count_multiple, most_sequences

_NO_BOUNDARIES = np.empty(0, np.int64)
_UNBOUNDED = 2**62  # sequences in a batch: more than any data set has
_ASKED = 1_000  # sequences that tell about how many a step takes


class StepBounds(NamedTuple):
    """What a step holds: `slots` batches of at most `budget` in cost and of `most` sequences.

    Rows of batches are filled up to a `multiple`. If `step_size` is not 0, that many sequences make a full step.
    """

    slots: int
    budget: float
    most: int
    cost: Cost
    multiple: int = 1
    step_size: int = 0


class Queue(NamedTuple):
    """Sequences in order, from which steps are filled.

    needed   [m, dims]   what each must be padded to at least
    sizes    [m]         whole numbers, by which a step is sorted, from the largest; equal ones stand as they come
    """

    needed: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def sort(self, start: int, stop: int) -> NDArray[np.int64]:
        """Returns the positions from `start` to before `stop`, from the largest to the smallest."""
        positions = np.empty(stop - start, np.int64)
        _kernels.sort_steps(self.sizes[start:stop], np.array([stop - start]), positions)
        return start + positions


class Steps(NamedTuple):
    """Steps of sequences: how many each takes [steps], and their positions, step by step, each from its largest."""

    taken: NDArray[np.int64]
    positions: NDArray[np.int64]


def form_steps(
    sequences: NDArray[np.int64],
    needed: NDArray[np.int64],
    cut: Cut,
    deal: RandomSteps,
    bounds: StepBounds,
    *,
    bands: tuple[int, ...],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cuts sequences in order into steps, and each step into batches of about equal cost.

    Only the last step may have fewer batches, where fewer sequences are left than the steps have places.

    Args:
        sequences: [m], in the order's order. They are moved within this array, where all of them are kept.
        needed: [m, dims], what each of them must be padded to at least. As `sequences`.
        cut: What becomes of a sequence over the budget.
        deal: What becomes of the last step, and whether batches may differ in count.
        bounds: What a step holds.
        bands: How sequences of several lengths are sorted inside of a step: by `line_up`, or, for none, by their sum.

    Returns:
        The sequences batch after batch, those of a step from its longest to its shortest: [kept]; what each must be
        padded to, [kept, dims]; and the offsets of the batches.

    Raises:
        OversizeError: A sequence costs more than the budget by itself, and the cut does not say what becomes of it.
    """
    oversize = getattr(cut, "oversize", "alone")
    kept = keep_within(needed, longest_of(needed), cost=bounds.cost, budget=bounds.budget, oversize=oversize)
    if kept is not None:
        sequences, needed = sequences[kept], needed[kept]
    queue = Queue(needed, _sizes_of(needed, bands))
    steps = _fill(queue, bounds)
    # The last step may be short of sequences. It is left out, or given one for each of its batches.
    if deal.tail == "drop" or getattr(cut, "drop_incomplete", False):
        steps = steps if _is_full(queue, steps.taken, bounds) else _drop_last(steps)
    else:
        steps = _lend(queue, steps, bounds)
    del queue  # as many sizes as sequences
    sequences, needed = sequences[steps.positions], needed[steps.positions]
    if deal.even:
        return sequences, needed, _cut_evenly(needed, steps.taken, bounds)
    return sequences, needed, _cut_by_count(steps.taken, bounds.slots)


def bounds_of(cut: Cut, cost: Cost, longest: NDArray[np.int64], slots: int) -> StepBounds:
    """What a step holds by a cut that `check_cut` lets pass."""
    priced = check_priced(cost)
    if isinstance(cut, FixedSize):
        return StepBounds(slots, np.inf, _UNBOUNDED, priced, step_size=cut.batch_size * slots)
    most = most_sequences(cut) or _UNBOUNDED
    return StepBounds(slots, cut.max_cost(cost, longest), most, priced, count_multiple(cut))


def _sizes_of(needed: NDArray[np.int64], bands: tuple[int, ...]) -> NDArray[np.int64]:
    """By what sequences are sorted: [m], spread over less than 2**31, so that a size and a place fit into one word."""
    sizes = line_up(needed, bands) if bands else np.ascontiguousarray(sum_rows(needed))
    if sizes.max(initial=0) - sizes.min(initial=0) < 2**31:
        return sizes
    return np.unique(sizes, return_inverse=True)[1].reshape(-1)


def _drop_last(steps: Steps) -> Steps:
    taken = steps.taken[:-1]
    return Steps(taken, steps.positions[: taken.sum()])


def _is_full(queue: Queue, taken: NDArray[np.int64], bounds: StepBounds) -> bool:
    """Whether the last step has no room for another sequence as short as its shortest."""
    if not len(taken):
        return True
    if bounds.step_size:
        return bool(taken[-1] == bounds.step_size)
    stop = int(taken.sum())
    step = queue.needed[queue.sort(stop - int(taken[-1]), stop)]
    # The same step with its shortest sequence twice: if that needs one batch more, the step was full.
    return len(_cut_greedily(np.concatenate([step, step[-1:]]), bounds)) - 1 > bounds.slots


def _cut_greedily(lengths: NDArray[np.int64], bounds: StepBounds) -> NDArray[np.int64]:
    limits = {"cost": bounds.cost, "budget": bounds.budget, "most": bounds.most, "multiple": bounds.multiple}
    return cut_greedily(lengths, _NO_BOUNDARIES, **limits)


def lend(sizes: NDArray[np.int64], slots: int) -> NDArray[np.int64]:
    """Gives the last step a sequence for each batch, where the steps before it have some to spare.

    Where the step before is then short of them itself, the one before that lends to it.

    >>> lend(np.array([9, 5, 1]), 4).tolist()  # the last two keep 4 each, and the first lends them the rest
    [7, 4, 4]
    """
    # Fewer sequences than places, whoever lends: the tail takes some batches again instead.
    if not len(sizes) or sizes.sum() < slots * len(sizes):
        return sizes
    lent = sizes.copy()
    for step in range(len(lent) - 1, 0, -1):
        missing = slots - lent[step]
        if missing <= 0:
            break
        lent[step] += missing
        lent[step - 1] -= missing
    return lent


def _lend(queue: Queue, steps: Steps, bounds: StepBounds) -> Steps:
    """As `lend`, with the steps that lent or were given some sorted anew."""
    if not len(steps.taken) or steps.taken[-1] >= bounds.slots:
        return steps
    taken = lend(steps.taken, bounds.slots)
    for start, stop in _changed(steps.taken, taken):
        steps.positions[start:stop] = queue.sort(start, stop)
    return Steps(taken, steps.positions)


def _changed(taken: NDArray[np.int64], lent: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Where the steps of other sequences than before begin and end."""
    stops, before = np.cumsum(lent), np.cumsum(taken)
    changed = (stops != before) | (stops - lent != before - taken)
    return list(zip((stops - lent)[changed].tolist(), stops[changed].tolist(), strict=True))


def _fill(queue: Queue, bounds: StepBounds) -> Steps:
    """Steps in order, the last of them of what is left."""
    count = len(queue.needed)
    taken = None
    if bounds.step_size:
        # 10 sequences in steps of 4: [4, 4, 2].
        taken = np.minimum(bounds.step_size, count - np.arange(0, count, bounds.step_size))
    elif bounds.slots == 1:
        # What one batch costs does not change with the order of its sequences.
        taken = np.diff(_cut_greedily(queue.needed, bounds))
    if taken is not None:
        positions = np.empty(count, np.int64)
        _kernels.sort_steps(queue.sizes, taken, positions)
        return Steps(taken, positions)
    # As many steps as there may be: of one sequence in each batch.
    taken, positions = np.empty(-(-count // bounds.slots), np.int64), np.empty(count, np.int64)
    steps = _kernels.fill_steps(*queue, *_limits_of(queue.needed, bounds), _guess(queue, bounds), taken, positions)
    return Steps(taken[:steps].copy(), positions)


def _guess(queue: Queue, bounds: StepBounds) -> int:
    """About how many sequences the budget of a step pays for, were they not padded: 1 at least."""
    asked = costs_alone(bounds.cost, queue.needed[:_ASKED])
    mean = max(float(asked.sum()) / max(1, len(asked)), bounds.budget / bounds.most)
    count = len(queue.needed)
    return max(1, int(min(count, bounds.slots * bounds.budget / mean)) if mean > 0.0 else count)


def _cut_evenly(needed: NDArray[np.int64], taken: NDArray[np.int64], bounds: StepBounds) -> NDArray[np.int64]:
    """The offsets of the batches: the costliest of each step as cheap as can be. `needed` [m, dims] is sorted."""
    if bounds.slots == 1:
        return np.concatenate([[0], np.cumsum(taken)])
    offsets = np.empty(len(taken) * bounds.slots + 1, np.int64)
    batches = _kernels.cut_steps(needed, taken, *_limits_of(needed, bounds), offsets)
    return offsets[: batches + 1].copy()


def _limits_of(needed: NDArray[np.int64], bounds: StepBounds) -> tuple[Any, ...]:
    """Returns the bounds as kernels take them."""
    return prices_of(bounds.cost, needed.shape[1]), bounds.budget, bounds.most, bounds.multiple, bounds.slots


def _cut_by_count(taken: NDArray[np.int64], slots: int) -> NDArray[np.int64]:
    """The offsets of batches of as equal counts as can be."""
    batches = np.minimum(taken, slots)
    # Steps of [3, 2] sequences, 2 batches each: `within` is [0, 1, 0, 1], and the offsets are [0, 1, 3, 4, 5].
    within = np.arange(batches.sum()) - np.repeat(np.cumsum(batches) - batches, batches)
    starts = within * np.repeat(taken, batches) // np.repeat(batches, batches)
    return np.append(np.repeat(np.cumsum(taken) - taken, batches) + starts, taken.sum())

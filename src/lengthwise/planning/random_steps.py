"""Random steps: sequences fill whole steps in order, and each step is sorted and cut into its batches.

    order   9 2 5 4 | 3 8 7 1           two steps of 4 sequences, for 2 batches each
    steps   (9) (5 4 2) | (8 7) (3 1)   sorted from the longest; padded frames 9 and 15, 16 and 6

If the order is random, a step is a random sample. Its batches are nearly sorted, and cost nearly the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise.choices.arithmetic import longest_of, sum_rows
from lengthwise.choices.bands import line_up
from lengthwise.choices.cost import costs_alone, prices_of
from lengthwise.choices.cut import Cut, keep_within, oversize_of
from lengthwise.choices.deal import RandomSteps
from lengthwise.planning.cutter import Limits, cut_into, split_evenly, split_largest

_ASKED = 1_000  # sequences from which the size of a step is estimated
_ROUNDS = 6  # the most tries to fill steps by a smaller budget
_MANY = 256  # for each 256 steps one may be missing; then the largest steps are halved
_FULL = 0.9  # a last step counts as full if it has this share of the mean of other steps


class Queue(NamedTuple):
    """Sequences in order, from which steps are filled.

    Attributes:
        needed: [m, dims], the length that each must be padded to.
        sizes: [m] whole numbers. A step is sorted by them, from the largest; equal ones keep their order.
        groups: [m], the group of each, by which a step is sorted first; empty for one group.
    """

    needed: NDArray[np.int64]
    sizes: NDArray[np.int64]
    groups: NDArray[np.int64]

    def sort(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the positions step by step, those of a step from its largest to its smallest."""
        positions = np.empty(counts.sum(), np.int64)
        _kernels.sort_steps(self.sizes[: len(positions)], counts, positions)
        return positions


class Steps(NamedTuple):
    """Steps of sequences: their counts, [steps], and their positions, step by step, each from its largest."""

    counts: NDArray[np.int64]
    positions: NDArray[np.int64]


def form_steps(
    sequences: NDArray[np.int64],
    needed: NDArray[np.int64],
    cut: Cut,
    deal: RandomSteps,
    limits: Limits,
    *,
    slots: int,
    bands: tuple[int, ...],
    steps: int | None = None,
    groups: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None:
    """Cuts sequences in order into steps, and each step into batches of about equal cost.

    Only the last step may have fewer batches, if sequences are fewer than places.

    Args:
        sequences: [m], in order.
        needed: [m, dims], the length that each must be padded to.
        cut: Its policy for sequences over the budget.
        deal: Its policy for the last step, and whether batches may differ in count.
        limits: The limits of a batch.
        slots: Batches of a step.
        bands: For several lengths, the bands by which a step is sorted; empty for a sort by their sum.
        steps: The steps to fill; None for the fewest.
        groups: [m], the group of each; None for one group.

    Returns:
        The sequences, [k], batch after batch, and in each step from its longest to its shortest. The length that each
        must be padded to, [k, dims]. And the offsets of the batches. None if the sequences need more than `steps`, or
        fill fewer and the tail drops.

    Raises:
        OversizeError: A sequence alone costs more than the budget, and the cut has no policy for it.
    """
    bounds = {"cost": limits.cost, "budget": limits.budget, "oversize": oversize_of(cut)}
    inside = keep_within(needed, longest_of(needed), **bounds)
    if inside is not None:
        sequences, needed, groups = sequences[inside], needed[inside], None if groups is None else groups[inside]
    queue = _queue(needed, bands, groups)
    filled = _fill(queue, limits, slots, limits.budget)
    if deal.tail == "drop":
        full = len(filled.counts) - (not _is_full(queue, filled.counts, limits, slots))
        if full < (steps or 0):
            return None
        counts = filled.counts[: full if steps is None else steps]
        filled = Steps(counts, filled.positions[: counts.sum()])
    elif steps is not None and len(filled.counts) > steps:
        return None
    else:
        filled = filled if steps is None else _level(queue, filled, limits, slots, steps)
        counts = spread(filled.counts, slots)
        filled = filled if counts is filled.counts else Steps(counts, queue.sort(counts))
    step_groups = queue.groups[filled.positions] if len(queue.groups) else queue.groups
    del queue  # frees the size of each sequence
    sequences, needed = sequences[filled.positions], needed[filled.positions]
    if deal.even:
        return sequences, needed, _cut_evenly(needed, filled.counts, step_groups, limits, slots)
    return sequences, needed, split_evenly(filled.counts, np.minimum(filled.counts, slots))


def _queue(needed: NDArray[np.int64], bands: tuple[int, ...], groups: NDArray[np.int64] | None) -> Queue:
    sizes = line_up(needed, bands) if bands else np.ascontiguousarray(sum_rows(needed))
    if groups is not None:
        sizes = sizes + groups * (int(sizes.max(initial=0)) + 1)
    # Sizes may differ by less than 2**31, so that a size and a place fit into one word.
    if sizes.max(initial=0) - sizes.min(initial=0) >= 2**31:
        sizes = np.unique(sizes, return_inverse=True)[1].reshape(-1)
    return Queue(needed, sizes, np.empty(0, np.int64) if groups is None else groups)


def _is_full(queue: Queue, counts: NDArray[np.int64], limits: Limits, slots: int) -> bool:
    """Tells if the last step has no room for another sequence as short as its shortest."""
    if not len(counts):
        return True
    if limits.size:
        return bool(counts[-1] == limits.size * slots)
    stop = int(counts.sum())
    last = slice(stop - int(counts[-1]), stop)
    order = np.argsort(-queue.sizes[last], kind="stable")
    # The same step with its shortest sequence twice: if that needs one batch more, the step was full.
    doubled = np.append(order, order[-1])
    group = queue.groups[last][doubled] if len(queue.groups) else np.zeros(len(doubled))
    ends, borders = np.empty(slots, np.int64), 1 + np.flatnonzero(group[1:] != group[:-1])
    step = queue.needed[last][doubled]
    batches, *_ = _kernels.try_budget(step, borders, *_bounds(step, limits), np.bool_(True), slots, ends)
    return bool(batches > slots)


def _fill(queue: Queue, limits: Limits, slots: int, budget: float) -> Steps:
    """Fills steps in order under a `budget`. The last one takes the sequences that are left."""
    count, limits = len(queue.needed), limits._replace(budget=budget)
    if limits.size:  # 10 sequences in steps of 4: [4, 4, 2]
        counts = np.minimum(limits.size * slots, count - np.arange(0, count, limits.size * slots))
        return Steps(counts, queue.sort(counts))
    # Room for the most steps: those of one sequence in each batch.
    counts, positions = np.empty(-(-count // slots), np.int64), np.empty(count, np.int64)
    bounds, guess = _bounds(queue.needed, limits), _guess(queue, limits, slots)
    steps = _kernels.fill_steps(*queue, *bounds, slots, guess, counts, positions)
    return Steps(counts[:steps].copy(), positions)


def _level(queue: Queue, filled: Steps, limits: Limits, slots: int, steps: int) -> Steps:
    """Levels the steps: fills them again under about the least budget for which `steps` steps are enough.

    Steps of [9, 9, 2] sequences become three of about 7.
    """
    if limits.size or slots == 1:
        counts = np.diff(cut_into(queue.needed, np.empty(0, np.int64), steps, limits))
        return Steps(counts, queue.sort(counts))
    low, high, budget, trial = 0.0, limits.budget, limits.budget, filled
    for _ in range(_ROUNDS):
        if steps - len(filled.counts) <= steps // _MANY and _share_of_last(filled.counts) >= _FULL:
            break
        # Three steps, the last a fifth full: the budget may be 2.2 / 3 of what it was.
        guess = budget * (len(trial.counts) - 1 + _share_of_last(trial.counts)) / steps
        budget = guess if low < guess < high else (low + high) / 2.0
        trial = _fill(queue, limits, slots, budget)
        if len(trial.counts) > steps:
            low = budget
        else:
            high, filled = budget, trial
    if len(filled.counts) == steps:
        return filled
    counts = np.diff(split_largest(np.concatenate([[0], np.cumsum(filled.counts)]), steps))
    return Steps(counts, queue.sort(counts))


def _share_of_last(counts: NDArray[np.int64]) -> float:
    """Returns the sequences of the last step as a share of the others' mean, at most 1."""
    return min(1.0, float(counts[-1] * (len(counts) - 1) / counts[:-1].sum())) if len(counts) > 1 else 1.0


def spread(counts: NDArray[np.int64], slots: int) -> NDArray[np.int64]:
    """Gives every step at least one sequence for each of its `slots` batches; returns the new counts.

    A step that has fewer takes some from the next step; the last one takes some from the step before. If sequences are
    too few for all steps, the first steps get theirs.

    >>> spread(np.array([9, 5, 1]), 4).tolist()  # the last two have 4 each, so the first gives up 2
    [7, 4, 4]
    """
    if not len(counts) or counts.min() >= slots:
        return counts
    least = np.arange(len(counts) + 1) * slots
    stops = np.concatenate([[0], np.cumsum(counts)])
    count = int(stops[-1])
    if count < least[-1]:  # the tail takes some batches again
        counts = np.diff(np.minimum(least, count))
        return counts[counts > 0]
    return np.diff(np.minimum(np.maximum.accumulate(stops - least), count - least[-1]) + least)


def _guess(queue: Queue, limits: Limits, slots: int) -> int:
    """Estimates the sequences of a step, as if they were not padded: 1 at least."""
    sample = costs_alone(limits.cost, queue.needed[:_ASKED])
    mean = max(float(sample.sum()) / max(1, len(sample)), limits.budget / limits.most)
    count = len(queue.needed)
    return max(1, int(min(count, slots * limits.budget / mean)) if mean > 0.0 else count)


def _cut_evenly(
    needed: NDArray[np.int64], counts: NDArray[np.int64], groups: NDArray[np.int64], limits: Limits, slots: int
) -> NDArray[np.int64]:
    """Returns the offsets of the batches: the costliest of each step is as cheap as possible. `needed` is sorted."""
    offsets = np.empty(len(counts) * slots + 1, np.int64)
    batches = _kernels.cut_steps(needed, counts, groups, *_bounds(needed, limits), slots, offsets)
    return offsets[: batches + 1].copy()


def _bounds(needed: NDArray[np.int64], limits: Limits) -> tuple[Any, ...]:
    """Returns the limits as kernels take them."""
    return prices_of(limits.cost, needed.shape[1]), limits.budget, limits.most, limits.multiple

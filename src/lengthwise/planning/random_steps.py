"""Random steps: sequences fill whole steps in order, and each step is sorted and cut into its batches.

    order   9 2 5 4 | 3 8 7 1           two steps of 4 sequences, for 2 batches each
    steps   (9) (5 4 2) | (8 7) (3 1)   sorted from the longest; padded frames 9 and 15, 16 and 6

A step is a sample of the order: random where the order is. Its batches are nearly sorted, and cost nearly the same.
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
from lengthwise.planning.cutter import Limits, cut_by_count, cut_into, split_evenly, split_largest

_NO_BOUNDARIES = np.empty(0, np.int64)
_ASKED = 1_000  # sequences that tell about how many a step takes
_ROUNDS = 6  # of filling steps by a smaller budget
_MANY = 256  # steps: of so many, one may be missing before the largest is halved
_FULL = 0.9  # of the sequences of other steps: a last step of so many is as full as chance makes it


class Queue(NamedTuple):
    """Sequences in order, from which steps are filled.

    needed   [m, dims]   what each must be padded to at least
    sizes    [m]         whole numbers, by which a step is sorted, from the largest; equal ones stand as they come
    groups   [m]         of which no batch mixes two, and by which a step is sorted first; or none
    """

    needed: NDArray[np.int64]
    sizes: NDArray[np.int64]
    groups: NDArray[np.int64]

    def sort(self, taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the positions step by step, those of a step from its largest to its smallest."""
        positions = np.empty(taken.sum(), np.int64)
        _kernels.sort_steps(self.sizes[: len(positions)], taken, positions)
        return positions


class Steps(NamedTuple):
    """Steps of sequences: how many each takes [steps], and their positions, step by step, each from its largest."""

    taken: NDArray[np.int64]
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

    Only the last step may have fewer batches, where fewer sequences are left than the steps have places.

    Args:
        sequences: [m], in the order's order.
        needed: [m, dims], what each of them must be padded to at least.
        cut: What becomes of a sequence over the budget.
        deal: What becomes of the last step, and whether batches may differ in count.
        limits: What a batch holds.
        slots: Batches of a step.
        bands: How sequences of several lengths are sorted inside of a step: by `line_up`, or, for none, by their sum.
        steps: How many there are to be; None for as many as the sequences fill.
        groups: [m], of which no batch mixes two; None for one group.

    Returns:
        The sequences batch after batch, those of a step from its longest to its shortest: [kept]; what each must be
        padded to, [kept, dims]; and the offsets of the batches. None if so many steps do not hold the sequences, or if
        they do not fill so many that a tail may drop the rest.

    Raises:
        OversizeError: A sequence costs more than the budget by itself, and the cut does not say what becomes of it.
    """
    bounds = {"cost": limits.cost, "budget": limits.budget, "oversize": oversize_of(cut)}
    kept = keep_within(needed, longest_of(needed), **bounds)
    if kept is not None:
        sequences, needed, groups = sequences[kept], needed[kept], None if groups is None else groups[kept]
    queue = _queue(needed, bands, groups)
    filled = _fill(queue, limits, slots, limits.budget)
    if deal.tail == "drop":
        full = len(filled.taken) - (not _is_full(queue, filled.taken, limits, slots))
        if full < (steps or 0):
            return None
        filled = _take(filled, full if steps is None else steps)
    elif steps is not None and len(filled.taken) > steps:
        return None
    else:
        filled = _spread(queue, filled if steps is None else _level(queue, filled, limits, slots, steps), slots)
    own = queue.groups[filled.positions] if len(queue.groups) else queue.groups
    del queue  # as many sizes as sequences
    sequences, needed = sequences[filled.positions], needed[filled.positions]
    if deal.even:
        return sequences, needed, _cut_evenly(needed, filled.taken, own, limits, slots)
    return sequences, needed, split_evenly(filled.taken, np.minimum(filled.taken, slots))


def _queue(needed: NDArray[np.int64], bands: tuple[int, ...], groups: NDArray[np.int64] | None) -> Queue:
    sizes = line_up(needed, bands) if bands else np.ascontiguousarray(sum_rows(needed))
    if groups is not None:
        sizes = sizes + groups * (int(sizes.max(initial=0)) + 1)
    # Spread over less than 2**31, so that a size and a place fit into one word.
    if sizes.max(initial=0) - sizes.min(initial=0) >= 2**31:
        sizes = np.unique(sizes, return_inverse=True)[1].reshape(-1)
    return Queue(needed, sizes, np.empty(0, np.int64) if groups is None else groups)


def _take(steps: Steps, first: int) -> Steps:
    taken = steps.taken[:first]
    return Steps(taken, steps.positions[: taken.sum()])


def _is_full(queue: Queue, taken: NDArray[np.int64], limits: Limits, slots: int) -> bool:
    """Whether the last step has no room for another sequence as short as its shortest."""
    if not len(taken):
        return True
    if limits.size:
        return bool(taken[-1] == limits.size * slots)
    stop = int(taken.sum())
    last = slice(stop - int(taken[-1]), stop)
    order = np.argsort(-queue.sizes[last], kind="stable")
    # The same step with its shortest sequence twice: if that needs one batch more, the step was full.
    again = np.append(order, order[-1])
    step, own = queue.needed[last][again], queue.groups[last][again] if len(queue.groups) else np.zeros(len(again))
    ends, borders = np.empty(slots, np.int64), 1 + np.flatnonzero(own[1:] != own[:-1])
    return bool(_kernels.try_budget(step, borders, *_bounds(step, limits), np.bool_(True), slots, ends)[0] > slots)


def _fill(queue: Queue, limits: Limits, slots: int, budget: float) -> Steps:
    """Steps in order under a `budget`, each with as many sequences as it holds, the last of them of what is left."""
    count, limits = len(queue.needed), limits._replace(budget=budget)
    if limits.size:  # 10 sequences in steps of 4: [4, 4, 2]
        taken = np.minimum(limits.size * slots, count - np.arange(0, count, limits.size * slots))
        return Steps(taken, queue.sort(taken))
    # As many steps as there may be: of one sequence in each batch.
    taken, positions = np.empty(-(-count // slots), np.int64), np.empty(count, np.int64)
    bounds, guess = _bounds(queue.needed, limits), _guess(queue, limits, slots)
    steps = _kernels.fill_steps(*queue, *bounds, slots, guess, taken, positions)
    return Steps(taken[:steps].copy(), positions)


def _level(queue: Queue, filled: Steps, limits: Limits, slots: int, steps: int) -> Steps:
    """So many steps that cost about the same: filled by the least budget that was found under which they are enough.

    Steps of [9, 9, 2] sequences become three of about 7.
    """
    count = len(queue.needed)
    if limits.size or slots == 1:
        offsets = (
            cut_by_count(count, _NO_BOUNDARIES, steps)
            if limits.size
            else cut_into(queue.needed, _NO_BOUNDARIES, steps, limits)
        )
        return Steps(np.diff(offsets), queue.sort(np.diff(offsets)))
    low, high, budget, tried = 0.0, limits.budget, limits.budget, filled
    for _ in range(_ROUNDS):
        if steps - len(filled.taken) <= steps // _MANY and _share_of_last(filled.taken) >= _FULL:
            break
        # Three steps of which the last is a fifth full, for three: the budget may be 2.2 / 3 of what it was.
        guess = budget * (len(tried.taken) - 1 + _share_of_last(tried.taken)) / steps
        budget = guess if low < guess < high else (low + high) / 2.0
        tried = _fill(queue, limits, slots, budget)
        if len(tried.taken) > steps:
            low = budget
        else:
            high, filled = budget, tried
    if len(filled.taken) == steps:
        return filled
    taken = np.diff(split_largest(np.concatenate([[0], np.cumsum(filled.taken)]), steps))
    return Steps(taken, queue.sort(taken))


def _share_of_last(taken: NDArray[np.int64]) -> float:
    """How full the last step is, by the sequences of the others."""
    return min(1.0, float(taken[-1] * (len(taken) - 1) / taken[:-1].sum())) if len(taken) > 1 else 1.0


def _spread(queue: Queue, steps: Steps, slots: int) -> Steps:
    taken = spread(steps.taken, slots)
    return steps if taken is steps.taken else Steps(taken, queue.sort(taken))


def spread(taken: NDArray[np.int64], slots: int) -> NDArray[np.int64]:
    """Gives every step a sequence for each batch, where there are so many; a step that has too few takes of the next.

    A last step that has too few takes of the one before. No step takes sequences beyond those that each fill a batch
    alone. Too few sequences for all steps fill as many as they do.

    >>> spread(np.array([9, 5, 1]), 4).tolist()  # the last two keep 4 each, and the first lends them the rest
    [7, 4, 4]
    """
    if not len(taken) or taken.min() >= slots:
        return taken
    least = np.arange(len(taken) + 1) * slots
    stops = np.concatenate([[0], np.cumsum(taken)])
    count = int(stops[-1])
    if count < least[-1]:  # the tail takes some batches again
        taken = np.diff(np.minimum(least, count))
        return taken[taken > 0]
    return np.diff(np.minimum(np.maximum.accumulate(stops - least), count - least[-1]) + least)


def _guess(queue: Queue, limits: Limits, slots: int) -> int:
    """About how many sequences the budget of a step pays for, were they not padded: 1 at least."""
    asked = costs_alone(limits.cost, queue.needed[:_ASKED])
    mean = max(float(asked.sum()) / max(1, len(asked)), limits.budget / limits.most)
    count = len(queue.needed)
    return max(1, int(min(count, slots * limits.budget / mean)) if mean > 0.0 else count)


def _cut_evenly(
    needed: NDArray[np.int64], taken: NDArray[np.int64], groups: NDArray[np.int64], limits: Limits, slots: int
) -> NDArray[np.int64]:
    """The offsets of the batches: the costliest of each step as cheap as can be. `needed` [m, dims] is sorted."""
    offsets = np.empty(len(taken) * slots + 1, np.int64)
    batches = _kernels.cut_steps(needed, taken, groups, *_bounds(needed, limits), slots, offsets)
    return offsets[: batches + 1].copy()


def _bounds(needed: NDArray[np.int64], limits: Limits) -> tuple[Any, ...]:
    """The limits as kernels take them."""
    return prices_of(limits.cost, needed.shape[1]), limits.budget, limits.most, limits.multiple

"""Random steps: sequences fill whole steps in order, and each step is cut into its batches.

    order   9 2 5 4 | 3 8 7 1           two steps of 4 sequences, for 2 batches each
    steps   (9) (5 4 2) | (8 7) (3 1)   sorted from the longest; padded frames 9 and 15, 16 and 6

If the order is random, a step is a random sample. Its batches are nearly sorted, and cost nearly the same.

Packed rows stay as the cut packs them. Each step takes the next rows, and shares them out to its batches:

    rows      9 1 5 4 | 6 2 3 2              costs of the rows of two steps, for 2 batches of 2 rows each
    batches   (9 1) (5 4) | (6 2) (3 2)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise.choices.arithmetic import longest_of, sort_parts, sum_rows
from lengthwise.choices.bands import line_up
from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import Quadratic, costs_alone, costs_of_rows
from lengthwise.choices.cut import Cuts, find_kept, oversize_of
from lengthwise.choices.greedy import Limits
from lengthwise.choices.rows import Rows
from lengthwise.planning.exact_count import cut_into, cut_steps, split_evenly, split_largest

_ASKED = 1_000  # sequences from which the size of a step is estimated
_ROUNDS = 6  # the most tries to fill steps by a smaller budget
_ROOM = 0.8  # of the budget: at this share steps are formed if another cost is balanced within the budget
_PER_MISSING = 256  # for each 256 steps one may be missing; then the largest steps are halved
_FULL = 0.9  # a last step counts as full if it has this share of the mean of other steps
_NO_BOUNDARIES = np.empty(0, np.int64)
_DIGITS = 2**12  # of a number, by which kernels sort
COUNTED = Quadratic(linear=0.0, per_sequence=1.0)  # the number of sequences


class Queue(NamedTuple):
    """Sequences in order, from which steps are filled.

    Attributes:
        needed: [m, dims], the length that each must be padded to.
        keys: [m] whole numbers from 0 on, by which a step is sorted; equal ones keep their order.
        bits: Of the greatest key.
        groups: [m], the group of each, by which a step is sorted first; empty for one group.
    """

    needed: NDArray[np.int64]
    keys: NDArray[np.int64]
    bits: int
    groups: NDArray[np.int64]

    def lay_out(self, counts: NDArray[np.int64]) -> Layout:
        """Lays out steps of the next `counts` sequences each."""
        return Layout(counts, sort_parts(np.arange(counts.sum()), self.keys, np.cumsum(counts) - counts))


class Layout(NamedTuple):
    """The sequences of steps: their counts, [steps], and their positions, step by step, each from its largest."""

    counts: NDArray[np.int64]
    positions: NDArray[np.int64]


def form_steps(
    needed: NDArray[np.int64],
    groups: NDArray[np.int64] | None,
    batching: Batching,
    limits: Limits | None,
    *,
    slots: int,
    bands: tuple[int, ...],
    steps: int | None = None,
) -> Cuts | None:
    """Cuts sequences in order into steps, and each step into batches of about equal cost.

    Only the last step may have fewer batches, if sequences are fewer than places.

    Args:
        needed: [m, dims], the length that each must be padded to, in order.
        groups: [m], the group of each; None for one group.
        batching: The cut, the cost, and the deal with its policy for the last step.
        limits: The limits of a batch; None for packed rows.
        slots: Batches of a step.
        bands: For several lengths, the bands by which a step is sorted; empty for a sort by their sum.
        steps: The steps to fill; None for the fewest.

    Returns:
        The batches, step by step; in each step from its longest sequence to its shortest. None if the sequences need
        more than `steps`, or fill fewer and the tail drops.

    Raises:
        OversizeError: A sequence alone costs more than the budget, and the cut has no policy for it.
    """
    if limits is None:
        return _form_steps_of_rows(needed, batching, slots, steps)
    policy = oversize_of(batching.cut)
    kept = find_kept(needed, longest_of(needed), cost=limits.cost, budget=limits.budget, oversize=policy)
    if kept is not None:
        needed, groups = needed[kept], None if groups is None else groups[kept]
    queue = _queue(needed, bands, groups)
    step_limits = limits if limits.balance in (None, limits.cost) else limits._replace(budget=_ROOM * limits.budget)
    if limits.batch_size is not None:  # each sequence costs 1
        step_limits = Limits(COUNTED, float(limits.batch_size), balance=limits.balance or limits.cost)
        if groups is None:
            step_limits = step_limits._replace(batch_size=limits.batch_size)
        else:  # no batch of a group takes more
            limits = step_limits
    layout = _fill_steps(queue, step_limits, slots)
    if batching.deal.tail == "drop":
        layout = _drop_last(layout, queue, step_limits, slots, steps)
    elif steps is not None and len(layout.counts) > steps:
        return None
    else:
        layout = layout if steps is None else _fill_exactly(queue, layout, step_limits, slots, steps)
        counts = spread(layout.counts, slots)
        layout = layout if counts is layout.counts else queue.lay_out(counts)
    if layout is None:
        return None
    if batching.deal.even:
        offsets = _cut_evenly(queue, layout, limits, slots)
    else:
        offsets = split_evenly(layout.counts, np.minimum(layout.counts, slots))
    return Cuts(layout.positions if kept is None else kept[layout.positions], offsets)


def _queue(needed: NDArray[np.int64], bands: tuple[int, ...], groups: NDArray[np.int64] | None) -> Queue:
    sizes = line_up(needed, bands) if bands else np.ascontiguousarray(sum_rows(needed))
    if groups is not None:
        sizes = sizes + groups * (int(sizes.max(initial=0)) + 1)
    keys = sizes.max(initial=0) - sizes
    return Queue(needed, keys, int(keys.max(initial=0)).bit_length(), _NO_BOUNDARIES if groups is None else groups)


def _drop_last(layout: Layout, queue: Queue, limits: Limits, slots: int, steps: int | None) -> Layout | None:
    """Drops a last step that is not full, and those beyond `steps`. Returns None if fewer are left."""
    full = len(layout.counts) - (not _is_full(queue, layout.counts, limits, slots))
    if full < (steps or 0):
        return None
    counts = layout.counts[: full if steps is None else steps]
    return Layout(counts, layout.positions[: counts.sum()])


def _is_full(queue: Queue, counts: NDArray[np.int64], limits: Limits, slots: int) -> bool:
    """Tells if the last step has no room for another sequence as short as its shortest."""
    if not len(counts):
        return True
    stop = int(counts.sum())
    start = stop - int(counts[-1])
    order = start + np.argsort(queue.keys[start:stop], kind="stable")
    # The same step with its shortest sequence twice: if that needs one batch more, the step was full.
    doubled, ends = np.append(order, order[-1]), np.empty(slots, np.int64)
    bounds = limits.bounds(queue.needed.shape[1])
    batches, *_ = _kernels.cut_batches(
        queue.needed, doubled, 0, len(doubled), queue.groups, bounds, np.inf, False, ends
    )
    return bool(batches > slots)


def _fill_steps(queue: Queue, limits: Limits, slots: int) -> Layout:
    """Fills steps in order. The last one takes the sequences that are left."""
    count = len(queue.needed)
    # Room for the most steps: those of one sequence in each batch.
    sizes = slots, -(-count // slots), count, count, _DIGITS
    ends, counts, positions, *memory = (np.empty(size, np.int64) for size in sizes)
    bounds, guess = limits.bounds(queue.needed.shape[1]), _estimate_size(queue, limits, slots)
    steps = _kernels.fill_steps(*queue, bounds, guess, ends, counts, positions, *memory)
    return Layout(counts[:steps].copy(), positions)


def _fill_exactly(queue: Queue, layout: Layout, limits: Limits, slots: int, steps: int) -> Layout:
    """Fills exactly `steps` steps, in place of a layout of fewer, under about the least budget for which they suffice.

    Steps of [9, 9, 2] sequences become three of about 7.
    """
    if limits.batch_size is not None or slots == 1:
        counts = np.diff(cut_into(queue.needed, _NO_BOUNDARIES, steps, limits))
        return queue.lay_out(counts)
    low, high, budget, candidate = 0.0, limits.budget, limits.budget, layout
    for _ in range(_ROUNDS):
        if steps - len(layout.counts) <= steps // _PER_MISSING and share_of_last(layout.counts) >= _FULL:
            break
        # Three steps, the last a fifth full: the budget may be 2.2 / 3 of what it was.
        guess = budget * (len(candidate.counts) - 1 + share_of_last(candidate.counts)) / steps
        budget = guess if low < guess < high else (low + high) / 2.0
        candidate = _fill_steps(queue, limits._replace(budget=budget), slots)
        if len(candidate.counts) > steps:
            low = budget
        else:
            high, layout = budget, candidate
    if len(layout.counts) == steps:
        return layout
    counts = np.diff(split_largest(np.concatenate([[0], np.cumsum(layout.counts)]), steps))
    return queue.lay_out(counts)


def share_of_last(counts: NDArray[np.int64]) -> float:
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


def _estimate_size(queue: Queue, limits: Limits, slots: int) -> int:
    """Estimates the sequences of a step, as if they were not padded: 1 at least."""
    sample = costs_alone(limits.cost, queue.needed[:_ASKED])
    mean = max(float(sample.sum()) / max(1, len(sample)), limits.budget / limits.max_sequences)
    count = len(queue.needed)
    return max(1, int(min(count, slots * limits.budget / mean)) if mean > 0.0 else count)


def _cut_evenly(queue: Queue, layout: Layout, limits: Limits, slots: int) -> NDArray[np.int64]:
    """Returns the offsets of the batches: the costliest of each step is as cheap as possible."""
    dims, parts = queue.needed.shape[1], (queue.needed, layout.positions, queue.groups)
    bounds: Any = limits.bounds(dims)  # not None: `RandomSteps` take no cost without coefficients
    return cut_steps(*parts, bounds, layout.counts, slots, falling=dims == 1)


def _form_steps_of_rows(needed: NDArray[np.int64], batching: Batching, slots: int, steps: int | None) -> Cuts | None:
    """Packs sequences into rows, and shares out the rows of each step to its batches: as `form_steps`.

    Only the last steps may have fewer rows. A collate function finds the rows from the order of the samples: a row ends
    before the first sequence that does not fit. So each row begins with its longest sequence. If even the longest fits
    into the row before, sequences join that row until one does not fit.
    """
    cut: Rows = batching.cut  # pyrefly: ignore[bad-assignment]  # `RandomSteps` take no other cut without limits
    # Packed for a batch as large as a step: the rows then follow step by step.
    packed = replace(cut, rows=slots * cut.rows)(needed, _NO_BOUNDARIES, cost=batching.cost, longest=longest_of(needed))
    positions = np.arange(len(needed)) if packed.kept is None else packed.kept
    lengths = needed[positions]
    starts = cut.find_rows(lengths, packed.offsets)
    rows, of_step = len(starts) - 1, slots * cut.rows
    if batching.deal.tail == "drop":
        if rows // of_step < (steps or 0):
            return None
        counts = np.full(rows // of_step if steps is None else steps, of_step)
    else:
        if steps is not None and rows > steps * of_step:
            return None
        wanted = -(-rows // of_step) if steps is None else steps
        starts = split_largest(starts, slots * wanted)  # a row for each batch, if sequences are enough
        counts = spread(np.clip(len(starts) - 1 - of_step * np.arange(wanted), 0, of_step), slots)
    cost, name = (batching.balance, "balance") if batching.balance is not None else (batching.cost, "cost")
    costs = costs_of_rows(cost, lengths, starts, cut.capacity, name=name)
    batch = _share_out_rows(costs, counts, slots, cut.rows)
    # Rows batch by batch; within a batch, in the order in which they were filled. The longest of a row comes first.
    firsts, row_of = starts[: len(batch)], np.repeat(np.arange(len(batch)), np.diff(starts[: len(batch) + 1]))
    is_later = np.ones(len(row_of), bool)
    is_later[sort_parts(np.arange(len(row_of)), cut.capacity - lengths[:, 0], firsts)[firsts]] = False
    places = np.lexsort((is_later, row_of, batch[row_of]))
    sizes = np.bincount(batch[row_of])
    return Cuts(positions[places], np.concatenate([[0], np.cumsum(sizes[sizes > 0])]))


def _share_out_rows(costs: NDArray[np.float64], counts: NDArray[np.int64], slots: int, rows: int) -> NDArray[np.int64]:
    """Returns the batch of each row by the costs of rows, numbered over all steps: [rows of all steps].

    Args:
        costs: [at least the rows of all steps], the cost of each row.
        counts: [steps], the rows of each step.
        slots: Batches of a step.
        rows: The most rows in a batch.
    """
    count = int(counts.sum())
    costs = costs[:count]
    step = np.repeat(np.arange(len(counts)), counts)
    batch = np.empty(count, np.int64)
    _kernels.share_rows(costs, np.lexsort((-costs, step)), counts, slots, rows, batch)
    return slots * step + batch

"""Whole steps whose batches hold multiples of sequences: filled, and cut so that the costliest batch costs the least.

These are the loops of `planning.steps` and `planning.step_multiples`, which serve costs that must be called.
"""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel
from lengthwise._kernels.cuts import cut_to_multiples, follow_back
from lengthwise._kernels.multiples import reach_multiples, split_multiples
from lengthwise._kernels.step_sorts import keep_until, largest, sort_step
from lengthwise._kernels.steps import copy_until, level_step


@kernel
def fill_steps_of_multiples(needed, sizes, prices, budget, most, multiple, slots, taken, sequences):
    """Fills steps in order, each with the most sequences that make batches of multiples alone. Returns how many.

    A step is first tried with an eighth more than the one before took, then doubled, and bisected.

    Args:
        needed: [n, dims], what each sequence must be padded to, in order.
        sizes: [n] int64, by which a step is sorted before it is cut.
        prices, budget, most, multiple: As in `cut_to_multiples`.
        slots: Batches of a step.
        taken: [n], receives how many sequences each step takes.
        sequences: [n], receives the positions of the sequences, step by step, each step from its largest.
    """
    count = needed.shape[0]
    top = largest(sizes)
    none = np.empty(0, np.int64)
    counts = np.empty(8192, np.int64)
    spare = np.empty(64, sequences.dtype)
    lengths = np.empty((65, needed.shape[1]), needed.dtype)
    offsets = np.empty(65, np.int64)
    start, before, steps = np.int64(0), np.int64(0), 0
    while start < count:
        left = count - start
        # One sequence in each batch always fits, for one that is over the budget stands alone.
        fits = min(slots, left)
        reach = min(left, before + before // 8 + 1 if steps > 0 else 2 * slots)
        reach = max(reach, fits)
        while True:
            if reach > spare.size:
                spare = np.empty(2 * reach, sequences.dtype)
                lengths = np.empty((2 * reach + 1, needed.shape[1]), needed.dtype)
                offsets = np.empty(2 * reach + 1, np.int64)
            positions = sequences[start : start + reach]
            sort_step(sizes, top, start, start + reach, positions, spare, counts)
            own = copy_until(needed, positions, start + reach, lengths)
            if reach <= fits or cut_to_multiples(own, none, prices, budget, most, multiple, offsets) > slots:
                break
            fits, reach = reach, min(left, 2 * reach)
        # `fits` sequences fit, and `reach` do not: a part of the positions sorted last are those of each try.
        while reach - fits > 1:
            middle = (fits + reach) // 2
            own = copy_until(needed, positions, start + middle, lengths)
            if cut_to_multiples(own, none, prices, budget, most, multiple, offsets) > slots:
                reach = middle
            else:
                fits = middle
        if fits < left:
            fits = _round(needed, positions, start, fits, prices, budget, most, multiple, slots, lengths)
        keep_until(positions, start + fits, positions)
        taken[steps] = fits
        steps += 1
        start += fits
        before = fits
    return steps


@kernel
def _round(needed, positions, start, fits, prices, budget, most, multiple, slots, lengths):
    """The most sequences, of at most `fits`, that make batches of multiples alone; or `fits`, where no such are near.

    Of 29 that fit, in multiples of 8, these are 24. With a batch of 3, where 8 do not fit, they are 27.
    """
    number, paid, first = np.empty(fits + 1, np.int64), np.empty(fits + 1), np.empty(fits + 1, np.int64)
    loose = multiple < 1  # never
    for size in range(fits, max(slots, fits - multiple + 1) - 1, -1):
        own = copy_until(needed, positions, start + size, lengths)
        reach_multiples(own, prices, budget, budget, most, multiple, loose, number[: size + 1], paid, first)
        if 0 <= number[size] <= slots:
            return size
    return fits


@kernel
def cut_steps_to_multiples(lengths, taken, prices, budget, most, multiple, slots, offsets):
    """Cuts each step, sorted, into `slots` batches of multiples, the costliest of which costs the least possible.

    What is over a multiple is in the last batch of a step, if that cannot be avoided. A step that needs more batches
    even so is cut as if it had no multiple. Returns how many batches there are.

    Args:
        lengths: [n, dims], what each sequence must be padded to, step by step, each step from its largest.
        taken: [steps], how many sequences each step takes.
        prices, budget, most, multiple: As in `cut_to_multiples`.
        slots: Batches of a step.
        offsets: [steps x slots + 1], receives where each batch begins, and the end.
    """
    widest = largest(taken)
    ends = np.empty(slots, np.int64)
    number, paid, first = np.empty(widest + 1, np.int64), np.empty(widest + 1), np.empty(widest + 1, np.int64)
    start = batches = 0
    offsets[0] = 0
    for size in taken:
        own = lengths[start : start + size]
        rooms = number[: size + 1], paid[: size + 1], first[: size + 1]
        found = _level(own, prices, budget, most, multiple, slots, ends, rooms)
        if found > 0:
            found = split_multiples(ends, found, slots, multiple)
        else:
            found, _ = level_step(own, prices, budget, most, slots, ends, np.inf)
        for batch in range(found):
            offsets[batches + 1 + batch] = start + ends[batch]
        batches += found
        start += size
    return batches


@kernel
def _level(lengths, prices, budget, most, multiple, slots, ends, rooms):
    """What `level_multiples` finds: `ends` [slots] receives where each batch ends. Returns how many, or 0."""
    number, paid, first = rooms
    count = lengths.shape[0]
    for attempt in range(2):
        loose = attempt > 0
        reach_multiples(lengths, prices, budget, budget, most, multiple, loose, number, paid, first)
        if number[count] < 0 or number[count] > slots:
            continue
        best, costliest = number[count], paid[count]
        offsets = np.empty(best + 1, np.int64)
        follow_back(number, first, offsets)
        # Both ends move to costs that occur, as in the kernel `level_step`, and so they meet exactly.
        low = 0.0
        while low < costliest:
            middle = low + (costliest - low) / 2.0
            if middle >= costliest:  # neighbours among the floats
                break
            more = reach_multiples(lengths, prices, middle, budget, most, multiple, loose, number, paid, first)
            if number[count] < 0 or number[count] > slots:
                low = more
            else:
                best, costliest = number[count], paid[count]
                offsets = np.empty(best + 1, np.int64)
                follow_back(number, first, offsets)
        for batch in range(best):
            ends[batch] = offsets[batch + 1]
        return best
    return 0

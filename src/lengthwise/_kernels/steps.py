"""Whole steps: filled, sorted, and cut into batches of about equal cost."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import compile_kernel

_NO_END = 2**62  # no position is beyond it


@compile_kernel
def cut_falling(lengths, positions, end, prices, budget, most, slots, ends):
    """Cuts a step, its sequences sorted from the longest, into batches of at most `budget` in cost each.

    The step is those rows of `lengths` [m, dims] whose `positions` [m] are below `end`. A sequence that is over the
    budget by itself stands alone. `ends` [slots] receives how many sequences stand in the batches up to each. Returns

    - how many batches there are, or slots + 1 as soon as the sequences need more than `slots`;
    - what the costliest of them costs, without those that stand alone over the budget;
    - the least budget under which one of them would take another sequence: infinite where none can.
    """
    dims = lengths.shape[1]
    longest = np.zeros(dims, np.int64)
    batches = size = taken = 0
    cost = costliest = 0.0
    more = np.inf
    for row in range(positions.size):
        # Kept from a longer try: what a shorter step does not hold is passed over, and nothing is sorted again.
        if positions[row] >= end:
            continue
        each, once = 0.0, prices[0]
        for dim in range(dims):
            length = float(max(longest[dim], lengths[row, dim]))
            each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
            once += prices[2 + 2 * dims + dim] * length
        grown = once + (size + 1) * (prices[1] + each)
        if size > 0 and (grown > budget or size == most):
            # A batch that is full by count takes no more under any budget.
            more = min(more, grown) if size < most else more
            costliest = max(costliest, cost) if cost <= budget else costliest
            ends[batches] = taken
            batches += 1
            if batches == slots:
                return slots + 1, costliest, more
            size = 0
            for dim in range(dims):
                longest[dim] = 0
            each, once = 0.0, prices[0]
            for dim in range(dims):
                length = float(lengths[row, dim])
                each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
                once += prices[2 + 2 * dims + dim] * length
            grown = once + (prices[1] + each)
        for dim in range(dims):
            longest[dim] = max(longest[dim], lengths[row, dim])
        size += 1
        taken += 1
        cost = grown
    if size > 0:
        costliest = max(costliest, cost) if cost <= budget else costliest
        ends[batches] = taken
        batches += 1
    return batches, costliest, more


@compile_kernel
def split_widest(ends, batches, slots, multiple):
    """Halves the batch of most sequences until there are `slots` batches, or all are single sequences: how many.

    Three batches of 1, 4 and 2 sequences, `ends` [1, 5, 7, _], become four of 1, 2, 2 and 2: [1, 3, 5, 7]. The second
    half of a batch of more than `multiple` sequences holds a multiple: 24 become 16 and 8.
    """
    while batches < slots:
        widest = at = 0
        for batch in range(batches):
            width = ends[batch] - (ends[batch - 1] if batch > 0 else 0)
            if width > widest:
                widest, at = width, batch
        if widest < 2:
            break
        for batch in range(batches, at, -1):
            ends[batch] = ends[batch - 1]
        half = widest // 2
        if widest > multiple:
            half = max(multiple, half // multiple * multiple)
        ends[at] -= half
        batches += 1
    return batches


@compile_kernel
def level_step(lengths, positions, prices, budget, most, slots, ends):
    """Cuts a step into `slots` batches, the costliest of which costs the least possible, and returns how many.

    Bisection on the budget, exact because both ends move to costs that occur: a budget that is too small is raised to
    the next that changes a batch, and one that is enough is lowered to the costliest batch under it.
    """
    _, high, _ = cut_falling(lengths, positions, _NO_END, prices, budget, most, slots, ends)
    low = 0.0
    while low < high:
        middle = low + (high - low) / 2.0
        if middle >= high:  # neighbours among the floats
            break
        batches, costliest, more = cut_falling(lengths, positions, _NO_END, prices, middle, most, slots, ends)
        if batches > slots:
            low = more
        else:
            high = costliest
    batches, _, _ = cut_falling(lengths, positions, _NO_END, prices, high, most, slots, ends)
    return split_widest(ends, batches, slots, 1)


@compile_kernel
def _take_sorted(ranks, start, stop, room, counts):
    """The positions start..stop-1 from the longest, as `fill_steps` says: a radix sort of their ranks.

    They stand in `room` [2, n] until the next call. `counts` is [2048]. NumPy's sort takes seconds to compile.
    """
    size = stop - start
    found, spare = room[0, :size], room[1, :size]
    # Each word is a rank above the place in the step: the ranks [7, 2, 9] are [0b0111_00, 0b0010_01, 0b1001_10].
    shift = 0
    while size >> shift > 0:
        shift += 1
    place_mask = (1 << shift) - 1
    for index in range(size):
        found[index] = ranks[start + index] << shift | index
    # Of a short step most counts of a long digit would be 0, and to go through them would take longer than to sort.
    bits = 11 if size > 4096 else 8
    digits = 1 << bits
    top = (ranks.size - 1) << shift
    while top >> shift > 0:
        for digit in range(digits):
            counts[digit] = 0
        for index in range(size):
            counts[(found[index] >> shift) & (digits - 1)] += 1
        # From here on the counts say where the next word of each digit goes: [2, 0, 3] become [0, 2, 2].
        place = 0
        for digit in range(digits):
            width = counts[digit]
            counts[digit] = place
            place += width
        for index in range(size):
            digit = (found[index] >> shift) & (digits - 1)
            spare[counts[digit]] = found[index]
            counts[digit] += 1
        found, spare = spare, found
        shift += bits
    for index in range(size):
        found[index] = start + (found[index] & place_mask)
    return found


@compile_kernel
def _copy_rows(needed, positions, lengths):
    """needed[positions] in the first rows of `lengths`: a step is cut dozens of times, so it lies in one piece."""
    for row in range(positions.size):
        for dim in range(needed.shape[1]):
            lengths[row, dim] = needed[positions[row], dim]
    return lengths[: positions.size]


@compile_kernel
def fill_steps(needed, ranks, prices, budget, most, slots, sizes):
    """Fills steps in order, each with the most sequences that `slots` batches under the budget hold. Returns how many.

    A step is sorted before it is cut. `ranks` [n] says which place a sequence has from the longest of all. `sizes` [n]
    receives how many sequences each step takes. A part of what fits fits, so that doubling what fits, and then
    bisection, find the most.
    """
    count = needed.shape[0]
    ends = np.empty(slots, np.int64)
    room = np.empty((2, count), np.int64)
    lengths = np.empty(needed.shape, np.int64)
    counts = np.empty(2048, np.int64)
    start = steps = 0
    fits = slots
    while start < count:
        left = count - start
        reach = min(left, fits + fits // 4 + 1)  # steps take about as many as the one before
        fits = min(slots, left)
        while True:
            positions = _take_sorted(ranks, start, start + reach, room, counts)
            own = _copy_rows(needed, positions, lengths)
            batches, _, _ = cut_falling(own, positions, start + reach, prices, budget, most, slots, ends)
            if batches > slots:
                break
            fits = max(fits, reach)
            if reach == left:
                break
            reach = min(left, 2 * reach)
        # `fits` sequences fit and `reach` do not. All of these tries cut parts of the positions sorted last.
        while batches > slots and reach - fits > 1:
            middle = (fits + reach) // 2
            found, _, _ = cut_falling(own, positions, start + middle, prices, budget, most, slots, ends)
            if found > slots:
                reach = middle
            else:
                fits = middle
        sizes[steps] = fits
        steps += 1
        start += fits
    return steps


@compile_kernel
def cut_steps(needed, ranks, sizes, prices, budget, most, slots, sequences, offsets):
    """Sorts each step, and cuts it into `slots` batches by `level_step`. Returns how many batches there are.

    `sizes` [steps] says how many sequences each step takes, in order. `sequences` [n] receives them step by step, each
    step from its longest, and `offsets` [n + 1] where each batch begins, and the end.
    """
    ends = np.empty(slots, np.int64)
    room = np.empty((2, needed.shape[0]), np.int64)
    lengths = np.empty(needed.shape, np.int64)
    counts = np.empty(2048, np.int64)
    start = batches = 0
    for size in sizes:
        positions = _take_sorted(ranks, start, start + size, room, counts)
        own = _copy_rows(needed, positions, lengths)
        found = level_step(own, positions, prices, budget, most, slots, ends)
        offsets[batches] = start
        for batch in range(found):
            offsets[batches + 1 + batch] = start + ends[batch]
        batches += found
        for index in range(size):
            sequences[start + index] = positions[index]
        start += size
    return batches

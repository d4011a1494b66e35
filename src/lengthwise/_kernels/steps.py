"""Whole steps: filled, each sorted by size, and cut into batches of about equal cost."""

from __future__ import annotations

import math

import numpy as np

from lengthwise._compile import kernel
from lengthwise._kernels.cuts import cut_into, try_budget

_TRIES = 8  # by what the try before says; then bisection
_SURE = 4  # tries of a step from which on what a try says of the next is mostly chance
_NEAR = 64  # sequences: the bisection of so few takes no more tries
_BY_HAND = 40  # sequences: to count digits would take longer than to put so few in order one by one


@kernel
def sort_step(sizes, top, start, stop, positions, spare, counts):
    """Writes the positions start..stop-1 from the largest of `sizes`, equals as they come, into `positions`.

    No size is above `top`. `spare` is room for as many numbers, of the type of `positions`; `counts` is [8192]. NumPy's
    sort takes seconds to compile.
    """
    size = stop - start
    if size <= _BY_HAND:
        for index in range(size):
            place = index
            while place > 0 and sizes[positions[place - 1]] < sizes[start + index]:
                positions[place] = positions[place - 1]
                place -= 1
            positions[place] = start + index
        return
    # They are sorted by what each size lacks to `top`: [2, 0, 7] of the sizes [7, 9, 2] where `top` is 9.
    most = np.int64(0)
    for index in range(start, stop):
        most = max(most, top - sizes[index])
    width = 0
    while most >> width > 0:
        width += 1
    # Digits of equal width. Of a short step most counts of a long digit would be 0, and to go through them would take
    # longer than to sort.
    passes = max(1, -(-width // (13 if size > 65536 else 11 if size > 4096 else 8)))
    bits = -(-width // passes)
    mask = (1 << bits) - 1
    # From the one to the other and back, so that the last pass writes into `positions`.
    source, target = (positions, spare) if passes % 2 == 0 else (spare, positions)
    for number in range(passes):
        low = number * bits
        for digit in range(mask + 1):
            counts[digit] = 0
        for index in range(start, stop):
            counts[((top - sizes[index]) >> low) & mask] += 1
        # From here on the counts say where the next position of each digit goes: [2, 0, 3] become [0, 2, 2].
        place = 0
        for digit in range(mask + 1):
            place, counts[digit] = place + counts[digit], place
        for index in range(size):
            position = np.int64(source[index]) if number > 0 else start + index
            digit = ((top - sizes[position]) >> low) & mask
            target[counts[digit]] = position
            counts[digit] += 1
        source, target = target, source


@kernel
def largest(values):
    largest = np.int64(0)
    for value in values:
        largest = max(largest, value)
    return largest


@kernel
def sort_steps(sizes, step_sizes, sequences):
    """Sorts steps of given numbers of sequences: those of a step stand from its largest, equals as they come.

    Args:
        sizes: [n] int64, in order.
        step_sizes: [steps], how many sequences each step takes.
        sequences: [n], receives the positions of the sequences, step by step.
    """
    top = largest(sizes)
    spare = np.empty(largest(step_sizes), sequences.dtype)
    counts = np.empty(8192, np.int64)
    start = np.int64(0)
    for size in step_sizes:
        sort_step(sizes, top, start, start + size, sequences[start : start + size], spare, counts)
        start += size


@kernel
def keep_until(positions, end, sequences):
    """Writes those of `positions` that are below `end` into `sequences`, in their order; they may be one memory."""
    place = 0
    for position in positions:
        if position < end:
            sequences[place] = position
            place += 1


@kernel
def copy_until(needed, positions, end, lengths):
    """The rows of `needed` at those `positions` that are below `end`, in the first rows of `lengths`."""
    row, dims = 0, needed.shape[1]
    second = min(1, dims - 1)
    for position in positions:
        # One or two without a loop: that would take longer than the rest.
        lengths[row, 0] = needed[position, 0]
        lengths[row, second] = needed[position, second]
        for dim in range(2, dims):
            lengths[row, dim] = needed[position, dim]
        row += position < end  # if not, the next one takes its place
    return lengths[:row]


@kernel
def find_borders(groups, positions, end, borders):
    """The rows, among those `positions` that are below `end`, at which another group begins, in `borders`."""
    row, count, previous = 0, 0, np.int64(0)
    if groups.size > 0:
        for position in positions:
            if position < end:
                if row > 0 and groups[position] != previous:
                    borders[count] = row
                    count += 1
                previous = groups[position]
                row += 1
    return borders[:count]


@kernel
def fill_steps(needed, sizes, groups, prices, budget, most, multiple, slots, guess, step_sizes, sequences):
    """Fills steps in order, each with the most sequences that `slots` batches under the budget hold. Returns how many.

    More sequences than a step may take are sorted. Each try leaves out those beyond a number of them, and says about
    how many more or fewer fit. After some tries, bisection follows.

    Args:
        needed: [n, dims], what each sequence must be padded to, in order.
        sizes: [n], whole numbers by which a step is sorted before it is cut, group by group.
        groups: [n], of which no batch mixes two; or none.
        prices, budget, most: As in `greedy_cut`.
        multiple: As in `greedy_cut`.
        slots: Batches of a step.
        guess: About how many sequences the first step takes, at least one: it changes nothing but the time.
        step_sizes: [n], receives how many sequences each step takes.
        sequences: [n], receives the positions of the sequences, step by step, each step from its largest.
    """
    count, dims = needed.shape
    top = largest(sizes)
    # No literals: a kernel that is called with one is compiled a second time.
    ends, falling = np.empty(slots, np.int64), np.bool_(True)
    borders = np.empty(64, np.int64)
    counts = np.empty(8192, np.int64)
    spare, lengths, positions = np.empty(64, np.int64), np.empty((64, dims), np.int64), sequences[:0]
    start, steps = np.int64(0), 0
    while start < count:
        left = count - start
        fits, reach = min(slots, left), np.int64(0)  # so many fit, and so many are sorted
        beyond, middle, tries, further = fits + 1, guess, 0, 0
        while True:
            if beyond - fits == 1:
                if fits < reach or reach == left:
                    break
                # Random steps take about as many as those before: of 100, some 10 more or less; of 10,000, some 100.
                reach = min(left, max(fits, 2 * reach if reach > 0 else guess + 3 * (int(math.sqrt(guess)) + 1)))
                if reach > spare.size:
                    spare = np.empty(reach + reach // 8, np.int64)
                    lengths, borders = np.empty((spare.size, dims), np.int64), np.empty(spare.size, np.int64)
                positions = sequences[start : start + reach]
                sort_step(sizes, top, start, start + reach, positions, spare, counts)
                beyond = reach + 1
                continue
            middle = (fits + beyond) // 2 if tries >= _TRIES else max(fits + 1, min(middle, beyond - 1))
            end = start + middle
            rows = copy_until(needed, positions, end, lengths)
            inner = find_borders(groups, positions, end, borders)
            batches, _, _, filled = try_budget(rows, inner, prices, budget, most, multiple, falling, slots, ends)
            # Ever further in the same direction, until what fits lies between two tries.
            if batches > slots:
                beyond, further = middle, min(further, 0) * 2 - 1
            else:
                fits, further = middle, max(further, 0) * 2 + 1
            middle = int(middle * slots / filled)
            tries += 1
            if tries >= _SURE:
                middle = (fits + beyond) // 2 if beyond - fits <= _NEAR else middle + further // 2
        keep_until(positions, start + fits, positions)
        guess = fits if steps == 0 else guess + (fits - guess) // 4
        step_sizes[steps] = fits
        steps += 1
        start += fits
    return steps


@kernel
def cut_steps(lengths, step_sizes, groups, prices, budget, most, multiple, slots, offsets):
    """Cuts each step, sorted, into `slots` batches by `cut_into`. Returns how many batches there are.

    Args:
        lengths: [n, dims], what each sequence must be padded to, step by step, each step from its largest.
        step_sizes: [steps], how many sequences each step takes.
        groups: [n], of which no batch mixes two; or none.
        prices, budget, most: As in `greedy_cut`.
        multiple: As in `greedy_cut`.
        slots: Batches of a step.
        offsets: [steps x slots + 1], receives where each batch begins, and the end.
    """
    ends, falling, exactly = np.empty(slots, np.int64), np.bool_(True), np.int64(0)
    borders = np.empty(slots, np.int64)
    start = batches = 0
    costliest = np.inf
    offsets[0] = 0
    for size in step_sizes:
        # Steps cost about as much as the one before.
        step = lengths[start : start + size]
        inner = find_borders(groups, np.arange(start, start + size), start + size, borders)
        batch_count, costliest = cut_into(
            step, inner, prices, budget, most, multiple, falling, exactly, costliest, ends
        )
        for batch in range(batch_count):
            offsets[batches + 1 + batch] = start + ends[batch]
        batches += batch_count
        start += size
    return batches

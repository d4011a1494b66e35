"""Fills whole steps, sorts each by size, and cuts it into batches of about equal cost."""

from __future__ import annotations

import math

import numpy as np

from lengthwise._compile import kernel
from lengthwise._kernels.cuts import cut_into, try_budget

_TRIES = 8  # tries that follow the estimate of the one before; then bisection
_SURE = 4  # tries of a step; after these, estimates are mostly chance
_NEAR = 64  # sequences: bisecting so few takes no more tries than estimates do
_BY_HAND = 40  # sequences: so few are sorted faster one by one than by digits


@kernel
def sort_step(sizes, top, start, stop, positions, spare, counts):
    """Writes the positions start..stop-1 into `positions`, from the largest of `sizes`; equal ones keep their order.

    No size is above `top`. `spare` has room for as many numbers, of the type of `positions`; `counts` is [8192].
    NumPy's sort is not used, because it takes seconds to compile.
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
    # Sort by `top` less each size: with a `top` of 9, the sizes [7, 9, 2] become [2, 0, 7].
    most = np.int64(0)
    for index in range(start, stop):
        most = max(most, top - sizes[index])
    width = 0
    while most >> width > 0:
        width += 1
    # Digits of equal width, shorter for a short step: most counts of a long digit would be 0, and going through them
    # would take longer than sorting.
    passes = max(1, -(-width // (13 if size > 65536 else 11 if size > 4096 else 8)))
    bits = -(-width // passes)
    mask = (1 << bits) - 1
    # Passes write into both arrays in turn, the last one into `positions`.
    source, target = (positions, spare) if passes % 2 == 0 else (spare, positions)
    for number in range(passes):
        low = number * bits
        for digit in range(mask + 1):
            counts[digit] = 0
        for index in range(start, stop):
            counts[((top - sizes[index]) >> low) & mask] += 1
        # From here on the counts are the places where the next position of each digit goes: [2, 0, 3] become [0, 2, 2].
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
    """Sorts the sequences of each step from the largest; equal ones keep their order.

    Args:
        sizes: [n] int64, in order.
        step_sizes: [steps], the number of sequences in each step.
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
    """Writes those `positions` that are below `end` into `sequences`, in their order; both may share their memory."""
    place = 0
    for position in positions:
        if position < end:
            sequences[place] = position
            place += 1


@kernel
def copy_until(needed, positions, end, lengths):
    """Copies the rows of `needed` at the `positions` below `end` into `lengths`, and returns the filled rows."""
    row, dims = 0, needed.shape[1]
    second = min(1, dims - 1)
    for position in positions:
        # One or two lengths are copied without a loop, which would take longer than the rest.
        lengths[row, 0] = needed[position, 0]
        lengths[row, second] = needed[position, second]
        for dim in range(2, dims):
            lengths[row, dim] = needed[position, dim]
        row += position < end  # else the next one overwrites it
    return lengths[:row]


@kernel
def find_borders(groups, positions, end, borders):
    """Finds the rows at which another group begins, among those `positions` that are below `end`."""
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
def fill_steps(needed, sizes, groups, bounds, slots, guess, step_sizes, sequences):
    """Fills steps in order, each with the most sequences that `slots` batches under the budget hold. Returns the steps.

    More sequences than a step may take are sorted. Each try cuts only those up to some position in the order, and
    estimates how many fit. After some tries, bisection follows.

    Args:
        needed: [n, dims], the length that each sequence must be padded to, in order.
        sizes: [n], whole numbers by which a step is sorted before it is cut, group by group.
        groups: [n], the group of each, so that no batch mixes two; or empty.
        bounds: The limits of a batch.
        slots: Batches of a step.
        guess: About how many sequences the first step takes, at least one. A wrong guess only takes time.
        step_sizes: [n], receives the number of sequences in each step.
        sequences: [n], receives the positions of the sequences, step by step, each step from its largest.
    """
    count, dims = needed.shape
    top = largest(sizes)
    # No literals: a kernel that is called with a literal is compiled a second time.
    ends, falling = np.empty(slots, np.int64), np.bool_(True)
    borders = np.empty(64, np.int64)
    counts = np.empty(8192, np.int64)
    spare, lengths, positions = np.empty(64, np.int64), np.empty((64, dims), np.int64), sequences[:0]
    start, steps = np.int64(0), 0
    while start < count:
        left = count - start
        fits, reach = min(slots, left), np.int64(0)  # the numbers that fit, and that are sorted
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
            batches, _, _, filled = try_budget(rows, inner, bounds, falling, slots, ends)
            # Goes further in the same direction each time, until the number that fits lies between two tries.
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
def cut_steps(lengths, step_sizes, groups, bounds, slots, offsets):
    """Cuts each sorted step into `slots` batches by `cut_into`. Returns the number of batches.

    Args:
        lengths: [n, dims], the length that each sequence must be padded to, step by step, each step from its largest.
        step_sizes: [steps], the number of sequences in each step.
        groups: [n], the group of each, so that no batch mixes two; or empty.
        bounds: The limits of a batch.
        slots: Batches of a step.
        offsets: [steps x slots + 1], receives where each batch begins, and the end.
    """
    ends, falling, exactly = np.empty(slots, np.int64), np.bool_(True), np.int64(0)
    borders = np.empty(slots, np.int64)
    start = batches = 0
    costliest = np.inf
    offsets[0] = 0
    for size in step_sizes:
        # A step costs about as much as the one before, whose costliest batch is the first guess.
        step = lengths[start : start + size]
        inner = find_borders(groups, np.arange(start, start + size), start + size, borders)
        batch_count, costliest = cut_into(step, inner, bounds, falling, exactly, costliest, ends)
        for batch in range(batch_count):
            offsets[batches + 1 + batch] = start + ends[batch]
        batches += batch_count
        start += size
    return batches

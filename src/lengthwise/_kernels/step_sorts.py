"""The sequences of each step, or of each part of an order, sorted by size."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel

_BY_HAND = 40  # sequences: to count digits would take longer than to put so few in order one by one


@kernel
def sort_step(sizes, top, start, stop, found, spare, counts):
    """Writes the positions start..stop-1 from the largest of `sizes`, equals as they come, into `found`.

    No size is above `top`. `spare` is room for as many numbers, of the type of `found`; `counts` is [8192]. NumPy's
    sort takes seconds to compile.
    """
    size = stop - start
    if size <= _BY_HAND:
        for index in range(size):
            place = index
            while place > 0 and sizes[found[place - 1]] < sizes[start + index]:
                found[place] = found[place - 1]
                place -= 1
            found[place] = start + index
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
    # From the one to the other and back, so that the last pass writes into `found`.
    before, after = (found, spare) if passes % 2 == 0 else (spare, found)
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
            position = np.int64(before[index]) if number > 0 else start + index
            digit = ((top - sizes[position]) >> low) & mask
            after[counts[digit]] = position
            counts[digit] += 1
        before, after = after, before


@kernel
def largest(values):
    largest = np.int64(0)
    for value in values:
        largest = max(largest, value)
    return largest


@kernel
def sort_steps(sizes, taken, sequences):
    """Sorts steps of given numbers of sequences: those of a step stand from its largest, equals as they come.

    Args:
        sizes: [n] int64, in order.
        taken: [steps], how many sequences each step takes.
        sequences: [n], receives the positions of the sequences, step by step.
    """
    top = largest(sizes)
    spare = np.empty(largest(taken), sequences.dtype)
    counts = np.empty(8192, np.int64)
    start = np.int64(0)
    for size in taken:
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

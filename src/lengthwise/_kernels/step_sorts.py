"""The sequences of each step, or of each part of an order, sorted by size."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import compile_kernel

_BY_HAND = 40  # sequences: to count digits would take longer than to put so few in order one by one


@compile_kernel
def sort_step(sizes, top, start, stop, room, counts):
    """The positions start..stop-1 from the largest of `sizes`, equals as they come; and room for as many numbers.

    No size is above `top`. Both stand in `room` [2, m] until the next call. `counts` is [2048]. NumPy's sort takes
    seconds to compile.
    """
    size = stop - start
    found, spare = room[0, :size], room[1, :size]
    # Each word is what the size lacks to `top`, above the place in the step. The sizes [7, 9, 2] are
    # [0b0010_00, 0b0000_01, 0b0111_10] where `top` is 9.
    shift = 0
    while size >> shift > 0:
        shift += 1
    most = np.int64(0)
    for index in range(size):
        found[index] = (top - sizes[start + index]) << shift | index
        most = max(most, found[index])
    if size <= _BY_HAND:
        for index in range(1, size):
            word, place = found[index], index
            while place > 0 and found[place - 1] > word:
                found[place] = found[place - 1]
                place -= 1
            found[place] = word
    else:
        width = 0
        while most >> (shift + width) > 0:
            width += 1
        # Digits of equal width. Of a short step most counts of a long digit would be 0, and to go through them would
        # take longer than to sort.
        passes = -(-width // (13 if size > 65536 else 11 if size > 4096 else 8))
        bits = -(-width // max(1, passes))
        for number in range(passes):
            low, mask = shift + number * bits, (1 << bits) - 1
            for digit in range(mask + 1):
                counts[digit] = 0
            for index in range(size):
                counts[(found[index] >> low) & mask] += 1
            # From here on the counts say where the next word of each digit goes: [2, 0, 3] become [0, 2, 2].
            place = 0
            for digit in range(mask + 1):
                place, counts[digit] = place + counts[digit], place
            for index in range(size):
                digit = (found[index] >> low) & mask
                spare[counts[digit]] = found[index]
                counts[digit] += 1
            found, spare = spare, found
    for index in range(size):
        found[index] = start + (found[index] & ((1 << shift) - 1))
    return found, spare


@compile_kernel
def largest(values):
    largest = np.int64(0)
    for value in values:
        largest = max(largest, value)
    return largest


@compile_kernel(linear=True)
def sort_steps(sizes, taken, sequences):
    """Sorts steps of given numbers of sequences: those of a step stand from its largest, equals as they come.

    Args:
        sizes: [n] int64, in order.
        taken: [steps], how many sequences each step takes.
        sequences: [n], receives the positions of the sequences, step by step.
    """
    top = largest(sizes)
    room = np.empty((2, largest(taken)), np.int64)
    counts = np.empty(8192, np.int64)
    start = np.int64(0)
    for size in taken:
        positions, _ = sort_step(sizes, top, start, start + size, room, counts)
        for index in range(size):
            sequences[start + index] = positions[index]
        start += size


@compile_kernel(linear=True)
def sort_parts(sequences, sizes, top, ends, turned, found):
    """Sorts parts of an order in place, from the smallest, equals as they come.

    Args:
        sequences: [n] int64, in order.
        sizes: Those of sequence 0, 1, ..., whole numbers from 0 to `top`, which is below 2**31.
        ends: [parts], rising: where each part ends.
        turned: Whether the second part, the fourth and so on are then put back to front.
        found: [n], receives the sizes of the sequences, sorted as they are.
    """
    start = width = np.int64(0)
    for end in ends:
        width = max(width, end - start)
        start = end
    own, room = np.empty(width, np.int64), np.empty((2, width), np.int64)
    counts = np.empty(8192, np.int64)
    start = np.int64(0)
    for part in range(ends.size):
        size = ends[part] - start
        for index in range(size):
            own[index] = top - sizes[sequences[start + index]]  # because a step is sorted from the largest
        positions, spare = sort_step(own, top, np.int64(0), size, room, counts)
        for index in range(size):
            spare[index] = sequences[start + index]
        back = turned and part % 2 == 1
        for index in range(size):
            place = start + (size - 1 - index if back else index)
            sequences[place] = spare[positions[index]]
            found[place] = top - own[positions[index]]
        start = ends[part]


@compile_kernel
def keep_until(positions, end, sequences):
    """Writes those of `positions` that are below `end` into `sequences`, in their order."""
    place = 0
    for position in positions:
        if position < end:
            sequences[place] = position
            place += 1

"""Fills whole steps, and sorts each by size.

keys        [n]       the sizes below the greatest: the least key is the largest sequence
positions   [n]       the sequences step by step, each step from its largest; equal ones keep their order
spare       [n]       memory to work in
digits      [4096]    memory to work in
"""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel
from lengthwise._kernels.cuts import cut_batches

_TRIES = 8  # tries that follow the estimate of the one before; then bisection


@kernel
def sort_step(keys, bits, start, size, ordered, spare, digits):
    """Writes the `size` positions from `start` on to `ordered`, sorted by their keys, which are below 2**bits.

    NumPy's sort is not used, because it takes seconds to compile.
    """
    # Short digits for a short step: most counts of a long digit would be 0, and going through them takes longer than
    # sorting.
    passes = 1 + bits // (12 if size > 4096 else 6)
    width = -(-bits // passes)
    mask = (1 << width) - 1
    for number in range(passes):
        low = number * width
        for digit in range(mask + 1):
            digits[digit] = 0
        for index in range(size):
            digits[keys[start + index] >> low & mask] += 1
        # From here on the counts are the places where the next position of each digit goes: [2, 0, 3] become [0, 2, 2].
        place = 0
        for digit in range(mask + 1):
            place += digits[digit]
            digits[digit] = place - digits[digit]
        for index in range(size):
            position = spare[index] if number > 0 else start + index
            digit = keys[position] >> low & mask
            ordered[digits[digit]] = position
            digits[digit] += 1
        for index in range(size):
            spare[index] = ordered[index]


@kernel
def fill_steps(lengths, keys, bits, groups, bounds, guess, ends, step_sizes, positions, spare, digits):
    """Fills steps in order, each with the most sequences that batches under the budget hold. Returns the steps.

    More sequences than a step may take are sorted. Each try cuts only those up to some position in the order, and
    estimates how many fit. After some tries, bisection follows.

    Args:
        lengths: [n, dims], the length that each sequence must be padded to, in order.
        bits: Of the greatest key.
        groups: [n], the group of each, so that no batch mixes two; or empty. Keys put one group before the other.
        bounds: The limits of a batch.
        guess: About how many sequences the first step takes, at least one. A wrong guess only takes time.
        ends: [batches of a step], memory to work in.
        step_sizes: [n], receives the number of sequences in each step.
    """
    falling, slots, level = lengths.shape[1] == 1, ends.size, np.inf
    start, steps = np.int64(0), 0  # no literal: the kernels below would be compiled twice
    while start < keys.size:
        left = keys.size - start
        fits, beyond = 0, left + 1  # the most that fit, as far as is known, and the least that do not
        reach, middle, tries = 0, guess, 0
        while True:
            if tries >= _TRIES:
                middle = (fits + min(beyond, reach + 1)) // 2
            middle = min(max(middle, fits + 1), beyond - 1)
            if middle > reach:
                # Random steps take about as many as those before: of 100, some 10 more or less; of 10,000, some 100.
                reach = min(left, max(2 * reach, middle + middle // 16 + 24))
                sort_step(keys, bits, start, reach, spare, positions[start:], digits)
            stop = start
            for position in spare[:reach]:
                positions[stop] = position
                stop += position < start + middle  # else the next one overwrites it
            if middle == fits:
                break
            batches, _, _, filled = cut_batches(lengths, positions, start, stop, groups, bounds, level, falling, ends)
            if batches > slots:
                beyond = middle
            else:
                fits = middle
            middle = np.int64(min(float(left), middle * slots / filled))
            tries += 1
        step_sizes[steps] = fits
        steps += 1
        start += fits
        guess += (fits - guess) // 2
    return steps

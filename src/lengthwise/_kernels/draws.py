"""The random numbers."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel
from lengthwise._kernels.exact import LN2, series_of_log

_HALF = 2**32 - 1


@kernel
def threefry(key0, key1, first, counter1, words):
    """Fills `words` [m], uint64, with Threefry-2x64-20 under the key (key0, key1).

    The counters are (first, counter1), (first + 1, counter1), ...; each gives two words. All arithmetic is on uint64
    and wraps.

    References:
        Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", section 4.2.
    """
    # No branch and no table within the loop: the compiler then computes several blocks at once, ten times as fast.
    for block in range(words.size // 2):
        words[2 * block], words[2 * block + 1] = threefry_block(key0, key1, first + np.uint64(block), counter1)
    if words.size % 2:
        words[words.size - 1] = threefry_block(key0, key1, first + np.uint64(words.size // 2), counter1)[0]


@kernel
def threefry_block(key0, key1, counter0, counter1):
    """The two words of one counter: twenty rounds, and behind every fourth two of the three key words are added."""
    key2 = key0 ^ key1 ^ np.uint64(0x1BD11BDAA9FC1A22)  # the parity word: the three are never all zero
    x0, x1 = counter0 + key0, counter1 + key1
    x0, x1 = _four_rounds(x0, x1, np.uint64(16), np.uint64(42), np.uint64(12), np.uint64(31))
    x0, x1 = x0 + key1, x1 + key2 + np.uint64(1)
    x0, x1 = _four_rounds(x0, x1, np.uint64(16), np.uint64(32), np.uint64(24), np.uint64(21))
    x0, x1 = x0 + key2, x1 + key0 + np.uint64(2)
    x0, x1 = _four_rounds(x0, x1, np.uint64(16), np.uint64(42), np.uint64(12), np.uint64(31))
    x0, x1 = x0 + key0, x1 + key1 + np.uint64(3)
    x0, x1 = _four_rounds(x0, x1, np.uint64(16), np.uint64(32), np.uint64(24), np.uint64(21))
    x0, x1 = x0 + key1, x1 + key2 + np.uint64(4)
    x0, x1 = _four_rounds(x0, x1, np.uint64(16), np.uint64(42), np.uint64(12), np.uint64(31))
    return x0 + key2, x1 + key0 + np.uint64(5)


@kernel
def shuffle_parts(numbers, ends, words):
    """Puts each part of `numbers` [n] in random order: those before ends[0], those from there to ends[1], ...

    `words` [n], int64, are random in their upper halves, one for each place.

    References:
        Fisher and Yates 1938, as Durstenfeld 1964 has it.
    """
    start = 0
    for part in range(len(ends)):
        end = ends[part]
        for place in range(end - 1, start, -1):
            # The upper half of a word, times the number of those that are left, without its lower half: one of them.
            other = start + ((((words[place] >> 32) & _HALF) * (place - start + 1)) >> 32)
            numbers[place], numbers[other] = numbers[other], numbers[place]
        start = end


@kernel
def _four_rounds(x0, x1, first, second, third, fourth):
    """Add, rotate by so many bits, and xor: four times."""
    x0, x1 = _round(x0, x1, first)
    x0, x1 = _round(x0, x1, second)
    x0, x1 = _round(x0, x1, third)
    return _round(x0, x1, fourth)


@kernel
def _round(x0, x1, left):
    x0 = x0 + x1
    return x0, ((x1 << left) | (x1 >> (np.uint64(64) - left))) ^ x0


@kernel
def exponential(words, out):
    """Writes -log(1 - u) for the u in [0, 1) that the upper 53 bits of each of `words` [m] say."""
    for index in range(words.size):
        # 1 - u is in (0, 1], where the logarithm is finite; u itself may be 0.
        out[index] = _negative_log(1.0 - np.float64(words[index] >> np.uint64(11)) * 2.0**-53)


@kernel
def negative_log(fractions, out):
    """Writes -log(x) for each x in (0, 1], where x is at least 2**-63."""
    for index in range(fractions.size):
        out[index] = _negative_log(fractions[index])


@kernel
def _negative_log(fraction):
    """-log(x), as `exact.log` finds it, but without a branch: then the compiler computes several numbers at once."""
    # x = m 2^-k with m in (sqrt(1/2), sqrt(2)].
    # Doubled until it is above sqrt(1/2), 63 times at most: first 32 times at once where it needs as many, then 16.
    # 0.2 is doubled twice, and m is 0.8.
    mantissa, halvings = _double(fraction, 0.0, 32.0, 2.0**32)
    mantissa, halvings = _double(mantissa, halvings, 16.0, 2.0**16)
    mantissa, halvings = _double(mantissa, halvings, 8.0, 2.0**8)
    mantissa, halvings = _double(mantissa, halvings, 4.0, 2.0**4)
    mantissa, halvings = _double(mantissa, halvings, 2.0, 2.0**2)
    mantissa, halvings = _double(mantissa, halvings, 1.0, 2.0)
    return halvings * LN2 - series_of_log(mantissa)


@kernel
def _double(mantissa, halvings, times, factor):
    """Doubles so many times at once, by `factor`, where one time less would leave at most sqrt(1/2). It is exact."""
    small = mantissa <= 0.7071067811865476 / (factor / 2.0)
    return mantissa * (factor if small else 1.0), halvings + (times if small else 0.0)

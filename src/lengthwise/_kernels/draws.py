"""Random numbers, and shuffles by them."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel

_HALF = 2**32 - 1


@kernel
def threefry(key0, key1, first, counter1, words):
    """Fills `words` [m], uint64, with Threefry-2x64-20 under the key (key0, key1).

    The counters are (first, counter1), (first + 1, counter1), ...; each gives two words. All arithmetic is on uint64
    and wraps.

    References:
        Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", section 4.2.
    """
    # The loop has no branch and no table, so that the compiler computes several blocks at once, ten times as fast.
    for block in range(words.size // 2):
        words[2 * block], words[2 * block + 1] = threefry_block(key0, key1, first + np.uint64(block), counter1)
    if words.size % 2:
        words[words.size - 1] = threefry_block(key0, key1, first + np.uint64(words.size // 2), counter1)[0]


@kernel
def threefry_block(key0, key1, counter0, counter1):
    """Returns the two words of one counter: twenty rounds, with two of the three key words added after each fourth."""
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
    """Shuffles each part of `numbers` [n]: numbers[:ends[0]], numbers[ends[0]:ends[1]], ...

    `words` [n], int64, hold a random upper half for each place.

    References:
        Fisher and Yates 1938, in the form of Durstenfeld 1964.
    """
    start = 0
    for part in range(len(ends)):
        end = ends[part]
        for place in range(end - 1, start, -1):
            # The upper half of a word times the number of places left, shifted by 32 bits, is one of these places.
            partner = start + ((((words[place] >> 32) & _HALF) * (place - start + 1)) >> 32)
            numbers[place], numbers[partner] = numbers[partner], numbers[place]
        start = end


@kernel
def _four_rounds(x0, x1, first, second, third, fourth):
    """Applies four rounds, each of which adds, rotates by its bits, and xors."""
    x0, x1 = _round(x0, x1, first)
    x0, x1 = _round(x0, x1, second)
    x0, x1 = _round(x0, x1, third)
    return _round(x0, x1, fourth)


@kernel
def _round(x0, x1, left):
    x0 = x0 + x1
    return x0, ((x1 << left) | (x1 >> (np.uint64(64) - left))) ^ x0

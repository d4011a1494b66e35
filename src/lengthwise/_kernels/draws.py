"""Random numbers, and shuffles by them."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel

_HALF = 2**32 - 1


@kernel
def threefry(key0, key1, counter1, words):
    """Fills `words` [m], uint64, m even, with Threefry-2x64-20 under the key (key0, key1).

    The counters are (0, counter1), (1, counter1), ...; each gives two words. All arithmetic is on uint64 and wraps.

    References:
        Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", section 4.2.
    """
    parity = key0 ^ key1 ^ np.uint64(0x1BD11BDAA9FC1A22)  # so that the three key words are never all zero
    # The loop has no branch and no table, so that the compiler computes several blocks at once, ten times as fast.
    for block in range(words.size // 2):
        added0, added1, added2 = key0, key1, parity
        x0, x1 = np.uint64(block) + key0, counter1 + key1
        rotations = np.uint64(0x151820101F0C2A10)  # by 16, 42, 12, 31, 16, 32, 24, 21 bits: its bytes, from the lowest
        for turn in range(1, 6):  # four rounds, after which two of the key words are added
            for _ in range(4):
                left = rotations & np.uint64(63)
                rotations = rotations >> np.uint64(8) | rotations << np.uint64(56)
                x0 += x1
                x1 = (x1 << left | x1 >> np.uint64(64) - left) ^ x0
            added0, added1, added2 = added1, added2, added0
            x0 += added0
            x1 += added1 + np.uint64(turn)
        words[2 * block], words[2 * block + 1] = x0, x1


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

"""The random numbers."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import compile_kernel


@compile_kernel
def threefry(key0, key1, counter1, words):
    """Fills `words` [m], uint64, with Threefry-2x64-20 under the key (key0, key1).

    The counters are (0, counter1), (1, counter1), ...; each gives two words. All arithmetic is on uint64 and wraps.

    References:
        Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", section 4.2.
    """
    key2 = key0 ^ key1 ^ np.uint64(0x1BD11BDAA9FC1A22)  # the parity word: the three are never all zero
    rotations = (16, 42, 12, 31, 16, 32, 24, 21)
    keys = (key0, key1, key2)
    for block in range((words.size + 1) // 2):
        x0 = np.uint64(block) + key0
        x1 = counter1 + key1
        # Twenty rounds of add, rotate and xor. Behind every fourth, the next two of the three key words are added.
        for turn in range(20):
            left = np.uint64(rotations[turn % 8])
            x0 = x0 + x1
            x1 = ((x1 << left) | (x1 >> (np.uint64(64) - left))) ^ x0
            if turn % 4 == 3:
                injection = turn // 4 + 1
                x0 = x0 + keys[injection % 3]
                x1 = x1 + keys[(injection + 1) % 3] + np.uint64(injection)
        words[2 * block] = x0
        if 2 * block + 1 < words.size:
            words[2 * block + 1] = x1


@compile_kernel
def negative_log(fractions, out):
    """Writes -log(x) for each x in (0, 1], by exact IEEE operations only, so that every platform agrees to the last
    bit.

    x = m 2^-k with m in (sqrt(1/2), sqrt(2)]; log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172: ten terms
    leave less than 1e-17.
    """
    for index in range(fractions.size):
        mantissa = fractions[index]
        halvings = 0
        # Doubling a float is exact. For 0.2 it takes two, and m is 0.8.
        while mantissa <= 0.7071067811865476:
            mantissa *= 2.0
            halvings += 1
        s = (mantissa - 1.0) / (mantissa + 1.0)
        square = s * s
        series = 0.0
        # Horner: atanh(s) = s (1 + s^2 / 3 + s^4 / 5 + ... + s^20 / 21).
        for term in range(21, 0, -2):
            series = series * square + 1.0 / term
        out[index] = halvings * 0.6931471805599453 - 2.0 * s * series

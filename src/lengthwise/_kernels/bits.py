"""Sets of whole numbers as bits, of which the least from a number on is found in a few steps.

A set of 0..top is two levels. Bit i of `bits` [top // 64 + 1] stands for the number i, and bit w of `words`
[bits.size // 64 + 1] says that bits[w] is not 0: for {3, 70}, bits are [1 << 3, 1 << 6], and words [0b11].
"""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel


@kernel
def include(bits, words, number):
    """Puts `number` into the set."""
    word = number >> 6
    bits[word] |= np.uint64(1) << np.uint64(number & 63)
    words[word >> 6] |= np.uint64(1) << np.uint64(word & 63)


@kernel
def exclude(bits, words, number):
    """Takes `number` out of the set, in which it is."""
    word = number >> 6
    bits[word] ^= np.uint64(1) << np.uint64(number & 63)
    if bits[word] == 0:
        words[word >> 6] ^= np.uint64(1) << np.uint64(word & 63)


@kernel
def lowest_bit(word):
    """The place of the lowest bit of a word that is not 0."""
    place = 0
    if word & np.uint64(0xFFFFFFFF) == 0:
        place, word = 32, word >> np.uint64(32)
    if word & np.uint64(0xFFFF) == 0:
        place, word = place + 16, word >> np.uint64(16)
    if word & np.uint64(0xFF) == 0:
        place, word = place + 8, word >> np.uint64(8)
    if word & np.uint64(0xF) == 0:
        place, word = place + 4, word >> np.uint64(4)
    if word & np.uint64(3) == 0:
        place, word = place + 2, word >> np.uint64(2)
    if word & np.uint64(1) == 0:
        place += 1
    return place


@kernel
def highest_bit(word):
    """The place of the highest bit of a word that is not 0."""
    place = 0
    if word >> np.uint64(32):
        place, word = 32, word >> np.uint64(32)
    if word >> np.uint64(16):
        place, word = place + 16, word >> np.uint64(16)
    if word >> np.uint64(8):
        place, word = place + 8, word >> np.uint64(8)
    if word >> np.uint64(4):
        place, word = place + 4, word >> np.uint64(4)
    if word >> np.uint64(2):
        place, word = place + 2, word >> np.uint64(2)
    if word >> np.uint64(1):
        place += 1
    return place


@kernel
def least_from(bits, words, number):
    """The least number of the set that is at least `number`; -1 where there is none."""
    word = number >> 6
    found = bits[word] >> np.uint64(number & 63)
    if found:
        return number + lowest_bit(found)
    word += 1
    group = word >> 6
    if group < words.size:
        found = words[group] >> np.uint64(word & 63)
        if found:
            word += lowest_bit(found)
            return (word << 6) + lowest_bit(bits[word])
    for later in range(group + 1, words.size):
        if words[later]:
            word = (later << 6) + lowest_bit(words[later])
            return (word << 6) + lowest_bit(bits[word])
    return -1


@kernel
def greatest_to(bits, words, number):
    """The greatest number of the set that is at most `number`; -1 where there is none."""
    word = number >> 6
    found = bits[word] << np.uint64(63 - (number & 63))
    if found:
        return number - 63 + highest_bit(found)
    word -= 1
    if word < 0:
        return -1
    group = word >> 6
    found = words[group] << np.uint64(63 - (word & 63))
    if found:
        word += highest_bit(found) - 63
        return (word << 6) + highest_bit(bits[word])
    for earlier in range(group - 1, -1, -1):
        if words[earlier]:
            word = (earlier << 6) + highest_bit(words[earlier])
            return (word << 6) + highest_bit(bits[word])
    return -1

"""All random numbers of the package: a cipher of a counter, by seed, epoch and stage, the same on every platform.

A `Key` is the key of a block cipher and has no state. Two seeds never share an epoch, and epoch 7 can be drawn without
epoch 6. Global generators are not used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import _exact, _kernels, checks

# The purposes of random numbers, numbered for the cipher's counter. Plans depend on these numbers: never change one.
STAGES = {
    "examples": 0,
    "portions": 1,
    "order": 2,
    "ties": 3,
    "deal": 4,
    "arrange": 5,
    "tail": 6,
    "subset": 7,
    "rest": 8,
    "steps": 9,
    "trial": 10,
    "edges": 11,
    "windows": 12,
    "times": 14,
}

MOST_GROUPS = 2**24  # the most groups to sort by: 40 bits of a random word remain
_AT_ONCE = 2**14  # exponential numbers that fit into the cache
_ROUNDS = 10  # rounds of the Feistel network; in theory four are enough for large counts


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """The name of a stream of random numbers: seed, epoch, stage and lane.

    Two draws of one key begin with the same words. For other words, use another stage or lane. Every order, deal and
    arrangement gets its own key; `key.at("ties", lane=key.lane)` is a second stream.

    Args:
        seed: From 0 to 2**64 - 1; no two seeds share a stream.
        epoch: From 0 to 2**64 - 1; no two epochs share a stream.
        stage: The purpose of the numbers: "order", "ties", "deal", "arrange", ...
        lane: The number of the stream within a stage, such as a rank; from 0 to 2**56 - 1.

    Raises:
        ValueError: A number is out of range, or the stage is unknown.

    >>> key = Key(seed=7, epoch=3)
    >>> key.permutation(5)
    array([3, 4, 0, 2, 1])
    """

    seed: int = 0
    epoch: int = 0
    stage: str = "order"
    lane: int = 0

    def __post_init__(self) -> None:
        remedy = "Give a whole number from 0 to 2**64 - 1."
        checks.check_whole("seed", self.seed, minimum=0, maximum=2**64 - 1, remedy=remedy)
        checks.check_whole("epoch", self.epoch, minimum=0, maximum=2**64 - 1, remedy=remedy)
        checks.check_choice("stage", self.stage, tuple(STAGES))
        remedy = "Give a whole number from 0 to 2**56 - 1."
        checks.check_whole("lane", self.lane, minimum=0, maximum=2**56 - 1, remedy=remedy)

    def at(self, stage: str, *, lane: int = 0) -> Key:
        """Returns the key of another stage and lane, with the same seed and epoch."""
        return Key(seed=self.seed, epoch=self.epoch, stage=stage, lane=lane)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Draws `count` random 64-bit words: [count] uint64.

        References:
            Threefry-2x64-20 of Salmon et al. 2011; the key is (seed, epoch), the counter (block, stage and lane).
        """
        out = np.empty(count + count % 2, np.uint64)  # a block gives two words
        # The low 8 bits are the stage, the rest is the lane: stage 2 of lane 3 is 0x302.
        counter = np.uint64(STAGES[self.stage] | self.lane << 8)
        key = np.uint64(self.seed), np.uint64(self.epoch)
        _kernels.threefry(*key, counter, out)
        return out[:count]

    def uniform(self, count: int) -> NDArray[np.float64]:
        """Draws `count` numbers in [0, 1), multiples of 2**-53: [count] float64."""
        # A double has 53 bits: the upper 53 of 64.
        words = self.words(count)
        words >>= np.uint64(11)
        numbers = words.astype(np.float64)
        numbers *= 2.0**-53
        return numbers

    def exponential(self, count: int) -> NDArray[np.float64]:
        """Draws `count` exponential numbers of mean 1, the same to the last bit on every platform: [count] float64."""
        words = self.words(count)
        out = words.view(np.float64)  # the numbers overwrite their words
        for start in range(0, count, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            # 1 - u is in (0, 1], where the logarithm is finite; u itself may be 0.
            out[part] = -_exact.logs(1.0 - (words[part] >> np.uint64(11)).astype(np.float64) * 2.0**-53)
        return out

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Draws a random order of 0..count-1: [count] int64."""
        return argsort(self.words(count))

    def permutation_within(self, groups: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Draws an order of 0..n-1 by group, random within each group: [n] int64.

        >>> Key(seed=7, epoch=3).permutation_within(np.array([1, 0, 1, 0, 0]))
        array([3, 4, 1, 0, 2])
        """
        return argsort(self.words_within(groups))

    def words_within(self, groups: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
        """Draws words that sort 0..n-1 by group, and at random within each group: [n] uint64.

        The order is that of `permutation`, sorted stably by group. But the number of the group needs bits, so each word
        loses its lowest bits. Two numbers of a group whose words differ only in the lost bits keep their order. With
        ten million numbers in 2**16 groups, at most one draw in five has such a pair. In 2**24 groups there are some 50
        pairs if nearly all numbers are in one group.

        Args:
            groups: [n], from 0 to `MOST_GROUPS` - 1.
        """
        bits = int(groups.max(initial=0)).bit_length()
        words = self.words(len(groups))
        if bits:
            words >>= np.uint64(bits)
            words |= groups.astype(np.uint64) << np.uint64(64 - bits)
        return words

    def places(self, first: int, last: int, count: int) -> NDArray[np.int64]:
        """Draws the entries `first`..`last - 1` of a random order of 0..count-1: [last - first] int64.

        No table of the other entries is made, so a count of 1,000,000,000 costs no memory. The order is not that of
        `permutation`.

        References:
            Luby and Rackoff 1988, a Feistel network; Black and Rogaway 2002, section 3, cycle walking. Deviation: the
            round function is the finalizer of SplitMix64 (Steele et al. 2014), with one word of the stream a round.

        >>> Key(seed=7).places(0, 3, 5), Key(seed=7).places(3, 5, 5)
        (array([4, 0, 1]), array([3, 2]))
        """
        keys = self.words(_ROUNDS)
        # Half of the bits of the numbers below `count`: 488,282 blocks have 19 bits, so each half has 10.
        half = np.uint64(((max(count, 2) - 1).bit_length() + 1) // 2)
        places = _feistel(np.arange(first, last, dtype=np.uint64), half, keys)
        # The network permutes 0..4**half-1. A result of `count` or more goes through it again, until it is below
        # `count`. This ends: the cycle returns to its start, which is below `count`. No two numbers get the same
        # result, because a permutation has an inverse.
        while (outside := places >= count).any():
            places[outside] = _feistel(places[outside], half, keys)
        return places.astype(np.int64)


def _feistel(numbers: NDArray[np.uint64], half: np.uint64, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Permutes the numbers of 2 x `half` bits by the keys."""
    left, right = numbers >> half, numbers & ((np.uint64(1) << half) - np.uint64(1))
    for key in keys:
        # Uses the upper bits, which the finalizer mixes best.
        left, right = right, left ^ (_mix(right ^ key) >> (np.uint64(64) - half))
    return left << half | right


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Applies SplitMix64's finalizer. Products of unsigned words drop all bits above 64, on every platform."""
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)


def argsort(keys: NDArray[np.uint64] | NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns the order that sorts non-negative numbers: [n]. Equal keys stay in their order.

    A word of 64 bits holds a key and, in its lowest bits, the place of the key. The words are sorted. The lowest bits
    of a key may find no room: keys that differ only there count as equal. Ten million places take 24 bits, and 40
    remain for the keys: of ten million random words some 45 pairs count as equal. Whole numbers below 2**40 are exact.

    >>> argsort(np.array([3.0, 0.5, 3.0]))
    array([1, 0, 2])
    """
    count = len(keys)
    # Non-negative doubles sort as their bits do, read as whole numbers.
    bits = np.ascontiguousarray(keys).view(np.uint64)
    if count < 2:
        return np.arange(count)
    width = int(np.bitwise_or.reduce(bits ^ bits[0])).bit_length()  # all keys agree above these bits
    places = (count - 1).bit_length()
    words = bits << np.uint64(64 - width) if width else np.zeros(count, np.uint64)
    words >>= np.uint64(64 - min(width, 64 - places))
    words <<= np.uint64(places)
    words |= np.arange(count, dtype=np.uint64)
    words.sort()
    words &= np.uint64((1 << places) - 1)
    return words.view(np.int64)


def sort_by(
    numbers: NDArray[np.int64], keys: NDArray[np.uint64] | NDArray[np.int64] | NDArray[np.float64]
) -> NDArray[np.int64]:
    """Sorts `numbers` [m] by the non-negative keys[number]; equal keys stay in their order.

    >>> sort_by(np.array([2, 1, 0]), np.array([3.0, 0.5, 3.0]))
    array([1, 2, 0])
    """
    return numbers[argsort(keys[numbers])]

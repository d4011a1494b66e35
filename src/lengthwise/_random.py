"""The only randomness: counter-based, keyed by (seed, epoch, stage), the same on every platform.

A `Key` is the key of a block cipher, not a state: two seeds never share an epoch, epoch 7 needs no epoch 6, and no
global generator is read or written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels, checks

# What draws, and its number in the cipher's counter. Plans depend on these numbers: add, never renumber.
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
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """Names a stream of random numbers: who draws (`stage`, `lane`) in which epoch of which seed."""

    seed: int = 0
    epoch: int = 0
    stage: str = "order"
    lane: int = 0

    def __post_init__(self) -> None:
        limits = {"minimum": 0, "maximum": 2**64 - 1, "remedy": "Give a whole number from 0 to 2**64 - 1."}
        checks.check_whole("seed", self.seed, **limits)
        checks.check_whole("epoch", self.epoch, **limits)

    def at(self, stage: str, *, lane: int = 0) -> Key:
        """The same seed and epoch, another stage (and lane: one rank's portion, say)."""
        return Key(seed=self.seed, epoch=self.epoch, stage=stage, lane=lane)


def words(key: Key, count: int) -> NDArray[np.uint64]:
    """Draws `count` random 64-bit words.

    References:
        Threefry-2x64-20 of Salmon et al. 2011; the key is (seed, epoch), the counter (block, stage and lane).
    """
    out = np.empty(count, np.uint64)
    counter = np.uint64(STAGES[key.stage] | key.lane << 8)
    _kernels.threefry(np.uint64(key.seed), np.uint64(key.epoch), counter, out)
    return out


def uniform(key: Key, count: int) -> NDArray[np.float64]:
    """Draws `count` numbers in [0, 1), multiples of 2**-53."""
    return (words(key, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def exponential(key: Key, count: int) -> NDArray[np.float64]:
    """Draws `count` exponential numbers of mean 1."""
    return negative_log(1.0 - uniform(key, count))


def negative_log(fractions: NDArray[np.float64]) -> NDArray[np.float64]:
    """-log(x) for x in (0, 1], the same to the last bit on every platform (the C library's is not)."""
    out = np.empty_like(fractions)
    _kernels.negative_log(fractions, out)
    return out


def argsort(keys: NDArray[np.uint64] | NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.int64]:
    """Stable argsort of non-negative numbers; equal keys stay in their order.

    >>> argsort(np.array([3.0, 0.5, 3.0]))
    array([1, 0, 2])
    """
    # The bits of a non-negative IEEE double, read as a whole number, rise with it.
    bits = np.ascontiguousarray(keys).view(np.uint64)
    order, spare = np.empty(bits.size, np.int64), np.empty(bits.size, np.int64)
    _kernels.stable_argsort(bits, order, spare)
    return order


def shuffled(key: Key, count: int) -> NDArray[np.int64]:
    """A random permutation of 0..count-1: the numbers sorted by a random word each."""
    return argsort(words(key, count))

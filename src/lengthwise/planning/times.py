"""Times: how often epochs take each sequence, such as 0.4 times in a large source, 2.5 times in a small one.

times    [n] float64   mean number of copies of each sequence in an epoch: 2.5
counts   [n] int64     copies in one epoch: 2 or 3
copies   [m] int64     sequence numbers, rising, with repeats

Sequence i has a phase u from 0 to 1, the same in every epoch. The number of its copies in epoch e is
floor((e + 1) t + u) - floor(e t + u), where t is `times[i]`. So E epochs in a row take it E t times, rounded up or
down, and no epoch needs the one before. The phases of sequences with equal times are evenly spaced:

    t = 0.4, five sequences of phases   0.1  0.3  0.5  0.7  0.9
    epoch 0 takes those from 0.6 on                     x    x
    epoch 1, where they stand at        0.5  0.7  0.9  0.1  0.3
    takes those from 0.6 on                   x    x

So every epoch takes 5 t of the five sequences, rounded up or down. Neighbours in length have phases far apart, so that
all epochs take about the same lengths, and fill about the same number of steps.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key, argsort, sort_by
from lengthwise.choices.arithmetic import sum_rows

_REMEDY = "Give one number for each sequence, such as 0.5 to take it in every second epoch, or 2 for twice an epoch."
_MOST_COPIES = 2**28  # of an epoch: a plan of them takes about 13 GiB
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio
_NEIGHBOURS = 4  # sequences of about equal length that exchange their phases at random


def read_times(times: ArrayLike, count: int) -> NDArray[np.float64]:
    """Checks how often epochs take each of `count` sequences: a fresh array, [count].

    Args:
        times: [count], or one number for all.
        count: The number of sequences.

    Raises:
        TypeError: `times` are not numbers.
        ValueError: `times` are not [count], not finite, below 0, 0 for all, or more than an epoch can hold.

    >>> read_times([0.4, 2], 2), read_times(0.5, 2)
    (array([0.4, 2. ]), array([0.5, 0.5]))
    """
    checks.refuse_masked("times", times)
    try:
        array = np.asarray(times)
    except (TypeError, ValueError, RuntimeError) as error:  # rows of several widths, a tensor on a GPU
        raise checks.type_error("times", "a list of numbers", times, _REMEDY) from error
    if array.dtype.kind not in "iuf":
        raise checks.type_error("times", "a list of numbers", times, _REMEDY)
    if array.shape not in ((), (count,)):
        rule = f"of shape [{count}], or one number for all"
        raise checks.value_error("times", rule, array.shape, _REMEDY)
    read = np.full(count, array, np.float64) + 0.0  # turns -0.0 into 0.0, so that both have one name
    good = np.isfinite(read) & (read >= 0)
    if not good.all():
        at = int(np.argmin(good))
        remedy = "Give 0 to leave a sequence out."
        raise checks.value_error("times", "finite and at least 0", float(read[at]), remedy, at=f"sequence {at}")
    if count and not read.any():
        remedy = "Leave `times` out to take each sequence once an epoch."
        raise checks.value_error("times", "above 0 for some sequence", 0.0, remedy)
    if (most := float(np.ceil(read).sum())) > _MOST_COPIES:
        remedy = "Give how often one epoch takes each sequence, not a share or a number of frames."
        raise checks.value_error("times", f"at most {_MOST_COPIES} in sum, rounded up", most, remedy)
    return read


def name_times(times: NDArray[np.float64]) -> str:
    """Names checked times by 16 hex digits, the same on every platform."""
    return hashlib.blake2b(np.ascontiguousarray(times, "<f8").data, digest_size=8).hexdigest()


class Copies(NamedTuple):
    """The copies of all epochs: whole copies of each sequence, and a fraction with its phase.

    Attributes:
        name: The name of the times and the seed.
        whole: [n] int64, floor(times).
        fraction: [n] uint64, the rest of `times` in units of 2**-64: of 2.5 it is 2**63.
        phases: [n] uint64, in the same unit.
    """

    name: str
    whole: NDArray[np.int64]
    fraction: NDArray[np.uint64]
    phases: NDArray[np.uint64]

    def take(self, epoch: int) -> NDArray[np.int64]:
        """Returns the number of copies of each sequence in an epoch: [n]."""
        # Products and sums drop the bits above 64, which count whole copies. So they are exact in every epoch.
        start = self.fraction * np.uint64(epoch) + self.phases
        return self.whole + (start + self.fraction < start)

    def most(self) -> NDArray[np.int64]:
        """Returns the most copies of each sequence in any epoch: [n]."""
        return self.whole + (self.fraction > 0)


def draw_copies(times: NDArray[np.float64], lengths: NDArray[np.int64], seed: int) -> Copies:
    """Draws the phase of each sequence, by the checked times and the lengths, [n] or [n, dims].

    References:
        Systematic sampling: Madow and Madow 1944; Cochran 1977, "Sampling techniques", chapter 8. Deviations: each
        group of equal times is sampled by itself, and passes through its lengths in steps of the golden ratio. The next
        epoch goes on where the last one stopped.

    >>> copies = draw_copies(np.array([0.4, 0.4, 0.4, 0.4, 0.4, 2.5]), np.array([5, 9, 2, 4, 8, 7]), seed=0)
    >>> [copies.take(epoch).tolist() for epoch in range(3)]
    [[1, 0, 0, 1, 0, 3], [0, 1, 0, 0, 1, 2], [0, 0, 1, 1, 0, 3]]
    """
    floor = np.floor(times)
    fraction = ((times - floor) * 2.0**64).astype(np.uint64)  # exact: a power of two
    name = f"{name_times(times)} of seed {seed}"
    sizes = lengths if lengths.ndim == 1 else sum_rows(lengths)
    return Copies(name, floor.astype(np.int64), fraction, _draw_phases(times, sizes, Key(seed=seed, stage="times")))


def _draw_phases(times: NDArray[np.float64], sizes: NDArray[np.int64], key: Key) -> NDArray[np.uint64]:
    """Draws a phase for each sequence, in units of 2**-64: [n].

    The phases of a group of equal times are evenly spaced. The rank by size decides which of them a sequence gets.
    """
    order = sort_by(sort_by(key.permutation(len(times)), sizes), times)
    rising = times[order]
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(rising)), bool), rising[1:] != rising[:-1]]))
    counts = np.diff(starts, append=len(rising))
    group = np.repeat(np.arange(len(starts)), counts)
    first = np.repeat(starts, counts)
    rank = np.arange(len(times)) - first
    # Four neighbours change places at random, so that different seeds bring different pairs together.
    four = first + rank // _NEIGHBOURS * _NEIGHBOURS
    order = order[sort_by(key.at("times", lane=2).permutation(len(times)), four)]
    # Multiples of the golden ratio spread any ranks in a row about evenly over the circle.
    steps = rank.astype(np.uint64) * _GOLDEN
    place = np.empty(len(times), np.int64)
    place[sort_by(argsort(steps), group)] = rank
    phases = np.empty(len(times), np.uint64)
    size = counts.astype(np.uint64)
    phases[order] = _space_evenly(place.astype(np.uint64), group, size, key.at("times", lane=1).words(len(size)))
    return phases


def _space_evenly(
    place: NDArray[np.uint64], group: NDArray[np.int64], size: NDArray[np.uint64], offset: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    """Turns the places 0..m-1 of each group, of `size` m, into phases that divide the circle evenly: [n].

    Phases are floor((place 2**64 + offset) / m). 2**64 itself needs 65 bits, so it is written as step x m + remainder.
    The numbers of phases in two arcs of equal length differ by one at most.
    """
    step = np.negative(size) // size + np.uint64(1)
    remainder = np.negative(step * size)
    spaced = place * remainder[group]
    spaced += (offset % size)[group]
    spaced //= size[group]
    spaced += (offset // size)[group]
    spaced += place * step[group]
    return spaced


def copies_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the sequence of each copy, rising.

    >>> copies_of(np.array([2, 0, 1]))
    array([0, 0, 2])
    """
    return np.repeat(np.arange(len(counts)), counts)

"""Bands: sorts sequences of several lengths into a line on which neighbours are similar in all lengths.

Sorted by their sum, (2, 9) and (9, 2) are neighbours, and a batch of both is padded to (9, 9). So the first length is
divided into bands. Within a band, sequences are sorted by the second length, up in one band and down in the next:

    first length    1..4      5..9
    second length   1 3 8     9 5 2      the line: (1, 1) (4, 3) (2, 8) | (6, 9) (9, 5) (5, 2)

With three lengths, a band of the first is divided into bands of the second, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lengthwise import _exact

_EQUAL = 1e-6  # the variance below which lengths count as equal
_SAMPLE = 2**14  # sequences whose spread represents all
_COUNTED = 2**16  # values below this are always ranked by a table
# Measured on real and generated pairs in 8 to 1,000 batches: a few more bands pad less. The last three give the padding
# of batches in standard deviations.
_MORE = 1.25
_VALUES = 6.0  # the range of nearly all lengths, in standard deviations
_PER_BAND, _PER_BATCH, _BESIDE_SUM = 2.4, 1.4, 1.5


def count_bands(lengths: NDArray[np.int64], batches: float) -> tuple[int, ...]:
    """Counts the bands into which each length but the last is divided, so that sorted batches pad little.

    The number makes a batch about equally wide in each length, and is rounded to a power of two. Let s be the standard
    deviation of the first of two lengths, and t that of the second among sequences of one first length. In M batches, b
    bands are s/b wide, and the M/b batches of a band are t b/M wide. The two are equal for b = sqrt(M s/t).

    Args:
        lengths: [n, dims], at least two lengths a sequence.
        batches: The batches that are sorted together.

    Returns:
        `dims - 1` numbers. A number of n gives each value of the length a band of its own. No numbers if sorting by the
        sum of the lengths would pad less, as for correlated lengths in few batches.

    >>> pairs = np.array([[first, second] for first in range(40) for second in range(10)])
    >>> count_bands(pairs, 16), count_bands(pairs[:, ::-1], 16)
    ((8,), (2,))
    """
    batches = max(1.0, batches)
    # Whole numbers of at most 2**20, so that sums are exact, and the same on every platform.
    sample = lengths[:: max(1, len(lengths) // _SAMPLE)]
    unit = 1 + int(sample.max()) // 2**20
    sample = sample // unit
    columns = np.column_stack([sample.sum(axis=1), sample])
    means = columns.sum(axis=0) / len(columns)
    products = (columns[:, :, None] * columns[:, None, :]).sum(axis=0)
    covariance = products / len(columns) - np.outer(means, means)
    spreads, dims = _spreads_in_turn(covariance[1:, 1:]), lengths.shape[1]
    beside_sum = sum(_spreads_in_turn(covariance[np.ix_([0, dim], [0, dim])])[1] for dim in range(1, dims + 1))
    by_sum = _PER_BATCH * math.sqrt(covariance[0, 0]) / batches + _BESIDE_SUM * beside_sum
    if _PER_BAND * dims * _root(math.prod(spreads) / batches, dims) > by_sum:
        return ()
    bands, left = list[int](), batches
    for dim in range(dims - 1):
        width = _root(math.prod(spreads[dim:]) / left, dims - dim)
        count = 2 ** max(0, round(_exact.log(_MORE * spreads[dim] / width) / _exact.log(2.0)))
        # If a band held only a batch or two, its borders would mainly split batches. More bands than values are no use
        # either. In both cases each value gets a band of its own, which pads nothing.
        if 2 * count > left or count > max(1.0, _VALUES * unit * spreads[dim]):
            count = len(lengths)
        bands.append(count)
        left = max(1.0, left / count)
    return tuple(bands)


def _spreads_in_turn(covariance: NDArray[np.float64]) -> list[float]:
    """Returns the standard deviation of each length among sequences that are equal in the lengths before it.

    >>> _spreads_in_turn(np.array([[4.0, 4.0], [4.0, 13.0]]))
    [2.0, 3.0]
    """
    spreads, left = list[float](), covariance.copy()
    for dim in range(len(left)):
        variance = max(float(left[dim, dim]), _EQUAL)
        spreads.append(math.sqrt(variance))
        left -= np.outer(left[dim], left[dim]) / variance
    return spreads


def _root(value: float, degree: int) -> float:
    return _exact.exp(_exact.log(value) / degree)


def line_up(lengths: NDArray[np.int64], bands: Sequence[int]) -> NDArray[np.int64]:
    """Returns the place of each sequence in the line, from 1: [n].

    Sequences of the same bands and the same last length share a place.

    Args:
        lengths: [n, dims], at least two lengths a sequence.
        bands: The number of bands of each length but the last. Bands have about equal counts. If a length has fewer
            values, each value is a band. With 1 band, a length does not matter.

    >>> line_up(np.array([[4, 3], [5, 2], [2, 8], [6, 9], [1, 1], [9, 5]]), [2])
    array([2, 6, 3, 4, 1, 5])
    """
    places = np.zeros(len(lengths), np.int64)
    for column, count in zip(lengths.T, [*bands, len(lengths)], strict=True):
        band = _divide(_rank(column), count)
        width = int(band.max(initial=0)) + 1
        # In every other band of the earlier lengths, this length falls, so that the line does not jump between bands.
        np.subtract(width - 1, band, out=band, where=places % 2 == 1)
        places *= width
        places += band
        places = _rank(places)
    return places + 1


def _rank(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ranks `values` [n], at least 0, from 0 on; equal values share a rank.

    >>> _rank(np.array([30, 10, 30, 20]))
    array([2, 0, 2, 1])
    """
    if values.max(initial=0) < max(_COUNTED, 4 * len(values)):  # counting is faster than sorting
        return (np.cumsum(np.bincount(values) > 0) - 1).take(values)
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _divide(ranks: NDArray[np.int64], bands: int) -> NDArray[np.int64]:
    """Divides `ranks` [n] into at most `bands` of about equal counts, and returns the band of each."""
    counts = np.bincount(ranks)
    if len(counts) <= bands:
        return ranks
    # Counts [1, 6, 1] in 2 bands: the middles of their ranks are at 0.06, 0.5 and 0.94, so the bands are [0, 1, 1].
    middles = (np.cumsum(counts) - counts / 2) / len(ranks)
    return _rank(np.minimum((middles * bands).astype(np.int64), bands - 1)).take(ranks)

"""Bands: sequences of several lengths in a line on which neighbours are alike in all of them.

Sorted by their sum, (2, 9) and (9, 2) are neighbours, and a batch of both is padded to (9, 9). So the first length is
divided into bands, and inside of a band sequences go by the second, up in one band and down in the next:

    first length    1..4      5..9
    second length   1 3 8     9 5 2      the line: (1, 1) (4, 3) (2, 8) | (6, 9) (9, 5) (5, 2)

With three lengths, a band of the first is divided into bands of the second, and so on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_COUNTED = 2**16  # keys up to here are counted also where there are few of them
_COUNTED_EACH = 4  # so many keys for each sequence still take less time to count than to sort


def line_up(lengths: NDArray[np.int64], bands: int) -> NDArray[np.float64]:
    """The place of each sequence in the line, from 1: [n]. Sequences of one band and last length share a place.

    Args:
        lengths: [n, dims].
        bands: Into how many bands each length but the last is divided, of about equal counts; of a length that has
            fewer values, each is a band. 1 goes by the last length alone.

    >>> line_up(np.array([[4, 3], [5, 2], [2, 8], [6, 9], [1, 1], [9, 5]]), 2)
    array([2., 6., 3., 4., 1., 5.])
    """
    cell = np.zeros(len(lengths), np.int64)
    for dim in range(lengths.shape[1] - 1):
        band, count = _divide(lengths[:, dim], bands)
        # Every other cell is gone through backwards, so that the line does not jump where the next begins.
        cell = cell * count + np.where((cell & 1) == 1, count - 1 - band, band)
    last = _rank(lengths[:, -1])
    along = np.where((cell & 1) == 1, last.max(initial=0) - last, last)
    # The place goes by the cell, and in it by the last length: one number for both.
    return _rank(cell * (last.max(initial=0) + 1) + along).astype(np.float64) + 1.0


def _rank(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many smaller values there are among `keys` [n], from 0 on; equal keys share a rank.

    >>> _rank(np.array([30, 10, 30, 20]))
    array([2, 0, 2, 1])
    """
    most = int(keys.max(initial=0))
    if most < _COUNTED + _COUNTED_EACH * len(keys):  # few enough to count, and not to sort
        seen = np.zeros(most + 1, bool)
        seen[keys] = True
        # Narrow, because what is looked up at random should lie in the cache.
        return (np.cumsum(seen, dtype=np.int32 if most < 2**31 else np.int64) - 1).take(keys).astype(np.int64)
    return np.unique(keys, return_inverse=True)[1].reshape(-1)


def _divide(lengths: NDArray[np.int64], bands: int) -> tuple[NDArray[np.int64], int]:
    """The band of each of `lengths` [n], and how many bands there are. Equal lengths are of one band."""
    of_value = _rank(lengths)
    counts = np.bincount(of_value)
    if len(counts) <= bands:
        return of_value, max(1, len(counts))
    # Counts [1, 6, 1] in 2 bands: the middles of their ranks are at 0.06, 0.5 and 0.94, so the bands are [0, 1, 1].
    middle = (np.cumsum(counts) - counts / 2) / max(1, len(lengths))
    used, band = np.unique(np.minimum((middle * bands).astype(np.int64), bands - 1), return_inverse=True)
    return band.reshape(-1).take(of_value), len(used)

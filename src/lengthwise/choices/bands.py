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

from lengthwise import _random
from lengthwise.choices.columns import longest_of

_COUNTED = 2**16  # places that are told apart by a table also where there are few sequences
_COUNTED_EACH = 4  # so many places for each sequence still take less time in a table than in a sort


def line_up(lengths: NDArray[np.int64], bands: int) -> NDArray[np.int64]:
    """The place of each sequence in the line, from 1: [n]. Sequences of one band and last length share a place.

    Args:
        lengths: [n, dims], two or more of each sequence, in integers of any type.
        bands: Into how many bands each length but the last is divided, of about equal counts; of a length that has
            fewer values, each is a band. 1 goes by the last length alone.

    Returns:
        [n] int64.

    >>> line_up(np.array([[4, 3], [5, 2], [2, 8], [6, 9], [1, 1], [9, 5]]), 2)
    array([2, 6, 3, 4, 1, 5])
    """
    longest = longest_of(lengths)
    if longest.max() >= _COUNTED + len(lengths):  # too many to be counted: their ranks are not
        lengths = np.stack([_rank(column) for column in lengths.T], axis=1)
        longest = longest_of(lengths)
    *columns, lasts = lengths.T
    # A band is looked up for each value of a length, and not for each sequence.
    counts = [_count(column, int(most)) for column, most in zip(lengths.T, longest, strict=True)]
    tables, ranks = [_divide(each, bands) for each in counts[:-1]], _rank_values(counts[-1])
    cells, table, count = columns[0], *tables[0]
    for column, (places, width) in zip(columns[1:], tables[1:], strict=True):
        keys = _write(cells, table, column, places, width)
        cells, table, count = keys, table[:0], count * width
    width = int(ranks[-1]) + 1
    keys = _write(cells, table, lasts, ranks, width)
    if count * width < _COUNTED + _COUNTED_EACH * len(lengths):  # ranked by a table of all keys that there may be
        return np.cumsum(np.bincount(keys, minlength=count * width) > 0)[keys]
    return _rank(keys) + 1


def _count(values: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """How often each number from 0 to `most` stands in `values` [n]."""
    return np.bincount(values, minlength=most + 1)


def _rank_values(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many smaller values there are, by the `counts` of each value; of one that there is not, any number.

    >>> _rank_values(np.array([0, 2, 0, 1]))
    array([0, 0, 0, 1])
    """
    return np.maximum(np.cumsum(counts > 0) - 1, 0)


def _rank(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many smaller values there are among `keys` [n], at least 0, from 0 on; equal keys share a rank.

    >>> _rank(np.array([30, 10, 30, 20])).tolist()
    [2, 0, 2, 1]
    """
    order = _random.argsort(keys)
    rising = keys[order]
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.cumsum(np.append(False, rising[1:] != rising[:-1]))
    return ranks


def _divide(counts: NDArray[np.int64], bands: int) -> tuple[NDArray[np.int64], int]:
    """The band of each value, by the `counts` of each, and how many bands there are."""
    held, ranks = counts[counts > 0], _rank_values(counts)
    if len(held) <= bands:
        return ranks, max(1, len(held))
    # Counts [1, 6, 1] in 2 bands: the middles of their ranks are at 0.06, 0.5 and 0.94, so the bands are [0, 1, 1].
    middle = (np.cumsum(held) - held / 2) / held.sum()
    # They rise, and a band that nobody is in is left out.
    band = np.minimum((middle * bands).astype(np.int64), bands - 1)
    band = np.cumsum(np.append(0, band[1:] != band[:-1]))
    return band.take(ranks), int(band[-1]) + 1


def _write(
    cells: NDArray[np.int64], bands: NDArray[np.int64], lasts: NDArray[np.int64], ranks: NDArray[np.int64], width: int
) -> NDArray[np.int64]:
    """Returns a key for each sequence that rises along the line: [n].

    Every other cell is gone through backwards, so that the line does not jump where the next cell begins.

    Args:
        cells: [n], in which cell of the lengths before each sequence is, or what `bands` says of it.
        bands: The cell of each of these numbers; empty where they are cells.
        lasts: [n], the next length of each sequence.
        ranks: The place of each such length: a band of it, or its rank among all that there are.
        width: How many places there are.
    """
    cell, place = (bands[cells] if bands.size else cells), ranks[lasts]
    return cell * width + np.where(cell & 1, width - 1 - place, place)

"""Arithmetic on arrays of millions of lengths, and the multiples that hardware and compilers like.

multiple_of=8 pads a batch of the lengths 310, 87 and 95 to 312, and prices it so. count_multiple_of=8 prices a batch of
13 sequences as the 16 rows to which a collate function fills it up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks


def longest_of(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the largest of each column of `rows` [n, dims], 0 where there are no rows: [dims]."""
    return np.array([column.max(initial=0) for column in rows.T], np.int64)


def sum_rows(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the sum of each row of `rows` [n, dims]: [n]. Of one column it is that column, to be read only."""
    if rows.shape[1] == 1:
        return rows[:, 0]
    # Column after column: for each row by itself, as `sum(axis=1)` goes, NumPy takes ten times as long.
    total = rows[:, 0].copy()
    for column in rows.T[1:]:
        total += column
    return total


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Returns what `np.unique` gives: the distinct values, rising. `np.unique` imports numpy.ma, which takes longer.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    rising = np.sort(values)
    return np.concatenate([rising[:1], rising[1:][rising[1:] != rising[:-1]]])


_MOST = 2**20  # frames, or sequences: a multiple beyond is a mistake


def check_multiple(name: str, value: object) -> int:
    """Returns `value` as an int from 1 to 2**20."""
    return checks.check_whole(name, value, minimum=1, maximum=_MOST, remedy="Give 8, for example, or 1 for any number.")


def length_multiple(cut: object) -> int:
    """What padded lengths are multiples of by a cut, ours or the user's: its `multiple_of`, or 1."""
    return getattr(cut, "multiple_of", 1)


def count_multiple(cut: object) -> int:
    """Returns the multiple up to which the rows of batches are filled by a cut: its `count_multiple_of`, or 1."""
    return getattr(cut, "count_multiple_of", 1)


def most_sequences(cut: object) -> int | None:
    """Returns the most sequences that a cut allows in a batch whose rows are filled up; None for any number."""
    most: int | None = getattr(cut, "max_sequences", None)
    return None if most is None else int(round_counts(np.array([most]), count_multiple(cut))[0])


def round_up(lengths: NDArray[np.int64], multiple: int) -> NDArray[np.int64]:
    """Lengths rounded up to the next multiple.

    >>> round_up(np.array([1, 8, 9]), 8)
    array([ 8,  8, 16])
    """
    return lengths if multiple == 1 else -(-lengths // multiple) * multiple


def fill_up(counts: NDArray[np.int64], multiple: int) -> NDArray[np.int64]:
    """The rows that batches of so many sequences must have room for; a batch of less than the multiple stays as it is.

    >>> fill_up(np.array([5, 8, 13]), 8)
    array([ 5,  8, 16])
    """
    return counts if multiple == 1 else np.where(counts < multiple, counts, round_up(counts, multiple))


def round_counts(counts: NDArray[np.int64], multiple: int) -> NDArray[np.int64]:
    """The most sequences of full batches where a budget holds so many.

    >>> round_counts(np.array([5, 8, 13]), 8)
    array([5, 8, 8])
    """
    return np.where(counts < multiple, counts, counts // multiple * multiple)

"""Fast array helpers for millions of lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Found = TypeVar("_Found")

_FOLDED = 2**11  # rows
KEPT = 2**14  # numbers: to compare more of them, and to keep them, may cost more than it saves


def longest_of(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the largest of each column of `rows` [n, dims], 0 where there are no rows: [dims]."""
    longest = rows
    if rows.shape[1] > 1 and len(rows) >= _FOLDED and rows.flags.c_contiguous:
        # NumPy is quick where numbers lie side by side: so many rows are looked at as one.
        whole = len(rows) // _FOLDED * _FOLDED
        folded = rows[:whole].reshape(-1, _FOLDED * rows.shape[1]).max(axis=0)
        longest = np.concatenate([folded.reshape(_FOLDED, -1), rows[whole:]])
    return np.array([column.max(initial=0) for column in longest.T], np.int64)


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


def keep_last(function: Callable[[NDArray[Any]], _Found]) -> Callable[[NDArray[Any]], _Found]:
    """Returns the `function` of an array, called once for equal arrays in a row. Its result is to be read only.

    Of more than `KEPT` numbers nothing is kept, and it is called every time.

    >>> asked = []
    >>> double = keep_last(lambda numbers: asked.append(numbers.tolist()) or 2 * numbers)
    >>> [double(np.array(numbers)).tolist() for numbers in ([1, 2], [1, 2], [3])]
    [[2, 4], [2, 4], [6]]
    >>> asked
    [[1, 2], [3]]
    """
    kept: tuple[NDArray[Any], _Found] | None = None

    def ask(numbers: NDArray[Any]) -> _Found:
        nonlocal kept
        if len(numbers) > KEPT:
            return function(numbers)
        last = kept  # another thread may ask meanwhile
        if last is None or last[0].dtype != numbers.dtype or not np.array_equal(last[0], numbers):
            kept = last = numbers.copy(), function(numbers)
        return last[1]

    return ask


def small_whole(sizes: NDArray[Any], most: int) -> NDArray[np.int64] | None:
    """Returns `sizes` as int64 if all are whole and from 0 to `most`; else None."""
    if not (sizes.min(initial=0) >= 0 and sizes.max(initial=0) <= most):
        return None
    whole = sizes.astype(np.int64, copy=False)
    return whole if sizes.dtype.kind in "iu" or (whole == sizes).all() else None

"""Millions of lengths, looked at as seldom as possible.

NumPy is slow on rows of one number, [n, 1]: their column is as good, and many times as fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise._compile import cores

_Found = TypeVar("_Found")

_MANY = 2**17  # numbers: fewer are in the cache anyway
_FOLDED = 2**11  # rows
_AT_ONCE = 2**14  # numbers, which stay in the cache
KEPT = 2**14  # numbers: to compare more of them, and to keep them, may cost more than it saves


def take_rows(rows: NDArray[np.int64], index: NDArray[np.int64]) -> NDArray[np.int64]:
    """rows[index] of `rows` [n, dims]: a fresh array, [m, dims]."""
    numbers = as_numbers(rows)
    taken = numbers.take(index, axis=0) if len(index) < _MANY or rows.shape[1] == 1 else take_numbers(numbers, index)
    return taken.view(rows.dtype).reshape(len(index), rows.shape[1])


def take_numbers(numbers: NDArray[Any], index: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """numbers[index] of `numbers` [n] or [n, dims]: a fresh array. NumPy's `take` copies an index of four bytes."""
    if numbers.ndim == 2:
        return numbers.take(index, axis=0)
    found = np.empty(len(index), numbers.dtype)
    _look_up_on_cores(numbers, found, index)
    return found


def as_numbers(rows: NDArray[Any]) -> NDArray[Any]:
    """The memory of `rows` [n] or [n, dims] as one number each, [n], where that is possible; else as they are.

    Two lengths of two bytes each are moved as one number of four, many times as fast.
    """
    if rows.ndim == 1 or rows.shape[1] == 1:
        return rows.reshape(len(rows))
    width = rows.shape[1] * rows.itemsize
    return rows.view(f"u{width}")[:, 0] if width in (4, 8) and rows.flags.c_contiguous else rows


def narrow(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """`lengths` [n] or [n, dims] of at least 0 in two bytes each, where these hold them; else as they are.

    Whoever computes with them must do so in int64: 300 x 300 needs more than two bytes.
    """
    narrowed: NDArray[Any] = lengths.astype(np.uint16, copy=False) if int(lengths.max(initial=0)) < 2**16 else lengths
    return narrowed


def look_up(values: NDArray[Any], index: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """values[index] of numbers: a fresh array, [m], uint16 or float64 where `values` are, and int64 else.

    Of millions in random order nearly every number is fetched from memory. In two bytes each, many are in the cache.
    """
    kind = values.dtype if values.dtype in (np.uint16, np.float64) else np.dtype(np.int64)
    if len(index) < _MANY or len(values) > 2 * len(index):  # a narrow copy of all would take longer
        return values.take(index).astype(kind, copy=False)
    found = np.empty(len(index), kind)
    whole = small_whole(values) if values.dtype == np.int64 else None
    _look_up_on_cores(values if whole is None else whole, found, index)
    return found


def count_each(values: NDArray[Any]) -> NDArray[np.int64]:
    """How often each of 0, 1, ... up to the largest stands in `values` [n], as `np.bincount` counts larger types.

    >>> count_each(np.array([3, 0, 3], np.uint16))
    array([1, 0, 0, 2])
    """
    parts = cores.split(len(values))
    counts = np.zeros((len(parts), int(values.max(initial=0)) + 1), np.int64)
    cores.call(_kernels.count_groups, [(values[part], own) for part, own in zip(parts, counts, strict=True)])
    return counts.sum(axis=0)


def sum_groups(values: NDArray[np.integer[Any]], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of values[offsets[k] : offsets[k + 1]], each of at least one number: [groups], int64.

    >>> sum_groups(np.array([3, 1, 5]), np.array([0, 2, 3]))
    array([4, 5])
    """
    if len(offsets) > 1 and len(values) < _MANY:
        return np.add.reduceat(values, offsets[:-1], dtype=np.int64)
    sums = np.zeros(len(offsets) - 1, np.int64)
    _kernels.sum_groups(values, offsets, sums)
    return sums


def _look_up_on_cores(values: NDArray[Any], found: NDArray[Any], index: NDArray[np.integer[Any]]) -> None:
    """Writes values[index] into `found` [m]."""
    parts = cores.split(len(index))
    if not all(cores.call(_kernels.look_up, [(values, index[part], found[part]) for part in parts])):
        raise IndexError(f"`index` must be from 0 to {len(values) - 1}.")


def longest_of(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The largest of each column of `rows` [n, dims], 0 where there are no rows: [dims]."""
    longest = rows
    if rows.shape[1] > 1 and len(rows) >= _FOLDED and rows.flags.c_contiguous:
        # NumPy is quick where numbers lie side by side: so many rows are looked at as one.
        whole = len(rows) // _FOLDED * _FOLDED
        folded = rows[:whole].reshape(-1, _FOLDED * rows.shape[1]).max(axis=0)
        longest = np.concatenate([folded.reshape(_FOLDED, -1), rows[whole:]])
    return np.array([column.max(initial=0) for column in longest.T], np.int64)


def sum_rows(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sum of each row of `rows` [n, dims]: [n]. Of one column it is that column, to be read only.

    Of several columns it is int64; or uint16, where the rows are, and two bytes hold every sum.
    """
    if rows.shape[1] == 1:
        return rows[:, 0]
    fits = rows.dtype == np.uint16 and int(longest_of(rows).sum()) < 2**16
    # Column after column: for each row by itself, as `sum(axis=1)` goes, NumPy takes ten times as long.
    total: NDArray[Any] = rows[:, 0].astype(np.uint16 if fits else np.int64)
    for column in rows.T[1:]:
        total += column
    return total


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """What `np.unique` gives: the values that there are, rising. That loads all of numpy.ma, as long as a small plan.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    rising = np.sort(values)
    return np.concatenate([rising[:1], rising[1:][rising[1:] != rising[:-1]]])


def apply_once(
    function: Callable[[NDArray[np.float64]], NDArray[Any]], sizes: NDArray[np.float64], dtype: Any = None
) -> NDArray[Any]:
    """function(sizes) of a function that takes each of `sizes` [n] by itself, as `dtype` or as the function gives it.

    Where all are whole and small, it is asked about each whole number once: about 0..6,000 for a million lengths.

    >>> apply_once(np.sqrt, np.array([4.0, 1.0, 4.0, 4.0]))
    array([2., 1., 2., 2.])
    """
    table, whole = _tabulate(function, sizes, dtype)
    return _apply_in_parts(function, sizes, dtype) if table is None else look_up(table, whole)


def add_once(
    function: Callable[[NDArray[np.float64]], NDArray[Any]], sizes: NDArray[np.float64], sums: NDArray[np.float64]
) -> None:
    """Adds what `apply_once` gives of each size to `sums` [n], in place: numbers beside them would be as large.

    >>> sums = np.array([0.5, 1.0])
    >>> add_once(np.sqrt, np.array([4.0, 9.0]), sums)
    >>> sums
    array([2.5, 4. ])
    """
    table, whole = _tabulate(function, sizes, None)
    for part in _parts_of(sizes):
        sums[part] += function(sizes[part]) if table is None else table.take(whole[part])


def keep_last(function: Callable[[NDArray[Any]], _Found]) -> Callable[[NDArray[Any]], _Found]:
    """The `function` of an array, called once for equal arrays in a row. What it found is to be read only.

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


def _tabulate(
    function: Callable[[NDArray[np.float64]], NDArray[Any]], sizes: NDArray[np.float64], dtype: Any
) -> tuple[NDArray[Any] | None, NDArray[Any]]:
    """What the function gives of 0, 1, 2, ..., and `sizes` as places in it; None where that is not worth it."""
    whole = small_whole(sizes, np.uint16, np.uint32)
    if whole is None or not (most := float(whole.max(initial=0))) < len(sizes) / 4:
        return None, sizes
    return _apply_in_parts(function, np.arange(most + 1.0), dtype), whole


def _parts_of(sizes: NDArray[Any]) -> list[slice]:
    return [slice(start, start + _AT_ONCE) for start in range(0, max(1, len(sizes)), _AT_ONCE)]


def _apply_in_parts(
    function: Callable[[NDArray[np.float64]], NDArray[Any]], sizes: NDArray[np.float64], dtype: Any
) -> NDArray[Any]:
    """The same, asked about some at a time: the numbers that the function computes with stay in the cache."""
    first, *others = _parts_of(sizes)
    part = function(sizes[first])
    found = np.empty(len(sizes), dtype or part.dtype)
    found[first] = part
    for other in others:
        found[other] = function(sizes[other])
    return found


def small_whole(sizes: NDArray[Any], *kinds: type[np.integer[Any]]) -> NDArray[Any] | None:
    """`sizes`, where they are whole and at least 0, in the first of `kinds` that holds them; None where none does.

    Without `kinds`, uint16: from 0 to 2**16 - 1.
    """
    least, most = sizes.min(initial=0), sizes.max(initial=0)
    for kind in kinds or (np.uint16,):
        if 0 <= least <= most <= np.iinfo(kind).max:
            whole = sizes.astype(kind, copy=False)
            return whole if sizes.dtype.kind in "iu" or (whole == sizes).all() else None
    return None

"""Fast array helpers for millions of lengths, and the rounding of lengths and counts to multiples.

With multiple_of=8, the lengths 310, 87 and 95 are padded to 312, and the cost is that of 312. With count_multiple_of=8,
a collate function fills 13 sequences up to 16 rows, and the cost is that of 16 rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import _random, checks


def longest_of(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns [dims]: the largest value of each column of `rows` [n, dims], or 0 if there are no rows."""
    return np.array([column.max(initial=0) for column in rows.T], np.int64)


def one_length(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns lengths [n] or [n, 1] as [n]. Several lengths for a sequence raise ValueError.

    >>> one_length(np.array([[5], [9]]))
    array([5, 9])
    """
    if lengths.ndim == 1 or lengths.shape[1] == 1:
        return lengths.reshape(len(lengths))
    remedy = "Take one column, such as lengths[:, 0]; on the command line, give FILE:0."
    raise checks.value_error("lengths", "of shape [n]", lengths.shape, remedy)


def sum_rows(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums each row of `rows` [n, dims]: [n]. A single column is not copied: do not write to the result."""
    if rows.shape[1] == 1:
        return rows[:, 0]
    # Column after column: `sum(axis=1)` sums row by row, and takes ten times as long.
    total = rows[:, 0].copy()
    for column in rows.T[1:]:
        total += column
    return total


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Returns the distinct values, rising. `np.unique` would import numpy.ma, and take longer.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    rising = np.sort(values)
    return np.concatenate([rising[:1], rising[1:][rising[1:] != rising[:-1]]])


def keep_multiples(choice: object, *names: str) -> None:
    """Checks and stores the fields `names` of a frozen dataclass, each from 1 to 2**20 frames or sequences."""
    remedy = "Give a whole number such as 8; with 1, nothing is rounded."
    for name in names:  # a larger multiple is a mistake
        checks.keep_whole(choice, name, maximum=2**20, remedy=remedy)


def length_multiple(cut: object) -> int:
    """Returns `cut.multiple_of`, or 1 if the cut has none."""
    return getattr(cut, "multiple_of", 1)


def count_multiple(cut: object) -> int:
    """Returns `cut.count_multiple_of`, or 1 if the cut has none."""
    return getattr(cut, "count_multiple_of", 1)


def round_up(lengths: NDArray[np.int64], multiple: int) -> NDArray[np.int64]:
    """Rounds lengths up to the next multiple.

    >>> round_up(np.array([1, 8, 9]), 8)
    array([ 8,  8, 16])
    """
    return lengths if multiple == 1 else -(-lengths // multiple) * multiple


def raise_counts(counts: NDArray[np.int64], multiple: int) -> NDArray[np.int64]:
    """Rounds counts up to the next multiple, as rows are filled up; a count below the multiple stays.

    >>> raise_counts(np.array([5, 8, 13]), 8)
    array([ 5,  8, 16])
    """
    return counts if multiple == 1 else np.where(counts < multiple, counts, round_up(counts, multiple))


def lower_counts(counts: NDArray[np.int64], multiple: int) -> NDArray[np.int64]:
    """Rounds counts down to a multiple, so that `raise_counts` cannot exceed them; a count below the multiple stays.

    >>> lower_counts(np.array([5, 8, 13]), 8)
    array([5, 8, 8])
    """
    return np.where(counts < multiple, counts, counts // multiple * multiple)


def sort_parts(
    sequences: NDArray[np.int64], sizes: NDArray[Any], starts: NDArray[np.int64], *, turned: bool = False
) -> NDArray[np.int64]:
    """Sorts each part of `sequences` [n] by size. Equal sizes keep their order, or reverse it in a turned part.

    Args:
        sequences: Each of 0..n-1 once.
        sizes: [n], the sizes of the sequences 0, 1, ...
        starts: [parts], rising from 0: part p is sequences[starts[p]:starts[p + 1]].
        turned: If True, the second, the fourth, ... part is turned: sorted from long to short. The others are sorted
            from short to long.

    >>> sort_parts(np.array([3, 0, 2, 1, 4]), np.array([5.0, 9.0, 2.0, 7.0, 8.0]), np.array([0, 3]), turned=True)
    array([2, 0, 3, 1, 4])
    """
    counts = np.diff(np.append(starts, len(sequences)))
    part_of = np.repeat(np.arange(len(starts)), counts)
    part_sizes = sizes[sequences]
    beyond = int(part_sizes.max(initial=0)) + 1
    if part_sizes.dtype.kind == "i" and beyond * len(starts) < 2**40:  # `argsort` is exact below 2**40
        order = _random.argsort(part_of * beyond + part_sizes)
    else:  # both sorts are stable: by size, then by part
        order = _random.sort_by(_random.argsort(part_sizes), part_of)
    if turned:
        # A part of the positions 2 and 3 becomes 3 and 2.
        turns = part_of % 2 == 1
        mirrored = np.repeat(2 * starts + counts - 1, counts)[turns] - np.flatnonzero(turns)
        order[turns] = order[mirrored]
    return sequences[order]

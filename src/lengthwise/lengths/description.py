"""The description of a set of lengths, its fingerprint, and the bars of its histogram."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.lengths.arrays import as_lengths, fingerprint

_PERCENTS = (1, 5, 25, 50, 75, 95, 99)
_LONG = 10  # times the median: where the longest is longer than this, bars of equal width would show one bar alone


@dataclass(frozen=True, kw_only=True, slots=True)
class Description:
    """A set of lengths in a few numbers. Each tuple holds one entry per dimension.

    Attributes:
        count: Number of sequences.
        dims: Lengths of each sequence.
        min: Shortest. Without sequences it is an empty tuple, as are `quantiles`, `mean` and `max`.
        quantiles: [dims][7]: the smallest length that 1, 5, 25, 50, 75, 95 and 99 % of the sequences do not exceed.
        mean: Mean.
        max: Longest.
        total: Sum, exact however large.
        fingerprint: 16 hex digits; see `fingerprint`.
    """

    count: int
    dims: int
    min: tuple[int, ...]
    quantiles: tuple[tuple[int, ...], ...]
    mean: tuple[float, ...]
    max: tuple[int, ...]
    total: tuple[int, ...]
    fingerprint: str

    def as_dict(self) -> dict[str, Any]:
        """Returns what `json.dumps` takes: lists per dimension, each of its quantiles by its percentage.

        >>> describe([2, 4, 9]).as_dict()["quantiles"]
        [{'1': 2, '5': 2, '25': 2, '50': 4, '75': 9, '95': 9, '99': 9}]
        """
        fields = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return fields | {"quantiles": [dict(zip(map(str, _PERCENTS), row, strict=True)) for row in self.quantiles]}


def describe(lengths: ArrayLike) -> Description:
    """Describes lengths: count, range, quantiles, mean, total and fingerprint.

    Args:
        lengths: [n] or [n, dims], as `as_lengths` takes them; n = 0 is legal.

    Raises:
        ValueError: As `as_lengths`.
        TypeError: As `as_lengths`.

    >>> describe([[3, 10], [5, 30]]).mean
    (4.0, 20.0)
    """
    checked = as_lengths(lengths)
    count, dims = len(checked), 1 if checked.ndim == 1 else checked.shape[1]
    # Each dimension by itself: its shortest, its quantiles and its longest are then rows of the table.
    table = np.sort(checked.reshape(count, dims), axis=0)
    total = tuple(_exact_sum(table[:, dim]) for dim in range(dims))
    return Description(
        count=count,
        dims=dims,
        min=tuple(table[0].tolist()) if count else (),
        quantiles=tuple(map(tuple, table[_quantile_rows(count)].T.tolist())) if count else (),
        mean=tuple(dim_total / count for dim_total in total) if count else (),
        max=tuple(table[-1].tolist()) if count else (),
        total=total,
        fingerprint=fingerprint(checked),
    )


def _quantile_rows(count: int) -> list[int]:
    # In whole numbers, so that 95 % of 20 is 19 and never 19.000000000000004: ceil(percent * count / 100) - 1.
    return [-(-percent * count // 100) - 1 for percent in _PERCENTS]


def _exact_sum(column: NDArray[np.int64]) -> int:
    # The columns are sorted: the longest times the count bounds the sum, so that it is seldom added in Python.
    if column.size and int(column[-1]) > (2**63 - 1) // column.size:
        return sum(column.tolist())
    return int(column.sum())


def has_long_tail(lengths: NDArray[np.int64]) -> bool:
    """Says whether the longest of lengths [n] is far longer than most, and none is 0.

    >>> has_long_tail(np.array([1, 2, 3])), has_long_tail(np.array([1, 2, 3, 90]))
    (False, True)
    """
    return bool(lengths.min() > 0 and lengths.max() > _LONG * float(np.median(lengths)))


def bar_starts(lengths: NDArray[np.int64], *, most: int) -> NDArray[np.int64]:
    """Returns where at most so many bars begin, and the end of the last: [bars + 1].

    >>> bar_starts(np.array([2, 3, 7]), most=2)
    array([2, 5, 8])
    >>> bar_starts(np.array([1, 1, 1, 1, 99]), most=2)  # each as many times as wide as the one before
    array([  1,  10, 100])

    Args:
        lengths: [n], at least one.
        most: How many bars there may be.
    """
    low, high = int(lengths.min()), int(lengths.max())
    if has_long_tail(lengths):
        return np.unique(np.rint(np.geomspace(low, high + 1, most + 1)).astype(np.int64))
    width = -(-(high - low + 1) // most)
    return np.arange(low, high + width + 1, width)

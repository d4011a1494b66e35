"""Bars of a histogram of lengths: of equal width, or wider to the right where few are far longer than most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LONG = 10  # times the median: where the longest is longer than this, bars of equal width would show one bar alone


def has_long_tail(lengths: NDArray[np.int64]) -> bool:
    """Whether the longest of lengths [n] is far longer than most, and none is 0.

    >>> has_long_tail(np.array([1, 2, 3])), has_long_tail(np.array([1, 2, 3, 90]))
    (False, True)
    """
    return bool(lengths.min() > 0 and lengths.max() > _LONG * float(np.median(lengths)))


def bar_starts(lengths: NDArray[np.int64], *, most: int) -> NDArray[np.int64]:
    """Where at most so many bars begin, and the end of the last: [bars + 1].

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

"""Bounds of the speed-up by buckets, computed from the lengths.

Every sequence is padded to the edge of its bucket. If all frames take equally long, Q buckets speed up an epoch by the
padded frames in one bucket over those in Q: eq. 1 over eq. 2 of Khomenko et al. 2016, where we read eq. 2 as a sum over
the buckets. Time that does not depend on frames makes the speed-up less. Lengths here are int64 [n].
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import check_number, check_whole

SEQUENCES = 10_000  # of each family
MEDIAN = 200.0  # of log-normal lengths; except for rounding, the speed-up does not depend on it


def speed_up_bound(lengths: NDArray[np.int64], buckets: int) -> float:
    """Returns the padded frames with one bucket over those with `buckets` optimal ones.

    >>> speed_up_bound(np.array([1, 1, 4]), 2)  # 3 x 4 frames, or 2 x 1 + 1 x 4
    2.0
    """
    edges = lw.optimal_edges(lengths, buckets)
    return len(lengths) * int(lengths.max()) / int(edges[np.searchsorted(edges, lengths)].sum())


def bound_of(name: str, lengths: NDArray[np.int64], buckets: tuple[int, ...]) -> dict[str, Any]:
    """Returns the greatest speed-ups that buckets allow on some lengths, as plain JSON of three digits.

    "speed_ups" are those with optimal edges, by the number of buckets. "limit" is that with one bucket per length:
    longest over mean.
    """
    return {
        "lengths": name,
        "sequences": len(lengths),
        "speed_ups": {str(count): round(speed_up_bound(lengths, count), 3) for count in buckets},
        "limit": round(float(lengths.max() / lengths.mean()), 3),
    }


def log_normal(sigma: float, count: int = SEQUENCES) -> NDArray[np.int64]:
    """Returns log-normal lengths, median `MEDIAN`, at the middles of `count` equally likely parts, rounded up.

    >>> log_normal(0.5, 3).tolist()
    [124, 200, 325]
    """
    check_number("sigma", sigma, maximum=10.0, remedy="Give the standard deviation of the logarithm, such as 0.5.")
    return np.ceil(MEDIAN * np.exp(sigma * _normal_middles(count))).astype(np.int64)


def sigma_that_allows(speed_up: float, *, buckets: int, count: int = SEQUENCES) -> float:
    """Returns the smallest sigma, to 0.001, at which log-normal lengths allow a speed-up by `buckets` buckets.

    The bound rises with sigma, so bisection finds it. The answer holds for `count` sequences: with more of them the
    longest is longer, and a smaller sigma suffices.
    """
    check_number("speed_up", speed_up, minimum=1.0, maximum=10.0, remedy="Give a factor such as 4.")
    low, high = 0.0, 4.0
    while high - low > 0.001:
        middle = (low + high) / 2
        if speed_up_bound(log_normal(middle, count), buckets) < speed_up:
            low = middle
        else:
            high = middle
    return high


def families() -> dict[str, NDArray[np.int64]]:
    """Returns the computed lengths of each family, `SEQUENCES` of them."""
    shares = (np.arange(SEQUENCES) + 0.5) / SEQUENCES
    return {
        "all alike": np.full(SEQUENCES, 200),
        "uniform from 1 on": np.arange(1, SEQUENCES + 1),
        "one in ten 10 times as long": np.repeat([100, 1000], [SEQUENCES * 9 // 10, SEQUENCES // 10]),
        "exponential": np.ceil(-MEDIAN * np.log1p(-shares)).astype(np.int64),
    }


@cache
def _normal_middles(count: int) -> NDArray[np.float64]:
    check_whole("count", count, minimum=1, remedy="Give how many lengths.")
    law = NormalDist()
    return np.array([law.inv_cdf((place + 0.5) / count) for place in range(count)])

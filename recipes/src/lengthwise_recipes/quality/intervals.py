"""Intervals: the mean of a few runs, and between what bounds it is known, by Student's t.

Where two strategies are trained from the same seeds, the interval of their differences, seed by seed, is the one to
look at: what a seed does to both falls out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lengthwise.checks import check_number, check_whole, value_error

CONFIDENCE = 0.95
_HALVINGS = 60  # of the bounds of an angle: as many as a float can tell apart


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A mean over runs and the bounds of its confidence interval; no bounds where there is one run alone.

    Attributes:
        mean: nan where a run diverged, and then the bounds are too.
        low, high: Infinite where nothing is known of them.
        runs: How many there were.
    """

    mean: float
    low: float
    high: float
    runs: int

    @property
    def excludes_zero(self) -> bool:
        """Whether the mean can be told apart from 0."""
        return self.low > 0.0 or self.high < 0.0

    @property
    def negative(self) -> Interval:
        """That of the differences taken the other way round."""
        return Interval(mean=-self.mean, low=-self.high, high=-self.low, runs=self.runs)

    @property
    def unknown(self) -> bool:
        """Whether it says nothing: of a run that diverged, or of one run alone."""
        return not (math.isfinite(self.low) and math.isfinite(self.high))


def interval(values: ArrayLike, *, confidence: float = CONFIDENCE) -> Interval:
    """The mean of `values` and its interval, mean -+ t s / sqrt(n), with s the standard deviation by n - 1.

    It holds for runs that are independent and about normal, and says nothing of other data or other settings.

    Args:
        values: [runs].
        confidence: Share of such intervals that hold the true mean, between 0 and 1.

    Raises:
        ValueError: No run, or `confidence` out of range.

    >>> found = interval([1.0, 2.0, 3.0])  # 2 -+ 4.3027 * 1 / sqrt(3)
    >>> round(found.low, 3), found.mean, round(found.high, 3)
    (-0.484, 2.0, 4.484)
    """
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not len(array):
        raise value_error("values", "of shape [runs], at least one", array.shape, "Give a number for each run.")
    mean = float(array.mean())
    if not math.isfinite(mean):
        return Interval(mean=math.nan, low=math.nan, high=math.nan, runs=len(array))
    reach = math.inf
    if len(array) > 1:
        reach = t_quantile(len(array) - 1, confidence) * float(array.std(ddof=1)) / math.sqrt(len(array))
    return Interval(mean=mean, low=mean - reach, high=mean + reach, runs=len(array))


def read_interval(found: Mapping[str, Any]) -> Interval:
    """An interval as JSON has it, where numbers that are not finite are null.

    >>> read_interval({"mean": 1.0, "low": None, "high": None, "runs": 1}).unknown
    True
    """
    mean, low, high = (math.nan if found[name] is None else found[name] for name in ("mean", "low", "high"))
    return Interval(mean=mean, low=low, high=high, runs=found["runs"])


def t_quantile(degrees: int, confidence: float = CONFIDENCE) -> float:
    """The t that |Student's t| of so many degrees of freedom stays below with probability `confidence`.

    >>> round(t_quantile(4), 4)
    2.7764
    """
    check_whole("degrees", degrees, minimum=1, remedy="Give the runs less one.")
    remedy = "Give a share between 0 and 1, such as 0.95."
    check_number("confidence", confidence, above=True, maximum=1.0 - 1e-9, remedy=remedy)
    low, high = 0.0, math.pi / 2
    for _ in range(_HALVINGS):
        angle = (low + high) / 2
        low, high = (angle, high) if _probability(degrees, angle) < confidence else (low, angle)
    return math.sqrt(degrees) * math.tan(low)


def _probability(degrees: int, angle: float) -> float:
    """The probability that |t| < sqrt(degrees) * tan(angle), a finite sum for whole degrees of freedom.

    References:
        Abramowitz and Stegun 1964, equations 26.7.3 (odd degrees) and 26.7.4 (even).
    """
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term, total = (cosine, 0.0) if odd else (1.0, 0.0)
    for factor in range(1 + odd, degrees, 2):
        total += term
        term *= factor / (factor + 1) * cosine**2
    return (angle + sine * total) * 2 / math.pi if odd else sine * total

"""Intervals: the mean of a few runs, between what bounds it is known, and what such runs could have told apart.

Where two strategies are trained from the same seeds, the interval of their differences, seed by seed, is the one to
look at: what a seed does to both falls out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from lengthwise.checks import value_error

CONFIDENCE = 0.95
POWER = 0.8  # the share of tries in which the smallest difference is told apart


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

    @property
    def smallest_difference(self) -> float:
        """The smallest true mean that as many runs, as far apart as these, tell apart from 0 in `POWER` of all tries.

        It is d s / sqrt(n), with s the standard deviation over the n runs and d the noncentrality at which a two-sided
        test by Student's t at 5 % has that power. A smaller difference may well be there and not be seen. Where the
        runs are differences of two strategies under the same seeds, this is the power of the paired test.

        s is that of the runs at hand, so of few runs this number is rough itself.

        Returns:
            In the unit of the mean; infinite of one run alone, nan where a run diverged.

        References:
            J. Cohen: Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 2 (case 4 is the paired
            test). Deviation: the chance to tell a difference apart in the wrong direction is left out; it is less than
            one in ten thousand from 3 runs on.

        >>> round(interval([1.0, 2.0, 3.0]).smallest_difference, 3)  # 5.6535 * 1 / sqrt(3)
        3.264
        """
        if self.unknown:
            return math.nan if math.isnan(self.mean) else math.inf
        t = _t_quantile(self.runs - 1)
        noncentrality = float(special.nctdtrinc(self.runs - 1, 1.0 - POWER, t))
        return noncentrality * (self.high - self.mean) / t


def smallest_shares(differences: Iterable[Interval], of: Iterable[float]) -> list[float]:
    """The smallest difference that could have been told apart, over a mean that it is compared with.

    Args:
        differences: One for each comparison.
        of: The mean of each comparison, such as the other strategy's loss, in the unit of the difference.

    Returns:
        One share for each comparison; none for a comparison that says nothing, by one run alone or one that diverged.

    >>> smallest_shares([interval([1.0, 2.0, 3.0]), interval([1.0])], [32.64, 5.0])[0].__round__(3)
    0.1
    """
    found = (each.smallest_difference / mean for each, mean in zip(differences, of, strict=True))
    return [share for share in found if math.isfinite(share)]


def interval(values: ArrayLike) -> Interval:
    """The mean of `values` and its interval of 95 %, mean -+ t s / sqrt(n), with s the standard deviation by n - 1.

    It holds for runs that are independent and about normal, and says nothing of other data or other settings.

    Args:
        values: [runs].

    Raises:
        ValueError: No run.

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
        reach = _t_quantile(len(array) - 1) * float(array.std(ddof=1)) / math.sqrt(len(array))
    return Interval(mean=mean, low=mean - reach, high=mean + reach, runs=len(array))


def read_interval(found: Mapping[str, Any]) -> Interval:
    """An interval as JSON has it, where numbers that are not finite are null.

    >>> read_interval({"mean": 1.0, "low": None, "high": None, "runs": 1}).unknown
    True
    """
    mean = math.nan if found["mean"] is None else found["mean"]
    low, high = (_bound(found[name], mean, side) for name, side in (("low", -math.inf), ("high", math.inf)))
    return Interval(mean=mean, low=low, high=high, runs=found["runs"])


def _bound(value: float | None, mean: float, side: float) -> float:
    """A bound as JSON has it: null is `side` of one run alone, and nan where a run diverged."""
    if value is not None:
        return value
    return math.nan if math.isnan(mean) else side


def _t_quantile(degrees: int) -> float:
    """The t that |Student's t| of so many degrees of freedom stays below with probability `CONFIDENCE`."""
    return float(special.stdtrit(degrees, (1.0 + CONFIDENCE) / 2))

"""Intervals: the mean of a few runs, its confidence interval, and the smallest difference that such runs would show.

If two strategies are trained from the same seeds, use the interval of their differences, seed by seed: the common
effect of a seed cancels out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lengthwise.checks import value_error

CONFIDENCE = 0.95
POWER = 0.8  # the share of studies that would show the smallest difference


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A mean over runs and the bounds of its confidence interval.

    Attributes:
        mean: nan if a run diverged; then the bounds are nan too.
        low, high: Infinite for a single run.
        runs: Number of runs.
    """

    mean: float
    low: float
    high: float
    runs: int

    @property
    def excludes_zero(self) -> bool:
        """True if the mean can be told apart from 0."""
        return self.low > 0.0 or self.high < 0.0

    @property
    def unknown(self) -> bool:
        """True if a run diverged or there is only one."""
        return not (math.isfinite(self.low) and math.isfinite(self.high))

    @property
    def smallest_difference(self) -> float:
        """The smallest true mean that runs like these would tell apart from 0 in `POWER` of all studies.

        It is d s / sqrt(n), with s the standard deviation over the n runs. d is the noncentrality at which a two-sided
        test by Student's t at 5 % has that power. A smaller difference may exist. If the runs are differences of two
        strategies under the same seeds, this is the power of the paired test. s is an estimate from these runs, so the
        result is rough for few runs.

        Returns:
            In the unit of the mean; infinite for a single run, nan if a run diverged.

        References:
            J. Cohen: Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 2 (case 4 is the paired
            test). Deviation: the probability of a result in the wrong direction is left out. It is less than one in
            ten thousand from 3 runs on.

        >>> round(interval([1.0, 2.0, 3.0]).smallest_difference, 3)  # 5.6535 * 1 / sqrt(3)
        3.264
        """
        if self.unknown:
            return math.nan if math.isnan(self.mean) else math.inf
        t = _t_quantile(self.runs - 1)
        from scipy import special  # only when it is used: `--help` shows the commands where SciPy is missing, too

        noncentrality = float(special.nctdtrinc(self.runs - 1, 1.0 - POWER, t))
        return noncentrality * (self.high - self.mean) / t


def interval(values: ArrayLike) -> Interval:
    """Returns the mean of `values` and its interval of 95 %: mean -+ t s / sqrt(n), s the standard deviation by n - 1.

    It assumes independent runs with about a normal distribution. It does not cover other data or other settings.

    Args:
        values: [runs].

    Raises:
        ValueError: No run.

    >>> bounds = interval([1.0, 2.0, 3.0])  # 2 -+ 4.3027 * 1 / sqrt(3)
    >>> round(bounds.low, 3), bounds.mean, round(bounds.high, 3)
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


def _t_quantile(degrees: int) -> float:
    """Returns the bound of |Student's t| with probability `CONFIDENCE`."""
    from scipy import special

    return float(special.stdtrit(degrees, (1.0 + CONFIDENCE) / 2))

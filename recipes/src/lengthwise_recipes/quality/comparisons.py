"""Paired differences between strategies, and whether more mixing goes with less loss.

A seed gives all strategies the same first weights, so strategies are compared seed by seed and the differences have the
interval. Of many comparisons at 95 % one in twenty excludes 0 by chance alone: say how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lengthwise_recipes.intervals import Interval, interval
from lengthwise_recipes.quality.outcomes import Outcome, equal_seconds
from lengthwise_recipes.quality.strategies import Compared

MEASURES = {
    "last": "on validation sequences after as many epochs",
    "equal_seconds": "on validation sequences in equal training time",
    "test_last": "on test sequences after as many epochs",
    "test_equal_seconds": "on test sequences in equal training time",
}
DECIDING = "test_equal_seconds"  # the measure that the library's default follows
FEWEST_RANKS = 3  # strategies: two are always in perfect order, or in the reverse of it

Losses = Mapping[str, Mapping[str, NDArray[np.float64]]]  # by label and measure, each [R]


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """One strategy's loss less another's at the same padding: below 0 the one is the better.

    Attributes:
        padding: The share that both were fitted to.
        one, other: Labels.
        measure: One of `MEASURES`.
        difference: In the unit of the loss.
    """

    padding: float
    one: str
    other: str
    measure: str
    difference: Interval


@dataclass(frozen=True, kw_only=True, slots=True)
class Correlation:
    """How mixing and loss go together over strategies of equal padding: below 0 where more mixing goes with less loss.

    Attributes:
        padding: The share that all were fitted to.
        strategies: How many.
        measure: One of `MEASURES`.
        correlation: Spearman's, mean over the seeds.
    """

    padding: float
    strategies: int
    measure: str
    correlation: Interval


def losses_of(found: Mapping[str, Outcome]) -> Losses:
    """Each strategy's losses after the last epoch, and in the time that the fastest takes for all of them."""
    seconds = equal_seconds(found)
    return {
        label: {
            "last": outcome.last("validation"),
            "equal_seconds": outcome.loss_at("validation", seconds),
            "test_last": outcome.last("test"),
            "test_equal_seconds": outcome.loss_at("test", seconds),
        }
        for label, outcome in found.items()
    }


def compare(compared: Sequence[Compared], losses: Losses) -> list[Comparison]:
    """Each pair of strategies of one batch size that were fitted to the same padding; the one is the first of them."""
    return [
        _comparison(padding, one.label, other.label, measure, losses)
        for padding, group in _groups(compared).items()
        for one, other in combinations(group, 2)
        for measure in MEASURES
    ]


def correlate(compared: Sequence[Compared], losses: Losses) -> list[Correlation]:
    """The rank correlation of mixing and loss at each padding where there are strategies enough, mean over seeds."""
    return [
        Correlation(
            padding=padding,
            strategies=len(group),
            measure=measure,
            correlation=_mean_correlation(group, losses, measure),
        )
        for padding, group in _groups(compared).items()
        if len(group) >= FEWEST_RANKS
        for measure in MEASURES
    ]


def rank_correlations(values: NDArray[np.float64], losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spearman's rank correlation of values [k] with each row of losses [R, k]: [R]; nan where a loss is.

    >>> rank_correlations(np.array([0.1, 0.2, 0.3]), np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]])).round(12).tolist()
    [-1.0, 0.5]
    """
    return np.array([_correlation(values, row) if np.isfinite(row).all() else np.nan for row in losses])


def _mean_correlation(group: Sequence[Compared], losses: Losses, measure: str) -> Interval:
    """Its bounds are kept within -1 and 1."""
    mixing = np.array([each.mixing for each in group])
    found = interval(rank_correlations(mixing, np.stack([losses[each.label][measure] for each in group], axis=1)))
    return replace(found, low=max(found.low, -1.0), high=min(found.high, 1.0))


def _correlation(values: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Spearman's; nan where all of one are equal, of which SciPy would warn."""
    if np.ptp(values) == 0.0 or np.ptp(others) == 0.0:
        return np.nan
    return float(np.corrcoef(stats.rankdata(values), stats.rankdata(others))[0, 1])


def _groups(compared: Sequence[Compared]) -> dict[float, list[Compared]]:
    """Strategies of one batch size by the padding they were fitted to."""
    groups: dict[float, list[Compared]] = {}
    for each in compared:
        padding = each.candidate.padding
        if padding is not None and not each.candidate.dynamic:
            groups.setdefault(padding, []).append(each)
    return groups


def _comparison(padding: float, one: str, other: str, measure: str, losses: Losses) -> Comparison:
    difference = interval(losses[one][measure] - losses[other][measure])
    return Comparison(padding=padding, one=one, other=other, measure=measure, difference=difference)

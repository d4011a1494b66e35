"""Paired differences between strategies, and the correlation of mixing and loss.

A seed gives all strategies the same first weights. So strategies are compared seed by seed, and the interval is that of
the differences. At 95 % one comparison in twenty excludes 0 by chance alone, so always say how many there are.
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
    "last": "on validation sequences after equally many epochs",
    "equal_seconds": "on validation sequences in equal training time",
    "test_last": "on test sequences after equally many epochs",
    "test_equal_seconds": "on test sequences in equal training time",
}
DECIDING = "test_equal_seconds"  # the measure that the library's default follows
FEWEST_RANKS = 3  # strategies: with two the correlation is always 1 or -1

Losses = Mapping[str, Mapping[str, NDArray[np.float64]]]  # by label and measure, each [R]


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The loss of `one` minus the loss of `other` at the same padding: below 0 `one` is better.

    Attributes:
        padding: The target share of both.
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
    """The correlation of mixing and loss over strategies of equal padding: below 0 if more mixing goes with less loss.

    Attributes:
        padding: The target share of all.
        strategies: Their number.
        measure: One of `MEASURES`.
        correlation: Spearman's, mean over the seeds.
    """

    padding: float
    strategies: int
    measure: str
    correlation: Interval


def losses_of(outcomes: Mapping[str, Outcome]) -> Losses:
    """Returns the losses of each strategy after the last epoch, and in the time of all epochs of the fastest."""
    seconds = equal_seconds(outcomes)
    return {
        label: {
            "last": outcome.last("validation"),
            "equal_seconds": outcome.loss_at("validation", seconds),
            "test_last": outcome.last("test"),
            "test_equal_seconds": outcome.loss_at("test", seconds),
        }
        for label, outcome in outcomes.items()
    }


def compare(compared: Sequence[Compared], losses: Losses) -> list[Comparison]:
    """Compares each pair of strategies of one batch size and the same target padding; `one` is the first of them."""
    return [
        _comparison(padding, first.label, second.label, measure, losses)
        for padding, group in _groups(compared).items()
        for first, second in combinations(group, 2)
        for measure in MEASURES
    ]


def correlate(compared: Sequence[Compared], losses: Losses) -> list[Correlation]:
    """Returns the rank correlation of mixing and loss at each padding with `FEWEST_RANKS` strategies or more."""
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
    """Returns Spearman's rank correlation of values [k] with each row of losses [R, k]: [R]; nan if a loss is nan.

    >>> rank_correlations(np.array([0.1, 0.2, 0.3]), np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]])).round(12).tolist()
    [-1.0, 0.5]
    """
    return np.array([_correlation(values, row) if np.isfinite(row).all() else np.nan for row in losses])


def _mean_correlation(group: Sequence[Compared], losses: Losses, measure: str) -> Interval:
    """Returns the mean over the seeds; its bounds are clipped to -1 and 1."""
    mixing = np.array([strategy.mixing for strategy in group])
    rows = np.stack([losses[strategy.label][measure] for strategy in group], axis=1)
    mean = interval(rank_correlations(mixing, rows))
    return replace(mean, low=max(mean.low, -1.0), high=min(mean.high, 1.0))


def _correlation(values: NDArray[np.float64], losses: NDArray[np.float64]) -> float:
    """Returns Spearman's correlation; nan if all values or all losses are equal."""
    if np.ptp(values) == 0.0 or np.ptp(losses) == 0.0:
        return np.nan
    return float(np.corrcoef(stats.rankdata(values), stats.rankdata(losses))[0, 1])


def _groups(compared: Sequence[Compared]) -> dict[float, list[Compared]]:
    """Groups the strategies of one batch size by their target padding."""
    groups: dict[float, list[Compared]] = {}
    for strategy in compared:
        padding = strategy.candidate.padding
        if padding is not None and not strategy.candidate.dynamic:
            groups.setdefault(padding, []).append(strategy)
    return groups


def _comparison(padding: float, first: str, second: str, measure: str, losses: Losses) -> Comparison:
    difference = interval(losses[first][measure] - losses[second][measure])
    return Comparison(padding=padding, one=first, other=second, measure=measure, difference=difference)

"""Paired differences between strategies, and whether more mixing goes with less loss.

A seed gives all strategies the same first weights, so strategies are compared seed by seed and the differences have the
interval. Of many comparisons at 95 % one in twenty excludes 0 by chance alone: say how many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lengthwise.recipes.quality.intervals import Interval, interval
from lengthwise.recipes.quality.outcomes import Outcome, equal_seconds
from lengthwise.recipes.quality.strategies import OURS, Compared

MEASURES = ("last", "least", "equal_seconds")
FEWEST_RANKS = 3  # strategies: two are always in perfect order, or in the reverse of it

Losses = Mapping[str, Mapping[str, NDArray[np.float64]]]  # by label and measure, each [R]


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Max-entropy's loss less another strategy's at the same padding: below 0 ours is the better.

    Attributes:
        padding: The share that both were fitted to.
        ours, other: Labels.
        measure: One of `MEASURES`.
        difference: In the unit of the loss.
    """

    padding: float
    ours: str
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
    """Each strategy's loss after the last epoch, the least, and the one in the time that the fastest takes for all."""
    seconds = equal_seconds(found)
    return {
        label: {"last": outcome.last, "least": outcome.least, "equal_seconds": outcome.loss_at(seconds)}
        for label, outcome in found.items()
    }


def compare(compared: Sequence[Compared], losses: Losses) -> list[Comparison]:
    """Ours beside every other strategy of one batch size that was fitted to the same padding."""
    found = []
    for padding, group in _groups(compared).items():
        for ours in (each.label for each in group if each.candidate.order == OURS):
            for other in (each.label for each in group if each.candidate.order != OURS):
                found += [_comparison(padding, ours, other, measure, losses) for measure in MEASURES]
    return found


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
    ranks = _ranks(values)
    return np.array([_correlation(ranks, _ranks(row)) if np.isfinite(row).all() else np.nan for row in losses])


def _mean_correlation(group: Sequence[Compared], losses: Losses, measure: str) -> Interval:
    """Its bounds are kept within -1 and 1."""
    mixing = np.array([each.mixing for each in group])
    found = interval(rank_correlations(mixing, np.stack([losses[each.label][measure] for each in group], axis=1)))
    return replace(found, low=max(found.low, -1.0), high=min(found.high, 1.0))


def _correlation(ranks: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    """Pearson's; nan where all of one are equal."""
    if ranks.std() == 0.0 or others.std() == 0.0:
        return np.nan
    return float(np.mean((ranks - ranks.mean()) * (others - others.mean())) / (ranks.std() * others.std()))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 0 on, equals sharing the mean of theirs."""
    below = (values[:, None] > values).sum(axis=1)
    equal = (values[:, None] == values).sum(axis=1)
    return below + (equal - 1) / 2


def _groups(compared: Sequence[Compared]) -> dict[float, list[Compared]]:
    """Strategies of one batch size by the padding they were fitted to."""
    groups: dict[float, list[Compared]] = {}
    for each in compared:
        padding = each.candidate.padding
        if padding is not None and not each.candidate.dynamic:
            groups.setdefault(padding, []).append(each)
    return groups


def _comparison(padding: float, ours: str, other: str, measure: str, losses: Losses) -> Comparison:
    difference = interval(losses[ours][measure] - losses[other][measure])
    return Comparison(padding=padding, ours=ours, other=other, measure=measure, difference=difference)

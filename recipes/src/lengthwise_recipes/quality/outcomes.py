"""The outcome of each strategy under each seed, as arrays.

losses    [R, E]   the deciding loss on held-out sequences after each epoch; nan if a run diverged
seconds   [R, E]   of planning and training each epoch

Other programs slow a machine in some minutes of a study. In each round every strategy trains one epoch, so its seconds
are divided by those of the median strategy of the round. The time of a strategy is the median of these ratios over all
rounds of all seeds, times the seconds of the median round. All epochs of a strategy compute about the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.study.results import EpochRow, RunRow

Part = Literal["validation", "test"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The outcome of one strategy.

    Attributes:
        losses: [R, E] for each held-out part, see the top of this file.
        seconds: [R, E], see the top of this file.
        seconds_per_epoch: See the top of this file.
        metrics: Other metrics after the last epoch, each [R] by name.
        steps: Mean optimiser steps of an epoch.
        padding_share: Mean padding share of the training batches.
    """

    losses: Mapping[Part, NDArray[np.float64]]
    seconds: NDArray[np.float64]
    seconds_per_epoch: float
    metrics: Mapping[str, NDArray[np.float64]]
    steps: float
    padding_share: float

    def last(self, part: Part) -> NDArray[np.float64]:
        """Returns the loss after the last epoch, [R]."""
        return self.losses[part][:, -1]

    def loss_at(self, part: Part, seconds: float) -> NDArray[np.float64]:
        """Returns the loss of each run at a time, [R], interpolated linearly between the epochs.

        It is nan before the end of the first epoch, and the last loss after the last epoch.
        """
        epochs = seconds / self.seconds_per_epoch
        ends = np.arange(1, self.seconds.shape[1] + 1)
        return np.array([np.interp(epochs, ends, losses, left=np.nan) for losses in self.losses[part]])


def outcomes(rows: Sequence[EpochRow], tests: Sequence[RunRow], *, losses: Mapping[Part, str]) -> dict[str, Outcome]:
    """Returns the outcome of each strategy by label, in the order of their first rows.

    Args:
        rows: Equally many epochs for every strategy and seed.
        tests: One for each strategy and seed, or none.
        losses: The name of the deciding loss on each part.
    """
    labels = dict.fromkeys(row.strategy for row in rows)
    runs = {label: _runs([row for row in rows if row.strategy == label]) for label in labels}
    seconds = {label: _seconds(runs_of_strategy) for label, runs_of_strategy in runs.items()}
    epoch_seconds = seconds_per_epoch(seconds)
    tested = {label: [row for row in tests if row.strategy == label] for label in labels}
    return {
        label: _outcome(runs[label], tested[label], losses, seconds[label], epoch_seconds[label]) for label in labels
    }


def seconds_per_epoch(seconds: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Returns the seconds of an epoch of each strategy, from its seconds [R, E], see the top of this file.

    >>> busy = np.array([[1.0, 5.0, 1.0]])  # in the second round the machine was busy
    >>> seconds_per_epoch({"slow": 2 * busy, "middle": busy, "fast": 0.5 * busy})
    {'slow': 2.0, 'middle': 1.0, 'fast': 0.5}
    """
    rounds = np.median(list(seconds.values()), axis=0)
    ratios = {label: np.median(strategy_seconds / rounds) for label, strategy_seconds in seconds.items()}
    return {label: float(ratio * np.median(rounds)) for label, ratio in ratios.items()}


def equal_seconds(outcomes: Mapping[str, Outcome]) -> float:
    """Returns the seconds of all epochs of the fastest strategy."""
    return min(outcome.seconds_per_epoch * outcome.seconds.shape[1] for outcome in outcomes.values())


def _runs(rows: Sequence[EpochRow]) -> list[list[EpochRow]]:
    """Returns the epochs of each seed, in order."""
    seeds = sorted({row.seed for row in rows})
    return [sorted((row for row in rows if row.seed == seed), key=lambda row: row.epoch) for seed in seeds]


def _seconds(runs: Sequence[Sequence[EpochRow]]) -> NDArray[np.float64]:
    """Returns the seconds of planning and training each epoch: [R, E]."""
    return np.array([[row.seconds + row.planning_seconds for row in run] for run in runs])


def _outcome(
    runs: Sequence[Sequence[EpochRow]],
    tests: Sequence[RunRow],
    losses: Mapping[Part, str],
    seconds: NDArray[np.float64],
    epoch_seconds: float,
) -> Outcome:
    tested = {row.seed: row.metrics for row in tests}
    ends = [{**run[-1].metrics, **tested.get(run[-1].seed, {})} for run in runs]
    rows = [row for run in runs for row in run]
    return Outcome(
        losses={part: _finite([[row.metrics[name] for row in run] for run in runs]) for part, name in losses.items()},
        seconds=seconds,
        seconds_per_epoch=epoch_seconds,
        metrics={name: _finite([end[name] for end in ends]) for name in ends[0] if name not in losses.values()},
        steps=float(np.mean([row.steps for row in rows])),
        padding_share=float(np.mean([row.padding_share for row in rows])),
    )


def _finite(values: Sequence[object]) -> NDArray[np.float64]:
    """Returns an array with nan in place of values that are not finite."""
    array = np.array(values, np.float64)
    return np.where(np.isfinite(array), array, np.nan)

"""What came out of each strategy under each seed, as arrays.

losses    [R, E]   the loss that strategies are judged by, on a part that is held out, after each epoch; nan where a
                   run diverged
seconds   [R, E]   of planning and training each epoch

What else a machine does slows some minutes of a study and not others. All strategies train an epoch in turn, so an
epoch is measured beside the others of its round: what a strategy takes is the median, over all rounds of all seeds, of
its seconds over those of the round's median strategy, times the seconds of the median round. All epochs of a strategy
compute about the same.
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
    """One strategy; `seconds` stand at the top of this file.

    Attributes:
        losses: Of each part that is held out, see the top of this file.
        seconds_per_epoch: See the top of this file.
        metrics: Others after the last epoch, each [R] by name.
        steps: Optimiser steps of an epoch, mean.
        padding_share: What the batches trained on padded, mean.
    """

    losses: Mapping[Part, NDArray[np.float64]]
    seconds: NDArray[np.float64]
    seconds_per_epoch: float
    metrics: Mapping[str, NDArray[np.float64]]
    steps: float
    padding_share: float

    def last(self, part: Part) -> NDArray[np.float64]:
        """The loss after the last epoch, [R]."""
        return self.losses[part][:, -1]

    def loss_at(self, part: Part, seconds: float) -> NDArray[np.float64]:
        """The loss of each run after so many seconds, [R]: on straight lines between the epochs.

        nan before the end of the first epoch; after the last one, the last loss.
        """
        done = seconds / self.seconds_per_epoch
        ends = np.arange(1, self.seconds.shape[1] + 1)
        return np.array([np.interp(done, ends, losses, left=np.nan) for losses in self.losses[part]])


def outcomes(rows: Sequence[EpochRow], tests: Sequence[RunRow], *, losses: Mapping[Part, str]) -> dict[str, Outcome]:
    """The outcome of each strategy by label, in the order in which they first appear.

    Args:
        rows: As many epochs for every strategy and seed.
        tests: One for each strategy and seed, or none.
        losses: The metric that strategies are judged by, on each part.
    """
    labels = dict.fromkeys(row.strategy for row in rows)
    runs = {label: _runs([row for row in rows if row.strategy == label]) for label in labels}
    seconds = {label: _seconds(each) for label, each in runs.items()}
    taken = seconds_per_epoch(seconds)
    tested = {label: [row for row in tests if row.strategy == label] for label in labels}
    return {label: _outcome(runs[label], tested[label], losses, seconds[label], taken[label]) for label in labels}


def seconds_per_epoch(seconds: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """What an epoch of each strategy takes, from the seconds [R, E] of each, see the top of this file.

    >>> busy = np.array([[1.0, 5.0, 1.0]])  # in the second round the machine did something else
    >>> seconds_per_epoch({"slow": 2 * busy, "middle": busy, "fast": 0.5 * busy})
    {'slow': 2.0, 'middle': 1.0, 'fast': 0.5}
    """
    rounds = np.median(list(seconds.values()), axis=0)
    return {label: float(np.median(each / rounds) * np.median(rounds)) for label, each in seconds.items()}


def equal_seconds(found: Mapping[str, Outcome]) -> float:
    """The seconds in which the fastest strategy is done with all its epochs."""
    return min(outcome.seconds_per_epoch * outcome.seconds.shape[1] for outcome in found.values())


def _runs(rows: Sequence[EpochRow]) -> list[list[EpochRow]]:
    """The epochs of each seed, in order."""
    seeds = sorted({row.seed for row in rows})
    return [sorted((row for row in rows if row.seed == seed), key=lambda row: row.epoch) for seed in seeds]


def _seconds(runs: Sequence[Sequence[EpochRow]]) -> NDArray[np.float64]:
    """Of planning and training each epoch: [R, E]."""
    return np.array([[row.seconds + row.planning_seconds for row in run] for run in runs])


def _outcome(
    runs: Sequence[Sequence[EpochRow]],
    tests: Sequence[RunRow],
    losses: Mapping[Part, str],
    seconds: NDArray[np.float64],
    taken: float,
) -> Outcome:
    tested = {row.seed: row.metrics for row in tests}
    ends = [{**run[-1].metrics, **tested.get(run[-1].seed, {})} for run in runs]
    rows = [row for run in runs for row in run]
    return Outcome(
        losses={part: _finite([[row.metrics[name] for row in run] for run in runs]) for part, name in losses.items()},
        seconds=seconds,
        seconds_per_epoch=taken,
        metrics={name: _finite([end[name] for end in ends]) for name in ends[0] if name not in losses.values()},
        steps=float(np.mean([row.steps for row in rows])),
        padding_share=float(np.mean([row.padding_share for row in rows])),
    )


def _finite(values: Sequence[object]) -> NDArray[np.float64]:
    """An array with nan for all that is not finite."""
    array = np.array(values, np.float64)
    return np.where(np.isfinite(array), array, np.nan)

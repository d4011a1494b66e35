"""What came out of each strategy under each seed, as arrays.

losses    [R, E]   the loss that strategies are judged by, on a part that is held out, after each epoch; nan where a
                   run diverged
seconds   [R, E]   of planning and training each epoch

What else a machine does falls on some epochs and not on others. So an epoch of a strategy is taken to last as long as
the median of all its epochs, under all seeds: they all compute about the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lengthwise.recipes.study.results import EpochRow, RunRow

Part = Literal["validation", "test"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One strategy; `seconds` stand at the top of this file.

    Attributes:
        losses: Of each part that is held out, see the top of this file.
        metrics: Others after the last epoch, each [R] by name.
        steps: Optimiser steps of an epoch, mean.
        padding_share: What the batches trained on padded, mean.
    """

    losses: Mapping[Part, NDArray[np.float64]]
    seconds: NDArray[np.float64]
    metrics: Mapping[str, NDArray[np.float64]]
    steps: float
    padding_share: float

    @property
    def seconds_per_epoch(self) -> float:
        """The median of all epochs of all runs."""
        return float(np.median(self.seconds))

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
    return {
        label: _outcome(
            [row for row in rows if row.strategy == label], [row for row in tests if row.strategy == label], losses
        )
        for label in labels
    }


def equal_seconds(found: Mapping[str, Outcome]) -> float:
    """The seconds in which the fastest strategy is done with all its epochs."""
    return min(outcome.seconds_per_epoch * outcome.seconds.shape[1] for outcome in found.values())


def _outcome(rows: Sequence[EpochRow], tests: Sequence[RunRow], losses: Mapping[Part, str]) -> Outcome:
    seeds = sorted({row.seed for row in rows})
    runs = [sorted((row for row in rows if row.seed == seed), key=lambda row: row.epoch) for seed in seeds]
    tested = {row.seed: row.metrics for row in tests}
    ends = [{**run[-1].metrics, **tested.get(seed, {})} for seed, run in zip(seeds, runs, strict=True)]
    return Outcome(
        losses={part: _finite([[row.metrics[name] for row in run] for run in runs]) for part, name in losses.items()},
        seconds=np.array([[row.seconds + row.planning_seconds for row in run] for run in runs]),
        metrics={name: _finite([end[name] for end in ends]) for name in ends[0] if name not in losses.values()},
        steps=float(np.mean([row.steps for row in rows])),
        padding_share=float(np.mean([row.padding_share for row in rows])),
    )


def _finite(values: Sequence[object]) -> NDArray[np.float64]:
    """An array with nan for all that is not finite."""
    array = np.array(values, np.float64)
    return np.where(np.isfinite(array), array, np.nan)

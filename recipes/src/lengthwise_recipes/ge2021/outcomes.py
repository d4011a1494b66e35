"""Losses and seconds of each strategy of Ge et al. 2021, table 2, in every epoch under every seed.

epoch_seconds     [repeats]         time of training and planning, in epochs apart, or in the median one of each seed
losses            [seeds, epochs]   validation loss after each epoch; nan if the run diverged
training_losses   [seeds, epochs]   mean loss during each epoch
steps             [seeds, epochs]   optimiser steps
padded_frames     [seeds, epochs]   computed frames, padding included
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.study.results import EpochRow, read_rows, runs_of, timed_rows

PAPER_EPOCHS = 220
PAPER_STAGES = (100, 160, 220)  # early, middle, late
STAGES = ("VL_1", "VL_2", "VL_3")
AVERAGE = "VL_avg"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One strategy; the arrays are explained at the top of this file."""

    epoch_seconds: NDArray[np.float64]
    losses: NDArray[np.float64]
    training_losses: NDArray[np.float64]
    steps: NDArray[np.int64]
    padded_frames: NDArray[np.float64]

    @property
    def seconds(self) -> float:
        """Seconds of a median epoch: a few disturbed ones do not count."""
        return float(np.median(self.epoch_seconds))

    def loss_at(self, seconds: float) -> NDArray[np.float64]:
        """Returns the smoothed loss after the last median epoch that ends by then, or the first, [seeds]."""
        epochs = min(max(int(seconds / self.seconds + 1e-9), 1), self.losses.shape[1])
        return smooth(self.losses)[:, epochs - 1]

    def late_loss(self) -> NDArray[np.float64]:
        """Returns VL_3 under each seed, [seeds]."""
        return self.stage_losses()[STAGES[-1]]

    def stage_losses(self) -> dict[str, NDArray[np.float64]]:
        """Returns VL_1, VL_2 and VL_3, and the mean loss from the first stage to the last, all [seeds].

        References:
            Ge et al. 2021, table 2.
        """
        places = np.array(stages(self.losses.shape[1])) - 1
        losses = dict(zip(STAGES, smooth(self.losses)[:, places].T, strict=True))
        return losses | {AVERAGE: self.losses[:, places[0] : places[-1] + 1].mean(axis=1)}


def outcomes(rows: Sequence[EpochRow], times: Sequence[EpochRow] = ()) -> dict[str, Outcome]:
    """Returns the outcome of each strategy, in order of appearance; all seeds have the same number of epochs.

    Args:
        rows: Of all runs.
        times: Epochs to take the times from; by default `rows`.
    """
    labels = dict.fromkeys(row.strategy for row in rows)
    return {label: _outcome(runs_of(rows, label), runs_of(times or rows, label)) for label in labels}


def outcomes_of(document: Mapping[str, Any]) -> dict[str, Outcome]:
    """Returns the outcomes of a rerun's document, read from JSON."""
    return outcomes(read_rows(document["study"]["rows"]), timed_rows(document["study"]))


def stages(epochs: int) -> tuple[int, ...]:
    """Returns the epochs, from 1, at the same shares of a training as the paper's stages.

    >>> stages(220), stages(11), stages(1)
    ((100, 160, 220), (5, 8, 11), (1, 1, 1))
    """
    return tuple(max(1, round(epochs * stage / PAPER_EPOCHS)) for stage in PAPER_STAGES)


def smooth(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Averages each loss with its neighbours, two or at the ends one; the shape [.., epochs] stays.

    Neighbours are one epoch apart. In the paper, which validates every second epoch, they are two apart.

    >>> smooth(np.array([[3.0, 6.0, 0.0, 4.0]])).round(3).tolist()
    [[4.5, 3.0, 3.333, 2.0]]
    """
    epochs = np.arange(losses.shape[-1])
    neighbours = np.abs(epochs[:, None] - epochs) <= 1
    return np.where(neighbours, losses[..., None, :], 0.0).sum(axis=-1) / neighbours.sum(axis=1)


def reduction(base: Outcome, changed: Outcome) -> NDArray[np.float64]:
    """Returns the share by which VL_3 falls from one strategy to another, [seeds]; below 0 if it rises."""
    return 1.0 - changed.late_loss() / base.late_loss()


def time_saving(base: Outcome, changed: Outcome) -> NDArray[np.float64]:
    """Returns the share by which an epoch becomes shorter from one strategy to another, [repeats]."""
    return 1.0 - changed.epoch_seconds / base.epoch_seconds


def frame_saving(base: Outcome, changed: Outcome) -> float:
    """Returns the share of the computed frames that another strategy saves: the most that less padding can save."""
    return float(1.0 - changed.padded_frames.mean() / base.padded_frames.mean())


def spreads(measures: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, float]]:
    """Returns mean, least and greatest over the seeds of each measure [seeds]."""
    return {
        name: {"mean": float(values.mean()), "least": float(values.min()), "greatest": float(values.max())}
        for name, values in measures.items()
    }


def _outcome(runs: Sequence[Sequence[EpochRow]], timed: Sequence[Sequence[EpochRow]]) -> Outcome:
    return Outcome(
        epoch_seconds=np.array([median(row.seconds + row.planning_seconds for row in run) for run in timed]),
        losses=np.array([[row.validation_loss for row in run] for run in runs]),
        training_losses=np.array([[row.training_loss for row in run] for run in runs]),
        steps=np.array([[row.steps for row in run] for run in runs]),
        padded_frames=np.array([[row.useful_frames / (1.0 - row.padding_share) for row in run] for run in runs]),
    )

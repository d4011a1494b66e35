"""Losses and seconds of each strategy of Ge et al. 2021, table 2, in every epoch under every seed.

losses            [seeds, epochs]   validation loss after each epoch; nan if the run diverged
training_losses   [seeds, epochs]   mean loss during each epoch
seconds           [seeds, epochs]   time of training and planning, without validation
steps             [seeds, epochs]   optimiser steps
padded_frames     [seeds, epochs]   computed frames, padding included
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.study.results import EpochRow, runs_of

PAPER_EPOCHS = 220
PAPER_STAGES = (100, 160, 220)  # early, middle, late
STAGES = ("VL_1", "VL_2", "VL_3")
AVERAGE = "VL_avg"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One strategy; the arrays are explained at the top of this file."""

    losses: NDArray[np.float64]
    training_losses: NDArray[np.float64]
    seconds: NDArray[np.float64]
    steps: NDArray[np.int64]
    padded_frames: NDArray[np.float64]

    @property
    def median_seconds(self) -> NDArray[np.float64]:
        """Seconds of the median epoch under each seed, [seeds]: a few disturbed epochs do not count."""
        return np.median(self.seconds, axis=1)

    def loss_at(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the smoothed loss after the last epoch that ends within `seconds` of training, [seeds].

        It is nan if no epoch does.
        """
        epochs = np.sum(np.cumsum(self.seconds, axis=1) <= seconds[:, None], axis=1)
        losses = np.concatenate([np.full((len(epochs), 1), np.nan), smooth(self.losses)], axis=1)
        return losses[np.arange(len(epochs)), epochs]

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


def outcomes(rows: Sequence[EpochRow]) -> dict[str, Outcome]:
    """Returns the outcome of each strategy, in order of appearance; all seeds have the same number of epochs."""
    return {label: _outcome(runs_of(rows, label)) for label in dict.fromkeys(row.strategy for row in rows)}


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
    """Returns the share by which an epoch becomes shorter from one strategy to another, [seeds]."""
    return 1.0 - changed.median_seconds / base.median_seconds


def frame_saving(base: Outcome, changed: Outcome) -> float:
    """Returns the share of the computed frames that another strategy saves: the most that less padding can save."""
    return float(1.0 - changed.padded_frames.mean() / base.padded_frames.mean())


def spreads(measures: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, float]]:
    """Returns mean, least and greatest over the seeds of each measure [seeds]."""
    return {
        name: {"mean": float(values.mean()), "least": float(values.min()), "greatest": float(values.max())}
        for name, values in measures.items()
    }


def _outcome(runs: Sequence[Sequence[EpochRow]]) -> Outcome:
    return Outcome(
        losses=np.array([[row.validation_loss for row in run] for run in runs]),
        training_losses=np.array([[row.training_loss for row in run] for run in runs]),
        seconds=np.array([[row.seconds + row.planning_seconds for row in run] for run in runs]),
        steps=np.array([[row.steps for row in run] for run in runs]),
        padded_frames=np.array([[row.useful_frames / (1.0 - row.padding_share) for row in run] for run in runs]),
    )

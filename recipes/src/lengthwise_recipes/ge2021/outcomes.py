"""What came out of each strategy of Ge et al. 2021, table 2: losses and seconds of every epoch under every seed.

losses            [seeds, epochs]   validation loss after each epoch; nan where a run diverged
seconds           [seeds, epochs]   of training and of planning, validation not counted
steps             [seeds, epochs]   optimiser steps
padded_frames     [seeds, epochs]   frames computed, padding among them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.study.results import EpochRow

PAPER_EPOCHS = 220
PAPER_STAGES = (100, 160, 220)  # early, middle, late
STAGES = ("VL_1", "VL_2", "VL_3")
AVERAGE = "VL_avg"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One strategy; its arrays stand at the top of this file."""

    losses: NDArray[np.float64]
    seconds: NDArray[np.float64]
    steps: NDArray[np.int64]
    padded_frames: NDArray[np.float64]

    @property
    def median_seconds(self) -> NDArray[np.float64]:
        """Of the median epoch under each seed [seeds]: what else the machine did in a few epochs does not count."""
        return np.median(self.seconds, axis=1)

    def loss_at(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Under each seed, the smoothed loss after the last epoch that ends within so many seconds of training [seeds].

        nan where not one epoch does.
        """
        done = np.sum(np.cumsum(self.seconds, axis=1) <= seconds[:, None], axis=1)
        known = np.concatenate([np.full((len(done), 1), np.nan), smooth(self.losses)], axis=1)
        return known[np.arange(len(done)), done]

    def late_loss(self) -> NDArray[np.float64]:
        """VL_3 under each seed [seeds]."""
        return self.stage_losses()[STAGES[-1]]

    def stage_losses(self) -> dict[str, NDArray[np.float64]]:
        """VL_1, VL_2 and VL_3, and the mean loss from the first of these stages to the last, each [seeds].

        References:
            Ge et al. 2021, table 2.
        """
        places = np.array(stages(self.losses.shape[1])) - 1
        found = dict(zip(STAGES, smooth(self.losses)[:, places].T, strict=True))
        return found | {AVERAGE: self.losses[:, places[0] : places[-1] + 1].mean(axis=1)}


def outcomes(rows: Sequence[EpochRow]) -> dict[str, Outcome]:
    """The outcome of each strategy, in the order in which they first appear; every seed has as many epochs."""
    labels = dict.fromkeys(row.strategy for row in rows)
    return {label: _outcome([row for row in rows if row.strategy == label]) for label in labels}


def stages(epochs: int) -> tuple[int, ...]:
    """The epochs, from 1, that lie as far in a training of `epochs` as the paper's stages in its 220.

    >>> stages(220), stages(11), stages(1)
    ((100, 160, 220), (5, 8, 11), (1, 1, 1))
    """
    return tuple(max(1, round(epochs * stage / PAPER_EPOCHS)) for stage in PAPER_STAGES)


def smooth(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each loss and those before and after it, of what there is of the three; the shape stays [.., epochs].

    Here neighbours are one epoch apart, in the paper, which validates every second epoch, two.

    >>> smooth(np.array([[3.0, 6.0, 0.0, 4.0]])).round(3).tolist()
    [[4.5, 3.0, 3.333, 2.0]]
    """
    epochs = np.arange(losses.shape[-1])
    near = np.abs(epochs[:, None] - epochs) <= 1
    return np.where(near, losses[..., None, :], 0.0).sum(axis=-1) / near.sum(axis=1)


def reduction(before: Outcome, after: Outcome) -> NDArray[np.float64]:
    """By what share VL_3 falls from one strategy to another, under each seed [seeds]; below 0 where it rises."""
    return 1.0 - after.late_loss() / before.late_loss()


def time_saving(before: Outcome, after: Outcome) -> NDArray[np.float64]:
    """By what share an epoch of one strategy is shorter than one of another, under each seed [seeds]."""
    return 1.0 - after.median_seconds / before.median_seconds


def frame_saving(before: Outcome, after: Outcome) -> float:
    """By what share fewer frames are computed: what padding alone allows to save."""
    return float(1.0 - after.padded_frames.mean() / before.padded_frames.mean())


def spreads(values: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, float]]:
    """The mean, least and greatest over the seeds of each [seeds]."""
    return {
        name: {"mean": float(each.mean()), "least": float(each.min()), "greatest": float(each.max())}
        for name, each in values.items()
    }


def _outcome(rows: Sequence[EpochRow]) -> Outcome:
    seeds = sorted({row.seed for row in rows})
    runs = [[row for row in rows if row.seed == seed] for seed in seeds]
    return Outcome(
        losses=np.array([[row.validation_loss for row in run] for run in runs]),
        seconds=np.array([[row.seconds + row.planning_seconds for row in run] for run in runs]),
        steps=np.array([[row.steps for row in run] for run in runs]),
        padded_frames=np.array([[row.useful_frames / (1.0 - row.padding_share) for row in run] for run in runs]),
    )

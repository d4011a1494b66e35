"""Utterances ready for a network: frames and states end to end, as arrays that are cheap to send to a process.

frames   [F, D] float32   the frames of all utterances
labels   [F]              the state of each frame, `NO_LABEL` if it is unknown
offsets  [n + 1]          utterance u has the frames from offsets[u] up to offsets[u + 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.speech.features import Features

NO_LABEL = -100  # torch's cross-entropy ignores it


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """Scales features to mean 0 and standard deviation 1 over the frames it was fitted to; both arrays are [D]."""

    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]

    def __call__(self, features: Features) -> Features:
        return (features - self.mean) / self.deviation


@dataclass(frozen=True, kw_only=True, slots=True)
class Utterances:
    """Utterances end to end, see the top of this file, with their words."""

    frames: NDArray[np.float32]
    labels: NDArray[np.int64]
    offsets: NDArray[np.int64]
    transcripts: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.transcripts)

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def spans(self, batch: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns rows of (utterance, start, stop): whole utterances for a batch [B]; spans [B, 3] stay as they are."""
        if batch.ndim == 2:
            return batch
        return np.stack([batch, np.zeros_like(batch), self.lengths[batch]], axis=1)


def fit_scale(features: Sequence[Features]) -> Scale:
    """Fits the scale to all frames; a constant feature is not divided."""
    frames = np.concatenate(features)
    mean, deviation = (moment(axis=0, dtype=np.float64).astype(np.float32) for moment in (frames.mean, frames.std))
    return Scale(mean=mean, deviation=np.where(deviation > 0, deviation, np.float32(1)))


def end_to_end(
    features: Sequence[Features],
    transcripts: Sequence[tuple[str, ...]],
    scale: Scale,
    labels: NDArray[np.int64] | None = None,
) -> Utterances:
    """Scales the features of utterances and lays them end to end.

    Args:
        features, transcripts: [F, D] and words of each utterance.
        scale: See `fit_scale`.
        labels: The state of each frame of all utterances, [F]; None if the states are not known.
    """
    offsets = np.append(0, np.cumsum([len(frames) for frames in features]))
    return Utterances(
        frames=scale(np.concatenate(features)),
        labels=np.full(offsets[-1], NO_LABEL) if labels is None else labels,
        offsets=offsets,
        transcripts=tuple(transcripts),
    )

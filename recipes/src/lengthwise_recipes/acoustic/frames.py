"""Utterances ready for a network: their frames and states end to end, which a process is sent as arrays.

frames   [F, D] float32   of all utterances
labels   [F]              the state of each frame, `NO_LABEL` where it is not known
offsets  [n + 1]          utterance u has the frames offsets[u] up to offsets[u + 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.speech.features import Features

NO_LABEL = -100  # what torch's cross-entropy leaves out


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """What makes features of mean 0 and standard deviation 1, over the frames it was fitted to; each [D]."""

    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]

    def __call__(self, features: Features) -> Features:
        return (features - self.mean) / self.deviation


@dataclass(frozen=True, kw_only=True, slots=True)
class Utterances:
    """Utterances end to end, see the top of this file, and what is said in each."""

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
        """Rows of (utterance, start, stop): the whole of each utterance of a batch [B], or the spans that it is of."""
        if batch.ndim == 2:
            return batch
        return np.stack([batch, np.zeros_like(batch), self.lengths[batch]], axis=1)


def fit_scale(features: Sequence[Features]) -> Scale:
    """The scale of all frames; a feature that never changes is left as it is, but for its mean."""
    frames = np.concatenate(features)
    mean, deviation = (made(axis=0, dtype=np.float64).astype(np.float32) for made in (frames.mean, frames.std))
    return Scale(mean=mean, deviation=np.where(deviation > 0, deviation, np.float32(1)))


def end_to_end(
    features: Sequence[Features],
    transcripts: Sequence[tuple[str, ...]],
    scale: Scale,
    labels: NDArray[np.int64] | None = None,
) -> Utterances:
    """Scales the features of utterances and lays them end to end.

    Args:
        features: [F, D] of each.
        transcripts: What is said in each.
        scale: See `fit_scale`.
        labels: The state of each frame, [F] of all utterances; None where none is known.
    """
    offsets = np.append(0, np.cumsum([len(each) for each in features]))
    return Utterances(
        frames=scale(np.concatenate(features)),
        labels=np.full(offsets[-1], NO_LABEL) if labels is None else labels,
        offsets=offsets,
        transcripts=tuple(transcripts),
    )

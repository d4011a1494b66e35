"""Handwriting as arrays, which the networks of both frameworks read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.handwriting.data import Corpus
from lengthwise_recipes.handwriting.prepared import prepare, select_learnable


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """Samples by number: pairs of frames, float32 [F, inputs], and labels, int32 [N], classes from 1 on.

    Attributes:
        frames: One array per sample.
        labels: One array per sample, never empty.
        classes: Symbols of the alphabet, plus one for the blank.
    """

    frames: tuple[NDArray[np.float32], ...]
    labels: tuple[NDArray[np.int32], ...]
    classes: int

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, number: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        return self.frames[number], self.labels[number]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of frames of each sample."""
        return np.array([len(frames) for frames in self.frames], np.int64)

    @property
    def inputs(self) -> int:
        """Numbers in a frame."""
        return self.frames[0].shape[1]

    @property
    def longest_label(self) -> int:
        return max(len(labels) for labels in self.labels)

    def zeros(self, length: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Returns a sample of `length` frames of zeros, to compile for a shape."""
        return np.zeros((length, self.inputs), np.float32), np.ones(1, np.int32)


def training_words(corpus: Corpus, *, stack: int = 4) -> Words:
    """Returns the training part of a corpus, without samples that are too short for CTC.

    A frame joins `stack` points, so lengths are ceil(points / stack).
    """
    learnable, _ = select_learnable(corpus, stack=stack)
    prepared = prepare(learnable.train, learnable.alphabet, stack)
    return Words(
        frames=tuple(frames.numpy() for frames in prepared.frames),
        labels=tuple(labels.numpy().astype(np.int32) for labels in prepared.labels),
        classes=len(learnable.alphabet) + 1,
    )

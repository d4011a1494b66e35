"""Handwriting as arrays: what the network of either framework reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.handwriting.data import Corpus
from lengthwise_recipes.handwriting.prepared import prepare, select_learnable


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """Samples by number: a pair of frames, float32 [F, inputs], and labels, int32 [N], classes from 1 on.

    Attributes:
        frames: Of each sample.
        labels: Of each sample, none of them empty.
        classes: Symbols of the alphabet, and one for the blank.
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
        """Frames of each sample: what is planned."""
        return np.array([len(frames) for frames in self.frames], np.int64)

    @property
    def inputs(self) -> int:
        """Numbers in a frame."""
        return self.frames[0].shape[1]

    @property
    def longest_label(self) -> int:
        return max(len(labels) for labels in self.labels)

    def zeros(self, length: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """A sample of zeros of `length` frames: of the shape that holds it and of no content."""
        return np.zeros((length, self.inputs), np.float32), np.ones(1, np.int32)


def training_words(corpus: Corpus, *, stack: int = 4) -> Words:
    """The training part of a corpus, `stack` points a frame, less what is too short for CTC to write its text.

    Lengths are then frames, ceil(points / stack), as the network sees them.
    """
    kept, _ = select_learnable(corpus, stack=stack)
    prepared = prepare(kept.train, kept.alphabet, stack)
    return Words(
        frames=tuple(frames.numpy() for frames in prepared.frames),
        labels=tuple(labels.numpy().astype(np.int32) for labels in prepared.labels),
        classes=len(kept.alphabet) + 1,
    )

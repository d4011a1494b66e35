"""Task: the interface of a study to the data, the network and the losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

import lengthwise as lw
from lengthwise.checks import check_choice

COUNTS = ("sequences", "frames")
VALIDATION_BATCH = 16


class Task(Protocol):
    """A data set and a network that learns it.

    Each process receives it by pickle: a task holds arrays and plain values, and makes its tensors on use.

    Attributes:
        lengths: [n] or [n, 2], lengths of the training sequences in frames, for the plans.
        counts: The loss of a step is a mean over "sequences" (or chunks) or over "frames".
    """

    @property
    def lengths(self) -> NDArray[np.int64]: ...

    @property
    def counts(self) -> str: ...

    def model(self) -> nn.Module:
        """Returns a new network on the CPU, with weights from the global generator of torch."""
        ...

    def loss(self, model: nn.Module, batch: NDArray[np.int64], width: int) -> Tensor:
        """Returns the mean loss of a batch for backward: a scalar on the device of the model.

        Args:
            model: The network of `model`, or DDP around it: call it, but none of its methods.
            batch: Sequence numbers [B]; or spans [B, 3] (sequence, start, stop) if the batching cuts chunks.
            width: The padded length of the batch, in the unit of `lengths`.

        Raises:
            ValueError: The loss needs whole sequences, and the batch has spans.
        """
        ...

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """Returns metrics on held-out sequences: "validation_loss", and others by name.

        The study calls it after every epoch, on one process, in evaluation mode and without gradients. The batches
        are the same each time. The metrics may have the loss of a test part, too.
        """
        ...

    def test(self, model: nn.Module) -> Mapping[str, float]:
        """Returns metrics after the last epoch of a run, measured like those of `validate`; may be empty."""
        ...

    def describe(self) -> Mapping[str, object]:
        """Returns plain JSON: name, numbers of sequences, split, skipped, network, and a fingerprint of the data.

        Checkpoints of a task with another description raise an error.
        """
        ...


def validation_batches(lengths: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yields random batches [B] of held-out sequences, the same every time, as in Ge et al. 2021."""
    batching = lw.Batching(order=lw.Shuffled(), cut=lw.FixedSize(VALIDATION_BATCH))
    return lw.make_plan(lengths, batching, seed=0, epoch=0).batches()


def whole_spans(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns every sequence as one span (sequence, start, stop): [n, 3]. Of two lengths the first counts.

    >>> whole_spans(np.array([[7, 2], [9, 3]])).tolist()
    [[0, 0, 7], [1, 0, 9]]
    """
    frames = lengths.reshape(len(lengths), -1)[:, 0]
    return np.stack([np.arange(len(frames)), np.zeros_like(frames), frames], axis=1)


def weights(task: Task, spans: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Returns the weight of each sequence [n], or of each span [chunks, 3] of a plan, in the loss of a step."""
    used_spans = whole_spans(task.lengths) if spans is None else spans
    if check_choice("counts", task.counts, COUNTS) == "sequences":
        return np.ones(len(used_spans))
    return (used_spans[:, 2] - used_spans[:, 1]).astype(np.float64)

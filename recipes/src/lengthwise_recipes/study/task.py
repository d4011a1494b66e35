"""Task: what a study trains, and by what it is judged. All that the loop knows of the data and of the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from lengthwise.checks import check_choice

COUNTS = ("sequences", "frames")


class Task(Protocol):
    """A data set and a network that learns it.

    Sent to each process by pickle: a task holds arrays and plain values, and makes its tensors where it is used.

    Attributes:
        lengths: [n] or [n, 2], what plans are made of: of the training sequences, in frames.
        counts: What the loss of a step is a mean over: "sequences" (or chunks, where they are cut), or "frames".
    """

    @property
    def lengths(self) -> NDArray[np.int64]: ...

    @property
    def counts(self) -> str: ...

    def model(self) -> nn.Module:
        """A fresh network on the CPU, its weights drawn by torch's global generator alone."""
        ...

    def loss(self, model: nn.Module, batch: NDArray[np.int64], width: int) -> Tensor:
        """The mean loss of a batch, ready for backward: a scalar on the model's device.

        Args:
            model: As `model` made it, or wrapped in DDP: call it, and none of its methods.
            batch: Sequence numbers [B], or spans [B, 3] (sequence, start, stop) where the batching cuts chunks.
            width: What the plan pads the batch to, in the unit of `lengths`.

        Raises:
            ValueError: Where the loss needs whole sequences, and the batch is of spans.
        """
        ...

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """What the model does on sequences that it was not trained on: "validation_loss", and others by name.

        Called after every epoch, on one process, in evaluation mode and without gradients. The same batches each time.
        A task that keeps a part that nothing is chosen by may give its loss too.
        """
        ...

    def test(self, model: nn.Module) -> Mapping[str, float]:
        """What is measured once, as `validate` is, after the last epoch of a run; nothing where there is nothing."""
        ...

    def describe(self) -> Mapping[str, object]:
        """For the record, plain JSON: name, how many sequences, split, skipped, network, and a fingerprint of the data.

        Checkpoints of a task that describes itself otherwise are refused.
        """
        ...


def whole_spans(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every sequence whole, as a chunk is written (sequence, start, stop): [n, 3]. Of two lengths the first counts.

    >>> whole_spans(np.array([[7, 2], [9, 3]])).tolist()
    [[0, 0, 7], [1, 0, 9]]
    """
    frames = lengths.reshape(len(lengths), -1)[:, 0]
    return np.stack([np.arange(len(frames)), np.zeros_like(frames), frames], axis=1)


def weights(task: Task, spans: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """What each sequence, or each span [chunks, 3] of a plan, counts for in the loss of a step: [n], or [chunks]."""
    taken = whole_spans(task.lengths) if spans is None else spans
    if check_choice("counts", task.counts, COUNTS) == "sequences":
        return np.ones(len(taken))
    return (taken[:, 2] - taken[:, 1]).astype(np.float64)

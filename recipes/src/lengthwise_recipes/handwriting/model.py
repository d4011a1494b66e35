"""A small bidirectional LSTM with CTC. Its results do not depend on the padding, which it computes: see `study.layers`.

LSTM and CTC are PyTorch's. Best paths are decoded by hand, in three lines, since packages search with beams.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from lengthwise.checks import check_whole, value_error
from lengthwise_recipes.handwriting.pen import Sample
from lengthwise_recipes.study.layers import bidirectional_layers

BLANK = 0  # class 0 is CTC's blank; symbol s of the alphabet is class s + 1


class Recognizer(nn.Module):
    """Stacked bidirectional layers and a linear layer.

    It maps frames [B, F, inputs] and counts [B] to log-probabilities [B, F, classes].
    Rows past a sequence's count are meaningless; CTC and the decoder never read them.

    Args:
        inputs: Numbers in a frame: 3 * stack.
        classes: Symbols of the alphabet, plus one for the blank.
        hidden: LSTM cells of each direction.
        layers: Number of bidirectional layers.
        packed: Skip the padding with PackedSequence; for comparison only.
    """

    def __init__(
        self,
        *,
        inputs: int,
        classes: int,
        hidden: int = 64,
        layers: int = 2,
        dropout: float = 0.0,
        packed: bool = False,
    ) -> None:
        super().__init__()
        check_whole("classes", classes, minimum=2, remedy="Give the blank and at least one symbol.")
        self.layers = bidirectional_layers(inputs, hidden, layers, packed=packed)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(2 * hidden, classes)

    def forward(self, frames: Tensor, counts: Tensor) -> Tensor:
        for layer in self.layers:
            frames = self.dropout(layer(frames, counts))
        return self.output(frames).log_softmax(dim=2)


def stack_frames(sample: Sample, stack: int) -> Tensor:
    """Joins every `stack` points to one frame: [T, 3] to [ceil(T / stack), 3 * stack], zeros after the last point.

    >>> import numpy as np
    >>> stack_frames(np.ones((3, 3), np.float32), 2).tolist()
    [[1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]]
    """
    check_whole("stack", stack, minimum=1, remedy="Give the points of a frame.")
    points = torch.from_numpy(sample)
    missing = -len(points) % stack
    return nn.functional.pad(points, (0, 0, 0, missing)).reshape(-1, points.shape[1] * stack)


def pad_frames(frames: Sequence[Tensor], *, width: int = 0) -> tuple[Tensor, Tensor]:
    """Pads sequences [F, inputs] with zeros to [B, at least width, inputs]; also returns their counts, int64 [B].

    >>> padded, counts = pad_frames([torch.ones(2, 1), torch.ones(1, 1)], width=3)
    >>> padded[:, :, 0].tolist(), counts.tolist()
    ([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]], [2, 1])
    """
    padded = pad_sequence(list(frames), batch_first=True)
    missing = max(0, width - padded.shape[1])
    return nn.functional.pad(padded, (0, 0, 0, missing)), torch.tensor([len(sequence) for sequence in frames])


def least_frames(label: Sequence[int] | str) -> int:
    """Returns the frames that CTC needs for a label: one per symbol, and a blank between equal neighbours.

    >>> least_frames([1, 2, 2, 3])
    5
    """
    return len(label) + sum(first == second for first, second in itertools.pairwise(label))


def ctc_losses(log_probabilities: Tensor, counts: Tensor, labels: Sequence[Tensor]) -> Tensor:
    """Returns the CTC loss in nats per symbol of each sequence, [B].

    Args:
        log_probabilities: [B, F, classes].
        counts: Frames of each sequence, int64 [B].
        labels: B labels, int64 [symbols], none of them empty or with `BLANK`.

    Raises:
        ValueError: A label is empty.

    References:
        Graves, Fernández, Gomez and Schmidhuber 2006, Connectionist temporal classification, ICML.
    """
    sizes = torch.tensor([len(label) for label in labels])
    if not bool((sizes > 0).all()):
        place = f"sequence {int(sizes.argmin())}"
        raise value_error("labels", "at least one symbol long", 0, "Drop the sequence.", at=place)
    targets = torch.cat(list(labels)).to(log_probabilities.device)
    losses = nn.functional.ctc_loss(
        log_probabilities.transpose(0, 1), targets, counts, sizes, blank=BLANK, reduction="none", zero_infinity=True
    )
    return losses / sizes.to(losses.device)


def decode(log_probabilities: Tensor, counts: Tensor) -> list[list[int]]:
    """Returns the classes of the best path of each sequence: merges repeats, then drops blanks.

    >>> best = torch.tensor([[1, 1, 0, 1, 2, 2]])
    >>> decode(torch.nn.functional.one_hot(best, 3).float(), torch.tensor([5]))
    [[1, 1, 2]]
    """
    paths = log_probabilities.argmax(dim=2).cpu()
    best = [torch.unique_consecutive(path[:count]) for path, count in zip(paths, counts.tolist(), strict=True)]
    return [path[path != BLANK].tolist() for path in best]

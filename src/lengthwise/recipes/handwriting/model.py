"""A small bidirectional LSTM with CTC that computes its padding, and whose outputs do not depend on it.

The networks of the papers run over the padded rectangle, and that cost is what the study measures. To keep the
padding out of the results, every layer is two LSTMs of one direction: the backward one reads each sequence reversed
within its own length, so that padding follows the data in both directions and never enters a state that is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from lengthwise._checks import check_whole, value_error
from lengthwise.recipes.handwriting.pen import Sample

BLANK = 0  # class 0 is CTC's blank; symbol s of the alphabet is class s + 1


class BidirectionalLayer(nn.Module):
    """One LSTM forwards and one backwards: [B, F, inputs] and counts [B] to [B, F, 2 * hidden]."""

    def __init__(self, inputs: int, hidden: int, *, packed: bool) -> None:
        super().__init__()
        self.forwards = nn.LSTM(inputs, hidden, batch_first=True)
        self.backwards = nn.LSTM(inputs, hidden, batch_first=True)
        self.packed = packed

    def forward(self, frames: Tensor, counts: Tensor) -> Tensor:
        order = reversal(counts, frames.shape[1])
        ahead = self._run(self.forwards, frames, counts)
        behind = self._run(self.backwards, _reordered(frames, order), counts)
        return torch.cat([ahead, _reordered(behind, order)], dim=2)

    def _run(self, lstm: nn.LSTM, frames: Tensor, counts: Tensor) -> Tensor:
        if not self.packed:
            return lstm(frames)[0]
        pack = pack_padded_sequence(frames, counts.cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(lstm(pack)[0], batch_first=True, total_length=frames.shape[1])[0]


class Recognizer(nn.Module):
    """Stacked bidirectional layers and a linear layer.

    Takes frames [B, F, inputs] and counts [B], gives log-probabilities [B, F, classes].
    Rows past a sequence's count hold no meaning; CTC and the decoder never read them.

    Args:
        inputs: Numbers in a frame: 3 * stack.
        classes: Symbols of the alphabet and one for the blank.
        hidden: Cells of each direction.
        layers: Bidirectional layers.
        packed: Skip the padding with PackedSequence: for comparison only.
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
        check_whole("hidden", hidden, minimum=1, remedy="Give the cells of each direction.")
        check_whole("layers", layers, minimum=1, remedy="Give the number of layers.")
        check_whole("classes", classes, minimum=2, remedy="Give the blank and at least one symbol.")
        widths = [inputs] + [2 * hidden] * (layers - 1)
        self.layers = nn.ModuleList(BidirectionalLayer(width, hidden, packed=packed) for width in widths)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(2 * hidden, classes)

    def forward(self, frames: Tensor, counts: Tensor) -> Tensor:
        for layer in self.layers:
            frames = self.dropout(layer(frames, counts))
        return self.output(frames).log_softmax(dim=2)


def reversal(counts: Tensor, width: int) -> Tensor:
    """Places [B, width] that read each sequence backwards within its count and leave its padding where it is.

    >>> reversal(torch.tensor([3, 1]), 4).tolist()
    [[2, 1, 0, 3], [0, 1, 2, 3]]
    """
    places = torch.arange(width, device=counts.device).expand(len(counts), width)
    last = counts[:, None] - 1
    return torch.where(places <= last, last - places, places)


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
    """Pads sequences [F, inputs] with zeros to [B, at least width, inputs], and gives their counts, int64 [B].

    >>> padded, counts = pad_frames([torch.ones(2, 1), torch.ones(1, 1)], width=3)
    >>> padded[:, :, 0].tolist(), counts.tolist()
    ([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]], [2, 1])
    """
    padded = pad_sequence(list(frames), batch_first=True)
    missing = max(0, width - padded.shape[1])
    return nn.functional.pad(padded, (0, 0, 0, missing)), torch.tensor([len(sequence) for sequence in frames])


def frames_needed(label: Sequence[int] | str) -> int:
    """Frames that CTC needs to write a label: one for each symbol, and one for a blank between two equal ones.

    >>> frames_needed([1, 2, 2, 3])
    5
    """
    return len(label) + sum(first == second for first, second in itertools.pairwise(label))


def ctc_losses(log_probabilities: Tensor, counts: Tensor, labels: Sequence[Tensor]) -> Tensor:
    """CTC loss in nats per symbol of each sequence, [B].

    Args:
        log_probabilities: [B, F, classes].
        counts: Frames of each sequence, int64 [B].
        labels: B classes sequences, each int64 [symbols], none of them empty and none of them `BLANK`.

    Raises:
        ValueError: Where a label is empty.

    References:
        Graves, Fernández, Gomez and Schmidhuber 2006, Connectionist temporal classification, ICML.
    """
    sizes = torch.tensor([len(label) for label in labels])
    if not bool((sizes > 0).all()):
        raise value_error(
            "labels", "at least one symbol long", 0, "Drop the sequence.", at=f"sequence {int(sizes.argmin())}"
        )
    targets = torch.cat(list(labels)).to(log_probabilities.device)
    losses = nn.functional.ctc_loss(
        log_probabilities.transpose(0, 1), targets, counts, sizes, blank=BLANK, reduction="none", zero_infinity=True
    )
    return losses / sizes.to(losses.device)


def decode(log_probabilities: Tensor, counts: Tensor) -> list[list[int]]:
    """The classes of the best path of each sequence: repeats merged, then blanks dropped.

    >>> best = torch.tensor([[1, 1, 0, 1, 2, 2]])
    >>> decode(torch.nn.functional.one_hot(best, 3).float(), torch.tensor([5]))
    [[1, 1, 2]]
    """
    paths = log_probabilities.argmax(dim=2).cpu()
    best = [torch.unique_consecutive(path[:count]) for path, count in zip(paths, counts.tolist(), strict=True)]
    return [path[path != BLANK].tolist() for path in best]


def _reordered(frames: Tensor, order: Tensor) -> Tensor:
    return frames.gather(1, order[:, :, None].expand_as(frames))

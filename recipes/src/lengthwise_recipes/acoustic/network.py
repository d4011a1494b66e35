"""The network of the hybrid model: bidirectional LSTM layers that classify the state of every frame.

frames  [B, K, stack x D]   K network frames of `stack` feature frames each, padded to a rectangle
labels  [B, K]              the state of each network frame, `NO_LABEL` in padding
counts  [B]                 network frames of each sequence, without padding
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lengthwise_recipes.acoustic.frames import NO_LABEL, Utterances
from lengthwise_recipes.study.layers import bidirectional_layers

LAYERS = 3


class Rectangle(NamedTuple):
    """A padded batch, see the top of this file."""

    frames: Tensor
    labels: Tensor
    counts: Tensor


class StateTeller(nn.Module):
    """Bidirectional layers and a linear layer: frames [B, K, inputs] and counts [B] to log-odds [B, K, states].

    Padding is computed, but does not change the log-odds of real frames.

    Args:
        inputs: Numbers in a network frame.
        states: Number of states.
        hidden: LSTM cells of each direction.
        layers: Number of bidirectional layers.

    References:
        Doetsch et al. 2017, section 5: three bidirectional LSTM layers and a softmax. It does not say how many cells.
    """

    def __init__(self, *, inputs: int, states: int, hidden: int, layers: int = LAYERS) -> None:
        super().__init__()
        self.layers = bidirectional_layers(inputs, hidden, layers)
        self.output = nn.Linear(2 * hidden, states)

    def forward(self, frames: Tensor, counts: Tensor) -> Tensor:
        for layer in self.layers:
            frames = layer(frames, counts)
        return self.output(frames)


def rectangle(utterances: Utterances, spans: NDArray[np.int64], *, stack: int, width: int = 0) -> Rectangle:
    """Cuts spans out of utterances, joins every `stack` frames to one and pads to a rectangle.

    A network frame has the label of its middle frame, or of the span's last frame if the span ends earlier.

    Args:
        utterances: Source of the spans.
        spans: [B, 3], rows of (utterance, start, stop), in frames.
        stack: Frames in a network frame; zeros fill the last network frame of a span.
        width: Pads to at least this many frames.
    """
    first = utterances.offsets[spans[:, 0]] + spans[:, 1]
    sizes = spans[:, 2] - spans[:, 1]
    counts = -(-sizes // stack)
    columns = int(max(counts.max(), -(-width // stack)))
    places = np.arange(columns * stack)
    real = places < sizes[:, None]
    frames = np.where(real[..., None], utterances.frames[np.where(real, first[:, None] + places, 0)], np.float32(0))
    middles = np.minimum(np.arange(columns) * stack + stack // 2, sizes[:, None] - 1)
    used = np.arange(columns) < counts[:, None]
    labels = np.where(used, utterances.labels[first[:, None] + middles], NO_LABEL)
    return Rectangle(
        torch.from_numpy(frames.reshape(len(spans), columns, -1)), torch.from_numpy(labels), torch.from_numpy(counts)
    )


def frame_loss(log_odds: Tensor, labels: Tensor, *, reduction: str = "mean") -> Tensor:
    """Returns the cross-entropy in nats of log-odds [B, K, states] for labels [B, K], over frames that are no padding.

    `reduction` is "mean" or "sum", as in torch.
    """
    return nn.functional.cross_entropy(
        log_odds.flatten(0, 1), labels.flatten(), ignore_index=NO_LABEL, reduction=reduction
    )

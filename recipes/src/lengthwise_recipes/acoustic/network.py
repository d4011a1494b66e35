"""The network of the hybrid model: bidirectional LSTM layers that tell the state of every frame.

frames  [B, K, stack x D]   K network frames of `stack` feature frames each, padded to a rectangle
labels  [B, K]              the state of each network frame, `NO_LABEL` where it is padding
counts  [B]                 network frames of each sequence, padding left out
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

    Padding is computed, and no state of a frame that is used depends on it.

    Args:
        inputs: Numbers in a network frame.
        states: States to tell apart.
        hidden: LSTM cells of each direction.
        layers: Bidirectional layers.

    References:
        Doetsch et al. 2017, section 5: three bidirectional LSTM layers and a softmax. It does not tell their cells.
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

    The label of a network frame is that of the middle one of its frames, or of the last where the span ends before.

    Args:
        utterances: Where the spans are cut out.
        spans: [B, 3], rows of (utterance, start, stop), in frames.
        stack: Frames in a network frame; the last of a span is filled with zeros.
        width: Frames to pad to at least.
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
    """Cross-entropy in nats, over the frames that are no padding.

    Args:
        log_odds: [B, K, states].
        labels: [B, K].
        reduction: "mean" or "sum", as torch has it.
    """
    return nn.functional.cross_entropy(
        log_odds.flatten(0, 1), labels.flatten(), ignore_index=NO_LABEL, reduction=reduction
    )

"""Bidirectional layers that compute their padding, but whose outputs do not depend on it.

The networks of the papers compute the padding, and a study measures that cost. But padding must not change the results.
So a layer is two LSTMs of one direction, and the backward one reads each sequence reversed within its length. Padding
then follows the data in both directions.

frames  [B, F, inputs]   sequences padded to the longest, or further
counts  [B]              frames of each sequence
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from lengthwise.checks import check_whole


class BidirectionalLayer(nn.Module):
    """A forward and a backward LSTM: [B, F, inputs] and counts [B] to [B, F, 2 * hidden]."""

    def __init__(self, inputs: int, hidden: int, *, packed: bool) -> None:
        super().__init__()
        self.forwards = nn.LSTM(inputs, hidden, batch_first=True)
        self.backwards = nn.LSTM(inputs, hidden, batch_first=True)
        self.packed = packed

    def forward(self, frames: Tensor, counts: Tensor) -> Tensor:
        order = reversal(counts, frames.shape[1])
        ahead = self._run(self.forwards, frames, counts)
        behind = self._run(self.backwards, _reorder(frames, order), counts)
        return torch.cat([ahead, _reorder(behind, order)], dim=2)

    def _run(self, lstm: nn.LSTM, frames: Tensor, counts: Tensor) -> Tensor:
        if not self.packed:
            return lstm(frames)[0]
        pack = pack_padded_sequence(frames, counts.cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(lstm(pack)[0], batch_first=True, total_length=frames.shape[1])[0]


def bidirectional_layers(inputs: int, hidden: int, layers: int, *, packed: bool = False) -> nn.ModuleList:
    """Returns layers to call one after the other, with the same counts.

    Args:
        inputs: Numbers in a frame of the first layer.
        hidden: Cells of each direction.
        layers: Number of layers.
        packed: Skip the padding with PackedSequence, for comparison only.
    """
    check_whole("hidden", hidden, minimum=1, remedy="Give the cells of each direction.")
    check_whole("layers", layers, minimum=1, remedy="Give the number of layers.")
    widths = [inputs] + [2 * hidden] * (layers - 1)
    return nn.ModuleList(BidirectionalLayer(width, hidden, packed=packed) for width in widths)


def reversal(counts: Tensor, width: int) -> Tensor:
    """Returns places [B, width] that reverse each sequence within its count and leave its padding in place.

    >>> reversal(torch.tensor([3, 1]), 4).tolist()
    [[2, 1, 0, 3], [0, 1, 2, 3]]
    """
    places = torch.arange(width, device=counts.device).expand(len(counts), width)
    last = counts[:, None] - 1
    return torch.where(places <= last, last - places, places)


def _reorder(frames: Tensor, order: Tensor) -> Tensor:
    return frames.gather(1, order[:, :, None].expand_as(frames))

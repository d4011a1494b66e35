"""The parts of Tacotron 2. Their outputs for data do not depend on padding.

Shapes: B sequences, L characters and T decoder steps of the longest one. E channels of the encoder, A channels of the
attention, H cells of a decoder LSTM.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

KERNEL = 5  # of the encoder's and the postnet's convolutions
LOCATION_KERNEL = 31


class Convolution(nn.Module):
    """A convolution over time, batch norm, a non-linearity and dropout: [B, T, inputs] to [B, T, outputs].

    Input and output are zero in the padding. Batch norm sees only the places with data, so its averages and its output
    do not depend on the padding. In NVIDIA's model they do.
    """

    def __init__(self, inputs: int, outputs: int, activation: nn.Module, dropout: float) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(inputs, outputs, KERNEL, padding=KERNEL // 2)
        self.norm = nn.BatchNorm1d(outputs)
        self.finish = nn.Sequential(activation, nn.Dropout(dropout))

    def forward(self, frames: Tensor, places: Tensor) -> Tensor:
        """Computes the convolution; `places` [N] have data, see `data_places`."""
        everywhere = self.convolution(frames.transpose(1, 2)).transpose(1, 2)
        rows = everywhere.reshape(-1, everywhere.shape[2])
        data_rows = self.finish(self.norm(rows.index_select(0, places)))
        return torch.zeros_like(rows).index_copy(0, places, data_rows).view_as(everywhere)


class Prenet(nn.Module):
    """Two small layers between a frame and the decoder; their dropout is always on: [..., bands] to [..., size].

    References:
        Shen et al. 2018, section 2.2: the prenet is needed to learn the attention, and its dropout varies the voice in
        synthesis.
    """

    def __init__(self, bands: int, size: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(bands, size), nn.Linear(size, size)])
        self.dropout = dropout

    def forward(self, frames: Tensor) -> Tensor:
        for layer in self.layers:
            frames = functional.dropout(layer(frames).relu(), self.dropout, training=True)
        return frames


class Memory(NamedTuple):
    """The input of the attention, computed once for all steps.

    values: [B, L, E] encoded characters.
    keys: [B, L, A] the values after the key layer of the attention.
    closed: [B, L] True in the padding.
    location: [2 L, L * filters] the convolution over the weights of earlier steps, as a matrix.
    """

    values: Tensor
    keys: Tensor
    closed: Tensor
    location: Tensor


class LocationAttention(nn.Module):
    """Attention that sees its earlier weights, so that it moves on.

    The weights are the softmax of v . tanh(W q + V h + U f) over the characters, with f = F * past, a convolution.
    `past` [B, 2, L] holds the weights of the previous step, and their sum over all earlier steps. The convolution is a
    matrix product, because on a CPU a convolution of few channels is slow. The matrix has 2 L * L * filters numbers.

    References:
        Chorowski et al. 2015, equations 8 and 9. Deviation: Shen et al. 2018 use only the sum. NVIDIA's model
        uses the last weights too, as here.
    """

    def __init__(self, *, queries: int, values: int, size: int, filters: int) -> None:
        super().__init__()
        self.query = nn.Linear(queries, size)
        self.key = nn.Linear(values, size, bias=False)
        self.location = nn.Conv1d(2, filters, LOCATION_KERNEL, padding=LOCATION_KERNEL // 2, bias=False)
        self.of_location = nn.Linear(filters, size, bias=False)
        self.energy = nn.Linear(size, 1, bias=False)

    def memory(self, values: Tensor, counts: Tensor) -> Memory:
        """Prepares encoded characters [B, L, E]; `counts` [B] are the characters without padding."""
        characters = values.shape[1]
        every_weight = torch.eye(2 * characters, dtype=values.dtype, device=values.device).view(-1, 2, characters)
        return Memory(
            values=values,
            keys=self.key(values),
            closed=~data_mask(counts, characters),
            location=self.location(every_weight).transpose(1, 2).flatten(1),
        )

    def forward(self, query: Tensor, past: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Returns for queries [B, H] the context [B, E] and the weights [B, L], 0 in the padding."""
        seen = (past.flatten(1) @ memory.location).view(*memory.closed.shape, -1)
        inner = memory.keys + self.of_location(seen) + self.query(query)[:, None]
        energies = self.energy(inner.tanh())[:, :, 0]
        weights = energies.masked_fill(memory.closed, -torch.inf).softmax(1)
        return (weights[:, None] @ memory.values)[:, 0], weights


def data_mask(counts: Tensor, width: int) -> Tensor:
    """Returns True for data and False for padding: [B, width].

    >>> data_mask(torch.tensor([2, 1]), 3).tolist()
    [[True, True, False], [True, False, False]]
    """
    return torch.arange(width, device=counts.device) < counts[:, None]


def data_places(mask: Tensor) -> Tensor:
    """Returns the places with data, counted through the rows of a mask [B, width].

    >>> data_places(data_mask(torch.tensor([2, 1]), 3)).tolist()
    [0, 1, 3]
    """
    return mask.flatten().nonzero()[:, 0]

"""Tacotron 2: from characters to the frames of a log-mel spectrogram.

- Encoder: characters -> embedding, 3 convolutions, BiLSTM -> memory.
- Decoder, at every step: previous frame -> prenet -> LSTM, attention over the memory -> LSTM -> r frames and a stop.
- Output: frames + postnet of 5 convolutions.

The network computes the padding, whose cost a study of batching measures; but the outputs for data do not depend on it.
Only the first LSTM and the attention run step by step. In training, with the true frames as input, all steps of prenet,
second LSTM, frames and stops are computed at once.

We do not use the models of torchaudio and NVIDIA. They run both LSTMs step by step, and their batch norm counts the
padding. In a study of batching a loss must not depend on padding.

References:
    Shen et al. 2018, Natural TTS synthesis by conditioning WaveNet on mel spectrogram predictions, section 2.2. As in
    NVIDIA's Tacotron 2, the first of the two LSTMs queries the attention, and the second reads the output of both.
    Dropout of 0.1 on their outputs replaces zoneout. Deviation: the states of the LSTMs have no dropout.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lengthwise_recipes.study.layers import BidirectionalLayer
from lengthwise_recipes.synthesis.layers import Convolution, LocationAttention, Memory, Prenet, data_mask, data_places
from lengthwise_recipes.synthesis.network import Network

ENCODER_CONVOLUTIONS = 3
POSTNET_CONVOLUTIONS = 5
LSTM_DROPOUT = 0.1


class Predicted(NamedTuple):
    """The prediction of a batch. Rows beyond the count of a sequence have no meaning.

    before: [B, F, bands] frames of the decoder.
    after: [B, F, bands] frames with the postnet.
    stops: [B, T] logit that a step is the last.
    weights: [B, T, L] weights of the attention; 0 on padded characters.
    """

    before: Tensor
    after: Tensor
    stops: Tensor
    weights: Tensor


class Spoken(NamedTuple):
    """Speech of the network without true frames as input.

    frames: [B, F, bands].
    counts: [B] frames of each sequence, at most F.
    stopped: [B] True if the network predicted a stop.
    weights: [B, T, L] weights of the attention.
    """

    frames: Tensor
    counts: Tensor
    stopped: Tensor
    weights: Tensor


class Encoder(nn.Module):
    """Encodes characters [B, L] for the attention, [B, L, E]; class 0 is padding."""

    def __init__(self, symbols: int, network: Network) -> None:
        super().__init__()
        size = network.encoder
        self.embedding = nn.Embedding(symbols, size, padding_idx=0)
        self.convolutions = nn.ModuleList(
            Convolution(size, size, nn.ReLU(), network.dropout) for _ in range(ENCODER_CONVOLUTIONS)
        )
        self.lstm = BidirectionalLayer(size, size // 2, packed=False)

    def forward(self, symbols: Tensor, counts: Tensor) -> Tensor:
        places, frames = data_places(data_mask(counts, symbols.shape[1])), self.embedding(symbols)
        for convolution in self.convolutions:
            frames = convolution(frames, places)
        return self.lstm(frames, counts)


class State(NamedTuple):
    """The state of the first LSTM and the attention; see `LocationAttention` for `past`."""

    hidden: Tensor
    cell: Tensor
    context: Tensor
    past: Tensor


class Decoder(nn.Module):
    """Predicts r frames and a stop at each step, from the frames before."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        read = network.decoder + network.encoder
        self.network = network
        self.prenet = Prenet(network.bands, network.prenet, network.prenet_dropout)
        self.first = nn.LSTMCell(network.prenet + network.encoder, network.decoder)
        self.attention = LocationAttention(
            queries=network.decoder, values=network.encoder, size=network.attention, filters=network.location
        )
        self.second = nn.LSTM(read, network.decoder)
        self.dropout = nn.Dropout(LSTM_DROPOUT)
        self.frames = nn.Linear(read, network.bands * network.reduction)
        self.stop = nn.Linear(read, 1)

    def forward(self, memory: Memory, frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Predicts all steps from the true frames [B, F, bands]: frames, stops [B, T], weights [B, T, L]."""
        state, hiddens, contexts, weights = self.first_state(memory), [], [], []
        for prepared in self.prenet(self._frames_before(frames)):
            state = self.step(prepared, state, memory)
            hiddens.append(state.hidden)
            contexts.append(state.context)
            weights.append(state.past[:, 0])
        written, stops, _ = self.write(torch.stack(hiddens), torch.stack(contexts))
        return written, stops, torch.stack(weights, dim=1)

    def first_state(self, memory: Memory) -> State:
        batch, characters, size = memory.values.shape
        hidden = memory.values.new_zeros(batch, self.network.decoder)
        context, past = memory.values.new_zeros(batch, size), memory.values.new_zeros(batch, 2, characters)
        return State(hidden, hidden, context, past)

    def step(self, prepared: Tensor, state: State, memory: Memory) -> State:
        """Takes a step of the first LSTM and the attention, from the output of the prenet [B, P]."""
        hidden, cell = self.first(torch.cat([prepared, state.context], dim=1), (state.hidden, state.cell))
        context, weights = self.attention(hidden, state.past, memory)
        return State(hidden, cell, context, torch.stack([weights, state.past[:, 1] + weights], dim=1))

    def write(
        self, hiddens: Tensor, contexts: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        """Runs the second LSTM on hiddens [T, B, H] and contexts [T, B, E].

        Returns frames [B, T * r, bands], stops [B, T] and the new state of the LSTM.
        """
        outputs, new_state = self.second(torch.cat([self.dropout(hiddens), contexts], dim=2), state)
        combined = torch.cat([self.dropout(outputs), contexts], dim=2).transpose(0, 1)
        frames = self.frames(combined).reshape(len(combined), -1, self.network.bands)
        return frames, self.stop(combined)[:, :, 0], new_state

    def _frames_before(self, frames: Tensor) -> Tensor:
        """Returns the last frame of the previous step for each step, zeros for the first: [T, B, bands]."""
        last = frames[:, self.network.reduction - 1 :: self.network.reduction].transpose(0, 1)
        return torch.cat([torch.zeros_like(last[:1]), last[:-1]])


class Postnet(nn.Module):
    """The correction of the frames: [B, F, bands] and counts [B] to [B, F, bands], zero in the padding."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        sizes = [network.bands, *[network.postnet] * (POSTNET_CONVOLUTIONS - 1), network.bands]
        last = len(sizes) - 2
        self.convolutions = nn.ModuleList(
            Convolution(sizes[place], sizes[place + 1], nn.Tanh() if place < last else nn.Identity(), network.dropout)
            for place in range(last + 1)
        )

    def forward(self, frames: Tensor, counts: Tensor) -> Tensor:
        mask = data_mask(counts, frames.shape[1])
        frames, places = frames * mask[:, :, None], data_places(mask)
        for convolution in self.convolutions:
            frames = convolution(frames, places)
        return frames


class Tacotron(nn.Module):
    """The whole network.

    Args:
        symbols: Classes of characters, with 0 for padding.
        network: The sizes.
    """

    def __init__(self, symbols: int, network: Network) -> None:
        super().__init__()
        self.network = network
        self.encoder = Encoder(symbols, network)
        self.decoder = Decoder(network)
        self.postnet = Postnet(network)

    def forward(self, symbols: Tensor, symbol_counts: Tensor, frames: Tensor, counts: Tensor) -> Predicted:
        """Predicts every step from the true frames of earlier steps.

        Args:
            symbols: [B, L], 0 in the padding.
            symbol_counts: [B] characters of each sequence, at least 1.
            frames: [B, F, bands], F a multiple of the reduction, zero in the padding.
            counts: [B] frames of each sequence, at least 1.
        """
        memory = self.decoder.attention.memory(self.encoder(symbols, symbol_counts), symbol_counts)
        decoded, stops, weights = self.decoder(memory, frames)
        return Predicted(decoded, decoded + self.postnet(decoded, counts), stops, weights)

    @torch.no_grad()
    def speak(self, symbols: Tensor, symbol_counts: Tensor, *, max_steps: int) -> Spoken:
        """Predicts frames until every sequence has stopped, or for `max_steps` steps.

        Args:
            symbols: [B, L], 0 in the padding.
            symbol_counts: [B] characters of each sequence.
            max_steps: The most decoder steps, each of `reduction` frames.
        """
        memory = self.decoder.attention.memory(self.encoder(symbols, symbol_counts), symbol_counts)
        steps = list(self._steps(memory, max_steps))
        decoded, stops, weights = (torch.cat(parts, dim=1) for parts in zip(*steps, strict=True))
        ends = stops > 0
        stopped = ends.any(dim=1)
        # The first step with a stop counts; argmax returns the first of equal values.
        last = torch.where(stopped, ends.int().argmax(dim=1) + 1, len(steps))
        counts = last * self.network.reduction
        return Spoken(decoded + self.postnet(decoded, counts), counts, stopped, weights)

    def _steps(self, memory: Memory, max_steps: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yields frames [B, r, bands], stop [B, 1] and weights [B, 1, L] of each step until all have stopped."""
        state, carried = self.decoder.first_state(memory), None
        previous = memory.values.new_zeros(len(memory.values), self.network.bands)
        stopped = torch.zeros_like(previous[:, :1], dtype=torch.bool)
        for _ in range(max_steps):
            state = self.decoder.step(self.decoder.prenet(previous), state, memory)
            frames, stop, carried = self.decoder.write(state.hidden[None], state.context[None], carried)
            yield frames, stop, state.past[:, :1]
            previous, stopped = frames[:, -1], stopped | (stop > 0)
            if stopped.all():
                return

"""A small transformer encoder with CTC in PyTorch, which `torch.compile` compiles as one graph per shape.

An LSTM does not work here: PyTorch breaks the graph at `nn.LSTM`, and an LSTM that is unrolled in Python has thousands
of operations, more with every frame. The CTC loss stays outside the graph, since its size depends on the labels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import lengthwise as lw
from lengthwise_recipes.compiled.data import Words
from lengthwise_recipes.handwriting.model import ctc_losses

CLIPPED_NORM = 1.0
LEARNING_RATE = 0.003
HEADS = 4
NEIGHBOURS = 5  # frames that the first layer joins


class Encoder(nn.Module):
    """A convolution over neighbouring frames, then self-attention.

    It maps frames [B, F, inputs] and mask [B, F] to log-probabilities [B, F, C]. Those of padding are meaningless; the
    others do not depend on padding.

    Args:
        inputs: Numbers in a frame.
        classes: Symbols of the alphabet, plus one for the blank.
        hidden: Width of a frame inside the model, a multiple of four.
        layers: Number of self-attention layers.
        longest: Greatest padded length.
    """

    def __init__(self, *, inputs: int, classes: int, longest: int, hidden: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.join = nn.Conv1d(inputs, hidden, NEIGHBOURS, padding="same")
        self.register_buffer("places", sinusoids(longest, hidden))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                hidden, HEADS, 4 * hidden, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.output = nn.Linear(hidden, classes)

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        places = self.get_buffer("places")[: frames.shape[1]]
        values = self.join(frames.transpose(1, 2)).transpose(1, 2) + places
        # Attention in a fully masked row would be 0 / 0, so empty rows attend to their zeros.
        ignored = ~mask & mask.any(dim=1, keepdim=True)
        for layer in self.layers:
            values = layer(values, src_key_padding_mask=ignored)
        return self.output(values).log_softmax(dim=2)


def sinusoids(length: int, width: int) -> Tensor:
    """Returns sines and cosines of the place of each frame, [length, width].

    References:
        Vaswani et al. 2017, Attention is all you need, section 3.5.
    """
    rates = 10_000 ** -(torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).reshape(length, width)


class TorchLearner:
    """Adam on the mean CTC loss of each batch.

    Args:
        words: Training samples.
        backend: Backend of `torch.compile`, a name or a function; None does not compile.
        dynamic: Compile for all lengths at once, as far as PyTorch can; for comparison only.
        hidden: Width of a frame inside the model.
        layers: Number of self-attention layers.
        seed: Seed of the first weights; sets torch's global seed.
    """

    def __init__(
        self,
        words: Words,
        *,
        backend: str | Callable[..., Any] | None = "inductor",
        dynamic: bool = False,
        hidden: int = 64,
        layers: int = 2,
        seed: int = 0,
    ) -> None:
        torch.manual_seed(seed)
        self.words = words
        longest = int(words.lengths.max())
        self.model = Encoder(inputs=words.inputs, classes=words.classes, longest=longest, hidden=hidden, layers=layers)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE)
        self.compilations = 0
        self._shapes: set[tuple[int, ...]] = set()
        self._forward = self.model
        self._stance = "default"
        if backend is not None:
            self._forward = torch.compile(self.model, backend=self._counting(backend), dynamic=dynamic, fullgraph=True)
            self._stance = "fail_on_recompile"

    def compile(self, shapes: NDArray[np.int64]) -> None:
        collate = self._collate(shapes)
        for shape in shapes.tolist():
            if tuple(shape) in self._shapes:
                continue
            self._shapes.add(tuple(shape))
            # By default PyTorch compiles for at most eight shapes, counted over all learners of the process.
            with torch._dynamo.config.patch(recompile_limit=sys.maxsize, accumulated_recompile_limit=sys.maxsize):
                self._losses(*collate([self.words.zeros(shape[1])])).sum().backward()
            self.optimizer.zero_grad()

    def train(self, plan: lw.Plan, shapes: NDArray[np.int64]) -> float:
        collate = self._collate(shapes)
        total = 0.0
        with torch.compiler.set_stance(self._stance):
            for batch in plan.batches():
                losses = self._losses(*collate([self.words[number] for number in batch]))
                self.optimizer.zero_grad()
                losses.mean().backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), CLIPPED_NORM)
                self.optimizer.step()
                total += float(losses.detach().sum())
        return total / len(plan.sequences)

    def _collate(self, shapes: NDArray[np.int64]) -> lw.torch.PadCollate:
        widths = np.full(len(shapes), self.words.longest_label)
        return lw.torch.PadCollate(shapes=np.column_stack([shapes, widths]))

    def _losses(self, frames: lw.torch.PaddedSequences, labels: lw.torch.PaddedSequences) -> Tensor:
        """Returns the CTC loss of each sequence in nats per symbol, without the empty rows."""
        real = frames.lengths > 0
        log_probabilities = self._forward(frames.values, frames.mask)[real]
        texts = [row[:length] for row, length in zip(labels.values[real], labels.lengths[real].tolist(), strict=True)]
        return ctc_losses(log_probabilities, frames.lengths[real], texts)

    def _counting(self, backend: str | Callable[..., Any]) -> Callable[..., Any]:
        """Wraps the backend so that it counts its compilations."""
        compiler = torch._dynamo.lookup_backend(backend)

        def compile_and_count(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
            self.compilations += 1
            return compiler(graph, inputs)

        return compile_and_count

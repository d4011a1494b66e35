"""The task of a study: a bidirectional LSTM with CTC reads pen strokes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jiwer
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lengthwise.checks import check_flag, check_number, check_whole, value_error
from lengthwise_recipes.handwriting.data import Corpus
from lengthwise_recipes.handwriting.model import Recognizer, ctc_losses, decode, pad_frames
from lengthwise_recipes.handwriting.prepared import Prepared, prepare, select_learnable
from lengthwise_recipes.study.task import validation_batches


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """The size of the network.

    Attributes:
        hidden: LSTM cells of each direction.
        layers: Number of bidirectional layers.
        stack: Points joined to one frame of the network.
        dropout: Share of each layer's outputs that is dropped in training.
        packed: Skip the padding with PackedSequence instead of computing it.
    """

    hidden: int = 64
    layers: int = 2
    stack: int = 4
    dropout: float = 0.0
    packed: bool = False

    def __post_init__(self) -> None:
        for name in ("hidden", "layers", "stack"):
            check_whole(name, getattr(self, name), minimum=1, remedy="Give how many.")
        check_number("dropout", self.dropout, maximum=0.9, remedy="Give a share such as 0.2.")
        check_flag("packed", self.packed)


@dataclass(frozen=True, kw_only=True)
class HandwritingTask:
    """Learns a corpus: the loss is the mean over sequences of CTC loss / symbols, lengths are points of the pen.

    Attributes:
        corpus: Samples that CTC can learn with frames of `network.stack` points, see `of`.
        network: Size of the network.
    """

    corpus: Corpus
    network: Network

    @classmethod
    def of(cls, corpus: Corpus, network: Network | None = None, *, strict: bool = False) -> HandwritingTask:
        """Makes a task of the samples that are long enough for their text, and adds the others to `corpus.skipped`.

        Raises:
            ValueError: A part has no sample that is long enough; with `strict` also if any sample is too short.
        """
        network = network or Network()
        corpus, skipped = select_learnable(corpus, stack=network.stack, strict=strict)
        return cls(corpus=dataclasses.replace(corpus, skipped=(*corpus.skipped, *skipped)), network=network)

    def __getstate__(self) -> dict[str, Any]:
        return {"corpus": self.corpus, "network": self.network}  # each process makes its own tensors

    @cached_property
    def prepared(self) -> dict[str, Prepared]:
        """The parts of the corpus in the form of the network's input."""
        alphabet, stack = self.corpus.alphabet, self.network.stack
        return {name: prepare(part, alphabet, stack) for name, part in self.corpus.parts.items()}

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Points of each training sample, [n]."""
        return self.corpus.train.lengths

    @property
    def counts(self) -> str:
        return "sequences"

    def model(self) -> Recognizer:
        return Recognizer(
            inputs=3 * self.network.stack,
            classes=len(self.corpus.alphabet) + 1,
            hidden=self.network.hidden,
            layers=self.network.layers,
            dropout=self.network.dropout,
            packed=self.network.packed,
        )

    def loss(self, model: nn.Module, batch: NDArray[np.int64], width: int) -> Tensor:
        """Returns the mean CTC loss per symbol of samples [B], padded to `width` points."""
        if batch.ndim != 1:
            remedy = "Leave the chunks out: CTC needs the whole text."
            raise value_error("batchings", "of whole sequences", f"chunks of shape {batch.shape}", remedy)
        frames = -(-width // self.network.stack)
        return ctc_losses(*_forward(model, self.prepared["train"], batch, frames)).mean()

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Returns mean CTC loss per symbol and character error rate over fixed random batches, as in Ge et al. 2021.

        Returns:
            "validation_loss" and "character_error_rate"; and "test_loss" and "test_character_error_rate" if the corpus
            has a test part.
        """
        loss, error_rate = self._judge(model, self.prepared["validation"])
        measures = {"validation_loss": loss, "character_error_rate": error_rate}
        if "test" in self.prepared:
            measures["test_loss"], measures["test_character_error_rate"] = self._judge(model, self.prepared["test"])
        return measures

    def _judge(self, model: nn.Module, samples: Prepared) -> tuple[float, float]:
        """Returns the mean CTC loss per symbol of samples and their character error rate."""
        alphabet = self.corpus.alphabet
        losses, truths, guesses = [], [], []
        for batch in validation_batches(samples.lengths):
            log_probabilities, counts, labels = _forward(model, samples, batch)
            losses.append(ctc_losses(log_probabilities, counts, labels))
            truths += [samples.texts[number] for number in batch]
            guesses += ["".join(alphabet[symbol - 1] for symbol in best) for best in decode(log_probabilities, counts)]
        return float(torch.cat(losses).mean()), float(jiwer.cer(truths, guesses))

    def test(self, model: nn.Module) -> Mapping[str, float]:
        return {}

    def describe(self) -> dict[str, object]:
        return self.corpus.as_dict() | {
            "network": dataclasses.asdict(self.network),
            "loss": "mean over the sequences of CTC loss / symbols, nats per symbol",
            "frames": "points of the pen",
        }


def _forward(
    model: nn.Module, samples: Prepared, batch: NDArray[np.int64], width: int = 0
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Returns log-probabilities of samples padded to at least `width` frames, with their counts and labels."""
    frames, counts = pad_frames([samples.frames[number] for number in batch], width=width)
    device = next(model.parameters()).device
    return model(frames.to(device), counts.to(device)), counts, [samples.labels[number] for number in batch]

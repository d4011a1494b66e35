"""The task of a study: a network that learns the states of frames, judged by frames and at last by words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

import lengthwise as lw
from lengthwise.checks import check_whole
from lengthwise_recipes.acoustic.alignment import Scores
from lengthwise_recipes.acoustic.decoder import word_error_rate
from lengthwise_recipes.acoustic.frames import NO_LABEL, Utterances
from lengthwise_recipes.acoustic.network import LAYERS, StateTeller, frame_loss, rectangle
from lengthwise_recipes.acoustic.prepared import Prepared
from lengthwise_recipes.acoustic.recognition import network_scores, recognise

VALIDATION_BATCH = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class AcousticTask:
    """A `study.task.Task`: whole utterances or chunks of them, and what a frame-wise loss makes of each.

    Attributes:
        prepared: Speech with the state of every frame.
        hidden: LSTM cells of each direction.
        layers: Bidirectional layers.
        stack: Frames of 10 ms that the network sees as one; it tells a state for all of them.

    References:
        Doetsch et al. 2017, section 5: one network frame for each frame, which is `stack=1`.
    """

    prepared: Prepared
    hidden: int
    layers: int = LAYERS
    stack: int = 1

    def __post_init__(self) -> None:
        check_whole("stack", self.stack, minimum=1, remedy="Give the frames of a network frame.")

    @property
    def lengths(self) -> NDArray[np.int64]:
        """[n], frames of each utterance trained on."""
        return self.prepared.train.lengths

    @property
    def counts(self) -> str:
        return "frames"

    def model(self) -> nn.Module:
        return StateTeller(
            inputs=self.stack * self.prepared.train.frames.shape[1],
            states=self.prepared.states.total,
            hidden=self.hidden,
            layers=self.layers,
        )

    def loss(self, model: nn.Module, batch: NDArray[np.int64], width: int) -> Tensor:
        """Mean cross-entropy over the network frames of a batch, in nats; `batch` [B] utterances or [B, 3] spans."""
        train = self.prepared.train
        made = rectangle(train, train.spans(batch), stack=self.stack, width=width)
        device = next(model.parameters()).device
        frames, labels, counts = (each.to(device) for each in made)
        return frame_loss(model(frames, counts), labels)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Cross-entropy in nats and the share of wrong states, over the network's frames whose states are known.

        Where frames are joined, the state of a frame of the network is that of the middle one.

        Returns:
            "validation_loss" and "frame_error_rate"; and "test_loss" and "test_frame_error_rate", where the states of
            a test utterance are known. Batches are random ones.
        """
        loss, wrong = self._judge(model, self.prepared.validation)
        found = {"validation_loss": loss, "frame_error_rate": wrong}
        if (self.prepared.test.labels != NO_LABEL).any():
            found["test_loss"], found["test_frame_error_rate"] = self._judge(model, self.prepared.test)
        return found

    def _judge(self, model: nn.Module, utterances: Utterances) -> tuple[float, float]:
        """Loss and share of wrong states."""
        batching = lw.Batching(order=lw.Shuffled(), cut=lw.FixedSize(VALIDATION_BATCH))
        device = next(model.parameters()).device
        totals = np.zeros(3)
        for batch in lw.make_plan(utterances.lengths, batching, seed=0, epoch=0).batches():
            made = rectangle(utterances, utterances.spans(batch), stack=self.stack)
            frames, labels, counts = (each.to(device) for each in made)
            log_odds = model(frames, counts)
            used = labels != NO_LABEL
            wrong = (log_odds.argmax(dim=2) != labels) & used
            totals += float(frame_loss(log_odds, labels, reduction="sum")), int(wrong.sum()), int(used.sum())
        loss, wrong, used = totals.tolist()
        return loss / used, wrong / used

    def test(self, model: nn.Module) -> dict[str, float]:
        """The share of wrong words, decoded by posteriors over priors."""
        prepared = self.prepared

        def scores_of(batch: NDArray[np.int64]) -> list[Scores]:
            return network_scores(model, prepared.test, batch, stack=self.stack, priors=prepared.priors)

        found = recognise(
            prepared.test.lengths,
            scores_of,
            prepared.states,
            prepared.stay,
            prepared.bigram,
            search=prepared.search,
        )
        return {"word_error_rate": word_error_rate(prepared.test.transcripts, found)}

    def describe(self) -> Mapping[str, object]:
        network = {"hidden": self.hidden, "layers": self.layers, "stack": self.stack}
        return {**self.prepared.description, "network": network}

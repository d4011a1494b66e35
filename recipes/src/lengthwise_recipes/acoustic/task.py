"""The task of a study: a network learns the states of frames, and is judged by frames and by words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from lengthwise.checks import check_whole
from lengthwise_recipes.acoustic.decoder import word_error_rate
from lengthwise_recipes.acoustic.frames import NO_LABEL, Utterances
from lengthwise_recipes.acoustic.graph import Scores
from lengthwise_recipes.acoustic.network import LAYERS, StateTeller, frame_loss, rectangle
from lengthwise_recipes.acoustic.prepared import Prepared
from lengthwise_recipes.acoustic.recognition import network_scores, recognise
from lengthwise_recipes.study.task import validation_batches


@dataclass(frozen=True, kw_only=True, slots=True)
class AcousticTask:
    """A `study.task.Task` that trains on utterances or chunks of them, with a frame-wise loss.

    Attributes:
        prepared: Speech with the state of every frame.
        hidden: LSTM cells of each direction.
        layers: Number of bidirectional layers.
        stack: Frames of 10 ms that the network reads as one, with one state for all of them.

    References:
        Doetsch et al. 2017, section 5, has one network frame per frame, which is `stack=1`.
    """

    prepared: Prepared
    hidden: int
    layers: int = LAYERS
    stack: int = 1

    def __post_init__(self) -> None:
        check_whole("stack", self.stack, minimum=1, remedy="Give the number of frames that the network reads as one.")

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Frames of each training utterance, [n]."""
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
        """Returns the mean cross-entropy in nats over a batch; `batch` is [B] utterances or [B, 3] spans."""
        train = self.prepared.train
        padded = rectangle(train, train.spans(batch), stack=self.stack, width=width)
        device = next(model.parameters()).device
        frames, labels, counts = (tensor.to(device) for tensor in padded)
        return frame_loss(model(frames, counts), labels)

    def validate(self, model: nn.Module) -> dict[str, float]:
        """Returns cross-entropy in nats and the share of wrong states, over network frames with a known state.

        Returns:
            "validation_loss" and "frame_error_rate"; and "test_loss" and "test_frame_error_rate" if any test utterance
            has known states. The batches are random, and the same every time.
        """
        loss, wrong_share = self._judge(model, self.prepared.validation)
        measures = {"validation_loss": loss, "frame_error_rate": wrong_share}
        if (self.prepared.test.labels != NO_LABEL).any():
            measures["test_loss"], measures["test_frame_error_rate"] = self._judge(model, self.prepared.test)
        return measures

    def _judge(self, model: nn.Module, utterances: Utterances) -> tuple[float, float]:
        """Returns the loss and the share of wrong states."""
        device = next(model.parameters()).device
        totals = np.zeros(3)
        for batch in validation_batches(utterances.lengths):
            padded = rectangle(utterances, utterances.spans(batch), stack=self.stack)
            frames, labels, counts = (tensor.to(device) for tensor in padded)
            log_odds = model(frames, counts)
            used = labels != NO_LABEL
            wrong = (log_odds.argmax(dim=2) != labels) & used
            totals += float(frame_loss(log_odds, labels, reduction="sum")), int(wrong.sum()), int(used.sum())
        loss, wrong, used = totals.tolist()
        return loss / used, wrong / used

    def test(self, model: nn.Module) -> dict[str, float]:
        """Decodes by posteriors over priors and returns the word error rate."""
        prepared = self.prepared

        def scores_of(batch: NDArray[np.int64]) -> list[Scores]:
            return network_scores(model, prepared.test, batch, stack=self.stack, priors=prepared.priors)

        hypotheses = recognise(
            prepared.test.lengths, scores_of, prepared.states, prepared.stay, prepared.bigram, search=prepared.search
        )
        return {"word_error_rate": word_error_rate(prepared.test.transcripts, hypotheses)}

    def describe(self) -> Mapping[str, object]:
        network = {"hidden": self.hidden, "layers": self.layers, "stack": self.stack}
        return {**self.prepared.description, "network": network}

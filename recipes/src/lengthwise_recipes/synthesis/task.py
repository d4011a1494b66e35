"""Tacotron 2 on recordings of one voice, as a task of the study.

Plans use the frames of the spectrograms. As in Ge et al. 2021, four fifths of the recordings, chosen at random, are for
training.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import lengthwise as lw
from lengthwise.checks import check_choice, check_flag, check_number, check_whole, value_error
from lengthwise_recipes.contents import fingerprint
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.corpus import Corpus, Utterance
from lengthwise_recipes.speech.features import MADE_BY, corpus_features
from lengthwise_recipes.study.task import validation_batches
from lengthwise_recipes.synthesis.layers import data_mask
from lengthwise_recipes.synthesis.loss import MEANS, Errors, synthesis_errors, together
from lengthwise_recipes.synthesis.mel import LogMel, Mel
from lengthwise_recipes.synthesis.model import Predicted, Spoken, Tacotron
from lengthwise_recipes.synthesis.network import SPOKEN_TEXTS, Network
from lengthwise_recipes.synthesis.utterances import (
    FEWEST_SYMBOLS,
    Scale,
    Utterances,
    make_batch,
    pad_arrays,
    spell,
    symbols_of,
)

LONGEST_SPOKEN = 2  # times the longest training utterance: then the network is stopped
VALIDATION_SEED = 0  # of the dropout of the prenet, which is always on


@dataclass(frozen=True, kw_only=True, slots=True)
class SynthesisTask:
    """The task to speak with one voice; see `lengthwise_recipes.study.task.Task`.

    Attributes:
        name: The source of the recordings.
        network: The sizes of the network.
        mean_over: The divisor of the loss, see `Errors.mean`.
        alphabet: All characters of all texts, sorted.
        scale: The scale of the spectrograms.
        train, validation: Utterances for training and validation.
        test_part: Utterances for the test, or None.
        split: The division, in one sentence.
        skipped: A sentence for each recording that was left out.
        fingerprint: Fingerprint of the texts and sounds of all parts.
    """

    name: str
    network: Network
    mean_over: str
    alphabet: str
    scale: Scale
    train: Utterances
    validation: Utterances
    test_part: Utterances | None
    split: str
    skipped: tuple[str, ...]
    fingerprint: str

    @classmethod
    def of(
        cls,
        corpus: Corpus,
        *,
        network: Network,
        mean_over: str = "padded",
        validation_share: float = 0.2,
        test_share: float = 0.0,
        seed: int = 0,
        strict: bool = False,
    ) -> SynthesisTask:
        """Computes the spectrograms and divides the recordings.

        Args:
            corpus: The recordings; each is read once.
            network: The sizes of the network, and the bands of the spectrograms.
            mean_over: The divisor of the loss, see `Errors.mean`.
            validation_share: Share of the recordings for validation, chosen at random.
            test_share: Share of the recordings for the test, chosen at random; 0 for no test.
            seed: Seed of that choice.
            strict: Raise for the first unusable recording.

        Raises:
            ValueError: Too few recordings can be used for one in each part, or see `strict`.
        """
        check_choice("mean_over", mean_over, MEANS)
        remedy = "Give a share such as 0.2."
        check_number("validation_share", validation_share, above=True, maximum=0.5, remedy=remedy)
        check_number("test_share", test_share, minimum=0.0, maximum=0.4, remedy=remedy)
        check_whole("seed", seed, minimum=0, remedy="Give a whole number.")
        corpus = _spellable(corpus, Skipped(strict=check_flag("strict", strict)))
        log_mel = LogMel(bands=network.bands)
        log_mel.filters(corpus.rate)  # raises if there are too many bands for the rate
        corpus, mels = corpus_features(corpus, log_mel, strict=strict)
        train, validation, test = _split_numbers(len(corpus), validation_share, test_share, seed)
        alphabet = "".join(sorted({symbol for recording in corpus.utterances for symbol in spell(recording.text)}))
        scale = Scale.of([mels[number] for number in train])
        return cls(
            name=corpus.name,
            network=network,
            mean_over=mean_over,
            alphabet=alphabet,
            scale=scale,
            train=_utterances(corpus.utterances, mels, train, alphabet, scale),
            validation=_utterances(corpus.utterances, mels, validation, alphabet, scale),
            test_part=_utterances(corpus.utterances, mels, test, alphabet, scale) if len(test) else None,
            split=f"{len(validation)} of {len(corpus)} recordings held out at random, seed {seed}"
            f"{f', and {len(test)} to test on' if len(test) else ''}",
            skipped=corpus.skipped,
            fingerprint=fingerprint(
                [corpus.rate, *((recording.text, recording.sound) for recording in corpus.utterances)]
            ),
        )

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Frames of each training utterance, [n]."""
        return self.train.lengths

    @property
    def counts(self) -> str:
        """The weight of a batch when ranks average gradients; it is only approximate for the padded mean."""
        return "frames" if self.mean_over == "frames" else "sequences"

    def model(self) -> Tacotron:
        """Returns a new network on the CPU, with weights from the global generator of torch."""
        return Tacotron(len(self.alphabet) + 1, self.network)

    def loss(self, model: nn.Module, batch: NDArray[np.int64], width: int) -> Tensor:
        """Returns the loss of a batch of training utterances [B], padded to `width` frames, in whole decoder steps.

        Raises:
            ValueError: The batch has chunks.
        """
        if batch.ndim != 1:
            raise value_error("batch", "of whole sequences", "spans", "Plan without chunks: it needs the whole text.")
        return self._errors(model, self.train, batch, width).mean(self.mean_over)

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """Returns the losses with the true frames as input, over fixed random batches and with the same dropout.

        Returns:
            - "validation_loss", the mean of the batches, with padding, as in Ge et al. 2021, section 6.
            - "validation_loss_frames", the loss of all frames, without padding.
            - "test_loss_frames", if there is a test part.
        """
        errors = self._judge(model, self.validation)
        padded = torch.stack([batch_errors.mean("padded") for batch_errors in errors]).mean()
        losses = {"validation_loss": float(padded), "validation_loss_frames": float(together(errors).mean("frames"))}
        if self.test_part is not None:
            losses["test_loss_frames"] = float(together(self._judge(model, self.test_part)).mean("frames"))
        return losses

    def test(self, model: nn.Module) -> Mapping[str, float]:
        """Lets the network speak the first test texts, or without a test part validation texts, without true frames.

        Returns:
            - "stopped_share", the share of texts for which the network stopped before the limit.
            - "duration_error", the mean of |spoken frames - true frames| / true frames.
            - "attention_focus", the mean over the steps of the largest weight of the attention; 1 if each step reads a
              single character.

        References:
            Ren et al. 2019, FastSpeech, section 3.3: the focus rate.
        """
        texts = self.validation if self.test_part is None else self.test_part
        said = self._speak(model, texts.symbols[:SPOKEN_TEXTS])
        spoken = data_mask(said.counts // self.network.reduction, said.weights.shape[1])
        true = torch.from_numpy(texts.lengths[:SPOKEN_TEXTS]).to(said.counts.device)
        return {
            "stopped_share": float(said.stopped.double().mean()),
            "duration_error": float(((said.counts - true).abs() / true).mean()),
            "attention_focus": float(said.weights.amax(dim=2)[spoken].mean()),
        }

    def speak(self, model: nn.Module, text: str) -> Mel:
        """Returns the log-mel spectrogram [F, bands] of a text, also if the network does not stop.

        The model speaks in evaluation mode; its mode is restored.

        Raises:
            ValueError: A character is not in the alphabet.
        """
        training = model.training
        model.eval()
        try:
            said = self._speak(model, [symbols_of(text, self.alphabet)])
        finally:
            model.train(training)
        return self.scale.undo(said.frames[0, : int(said.counts[0])].cpu().numpy())

    def describe(self) -> Mapping[str, object]:
        """Returns the record of the task, as plain JSON."""
        lengths = self.lengths
        tested = {} if self.test_part is None else {"test_sequences": len(self.test_part)}
        return {
            "name": self.name,
            "split": self.split,
            "train_sequences": len(self.train),
            "validation_sequences": len(self.validation),
            **tested,
            "symbols": len(self.alphabet),
            "skipped": list(self.skipped),
            "train_frames": int(lengths.sum()),
            "train_frames_mean": round(float(lengths.mean()), 2),
            "train_characters": int(self.train.text_lengths.sum()),
            "train_fingerprint": lw.fingerprint(lengths),
            "fingerprint": self.fingerprint,
            "mean_over": self.mean_over,
            "features": MADE_BY,
            "network": asdict(self.network),
        }

    def _judge(self, model: nn.Module, utterances: Utterances) -> list[Errors]:
        """Returns the errors of fixed random batches, with the same dropout."""
        with _same_dropout(_device(model)):
            return [self._errors(model, utterances, batch, 0) for batch in validation_batches(utterances.lengths)]

    def _errors(self, model: nn.Module, utterances: Utterances, numbers: NDArray[np.int64], width: int) -> Errors:
        """Returns the errors of a batch, padded to `width` frames or to its longest if that is more."""
        batch = make_batch(utterances, numbers, width=width, multiple=self.network.reduction, device=_device(model))
        predicted: Predicted = model(batch.symbols, batch.symbol_counts, batch.frames, batch.counts)
        return synthesis_errors(predicted, batch.frames, batch.counts)

    def _speak(self, model: nn.Module, symbols: Sequence[NDArray[np.int64]]) -> Spoken:
        padded, counts = pad_arrays(symbols), torch.tensor([len(text) for text in symbols])
        device = _device(model)
        max_steps = -(-LONGEST_SPOKEN * int(self.lengths.max()) // self.network.reduction)
        with _same_dropout(device):
            return cast(Tacotron, model).speak(padded.to(device), counts.to(device), max_steps=max_steps)


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


@contextlib.contextmanager
def _same_dropout(device: torch.device) -> Generator[None]:
    """Sets the seed of the dropout of the prenet, and restores the global generators of torch."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(VALIDATION_SEED)
        yield


def _spellable(corpus: Corpus, skipped: Skipped) -> Corpus:
    """Leaves out recordings with texts that are too short."""
    usable = []
    for recording in corpus.utterances:
        if len(spell(recording.text)) >= FEWEST_SYMBOLS:
            usable.append(recording)
        else:
            rule, remedy = f"at least {FEWEST_SYMBOLS} characters", "Leave the recording out."
            skipped.add(value_error("text", rule, recording.text, remedy, at=recording.name))
    return replace(corpus, utterances=tuple(usable), skipped=(*corpus.skipped, *skipped.sentences))


def _split_numbers(count: int, validation_share: float, test_share: float, seed: int) -> list[NDArray[np.int64]]:
    """Returns the numbers for training, validation and test, rising; at least one for each part.

    The validation part does not depend on the test share.
    """
    fewest = 3 if test_share > 0.0 else 2
    if count < fewest:
        remedy = "Give at least one recording for training and one for each other part."
        raise value_error("corpus", f"of at least {fewest} recordings that can be used", count, remedy)
    test = max(1, round(test_share * count)) if test_share > 0.0 else 0
    held_out = min(max(1, round(validation_share * count)), count - test - 1)
    order = np.random.default_rng(np.random.SeedSequence([seed])).permutation(count)
    return [np.sort(part) for part in (order[held_out + test :], order[:held_out], order[held_out : held_out + test])]


def _utterances(
    recordings: Sequence[Utterance], mels: Sequence[Mel], numbers: NDArray[np.int64], alphabet: str, scale: Scale
) -> Utterances:
    return Utterances(
        mels=tuple(scale.apply(mels[number]) for number in numbers),
        symbols=tuple(symbols_of(recordings[number].text, alphabet) for number in numbers),
        texts=tuple(spell(recordings[number].text) for number in numbers),
    )

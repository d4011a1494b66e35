"""Tacotron 2 on recordings of one voice, as a task of the study.

Plans are made of the frames of the spectrograms. As in Ge et al. 2021 the recordings are parted at random, four fifths
of them to learn from.
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
from lengthwise_recipes.speech.features import MADE_BY
from lengthwise_recipes.synthesis.corpus import Recording, SpeechCorpus
from lengthwise_recipes.synthesis.layers import data_mask
from lengthwise_recipes.synthesis.loss import MEANS, Errors, synthesis_errors, together
from lengthwise_recipes.synthesis.mel import LogMel, Mel, corpus_mels
from lengthwise_recipes.synthesis.model import Predicted, Spoken, Tacotron
from lengthwise_recipes.synthesis.network import Network
from lengthwise_recipes.synthesis.utterances import (
    FEWEST_SYMBOLS,
    Scale,
    Utterances,
    make_batch,
    pad_arrays,
    spell,
    symbols_of,
)

VALIDATION_BATCH = 16
SPOKEN_TEXTS = 64  # of the texts that are held out, chosen at random as they are
LONGEST_SPOKEN = 2  # times the longest train utterance: then a network that does not stop is stopped
VALIDATION_SEED = 0  # of the batches, and of the dropout that the prenet never turns off


@dataclass(frozen=True, kw_only=True, slots=True)
class SynthesisTask:
    """Learns to speak as one voice does; see `lengthwise_recipes.study.task.Task`.

    Attributes:
        name: Where the recordings come from.
        network: How large the network is.
        mean_over: What the loss is a mean over, see `Errors.mean`.
        alphabet: All characters of all texts, sorted.
        scale: Of the spectrograms.
        train, validation: Utterances to learn from and to be judged by.
        test_part: Utterances to be judged by that nothing is chosen by; None for none.
        split: How they were parted, one sentence.
        skipped: What was left out, one sentence each.
        fingerprint: Of the texts and sounds of all parts.
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
        corpus: SpeechCorpus,
        *,
        network: Network,
        mean_over: str = "padded",
        validation_share: float = 0.2,
        test_share: float = 0.0,
        seed: int = 0,
        strict: bool = False,
    ) -> SynthesisTask:
        """Computes the spectrograms and parts the recordings.

        Args:
            corpus: The recordings; each is read once.
            network: How large the network is, and how many bands a spectrogram has.
            mean_over: What the loss is a mean over, see `Errors.mean`.
            validation_share: Share of the recordings to validate on, chosen at random.
            test_share: Share of the recordings to test on, likewise; there are none where it is 0.
            seed: Of that choice.
            strict: Whether to raise for the first recording that cannot be used.

        Raises:
            ValueError: Where fewer than 2 recordings can be used, or as `strict` says.
        """
        check_choice("mean_over", mean_over, MEANS)
        remedy = "Give a share such as 0.2."
        check_number("validation_share", validation_share, above=True, maximum=0.5, remedy=remedy)
        check_number("test_share", test_share, minimum=0.0, maximum=0.4, remedy=remedy)
        check_whole("seed", seed, minimum=0, remedy="Give a whole number.")
        corpus = _spellable(corpus, Skipped(strict=check_flag("strict", strict)))
        corpus, mels = corpus_mels(corpus, LogMel(bands=network.bands), strict=strict)
        train, validation, test = _split_numbers(len(corpus), validation_share, test_share, seed)
        alphabet = "".join(sorted({symbol for recording in corpus.recordings for symbol in spell(recording.text)}))
        scale = Scale.of([mels[number] for number in train])
        return cls(
            name=corpus.name,
            network=network,
            mean_over=mean_over,
            alphabet=alphabet,
            scale=scale,
            train=_utterances(corpus.recordings, mels, train, alphabet, scale),
            validation=_utterances(corpus.recordings, mels, validation, alphabet, scale),
            test_part=_utterances(corpus.recordings, mels, test, alphabet, scale) if len(test) else None,
            split=f"{len(validation)} of {len(corpus)} recordings held out at random, seed {seed}"
            f"{f', and {len(test)} to test on' if len(test) else ''}",
            skipped=corpus.skipped,
            fingerprint=fingerprint([corpus.rate, *((each.text, each.sound) for each in corpus.recordings)]),
        )

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Frames of each train utterance, [n]."""
        return self.train.lengths

    @property
    def counts(self) -> str:
        """What ranks that average gradients weigh their batches by; no count is exact for the padded mean."""
        return "frames" if self.mean_over == "frames" else "sequences"

    def model(self) -> Tacotron:
        """A fresh network on the CPU, its weights drawn by torch's global generator alone."""
        return Tacotron(len(self.alphabet) + 1, self.network)

    def loss(self, model: nn.Module, batch: NDArray[np.int64], width: int) -> Tensor:
        """The loss of a batch of train utterances [B], padded to `width` frames or the next whole decoder step.

        Raises:
            ValueError: Where the batch is of chunks.
        """
        if batch.ndim != 1:
            raise value_error("batch", "of whole sequences", "spans", "Plan without chunks: the attention needs all.")
        return self._errors(model, self.train, batch, width).mean(self.mean_over)

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """The losses with the true frames as input, over fixed batches in random order and with the same dropout.

        Returns:
            "validation_loss", the mean over the batches of the loss over the padded rectangle, as in Ge et al. 2021,
            section 6; "validation_loss_frames", the loss of all frames, which does not see the padding; and
            "test_loss_frames" where there is a part to test on.
        """
        errors = self._judge(model, self.validation)
        padded = torch.stack([each.mean("padded") for each in errors]).mean()
        found = {"validation_loss": float(padded), "validation_loss_frames": float(together(errors).mean("frames"))}
        if self.test_part is not None:
            found["test_loss_frames"] = float(together(self._judge(model, self.test_part)).mean("frames"))
        return found

    def test(self, model: nn.Module) -> Mapping[str, float]:
        """What the network says of the first test texts on its own, with nothing but its own frames as input.

        Where there is no part to test on, they are validation texts.

        Returns:
            "stopped_share", of the texts after which it stopped before it had spoken for twice as long as the longest
            train utterance; "duration_error", the mean of |frames said - true frames| / true frames;
            "attention_focus", the mean over the steps of the largest weight of the attention, 1 where each step reads
            a single character.

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
        """The log-mel spectrogram [F, bands] of a text, whether or not the network stops by itself.

        The model speaks in evaluation mode, and is left in the mode that it was in.

        Raises:
            ValueError: Where a character is not of the alphabet.
        """
        training = model.training
        model.eval()
        try:
            said = self._speak(model, [symbols_of(text, self.alphabet)])
        finally:
            model.train(training)
        return self.scale.undo(said.frames[0, : int(said.counts[0])].cpu().numpy())

    def describe(self) -> Mapping[str, object]:
        """For the record, plain JSON."""
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
        """Of each of fixed batches in random order, with the same dropout."""
        batching = lw.Batching(order=lw.Shuffled(), cut=lw.FixedSize(VALIDATION_BATCH))
        plan = lw.make_plan(utterances.lengths, batching, seed=VALIDATION_SEED, epoch=0)
        with _same_dropout(_device(model)):
            return [self._errors(model, utterances, batch, 0) for batch in plan.batches()]

    def _errors(self, model: nn.Module, utterances: Utterances, numbers: NDArray[np.int64], width: int) -> Errors:
        """Of a batch that is padded to `width` frames, or to the longest where that is more."""
        batch = make_batch(utterances, numbers, width=width, multiple=self.network.reduction, device=_device(model))
        predicted: Predicted = model(batch.symbols, batch.symbol_counts, batch.frames, batch.counts)
        return synthesis_errors(predicted, batch.frames, batch.counts)

    def _speak(self, model: nn.Module, symbols: Sequence[NDArray[np.int64]]) -> Spoken:
        padded, counts = pad_arrays(symbols), torch.tensor([len(each) for each in symbols])
        device = _device(model)
        max_steps = -(-LONGEST_SPOKEN * int(self.lengths.max()) // self.network.reduction)
        with _same_dropout(device):
            return cast(Tacotron, model).speak(padded.to(device), counts.to(device), max_steps=max_steps)


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


@contextlib.contextmanager
def _same_dropout(device: torch.device) -> Generator[None]:
    """Draws what the prenet drops from a seed, and leaves torch's global generators as they were."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(VALIDATION_SEED)
        yield


def _spellable(corpus: SpeechCorpus, skipped: Skipped) -> SpeechCorpus:
    """Leaves out recordings of texts too short to be learnt."""
    kept = []
    for recording in corpus.recordings:
        if len(spell(recording.text)) >= FEWEST_SYMBOLS:
            kept.append(recording)
        else:
            rule, remedy = f"at least {FEWEST_SYMBOLS} characters", "Leave the recording out."
            skipped.add(value_error("text", rule, recording.text, remedy, at=recording.name))
    return replace(corpus, recordings=tuple(kept), skipped=(*corpus.skipped, *skipped.sentences))


def _split_numbers(count: int, validation_share: float, test_share: float, seed: int) -> list[NDArray[np.int64]]:
    """Numbers to learn from, to validate on and to test on, each in rising order; one at least of each that is asked.

    What is validated on of so many recordings is the same whatever else is tested on.
    """
    fewest = 3 if test_share > 0.0 else 2
    if count < fewest:
        remedy = "Give at least one recording to learn from and one for each part to judge by."
        raise value_error("corpus", f"of at least {fewest} recordings that can be used", count, remedy)
    test = max(1, round(test_share * count)) if test_share > 0.0 else 0
    held = min(max(1, round(validation_share * count)), count - test - 1)
    order = np.random.default_rng(np.random.SeedSequence([seed])).permutation(count)
    return [np.sort(part) for part in (order[held + test :], order[:held], order[held : held + test])]


def _utterances(
    recordings: Sequence[Recording], mels: Sequence[Mel], numbers: NDArray[np.int64], alphabet: str, scale: Scale
) -> Utterances:
    return Utterances(
        mels=tuple(scale.apply(mels[number]) for number in numbers),
        symbols=tuple(symbols_of(recordings[number].text, alphabet) for number in numbers),
        texts=tuple(spell(recordings[number].text) for number in numbers),
    )

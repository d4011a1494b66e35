"""The tasks of the study: handwriting, speech in, and speech out. One processor learns each task in minutes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lengthwise.checks import check_whole, value_error
from lengthwise_recipes.acoustic.labelling import choose_labelling
from lengthwise_recipes.acoustic.prepared import prepare
from lengthwise_recipes.acoustic.task import AcousticTask
from lengthwise_recipes.handwriting import task as handwriting
from lengthwise_recipes.handwriting.data import read_corpus
from lengthwise_recipes.speech.parts import read_parts
from lengthwise_recipes.study.task import Task
from lengthwise_recipes.synthesis import network as synthesis
from lengthwise_recipes.synthesis.speech import read_speech
from lengthwise_recipes.synthesis.task import SynthesisTask

HELD_OUT = 1 / 6  # of the sequences, for validation, and the same for testing
DIGITS_HELD_OUT = 1 / 4  # strings of digits in each held-out part, as a share of the training strings


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """The source of the data of a task.

    Attributes:
        data: A path for the reader of the task; None for the generated data of a task that has them.
        count: Sequences of all parts together; of an acoustic task the training sequences.
        scripts: The scripts to use of an `.npz` of pen-drawn characters; all by default.
        folder: Folder for the results of costly preparation: the alignment of speech, and spoken sentences.
        strict: Raise for the first sequence that cannot be used, in place of leaving it out.
    """

    data: Path | None
    count: int
    scripts: tuple[str, ...] = ()
    folder: Path | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        check_whole("count", self.count, minimum=2, remedy="Give how many sequences to learn.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A task before its data are read.

    Attributes:
        name: The name on the command line.
        words: The task in words.
        loss: Name of the loss on validation sequences; it does not depend on the padding of their batches.
        test_loss: Name of the same loss on test sequences, which chose nothing.
        unit: Of the loss.
        metrics: Other metrics to show, name to words; all of them are shares.
        count: Sequences, see `Source.count`.
        paddings: Shares to compare at: about 5 and 10 %, within reach of all knobs, also those in whole numbers.
        epochs: Of each run.
        learning_rate: Of Adam, for batches of 16.
        make: Makes the task from the source of its data.
    """

    name: str
    words: str
    loss: str = "validation_loss"
    test_loss: str = "test_loss"
    unit: str
    metrics: Mapping[str, str]
    count: int
    paddings: tuple[float, ...]
    epochs: int
    learning_rate: float
    make: Callable[[Source], Task]


def make_handwriting(source: Source) -> Task:
    """Makes the task of words written by pen, for a bidirectional LSTM with CTC."""
    corpus = read_corpus(
        source.data,
        count=source.count,
        validation_share=HELD_OUT,
        test_share=HELD_OUT,
        scripts=source.scripts,
        strict=source.strict,
    )
    network = handwriting.Network(hidden=48, layers=1, dropout=0.3)
    return handwriting.HandwritingTask.of(corpus, network, strict=source.strict)


def make_acoustic(source: Source) -> Task:
    """Makes the task of speech, for three bidirectional LSTM layers that classify frames of 30 ms."""
    if source.data is None:
        remedy = "Give recordings: single digits (.npz or folder), a Kaldi data folder, or wav files with texts."
        raise value_error("data", "the path of speech", None, remedy)
    held_out = max(1, round(DIGITS_HELD_OUT * source.count))
    parts = read_parts(source.data, count=source.count, validating=held_out, testing=held_out, strict=source.strict)
    prepared = prepare(parts, choose_labelling(parts, splits=2), folder=source.folder, strict=source.strict)
    return AcousticTask(prepared=prepared, hidden=32, stack=3)


def make_synthesis(source: Source) -> Task:
    """Makes the task of sentences by one voice, for a narrow Tacotron 2: 16 mel bands, 16 frames a decoder step.

    The loss is a mean over real frames. A mean over padded frames would be another loss for each strategy.
    """
    with tempfile.TemporaryDirectory() as scratch:
        spoken = None if source.data is not None and source.data.is_dir() else (source.folder or Path(scratch))
        return SynthesisTask.of(
            read_speech(source.data, folder=spoken, count=source.count, strict=source.strict),
            network=synthesis.Network(width=1 / 16, bands=16, reduction=16),
            mean_over="frames",
            validation_share=HELD_OUT,
            test_share=HELD_OUT,
            strict=source.strict,
        )


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            name="handwriting",
            words="Online handwriting by a bidirectional LSTM with CTC",
            unit="nats per symbol",
            metrics={"character_error_rate": "CER", "test_character_error_rate": "test CER"},
            count=1530,
            paddings=(0.05, 0.095),
            epochs=12,
            learning_rate=0.01,
            make=make_handwriting,
        ),
        Kind(
            name="acoustic",
            words="States of speech by a bidirectional LSTM, decoded to words",
            unit="nats per frame of the network",
            metrics={"frame_error_rate": "frame errors", "word_error_rate": "WER"},
            count=640,
            paddings=(0.055, 0.105),
            epochs=8,
            learning_rate=0.01,
            make=make_acoustic,
        ),
        Kind(
            name="synthesis",
            words="Text to speech by Tacotron 2",
            loss="validation_loss_frames",
            test_loss="test_loss_frames",
            unit="squared error and stop, per frame",
            metrics={"duration_error": "duration error", "attention_focus": "attention focus"},
            count=552,
            paddings=(0.05, 0.095),
            epochs=6,
            learning_rate=5e-3,
            make=make_synthesis,
        ),
    )
}

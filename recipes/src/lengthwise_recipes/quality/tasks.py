"""The tasks of the study, each in a size that a processor learns in minutes: handwriting, speech in, and speech out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from lengthwise.checks import check_whole, value_error
from lengthwise_recipes.acoustic.em import Rounds
from lengthwise_recipes.acoustic.labelling import Labelling
from lengthwise_recipes.acoustic.prepared import prepare
from lengthwise_recipes.acoustic.task import AcousticTask
from lengthwise_recipes.acoustic.tying import Tree
from lengthwise_recipes.handwriting import task as handwriting
from lengthwise_recipes.handwriting.data import read_corpus
from lengthwise_recipes.speech.parts import Parts, read_parts
from lengthwise_recipes.study.task import Task
from lengthwise_recipes.synthesis import network as synthesis
from lengthwise_recipes.synthesis.speech import read_speech
from lengthwise_recipes.synthesis.task import SynthesisTask

HELD_OUT = 1 / 6  # of the sequences, to validate on, and as many to test on
DIGITS_HELD_OUT = 1 / 4  # of as many strings of digits as are trained on


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where a task's data come from.

    Attributes:
        data: A path that the reader of the task knows; None for data of the project's own, where there are any.
        count: Sequences, all parts together; of an acoustic task those to train on.
        scripts: Of an `.npz` of pen-drawn characters: the scripts to use, all where none is named.
        folder: Keeps what is costly to prepare: the alignment of speech, and sentences that were spoken.
        strict: Whether to raise for the first sequence that cannot be used; else it is left out.
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
        name: As the command line calls it.
        words: What is learnt, for people.
        loss: The metric that strategies are judged by; it does not depend on how validation batches are padded.
        test_loss: The same on the test sequences, which nothing was chosen by.
        unit: Of the loss.
        metrics: Other metrics to show, name to words; all of them are shares.
        count: Sequences, see `Source.count`.
        paddings: Shares to compare at: about 5 and 10 %, where all strategies with a knob in whole numbers can meet.
        epochs: Of each run.
        learning_rate: Of Adam, for batches of 16.
        make: From the source of its data to the task.
    """

    name: str
    words: str
    loss: str
    test_loss: str
    unit: str
    metrics: Mapping[str, str]
    count: int
    paddings: tuple[float, ...]
    epochs: int
    learning_rate: float
    make: Callable[[Source], Task]


def make_handwriting(source: Source) -> Task:
    """Words by the pen, and a bidirectional LSTM with CTC."""
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
    """Speech, and three bidirectional LSTM layers that tell the state of every frame, three of 10 ms joined to one."""
    if source.data is None:
        remedy = "Give recordings: single digits (.npz or folder), a Kaldi data folder, or wav files with texts."
        raise value_error("data", "the path of speech", None, remedy)
    held = max(1, round(DIGITS_HELD_OUT * source.count))
    parts = read_parts(source.data, count=source.count, validating=held, testing=held, strict=source.strict)
    prepared = prepare(parts, _labelling(parts), folder=source.folder, strict=source.strict)
    return AcousticTask(prepared=prepared, hidden=32, stack=3)


def make_synthesis(source: Source) -> Task:
    """Sentences by one voice, and a sixteenth of Tacotron 2 with 16 mel bands and 16 frames a decoder step.

    The loss is a mean over the frames there are: one over the padded rectangle would be another loss for each strategy.
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


def _labelling(parts: Parts) -> Labelling:
    """States of whole words for digits, tied states of letters in context for all else."""
    rounds = Rounds(splits=2, alignments=4)
    return Labelling(rounds=rounds) if parts.any_order else Labelling(tree=Tree(), rounds=rounds)


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind(
                name="handwriting",
                words="Online handwriting by a bidirectional LSTM with CTC",
                loss="validation_loss",
                test_loss="test_loss",
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
                loss="validation_loss",
                test_loss="test_loss",
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
)

"""The study: one network, one data set, many batchings; the same first weights and the same epochs for each.

Epochs are interleaved (epoch 1 of every strategy, then epoch 2 of every strategy), so that whatever else the machine
does falls on all alike. Only training is timed. Validation batches are the same for all, in random order, as in Ge et
al. 2021.

    corpus = read_corpus(None, count=1200)
    batchings = lw.strategies("random,max-entropy:0.05", cut=lw.FixedSize(16))
    study = run_study(corpus, batchings, Settings(epochs=8))
"""

from __future__ import annotations

import copy
import dataclasses
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import jiwer
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

import lengthwise as lw
from lengthwise._checks import check_choice, check_number, check_whole, value_error
from lengthwise.recipes.handwriting.data import Corpus, Samples
from lengthwise.recipes.handwriting.model import (
    Recognizer,
    ctc_losses,
    decode,
    frames_needed,
    pad_frames,
    stack_frames,
)
from lengthwise.recipes.handwriting.results import EpochRow, Study, describe_machine, now, summarise

LEARNING_RATES = {"adam": 0.01, "adadelta": 1.0}
CLIPPED_NORM = 1.0
VALIDATION_BATCH = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What every strategy of a study shares.

    Attributes:
        epochs: Epochs of each run.
        seeds: Runs of each strategy: seeds 0, 1, ...
        hidden: LSTM cells of each direction.
        layers: Bidirectional layers.
        stack: Points joined to one frame of the network.
        dropout: Share of each layer's outputs that is dropped in training.
        packed: Skip the padding with PackedSequence instead of computing it.
        optimizer: adam, or adadelta as in Khomenko et al. 2016.
        learning_rate: Of the optimiser; by default 0.01 for adam and 1.0 for adadelta.
        threads: Threads of a CPU operation.
        device: cpu or cuda.
        strict: Refuse a sequence too short for its text instead of skipping it.
    """

    epochs: int = 8
    seeds: int = 1
    hidden: int = 64
    layers: int = 2
    stack: int = 4
    dropout: float = 0.0
    packed: bool = False
    optimizer: str = "adam"
    learning_rate: float | None = None
    threads: int = 1
    device: str = "cpu"
    strict: bool = False

    def __post_init__(self) -> None:
        for name in ("epochs", "seeds", "hidden", "layers", "stack", "threads"):
            check_whole(name, getattr(self, name), minimum=1, remedy="Give how many.")
        check_number("dropout", self.dropout, maximum=0.9, remedy="Give a share such as 0.2.")
        check_choice("optimizer", self.optimizer, tuple(LEARNING_RATES))
        check_choice("device", self.device, ("cpu", "cuda"))
        if self.device == "cuda" and not torch.cuda.is_available():
            raise value_error("device", "there", self.device, "Give cpu, or install a torch that sees the GPU.")
        if self.learning_rate is not None:
            check_number("learning_rate", self.learning_rate, above=True, remedy="Give a rate such as 0.01.")

    @property
    def rate(self) -> float:
        return LEARNING_RATES[self.optimizer] if self.learning_rate is None else self.learning_rate


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """Samples as the network takes them: frames float32 [F, 3 * stack], labels int64 [symbols], lengths in points."""

    frames: list[Tensor]
    labels: list[Tensor]
    lengths: NDArray[np.int64]
    texts: tuple[str, ...]
    stack: int


@dataclass(kw_only=True, slots=True)
class Run:
    """One strategy from one seed, on its way; `rows` grow by one an epoch."""

    label: str
    batching: lw.Batching
    seed: int
    model: nn.Module
    optimizer: torch.optim.Optimizer
    rows: list[EpochRow] = field(default_factory=list)


def run_study(
    corpus: Corpus,
    batchings: Mapping[str, lw.Batching],
    settings: Settings,
    *,
    progress: bool = False,
    command: str = "",
) -> Study:
    """Trains the network under every batching and returns what it cost and what came of it.

    Args:
        corpus: Train and validation samples.
        batchings: Label to batching; the first is the one that others' time is compared with.
        settings: What all runs share.
        progress: Show a bar on standard error.
        command: How the study was called, for the record.

    Returns:
        The study. On one CPU with one number of threads the same arguments give the same losses again, bit by bit; to
        that end torch's global seed and number of threads are set.

    Raises:
        ValueError: Where there is no batching or one that cuts sequences into chunks, or, if `settings.strict`, where a
            sequence is too short for its text.
    """
    _check_batchings(batchings)
    torch.set_num_threads(settings.threads)
    kept, skipped = learnable(corpus, settings)
    train, validation = (prepare(part, kept.alphabet, settings.stack) for part in (kept.train, kept.validation))
    rows: list[EpochRow] = []
    epochs = settings.seeds * settings.epochs * len(batchings)
    with tqdm(total=epochs, unit="epoch", disable=not progress) as bar:
        for row in _rows(batchings, settings, train, validation, kept.alphabet):
            rows.append(row)
            bar.set_postfix_str(f"{row.strategy} epoch {row.epoch}: validation loss {row.validation_loss:.3f}")
            bar.update()
    return Study(
        rows=tuple(rows),
        summaries=summarise(rows),
        settings=dataclasses.asdict(settings) | {"learning_rate": settings.rate},
        strategies={label: json.loads(batching.to_json()) for label, batching in batchings.items()},
        data=dataclasses.replace(kept, skipped=(*kept.skipped, *skipped)).as_dict(),
        machine=_machine(settings),
        date=now(),
        command=command,
    )


def learnable(corpus: Corpus, settings: Settings) -> tuple[Corpus, list[str]]:
    """Leaves out the samples with fewer frames than CTC needs to write their text, and says which, one line each."""
    skipped: list[str] = []
    parts = {}
    for name in ("train", "validation"):
        samples: Samples = getattr(corpus, name)
        frames = -(-samples.lengths // settings.stack)
        needed = np.array([frames_needed(text) for text in samples.texts])
        for sample in np.flatnonzero((frames < needed) | (needed == 0)):
            skipped.append(
                f"{name} sample {sample}: {frames[sample]} frames for a text that needs {max(needed[sample], 1)}"
            )
        if skipped and settings.strict:
            remedy = "Give a smaller stack, or leave strict out to skip it."
            raise value_error("data", "of samples as long as their texts", skipped[0], remedy)
        parts[name] = samples.take(np.flatnonzero((frames >= needed) & (needed > 0)))
        if not len(parts[name]):
            raise value_error("data", "of samples as long as their texts", skipped[0], "Give a smaller stack.")
    return dataclasses.replace(corpus, **parts), skipped


def prepare(samples: Samples, alphabet: str, stack: int) -> Prepared:
    """Stacks the points and numbers the symbols from 1."""
    classes = {symbol: number for number, symbol in enumerate(alphabet, start=1)}
    return Prepared(
        frames=[stack_frames(sample, stack) for sample in samples.strokes],
        labels=[torch.tensor([classes[symbol] for symbol in text]) for text in samples.texts],
        lengths=samples.lengths,
        texts=samples.texts,
        stack=stack,
    )


def first_runs(batchings: Mapping[str, lw.Batching], settings: Settings, *, classes: int, seed: int) -> list[Run]:
    """Makes a run for every batching, all from the same weights."""
    torch.manual_seed(seed)
    first = Recognizer(
        inputs=3 * settings.stack,
        classes=classes,
        hidden=settings.hidden,
        layers=settings.layers,
        dropout=settings.dropout,
        packed=settings.packed,
    )
    runs = []
    for label, batching in batchings.items():
        model = copy.deepcopy(first).to(settings.device)
        kind = {"adam": torch.optim.Adam, "adadelta": torch.optim.Adadelta}[settings.optimizer]
        optimizer = kind(model.parameters(), lr=settings.rate)
        runs.append(Run(label=label, batching=batching, seed=seed, model=model, optimizer=optimizer))
    return runs


def validate(model: nn.Module, samples: Prepared, alphabet: str) -> tuple[float, float]:
    """Mean CTC loss per symbol and character error rate, over fixed batches in random order."""
    batching = lw.strategy("random", cut=lw.FixedSize(VALIDATION_BATCH))
    plan = lw.make_plan(samples.lengths, batching, seed=0, epoch=0)
    losses, truths, guesses = [], [], []
    model.eval()
    with torch.no_grad():
        for batch in plan.batches():
            log_probabilities, counts, labels = _forward(model, samples, batch)
            losses.append(ctc_losses(log_probabilities, counts, labels))
            truths += [samples.texts[number] for number in batch]
            guesses += ["".join(alphabet[symbol - 1] for symbol in best) for best in decode(log_probabilities, counts)]
    return float(torch.cat(losses).mean()), float(jiwer.cer(truths, guesses))


def _check_batchings(batchings: Mapping[str, lw.Batching]) -> None:
    if not batchings:
        raise value_error("batchings", "at least one strategy", {}, "Give random, for example.")
    for label, batching in batchings.items():
        if batching.chunks is not None:
            raise value_error(
                "batchings", "of whole sequences", label, "Leave the chunks out: CTC needs the whole text."
            )


def _rows(
    batchings: Mapping[str, lw.Batching], settings: Settings, train: Prepared, validation: Prepared, alphabet: str
) -> Iterator[EpochRow]:
    for seed in range(settings.seeds):
        runs = first_runs(batchings, settings, classes=len(alphabet) + 1, seed=seed)
        for run in runs:
            _warm_up(run, train)
        for epoch in range(1, settings.epochs + 1):
            for run in runs:
                run.rows.append(_train_epoch(run, train, validation, alphabet, epoch))
                yield run.rows[-1]


def _train_epoch(run: Run, train: Prepared, validation: Prepared, alphabet: str, epoch: int) -> EpochRow:
    start = time.perf_counter()
    plan = lw.make_plan(train.lengths, run.batching, seed=run.seed, epoch=epoch)
    planning = time.perf_counter() - start
    # What the plan pads to, a bucket's edge for some: stacked as the points are.
    widths = (-(-plan.padded_lengths[plan.grid.reshape(-1), 0] // train.stack)).tolist()
    # Dropout's masks follow seed and epoch only: a strategy more or less in the study changes no other's.
    torch.manual_seed(int(np.random.SeedSequence([run.seed, epoch]).generate_state(1)[0]))
    run.model.train()
    start = time.perf_counter()
    losses = [_step(run, train, batch, width) for batch, width in zip(plan.batches(), widths, strict=True)]
    training_loss = float(torch.cat(losses).mean())  # waits for a GPU to finish
    seconds = time.perf_counter() - start
    measured = lw.measure(plan, train.lengths)
    validation_loss, error_rate = validate(run.model, validation, alphabet)
    return EpochRow(
        strategy=run.label,
        seed=run.seed,
        epoch=epoch,
        steps=len(losses),
        seconds=seconds,
        planning_seconds=planning,
        elapsed_seconds=seconds + (run.rows[-1].elapsed_seconds if run.rows else 0.0),
        useful_frames=int(sum(train.lengths[batch].sum() for batch in plan.batches())),
        padding_share=float(measured.padding_share),
        mixing=float(measured.mixing),
        training_loss=training_loss,
        validation_loss=validation_loss,
        character_error_rate=error_rate,
    )


def _step(run: Run, train: Prepared, batch: NDArray[np.int64], width: int) -> Tensor:
    """One optimiser step on the mean loss of a batch padded to `width` frames; the losses of its sequences [B]."""
    losses = ctc_losses(*_forward(run.model, train, batch, width))
    run.optimizer.zero_grad()
    losses.mean().backward()
    nn.utils.clip_grad_norm_(run.model.parameters(), CLIPPED_NORM)
    run.optimizer.step()
    return losses.detach()


def _forward(
    model: nn.Module, samples: Prepared, batch: NDArray[np.int64], width: int = 0
) -> tuple[Tensor, Tensor, list[Tensor]]:
    frames, counts = pad_frames([samples.frames[number] for number in batch], width=width)
    device = next(model.parameters()).device
    return model(frames.to(device), counts.to(device)), counts, [samples.labels[number] for number in batch]


def _warm_up(run: Run, train: Prepared) -> None:
    """Plans once and runs the longest sequences through a copy, so that no first call's cost falls on an epoch."""
    lw.make_plan(train.lengths, run.batching, seed=run.seed, epoch=0)
    model = copy.deepcopy(run.model)
    longest = np.argsort(train.lengths, kind="stable")[-VALIDATION_BATCH:]
    ctc_losses(*_forward(model, train, longest)).mean().backward()


def _machine(settings: Settings) -> dict[str, object]:
    name = torch.cuda.get_device_name() if settings.device == "cuda" else ""
    return describe_machine(
        torch_version=torch.__version__, threads=torch.get_num_threads(), device=settings.device, device_name=name
    )

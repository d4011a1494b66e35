"""Ge et al. 2021 rerun: Tacotron 2 by random, sorted, semi-sorted, bucket and alternated-sorting batching.

    lengthwise reproduce ge2021 --small

Every row of table 2 is trained from the same weights, and so are two of ours (max-entropy batching, ME). A new plan
is made for each epoch. Adam with a rate of 0.001, a weight decay of 1e-6 and gradients clipped to a norm of 1 is that
of the NVIDIA recipe, of which the paper trained a modified version, and so is the loss, a mean over the padded
rectangle; what is validated on is batched at random for all.

Deviations: data, network, batch size, epochs and learning rate of the small size are ours; its network is narrow and
takes a higher rate. Dynamic batch sizes close a batch once it has reached the capacity of the base batch, and overshoot
it (see `lengthwise.DynamicSize`): on the paper's lengths that makes 608, 442 and 418 batches with RAND, SSB and SB,
nearer to its 606, 449 and 419 than the 644, 462 and 437 of the rule that it prints, and with SSB only near. The
authors' own code, branch ssb-dbs of their public repository, gives neither: its batching.py sorts from long to short,
never exceeds the capacity, and takes for it B0 times the mean of the B0 longest clips. Ours sorts from short to long.
An epoch's time is that of planning and training; what else the paper's minutes hold it does not say.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise_recipes.ge2021.batchings import (
    CHOICES,
    COUNTED,
    RANDOMIZATION_FACTOR,
    Knobs,
    batching_of,
    batchings,
    find_knobs,
    measure_batching,
    name_strategy,
)
from lengthwise_recipes.ge2021.figures import SAMPLES
from lengthwise_recipes.ge2021.outcomes import Outcome, frame_saving, outcomes, reduction, spreads, stages, time_saving
from lengthwise_recipes.ge2021.printed import TABLE_4
from lengthwise_recipes.ge2021.table1 import Row
from lengthwise_recipes.study.results import Study, plain
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.study import run_study
from lengthwise_recipes.synthesis.corpus import SpeechCorpus
from lengthwise_recipes.synthesis.network import Network
from lengthwise_recipes.synthesis.task import SynthesisTask

SCHEMA = "lengthwise-ge2021-1"
WEIGHT_DECAY = 1e-6  # of the NVIDIA recipe
VALIDATION_SHARE = 0.2
LIKE = {"ME-BR": "SSB-BR", "ME-DBS-BR": "SSB-DBS-BR"}  # ours, and what it pads as


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """How large a rerun is; for width, bands and reduction see `Network`.

    Attributes:
        count: Recordings, train and validation together.
        batch_size: B0, the base batch size.
        max_words: Of the longest of the project's own sentences, where these are spoken.
    """

    name: str
    count: int
    epochs: int
    seeds: int
    batch_size: int
    width: float = 1.0
    bands: int = 80
    reduction: int = 1
    max_words: int = 25
    learning_rate: float = 1e-3  # of the NVIDIA recipe
    device: str = "cpu"


SMALL = Size(
    name="small",
    count=250,
    epochs=12,
    seeds=3,
    batch_size=8,
    width=1 / 16,
    bands=20,
    reduction=6,
    max_words=10,
    learning_rate=3e-3,
)
FULL = Size(name="full", count=13_100, epochs=220, seeds=1, batch_size=16, device="cuda")


def reproduce(
    corpus: SpeechCorpus,
    size: Size,
    *,
    table1: Sequence[Row] = (),
    strict: bool = False,
    folder: Path | None = None,
    progress: bool = False,
    command: str = "",
) -> dict[str, Any]:
    """Trains every strategy.

    Args:
        corpus: Recordings, four fifths of which are trained on.
        size: `SMALL`, `FULL`, or one of your own.
        table1: The paper's table 1 on its own lengths, as `table1.table1` gives it: what the paper claims of padding
            and of batch counts is judged on it where it is given, not on the recordings.
        strict: Refuse a recording that cannot be used instead of skipping it.
        folder: Keeps the checkpoints: a rerun that was interrupted goes on from there.
        progress: Show a bar on standard error.
        command: How it was called, for the record.

    Returns:
        The document, ready for JSON: knobs, paddings, outcomes and the study. `claims.claims_of` judges it.

    Raises:
        ValueError: As `SynthesisTask.of`, `find_knobs` and `run_study` do.
    """
    task = SynthesisTask.of(corpus, network=network(size), validation_share=VALIDATION_SHARE, strict=strict)
    knobs = find_knobs(task.lengths, size.batch_size)
    study = run_study(
        task,
        batchings(knobs, size.batch_size),
        settings(size),
        progress=progress,
        command=command,
        checkpoints=folder,
    )
    return _document(task.lengths, size, knobs, study, table1)


def settings(size: Size) -> Settings:
    """What the runs share.

    Raises:
        ValueError: As `Settings` does, before anything is read or trained.
    """
    return Settings(
        epochs=size.epochs,
        seeds=size.seeds,
        optimizer="adam",
        learning_rate=size.learning_rate,
        weight_decay=WEIGHT_DECAY,
        device=size.device,
        memory=True,
    )


def network(size: Size) -> Network:
    """How large the network is; raises a ValueError as `Network` does."""
    return Network(width=size.width, bands=size.bands, reduction=size.reduction)


def _document(
    lengths: NDArray[np.int64], size: Size, knobs: Knobs, study: Study, table1: Sequence[Row]
) -> dict[str, Any]:
    found, every = outcomes(study.rows), CHOICES | COUNTED
    padding = {
        label: measure_batching(lengths, batching_of(choice, knobs, size.batch_size), seeds=size.seeds)
        for label, choice in every.items()
    }
    values, counts = np.unique(lengths, return_counts=True)
    return {
        "schema": SCHEMA,
        "date": study.date,
        "command": study.command,
        "machine": dict(study.machine),
        "size": dataclasses.asdict(size),
        "knobs": plain({"randomization_factor": RANDOMIZATION_FACTOR, **dataclasses.asdict(knobs)}),
        "strategies": {label: name_strategy(choice, knobs) for label, choice in every.items()},
        "padding": {label: _spreads_and_values(each) for label, each in padding.items()},
        "stages": list(stages(size.epochs)),
        "outcomes": {label: plain(_outcome(found, label)) for label in found},
        "parts": [[plain(_pair(found, *pair)) for pair in part.pairs] for part in TABLE_4],
        "ours": [plain(_pair(found, like, label)) for label, like in LIKE.items()],
        "lengths": {"values": values.tolist(), "counts": counts.tolist()},
        "samples": _samples(lengths).tolist(),
        "study": study.as_dict(),
        "table1": [dataclasses.asdict(row) for row in table1],
    }


def _outcome(found: Mapping[str, Outcome], label: str) -> dict[str, Any]:
    """Table 2 without its padding, and table 3, of one strategy."""
    each, random = found[label], found["RAND"]
    values = {"seconds": each.median_seconds, "steps": each.steps.mean(axis=1), "saved": time_saving(random, each)}
    return spreads(values | each.stage_losses()) | {"saved_frames": frame_saving(random, each)}


def _spreads_and_values(measures: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, Any]]:
    """The spread over the seeds of each [seeds], and the values themselves."""
    found = spreads(measures)
    return {name: plain(found[name]) | {"values": values.tolist()} for name, values in measures.items()}


def _pair(found: Mapping[str, Outcome], before: str, after: str) -> dict[str, Any]:
    """A row of table 4."""
    return {"from": before, "to": after, **spreads({"reduction": reduction(found[before], found[after])})}


def _samples(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """As many of the lengths, at random, as figures 1 and 3 show."""
    plan = lw.make_plan(lengths, lw.Batching(order=lw.Shuffled(), cut=lw.FixedSize(SAMPLES)))
    return lengths[plan.batch(0)]

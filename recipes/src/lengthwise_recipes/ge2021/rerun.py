"""A rerun of Ge et al. 2021: Tacotron 2 by random, sorted, semi-sorted, bucket and alternated-sorting batching.

    lengthwise reproduce ge2021 --small

Every row of table 2, and two of ours (max-entropy batching, ME), are trained from the same weights. Each epoch has a
new plan. Adam's rate of 0.001, its weight decay of 1e-6 and gradients clipped to a norm of 1 are from the NVIDIA
recipe that the paper modifies. So is the loss, a mean over the padded rectangle. All strategies validate on the same
random batches.

Deviations:
- Data, network, batch size, epochs and learning rate of the small size are ours. Its network is narrow and takes a
  higher rate.
- A dynamic batch closes once it has reached the capacity of the base batch, and may exceed it (see
  `lengthwise.DynamicSize`). On the paper's lengths that makes 608, 442 and 418 batches with RAND, SSB and SB. The
  paper has 606, 449 and 419; the rule that it prints makes 645, 462 and 437.
- The authors' code, branch ssb-dbs of their public repository, has the printed rule, and sorts from long to short. Ours
  sorts from short to long in training.
- An epoch's time is that of planning and training. The paper does not say what its minutes include.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise_recipes.ge2021.batchings import (
    CHOICES,
    COUNTED,
    EPOCHS,
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
from lengthwise_recipes.ge2021.table1 import BATCH_SIZE, STRATEGIES, parted_share, table1
from lengthwise_recipes.speech.corpus import Corpus
from lengthwise_recipes.study.results import Study, plain
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.study import run_study
from lengthwise_recipes.synthesis.network import Network
from lengthwise_recipes.synthesis.task import SynthesisTask

SCHEMA = "lengthwise-ge2021-1"
WEIGHT_DECAY = 1e-6  # of the NVIDIA recipe
VALIDATION_SHARE = 0.2
KNOB_SETS = 2  # training sets of the paper's lengths on which knobs are chosen: each takes 1,400 plans, ten seconds
LIKE = {"ME-BR": "SSB-BR", "ME-DBS-BR": "SSB-DBS-BR"}  # ours, and the strategy with the same padding


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """The size of a rerun; for width, bands and reduction see `Network`.

    Attributes:
        count: Recordings, train and validation together.
        batch_size: B0, the base batch size.
        max_words: Words of the longest generated sentence, if the corpus is generated.
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
    timed: int = 0
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
    corpus: Corpus,
    size: Size,
    *,
    paper_sets: Mapping[int, NDArray[np.int64]] = MappingProxyType({}),
    strict: bool = False,
    folder: Path | None = None,
    progress: bool = False,
    command: str = "",
) -> dict[str, Any]:
    """Trains every strategy.

    Args:
        corpus: Recordings; four fifths are for training.
        size: `SMALL`, `FULL` or your own.
        paper_sets: Random training sets of the paper's own lengths, by seed. Claims on padding, knobs and batch counts
            are judged on them, or on the recordings if there are none.
        strict: Raise for the first unusable recording instead of skipping it.
        folder: Stores the checkpoints, from which an interrupted rerun continues.
        progress, command: See `run_study`.

    Returns:
        The document, ready for JSON: knobs, paddings, outcomes and the study. `claims.claims_of` judges it.

    Raises:
        ValueError: As `SynthesisTask.of`, `find_knobs` and `run_study` do.
    """
    task = SynthesisTask.of(corpus, network=network(size), validation_share=VALIDATION_SHARE, strict=strict)
    knobs = find_knobs([task.lengths] * EPOCHS, size.batch_size)
    study = run_study(
        task, batchings(knobs, size.batch_size), settings(size), progress=progress, command=command, checkpoints=folder
    )
    return _document(task.lengths, size, knobs, study, paper_sets)


def settings(size: Size) -> Settings:
    """Returns the settings that all runs share; raises a ValueError as `Settings` does."""
    return Settings(
        epochs=size.epochs,
        seeds=size.seeds,
        optimizer="adam",
        learning_rate=size.learning_rate,
        weight_decay=WEIGHT_DECAY,
        device=size.device,
        memory=True,
        timed=size.timed,
    )


def network(size: Size) -> Network:
    """Returns the network of a size; raises a ValueError as `Network` does."""
    return Network(width=size.width, bands=size.bands, reduction=size.reduction)


def _document(
    lengths: NDArray[np.int64], size: Size, knobs: Knobs, study: Study, paper_sets: Mapping[int, NDArray[np.int64]]
) -> dict[str, Any]:
    by_label, choices = outcomes(study.rows, study.timed), CHOICES | COUNTED
    padding = {
        label: measure_batching(lengths, batching_of(choice, knobs, size.batch_size), seeds=size.seeds)
        for label, choice in choices.items()
    }
    samples = lw.make_plan(lengths, lw.Batching(order=lw.Shuffled(), cut=lw.FixedSize(SAMPLES)))  # figures 1 and 3
    sets = list(paper_sets.values())[:KNOB_SETS]
    return {
        "schema": SCHEMA,
        **study.origin,
        "size": dataclasses.asdict(size),
        "knobs": plain({"randomization_factor": RANDOMIZATION_FACTOR, **dataclasses.asdict(knobs)}),
        "strategies": {label: name_strategy(choice, knobs) for label, choice in choices.items()},
        "padding": {label: _spreads_and_values(measures) for label, measures in padding.items()},
        "stages": list(stages(size.epochs)),
        "outcomes": {label: plain(_outcome(by_label, label)) for label in by_label},
        "parts": [[plain(_pair(by_label, *pair)) for pair in part] for part in TABLE_4],
        "ours": [plain(_pair(by_label, like, label)) for label, like in LIKE.items()],
        "lengths": _histogram(lengths),
        "samples": lengths[samples.batch(0)].tolist(),
        "study": study.as_dict(),
        "table1": [dataclasses.asdict(row) for row in table1(paper_sets)] if paper_sets else [],
        "parted": {label: _parted(paper_sets, label) for label in ("SB", "SSB")} if paper_sets else {},
        "paper_lengths": _histogram(sets[0]) if sets else None,
        "paper_knobs": plain(dataclasses.asdict(find_knobs(sets, BATCH_SIZE))) if sets else None,
    }


def _histogram(lengths: NDArray[np.int64]) -> dict[str, list[int]]:
    values, counts = np.unique(lengths, return_counts=True)
    return {"values": values.tolist(), "counts": counts.tolist()}


def _parted(samples: Mapping[int, NDArray[np.int64]], label: str) -> list[float]:
    """Returns the share of the pairs in a batch that the next epoch parts, under each seed."""
    strategy = STRATEGIES[f"{label}-BR"]
    return [parted_share(sample, strategy, seed=seed) for seed, sample in samples.items()]


def _outcome(by_label: Mapping[str, Outcome], label: str) -> dict[str, Any]:
    """Returns one strategy's row of table 2, without padding, and of table 3."""
    outcome, random = by_label[label], by_label["RAND"]
    saved = time_saving(random, outcome)
    values = {"seconds": outcome.epoch_seconds, "steps": outcome.steps.mean(axis=1), "saved": saved}
    return spreads(values | outcome.stage_losses()) | {"saved_frames": frame_saving(random, outcome)}


def _spreads_and_values(measures: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, Any]]:
    """Returns the spread over the seeds of each measure [seeds], with its values."""
    by_name = spreads(measures)
    return {name: plain(by_name[name]) | {"values": values.tolist()} for name, values in measures.items()}


def _pair(by_label: Mapping[str, Outcome], base: str, changed: str) -> dict[str, Any]:
    """Returns a row of table 4."""
    return {"from": base, "to": changed, **spreads({"reduction": reduction(by_label[base], by_label[changed])})}

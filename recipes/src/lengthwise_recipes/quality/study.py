"""The study of one task: trains every strategy from the same weights and compares their losses.

    kind = KINDS["handwriting"]
    task = kind.make(Source(data=None, count=kind.count))
    document = study_quality(task, kind, Settings(seeds=5), paddings=kind.paddings)

All strategies have the same first weights, epochs, optimiser, and held-out sequences in the same random batches. Only
the batching differs. Losses are compared after equally many epochs and in equal training time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.intervals import interval
from lengthwise_recipes.quality.comparisons import MEASURES, Losses, compare, correlate, losses_of
from lengthwise_recipes.quality.outcomes import Outcome, equal_seconds, outcomes
from lengthwise_recipes.quality.strategies import OURS, RANDOM, Compared, candidates, choose_setups, list_left_out
from lengthwise_recipes.quality.tasks import Kind
from lengthwise_recipes.study.results import Study, plain
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.study import run_study
from lengthwise_recipes.study.task import Task

SCHEMA = "lengthwise-quality-2"
BATCH_SIZE = 16


def study_quality(
    task: Task,
    kind: Kind,
    settings: Settings,
    *,
    paddings: Sequence[float],
    batch_size: int = BATCH_SIZE,
    folder: Path | None = None,
    progress: bool = False,
    command: str = "",
) -> dict[str, Any]:
    """Trains every strategy under every seed and compares them.

    Args:
        task: The task to learn; its lengths are [n].
        kind: The names of its losses and metrics.
        settings: Settings of the training, on one process.
        paddings: Shares to compare at, rising.
        batch_size: Sequences in a batch; for dynamic sizes, in a batch of the longest sequences.
        folder: Folder of the checkpoints: an interrupted study continues from there.
        progress: Show a bar on standard error.
        command: The command line, for the record.

    Returns:
        The document, ready for JSON: strategies, comparisons, correlations and the runs.

    Raises:
        ValueError: As `candidates` and `run_study` do.
    """
    fitted = candidates(task.lengths, paddings, batch_size=batch_size)
    strategies = choose_setups(task.lengths, fitted, base_batch=base_batch(task, batch_size))
    study = run_study(
        task,
        {strategy.label: strategy.setup for strategy in strategies},
        settings,
        progress=progress,
        command=command,
        checkpoints=folder,
    )
    facts = {"paddings": list(paddings), "batch_size": batch_size, "left_out": list_left_out(fitted)}
    return _document(kind, strategies, study) | {"sequences": len(task.lengths), **facts}


def base_batch(task: Task, batch_size: int) -> float:
    """Returns the size of a batch of random sequences, in the unit of the task."""
    return float(batch_size if task.counts == "sequences" else batch_size * task.lengths.mean())


def _document(kind: Kind, strategies: Sequence[Compared], study: Study) -> dict[str, Any]:
    by_label = outcomes(study.rows, study.tests, losses={"validation": kind.loss, "test": kind.test_loss})
    losses = losses_of(by_label)
    return {
        "schema": SCHEMA,
        "date": study.date,
        "command": study.command,
        "machine": dict(study.machine),
        "task": kind.name,
        "words": kind.words,
        "loss": {"name": kind.loss, "test_name": kind.test_loss, "unit": kind.unit},
        "metrics": dict(kind.metrics),
        "ours": OURS,
        "reference": RANDOM,
        "data": dict(study.data),
        "settings": dict(study.settings),
        "equal_seconds": plain(equal_seconds(by_label)),
        "strategies": [_strategy(strategy, by_label[strategy.label], losses) for strategy in strategies],
        "comparisons": [plain(dataclasses.asdict(row)) for row in compare(strategies, losses)],
        "correlations": [plain(dataclasses.asdict(row)) for row in correlate(strategies, losses)],
        "runs": [run for label, outcome in by_label.items() for run in _runs(label, outcome)],
    }


def _strategy(strategy: Compared, outcome: Outcome, losses: Losses) -> dict[str, Any]:
    """Returns the row of a strategy; its paired differences from random batches are below 0 if it is better."""
    candidate, by_measure = strategy.candidate, losses[strategy.label]
    return plain(
        {
            "label": strategy.label,
            "order": candidate.order,
            "strategy": candidate.strategy,
            "padding": candidate.padding,
            "padding_share": outcome.padding_share,
            "mixing": strategy.mixing,
            "dynamic": candidate.dynamic,
            "learning_rate_scaling": strategy.setup.learning_rate_scaling,
            "steps": outcome.steps,
            "seconds_per_epoch": outcome.seconds_per_epoch,
            "losses": _intervals(by_measure),
            "to_random": _intervals({measure: by_measure[measure] - losses[RANDOM][measure] for measure in MEASURES}),
            "metrics": _intervals(outcome.metrics),
        }
    )


def _intervals(values: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, float]]:
    """Returns the mean over the seeds of each [R], and its interval."""
    return {name: dataclasses.asdict(interval(by_seed)) for name, by_seed in values.items()}


def _runs(label: str, outcome: Outcome) -> list[dict[str, Any]]:
    """Returns for each seed the seconds of its epochs, their losses on both parts, and its metrics."""
    return [
        {
            "strategy": label,
            "seed": seed,
            "seconds": [plain(value) for value in outcome.seconds[seed].tolist()],
            "losses": [plain(value) for value in outcome.losses["validation"][seed].tolist()],
            "test_losses": [plain(value) for value in outcome.losses["test"][seed].tolist()],
            "metrics": {name: plain(float(values[seed])) for name, values in outcome.metrics.items()},
        }
        for seed in range(len(outcome.seconds))
    ]

"""The study of one task: trains every strategy from the same weights and compares their losses.

    kind = KINDS["handwriting"]
    task = kind.make(Source(data=None, count=kind.count))
    document = study_quality(task, kind, Settings(seeds=5), paddings=kind.paddings)

All strategies have the same first weights, epochs, optimiser, and held-out sequences in the same random batches. Only
the batching differs. Losses are compared after equally many epochs and in equal training time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.quality.strategies import OURS, RANDOM, Compared, candidates, choose_setups, list_left_out
from lengthwise_recipes.quality.tasks import Kind
from lengthwise_recipes.study.results import EpochRow, RunRow, Study, plain
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.study import run_study
from lengthwise_recipes.study.task import Task

SCHEMA = "lengthwise-quality-3"
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
        progress, command: See `run_study`.

    Returns:
        The document, ready for JSON: the strategies and their runs.

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
    runs = list_runs(study.rows, study.tests, kind)
    seconds: dict[str, list[list[float]]] = {}
    for run in runs:
        seconds.setdefault(run["strategy"], []).append(run["seconds"])
    epoch_seconds = seconds_per_epoch({label: np.array(rows) for label, rows in seconds.items()})
    return {
        "schema": SCHEMA,
        **study.origin,
        "task": kind.name,
        "words": kind.words,
        "loss": {"name": kind.loss, "test_name": kind.test_loss, "unit": kind.unit},
        "metrics": dict(kind.metrics),
        "ours": OURS,
        "reference": RANDOM,
        "data": dict(study.data),
        "settings": dict(study.settings),
        "strategies": [_strategy(strategy, study.rows, epoch_seconds[strategy.label]) for strategy in strategies],
        "runs": plain(runs),
    }


def _strategy(strategy: Compared, rows: Sequence[EpochRow], seconds: float) -> dict[str, Any]:
    candidate = strategy.candidate
    own_rows = [row for row in rows if row.strategy == strategy.label]
    return plain(
        {
            "label": strategy.label,
            "order": candidate.order,
            "strategy": candidate.strategy,
            "padding": candidate.padding,
            "padding_share": fmean(row.padding_share for row in own_rows),
            "mixing": strategy.mixing,
            "dynamic": candidate.dynamic,
            "learning_rate_scaling": strategy.setup.learning_rate_scaling,
            "steps": fmean(row.steps for row in own_rows),
            "seconds_per_epoch": seconds,
        }
    )


def list_runs(rows: Sequence[EpochRow], tests: Sequence[RunRow], kind: Kind) -> list[dict[str, Any]]:
    """Returns a dict for each strategy and seed: seconds and losses of its epochs, and its metrics after the last.

    Args:
        rows: Equally many epochs for every strategy and seed.
        tests: One for each strategy and seed, or empty.
        kind: The names of its losses.
    """
    tested = {(row.strategy, row.seed): row.metrics for row in tests}
    epochs_by_run: dict[tuple[str, int], list[EpochRow]] = {}
    for row in sorted(rows, key=lambda row: row.epoch):
        epochs_by_run.setdefault((row.strategy, row.seed), []).append(row)
    runs = []
    for (label, seed), epochs in epochs_by_run.items():
        metrics = {**epochs[-1].metrics, **tested.get((label, seed), {})}
        runs.append(
            {
                "strategy": label,
                "seed": seed,
                "seconds": [row.seconds + row.planning_seconds for row in epochs],
                "losses": [row.metrics[kind.loss] for row in epochs],
                "test_losses": [row.metrics[kind.test_loss] for row in epochs],
                "metrics": {name: metrics[name] for name in metrics if name not in (kind.loss, kind.test_loss)},
            }
        )
    return runs


def seconds_per_epoch(seconds: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Returns the seconds of an epoch of each strategy, from those of its seeds and epochs, [R, E].

    Other programs slow a machine in some minutes of a study. In each round every strategy trains one epoch, so its
    seconds are divided by those of the median strategy of the round. The result is the median of these ratios, times
    the seconds of the median round. All epochs of a strategy compute about the same.

    >>> busy = np.array([[1.0, 5.0, 1.0]])  # in the second round the machine was busy
    >>> seconds_per_epoch({"slow": 2 * busy, "middle": busy, "fast": 0.5 * busy})
    {'slow': 2.0, 'middle': 1.0, 'fast': 0.5}
    """
    rounds = np.median(list(seconds.values()), axis=0)
    ratios = {label: np.median(strategy_seconds / rounds) for label, strategy_seconds in seconds.items()}
    return {label: float(ratio * np.median(rounds)) for label, ratio in ratios.items()}

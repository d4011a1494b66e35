"""The study of one task: every strategy from the same weights, and what its losses say of mixing.

    kind = KINDS["handwriting"]
    task = kind.make(Source(data=None, count=kind.count))
    document = study_quality(task, kind, Settings(seeds=5), paddings=kind.paddings)

Everything but the batching is equal: first weights, epochs, optimiser, and the sequences that strategies are judged by,
which are batched at random for all. Losses are compared after as many epochs, and in as much training time.
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
        task: What is learnt; its lengths are [n].
        kind: By what it is judged.
        settings: Of the training, on one process.
        paddings: Shares to compare at, rising.
        batch_size: Sequences in a batch; of dynamic batches, those of the longest sequences.
        folder: Keeps the checkpoints: a study that was interrupted goes on from there.
        progress: Show a bar on standard error.
        command: How it was called, for the record.

    Returns:
        The document, ready for JSON: strategies, comparisons, correlations and the runs.

    Raises:
        ValueError: As `candidates` and `run_study` do.
    """
    found = candidates(task.lengths, paddings, batch_size=batch_size)
    chosen = choose_setups(task.lengths, found, base_batch=base_batch(task, batch_size))
    study = run_study(
        task,
        {each.label: each.setup for each in chosen},
        settings,
        progress=progress,
        command=command,
        checkpoints=folder,
    )
    facts = {"paddings": list(paddings), "batch_size": batch_size, "left_out": list_left_out(found)}
    return _document(kind, chosen, study) | {"sequences": len(task.lengths), **facts}


def base_batch(task: Task, batch_size: int) -> float:
    """The size of a batch of random sequences, in what the task counts."""
    return float(batch_size if task.counts == "sequences" else batch_size * task.lengths.mean())


def _document(kind: Kind, chosen: Sequence[Compared], study: Study) -> dict[str, Any]:
    found = outcomes(study.rows, study.tests, losses={"validation": kind.loss, "test": kind.test_loss})
    losses = losses_of(found)
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
        "equal_seconds": plain(equal_seconds(found)),
        "strategies": [_strategy(each, found[each.label], losses) for each in chosen],
        "comparisons": [plain(dataclasses.asdict(each)) for each in compare(chosen, losses)],
        "correlations": [plain(dataclasses.asdict(each)) for each in correlate(chosen, losses)],
        "runs": [run for label, outcome in found.items() for run in _runs(label, outcome)],
    }


def _strategy(each: Compared, outcome: Outcome, losses: Losses) -> dict[str, Any]:
    """What a strategy is, cost and came to; its differences to random batches, seed by seed, are below 0 if better."""
    candidate, own = each.candidate, losses[each.label]
    return plain(
        {
            "label": each.label,
            "order": candidate.order,
            "strategy": candidate.strategy,
            "padding": candidate.padding,
            "padding_share": outcome.padding_share,
            "mixing": each.mixing,
            "dynamic": candidate.dynamic,
            "learning_rate_scaling": each.setup.learning_rate_scaling,
            "steps": outcome.steps,
            "seconds_per_epoch": outcome.seconds_per_epoch,
            "losses": _intervals(own),
            "to_random": _intervals({measure: own[measure] - losses[RANDOM][measure] for measure in MEASURES}),
            "metrics": _intervals(outcome.metrics),
        }
    )


def _intervals(values: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, float]]:
    """The mean over the seeds and its interval of each [R]."""
    return {name: dataclasses.asdict(interval(each)) for name, each in values.items()}


def _runs(label: str, outcome: Outcome) -> list[dict[str, Any]]:
    """Seconds and losses of each seed's epochs on both parts, and its metrics."""
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

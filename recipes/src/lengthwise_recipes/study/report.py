"""The report of a study, for the HTML page of `lengthwise study --html`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.report.tables import Table
from lengthwise_recipes.study.charts import loss_curves
from lengthwise_recipes.study.results import Study, runs_of
from lengthwise_recipes.study.setups import Setup

FIRST = 1  # the first epoch of training
_ENOUGH = 5  # seeds for a meaningful spread


def doubt_losses(seeds: int) -> str:
    """Returns a warning if chance may have ordered the strategies, for losses of few seeds; else nothing."""
    if seeds >= _ENOUGH:
        return ""
    runs, other_seeds = ("One run", "another seed") if seeds == 1 else (f"{seeds} runs", "other seeds")
    return f"{runs} of each strategy: {other_seeds} may change these losses by more than strategies differ."


def first_plans(planned: Sequence[Setup], lengths: NDArray[np.int64]) -> dict[str, lw.Plan]:
    """Returns the plan of the first epoch of each setup, from the first seed."""
    return {
        setup.label: lw.make_plan(lengths, setup.batching, seed=0, epoch=FIRST, world_size=setup.processes)
        for setup in planned
    }


def outcomes(study: Study, heads: Sequence[str], rows: Sequence[tuple[str, ...]]) -> dict[str, Any]:
    """Returns the report of the training: the answer, the seconds of an epoch, the curves and the table.

    `heads` and `rows` are those of the table that the command prints.
    """
    curves = loss_curves(_curves(study), x_label="seconds of training", y_label="validation loss")
    doubt = doubt_losses(len({row.seed for row in study.rows}))
    note = (
        f"{study.data['train_samples']:,} samples to learn from: {study.data['name']}. "
        "The table has means over all epochs and seeds; the sections below show the first epoch. Validation loss is in "
        f"nats per symbol, after the last epoch. CER: the character error rate. {doubt}"
    ).rstrip()
    cells = [tuple(map(_in_a_line, row)) for row in rows]
    table = Table(tuple(map(_in_a_line, heads)), cells, "What was learned", note=note)
    return {
        "title": str(study.data["name"]),
        "answer": _answer(study),
        "seconds": {summary.strategy: summary.seconds_per_epoch for summary in study.summaries},
        "charts": [curves],
        "tables": [table],
    }


def _answer(study: Study) -> str:
    first, last = study.summaries[0], study.summaries[-1]
    first_sentence = f"An epoch of {first.strategy} took {first.seconds_per_epoch:.3g} s"
    loss = f"{first.validation_loss.mean:.3f}"
    if first is last:
        return f"{first_sentence}; its validation loss at the end was {loss}."
    return (
        f"{first_sentence}, one of {last.strategy} {last.seconds_per_epoch:.3g} s; "
        f"their validation losses at the end were {loss} and {last.validation_loss.mean:.3f}."
    )


def _curves(study: Study) -> dict[str, list[list[tuple[float, float]]]]:
    """Returns for each strategy and seed the training seconds and the validation loss after each epoch."""
    return {
        summary.strategy: [
            [(row.elapsed_seconds, row.validation_loss) for row in run] for run in runs_of(study.rows, summary.strategy)
        ]
        for summary in study.summaries
    }


def _in_a_line(text: str) -> str:
    return " ".join(text.split())

"""The report of a study of quality, for the page of HTML that `lengthwise study quality --html` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise.report.tables import Table
from lengthwise_recipes.quality.page import SPARE, lead, seconds_note, strategy_cells, strategy_heads
from lengthwise_recipes.study.charts import loss_curves

FIRST = 1  # the first epoch of training


def first_plans(document: Mapping[str, Any], lengths: NDArray[np.int64]) -> dict[str, lw.Plan]:
    """Returns the plans of the first epoch: of random and sorted batches, and of the strategies at the least padding.

    Dynamic sizes are left out, because their batches have other numbers of sequences.
    """
    cut = lw.FixedSize(document["batch_size"])
    return {
        row["label"]: lw.make_plan(lengths, parse_strategy(row["strategy"], cut=cut), seed=0, epoch=FIRST)
        for row in _shown(document)
    }


def outcomes(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the report of the training in a document: the answer, seconds, test loss against time, and a table."""
    curves = loss_curves(
        {row["label"]: [_mean_run(document, row)] for row in _shown(document)},
        x_label="seconds of training",
        y_label="test loss",
    )
    heads = strategy_heads(document)
    columns = [column for column, head in enumerate(heads) if head not in SPARE]
    cells = [tuple(row[column] for column in columns) for row in strategy_cells(document)]
    note = (
        f"{document['sequences']:,} sequences to learn from: {document['data']['name']}. Curves are means over "
        f"{document['settings']['seeds']} seeds; grey: random batches. Loss in {document['loss']['unit']}; intervals "
        f"of 95 % over the seeds. {seconds_note(document)} The "
        "sections below show the first epoch."
    )
    table = Table(tuple(heads[column] for column in columns), cells, "What was learned", note=note)
    ours = [row["label"] for row in _shown(document) if row["order"] == document["ours"]]
    return {
        "title": document["data"]["name"],
        "answer": lead([document])[0],
        "best": ours[0] if ours else "",
        "seconds": {row["label"]: row["seconds_per_epoch"] for row in _shown(document)},
        "charts": [curves],
        "tables": [table],
    }


def _shown(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    least = min(document["paddings"])
    return [row for row in document["strategies"] if row["padding"] in (None, least) and not row["dynamic"]]


def _mean_run(document: Mapping[str, Any], strategy: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Returns for each epoch its end in seconds and the test loss, both means over the seeds."""
    losses = [run["test_losses"] for run in document["runs"] if run["strategy"] == strategy["label"]]
    means = np.mean(losses, axis=0).tolist()
    return [(epoch * strategy["seconds_per_epoch"], loss) for epoch, loss in enumerate(means, start=1)]

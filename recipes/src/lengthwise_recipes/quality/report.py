"""The report of a study of quality, for the page of HTML that `lengthwise study quality --html` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise.report.tables import Table
from lengthwise_recipes.quality.answers import answers
from lengthwise_recipes.quality.page import SPARE, seconds_note, strategy_cells, strategy_heads
from lengthwise_recipes.study.charts import loss_curves

FIRST = 1  # the first epoch that is trained


def first_plans(document: Mapping[str, Any], lengths: NDArray[np.int64]) -> dict[str, lw.Plan]:
    """The plan of the first epoch of random and sorted batches, and of those compared at the least padding, by label.

    Batches of dynamic sizes are left out: no other has as many sequences in a batch.
    """
    cut = lw.FixedSize(document["batch_size"])
    return {
        each["label"]: lw.make_plan(lengths, parse_strategy(each["strategy"], cut=cut), seed=0, epoch=FIRST)
        for each in _shown(document)
    }


def outcomes(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the report says of the training: the answer, seconds, test loss against time, and the table of all.

    Args:
        document: What `study_quality` gave, as read back from JSON.
    """
    curves = loss_curves(
        {each["label"]: [_mean_run(document, each)] for each in _shown(document)},
        x_label="seconds of training",
        y_label="test loss",
    )
    heads = strategy_heads(document)
    kept = [at for at, head in enumerate(heads) if head not in SPARE]
    cells = [tuple(row[at] for at in kept) for row in strategy_cells(document)]
    note = (
        f"{document['sequences']:,} sequences to learn from: {document['data']['name']}. Curves are means over "
        f"{document['settings']['seeds']} seeds; grey: random batches. Loss in {document['loss']['unit']}; intervals "
        f"of 95 % over the seeds. {seconds_note(document)} --json writes the losses on validation data too. What "
        "follows is of the first epoch."
    )
    table = Table(tuple(heads[at] for at in kept), cells, "What was learned", note=note)
    ours = [each["label"] for each in _shown(document) if each["order"] == document["ours"]]
    return {
        "title": document["data"]["name"],
        "answer": answers([document])[0],
        "best": ours[0] if ours else "",
        "seconds": {each["label"]: each["seconds_per_epoch"] for each in _shown(document)},
        "charts": [curves],
        "tables": [table],
    }


def _shown(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    least = min(document["paddings"])
    return [each for each in document["strategies"] if each["padding"] in (None, least) and not each["dynamic"]]


def _mean_run(document: Mapping[str, Any], strategy: Mapping[str, Any]) -> list[tuple[float, float]]:
    """After each epoch the seconds, as the study counts them, and the test loss, the mean over the seeds."""
    losses = [run["test_losses"] for run in document["runs"] if run["strategy"] == strategy["label"]]
    means = np.mean(losses, axis=0).tolist()
    return [(epoch * strategy["seconds_per_epoch"], loss) for epoch, loss in enumerate(means, start=1)]

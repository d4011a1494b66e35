"""Contrasts of test losses, made from the runs of a document. They are computed seed by seed, in shares of the loss.

A seed gives all strategies the same first weights, so the effect of the weights cancels out. Shapes: R runs (seeds), E
epochs of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.intervals import Interval, interval

# Epochs in the mean of a loss. With 1, 2 and 3 of them, the studies of 2026-11-22 would show differences of sorted from
# random batches from these on: 11.0, 10.9, 10.9 % (handwriting), 7.3, 6.0, 6.2 % (acoustic), 4.1, 3.6, 2.8 %
# (synthesis).
LAST = 3
FIELDS = {"time": "seconds_per_epoch", "steps": "steps"}

Document = Mapping[str, Any]
Equal = Literal["epochs", "time", "steps"]
Part = Literal["test_losses", "losses"]
Contrast = Callable[[Document, Equal], NDArray[np.float64]]


def mean_losses(
    document: Document, label: str, *, pace: float = 1.0, part: Part = "test_losses"
) -> NDArray[np.float64]:
    """Returns the loss of each run over its last epochs, [R].

    Args:
        document, label: Of a task and a strategy.
        pace: Epochs that the strategy trains while another trains one, see `paces`. Losses between epochs are
            interpolated linearly, and nan before the end of the first.
        part: "test_losses", or "losses" for those on validation sequences.
    """
    losses = _losses(document, label, part)
    ends = np.arange(1, losses.shape[1] + 1)
    return np.array([np.interp(pace * ends[-LAST:], ends, run, left=np.nan).mean() for run in losses])


def _losses(document: Document, label: str, part: Part = "test_losses") -> NDArray[np.float64]:
    """Returns the losses of a strategy, [R, E]."""
    runs = [run for run in document["runs"] if run["strategy"] == label]
    return np.array([run[part] for run in sorted(runs, key=lambda run: run["seed"])], np.float64)


def paces(document: Document, labels: Sequence[str], equal: Equal) -> dict[str, float]:
    """Returns the epochs that each strategy trains while the one with the cheapest epochs trains one.

    Args:
        document, labels: Of a task and strategies.
        equal: "epochs" if all train equally many, "time" for equally many seconds, "steps" for equally many steps.
    """
    rows = strategies_of(document)
    costs = {label: 1.0 if equal == "epochs" else rows[label][FIELDS[equal]] for label in labels}
    return {label: min(costs.values()) / cost for label, cost in costs.items()}


def relative_differences(document: Document, label: str, baselines: Sequence[str], equal: Equal) -> NDArray[np.float64]:
    """Returns the loss of a strategy minus the mean loss of the baselines, over that mean: [R]."""
    pace = paces(document, [label, *baselines], equal)
    base = np.mean([mean_losses(document, baseline, pace=pace[baseline]) for baseline in baselines], axis=0)
    return (mean_losses(document, label, pace=pace[label]) - base) / base


def sorted_to_random(document: Document, equal: Equal) -> NDArray[np.float64]:
    """Returns the relative difference of sorted batches from random ones, [R]."""
    return relative_differences(document, "sorted", [document["reference"]], equal)


def sorted_to_random_early(document: Document) -> NDArray[np.float64]:
    """Returns the relative difference of sorted batches from random ones over the first half of the epochs, [R]."""
    early, base = (_losses(document, label) for label in ("sorted", document["reference"]))
    half = max(early.shape[1] // 2, 1)
    return early[:, :half].mean(axis=1) / base[:, :half].mean(axis=1) - 1


def ours_to_orders(document: Document, equal: Equal) -> NDArray[np.float64]:
    """Returns the relative difference of max-entropy batching from the other orders of its padding, [R].

    It is the mean over the paddings, nan if no padding has both.
    """
    differences = []
    for padding in document["paddings"]:
        labels = {row["order"]: row["label"] for row in orders_at(document, padding)}
        ours = labels.pop(document["ours"], None)
        if ours is not None and labels:
            differences.append(relative_differences(document, ours, list(labels.values()), equal))
    return np.mean(differences, axis=0) if differences else np.full(document["settings"]["seeds"], np.nan)


def pooled(documents: Sequence[Document], contrast: Contrast, equal: Equal) -> Interval:
    """Returns the mean over the tasks, and its interval over the seeds.

    Seed s has one number: the mean over the tasks of the contrast under seed s. These numbers are independent. The
    tasks are fixed, so the interval says nothing about other tasks. All documents have equally many seeds.
    """
    return interval(np.mean([contrast(document, equal) for document in documents], axis=0))


def dynamic_pairs(document: Document) -> list[tuple[str, str]]:
    """Returns for each order with dynamic sizes its label at the best learning rate, and the label with a fixed size.

    The best rate has the least mean loss on validation sequences. Both strategies have the largest padding.
    """
    fixed = [row for row in document["strategies"] if not row["dynamic"]]
    fixed_labels = {row["order"]: row["label"] for row in fixed if row["padding"] in (None, document["paddings"][-1])}
    dynamic: dict[str, dict[str, float]] = {}
    for row in document["strategies"]:
        if row["dynamic"] and row["order"] in fixed_labels:
            loss = mean_losses(document, row["label"], part="losses").mean()
            dynamic.setdefault(row["order"], {})[row["label"]] = np.inf if np.isnan(loss) else loss
    return [(min(losses, key=losses.__getitem__), fixed_labels[order]) for order, losses in dynamic.items()]


def orders_at(document: Document, padding: float) -> list[Mapping[str, Any]]:
    """Returns the strategies with batches of a fixed size and this padding."""
    return [row for row in document["strategies"] if row["padding"] == padding and not row["dynamic"]]


def strategies_of(document: Document) -> dict[str, Mapping[str, Any]]:
    """Returns the row of each strategy by label."""
    return {row["label"]: row for row in document["strategies"]}

"""The figures of the rerun of Ge et al. 2021, made only from its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes.ge2021.batchings import CHOICES, PAPER_KNOBS
from lengthwise_recipes.ge2021.outcomes import smooth
from lengthwise_recipes.ge2021.table1 import BATCH_SIZE
from lengthwise_recipes.pages import figure_name
from lengthwise_recipes.study.results import EpochRow, flat, read_rows, runs_of

PAPER = "ge2021"
FIGURES = {
    "batches": "48 of the lengths in batches of 8: random, sorted, and semi-sorted with LRF 0.15 (figure 1).",
    "dynamic": "The same lengths in batches of dynamic size, each filled to the cost of 8 of the longest (figure 3).",
    "knobs": "Knobs against ZPR and ABL, and the values chosen: those of the paper on its own lengths, if these are "
    "given (figure 2; max-entropy batching is ours).",
    "losses": "Validation loss of random, sorted and semi-sorted batching (figure 4).",
    "alike": "Validation loss of the strategies that pad about as much as SSB-BR, and of RAND.",
}
SAMPLES = 48  # of figures 1 and 3
SAMPLES_BATCH = 8
SAMPLES_STRATEGIES = {
    "random": "random",
    "sorted": "sorted,arrange=in-order",
    "semi-sorted, LRF 0.15": "semi-sorted:0.15,arrange=in-order",
}
NAMES = "SB sorted, SSB semi-sorted, BR batches shuffled, DBS dynamic sizes"
NAMES_ALIKE = "SSB semi-sorted, BKT bucketed, ATS alternated, ME max-entropy, BR batches shuffled, DBS dynamic sizes"
SHOWN = {
    "losses": [label for label, choice in CHOICES.items() if choice.order in ("random", "sorted", "semi-sorted")],
    "alike": ["RAND", "SSB-BR", "BKT-BR", "ATS-BR", "ME-BR", "SSB-DBS-BR", "ME-DBS-BR"],
}


def write_figures(document: Mapping[str, Any], folder: Path) -> None:
    """Draws the figures of the paper, and one of the strategies with similar padding, into a folder."""
    from lengthwise_recipes.pictures import knob_curves, learning_curves, save

    samples, fixed = np.array(document["samples"]), lw.FixedSize(SAMPLES_BATCH)
    dynamic = lw.DynamicSize(SAMPLES_BATCH, rule="paper")
    figures = {"knobs": knob_curves(*_knob_lengths(document), selected=_knob_values(document))}
    for (name, labels), title in zip(SHOWN.items(), (NAMES, NAMES_ALIKE), strict=True):
        rows, looks = _curves(read_rows(document["study"]["rows"]), labels), _looks(labels)
        figures[name] = learning_curves(rows, loss_label="validation loss", title=title, looks=looks)
    titles = {"batches": f"Batches of {SAMPLES_BATCH} sequences", "dynamic": "Batches of dynamic size"}
    for (name, title), cut in zip(titles.items(), (fixed, dynamic), strict=True):
        batchings = {label: parse_strategy(text, cut=cut) for label, text in SAMPLES_STRATEGIES.items()}
        plans = {label: lw.make_plan(samples, batching) for label, batching in batchings.items()}
        figures[name] = lw.report.batches(plans, samples, title=title)
    for name, figure in figures.items():
        save(figure, folder / figure_name(PAPER, name))


def _knob_lengths(document: Mapping[str, Any]) -> tuple[NDArray[np.int64], lw.FixedSize]:
    """Returns the lengths and the cut of figure 2: the paper's, or without its lengths those of the rerun."""
    printed = document["paper_lengths"]
    histogram, size = (printed, BATCH_SIZE) if printed else (document["lengths"], document["size"]["batch_size"])
    return np.repeat(histogram["values"], histogram["counts"]), lw.FixedSize(size)


def _knob_values(document: Mapping[str, Any]) -> Mapping[str, float]:
    """Returns the values of the paper's knobs. Max-entropy batching has none here: its figure shows padding."""
    if document["paper_lengths"]:
        return PAPER_KNOBS
    names = ("randomization_factor", "bucket_size", "bins")
    return dict(zip(PAPER_KNOBS, (document["knobs"][name] for name in names), strict=True))


def _looks(labels: Sequence[str]) -> dict[str, Any]:
    """Returns the look of each label by its order; the second label of an order gets the next dash."""
    from lengthwise_recipes.pictures import strategy_looks

    orders = {f"{CHOICES[label].order}:{label}": label for label in labels}
    return {orders[name]: look for name, look in strategy_looks(list(orders)).items()}


def _curves(rows: Sequence[EpochRow], labels: Iterable[str]) -> list[dict[str, Any]]:
    """Returns the rows of some strategies with smoothed losses."""
    curves = []
    for run in (run for label in labels for run in runs_of(rows, label)):
        losses = smooth(np.array([row.validation_loss for row in run])).tolist()
        curves += [{**flat(row), "validation_loss": loss} for row, loss in zip(run, losses, strict=True)]
    return curves

"""Draws the pictures of the page "Why max-entropy".

    python benchmarks/theory.py

docs/theory-joint.png shows lengths and padded lengths, docs/theory-noise.png the padded lengths of one length. Both use
the long-tailed example in batches of 16, with the epochs of one seed together.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from record import parser

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategies
from lengthwise_recipes.mixing import measure_mixing
from lengthwise_recipes.pictures import style
from lengthwise_recipes.pictures.labels import SIZE
from lengthwise_recipes.pictures.style import Axes, Figure

DOCS = Path(__file__).parents[1] / "docs"
STRATEGIES = "sorted,semi-sorted:0.02,max-entropy:0.1,random"
CUT = lw.FixedSize(16)
EPOCHS = 16
CELLS = 64  # of equal count along each axis of the first picture
LENGTH, WIDTH = 400, 20  # the second picture shows the padded lengths of lengths from 390 to 409


class Pooled(NamedTuple):
    """The epochs of a strategy together: lengths [n], padded lengths `to` [n], padding share and mixing."""

    lengths: NDArray[np.int64]
    to: NDArray[np.int64]
    padding: float
    mixing: float


def main() -> None:
    """Parses the command line and draws both pictures."""
    parser(__doc__).parse_args()
    draw()


def draw() -> None:
    """Draws both pictures."""
    lengths = lw.example_lengths("long-tailed")
    batchings = parse_strategies(STRATEGIES, cut=CUT)
    padded = {label: pooled(lengths, batching) for label, batching in batchings.items()}
    style.save(joint(padded), DOCS / "theory-joint.png")
    style.save(noise({label: padded[label] for label in list(padded)[1:3]}), DOCS / "theory-noise.png")


def pooled(lengths: NDArray[np.int64], batching: lw.Batching) -> Pooled:
    """Plans every epoch and joins them."""
    plans = [lw.make_plan(lengths, batching, epoch=epoch) for epoch in range(EPOCHS)]
    sequences = np.concatenate([plan.sequences for plan in plans])
    to = np.concatenate([np.repeat(plan.padded_lengths[:, 0], plan.batch_sizes) for plan in plans])
    padding = 1.0 - lengths[sequences].sum() / to.sum()
    return Pooled(lengths[sequences], to, float(padding), measure_mixing(plans, lengths, bins=128))


@style.in_house_style
def joint(padded: dict[str, Pooled]) -> Figure:
    """Draws the frequency of pairs of length and padded length, by rank; a panel for each strategy."""
    figure = style.blank_figure(height=2.45)
    panels = figure.subplots(1, len(padded), sharex=True, sharey=True)
    for axes, (label, plans) in zip(panels, padded.items(), strict=True):
        counts, _, _ = np.histogram2d(ranks(plans.lengths), ranks(plans.to), bins=CELLS)
        axes.imshow(np.sqrt(counts.T), origin="lower", extent=(0, 1, 0, 1), cmap="Greys", aspect="equal")
        text = f"{label}\npadding {style.percent(plans.padding)}\nmixing {plans.mixing:.2f}"
        axes.set_title(text, color=style.readable(style.look(label).colour))
    percent(axis for axes in panels for axis in (axes.xaxis, axes.yaxis))
    figure.supxlabel("length: share of the sequences that are shorter", fontsize=9)
    panels[0].set_ylabel("padded length, likewise")
    return figure


def ranks(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns the share of smaller values, 0 to 1; equal values are ranked by position.

    >>> ranks(np.array([30, 10, 20, 40])).tolist()
    [0.5, 0.0, 0.25, 0.75]
    """
    places = np.empty(len(values))
    places[np.argsort(values, kind="stable")] = np.arange(len(values)) / len(values)
    return places


@style.in_house_style
def noise(padded: dict[str, Pooled]) -> Figure:
    """Draws the padded lengths of lengths about LENGTH, under each of two strategies."""
    figure = style.blank_figure(height=2.8)
    axes: Axes = figure.subplots()
    edges = np.arange(LENGTH - WIDTH // 2, 2 * LENGTH, WIDTH)
    shares = {}
    for label, plans in padded.items():
        to = plans.to[abs(plans.lengths - LENGTH + 0.5) < WIDTH / 2]
        shares[label] = np.histogram(to, edges)[0] / len(to)
        axes.stairs(shares[label], edges, color=style.look(label).colour, linewidth=2)
    for label, rival in zip(shares, reversed(shares), strict=True):
        high = (shares[label] > 1.2 * shares[rival]) & (shares[label] > 0.5 * shares[label].max())
        bar = np.flatnonzero(high)[-1]  # the label has room to its right
        place, text = (edges[bar + 1], shares[label][bar]), f"{label}: {style.percent(padded[label].padding)} padding"
        colour = style.readable(style.look(label).colour)
        axes.annotate(text, place, (6, -8), textcoords="offset points", fontsize=SIZE, color=colour)
    axes.axvline(LENGTH, color=style.INK, linestyle=(0, (5, 3)), linewidth=1)
    axes.set_xlabel(f"padded length of the sequences of {LENGTH - WIDTH // 2} to {LENGTH + WIDTH // 2 - 1} frames")
    axes.set_ylabel("share of them")
    percent([axes.yaxis])
    return figure


def percent(axes: Iterable[Any]) -> None:
    for axis in axes:
        axis.set_major_formatter(style.percent_axis())


if __name__ == "__main__":
    main()

"""Draws the pictures of the page "Why max-entropy".

    python benchmarks/theory.py

docs/theory-joint.svg shows lengths and padded lengths, docs/theory-noise.svg the padded lengths of one length. Both use
the long-tailed example in batches of 16, with the epochs of one seed together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from record import parser

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategies
from lengthwise.report import style, words
from lengthwise.report.style import alt
from lengthwise_recipes.mixing import measure_mixing
from lengthwise_recipes.pictures import save, strategy_looks
from lengthwise_recipes.pictures.dots import draw_dots
from lengthwise_recipes.pictures.looks import look_channels

DOCS = Path(__file__).parents[1] / "docs"
STRATEGIES = "sorted,semi-sorted:0.02,max-entropy:0.1,random"
CUT = lw.FixedSize(16)
EPOCHS = 16
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
    save(joint(padded), DOCS / "theory-joint.svg")
    save(noise({label: padded[label] for label in list(padded)[1:3]}), DOCS / "theory-noise.svg")


def pooled(lengths: NDArray[np.int64], batching: lw.Batching) -> Pooled:
    """Plans every epoch and joins them."""
    plans = [lw.make_plan(lengths, batching, epoch=epoch) for epoch in range(EPOCHS)]
    sequences = np.concatenate([plan.sequences for plan in plans])
    to = np.concatenate([np.repeat(plan.padded_lengths[:, 0], plan.batch_sizes) for plan in plans])
    padding = 1.0 - lengths[sequences].sum() / to.sum()
    return Pooled(lengths[sequences], to, float(padding), measure_mixing(plans, lengths, bins=128))


def joint(padded: dict[str, Pooled]) -> Any:
    """Draws pairs of length and padded length, by rank; a panel for each strategy."""
    panels = {
        f"{label}\npadding {words.percent(plans.padding)}\nmixing {plans.mixing:.2f}": (
            ranks(plans.lengths),
            ranks(plans.to),
        )
        for label, plans in padded.items()
    }
    x, y = (alt.Axis(format=".0%", values=[0, 0.5, 1]) for _ in range(2))
    scale = alt.Scale(domain=[0, 1])
    chart = draw_dots(
        panels,
        alt.X("x:Q", title="length, by rank", scale=scale, axis=x),
        alt.Y("y:Q", title="padded length, by rank", scale=scale, axis=y),
        columns=len(panels),
        size=(105, 105),
    )
    text = f"Pairs of length and padded length under {', '.join(padded)}."
    return style.furnish(chart, "What each length is padded to", text, view=False)


def ranks(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns the share of smaller values, 0 to 1; equal values are ranked by position.

    >>> ranks(np.array([30, 10, 20, 40])).tolist()
    [0.5, 0.0, 0.25, 0.75]
    """
    places = np.empty(len(values))
    places[np.argsort(values, kind="stable")] = np.arange(len(values)) / len(values)
    return places


def noise(padded: dict[str, Pooled]) -> Any:
    """Draws the padded lengths of lengths about LENGTH, under each of two strategies."""
    edges = np.arange(LENGTH - WIDTH // 2, 2 * LENGTH, WIDTH)
    rows = []
    for label, plans in padded.items():
        to = plans.to[abs(plans.lengths - LENGTH + 0.5) < WIDTH / 2]
        shares = np.append(np.histogram(to, edges)[0] / len(to), 0.0).tolist()
        name = f"{label}: {words.percent(plans.padding)} padding"
        rows += [{"name": name, "to": edge, "share": share} for edge, share in zip(edges.tolist(), shares, strict=True)]
    named = f"sequences of {LENGTH - WIDTH // 2} to {LENGTH + WIDTH // 2 - 1} frames"
    x = alt.X("to:Q", title="padded length (frames)", scale=alt.Scale(zero=False, nice=False))
    y = alt.Y("share:Q", title="share of them", axis=alt.Axis(format=".0%", tickCount=5))
    color, dash = look_channels(strategy_looks(dict.fromkeys(row["name"] for row in rows)))
    lines = alt.Chart(style.table(rows)).mark_line(interpolate="step-after", strokeWidth=2)
    rule = alt.Chart().mark_rule(strokeDash=[5, 3]).encode(x=alt.datum(LENGTH))
    chart = (lines.encode(x, y, color=color, strokeDash=dash) + rule).properties(height=style.HEIGHT)
    text = f"The padded lengths of {named}, under {' and '.join(padded)}. The line marks {LENGTH} frames."
    return style.furnish(chart, f"Padded lengths of the {named}", text)


if __name__ == "__main__":
    main()

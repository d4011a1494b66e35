"""Draws every picture of the pages from the committed results, without training or measuring.

    python benchmarks/pictures.py [NAME ...]

Beside each a.svg stands a-dark.svg, for dark pages. Four pictures show plans of the long-tailed example, which are made
again: docs/padding.svg, docs/trade-off.svg and docs/theory-*.svg. With names, such as padding or ge2021, it draws only
the pictures whose names start with one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import theory
from record import parser
from tables import PAPERS, QUALITY, ROOT, latest_quality, results

import lengthwise as lw
from lengthwise.report import style
from lengthwise.report.style import alt
from lengthwise_recipes.doetsch2017 import page as doetsch2017
from lengthwise_recipes.ge2021 import figures as ge2021
from lengthwise_recipes.khomenko2016 import page as khomenko2016
from lengthwise_recipes.limits import mixing_limit
from lengthwise_recipes.pages import figure_name
from lengthwise_recipes.pictures import save, sweep
from lengthwise_recipes.quality import page as quality

DOCS = ROOT / "docs"
MOST_PADDING = 0.3  # of docs/trade-off.svg: more padding is of no interest
OURS, LIMIT = "max-entropy", "the limit"
DASHES = [[1, 0], [6, 3], [2, 2], [9, 3, 2, 3], [1, 0], [5, 4]]  # semi-sorted, bucketed, ..., and the limit

Draw = Callable[[], None]


def main() -> None:
    """Draws all pictures, or the named ones."""
    options = parser(__doc__)
    options.add_argument("names", nargs="*", metavar="NAME")
    starts = tuple(options.parse_args().names) or ("",)
    for draw, paths in pictures().items():
        if any(path.name.startswith(starts) for path in paths):
            draw()
            print(*(path.relative_to(ROOT) for path in paths))


def pictures() -> dict[Draw, list[Path]]:
    """Returns the paths of the pictures by the function that draws them."""
    paths_by_draw: dict[Draw, list[Path]] = {
        draw_padding: [DOCS / "padding.svg"],
        draw_trade_off: [DOCS / "trade-off.svg"],
        theory.draw: [DOCS / "theory-joint.svg", DOCS / "theory-noise.svg"],
    }
    path = QUALITY.parent / quality.FIGURE
    paths_by_draw[partial(quality.write_figure, list(latest_quality().values()), path)] = [path]
    for module in (khomenko2016, doetsch2017, ge2021):
        kind = module.__name__.split(".")[1]
        paths_by_draw[partial(module.write_figures, latest(f"{kind}-small"), PAPERS)] = [
            PAPERS / figure_name(kind, name) for name in module.FIGURES
        ]
    return paths_by_draw


def latest(kind: str) -> Mapping[str, Any]:
    """Returns the newest committed result of one kind."""
    return results(kind)[-1][1]


def draw_padding() -> None:
    """Draws batches of the built-in example on one GPU: random ones of 16, and those of the README."""
    lengths = lw.example_lengths("long-tailed")
    plans = {
        "random batches of 16": lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(16), order=lw.Shuffled())),
        "Lengthwise": lw.make_plan(lengths, lw.Batching(budget=8_720)),
    }
    chart = lw.report.batches(plans, lengths, unit="frames", title="One epoch on one GPU")
    save(chart, DOCS / "padding.svg")


def draw_trade_off() -> None:
    """Draws the mixing of the strategies of the papers and of max-entropy at up to 30 % padding, and the limit."""
    lengths = lw.example_lengths("long-tailed")
    swept = sweep(lengths, lw.FixedSize(16), points=24, epochs=16)
    rows = [
        {"strategy": row["strategy"].partition(":")[0], **{name: row[name] for name in ("padding_share", "mixing")}}
        for row in swept[2:]
    ]
    shares = (MOST_PADDING * np.linspace(0.0, 1.0, 16) ** 1.5).tolist()
    rows += [
        {"strategy": LIMIT, "padding_share": share, "mixing": mixing_limit(lengths, share, bins=128)}
        for share in shares
    ]
    save(trade_off([row for row in rows if row["padding_share"] <= MOST_PADDING]), DOCS / "trade-off.svg")


def trade_off(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Returns a chart with a curve for each strategy, labelled at its end; ours in the recommended colour."""
    names = list(dict.fromkeys(row["strategy"] for row in rows))
    colours = ["recommended" if name == OURS else "ink" if name == LIMIT else "soft" for name in names]
    color = alt.Color("strategy:N", scale=alt.Scale(domain=names, range=list(map(style.colour, colours))), legend=None)
    dash = alt.StrokeDash("strategy:N", scale=alt.Scale(domain=names, range=DASHES), legend=None)
    x = alt.X(
        "padding_share:Q", title="padding, as a share of what is computed", axis=alt.Axis(format=".0%", tickCount=4)
    )
    x = x.scale(domain=[0.0, 1.32 * MOST_PADDING], nice=False)
    y = alt.Y("mixing:Q", scale=alt.Scale(domain=[0.0, 0.5]))
    ends = {row["strategy"]: dict(row) for row in sorted(rows, key=lambda row: row["padding_share"])}
    ends[LIMIT]["mixing"] += 0.025  # its label is above ours, and that of bucketed below alternated
    ends["bucketed"]["mixing"] -= 0.015
    lines = alt.Chart(style.table(rows)).mark_line(strokeWidth=2).encode(x, y, color=color, strokeDash=dash)
    labels = (
        alt.Chart(style.table(list(ends.values())))
        .mark_text(align="left", dx=5)
        .encode(x, y, color=color, text="strategy:N")
    )
    text = "Mixing against padding, a curve for each strategy, and the limit of all batching."
    return style.furnish((lines + labels).properties(height=260), "Mixing against padding", text)


if __name__ == "__main__":
    main()

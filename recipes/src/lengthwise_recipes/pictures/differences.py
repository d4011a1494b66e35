"""A picture of the differences of losses between strategies, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lengthwise.report import style
from lengthwise.report.style import Chart, alt
from lengthwise_recipes.intervals import Interval
from lengthwise_recipes.pictures.looks import WIDTH, panel_facet

ROW_HEIGHT = 22  # pixels
NAMES = 160  # pixels beside the first panel


def loss_differences(
    groups: Mapping[str, Mapping[str, Sequence[Interval]]], panels: Sequence[str], title: str, notes: Sequence[str]
) -> Chart:
    """Draws a row for each strategy: in each panel its difference from the strategy at the line of 0, as a share.

    Marks are means, whiskers are intervals. A mark is filled if its interval excludes 0. A strategy without a mean (a
    run diverged) has an empty row; a panel without any mean says so. All panels have one scale.

    Args:
        groups: Title of a group of rows, to the labels of its rows, each with one difference for each panel.
        panels: Titles of the panels.
        title, notes: The title above all panels, and lines below it.
    """
    names, rows = [], []
    for group, shown in groups.items():
        names += [f"{group}|", *(f"{group}|{label}" for label in shown)]
        for label, intervals in shown.items():
            for panel, interval in zip(panels, intervals, strict=True):
                row = {name: _finite(getattr(interval, name)) for name in ("mean", "low", "high")}
                rows.append({"panel": panel, "row": f"{group}|{label}", "apart": interval.excludes_zero, **row})
    known = {row["panel"] for row in rows if row["mean"] is not None}
    rows += [{"panel": panel, "row": names[-1], "text": "not known"} for panel in panels if panel not in known]
    width = (WIDTH - NAMES) // len(panels) - 20
    chart = _draw(rows, names).properties(width=width, height=ROW_HEIGHT * len(names))
    text = f"{title}: a row for each strategy, a panel for each of {', '.join(panels)}. {' '.join(notes)}"
    facet = chart.facet(panel_facet(panels, width), columns=len(panels))
    return style.furnish(facet, title, text, notes=notes, view=False)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _draw(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Any:
    axis = alt.Axis(
        labelExpr="split(datum.label, '|')[1] || split(datum.label, '|')[0]",
        labelFontWeight=alt.condition("test(/[|]$/, datum.value)", alt.value("bold"), alt.value("normal")),
        ticks=False,
        domain=False,
    )
    x = alt.X(title=None, axis=alt.Axis(tickCount=4, format=".0%"))
    y = alt.Y("row:N", title=None, sort=None, scale=alt.Scale(domain=list(names)), axis=axis)
    low, mean = (x.field(name).type("quantitative") for name in ("low", "mean"))
    data, paper = style.colour("data"), style.colour("paper")
    zero = alt.Chart().mark_rule(color=style.colour("soft")).encode(x=alt.datum(0))
    whiskers = alt.Chart().mark_rule(color=data, strokeWidth=2).encode(low, y, x2="high:Q")
    fill = alt.condition("datum.apart", alt.value(data), alt.value(paper))
    means = alt.Chart().mark_point(color=data, size=50, opacity=1).encode(mean, y, fill=fill)
    remark = alt.Chart().transform_filter("datum.text").mark_text(align="left", dx=6)
    return alt.layer(zero, whiskers, means, remark.encode(x=alt.datum(0), y=y, text="text:N"), data=style.table(rows))

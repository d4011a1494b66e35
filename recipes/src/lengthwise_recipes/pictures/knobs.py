"""A picture of padding and batch length against the knobs of the strategies (Ge et al. 2021, figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import check_choice
from lengthwise.report import style
from lengthwise.report.style import Chart, alt
from lengthwise_recipes.pictures.looks import DASHES, WIDTH, strategy_name
from lengthwise_recipes.pictures.sweeps import KNOBS, Row, measure_strategy, sweep

SHOWN = ("semi-sorted", "bucketed", "alternated", "max-entropy")  # the paper's three, and ours
MEASURES = {"zero_padding_rate": "zero padding rate", "average_batch_length": "batch length ({unit})"}
_PANEL = {"width": (WIDTH - 60) // len(SHOWN) - 20, "height": 120}


def knob_curves(
    lengths: NDArray[np.int64],
    cut: lw.FixedSize,
    *,
    selected: Mapping[str, float] = MappingProxyType({}),
    points: int = 16,
    unit: str = "frames",
) -> Chart:
    """Draws zero padding rate (above) and average batch length (below) against the knob of each strategy.

    Lines across the panels mark the values of random and of sorted batches.

    Args:
        lengths: [n].
        cut: The cut of every strategy.
        selected: A value to mark for a knob, for example {"semi-sorted": 0.1, "bucketed": 1024}.
        points: Values of each knob, one planned epoch each.
        unit: The unit of the lengths.

    Raises:
        ValueError: No length, or a strategy in `selected` without a curve.

    References:
        Ge et al. 2021, figure 2. Deviation: also random, sorted and max-entropy batching.
    """
    for name in selected:
        check_choice("selected", name, SHOWN)
    # One epoch is enough: both measures are means over all its batches.
    rows = sweep(lengths, cut, strategies=SHOWN, points=points)
    curves = {name: [row for row in rows if strategy_name(row["strategy"]) == name] for name in SHOWN}
    for name, value in selected.items():
        marked = measure_strategy(lengths, f"{name}:{value}", cut)
        curves[name].append(marked | {"knob": value, "marked": True})
    panels = [_draw(name, curves[name], rows[:2], field, unit) for field in MEASURES for name in SHOWN]
    notes = [f"Marked: {', '.join(f'{name} {value:,}' for name, value in selected.items())}"] if selected else []
    text = (
        f"Zero padding rate and batch length against the knobs of {', '.join(SHOWN)}, with random and sorted batches."
    )
    chart = alt.concat(*panels, columns=len(SHOWN))
    return style.furnish(chart, "Padding by the knobs of four strategies", text, notes=notes, view=False)


def _draw(name: str, curve: Sequence[Row], bounds: Sequence[Row], field: str, unit: str) -> Any:
    """Draws one measure of a strategy against its knob, and marks the chosen value."""
    is_rate, is_first, knob = field == "zero_padding_rate", name == SHOWN[0], KNOBS[name]
    values = [{"knob": row["knob"], "value": row[field], "marked": "marked" in row} for row in curve]
    ends = [{"name": row["strategy"], "value": row[field]} for row in bounds]
    x = alt.X("knob:Q", title=None if is_rate else knob.name, scale=alt.Scale(type=knob.scale, zero=False, nice=False))
    x = x.axis(tickCount=2, format=".0%" if knob.scale == "linear" else ",~g", labels=not is_rate, grid=False)
    top = 1.08 * max(end["value"] for end in ends) or 1.0
    y = alt.Y("value:Q", title=MEASURES[field].format(unit=unit) if is_first else None)
    y = y.scale(domain=[0, top], nice=False).axis(tickCount=4, format=".0%" if is_rate else "~s", labels=is_first)
    dash = alt.StrokeDash("name:N", scale=alt.Scale(range=list(map(list, DASHES[1:3]))))
    dash = dash.legend(title=None, symbolType="stroke", symbolStrokeWidth=2)
    rules = alt.Chart(style.table(ends)).mark_rule().encode(y, strokeDash=dash)
    lines = alt.Chart(style.table(values)).mark_line(strokeWidth=2, color=style.colour("data")).encode(x, y)
    dots = lines.transform_filter("datum.marked").mark_circle(size=70, opacity=1, color=style.colour("data"))
    heading = alt.TitleParams(name if is_rate else "", fontSize=13, fontWeight="normal", offset=4, frame="group")
    return alt.layer(rules, lines, dots).properties(title=heading, **_PANEL)

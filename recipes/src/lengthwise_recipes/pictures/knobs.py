"""A picture of padding and batch length against the knobs of the strategies (Ge et al. 2021, figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import check_choice
from lengthwise_recipes.pictures import style
from lengthwise_recipes.pictures.labels import SIZE
from lengthwise_recipes.pictures.style import Axes, Figure, FuncFormatter
from lengthwise_recipes.pictures.sweeps import KNOBS, Knob, measure_strategy, sweep

SHOWN = ("semi-sorted", "bucketed", "alternated", "max-entropy")  # the paper's three, and ours
MEASURES = {"zero_padding_rate": "zero padding rate", "average_batch_length": "average batch length ({unit})"}


@style.in_house_style
def knob_curves(
    lengths: NDArray[np.int64],
    cut: lw.FixedSize,
    *,
    selected: Mapping[str, float] = MappingProxyType({}),
    points: int = 16,
    unit: str = "frames",
) -> Figure:
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
    figure = style.blank_figure(height=4.8)
    panels = figure.subplots(2, len(SHOWN), sharex="col", sharey="row")
    for name, column in zip(SHOWN, panels.T, strict=True):
        points_of_curve = [row for row in rows if style.strategy_name(row["strategy"]) == name]
        if name in selected:
            label = f"{name}:{selected[name]}"
            points_of_curve.append(measure_strategy(lengths, label, cut) | {"knob": selected[name]})
        _scale(column, KNOBS[name])
        for axes, field in zip(column, MEASURES, strict=True):
            # Includes the marked value, so that its dot lies on the line.
            curve = sorted((row["knob"], row[field]) for row in points_of_curve)
            axes.plot(*zip(*curve, strict=True), ".-", color=style.look(name).colour, markersize=4)
            if name in selected:
                _mark(axes, name, selected[name], points_of_curve[-1][field], field)
        text = "\n".join([name, column[0].get_title(loc="left")]).strip()
        column[0].set_title(text, color=style.readable(style.look(name).colour))
    for line, (field, text) in zip(panels, MEASURES.items(), strict=True):
        _draw_bounds(line, rows[0][field], rows[1][field])
        line[0].set_ylabel(text.format(unit=unit))
    panels[0, 0].yaxis.set_major_formatter(style.percent_axis())
    panels[1, 0].yaxis.set_major_formatter("{x:,.0f}")
    return figure


def _mark(axes: Axes, name: str, value: float, height: float, field: str) -> None:
    """Marks a value of the knob on the curve, and writes the result above the panel."""
    shown = style.percent(height) if field == "zero_padding_rate" else f"{height:,.0f}"
    axes.plot([value], [height], "o", color=style.look(name).colour, markersize=7, markeredgecolor="white")
    axes.set_title(f"{value:,} gives {shown}", fontsize=SIZE)


def _scale(column: Sequence[Axes], knob: Knob) -> None:
    lower = column[1]
    lower.set_xscale(knob.scale)
    percent, plain = style.percent_axis(), FuncFormatter(lambda value, _: f"{value:,g}")
    lower.xaxis.set_major_formatter(percent if knob.scale == "linear" else plain)
    for axes in column:
        axes.minorticks_off()
    lower.set_xlabel(knob.name)


def _draw_bounds(line: Sequence[Axes], random: float, by_length: float) -> None:
    """Draws lines at the values of random and sorted batches, named to the right of the last panel."""
    for axes in line:
        axes.axhline(random, color=style.FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        axes.axhline(by_length, color=style.FAINT, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    line[0].set_ylim(0.0, 1.08 * max(random, by_length) or 1.0)
    # Centred on their lines; if these are close, one label is above its line and the other below.
    last, crowded = line[-1], random <= 1.15 * by_length
    for text, height, side in (("random", random, "bottom"), ("sorted", by_length, "top")):
        place = {"textcoords": "offset points", "ha": "left", "fontsize": SIZE, "color": style.FAINT}
        where = (1.0, height), (3, 0)
        last.annotate(text, *where, xycoords=last.get_yaxis_transform(), va=side if crowded else "center", **place)

"""Panels of dots, such as lengths along the epoch (Doetsch, Golik, Ney 2017, figure 1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import lengthwise as lw
from lengthwise.report import style, words
from lengthwise.report.style import Chart, alt
from lengthwise_recipes.pictures.looks import WIDTH, panel_facet

_DOTS = 800  # of a panel at most


def order_dots(lengths: NDArray[np.int64], plans: Mapping[str, lw.Plan], *, unit: str = "frames") -> Chart:
    """Draws the lengths in the order of an epoch, a panel for each plan.

    Args:
        lengths: [n], of whole sequences.
        plans: Plans for one rank, by the titles of their panels.
        unit: The unit of the lengths.

    References:
        Doetsch, Golik, Ney 2017, figure 1.
    """
    panels = {}
    for label, plan in plans.items():
        ordered = lengths[np.concatenate(list(plan.batches()))]
        padding = words.percent(lw.measure(plan, lengths).padding_share)
        panels[f"{label}: {padding} padding"] = np.arange(len(ordered)), ordered
    x = alt.X("x:Q", title="sequences, in the order of the epoch", scale=alt.Scale(nice=False))
    y = alt.Y("y:Q", title=f"length ({unit})", axis=alt.Axis(tickCount=3, format=",.0f"))
    chart = draw_dots(panels, x, y, columns=1, size=(WIDTH - 60, 80))
    title = "Lengths in the order of an epoch"
    return style.furnish(chart, title, f"{title}. {'; '.join(panels)}.", view=False)


def draw_dots(
    panels: Mapping[str, tuple[ArrayLike, ArrayLike]], x: alt.X, y: alt.Y, *, columns: int, size: tuple[int, int]
) -> Any:
    """Draws evenly chosen points of each panel: the fields "x" and "y", by the title of the panel.

    Args:
        panels: Places across and up, each [points], by title.
        x, y: The axes.
        columns: The number of columns of panels.
        size: Width and height of a panel in pixels.
    """
    rows: list[dict[str, Any]] = []
    for title, places in panels.items():
        across, up = map(np.asarray, places)
        chosen = np.unique(np.linspace(0, len(across) - 1, _DOTS).astype(np.int64))
        # Each dot is a line without length; the gaps between them keep all dots in one path, which is a small file.
        for place, height in zip(across[chosen].tolist(), up[chosen].tolist(), strict=True):
            rows += [{"panel": title, "x": place, "y": height}, {"panel": title, "x": place, "y": None}]
    dots = alt.Chart(style.table(rows)).mark_line(strokeWidth=2, strokeCap="round", color=style.colour("data"))
    dots = dots.encode(x, y, order=alt.value(0)).properties(width=size[0], height=size[1])
    return dots.facet(panel_facet(panels, size[0]), columns=columns)

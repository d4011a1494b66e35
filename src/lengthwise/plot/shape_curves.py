"""How many padded shapes are worth compiling: padding against their number."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lengthwise.choices.buckets import EDGES
from lengthwise.choices.cut import Cut
from lengthwise.lengths import as_lengths
from lengthwise.planning.few_shapes import cost_of_edges, shape_costs, useful_frames
from lengthwise.plot import style
from lengthwise.plot.labels import end_labels, label_ends
from lengthwise.plot.style import Figure, FuncFormatter

_BESIDE = {"optimal": "optimal edges", "quantile": "quantiles", "uniform": "equal widths"}
_COUNTS = 24  # numbers of shapes that the other edges are drawn at, at most


@style.in_house_style
def shape_curve(lengths: ArrayLike, cut: Cut, *, shapes: int = 32) -> Figure:
    """Draws the share of padding by the best 1, 2, ... shapes, beside other ways to choose their padded lengths.

    Each batch is padded to its shape (rows, padded length). Rows that stay empty count as padding, so that more
    shapes are not always better where their lengths are chosen without regard to rows.

    Args:
        lengths: [n] or [n, dims].
        cut: What a batch holds: `Budget(20_000)`, `FixedSize(16)`.
        shapes: The most that are drawn.

    Raises:
        ValueError: As of `lw.shape_costs`.
    """
    array = as_lengths(lengths)
    best = shape_costs(array, shapes, cut)
    useful = useful_frames(array, cut)
    figure = style.blank_figure(height=4.2)
    axes = figure.subplots()
    counts = np.arange(1, shapes + 1)
    tried = np.unique(np.round(np.geomspace(1, shapes, min(shapes, _COUNTS))).astype(int))
    for name, label in _BESIDE.items():
        edges = (EDGES[name](array, int(count)) for count in tried)
        shares = [1.0 - useful / cost_of_edges(array, each, cut) for each in edges]
        look = style.look(name)
        axes.plot(tried, shares, color=look.colour, linestyle=look.dash, linewidth=1.2, label=label)
    colour = style.look("max-entropy").colour
    axes.plot(counts, 1.0 - useful / best, ".-", color=colour, markersize=4, label="optimal shapes")
    axes.set_xscale("log", base=2)
    axes.set_xticks(_ticks(shapes))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("shapes (rows, padded length)")
    axes.set_ylabel("padding")
    axes.yaxis.set_major_formatter(style.percent_axis())
    axes.set_ylim(bottom=0.0)
    needed = 1 + int(np.argmin(best))  # as few as pad as little
    noun = "shape" if needed == 1 else "shapes"
    axes.set_title(f"{needed} {noun}: {style.percent(1.0 - useful / best[-1])} of what is computed is padding")
    label_ends(axes, end_labels(axes.lines))
    return figure


def _ticks(shapes: int) -> list[int]:
    """Powers of two and the last number, where it does not touch another.

    >>> _ticks(6), _ticks(33)
    ([1, 2, 4, 6], [1, 2, 4, 8, 16, 32])
    """
    powers = [2**power for power in range(shapes.bit_length())]
    return [*powers, shapes] if shapes > 1.2 * powers[-1] else powers

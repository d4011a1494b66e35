"""The lengths: how many sequences are how long, and the edges of buckets where there are some."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lengthwise.choices.batching import Batching
from lengthwise.choices.buckets import EDGES
from lengthwise.choices.order import Bucketed
from lengthwise.planning.plan import Plan
from lengthwise.report import marks, words
from lengthwise.report.marks import Chart, Mark, Table, Tick

_BARS = 40  # at most
_TOLD = 12  # edges that are written out at most


def draw_lengths(lengths: NDArray[np.int64], *, unit: str, edges: tuple[str, NDArray[np.int64]] | None) -> list[Chart]:
    """A histogram of each length, [n] or [n, dims]; `edges` are drawn where there is one length.

    Args:
        lengths: Of all sequences.
        unit: Of the lengths.
        edges: The label of a strategy, and its edges.
    """
    if not len(lengths):
        return []
    table = lengths.reshape(len(lengths), -1)
    names = ["Lengths"] if table.shape[1] == 1 else [f"Length {dim + 1}" for dim in range(table.shape[1])]
    return [_histogram(name, column, unit, edges) for name, column in zip(names, table.T, strict=True)]


def edges_of(plans: dict[str, Plan], lengths: NDArray[np.int64]) -> tuple[str, NDArray[np.int64]] | None:
    """The edges of the last strategy that has some, under its label; None where none has, or lengths are several."""
    if lengths.ndim != 1 or not len(lengths):
        return None
    for label, plan in reversed(plans.items()):
        order = order_of(plan)
        if isinstance(order, Bucketed) and order.edges is not None:
            return label, np.array(order.edges, np.int64)
        if isinstance(order, Bucketed) and order.buckets is not None:
            return label, EDGES[order.by](lengths, order.buckets)
    return None


def order_of(plan: Plan) -> object:
    """The order of a plan; None where it is the user's own."""
    try:
        return Batching.from_json(plan.batching).order
    except ValueError:
        return None


def _histogram(name: str, column: NDArray[np.int64], unit: str, edges: tuple[str, NDArray[np.int64]] | None) -> Chart:
    low, high = int(column.min()), int(column.max())
    width = max(1, -(-(high - low + 1) // _BARS))
    # Lengths [2, 3, 7] in bars of 3 from 2: counts [2, 1].
    counts = np.bincount((column - low) // width)
    first = low + width * np.arange(len(counts))
    ends = [f"{a:,}" if width == 1 else f"{a:,} to {a + width - 1:,}" for a in first.tolist()]
    x, y = marks.across(low, float(first[-1]) + width), marks.upward(float(counts.max()))
    bars = [
        marks.bar(x(a), 0.92 * (x(a + width) - x(a)), y(n), marks.HEIGHT - y(n), "data", f"{end} {unit}: {n:,}")
        for a, end, n in zip(first.tolist(), ends, counts.tolist(), strict=True)
    ]
    told = "" if edges is None else f" Lines: the edges of {edges[0]} ({', '.join(_write_edges(edges[1]))})."
    return Chart(
        title=f"{name} in {unit}",
        text=f"Histogram of {words.count(len(column), 'sequence')} of {low:,} to {high:,} {unit}. "
        f"Most, {counts.max():,}, have {ends[int(counts.argmax())]}.",
        table=Table((unit, "sequences"), list(zip(ends, [f"{n:,}" for n in counts.tolist()], strict=True))),
        x_label=f"length ({unit})",
        y_label="sequences",
        x_ticks=_x_ticks(x),
        y_ticks=marks.y_ticks(y),
        marks=bars + ([] if edges is None else _draw_edges(edges[1], x)),
        caption=f"A bar is {words.count(width, unit.removesuffix('s') if width == 1 else unit, unit)} wide.{told}",
    )


def _x_ticks(x: marks.Scale) -> list[Tick]:
    steps = [value for value in marks.nice_steps(x.high, 6) if value >= x.low]
    return [
        Tick(x(value), words.short(value), "start" if x(value) < 4 else "middle") for value in steps if x(value) < 97
    ]


def _draw_edges(edges: NDArray[np.int64], x: marks.Scale) -> list[Mark]:
    # An edge is the last length of its bucket: the line stands behind it.
    return [marks.line((place, place), (0.0, marks.HEIGHT), "edge") for place in map(x, (edges + 1).tolist())]


def _write_edges(edges: NDArray[np.int64]) -> list[str]:
    told = [f"{edge:,}" for edge in edges[:_TOLD].tolist()]
    return told + ([f"and {len(edges) - _TOLD:,} more"] if len(edges) > _TOLD else [])

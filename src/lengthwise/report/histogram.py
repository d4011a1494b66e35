"""The lengths: how many sequences are how long, and the edges of buckets where there are some."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.choices.batching import Batching
from lengthwise.choices.buckets import EDGES
from lengthwise.choices.order import Bucketed
from lengthwise.lengths.description import bar_starts, has_long_tail
from lengthwise.planning.plan import Plan
from lengthwise.report import marks, words
from lengthwise.report.marks import Chart, Mark, Table, Tick

_BARS = 40  # at most
_TOLD = 12  # edges that are written out at most


class LogScale(NamedTuple):
    """From lengths to places in percent, by their logarithm."""

    low: float
    high: float

    def __call__(self, value: float) -> float:
        return round(100 * math.log(value / self.low) / math.log(self.high / self.low), 2)

    def steps(self) -> list[float]:
        """1, 10, 100, ... up to the end; of less than three decades 2 and 5 times these too."""
        sizes = (1, 2, 5) if self.high < 1_000 * self.low else (1,)
        tens = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
        return [float(size * 10**ten) for ten in tens for size in sizes]


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
    longtailed = has_long_tail(column)
    starts = bar_starts(column, most=_BARS)
    # Lengths [2, 3, 7] in bars of 3 from 2: starts [2, 5, 8], counts [2, 1].
    counts = np.histogram(column, starts)[0]
    spans = list(itertools.pairwise(starts.tolist()))
    ends = [f"{a:,}" if b == a + 1 else f"{a:,} to {b - 1:,}" for a, b in spans]
    x = LogScale(low, float(starts[-1])) if longtailed else marks.across(low, float(starts[-1]))
    y = marks.upward(float(counts.max()))
    bars = [
        marks.bar(x(a), 0.92 * (x(b) - x(a)), y(n), marks.HEIGHT - y(n), "data", f"{end} {unit}: {n:,}")
        for (a, b), end, n in zip(spans, ends, counts.tolist(), strict=True)
    ]
    told = "" if edges is None else f" Lines: the edges of {edges[0]} ({', '.join(_write_edges(edges[1]))})."
    return Chart(
        title=f"{name} in {unit}",
        text=f"Histogram of {words.count(len(column), 'sequence')} of {low:,} to {high:,} {unit}. "
        f"Most, {counts.max():,}, have {ends[int(counts.argmax())]}.",
        table=Table((unit, "sequences"), list(zip(ends, [f"{n:,}" for n in counts.tolist()], strict=True))),
        x_label=f"length ({unit})",
        y_label="sequences",
        x_ticks=_x_ticks(x, low=low, high=high),
        y_ticks=marks.y_ticks(y, whole=True),
        marks=bars + ([] if edges is None else _draw_edges(edges[1], x)),
        caption=_caption(int(starts[1] - starts[0]), unit, longtailed=longtailed) + told,
    )


def _caption(width: int, unit: str, *, longtailed: bool) -> str:
    if longtailed:
        return "The axis is logarithmic: few sequences are far longer than most. Bars are wider to the right."
    return f"A bar is {words.count(width, unit.removesuffix('s') if width == 1 else unit, unit)} wide."


def _x_ticks(x: marks.Scale | LogScale, *, low: int, high: int) -> list[Tick]:
    """Round lengths; where less than two are within the axis, the shortest and the longest."""
    steps = x.steps() if isinstance(x, LogScale) else marks.nice_steps(x.high, 6)
    steps = [value for value in steps if value >= x.low]
    ticks = [
        Tick(x(value), words.short(value), "start" if x(value) < 4 else "middle") for value in steps if x(value) < 97
    ]
    if len(ticks) > 1:
        return ticks
    return [Tick(0.0, f"{low:,}", "start"), *([Tick(100.0, f"{high:,}", "end")] if high > low else [])]


def _draw_edges(edges: NDArray[np.int64], x: marks.Scale | LogScale) -> list[Mark]:
    # An edge is the last length of its bucket: the line stands behind it.
    return [marks.line((place, place), (0.0, marks.HEIGHT), "edge") for place in map(x, (edges + 1).tolist())]


def _write_edges(edges: NDArray[np.int64]) -> list[str]:
    told = [f"{edge:,}" for edge in edges[:_TOLD].tolist()]
    return told + ([f"and {len(edges) - _TOLD:,} more"] if len(edges) > _TOLD else [])

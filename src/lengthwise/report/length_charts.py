"""Charts of lengths: a histogram with the edges of buckets, and padding by the number of shapes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import value_error
from lengthwise.choices.buckets import padded_frames
from lengthwise.choices.cut import Cut
from lengthwise.lengths import as_lengths
from lengthwise.lengths.description import bar_starts, has_long_tail
from lengthwise.planning.few_shapes import shape_costs, useful_frames
from lengthwise.report import words
from lengthwise.report.style import HEIGHT, WIDTH, Chart, alt, colour, furnish, table

_BARS = 40  # the most to draw
_INNER = WIDTH - 66  # pixels of one histogram of several, without its axis


def histogram(lengths: ArrayLike, *, edges: ArrayLike | None = None, unit: str = "frames", title: str = "") -> Chart:
    """Draws a histogram of the lengths, and the edges of buckets.

    If few sequences are far longer than the rest, the axis is logarithmic.

    Args:
        lengths: [n] or [n, dims], at least one sequence; each dimension gets a histogram.
        edges: The longest length of each bucket, for lengths [n].
        unit: The unit of the lengths.
        title: The title; by default one is written.

    >>> import lengthwise as lw
    >>> lw.report.histogram([3, 5, 5, 9], unit="tokens").to_dict()["title"]["text"]
    '4 sequences of 3 to 9 tokens'
    """
    array = as_lengths(lengths)
    if not len(array):
        raise value_error("lengths", "at least one sequence", len(array), "Give the lengths to draw.")
    columns = array.reshape(len(array), -1).T
    if len(columns) > 1:
        panels = [
            _bars(column, f"length {dim} ({unit})").properties(width=_INNER, height=96)
            for dim, column in enumerate(columns, start=1)
        ]
        text = f"Histograms of {len(columns)} lengths of each of {len(array):,} sequences."
        return furnish(alt.vconcat(*panels), title or f"{len(array):,} sequences", text, view=False)
    chart, notes = _bars(columns[0], f"length ({unit})"), []
    if edges is not None:
        bounds = np.asarray(edges)
        share = 1.0 - int(array.sum()) / max(1, padded_frames(array, bounds))
        buckets = words.count(len(bounds), "bucket")
        notes = [f"Lines: the edges of {buckets}, under which {words.percent(share)} is padding"]
        # An edge is the last length of its bucket, so the line is drawn after that length.
        rules = alt.Chart(table([{"edge": edge, "end": edge + 1} for edge in bounds.tolist()]))
        chart += rules.mark_rule(strokeDash=[5, 3], strokeWidth=1.5, color=colour("ink")).encode(
            x=_axis(columns[0], "end", "")
        )
    low, high = int(array.min()), int(array.max())
    text = f"Histogram of the lengths of {words.count(len(array), 'sequence')}, from {low:,} to {high:,} {unit}. "
    heading = title or f"{words.count(len(array), 'sequence')} of {low:,} to {high:,} {unit}"
    return furnish(chart.properties(height=HEIGHT - 40), heading, text + " ".join(notes), notes=notes)


def _bars(column: NDArray[np.int64], title: str) -> Any:
    starts = bar_starts(column, most=_BARS)
    # Lengths [2, 3, 7] in bars of 3 from 2: starts [2, 5, 8], counts [2, 1].
    counts = np.histogram(column, starts)[0].tolist()
    rows = [
        {"from": start, "to": end - 1, "end": end, "sequences": count}
        for (start, end), count in zip(itertools.pairwise(starts.tolist()), counts, strict=True)
    ]
    y = alt.Y("sequences:Q", axis=alt.Axis(tickCount=4, tickMinStep=1, format="~s"))
    bars = alt.Chart(table(rows)).mark_bar(color=colour("data"), opacity=1, binSpacing=1)
    return bars.encode(_axis(column, "from", title), y, x2="end:Q", y2=alt.datum(0))


def _axis(column: NDArray[np.int64], field: str, title: str) -> Any:
    ends = bar_starts(column, most=_BARS)[[0, -1]].tolist()
    kind = "log" if has_long_tail(column) else "linear"
    scale = alt.Scale(type=kind, domain=ends, nice=False, zero=False)
    return alt.X(f"{field}:Q", title=title or None, scale=scale, axis=alt.Axis(grid=False, tickCount=6, format="~s"))


def shapes(lengths: ArrayLike, cut: Cut, *, most: int = 32) -> Chart:
    """Draws the share of padding with the best 1, 2, 3, ... padded shapes.

    Args:
        lengths: [n].
        cut: The cut into batches, such as `Budget(20_000)` or `FixedSize(16)`.
        most: The most shapes to draw.

    Raises:
        ValueError: As `lw.optimal_shapes`.

    >>> import lengthwise as lw
    >>> lw.report.shapes([5, 9, 2, 4, 7, 3], lw.Budget(18), most=2).to_dict()["title"]["text"]
    '2 shapes: 28.6 % of what is computed is padding'
    """
    array = as_lengths(lengths)
    shares = (1.0 - useful_frames(array, cut) / shape_costs(array, most, cut)).tolist()
    rows = [{"shapes": count, "padding": share} for count, share in enumerate(shares, start=1)]
    x = alt.X("shapes:Q", title="shapes (rows, padded length)", scale=alt.Scale(type="log", base=2, nice=False))
    y = alt.Y("padding:Q", title="padding", axis=alt.Axis(format=".0%", tickCount=5), scale=alt.Scale(zero=True))
    line = alt.Chart(table(rows)).mark_line(point={"size": 40, "color": colour("padding")}, color=colour("padding"))
    chart = line.encode(x.axis(values=[2**power for power in range(most.bit_length())], format="d"), y)
    heading = f"{words.count(most, 'shape')}: {words.percent(shares[-1])} of what is computed is padding"
    return furnish(chart.properties(height=HEIGHT - 40), heading, f"Padding by the number of shapes. {heading}.")

"""All charts: lengths, the padding and the randomness of strategies, and batches."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import value_error
from lengthwise.choices.buckets import padded_frames
from lengthwise.lengths import as_lengths
from lengthwise.lengths.description import bar_starts, has_long_tail
from lengthwise.measures.epochs import check_plan
from lengthwise.measures.metrics import measure
from lengthwise.planning.plan import Plan
from lengthwise.report import words
from lengthwise.report.style import HEIGHT, WIDTH, Chart, alt, colour, furnish, parts, table

_BARS = 40  # the most bars of a histogram
_SEQUENCES = 120  # sequences to draw of each plan
_PARTED = 40  # the most borders of batches to draw
_USUAL = 0.95  # the share of the sequences whose padded length is always on the axis
_PANEL = {"width": WIDTH - 66, "height": 96}  # pixels of one of several panels, without its axes


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
            _bars(column, f"length {dim} ({unit})").properties(**_PANEL) for dim, column in enumerate(columns, start=1)
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
        chart += rules.mark_rule(strokeDash=[5, 3], strokeWidth=1.5).encode(_lengths_axis(columns[0], "end"))
    low, high, sequences = int(array.min()), int(array.max()), words.count(len(array), "sequence")
    text = f"Histogram of the lengths of {sequences}, from {low:,} to {high:,} {unit}. {' '.join(notes)}"
    heading = title or f"{sequences} of {low:,} to {high:,} {unit}"
    return furnish(chart.properties(height=HEIGHT), heading, text, notes=notes)


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
    return bars.encode(_lengths_axis(column, "from", title), y, x2="end:Q", y2=alt.datum(0))


def _lengths_axis(column: NDArray[np.int64], field: str, title: str | None = None) -> Any:
    ends = bar_starts(column, most=_BARS)[[0, -1]].tolist()
    scale = alt.Scale(type="log" if has_long_tail(column) else "linear", domain=ends, nice=False, zero=False)
    return alt.X(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(grid=False, tickCount=6, format="~s"))


def padding(measures: Mapping[str, Any], *, best: str = "", unit: str = "frames") -> Chart:
    """Draws the frames that each strategy computes for each frame of data, and writes how random its steps are.

    Args:
        measures: `lw.Measures` by the label of the strategy.
        best: The label of the recommended strategy.
        unit: The unit of the lengths.

    >>> import lengthwise as lw
    >>> lengths = lw.example_lengths(count=200)
    >>> orders = {"random": lw.Shuffled(), "sorted": lw.Sorted()}
    >>> plans = {name: lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(2), order=orders[name])) for name in orders}
    >>> measures = {name: lw.measure(plan, lengths) for name, plan in plans.items()}
    >>> lw.report.padding(measures, best="sorted").to_dict()["description"]
    'Padding, as a share of what is computed: random 30.6 %, randomness 1.00; sorted 1.4 %, randomness 0.20.'
    """
    rows, ends = [], []
    for row in _read_measures(measures):
        computed = 1.0 / (1.0 - row["padding"])
        for part, frames in (("data", 1.0), ("padding", computed - 1.0)):
            rows.append({"strategy": row["name"], "part": part, "frames": frames})
        texts = {"share": words.percent(row["padding"]), "random": f"{row['randomness']:.2f}"}
        ends.append({"strategy": row["name"], "computed": computed, **texts})
    is_best = f"datum.value === {json.dumps(words.shorten(best))}"
    y = alt.Y("strategy:N", sort=None, title=None).axis(
        ticks=False,
        domain=False,
        labelColor=alt.condition(is_best, alt.value(colour("recommended")), alt.value(colour("ink"))),
        labelFontWeight=alt.condition(is_best, alt.value("bold"), alt.value("normal")),
    )
    x = alt.X("frames:Q", title=f"{unit} computed for each {unit.removesuffix('s')} of data").axis(tickCount=5)
    x = x.scale(domain=[0, 1.45 * max(end["computed"] for end in ends)], nice=False)
    bars = alt.Chart(table(rows)).mark_bar(height=alt.RelativeBandSize(0.72))
    bars = bars.encode(x, y, color=parts("data", "padding"))
    labels = alt.Chart(table(ends)).mark_text(align="left", dx=6).encode(x="computed:Q", y=y, text="share:N")
    column = (
        alt.Chart(table(ends)).mark_text(align="right").encode(x=alt.value(alt.expr("width")), y=y, text="random:N")
    )
    title, note = (
        "Padding, as a share of what is computed",
        "At the right: the randomness of steps, 1 for random samples.",
    )
    shares = "; ".join(f"{end['strategy']} {end['share']}, randomness {end['random']}" for end in ends)
    chart = (bars + labels + column).properties(height=max(90, 26 * len(ends)))
    return furnish(chart, title, f"{title}: {shares}.", notes=[note])


def _read_measures(measures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the padding, the randomness and the short name of each strategy."""
    rule, example = "measures by the label of the strategy", '{"random": lw.measure(plan, lengths)}'
    rows = []
    for label, values in check_labels("measures", measures, rule, example).items():
        row = values if isinstance(values, Mapping) else values.as_dict()
        rows.append({"name": words.shorten(label), "padding": row["padding_share"], "randomness": row["randomness"]})
    return rows


def batches(
    plans: Plan | Mapping[str, Plan],
    lengths: ArrayLike,
    *,
    unit: str = "frames",
    title: str = "",
    shares: Mapping[str, float] | None = None,
) -> Chart:
    """Draws some batches of an epoch, sequence by sequence, and the padding above each sequence.

    If a sequence has several lengths, their sum is drawn. If few sequences are far longer than the rest, the axis ends
    below them.

    Args:
        plans: A plan, or several by label, drawn one below the other.
        lengths: [n] or [n, dims], the lengths of the plans.
        unit: The unit of the lengths.
        title: The title; by default one is written.
        shares: The padding share of each plan, such as its mean over several epochs; by default that of the plan alone.

    Raises:
        ValueError: There is no plan, or a plan has other lengths.

    >>> import lengthwise as lw
    >>> lengths = [5, 9, 2, 4, 7, 3]
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder())
    >>> lw.report.batches(lw.make_plan(lengths, batching), lengths).to_dict()["description"]
    'Sequences of some batches, with the padding above them. Padding of the epoch: 11.8 %.'
    """
    rule, example = "at least one plan by its label", '{"random": plan}'
    plans_by_label = {"": plans} if isinstance(plans, Plan) else check_labels("plans", plans, rule, example)
    for plan in plans_by_label.values():
        check_plan("plans", plan)
    percents = {
        label: words.percent(shares[label] if shares else measure(plan, lengths).padding_share)
        for label, plan in plans_by_label.items()
    }
    rows = {label: _sequence_rows(plan, as_lengths(lengths)) for label, plan in plans_by_label.items()}
    # One sequence of 8,000 would make the others, of 500, too flat to see.
    tops = [[row["padded to"] for row in plan_rows] or [1] for plan_rows in rows.values()]
    usual = max(float(np.quantile(top, _USUAL)) for top in tops)
    scale = alt.Scale(domain=[0.0, max(1.0, min(1.05 * max(map(max, tops)), 1.4 * usual))], nice=False)
    y = alt.Y(title=f"length ({unit})", scale=scale, axis=alt.Axis(tickCount=3))
    x = alt.X("place:Q", axis=None).scale(domain=[0, max(1, *(len(top) - 1 for top in tops))], nice=False)
    panels = []
    for label, plan_rows in rows.items():
        text = f"{percents[label]} padding"
        name = f"{words.shorten(label, 53 - len(text))}: {text}" if label else text
        heading = alt.TitleParams(name, fontSize=13, fontWeight="normal", offset=4)
        panels.append(_draw_sequences(plan_rows, x, y).properties(title=heading, **_PANEL))
    chunked = any(plan.spans is not None for plan in plans_by_label.values())
    packed = any(plan.row_offsets is not None for plan in plans_by_label.values())
    item = "row" if packed else "chunk" if chunked else "sequence"
    numbers = "; ".join(f"{label} {share}".strip() for label, share in percents.items())
    text = f"Sequences of some batches, with the padding above them. Padding of the epoch: {numbers}."
    note = f"From the middle of the epoch. A thin bar is a {item}."
    chart = alt.vconcat(*panels, spacing=14)
    return furnish(chart, title or f"Batches, {item} by {item}", text, notes=[note], view=False)


def _draw_sequences(rows: list[dict[str, Any]], x: Any, y: Any) -> Any:
    # The padding is drawn first, and the data over it.
    layers = [
        alt.Chart(table(rows))
        .transform_calculate(part=f"'{part}'")
        .mark_area(interpolate="step-after", clip=True, opacity=1, line=False)
        .encode(x, y.field(field).type("quantitative"), color=parts("data", "padding"))
        for part, field in (("padding", "padded to"), ("data", "length"))
    ]
    borders = [{"place": row["place"]} for last, row in itertools.pairwise(rows) if row["batch"] != last["batch"]]
    if len(borders) <= _PARTED:  # lines would hide many narrow batches
        layers.append(alt.Chart(table(borders)).mark_rule(color=colour("paper"), strokeWidth=1.5).encode(x))
    return alt.layer(*layers)


def _sequence_rows(plan: Plan, lengths: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Returns the sequences of some batches from the middle of the epoch, in the order of delivery.

    A packed row is drawn as one sequence, with the sum of its lengths.
    """
    sums = lengths if lengths.ndim == 1 else lengths.sum(axis=1)
    numbers = plan.grid.reshape(-1)  # within a step: the first micro-batch of each rank, then the second
    ends = np.cumsum(plan.row_counts[numbers])
    first = int(np.searchsorted(ends, max(0, (int(ends[-1]) - _SEQUENCES) // 2), side="right")) if len(ends) else 0
    delivered = enumerate(numbers[first:].tolist(), start=1)
    members = ((place, batch, row) for place, batch in delivered for row in plan.rows(batch))
    rows: list[dict[str, Any]] = []
    for place, batch, row in itertools.islice(members, _SEQUENCES):
        length = int((sums[row] if plan.spans is None else row[:, 2] - row[:, 1]).sum())
        top = int(plan.padded_lengths[batch].sum())
        rows.append({"place": len(rows), "batch": place, "length": length, "padded to": top})
    # A sequence is drawn up to the next place, so the last one needs a place after it.
    return [*rows, rows[-1] | {"place": len(rows)}] if rows else []


def check_labels(name: str, values: object, rule: str, example: str) -> dict[str, Any]:
    """Returns a mapping with its labels as texts; refuses an empty one, and any other value."""
    if not isinstance(values, Mapping) or not values:
        raise value_error(name, rule, values, f"Give {example}, for example.")
    return {str(label): value for label, value in values.items()}

"""Lengths along the epoch, strategy by strategy (Doetsch, Golik, Ney 2017, figure 1), and what each batch is padded to.

delivered   [m]            the length of each sequence, in the order in which they are delivered
sizes       [batches]      sequences in each batch delivered
padded      [batches]      what each batch delivered is padded to
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import value_error
from lengthwise.lengths import as_lengths
from lengthwise.measures.metrics import measure
from lengthwise.planning.plan import Plan
from lengthwise.plot import style
from lengthwise.plot.style import Axes, Figure, Line2D, Look, MaxNLocator, Patch

_DOTS = 3_000  # sequences shown along an epoch at most
_STRETCHES = 400  # pieces of the epoch over which the padded length is averaged at most
_APART = 240  # sequences that can be told apart in a panel
_USUAL = 0.95  # the share of the sequences whose padded length is on the axis for certain
_LINE = "#6F6F6F"
_GOLDEN = (5**0.5 - 1) / 2


class Delivery(NamedTuple):
    """One epoch as it is delivered, see the top of this file."""

    delivered: NDArray[np.int64]
    sizes: NDArray[np.int64]
    padded: NDArray[np.int64]

    @property
    def offsets(self) -> NDArray[np.int64]:
        return np.append(0, np.cumsum(self.sizes))


@style.in_house_style
def epoch_lengths(lengths: ArrayLike, plans: Mapping[str, Plan], *, unit: str = "frames") -> Figure:
    """Draws the lengths along the epoch and what they are padded to, a row of panels for each plan.

    On the left is the epoch: at most 3,000 sequences, spread over it, as dots, and the mean padded length as a line. On
    the right are about a dozen batches at its middle, sequence by sequence. An epoch of at most 240 sequences has but
    one panel, which shows them all. Ranks are taken in turn, step by step; several lengths a sequence count by their
    sum. Where a few sequences are far longer than the rest, the axis ends below them, and says so.

    Args:
        lengths: What the plans were made for.
        plans: By the label to write above: "semi-sorted:0.1", say.
        unit: Of the lengths.

    Raises:
        ValueError: No plan, or one that was made for other lengths.

    References:
        Doetsch, Golik, Ney 2017, figure 1.
    """
    if not plans:
        raise value_error("plans", "at least one plan", plans, "Give {label: plan}.")
    paddings = {label: measure(plan, lengths).padding_share for label, plan in plans.items()}
    deliveries = {label: delivery(plan, lengths) for label, plan in plans.items()}
    most = max(len(each.delivered) for each in deliveries.values())
    window = _window(deliveries)
    columns = 1 if most <= max(window, _APART) else 2
    figure = style.blank_figure(height=1.1 + 1.35 * len(plans))
    panels = figure.subplots(
        len(plans), columns, squeeze=False, sharex="col", sharey=True, width_ratios=[3, 2][:columns]
    )
    for number, ((label, each), row) in enumerate(zip(deliveries.items(), panels, strict=True)):
        look = style.look(label, number)
        row[0].set_title(f"{label}: padding {paddings[label]:.1%}")
        if columns == 1:
            _draw_batches(row[0], each, look)
        else:
            _draw_epoch(row[0], each, look)
            _draw_middle(row[1], each, window, look)
    top = _top(deliveries)
    for column, right in enumerate((most, window)[:columns]):
        style.set_limits(panels[0, column], right=float(right), top=top)
    _furnish(figure, panels, unit, _beyond(deliveries, top, unit))
    return figure


def delivery(plan: Plan, lengths: ArrayLike) -> Delivery:
    """The epoch as the ranks take it, step by step.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.LongestFirst())
    >>> delivery(lw.make_plan([5, 9, 2, 4], batching), [5, 9, 2, 4])
    Delivery(delivered=array([5, 9, 2, 4]), sizes=array([2, 2]), padded=array([9, 4]))
    """
    array = as_lengths(lengths)
    items = array if array.ndim == 1 else array.sum(axis=1)
    if plan.spans is not None:
        items = plan.spans[:, 2] - plan.spans[:, 1]
    numbers = plan.grid.reshape(-1)
    sizes = plan.batch_sizes[numbers]
    # Batches of 2 and 3 that start at 7 and 0 hold the places 7, 8, 0, 1, 2.
    places = np.arange(sizes.sum()) + np.repeat(plan.offsets[numbers] - np.cumsum(sizes) + sizes, sizes)
    return Delivery(items[plan.sequences[places]], sizes, plan.padded_lengths.sum(axis=1)[numbers])


def middle_batches(each: Delivery, window: int) -> range:
    """The batches around the middle of the epoch that hold `window` sequences, the last of them perhaps in part.

    >>> middle_batches(Delivery(np.arange(12), np.full(6, 2), np.full(6, 9)), 4)
    range(2, 4)
    """
    offsets = each.offsets
    start = int(np.searchsorted(offsets, max(0, (offsets[-1] - window) // 2)))
    start = min(start, max(0, len(each.sizes) - 1))
    return range(start, int(np.searchsorted(offsets[:-1], offsets[start] + window)))


def _draw_batches(axes: Axes, each: Delivery, look: Look) -> None:
    """Every sequence as a bar, the padding above it, and the padded length of every batch as a step."""
    if not len(each.sizes):
        return  # no sequences, no batches: the panel stays empty
    places = np.arange(len(each.delivered) + 1)
    tops = np.repeat(each.padded, each.sizes)
    axes.stairs(each.delivered, places, fill=True, color=look.colour, alpha=0.8, linewidth=0)
    axes.stairs(tops, places, baseline=each.delivered, fill=True, color=style.PADDING, linewidth=0)
    axes.stairs(each.padded, each.offsets, color=_LINE, linewidth=0.9)


def _draw_middle(axes: Axes, each: Delivery, window: int, look: Look) -> None:
    shown = middle_batches(each, window)
    start, stop = each.offsets[[shown.start, shown.stop]]
    near = slice(shown.start, shown.stop)
    _draw_batches(axes, Delivery(each.delivered[start:stop], each.sizes[near], each.padded[near]), look)
    text = f"batches {shown.start + 1:,} to {shown.stop:,} of {len(each.sizes):,}"
    axes.set_title(text, fontsize=8.5, color=style.FAINT)


def _draw_epoch(axes: Axes, each: Delivery, look: Look) -> None:
    shown = spread(len(each.delivered), _DOTS)
    places, padded = _stretches(each)
    axes.stairs(padded, places, baseline=None, color=_LINE, alpha=0.6, linewidth=0.8)
    axes.plot(shown, each.delivered[shown], ".", color=look.colour, markersize=2.2, markeredgewidth=0)


def spread(count: int, most: int) -> NDArray[np.int64]:
    """At most `most` of the places 0..count-1, one from each of as many equal stretches: rising.

    Where in its stretch differs from one to the next (by the golden ratio), so that no rhythm of the batches is met
    again and again.

    >>> spread(5, 8)
    array([0, 1, 2, 3, 4])
    >>> spread(100, 4)
    array([ 0, 40, 55, 96])
    """
    if count <= most:
        return np.arange(count)
    borders = np.arange(most + 1) * count // most
    shares = np.arange(most) * _GOLDEN % 1.0
    return borders[:-1] + (shares * np.diff(borders)).astype(np.int64)


def _stretches(each: Delivery) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The epoch in stretches: their borders, and the mean padded length over the sequences in each."""
    count = len(each.delivered)
    pieces = min(_STRETCHES, len(each.sizes))
    borders = np.arange(pieces + 1) * count // max(pieces, 1)
    reached = np.append(0, np.cumsum(each.sizes * each.padded))
    at_borders = np.interp(borders, each.offsets, reached)
    return borders.astype(np.float64), np.diff(at_borders) / np.diff(borders)


def _window(deliveries: Mapping[str, Delivery]) -> int:
    """How many sequences to show one by one: a dozen batches of the plan with the largest, within reason."""
    means = [each.sizes.mean() for each in deliveries.values() if len(each.sizes)]
    return int(np.clip(12 * max(means, default=0.0), _APART / 4, 10 * _APART))


def _top(deliveries: Mapping[str, Delivery]) -> float:
    """The end of the axis of lengths: beyond the longest; where few are that long, beyond what most are padded to."""
    longest = max(int(each.padded.max(initial=0)) for each in deliveries.values())
    usual = [np.quantile(np.repeat(each.padded, each.sizes), _USUAL) for each in deliveries.values() if len(each.sizes)]
    return float(min(1.05 * longest, 1.4 * max(usual, default=0.0)))


def _beyond(deliveries: Mapping[str, Delivery], top: float, unit: str) -> str:
    longest = max(int(each.delivered.max(initial=0)) for each in deliveries.values())
    return f"; the longest, {longest:,} {unit}, lies beyond the axis" if longest > top else ""


def _furnish(figure: Figure, panels: NDArray[np.object_], unit: str, beyond: str) -> None:
    figure.supylabel(f"length ({unit})", fontsize=9)
    panels[0, 0].yaxis.set_major_locator(MaxNLocator(4, integer=True))
    panels[0, 0].yaxis.set_major_formatter("{x:,.0f}")
    for axes in panels[-1]:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel("sequences")
    panels[-1, 0].set_xlabel("sequences delivered" + beyond)
    figure.legend(
        handles=[
            Line2D([], [], color=_LINE, label="what the batches are padded to"),
            Patch(color=style.PADDING, label="padding"),
        ],
        loc="outside lower center",
        ncols=2,
    )

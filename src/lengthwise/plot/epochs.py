"""Lengths along the epoch, strategy by strategy (Doetsch, Golik, Ney 2017, figure 1), and their padding."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.measures.metrics import measure
from lengthwise.planning.plan import Plan
from lengthwise.plot import style
from lengthwise.plot.batches import STEP, draw_batches, furnish_lengths, name_parts
from lengthwise.plot.deliveries import (
    Delivery,
    beyond,
    check_plans,
    deliveries,
    item_of,
    largest_mean,
    middle_batches,
    top_of,
    unit_of,
)
from lengthwise.plot.labels import SIZE
from lengthwise.plot.style import Axes, Figure, Look, MaxNLocator

_DOTS = 3_000  # sequences shown along an epoch at most
_STRETCHES = 400  # pieces of the epoch over which the padded length is averaged at most
_APART = 240  # sequences that can be told apart in a panel
_GOLDEN = (5**0.5 - 1) / 2
_LETTERS = 34  # of a label: as many as fit above the left panel, with its padding


@style.in_house_style
def epoch_lengths(lengths: ArrayLike, plans: Mapping[str, Plan], *, unit: str = "frames") -> Figure:
    """Draws the lengths along the epoch and what they are padded to, a row of panels for each plan.

    On the left is the epoch: at most 3,000 sequences, spread over it, as dots, and the mean padded length as a line. On
    the right are about a dozen batches at its middle, sequence by sequence. An epoch of at most 240 sequences has but
    one panel, which shows them all. Ranks are taken in turn, step by step; several lengths a sequence count by their
    sum. Where a few sequences are far longer than the rest, the axis ends below them, and says so.

    Args:
        lengths: What the plans were made for.
        plans: By the label to write above: "semi-sorted:0.1", for example.
        unit: Of the lengths.

    Raises:
        ValueError: No plan, or one that was made for other lengths.

    References:
        Doetsch, Golik, Ney 2017, figure 1.
    """
    check_plans(plans)
    paddings = {label: measure(plan, lengths).padding_share for label, plan in plans.items()}
    found = deliveries(plans, lengths)
    most = max(len(each.delivered) for each in found.values())
    window = _window(found)
    # If the right panel would show the whole epoch, the left one would only repeat it.
    columns = 1 if most <= max(window, _APART) else 2
    figure = style.blank_figure(height=1.0 + 1.35 * len(plans))
    panels = figure.subplots(
        len(plans), columns, squeeze=False, sharex="col", sharey=True, width_ratios=[3, 2][:columns]
    )
    parts = {}
    for number, ((label, each), row) in enumerate(zip(found.items(), panels, strict=True)):
        look = style.look(label, number)
        text = f"{style.shorten(label, _LETTERS)}: padding {style.percent(paddings[label])}"
        row[0].set_title(text, color=style.readable(look.colour))
        parts[label] = range(len(each.sizes)) if columns == 1 else middle_batches(each, window)
        if columns == 1:
            draw_batches(row[0], each, look)
        else:
            _draw_epoch(row[0], each, look)
            _draw_middle(row[1], each, parts[label], look)
    top = top_of(found)
    for column, right in enumerate((most, window)[:columns]):
        style.set_limits(panels[0, column], right=float(right), top=top)
    furnish_lengths(figure, panels[0, 0], unit_of(lengths, unit))
    _furnish(panels, item_of(plans), beyond(found, top, unit), dotted=columns == 2)
    first = next(iter(found))
    name_parts(panels[0, -1], found[first].of(parts[first]), style.look(first))
    return figure


def _draw_middle(axes: Axes, each: Delivery, shown: range, look: Look) -> None:
    draw_batches(axes, each.of(shown), look)
    text = f"batches {shown.start + 1:,} to {shown.stop:,} of {len(each.sizes):,}"
    axes.set_title(text, fontsize=SIZE, color=style.FAINT)


def _draw_epoch(axes: Axes, each: Delivery, look: Look) -> None:
    shown = spread(len(each.delivered), _DOTS)
    places, padded = _stretches(each)
    axes.stairs(padded, places, baseline=None, color=STEP, alpha=0.6, linewidth=0.8)
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
    # 0, 0.62, 0.24, 0.85, ...: no multiple of it comes near a whole number soon.
    shares = np.arange(most) * _GOLDEN % 1.0
    return borders[:-1] + (shares * np.diff(borders)).astype(np.int64)


def _stretches(each: Delivery) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The epoch in stretches: their borders, and the mean padded length over the sequences in each.

    Of few batches, each is a stretch of its own: none is drawn between the padded lengths of its neighbours.
    """
    if len(each.sizes) <= _STRETCHES:
        return each.offsets.astype(np.float64), each.padded.astype(np.float64)
    borders = np.arange(_STRETCHES + 1) * len(each.delivered) // _STRETCHES
    # All computed frames up to each batch; between its borders a batch computes evenly.
    reached = np.append(0, np.cumsum(each.sizes * each.padded))
    at_borders = np.interp(borders, each.offsets, reached)
    return borders.astype(np.float64), np.diff(at_borders) / np.diff(borders)


def _window(found: Mapping[str, Delivery]) -> int:
    """How many sequences to show one by one: a dozen batches of the plan with the largest, within reason."""
    return int(np.clip(12 * largest_mean(found), _APART / 4, 10 * _APART))


def _furnish(panels: NDArray[np.object_], item: str, beyond: str, *, dotted: bool) -> None:
    for axes in panels[-1]:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel(item)
    dots = "\ndots: lengths; line: mean padded length" if dotted else ""
    panels[-1, 0].set_xlabel(f"{item} delivered{beyond}{dots}")

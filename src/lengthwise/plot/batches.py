"""Batches sequence by sequence: the lengths, the padding above them, and what each batch is padded to."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import check_whole
from lengthwise.measures.metrics import measure
from lengthwise.planning.plan import Plan
from lengthwise.plot import style
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
from lengthwise.plot.labels import EndLabel, label_ends
from lengthwise.plot.style import Axes, Figure, Look, MaxNLocator

STEP = "#6F6F6F"  # what batches are padded to
_ROOM = 0.012  # of the axis: the size of a narrower batch is not written out
_LETTERS = 44  # of a label: as many as fit above a panel, with what is said of it


@style.in_house_style
def batch_padding(
    lengths: ArrayLike, plans: Mapping[str, Plan], *, batches: int = 8, title: str = "", unit: str = "frames"
) -> Figure:
    """Draws batches from the middle of the epoch and what padding they need, a row for each plan.

    Every bar is a sequence, the area above it is its padding, the step the length that the batch is padded to. Above
    the row stands which share of the whole epoch is padding, below each batch how many sequences it holds. Ranks are
    taken in turn, step by step; several lengths a sequence count by their sum. Where a few sequences are far longer
    than the rest, the axis ends below them, and says so.

    Args:
        lengths: What the plans were made for.
        plans: By the label to write above: "semi-sorted:0.1", for example.
        batches: How many to show, of the plan that has the most sequences in a batch.
        title: Above all.
        unit: Of the lengths.

    Raises:
        ValueError: No plan, one that was made for other lengths, or no batch to show.
    """
    check_whole("batches", batches, minimum=1, remedy="Give how many batches to show.")
    check_plans(plans)
    paddings = {label: measure(plan, lengths).padding_share for label, plan in plans.items()}
    found = deliveries(plans, lengths)
    # The same number of sequences in every row, so that areas of padding can be compared.
    window = max(1, round(batches * largest_mean(found)))
    shown = {label: each.of(middle_batches(each, window)) for label, each in found.items()}
    right = min(window, max(len(each.delivered) for each in shown.values()))
    top = top_of(shown)
    figure = style.blank_figure(height=0.7 + 1.5 * len(plans))
    panels = figure.subplots(len(plans), 1, squeeze=False, sharey=True)[:, 0]
    for number, (axes, (label, each)) in enumerate(zip(panels, shown.items(), strict=True)):
        look = style.look(label, number)
        draw_batches(axes, each, look)
        _part(axes, each, window=right)
        style.set_limits(axes, right=float(right), top=top)
        _write_sizes(axes, each)
        text = f"{style.shorten(label, _LETTERS)}: {style.percent(paddings[label])} of what is computed is padding"
        axes.set_title(text, color=style.readable(look.colour), fontsize=10.5, fontweight="bold")
    panels[-1].set_xlabel(f"{item_of(plans)} in each batch{beyond(shown, top, unit)}")
    furnish_lengths(figure, panels[0], unit_of(lengths, unit))
    style.set_title(figure, title)
    first = next(iter(shown))
    name_parts(panels[0], shown[first], style.look(first))
    return figure


def draw_batches(axes: Axes, each: Delivery, look: Look, *, start: float = 0.0) -> None:
    """Every sequence as a bar from `start` on, the padding above it, and the padded length of every batch as a step."""
    if not len(each.sizes):
        return  # no sequences, no batches: the panel stays empty
    places = start + np.arange(len(each.delivered) + 1)
    # Batches of [2, 3] sequences padded to [9, 4]: the tops of the bars are [9, 9, 4, 4, 4].
    tops = np.repeat(each.padded, each.sizes)
    axes.stairs(each.delivered, places, fill=True, color=look.colour, alpha=0.8, linewidth=0)
    axes.stairs(tops, places, baseline=each.delivered, fill=True, color=style.PADDING, linewidth=0)
    axes.stairs(each.padded, start + each.offsets, color=STEP, linewidth=0.9)


def name_parts(axes: Axes, each: Delivery, look: Look) -> None:
    """Names bars, padding and steps to the right of the panel, at its last batch."""
    right, top = axes.get_xlim()[1], axes.get_ylim()[1]
    last = int(min(right, len(each.delivered)))
    if not last:
        return
    tops = np.repeat(each.padded, each.sizes)[:last]
    padding = np.maximum(np.minimum(tops, top) - each.delivered[:last], 0.0)
    near = max(0, last - int(each.sizes[np.searchsorted(each.offsets, last) - 1]))  # where the last batch begins
    # A label of "padding" needs an area to point at: the last bar of the batch often has none.
    large = np.flatnonzero(padding[near:] >= padding[near:].max() / 2)
    most = near + int(large[-1])  # the nearest with much padding
    labels = [
        EndLabel("padded length", (last, min(float(tops[-1]), top)), STEP),
        EndLabel("length", (last - 0.5, float(each.delivered[last - 1]) / 2), look.colour),
    ]
    if padding[most]:
        labels.append(EndLabel("padding", (most + 0.5, float(each.delivered[most] + padding[most] / 2)), style.INK))
    label_ends(axes, labels)


def furnish_lengths(figure: Figure, axes: Axes, unit: str) -> None:
    """The axis of lengths, which all panels share."""
    figure.supylabel(f"length ({unit})", fontsize=9)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")


def _part(axes: Axes, each: Delivery, *, window: int) -> None:
    """White between one batch and the next, never so wide that a sequence is lost under it."""
    tops = np.maximum(each.padded[1:], each.padded[:-1])
    # A bar is 72 x 8 / window points wide, and the line takes at most 0.3 of it.
    width = min(1.4, 0.3 * 72 * style.WIDTH / max(window, 1))
    axes.vlines(each.offsets[1:-1], 0.0, tops, color="white", linewidth=width)


def _write_sizes(axes: Axes, each: Delivery) -> None:
    """How many sequences each batch holds, below it, where there is room for the number."""
    right = axes.get_xlim()[1]
    told = (each.sizes > _ROOM * right) & (_centres(each) < right)
    axes.set_xticks(_centres(each)[told], [f"{size:,}" for size in each.sizes[told]])
    axes.tick_params(axis="x", length=0)


def _centres(each: Delivery) -> NDArray[np.float64]:
    # Offsets [0, 2, 5]: the middles 1 and 3.5.
    return (each.offsets[1:] + each.offsets[:-1]) / 2

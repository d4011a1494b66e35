"""Whole steps, batch by batch: what the ranks compute, what of it is padding, and how long they wait for each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import check_whole
from lengthwise.measures.metrics import Measures, measure
from lengthwise.planning.plan import Plan
from lengthwise.plot import style
from lengthwise.plot.batches import STEP, draw_batches, furnish_lengths
from lengthwise.plot.deliveries import Delivery, check_plans, delivery, top_of
from lengthwise.plot.labels import EndLabel, label_ends
from lengthwise.plot.style import Axes, Figure

WAITING = "#C9C9C9"
_GAP = 0.02  # between two steps, in widths of all steps shown
_HATCH = "////"
_COLUMNS = (0.55, 0.755, 1.0)  # where the measures end, in widths of a panel
_LETTERS = 27  # of a label: as many as fit before the measures
_LETTER = 0.011  # the width of a letter below a step, in widths of a panel


class Step(NamedTuple):
    """One step, its batches from the longest to the shortest.

    Attributes:
        each: Its batches, as they are delivered.
        tops: [batches], how high each batch would be, were its rank to compute as long as the slowest one.
    """

    each: Delivery
    tops: NDArray[np.int64]


@style.in_house_style
def step_padding(
    lengths: ArrayLike,
    plans: Mapping[str, Plan | Sequence[Plan]],
    *,
    steps: int = 3,
    title: str = "",
    unit: str = "frames",
) -> Figure:
    """Draws steps from the middle of the epoch, what they pad and how long ranks wait, a row for each label.

    Every bar is a sequence, the area above it is its padding, and hatched above a batch is how long its rank waits for
    the costliest of the step. With the cost `Padded` area is time: in each step all ranks have the same. Batches stand
    from the longest to the shortest. Above the row stand the measures of whole epochs.

    Args:
        lengths: What the plans were made for, [n] or [n, dims]; dims count by their sum.
        plans: By the label to write above, such as "random batches". The first of several epochs is drawn, and all are
            measured together: pool some, for one shows less mixing than there is.
        steps: How many to show.
        title: Above all.
        unit: Of the lengths.

    Raises:
        ValueError: No plan, one that was made for other lengths, or no step to show.
    """
    check_whole("steps", steps, minimum=1, remedy="Give how many steps to show.")
    check_plans(plans)
    found = {label: measure(epochs, lengths) for label, epochs in plans.items()}
    shown = {label: middle_steps(_first(epochs), lengths, steps) for label, epochs in plans.items()}
    top = top_of({label: _reach(row) for label, row in shown.items()})
    figure = style.blank_figure(height=0.6 + 1.08 * len(plans))
    panels = figure.subplots(len(plans), 1, squeeze=False, sharey=True)[:, 0]
    for number, (axes, (label, row)) in enumerate(zip(panels, shown.items(), strict=True)):
        look = style.look(label, number)
        _draw_steps(axes, row, look, top)
        axes.set_title(
            style.shorten(label, _LETTERS), color=style.readable(look.colour), fontsize=10, fontweight="bold"
        )
        _write_measures(axes, found[label], list(found.values()))
    panels[-1].set_xlabel("the batches of each step, side by side" + _area_of(plans))
    furnish_lengths(figure, panels[0], unit)
    style.set_title(figure, title)
    _name_parts(list(panels), list(shown.values()), list(shown))
    return figure


def middle_steps(plan: Plan, lengths: ArrayLike, steps: int) -> list[Step]:
    """Steps in a row from the middle of the epoch, as many as there are up to `steps`.

    >>> import lengthwise as lw
    >>> plan = lw.make_plan([4, 3], lw.Batching(cut=lw.FixedSize(1)), world_size=2)
    >>> middle_steps(plan, [4, 3], 1)[0].tops  # the rank that has 3 takes as long as the one that has 4
    array([4, 4])
    """
    start = max(0, (plan.steps - steps) // 2)
    return [_step(plan, lengths, number) for number in range(start, min(plan.steps, start + steps))]


def _write_measures(axes: Axes, found: Measures, beside: Sequence[Measures]) -> None:
    """What the three measures of the steps come to, above the panel, in columns; the worst of each column is bold."""
    columns = {
        f"padding {style.percent(found.padding_share)}": [each.padding_share for each in (found, *beside)],
        f"waiting {style.percent(found.straggler_waste)}": [each.straggler_waste for each in (found, *beside)],
        f"step mixing {found.step_mixing:.2f}": [-each.step_mixing for each in (found, *beside)],
    }
    for (text, values), place in zip(columns.items(), _COLUMNS, strict=True):
        above = {"xycoords": "axes fraction", "xytext": (0, 6), "textcoords": "offset points"}
        worst = values[0] == max(values) > min(values)
        weight = "bold" if worst else "normal"
        axes.annotate(text, (place, 1.0), **above, ha="right", fontsize=10, fontweight=weight, color=style.INK)


def _area_of(plans: Mapping[str, Plan | Sequence[Plan]]) -> str:
    """What the area of a batch is, where batches cost what they are padded to."""
    firsts = [_first(epochs) for epochs in plans.values()]
    frames = all(np.array_equal(plan.costs, plan.batch_sizes * plan.padded_lengths.sum(axis=1)) for plan in firsts)
    return ": area is time, the same for all ranks" if frames else ""


def _first(epochs: Plan | Sequence[Plan]) -> Plan:
    return epochs if isinstance(epochs, Plan) else epochs[0]


def _step(plan: Plan, lengths: ArrayLike, number: int) -> Step:
    grid = plan.grid[number]
    taken = np.broadcast_to(plan.costs[grid].sum(axis=0), grid.shape)  # by the rank of each batch
    longest_first = np.argsort(-plan.padded_lengths.sum(axis=1)[grid].reshape(-1), kind="stable")
    each = delivery(plan, lengths, grid.reshape(-1)[longest_first])
    share = taken.reshape(-1)[longest_first] / (taken.max() or 1.0)  # of the time of the step, that a rank computes
    return Step(each, np.ceil(each.padded / np.where(share > 0, share, 1.0)).astype(np.int64))


def _reach(row: Sequence[Step]) -> Delivery:
    """All batches of the steps, each as high as it is drawn."""
    none = np.empty(0, np.int64)
    return Delivery(
        np.concatenate([none, *(step.each.delivered for step in row)]),
        np.concatenate([none, *(step.each.sizes for step in row)]),
        np.concatenate([none, *(step.tops for step in row)]),
    )


def _draw_steps(axes: Axes, row: Sequence[Step], look: style.Look, top: float) -> None:
    """The steps side by side, and below each what it holds."""
    widths = [len(step.each.delivered) for step in row]
    gap = _GAP * sum(widths)
    starts = np.cumsum([0.0, *widths])[:-1] + gap * np.arange(len(widths))
    for step, start in zip(row, starts, strict=True):
        edges = start + step.each.offsets
        tops = np.maximum(step.tops, step.each.padded)
        axes.stairs(
            *(tops, edges), baseline=step.each.padded, fill=True, facecolor="white", edgecolor=WAITING, hatch=_HATCH
        )
        draw_batches(axes, step.each, look, start=start)
        axes.vlines(edges[1:-1], 0.0, np.maximum(tops[1:], tops[:-1]), color="white", linewidth=0.8)
    style.set_limits(axes, right=float(starts[-1] + widths[-1]) if len(row) else 1.0, top=top)
    told = [_write_batches(step.each.sizes) for step in row]
    room = [width / max(sum(widths), 1) for width in widths]
    told = [text if _LETTER * len(text) <= width else "" for text, width in zip(told, room, strict=True)]
    axes.set_xticks(starts + np.array(widths) / 2, told)
    axes.tick_params(axis="x", length=0)


def _write_batches(sizes: NDArray[np.int64]) -> str:
    """How many batches a step has, and of how many sequences."""
    return f"{len(sizes):,} {'batch' if len(sizes) == 1 else 'batches'} of {_write_sizes(sizes)}"


def _write_sizes(sizes: NDArray[np.int64]) -> str:
    """The least and the greatest, or both as one.

    >>> _write_sizes(np.array([16, 16])), _write_sizes(np.array([12, 28, 14]))
    ('16', '12 to 28')
    """
    return f"{sizes.min():,}" if sizes.min() == sizes.max() else f"{sizes.min():,} to {sizes.max():,}"


def _name_parts(panels: Sequence[Axes], rows: Sequence[Sequence[Step]], names: Sequence[str]) -> None:
    """Names bars, padding and steps beside the first panel, and the waiting where the most of it ends a row."""
    waits = [float(row[-1].tops[-1] - row[-1].each.padded[-1]) if row else 0.0 for row in rows]
    for number, (axes, row) in enumerate(zip(panels, rows, strict=True)):
        labels = _parts_of(axes, row[-1], style.look(names[number], number).colour) if row and number == 0 else []
        if row and waits[number] == max(waits) > 0:
            last = row[-1]
            middle = axes.get_xlim()[1] - float(last.each.sizes[-1]) / 2
            labels.append(EndLabel("waiting", (middle, float(last.each.padded[-1]) + waits[number] / 2), style.FAINT))
        label_ends(axes, labels)


def _parts_of(axes: Axes, step: Step, colour: str) -> list[EndLabel]:
    right, size, padded = axes.get_xlim()[1], int(step.each.sizes[-1]), float(step.each.padded[-1])
    bars = step.each.delivered[-size:]
    widest = int(np.argmax(padded - bars))
    labels = [EndLabel("padded length", (right, padded), STEP)]
    if bars[widest] < padded:
        middle = float(bars[widest] + padded) / 2
        labels.append(EndLabel("padding", (right - size + widest + 0.5, middle), style.INK))
    return [*labels, EndLabel("length", (right - 0.5, float(bars[-1]) / 2), colour)]

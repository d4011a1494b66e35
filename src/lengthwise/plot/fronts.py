"""What `advise` found: mixing against what an epoch takes, and the limit of all batching."""

from __future__ import annotations

from numpy.typing import ArrayLike

from lengthwise.advice.answer import Advice
from lengthwise.advice.row import AdviceRow
from lengthwise.lengths import as_lengths
from lengthwise.plot import style
from lengthwise.plot.labels import EndLabel, label_ends
from lengthwise.plot.style import Axes, Figure
from lengthwise.plot.trade_offs import LIMIT_DASH, Curve, limit_curve

_KEY = "line: nothing tried costs less and mixes as much; small dots: all that was tried"
_PRICES = {
    "frames": "computed frames for each useful one",
    "seconds": "seconds an epoch",
    "cost": "cost of an epoch",
}


@style.in_house_style
def front(advice: Advice, *, lengths: ArrayLike | None = None, title: str = "") -> Figure:
    """Draws what was tried: mixing against the price, the front, what trainers ship, and the one that is recommended.

    Args:
        advice: What `lw.advise` returned.
        lengths: [n], those that were asked about, for the limit. Without them, with several lengths for each sequence,
            or where prices are not in frames, there is none.
        title: Above the panel.
    """
    figure = style.blank_figure(height=4.3)
    axes = figure.subplots()
    for row in advice.candidates:
        axes.plot(row.price, row.mixing, ".", color=style.FAINT, markersize=4)
    axes.plot(*_curve(advice.front), color=style.look("max-entropy").colour, linewidth=1.4)
    limit = None if lengths is None or advice.unit != "frames" else _limit(advice, lengths)
    if limit is not None:
        axes.plot(*limit, color=style.INK, linestyle=LIMIT_DASH, linewidth=1.2)
    named = list({id(row): row for row in [*advice.shipped, advice.best]}.values())
    labels = [EndLabel(_name(row, advice), (row.price, row.mixing), _mark(axes, row, advice)) for row in named]
    if limit is not None:
        labels.append(EndLabel("limit", (float(limit.padding[-1]), float(limit.mixing[-1])), style.INK))
    _set_axes(axes, advice)
    style.set_title(figure, title)
    label_ends(axes, labels)
    return figure


def _curve(rows: tuple[AdviceRow, ...]) -> tuple[list[float], list[float]]:
    return [row.price for row in rows], [row.mixing for row in rows]


def _mark(axes: Axes, row: AdviceRow, advice: Advice) -> str:
    """Draws a row that has a name, and returns its colour."""
    best = row is advice.best
    colour = style.look("max-entropy").colour if best else style.INK
    axes.plot(row.price, row.mixing, "o", color=colour, markersize=8 if best else 5, zorder=5 if best else 4)
    return colour


def _name(row: AdviceRow, advice: Advice) -> str:
    name = f"{row.label} ({row.ships_in})" if row.ships_in else row.label
    return f"recommended: {name}" if row is advice.best else name


def _limit(advice: Advice, lengths: ArrayLike) -> Curve | None:
    """The limit by what is computed: for whoever waits it lies further to the right, so that it holds for all."""
    array = as_lengths(lengths)
    if array.ndim > 1 or not len(array) or advice.world_size * advice.micro_batches > 1:
        return None
    most = max(row.price for row in advice.candidates)
    end = 1 - 1 / max(most, 1.0)
    curve = limit_curve(array, end)
    # A padding of a fifth is 5 computed frames for 4 useful ones.
    return Curve(1 / (1 - curve.padding), curve.mixing)


def _set_axes(axes: Axes, advice: Advice) -> None:
    least = min(row.price for row in advice.candidates)
    most = max(row.price for row in advice.candidates)
    room = 0.04 * (most - least) or 0.1
    axes.set_xlim(least - room, most + room)
    if least == most:
        axes.set_xticks([least])  # others would tell of prices that cannot be, such as 0.9 frames for a useful one
    axes.set_ylim(0.0, 1.06)
    price = _PRICES[advice.unit] + (", of the slowest rank" if advice.world_size > 1 else "")
    axes.set_xlabel(f"{price}\n{_KEY}")
    several = advice.world_size * advice.micro_batches > 1
    axes.set_title(f"mixing of {'steps' if several else 'batches'} (1: they tell nothing of the lengths in them)")
    axes.grid(True)

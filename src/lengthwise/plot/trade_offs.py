"""Mixing against padding: what each strategy reaches, and the limit of all batching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import check_number, value_error
from lengthwise.lengths import as_lengths
from lengthwise.measures.limit import mixing_limit
from lengthwise.plot import style
from lengthwise.plot.labels import SIZE, end_labels, label_ends, points
from lengthwise.plot.style import Axes, Figure, Line2D

_POINTS = 16  # on the limit
_BINS = 128  # of the limit: in as many `compare`, and sweeps of enough sequences, estimate mixing
LIMIT_DASH = (0, (5, 3))
_CLEAR = 0.05  # mixing below it is within the error of the estimate
_OURS = "max-entropy"


class Curve(NamedTuple):
    """Both [points], in order of padding."""

    padding: NDArray[np.float64]
    mixing: NDArray[np.float64]


@style.in_house_style
def trade_off(
    rows: Sequence[Mapping[str, Any]],
    *,
    lengths: ArrayLike | None = None,
    max_padding: float | None = None,
    title: str = "",
) -> Figure:
    """Draws mixing against the padding share, a curve for each strategy and the limit of all batching.

    Rows that differ only in the value of the strategy's knob make a curve; rows of the same strategy and value (other
    seeds, other epochs) make one point, their mean. With `lengths` a second panel shows mixing as a share of the limit.

    Args:
        rows: Each with "strategy" (its label: "semi-sorted:0.1"), "padding_share" and "mixing": what `sweep` gives, or
            `lengthwise compare --json`. Measure mixing on several epochs together: on one it may seem to pass the
            limit.
        lengths: What the rows were measured on, [n] or [n, dims], for the limit in 128 bins; dims count by their sum.
        max_padding: The padding share at which the panels end; by default that of the last row. A strategy that lies
            wholly beyond it is named in words.
        title: Above both panels.

    Raises:
        ValueError: No row, or none up to `max_padding`.
    """
    if not rows:
        raise value_error("rows", "at least one row", rows, "Give what `sweep` returns.")
    curves = _trade_curves(rows)
    most = max(float(curve.padding[-1]) for curve in curves.values()) or 1.0
    limit = None if lengths is None else limit_curve(lengths, most)
    end = most if max_padding is None else min(most, _check_end(max_padding, curves))
    figure = style.blank_figure(height=4.3)
    panels = figure.subplots(1, 1 if limit is None else 2, squeeze=False)[0]
    panels[0].set_title("mixing (1: a batch tells nothing of the lengths in it)")
    _draw_panel(panels[0], curves, limit, end)
    if limit is not None:
        panels[1].set_title("mixing as a share of the limit")
        shares = {name: share_of_limit(curve, limit) for name, curve in curves.items()}
        # A strategy that pads too little for the limit to be told from 0 has no share of it.
        told = {name: curve for name, curve in shares.items() if len(curve.padding)}
        _draw_panel(panels[1], told, Curve(limit.padding, np.ones_like(limit.padding)), end)
    style.set_title(figure, title)
    for axes, upper in zip(panels, (True, False), strict=False):
        _name(axes, upper=upper)
    return figure


def _trade_curves(rows: Sequence[Mapping[str, Any]]) -> dict[str, Curve]:
    """Padding share and mixing of each strategy, in order of padding.

    >>> row = {"strategy": "semi-sorted:0.3", "padding_share": 0.2, "mixing": 0.4}
    >>> less = {"strategy": "semi-sorted:0.1", "padding_share": 0.1, "mixing": 0.2}
    >>> _trade_curves([row, less])
    {'semi-sorted': Curve(padding=array([0.1, 0.2]), mixing=array([0.2, 0.4]))}
    """
    points: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        label = row["strategy"]
        # "semi-sorted:0.1" and "semi-sorted:0.3" are two points of the curve "semi-sorted".
        of_label = points.setdefault(_curve_name(label), {}).setdefault(label, [])
        of_label.append((row["padding_share"], row["mixing"]))
    curves = {}
    for name, labels in points.items():
        means = np.array(sorted(tuple(np.mean(pairs, axis=0)) for pairs in labels.values()))
        curves[name] = Curve(means[:, 0], means[:, 1])
    return curves


def _curve_name(label: str) -> str:
    """The label without the value of the knob.

    >>> _curve_name("semi-sorted:0.1,arrange=in-order")
    'semi-sorted,arrange=in-order'
    """
    head, comma, options = label.partition(",")
    return style.strategy_name(head) + comma + options


def limit_curve(lengths: ArrayLike, end: float) -> Curve:
    """The limit in 128 bins, `lw.mixing_limit(bins=128)`, at padding shares from 0 to `end`."""
    array = as_lengths(lengths)
    sizes = array if array.ndim == 1 else array.sum(axis=1)
    padding = min(end, 0.999) * np.linspace(0.0, 1.0, _POINTS) ** 1.5  # where all is padding there is no limit
    return Curve(padding, np.array([mixing_limit(sizes, float(share), bins=_BINS) for share in padding]))


def share_of_limit(curve: Curve, limit: Curve) -> Curve:
    """Mixing over the limit at the same padding, where the limit is high enough to be told from 0."""
    most = np.interp(curve.padding, limit.padding, limit.mixing)
    clear = most > _CLEAR
    return Curve(curve.padding[clear], curve.mixing[clear] / most[clear])


def _check_end(max_padding: float, curves: Mapping[str, Curve]) -> float:
    least = min(float(curve.padding[0]) for curve in curves.values())
    remedy = "Give a share that some row lies below, such as 0.3."
    return check_number("max_padding", max_padding, minimum=least, above=True, maximum=1.0, remedy=remedy)


def _draw_panel(axes: Axes, curves: Mapping[str, Curve], limit: Curve | None, end: float) -> None:
    """The curves up to `end`, and the limit above them."""
    for number, (name, curve) in enumerate(curves.items()):
        _draw(axes, curve, name, number)
    if limit is not None:
        axes.plot(*limit, color=style.INK, linestyle=LIMIT_DASH, linewidth=1.2, label="limit", zorder=5)
        axes.fill_between(limit.padding, limit.mixing, 2.0, color="#F2F2F2", linewidth=0)
    right = 1.02 * end
    shown = [line for line in axes.lines if _start_of(line)[0] <= right]
    # As high as the curves are where they leave the panel: beyond its end they may rise further.
    top = max((label.place[1] for label in end_labels(shown, end=right)), default=1.0)
    style.set_limits(axes, right=right, top=1.06 * top)
    axes.set_xlabel("padding share of the computed frames")
    axes.xaxis.set_major_formatter(style.percent_axis())
    axes.grid(True)


def _name(axes: Axes, *, upper: bool) -> None:
    """Names curves where they leave the panel or end, and says in a free corner, above or below, where others lie."""
    end = axes.get_xlim()[1]
    several = any(len(points(line)[0]) > 1 for line in axes.lines)
    # In words: what lies beyond the panel, and single points among curves.
    told = [line for line in axes.lines if _start_of(line)[0] > end or (several and len(points(line)[0]) == 1)]
    for number, line in enumerate(told):
        padding, mixing = _start_of(line)
        arrow = " \N{RIGHTWARDS ARROW}" if padding > end else ""
        axes.annotate(
            f"{line.get_label()}: {mixing:.2f} at {style.percent(padding)} padding{arrow}",
            xy=(0.0, 1.0) if upper else (1.0, 0.0),
            xycoords="axes fraction",
            xytext=(8, -14 - 13 * number) if upper else (-8, 8 + 13 * number),
            textcoords="offset points",
            ha="left" if upper else "right",
            fontsize=SIZE,
            color=style.readable(str(line.get_color())),
        )
    label_ends(axes, end_labels([line for line in axes.lines if line not in told], end=end))


def _draw(axes: Axes, curve: Curve, name: str, number: int) -> None:
    look = style.look(name, number)
    ours = style.strategy_name(name) == _OURS
    axes.plot(
        curve.padding,
        curve.mixing,
        color=look.colour,
        linestyle=look.dash if len(curve.padding) > 1 else "none",
        marker=look.marker,
        markersize=4.5 if len(curve.padding) > 1 else 7.0,
        linewidth=2.4 if ours else 1.4,
        zorder=4 if ours else 3,
        label=name,
    )


def _start_of(line: Line2D) -> tuple[float, float]:
    padding, mixing = points(line)
    return float(padding[0]), float(mixing[0])

"""Padding bought for mixing: what each strategy gets for it, and the most that any could."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import value_error
from lengthwise.lengths import as_lengths
from lengthwise.measures.limit import mixing_limit
from lengthwise.plot import style
from lengthwise.plot.style import Axes, Figure, PercentFormatter

_POINTS = 11  # on the limit
_CLEAR = 0.05  # mixing below it is within the error of the estimate
_OURS = "max-entropy"


class Curve(NamedTuple):
    """Both [points], in order of padding."""

    padding: NDArray[np.float64]
    mixing: NDArray[np.float64]


@style.in_house_style
def trade_off(rows: Sequence[Mapping[str, Any]], *, lengths: ArrayLike | None = None, title: str = "") -> Figure:
    """Draws mixing against the padding share, a curve for each strategy and the limit of all batching.

    Rows that differ only in the value of the strategy's knob make a curve; rows of the same strategy and value (other
    seeds, other epochs) make one point, their mean. With `lengths` a second panel shows mixing as a share of the limit.

    Args:
        rows: Each with "strategy" (its label: "semi-sorted:0.1"), "padding_share" and "mixing": what `sweep` gives, or
            `lengthwise compare --json`. Measure mixing on several epochs together: on one it may seem to pass the
            limit.
        lengths: What the rows were measured on, [n] or [n, dims], for the limit; dims count by their sum.
        title: Above the first panel, in place of what mixing means.

    Raises:
        ValueError: No row.
    """
    if not rows:
        raise value_error("rows", "at least one row", rows, "Give what `sweep` returns.")
    curves = trade_curves(rows)
    end = max(float(curve.padding[-1]) for curve in curves.values()) or 1.0
    limit = None if lengths is None else limit_curve(lengths, end)
    figure = style.blank_figure(height=4.3)
    panels = figure.subplots(
        1, 1 if limit is None else 2, squeeze=False, width_ratios=[3, 2][: 1 + (limit is not None)]
    )
    for number, (name, curve) in enumerate(curves.items()):
        _draw(panels[0, 0], curve, name, number)
        if limit is not None:
            _draw(panels[0, 1], share_of_limit(curve, limit), name, number)
    if limit is not None:
        _draw_limit(panels[0, 0], limit)
        panels[0, 1].axhline(1.0, color=style.INK, linestyle=(0, (5, 3)), linewidth=1.2)
        panels[0, 1].set_title("as a share of the limit")
    for axes in panels.flat:
        _furnish(axes, end)
    if limit is not None:
        top = max(panels[0, 1].dataLim.y1, 1.0)
        panels[0, 1].set_ylim(0.0, 1.02 * top)
    panels[0, 0].set_title(title or "1: a batch tells nothing of the lengths in it")
    panels[0, 0].set_ylabel("mixing")
    handles, names = panels[0, 0].get_legend_handles_labels()
    panels[0, 0].legend(handles[::-1], names[::-1], loc="upper left")
    return figure


def trade_curves(rows: Sequence[Mapping[str, Any]]) -> dict[str, Curve]:
    """Padding share and mixing of each strategy, in order of padding.

    >>> row = {"strategy": "semi-sorted:0.3", "padding_share": 0.2, "mixing": 0.4}
    >>> less = {"strategy": "semi-sorted:0.1", "padding_share": 0.1, "mixing": 0.2}
    >>> trade_curves([row, less])
    {'semi-sorted': Curve(padding=array([0.1, 0.2]), mixing=array([0.2, 0.4]))}
    """
    points: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in rows:
        label = row["strategy"]
        of_label = points.setdefault(curve_name(label), {}).setdefault(label, [])
        of_label.append((row["padding_share"], row["mixing"]))
    curves = {}
    for name, labels in points.items():
        means = np.array(sorted(tuple(np.mean(pairs, axis=0)) for pairs in labels.values()))
        curves[name] = Curve(means[:, 0], means[:, 1])
    return curves


def curve_name(label: str) -> str:
    """The label without the value of the knob.

    >>> curve_name("semi-sorted:0.1,arrange=in-order")
    'semi-sorted,arrange=in-order'
    """
    head, comma, options = label.partition(",")
    return style.strategy_name(head) + comma + options


def limit_curve(lengths: ArrayLike, end: float) -> Curve:
    """The most mixing that any batching can have, at padding shares from 0 to `end`; see `lw.mixing_limit`."""
    array = as_lengths(lengths)
    sizes = array if array.ndim == 1 else array.sum(axis=1)
    padding = min(end, 0.999) * np.linspace(0.0, 1.0, _POINTS) ** 1.5  # where all is padding there is no limit
    return Curve(padding, np.array([mixing_limit(sizes, float(share)) for share in padding]))


def share_of_limit(curve: Curve, limit: Curve) -> Curve:
    """Mixing over the limit at the same padding, where that is high enough to be told from nothing."""
    most = np.interp(curve.padding, limit.padding, limit.mixing)
    clear = most > _CLEAR
    return Curve(curve.padding[clear], curve.mixing[clear] / most[clear])


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


def _draw_limit(axes: Axes, limit: Curve) -> None:
    axes.plot(*limit, color=style.INK, linestyle=(0, (5, 3)), linewidth=1.2, label="limit of any batching", zorder=5)
    axes.fill_between(limit.padding, limit.mixing, 1.0, color="#F2F2F2", linewidth=0)


def _furnish(axes: Axes, end: float) -> None:
    style.set_limits(axes, right=end * 1.02, top=1.02)
    axes.set_xlabel("padding share of the computed frames")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.grid(True)

"""Curves with bands: validation loss against time and epochs, and epoch time against the number of buckets.

Lines are means over seeds, bands reach from the least to the greatest seed. A loss of None (a run diverged) leaves a
gap. Rows of learning curves are those of a study: one for each strategy, seed and epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from textwrap import wrap
from types import MappingProxyType
from typing import Any

from lengthwise.checks import value_error
from lengthwise.report import style
from lengthwise.report.style import Chart, alt
from lengthwise_recipes.pictures.looks import (
    DASHES,
    WIDTH,
    Look,
    look_channels,
    panel_facet,
    rising_looks,
    strategy_looks,
)

PANELS = MappingProxyType({"elapsed_seconds": "training time (s)", "epoch": "epochs"})
LOSS = "validation loss (nats per symbol)"
TOGETHER = 6  # the most strategies whose bands are legible in one panel
STRATEGY = "the strategy of the panel"
BOUND = "by padded frames"
_TICKS = [base * 10.0**power for power in range(-4, 4) for base in (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)]
_LETTERS = 84  # in a line of a note

Row = Mapping[str, Any]


def learning_curves(
    rows: Sequence[Row], *, title: str = "", loss_label: str = LOSS, looks: Mapping[str, Look] = MappingProxyType({})
) -> Chart:
    """Draws the validation loss of every strategy after each epoch, against time and against epochs.

    Args:
        rows: At least one.
        title: A note below the title.
        loss_label: The name of the loss, with its unit.
        looks: Looks of strategies, in place of the usual ones.
    """
    labels = _labels(rows)
    curves = [(name, label, curve(rows, label, column)) for column, name in PANELS.items() for label in labels]
    return _draw_losses(rows, curves, strategy_looks(labels) | dict(looks), (title, loss_label), columns=2, height=230)


def learning_panels(
    rows: Sequence[Row], *, against: str = "elapsed_seconds", title: str = "", loss_label: str = LOSS
) -> Chart:
    """Draws a panel for each strategy: its validation loss, and that of the first strategy.

    Args:
        rows: At least one.
        against: "elapsed_seconds" or "epoch".
        title, loss_label: As in `learning_curves`.
    """
    labels = _labels(rows)
    points = {label: curve(rows, label, against) for label in labels}
    pairs = [(label, name, shown) for label in labels for name, shown in ((labels[0], labels[0]), (STRATEGY, label))]
    looks = {labels[0]: Look(style.colour("soft")), STRATEGY: Look(style.colour("data"))}
    curves = [(panel, name, points[shown]) for panel, name, shown in pairs]
    return _draw_losses(rows, curves, looks, (title, loss_label), columns=3, height=110, x_title=PANELS[against])


def speed_up_curves(seconds: Mapping[str, Mapping[int, Sequence[float]]], bounds: Mapping[int, float]) -> Chart:
    """Draws epoch time, and the speed-up over the fewest buckets of the same series.

    Args:
        seconds: Name of a series, such as "2 processes", to seconds of an epoch for each seed, by the number of
            buckets. All series have the same numbers of buckets and equally many seeds.
        bounds: The greatest possible speed-up, by the number of buckets.

    References:
        Khomenko et al. 2016, figure 4, for the left panel; the paper has bars.
    """
    curves, first = [], min(bounds)
    for name, series in seconds.items():
        speed_ups = {
            count: [before / after for before, after in zip(series[first], times, strict=True)]
            for count, times in series.items()
        }
        for panel, values in (("seconds per epoch", series), (f"speed-up over Q = {first}", speed_ups)):
            curves.append((panel, name, [{"x": count, **_spread(values[count])} for count in sorted(values)]))
    limits = [{"x": count, **_spread([bound])} for count, bound in sorted(bounds.items())]
    curves.append((f"speed-up over Q = {first}", BOUND, limits))
    looks = rising_looks(seconds) | {BOUND: Look(style.colour("ink"), DASHES[1])}
    y = alt.Y(title=None, scale=alt.Scale(nice=5), axis=alt.Axis(tickCount=5))
    chart = _draw(curves, looks, y, columns=2, height=200).resolve_scale(y="independent")
    text = "Epoch time and speed-up by the number of buckets, a curve for each number of processes."
    return style.furnish(chart, "Epoch time and speed-up by the number of buckets Q", text, view=False)


def curve(rows: Iterable[Row], label: str, column: str) -> list[dict[str, Any]]:
    """Returns the points of one strategy.

    >>> row = {"strategy": "random", "seed": 0, "epoch": 1, "validation_loss": 2.0}
    >>> curve([row, {**row, "seed": 1, "validation_loss": 4.0}], "random", "epoch")
    [{'x': 1.0, 'mean': 3.0, 'least': 2.0, 'greatest': 4.0}]
    """
    groups: dict[int, list[Row]] = {}
    for row in rows:
        if row["strategy"] == label:
            groups.setdefault(row["epoch"], []).append(row)
    return [
        {"x": fmean(row[column] for row in groups[epoch]), **_spread([row["validation_loss"] for row in groups[epoch]])}
        for epoch in sorted(groups)
    ]


def _spread(values: Sequence[float | None]) -> dict[str, float | None]:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return dict.fromkeys(("mean", "least", "greatest"))
    return {"mean": fmean(known), "least": min(known), "greatest": max(known)}


def _labels(rows: Sequence[Row]) -> list[str]:
    if not rows:
        raise value_error("rows", "at least one epoch", rows, "Give the rows of a finished study.")
    return list(dict.fromkeys(row["strategy"] for row in rows))


def _draw_losses(rows: Sequence[Row], curves: Any, looks: Any, texts: tuple[str, str], **layout: Any) -> Chart:
    """Draws curves on a logarithmic scale, with a title, and notes on the data and the seeds."""
    bounds = [point[end] for _, _, points in curves for point in points for end in ("least", "greatest")]
    known = [bound for bound in bounds if bound is not None] or [1.0]
    low, high = min(known), max(known)
    step = float(f"{(high - low) / 4:.0e}") or 1.0
    even = [step * place for place in range(int(low / step) + 1, int(high / step) + 1)]
    shown = [tick for tick in _TICKS if low <= tick <= high]
    ticks = alt.Axis(values=shown if len(shown) > 2 else even or [low], format="~g")
    y = alt.Y(title=None, scale=alt.Scale(type="log", domain=[low, high], nice=False), axis=ticks)
    seeds = len({row["seed"] for row in rows})
    notes = wrap(texts[0], _LETTERS) + [f"Means of {seeds} seeds; bands: from the best to the worst"] * (seeds > 1)
    text = f"Validation loss during training, by strategy: {', '.join(_labels(rows))}. {' '.join(notes)}"
    title = texts[1][0].upper() + texts[1][1:]
    return style.furnish(_draw(curves, looks, y, **layout), title, text, notes=notes, view=False)


def _draw(
    curves: Iterable[tuple[str, str, list[dict[str, Any]]]],
    looks: Mapping[str, Look],
    y: alt.Y,
    *,
    columns: int,
    height: int,
    x_title: str | None = None,
) -> Any:
    """Draws lines over bands, of each curve by its panel, its name and its points.

    The horizontal axes have one title and scale; or, without a title, each its own scale and the title of its panel.
    """
    rows = [{"panel": panel, "name": name, **point} for panel, name, points in curves for point in points]
    color, dash = look_channels(looks)
    x = alt.X("x:Q", title=x_title, scale=alt.Scale(zero=True, nice=False), axis=alt.Axis(tickCount=4, tickMinStep=1))
    least, mean = (y.field(name).type("quantitative") for name in ("least", "mean"))
    bands = alt.Chart().mark_area(opacity=0.15).encode(x, least, y2="greatest:Q", color=color)
    lines = alt.Chart().mark_line(strokeWidth=2).encode(x, mean, color=color, strokeDash=dash)
    width = (WIDTH - 40) // columns - 20
    layers = alt.layer(bands, lines, data=style.table(rows)).properties(width=width, height=height)
    chart = layers.facet(panel_facet(dict.fromkeys(row["panel"] for row in rows), width), columns=columns)
    return chart if x_title else chart.resolve_scale(x="independent")

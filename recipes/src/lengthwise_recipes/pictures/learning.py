"""Learning curves: validation loss against training time and against epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from textwrap import fill
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from lengthwise.checks import check_choice, value_error
from lengthwise_recipes.pictures.labels import SIZE, end_labels, label_ends
from lengthwise_recipes.pictures.style import (
    Figure,
    Look,
    blank_figure,
    in_house_style,
    look,
    readable,
    set_title,
    shades,
)

PANELS = MappingProxyType({"elapsed_seconds": "training time (s)", "epoch": "epochs"})
DASHES = ("-", "--", ":", "-.")
TOGETHER = 6  # strategies whose bands can still be told apart in one panel
WIDE, NARROW = (4, 24), (5, 19)  # columns of panels, and how many letters a title can have there
OTHERS = "#DDDDDD"


class Curve(NamedTuple):
    """The line and the band of one strategy, each [epochs]."""

    places: NDArray[np.float64]
    mean: NDArray[np.float64]
    least: NDArray[np.float64]
    greatest: NDArray[np.float64]


@in_house_style
def learning_curves(
    rows: Sequence[Mapping[str, Any]],
    *,
    title: str = "",
    loss_label: str = "validation loss (nats per symbol)",
    looks: Mapping[str, Look] = MappingProxyType({}),
) -> Figure:
    """Draws the validation loss of every strategy after each epoch, its scale logarithmic.

    Lines are means over seeds, bands reach from the best to the worst seed. Time is the mean over seeds at the end of
    the epoch.

    Args:
        rows: One for each strategy, seed and epoch, with the keys strategy, seed, epoch, elapsed_seconds and
            validation_loss; a loss of None (a run that diverged) leaves a gap.
        title: Above both panels.
        loss_label: Of the vertical axis, with its unit.
        looks: Of strategies, in place of the house's.

    Returns:
        The figure, which belongs to no window.

    Raises:
        ValueError: Where there is no row.
    """
    drawn = distinct_looks(_labels(rows)) | dict(looks)
    figure = blank_figure(height=3.9)
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, column in zip(panels, PANELS, strict=True):
        for label in _labels(rows):
            _draw(axes, label, curve(rows, label, column), drawn[label])
            _fill(axes, curve(rows, label, column), drawn[label])
        _furnish(axes)
        axes.set_xlabel(PANELS[column])
    panels[0].set_ylabel(loss_label)
    set_title(figure, "\n".join(filter(None, (title, _of_seeds(rows)))))
    label_ends(panels[-1], end_labels(panels[-1].lines))
    return figure


@in_house_style
def learning_panels(
    rows: Sequence[Mapping[str, Any]],
    *,
    against: str = "elapsed_seconds",
    title: str = "",
    loss_label: str = "validation loss (nats per symbol)",
    looks: Mapping[str, Look] = MappingProxyType({}),
) -> Figure:
    """Draws a panel for each strategy: its validation loss, beside that of the first strategy and, pale, all others.

    Lines are means over seeds, the band reaches from the best to the worst seed; all panels have the same scales.

    Args:
        rows: As of `learning_curves`.
        against: "elapsed_seconds" or "epoch".
        title: Above all; what is drawn is said after it.
        loss_label: Of the vertical axes, with its unit.
        looks: Of strategies, in place of the house's.

    Returns:
        The figure, which belongs to no window.

    Raises:
        ValueError: Where there is no row, or a column that `against` does not know.
    """
    check_choice("against", against, tuple(PANELS))
    labels = _labels(rows)
    drawn = distinct_looks(labels) | dict(looks)
    curves = {label: curve(rows, label, against) for label in labels}
    columns, letters = WIDE if len(labels) <= 3 * WIDE[0] else NARROW
    lines = -(-len(labels) // columns)
    figure = blank_figure(height=1.1 + 1.4 * lines)
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for axes, label in zip(panels.flat, labels, strict=False):
        for other in labels:
            axes.plot(curves[other].places, curves[other].mean, color=OTHERS, linewidth=0.8, zorder=1)
        _draw(axes, labels[0], curves[labels[0]], drawn[labels[0]]._replace(marker=""))
        _draw(axes, label, curves[label], drawn[label]._replace(dash="-"))
        _fill(axes, curves[label], drawn[label])
        axes.set_title(fill(label, letters), fontsize=SIZE, color=readable(drawn[label].colour))
        _furnish(axes)
    for axes in panels.flat[len(labels) :]:
        axes.remove()
    figure.supxlabel(PANELS[against], fontsize=9)
    figure.supylabel(loss_label, fontsize=9)
    text = f"in each panel one strategy, {labels[0]} beside it, the others pale"
    text = "; ".join(filter(None, (text, _of_seeds(rows))))
    set_title(figure, f"{title}\n{text}" if title else text)
    return figure


def curve(rows: Sequence[Mapping[str, Any]], label: str, column: str) -> Curve:
    """The curve of one strategy.

    >>> row = {"strategy": "random", "seed": 0, "epoch": 1, "validation_loss": 2.0}
    >>> [values.tolist() for values in curve([row, {**row, "seed": 1, "validation_loss": 4.0}], "random", "epoch")]
    [[1.0], [3.0], [2.0], [4.0]]
    """
    own = [row for row in rows if row["strategy"] == label]
    of_epoch = [[row for row in own if row["epoch"] == epoch] for epoch in sorted({row["epoch"] for row in own})]
    places = np.array([fmean(row[column] for row in group) for group in of_epoch])
    losses = [
        [np.nan if row["validation_loss"] is None else row["validation_loss"] for row in group] for group in of_epoch
    ]
    mean, least, greatest = (pick(np.array(losses), axis=1) for pick in (np.mean, np.min, np.max))
    return Curve(places, mean, least, greatest)


def distinct_looks(labels: Sequence[str]) -> dict[str, Look]:
    """The house look of each label; of two with one strategy's look, the later gets the next dash.

    >>> [drawn.dash for drawn in distinct_looks(["max-entropy:0.05", "random", "max-entropy:0.1"]).values()]
    ['-', '-', '--']
    """
    looks: dict[str, Look] = {}
    for number, label in enumerate(labels):
        drawn = look(label, number)
        relatives = sum(other.colour == drawn.colour for other in looks.values())
        looks[label] = drawn._replace(dash=DASHES[relatives % len(DASHES)])
    return looks


def shade_looks(labels: Iterable[str], colour: str) -> dict[str, Look]:
    """Looks for labels that differ in a number that rises: shades of one colour, from light to dark.

    >>> [drawn.colour for drawn in shade_looks(["Q = 1", "Q = 8"], "#E69F00").values()]
    ['#f0c566', '#7e5700']
    """
    listed = list(labels)
    return {label: Look(shade, "-", "o") for label, shade in zip(listed, shades(colour, len(listed)), strict=True)}


def _labels(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    if not rows:
        raise value_error("rows", "at least one epoch", rows, "Give the rows of a finished study.")
    return list(dict.fromkeys(row["strategy"] for row in rows))


def _of_seeds(rows: Sequence[Mapping[str, Any]]) -> str:
    """What lines and bands are of; nothing where there is one seed."""
    seeds = len({row["seed"] for row in rows})
    return f"means and range of {seeds} seeds" if seeds > 1 else ""


def _draw(axes: Axes, label: str, drawn: Curve, its: Look) -> None:
    style = {"color": its.colour, "marker": its.marker, "markersize": 3, "linewidth": 1.4, "zorder": 3}
    axes.plot(drawn.places, drawn.mean, its.dash, label=label, **style)


def _fill(axes: Axes, drawn: Curve, its: Look) -> None:
    """The band from the best to the worst seed, where there is more than one."""
    if np.any(drawn.greatest > drawn.least):
        axes.fill_between(drawn.places, drawn.least, drawn.greatest, color=its.colour, alpha=0.12, linewidth=0)


def _furnish(axes: Axes) -> None:
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
    axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major")

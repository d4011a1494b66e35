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
from lengthwise_recipes.pictures import style
from lengthwise_recipes.pictures.labels import SIZE, end_labels, label_ends
from lengthwise_recipes.pictures.style import Figure, Look

PANELS = MappingProxyType({"elapsed_seconds": "training time (s)", "epoch": "epochs"})
DASHES = ("-", "--", ":", "-.")
TOGETHER = 6  # the most strategies whose bands are legible in one panel
WIDE, NARROW = (4, 24), (5, 19)  # columns of panels, and the most letters in a line of a title
OTHERS = "#DDDDDD"


class Curve(NamedTuple):
    """The line and the band of one strategy, each [epochs]."""

    places: NDArray[np.float64]
    mean: NDArray[np.float64]
    least: NDArray[np.float64]
    greatest: NDArray[np.float64]


@style.in_house_style
def learning_curves(
    rows: Sequence[Mapping[str, Any]],
    *,
    title: str = "",
    loss_label: str = "validation loss (nats per symbol)",
    looks: Mapping[str, Look] = MappingProxyType({}),
) -> Figure:
    """Draws the validation loss of every strategy after each epoch, on a logarithmic scale.

    Lines are means over seeds, bands reach from the best to the worst seed. Time is the mean over seeds at the end of
    the epoch.

    Args:
        rows: One for each strategy, seed and epoch. Keys: strategy, seed, epoch, elapsed_seconds and validation_loss. A
            loss of None (a run diverged) leaves a gap.
        title: The title above both panels.
        loss_label: The label of the vertical axis, with its unit.
        looks: Looks of strategies, in place of those of the house.

    Raises:
        ValueError: No row.
    """
    looks_by_label = distinct_looks(_labels(rows)) | dict(looks)
    figure = style.blank_figure(height=3.9)
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, column in zip(panels, PANELS, strict=True):
        for label in _labels(rows):
            _draw(axes, label, curve(rows, label, column), looks_by_label[label])
            _fill(axes, curve(rows, label, column), looks_by_label[label])
        _furnish(axes)
        axes.set_xlabel(PANELS[column])
    panels[0].set_ylabel(loss_label)
    style.set_title(figure, "\n".join(filter(None, (title, _of_seeds(rows)))))
    label_ends(panels[-1], end_labels(panels[-1].lines))
    return figure


@style.in_house_style
def learning_panels(
    rows: Sequence[Mapping[str, Any]],
    *,
    against: str = "elapsed_seconds",
    title: str = "",
    loss_label: str = "validation loss (nats per symbol)",
    looks: Mapping[str, Look] = MappingProxyType({}),
) -> Figure:
    """Draws a panel for each strategy: its validation loss, that of the first strategy, and all others in pale lines.

    Lines are means over seeds, the band reaches from the best to the worst seed; all panels have the same scales.

    Args:
        rows: As in `learning_curves`.
        against: "elapsed_seconds" or "epoch".
        title: The title above all panels; an explanation follows it.
        loss_label, looks: As in `learning_curves`.

    Raises:
        ValueError: No row, or another value of `against`.
    """
    check_choice("against", against, tuple(PANELS))
    labels = _labels(rows)
    looks_by_label = distinct_looks(labels) | dict(looks)
    curves = {label: curve(rows, label, against) for label in labels}
    columns, letters = WIDE if len(labels) <= 3 * WIDE[0] else NARROW
    lines = -(-len(labels) // columns)
    figure = style.blank_figure(height=1.1 + 1.4 * lines)
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for axes, label in zip(panels.flat, labels, strict=False):
        for background in labels:
            axes.plot(curves[background].places, curves[background].mean, color=OTHERS, linewidth=0.8, zorder=1)
        _draw(axes, labels[0], curves[labels[0]], looks_by_label[labels[0]]._replace(marker=""))
        _draw(axes, label, curves[label], looks_by_label[label]._replace(dash="-"))
        _fill(axes, curves[label], looks_by_label[label])
        axes.set_title(fill(label, letters), fontsize=SIZE, color=style.readable(looks_by_label[label].colour))
        _furnish(axes)
    for axes in panels.flat[len(labels) :]:
        axes.remove()
    figure.supxlabel(PANELS[against], fontsize=9)
    figure.supylabel(loss_label, fontsize=9)
    text = f"each panel: one strategy, {labels[0]} for comparison, the others pale"
    text = "; ".join(filter(None, (text, _of_seeds(rows))))
    style.set_title(figure, f"{title}\n{text}" if title else text)
    return figure


def curve(rows: Sequence[Mapping[str, Any]], label: str, column: str) -> Curve:
    """Returns the curve of one strategy.

    >>> row = {"strategy": "random", "seed": 0, "epoch": 1, "validation_loss": 2.0}
    >>> [values.tolist() for values in curve([row, {**row, "seed": 1, "validation_loss": 4.0}], "random", "epoch")]
    [[1.0], [3.0], [2.0], [4.0]]
    """
    rows_of_label = [row for row in rows if row["strategy"] == label]
    epochs = sorted({row["epoch"] for row in rows_of_label})
    groups = [[row for row in rows_of_label if row["epoch"] == epoch] for epoch in epochs]
    places = np.array([fmean(row[column] for row in group) for group in groups])
    losses = [
        [np.nan if row["validation_loss"] is None else row["validation_loss"] for row in group] for group in groups
    ]
    mean, least, greatest = (pick(np.array(losses), axis=1) for pick in (np.mean, np.min, np.max))
    return Curve(places, mean, least, greatest)


def distinct_looks(labels: Sequence[str]) -> dict[str, Look]:
    """Returns the house look of each label. Labels of one colour take the next dash each.

    >>> [look.dash for look in distinct_looks(["max-entropy:0.05", "random", "max-entropy:0.1"]).values()]
    ['-', '-', '--']
    """
    looks: dict[str, Look] = {}
    for number, label in enumerate(labels):
        house_look = style.look(label, number)
        relatives = sum(relative.colour == house_look.colour for relative in looks.values())
        looks[label] = house_look._replace(dash=DASHES[relatives % len(DASHES)])
    return looks


def shade_looks(labels: Iterable[str], colour: str) -> dict[str, Look]:
    """Returns looks for labels that differ in one rising number: shades of one colour, from light to dark.

    >>> [look.colour for look in shade_looks(["Q = 1", "Q = 8"], "#E69F00").values()]
    ['#f0c566', '#7e5700']
    """
    listed = list(labels)
    return {
        label: Look(shade, "-", "o") for label, shade in zip(listed, style.shades(colour, len(listed)), strict=True)
    }


def _labels(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    if not rows:
        raise value_error("rows", "at least one epoch", rows, "Give the rows of a finished study.")
    return list(dict.fromkeys(row["strategy"] for row in rows))


def _of_seeds(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns the explanation of lines and bands; empty for one seed."""
    seeds = len({row["seed"] for row in rows})
    return f"means and range of {seeds} seeds" if seeds > 1 else ""


def _draw(axes: Axes, label: str, line: Curve, line_look: Look) -> None:
    line_style = {"color": line_look.colour, "marker": line_look.marker, "markersize": 3, "linewidth": 1.4, "zorder": 3}
    axes.plot(line.places, line.mean, line_look.dash, label=label, **line_style)


def _fill(axes: Axes, line: Curve, line_look: Look) -> None:
    """Draws the band from the best to the worst seed, if there are several."""
    if np.any(line.greatest > line.least):
        axes.fill_between(line.places, line.least, line.greatest, color=line_look.colour, alpha=0.12, linewidth=0)


def _furnish(axes: Axes) -> None:
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
    axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major")

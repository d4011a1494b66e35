"""Learning curves: validation loss against training time and against epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from lengthwise.checks import value_error
from lengthwise.plot.style import Look, blank_figure, in_house_style, look

PANELS = (("elapsed_seconds", "training time (s)"), ("epoch", "epochs"))
DASHES = ("-", "--", ":", "-.")


@in_house_style
def learning_curves(
    rows: Sequence[Mapping[str, Any]], *, title: str = "", loss_label: str = "validation loss (nats per symbol)"
) -> Figure:
    """Draws the validation loss of every strategy after each epoch, its scale logarithmic.

    Lines are means over seeds, bands reach from the best to the worst seed. Time is the mean over seeds at the end of
    the epoch.

    Args:
        rows: One for each strategy, seed and epoch, with the keys strategy, seed, epoch, elapsed_seconds and
            validation_loss; a loss of None (a run that diverged) leaves a gap.
        title: Above both panels.
        loss_label: Of the vertical axis, with its unit.

    Returns:
        The figure, which belongs to no window.

    Raises:
        ValueError: Where there is no row.
    """
    if not rows:
        raise value_error("rows", "at least one epoch", rows, "Give the rows of a finished study.")
    figure = blank_figure(height=4.0)
    looks = looks_apart(list(dict.fromkeys(row["strategy"] for row in rows)))
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (column, text) in zip(panels, PANELS, strict=True):
        for label, drawn in looks.items():
            _draw(axes, [row for row in rows if row["strategy"] == label], column, drawn)
        _furnish(axes, text)
    panels[0].set_ylabel(loss_label)
    _add_legend(figure, panels[0])
    if title:
        figure.suptitle(title, fontsize=9.5)
    return figure


def curve(
    rows: Sequence[Mapping[str, Any]], column: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The line and the band of one strategy: places, mean, least and greatest loss, each [epochs].

    >>> row = {"seed": 0, "epoch": 1, "validation_loss": 2.0}
    >>> [values.tolist() for values in curve([row, {**row, "seed": 1, "validation_loss": 4.0}], "epoch")]
    [[1.0], [3.0], [2.0], [4.0]]
    """
    epochs = sorted({row["epoch"] for row in rows})
    of_epoch = [[row for row in rows if row["epoch"] == epoch] for epoch in epochs]
    places = np.array([fmean(row[column] for row in group) for group in of_epoch])
    losses = [
        [np.nan if row["validation_loss"] is None else row["validation_loss"] for row in group] for group in of_epoch
    ]
    mean, least, greatest = (pick(np.array(losses), axis=1) for pick in (np.mean, np.min, np.max))
    return places, mean, least, greatest


def looks_apart(labels: Sequence[str]) -> dict[str, Look]:
    """The house look of each label; of two with one strategy's look, the later gets the next dash.

    >>> [drawn.dash for drawn in looks_apart(["max-entropy:0.05", "random", "max-entropy:0.1"]).values()]
    ['-', '-', '--']
    """
    looks: dict[str, Look] = {}
    for number, label in enumerate(labels):
        drawn = look(label, number)
        relatives = sum(other.colour == drawn.colour for other in looks.values())
        looks[label] = drawn._replace(dash=DASHES[relatives % len(DASHES)])
    return looks


def _draw(axes: Axes, rows: Sequence[Mapping[str, Any]], column: str, drawn: Look) -> None:
    places, mean, least, greatest = curve(rows, column)
    axes.plot(
        places, mean, drawn.dash, color=drawn.colour, marker=drawn.marker, markersize=3.5, label=rows[0]["strategy"]
    )
    if np.any(greatest > least):
        axes.fill_between(places, least, greatest, color=drawn.colour, alpha=0.15, linewidth=0)


def _add_legend(figure: Figure, axes: Axes) -> None:
    """Names the curves below the panels, in as many columns as the figure is wide enough for, up to four."""
    handles, names = axes.get_legend_handles_labels()
    for columns in range(min(4, len(names)), 0, -1):
        legend = figure.legend(handles, names, loc="outside lower center", ncols=columns)
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def _furnish(axes: Axes, text: str) -> None:
    axes.set_xlabel(text)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major")

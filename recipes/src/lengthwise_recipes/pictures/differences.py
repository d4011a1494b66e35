"""A picture of the differences of losses between strategies, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lengthwise.checks import value_error
from lengthwise_recipes.pictures import style
from lengthwise_recipes.pictures.style import Axes, Figure

ROW_HEIGHT = 0.24  # inches


class Difference(NamedTuple):
    """A mean and its interval; None where they are not known."""

    mean: float | None
    low: float | None
    high: float | None


Row = tuple[str, Sequence[Difference] | None]  # without differences it is the name of a group


@style.in_house_style
def loss_differences(
    groups: Mapping[str, Mapping[str, Sequence[Difference]]], panels: Sequence[str], *, unit: str, title: str = ""
) -> Figure:
    """Draws a row for each strategy: in each panel its difference from the strategy at the line of 0.

    Marks are means, whiskers are intervals. A mark is filled if its interval excludes 0. A strategy without a mean (a
    run diverged) has an empty row; a panel without any mean says so. All panels have one scale.

    Args:
        groups: Title of a group of rows, to the labels of its rows, each with one difference for each panel.
        panels: Titles of the panels.
        unit: The axis label below all panels.
        title: The title above all panels.

    Raises:
        ValueError: No row, or a row without a difference for each panel.
    """
    # From the top down the name of each group, then its rows.
    rows: list[Row] = [row for group, shown in groups.items() for row in ((group, None), *shown.items())]
    counts = [len(differences) for _, differences in rows if differences is not None]
    if not counts or set(counts) != {len(panels)}:
        remedy = "Give one difference for each panel."
        raise value_error("groups", f"rows of {len(panels)} differences, at least one", counts, remedy)
    figure = style.blank_figure(height=1.1 + ROW_HEIGHT * len(rows))
    panel_axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for number, (axes, panel) in enumerate(zip(panel_axes, panels, strict=True)):
        for place, (label, differences) in enumerate(rows):
            if differences is not None:
                _draw_whisker(axes, place, label, differences[number])
        if all(differences[number].mean is None for _, differences in rows if differences is not None):
            axes.text(0.5, 0.5, "not known", ha="center", color=style.FAINT, transform=axes.transAxes)
        axes.axvline(0.0, color=style.FAINT, linewidth=0.8, zorder=0)
        axes.set_title(panel)
        axes.grid(True, axis="x")
        axes.tick_params(axis="y", length=0)
    figure.supxlabel(unit, fontsize=9)
    _name_rows(panel_axes[0], rows)
    style.set_title(figure, title)
    return figure


def _name_rows(axes: Axes, rows: Sequence[Row]) -> None:
    axes.set_yticks(range(len(rows)), [label for label, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.7)
    for text, (_, differences) in zip(axes.get_yticklabels(), rows, strict=True):
        text.set_fontweight("bold" if differences is None else "normal")


def _draw_whisker(axes: Axes, place: int, label: str, difference: Difference) -> None:
    if difference.mean is None:
        return
    look = style.look(label, place)
    filled = False
    if difference.low is not None and difference.high is not None:
        axes.plot([difference.low, difference.high], [place, place], color=look.colour, linewidth=1.4)
        filled = difference.low > 0.0 or difference.high < 0.0
    face = look.colour if filled else "white"
    axes.plot(difference.mean, place, look.marker, color=look.colour, markerfacecolor=face, markersize=5)

"""Epoch time against the number of buckets (Khomenko et al. 2016, figure 4), and the speed-up with its bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import value_error
from lengthwise_recipes.pictures import style
from lengthwise_recipes.pictures.labels import end_labels, label_ends
from lengthwise_recipes.pictures.style import Axes, Figure

PROCESSES = "#7A4FB5"  # numbers of processes have shades of this colour
RULE = "of series that all have the same numbers of buckets, at least one"
BOUND = "by padded frames"


@style.in_house_style
def speed_up_curves(
    seconds: Mapping[str, Mapping[int, Sequence[float]]], bounds: Mapping[int, float], *, title: str = ""
) -> Figure:
    """Draws epoch time, and the speed-up over the fewest buckets of the same series.

    Lines are means over seeds, bands reach from the least to the greatest seed. The dashed line is the bound of the
    lengths.

    Args:
        seconds: Name of a series, such as "2 processes", to seconds of an epoch for each seed, by the number of
            buckets. All series have the same numbers of buckets and equally many seeds.
        bounds: The greatest possible speed-up, by the number of buckets.
        title: The title above both panels.

    Raises:
        ValueError: No number of buckets, one without a bound, or one that is missing in a series.

    References:
        Khomenko et al. 2016, figure 4, for the left panel; the paper has bars.
    """
    buckets = _shared_buckets(seconds)
    if set(buckets) - set(bounds):
        remedy = "Give a bound for each number of buckets."
        raise value_error("bounds", f"of buckets {buckets}", sorted(bounds), remedy)
    times = np.array([[series[count] for count in buckets] for series in seconds.values()], float)
    colours = dict(zip(seconds, style.shades(PROCESSES, len(seconds)), strict=True))
    figure = style.blank_figure(height=3.6)
    left, right = figure.subplots(1, 2)
    for axes, values in ((left, times), (right, times[:, :1] / times)):
        _draw_series(axes, buckets, values, colours)
    left.set_title("seconds per epoch")
    right.set_title(f"speed-up over Q = {buckets[0]}")
    limits = [bounds[count] for count in buckets]
    right.plot(buckets, limits, color=style.INK, linestyle=(0, (5, 3)), linewidth=1.2, label=BOUND)
    style.set_title(figure, title)
    for axes in (left, right):
        axes.set_ylim(0.0)
        label_ends(axes, end_labels(axes.lines))
    return figure


def _shared_buckets(seconds: Mapping[str, Mapping[int, Sequence[float]]]) -> list[int]:
    """Returns the numbers of buckets of every series, rising."""
    listed = [sorted(series) for series in seconds.values()]
    if not listed or not listed[0] or any(buckets != listed[0] for buckets in listed):
        raise value_error("seconds", RULE, listed, "Give seconds for each number of buckets in each series.")
    return listed[0]


def _draw_series(axes: Axes, buckets: Sequence[int], values: NDArray[np.float64], colours: Mapping[str, str]) -> None:
    """Draws a line and a band for each series of `values` [series, buckets, seeds]."""
    for (name, colour), series in zip(colours.items(), values, strict=True):
        axes.plot(buckets, series.mean(axis=1), "o-", color=colour, markersize=4, label=name)
        axes.fill_between(buckets, series.min(axis=1), series.max(axis=1), color=colour, alpha=0.15, linewidth=0)
    axes.set_xticks(buckets)
    axes.set_xlabel("buckets Q")
    axes.grid(True, axis="y")

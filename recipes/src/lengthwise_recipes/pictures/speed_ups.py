"""Epoch time against the number of buckets (Khomenko et al. 2016, figure 4), and the speed-up beside what it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import value_error
from lengthwise.plot import style
from lengthwise.plot.style import Axes, Figure

GROUP = 0.8  # of the place of a number of buckets: what the bars of all series together take
RULE = "of series that all have the same numbers of buckets, at least one"


@style.in_house_style
def speed_up_bars(
    seconds: Mapping[str, Mapping[int, Sequence[float]]], bounds: Mapping[int, float], *, title: str = ""
) -> Figure:
    """Draws mean epoch time, and how many times shorter it is than with the fewest buckets of the same series.

    Bars are means over seeds, whiskers reach from the least to the greatest seed; marks show the most that the lengths
    allow.

    Args:
        seconds: Name of a series, such as "2 processes", to mean seconds of an epoch under each seed, by the number of
            buckets; the same numbers of buckets in each, and as many seeds for each.
        bounds: The greatest speed-up there can be, by the number of buckets.
        title: Above both panels.

    Returns:
        The figure, which belongs to no window.

    Raises:
        ValueError: No number of buckets, one without its bound, or one that not all series have.

    References:
        Khomenko et al. 2016, figure 4, for the left panel.
    """
    buckets = _shared_buckets(seconds)
    if set(buckets) - set(bounds):
        remedy = "Give a bound for each number of buckets."
        raise value_error("bounds", f"of buckets {buckets}", sorted(bounds), remedy)
    times = np.array([[series[count] for count in buckets] for series in seconds.values()], float)
    figure = style.blank_figure(height=3.8)
    left, right = figure.subplots(1, 2)
    _draw_bars(left, buckets, times, list(seconds))
    left.set_ylabel("seconds per epoch")
    _draw_bars(right, buckets, times[:, :1] / times, list(seconds))
    _draw_limits(right, [bounds[count] for count in buckets])
    right.set_ylabel(f"speed-up over Q = {buckets[0]}")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=len(seconds) + 1)
    if title:
        figure.suptitle(title, fontsize=9.5)
    return figure


def _shared_buckets(seconds: Mapping[str, Mapping[int, Sequence[float]]]) -> list[int]:
    """The numbers of buckets of every series, rising."""
    listed = [sorted(series) for series in seconds.values()]
    if not listed or not listed[0] or any(buckets != listed[0] for buckets in listed):
        raise value_error("seconds", RULE, listed, "Give seconds for each number of buckets in each series.")
    return listed[0]


def _draw_bars(axes: Axes, buckets: Sequence[int], values: NDArray[np.float64], names: Sequence[str]) -> None:
    """One bar for each row of each series of `values` [series, buckets, seeds]."""
    width = GROUP / len(names)
    places = np.arange(len(buckets))
    for number, (name, series) in enumerate(zip(names, values, strict=True)):
        means = series.mean(axis=1)
        reach = np.abs(np.stack([series.min(axis=1), series.max(axis=1)]) - means)
        left = places + width * (number - (len(names) - 1) / 2)
        colour = style.look(name, number).colour
        axes.bar(left, means, width, yerr=reach, label=name, color=colour, ecolor=style.INK, capsize=3)
    axes.set_xticks(places, [str(count) for count in buckets])
    axes.set_xlabel("buckets Q")
    axes.grid(True, axis="y")


def _draw_limits(axes: Axes, limits: Sequence[float]) -> None:
    """A mark across the bars of each number of buckets."""
    left = np.arange(len(limits)) - GROUP / 2
    axes.hlines(limits, left, left + GROUP, colors=style.INK, linewidth=2, label="most that the lengths allow")

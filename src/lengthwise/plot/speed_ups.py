"""Epoch time against the number of buckets (Khomenko et al. 2016, figure 4), and the speed-up beside what it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise._checks import value_error
from lengthwise.plot import style
from lengthwise.plot.style import Axes, Figure


@style.in_house_style
def speed_up_bars(seconds: Mapping[int, Sequence[float]], bounds: Mapping[int, float], *, title: str = "") -> Figure:
    """Draws mean epoch time, and how many times shorter it is than with the fewest buckets.

    Bars are means over seeds, whiskers reach from the least to the greatest seed; marks show the most that the lengths
    allow.

    Args:
        seconds: Mean seconds of an epoch under each seed, by the number of buckets; as many seeds for each.
        bounds: The greatest speed-up there can be, by the number of buckets.
        title: Above both panels.

    Returns:
        The figure, which belongs to no window.

    Raises:
        ValueError: No number of buckets, or one without its bound.

    References:
        Khomenko et al. 2016, figure 4, for the left panel.
    """
    if not seconds or set(seconds) - set(bounds):
        remedy = "Give seconds, and a bound for each of their numbers of buckets."
        raise value_error("bounds", f"of buckets {sorted(seconds)}, at least one", sorted(bounds), remedy)
    buckets = sorted(seconds)
    times = np.array([seconds[count] for count in buckets], float)
    figure = style.blank_figure(height=3.4)
    left, right = figure.subplots(1, 2)
    _draw_bars(left, buckets, times, style.PADDING)
    left.set_ylabel("seconds per epoch")
    _draw_bars(right, buckets, times[:1] / times, style.LENGTHS)
    limits = [bounds[count] for count in buckets]
    mark: dict[str, Any] = {"color": style.EDGES, "markersize": 22, "markeredgewidth": 2}
    right.plot(range(len(buckets)), limits, "_", label="most that the lengths allow", **mark)
    right.set_ylim(top=1.2 * max(limits))
    right.legend(loc="upper left", markerscale=0.6)
    right.set_ylabel(f"speed-up over Q = {buckets[0]}")
    if title:
        figure.suptitle(title, fontsize=9.5)
    return figure


def _draw_bars(axes: Axes, buckets: Sequence[int], values: NDArray[np.float64], colour: str) -> None:
    """One bar for each row of `values` [buckets, seeds]."""
    means = values.mean(axis=1)
    reach = np.abs(np.stack([values.min(axis=1), values.max(axis=1)]) - means)
    places = np.arange(len(buckets))
    axes.bar(places, means, yerr=reach, color=colour, ecolor=style.INK, capsize=3, width=0.7)
    axes.set_xticks(places, [str(count) for count in buckets])
    axes.set_xlabel("buckets Q")
    axes.grid(True, axis="y")

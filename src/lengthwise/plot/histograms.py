"""Buckets on the lengths they are made for (Khomenko et al. 2016, figure 2), and what they pad."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import type_error, value_error
from lengthwise.choices.buckets import padded_frames
from lengthwise.lengths import as_lengths
from lengthwise.plot import style
from lengthwise.plot.labels import SIZE
from lengthwise.plot.style import Axes, Figure, MaxNLocator

_BINS = 100  # bars at most
_FAR = 6  # times the length that 99 % do not pass: an axis to such a longest one would show nothing else
_NARROW = 0.03  # of the axis: the padding of a narrower bucket is not written out


@style.in_house_style
def bucket_histogram(lengths: ArrayLike, edges: ArrayLike, *, unit: str = "frames") -> Figure:
    """Draws the histogram of the lengths with their buckets, and below it the frames and what each bucket pads.

    Below stands how many sequences are at least as long as each length, so that the area under the curve is all frames,
    and the area between it and the steps of the buckets is their padding: every sequence padded to its bucket's edge.

    Args:
        lengths: [n].
        edges: The longest length of each bucket, rising, as `lw.optimal_edges` gives them.
        unit: Of the lengths.

    Raises:
        ValueError: Lengths not [n] or none, edges that do not rise, or a length beyond the last edge.
        TypeError: Edges that are not whole.

    References:
        Khomenko et al. 2016, figure 2, for the upper panel.
    """
    values, counts = np.unique(_some_lengths(lengths), return_counts=True)
    borders = _check_edges(edges, int(values[-1]))
    padding = bucket_padding(values, counts, borders)
    computed = padded_frames(np.asarray(lengths), borders)
    figure = style.blank_figure(height=5.2)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.0, 1.2))
    end = _end(values, counts, borders)
    _draw_histogram(upper, values, counts, unit, end)
    _draw_padding(lower, values, counts, borders, padding / computed)
    _draw_edges(upper, borders)
    upper.set_title(_title(borders, padding.sum() / computed), pad=16)
    lower.xaxis.set_major_formatter("{x:,.0f}")
    beyond = f"; the longest, {values[-1]:,} {unit}, lies beyond the axis" if end < values[-1] else ""
    lower.set_xlabel(f"length ({unit}){beyond}")
    return figure


def bucket_padding(values: NDArray[np.int64], counts: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """The frames of padding in each bucket when its sequences are padded to its edge: [buckets].

    >>> bucket_padding(np.array([1, 2, 9, 10]), np.array([1, 1, 1, 1]), np.array([2, 10]))
    array([1, 1])
    """
    bucket = np.searchsorted(edges, values)
    padding = np.zeros(len(edges), np.int64)
    # Not `padding[bucket] +=`, which would count only one value of each bucket.
    np.add.at(padding, bucket, counts * (edges[bucket] - values))
    return padding


def _end(values: NDArray[np.int64], counts: NDArray[np.int64], edges: NDArray[np.int64]) -> int:
    """Where the axis of lengths ends: at the longest; where few are far longer than all others, below them."""
    reached = np.cumsum(counts)
    usual = int(values[np.searchsorted(reached, 0.99 * reached[-1])])
    if values[-1] <= _FAR * usual:
        return int(values[-1])
    # With room behind the last edge that is shown, for its number.
    return int(1.1 * max([usual, *edges[edges <= _FAR * usual].tolist()])) + 1


def _draw_histogram(axes: Axes, values: NDArray[np.int64], counts: NDArray[np.int64], unit: str, end: int) -> None:
    width = -(-(end - int(values[0]) + 1) // _BINS)
    # Whole lengths in every bar, the same number in each, so that no bar is high by rounding alone.
    borders = np.arange(int(values[0]), end + width + 1, width) - 0.5
    heights, _ = np.histogram(values, borders, weights=counts)
    axes.stairs(heights, borders, fill=True, color=style.LENGTHS)
    style.set_limits(axes, right=float(borders[-1]) * 1.01, top=float(heights.max()) * 1.05)
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylabel("sequences" if width == 1 else f"sequences in {width} {unit}")


def _draw_padding(
    axes: Axes,
    values: NDArray[np.int64],
    counts: NDArray[np.int64],
    edges: NDArray[np.int64],
    shares: NDArray[np.float64],
) -> None:
    places = np.unique(np.concatenate([[0], values, edges]))
    starts = np.append(0, edges[:-1])
    # Lengths are whole: those of at least t are those longer than t - 1.
    needed = _longer_than(values, counts, places[1:] - 1)
    of_bucket = _longer_than(values, counts, starts)
    # Between 10 and 20, a bucket with these borders computes a frame for every sequence longer than 10.
    computed = of_bucket[np.searchsorted(edges, places[1:])]
    axes.stairs(needed, places, fill=True, color=style.LENGTHS)
    axes.stairs(computed, places, baseline=needed, fill=True, color=style.PADDING)
    axes.vlines(edges, 0.0, of_bucket, color=style.INK, linewidth=0.9)
    style.set_limits(axes, right=axes.get_xlim()[1], top=float(counts.sum()) * 1.1)
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylabel("sequences at least this long")
    right = axes.get_xlim()[1]
    told = (edges - starts > _NARROW * right) & (shares > 0) & (starts < right)
    what = " padding"  # said of the first alone
    # From its left border on: a text that is wider than its bucket runs over the next one, which is lower.
    for start, height, share in zip(starts[told], of_bucket[told], shares[told], strict=True):
        _write(axes, style.percent(share) + what, float(start), float(height), ha="left", right=4)
        what = ""
    ground = {"facecolor": style.LENGTHS, "edgecolor": "none", "pad": 1.0}  # no edge runs through the word
    axes.annotate("sequences", (0.0, 0.0), (6, 5), textcoords="offset points", fontsize=SIZE, bbox=ground)


def _draw_edges(axes: Axes, edges: NDArray[np.int64]) -> None:
    """Marks the edges, and writes above each how long it is where there is room; the last always."""
    left, (right, top) = np.inf, (axes.get_xlim()[1], axes.get_ylim()[1])
    axes.vlines(edges, 0.0, top, color=style.INK, linewidth=0.9)
    # From the longest down: the last edge is always written, and a shorter one only where it does not touch.
    for edge in edges[edges <= right][::-1]:
        if left - edge > 1.8 * _NARROW * right:
            _write(axes, f"{edge:,}", float(edge), top)
            left = edge


def _write(axes: Axes, text: str, across: float, above: float, *, ha: str = "center", right: int = 0) -> None:
    axes.annotate(text, (across, above), (right, 2), textcoords="offset points", ha=ha, va="bottom", fontsize=SIZE)


def _longer_than(values: NDArray[np.int64], counts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many sequences are longer than each of `lengths`."""
    reached = np.append(0, np.cumsum(counts))
    return reached[-1] - reached[np.searchsorted(values, lengths, side="right")]


def _title(edges: NDArray[np.int64], share: float) -> str:
    noun = "bucket" if len(edges) == 1 else "buckets"
    return f"{len(edges)} {noun}: {style.percent(share)} of what is computed is padding"


def _some_lengths(lengths: ArrayLike) -> NDArray[np.int64]:
    array = as_lengths(lengths)
    if array.ndim != 1 or not len(array):
        remedy = "Give at least one sequence, and one length each: lengths[:, 0], for example."
        raise value_error("lengths", "of shape [n], n at least 1", array.shape, remedy)
    return array


def _check_edges(edges: ArrayLike, longest: int) -> NDArray[np.int64]:
    array, remedy = np.asarray(edges), "Give the longest length of each bucket, rising."
    if array.ndim != 1:
        raise value_error("edges", "of shape [buckets]", array.shape, remedy)
    if array.size and array.dtype.kind not in "iu":
        raise type_error("edges", "whole numbers", array.tolist(), remedy)
    if not array.size or np.any(array[1:] <= array[:-1]):
        raise value_error("edges", "rising and not empty", array.tolist(), remedy)
    if array[-1] < longest:
        rule = f"no shorter than the longest sequence, {longest}"
        raise value_error("edges", rule, array.tolist(), "Add a longer edge.")
    return array.astype(np.int64)

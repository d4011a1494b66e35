"""Pen strokes as points: lengths, resampling, and the three columns that the network reads.

A stroke is float64 [K, 2] = x, y, from pen down to pen up. A sample is float32 [T, 3] = dx, dy, pen_up, where pen_up
is 1 on the last point of a stroke and the first row starts at the sample's own origin, 0, 0.

By hand, since we know of no package for pen strokes: those for handwriting read images. Interpolation is NumPy's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Stroke = NDArray[np.float64]
Sample = NDArray[np.float32]

FARTHEST = 1e15  # no pen goes there: below it paths do not overflow, and whole units can still be told apart


def within_reach(points: NDArray) -> NDArray[np.bool_]:
    """Whether each of the points [T, 2] has finite coordinates less than `FARTHEST` from 0.

    >>> within_reach(np.array([[1.0, np.nan], [3.0, -4.0]])).tolist()
    [False, True]
    """
    near = np.abs(points.astype(np.float64)) < FARTHEST
    return near[:, 0] & near[:, 1]


def resample(stroke: Stroke, step: float, *, pace: NDArray[np.float64] | None = None) -> Stroke:
    """Places points along a stroke at equal distances of path.

    The number of points is 1 + round(path / step), at least two unless the stroke is a dot. First and last point stay
    where they are.

    Args:
        stroke: [K, 2], any unit.
        step: Distance between points, in the stroke's unit.
        pace: Positive speeds, any shape [P]: read along the stroke, distances between points are proportional to them.

    Returns:
        [points, 2].

    >>> resample(np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0]]), 2.0).tolist()
    [[0.0, 0.0], [2.0, 0.0], [4.0, 0.0], [4.0, 2.0], [4.0, 4.0]]
    """
    path = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(stroke, axis=0).T))])
    if path[-1] == 0.0:
        return stroke[:1].copy()
    intervals = max(1, round(path[-1] / step))
    places = np.linspace(0.0, path[-1], intervals + 1)
    if pace is not None:
        speeds = np.interp(np.linspace(0.0, 1.0, intervals), np.linspace(0.0, 1.0, len(pace)), pace)
        places[1:] = np.cumsum(speeds) * (path[-1] / speeds.sum())
    return np.column_stack([np.interp(places, path, stroke[:, 0]), np.interp(places, path, stroke[:, 1])])


def as_sample(strokes: Sequence[Stroke], *, unit: float) -> Sample:
    """Joins strokes to one sample, its differences measured in `unit`.

    >>> as_sample([np.array([[5.0, 5.0], [7.0, 5.0]]), np.array([[9.0, 1.0]])], unit=2.0).tolist()
    [[0.0, 0.0, 0.0], [1.0, 0.0, 1.0], [1.0, -2.0, 1.0]]
    """
    points = np.concatenate(strokes)
    sample = np.zeros((len(points), 3), np.float32)
    sample[1:, :2] = np.diff(points, axis=0) / unit
    sample[np.cumsum([len(stroke) for stroke in strokes]) - 1, 2] = 1.0
    return sample


def split_strokes(differences: NDArray[np.floating], pen_up: NDArray[np.integer]) -> list[Stroke]:
    """Cuts a path of differences [T, 2] into strokes, after every point where `pen_up` [T] is not 0.

    >>> path = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 3.0]])
    >>> [stroke.tolist() for stroke in split_strokes(path, np.array([0, 1, 1]))]
    [[[1.0, 1.0], [3.0, 1.0]], [[3.0, 4.0]]]
    """
    points = np.cumsum(differences, axis=0, dtype=np.float64)
    pieces = np.split(points, np.flatnonzero(pen_up) + 1)
    return [piece for piece in pieces if len(piece)]


def height(strokes: Sequence[Stroke]) -> float:
    """The larger of 1e-6 and the extent in y; for flat ink (a dash) a third of its extent in x.

    >>> height([np.array([[0.0, 0.0], [9.0, 6.0]])]), height([np.array([[0.0, 0.0], [9.0, 0.0]])])
    (6.0, 3.0)
    """
    width, tall = np.ptp(np.concatenate(strokes), axis=0)
    return float(max(tall, width / 3 if tall < width / 9 else 0.0, 1e-6))

"""Pen strokes as points: lengths, resampling, and the three columns that the network reads.

A stroke is float64 [K, 2] = x, y, from pen down to pen up. A sample is float32 [T, 3] = dx, dy, pen_up. Its pen_up is
1 on the last point of a stroke, and its first row starts at the origin 0, 0.

By hand, since we know no package for pen strokes: those for handwriting read images. Interpolation is NumPy's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Stroke = NDArray[np.float64]
Sample = NDArray[np.float32]

FARTHEST = 1e15  # beyond any pen; below it paths do not overflow, and float64 still has whole units


def within_reach(points: NDArray[Any]) -> NDArray[np.bool_]:
    """Returns True for each of the points [T, 2] with finite coordinates less than `FARTHEST` from 0.

    >>> within_reach(np.array([[1.0, np.nan], [3.0, -4.0]])).tolist()
    [False, True]
    """
    coordinate_fits = np.abs(points.astype(np.float64)) < FARTHEST
    return coordinate_fits[:, 0] & coordinate_fits[:, 1]


def resample(stroke: Stroke, step: float, *, pace: NDArray[np.float64] | None = None) -> Stroke:
    """Places points along a stroke at equal distances along its path.

    The number of points is 1 + round(path / step), at least two unless the stroke is a dot. First and last point do
    not move.

    Args:
        stroke: [K, 2], any unit.
        step: Distance between points, in the stroke's unit.
        pace: Positive speeds along the stroke, [P]: distances between points are proportional to them.

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
    """Returns the extent in y; for flat ink (a dash), a third of its extent in x; at least 1e-6.

    >>> height([np.array([[0.0, 0.0], [9.0, 6.0]])]), height([np.array([[0.0, 0.0], [9.0, 0.0]])])
    (6.0, 3.0)
    """
    width, tall = np.ptp(np.concatenate(strokes), axis=0)
    return float(max(tall, width / 3 if tall < width / 9 else 0.0, 1e-6))

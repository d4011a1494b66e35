"""What NumPy and C libraries round in ways of their own, the same to the last bit on every platform.

A last bit may decide about a plan: whether one more sequence waits in a pool, for example. So the planner does not use
`np.log` and its like. Nor does it use products of vectors, whose order of addition depends on processor and threads. A
test reads the source and checks it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels


def log(value: float) -> float:
    """The natural logarithm of a finite number from 0 on; of 0, minus infinity.

    >>> log(1.0), log(2.0)
    (0.0, 0.6931471805599453)
    """
    return float(logs(np.array([float(value)]))[0])


def exp(value: float) -> float:
    """The power of e to a number; nothing below -708, and infinity above 709.

    >>> exp(0.0), round(exp(1.0), 12)
    (1.0, 2.718281828459)
    """
    return float(exps(np.array([float(value)]))[0])


def logs(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """The natural logarithms of finite numbers from 0 on: [n]."""
    return _apply(_kernels.logs, values)


def exps(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """The power of e to each of `values`: [n]."""
    return _apply(_kernels.exps, values)


def _apply(kernel: Any, values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    out = np.empty(len(values))
    kernel(values, out)
    return out


def cosines(turns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The cosines of angles in turns, from 0 to 1: [n].

    >>> cosines(np.array([0.0, 0.25, 0.5, 1.0]))
    array([ 1.,  0., -1.,  1.])
    """
    # An eighth of a turn, from either axis, stands for all: each difference here is exact.
    half = np.minimum(turns, 1.0 - turns)
    quarter = np.minimum(half, 0.5 - half)
    by_sine = quarter > 0.125
    angle = 2.0 * np.pi * np.where(by_sine, 0.25 - quarter, quarter)
    square = angle * angle
    sine = cosine = np.ones_like(square)
    for term in range(9, 0, -1):  # Horner: cos t = 1 - t^2 / 2 (1 - t^2 / 12 (1 - ...)); less than 1e-17 is left
        cosine = 1.0 - square / (2 * term * (2 * term - 1)) * cosine
        sine = 1.0 - square / (2 * term * (2 * term + 1)) * sine
    return np.where(half > 0.25, -1.0, 1.0) * np.where(by_sine, angle * sine, cosine)


def dot(left: NDArray[Any], right: NDArray[Any]) -> float:
    """The sum of left[i] x right[i], added one after the other.

    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.add.accumulate(left * right)[-1]) if len(left) else 0.0

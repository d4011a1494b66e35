"""Logarithms, exponentials and cosines that are the same to the last bit on every platform.

One different bit can change a plan. The last bit of `np.log` and `np.exp` depends on AVX-512. In C libraries it depends
on fused multiply-add. So the planner uses these functions, and a test refuses others in its source. The test also
refuses products of vectors: their order of addition depends on the processor.

These functions only add, multiply, divide and shift exponents. IEEE 754 fixes the last bit of each such operation.
Errors of logarithms and exponentials are below four units in the last place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROOT = 0.7071067811865476  # the root of 1/2
_LN2 = 0.6931471805599453
_LN2_HIGH = 6.93147180369123816490e-01  # the first 32 bits of log 2: k times them is exact
_LN2_LOW = 1.90821492927058770002e-10  # the rest of log 2
_PER_LN2 = 1.4426950408889634
_LEAST_NORMAL = 2.0**-1022
_MANTISSA, _HALF = np.int64(2**52 - 1), np.int64(1022 << 52)  # bits of a double: its mantissa, the exponent of 1/2
_LEAST, _MOST = -708.0, 709.0  # exp is 0 below _LEAST, and infinite above _MOST
# 1 / 13!, 1 / 12!, ..., 1 / 3!
_INVERSE_FACTORIALS = [
    *(1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0),
    *(1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0),
]


def log(value: float) -> float:
    """Returns the natural logarithm of a finite number of at least 0; minus infinity for 0.

    >>> log(1.0), log(2.0)
    (0.0, 0.6931471805599453)
    """
    return float(logs(np.array([float(value)]))[0])


def exp(value: float) -> float:
    """Returns the exponential of a number; 0 below -708, and infinity above 709.

    >>> exp(0.0), round(exp(1.0), 12)
    (1.0, 2.718281828459)
    """
    return float(exps(np.array([float(value)]))[0])


def logs(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Returns the natural logarithms of finite numbers of at least 0, and NaN for others: [n]."""
    numbers = np.ascontiguousarray(values, np.float64)
    normal = (numbers >= _LEAST_NORMAL) & (numbers < np.inf)
    if not normal.all():
        return _special_logs(numbers, normal)
    # number = m 2^k with m in (sqrt(1/2), sqrt(2)]: a double stores the bits of k, then those of m.
    bits = numbers.view(np.int64)
    mantissas = (bits & _MANTISSA | _HALF).view(np.float64)
    small = mantissas <= _ROOT
    mantissas *= 1.0 + small
    exponents = (bits >> 52) - 1022 - small
    # log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172: eleven terms leave less than 1e-17.
    s = (mantissas - 1.0) / (mantissas + 1.0)
    square = s * s
    # Horner: atanh(s) = s (1 + s^2 / 3 + s^4 / 5 + ... + s^20 / 21). Work in place: the numbers stay in the cache.
    series = square * (1.0 / 21.0)
    series += 1.0 / 19.0
    for term in range(17, 0, -2):
        series *= square
        series += 1.0 / term
    s *= 2.0
    s *= series
    return exponents * _LN2 + s


def _special_logs(numbers: NDArray[np.float64], normal: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Returns the logarithms of numbers that may be 0, negative, not finite, or below the least normal double."""
    tiny = (numbers > 0.0) & (numbers < _LEAST_NORMAL)
    scaled = np.where(tiny, numbers, 2.0**-54) * 2.0**54  # subnormal numbers become normal, all others become 1
    logarithms = logs(np.where(normal, numbers, scaled)) - tiny * (54 * _LN2)
    return np.where(normal | tiny, logarithms, np.where(numbers == 0.0, -np.inf, np.nan))


def exps(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Returns the exponentials of `values`: [n]."""
    clipped = np.clip(values, _LEAST, _MOST)
    # value = k log 2 + r with |r| <= log(2) / 2
    exponents = np.floor(clipped * _PER_LN2 + 0.5)
    remainder = (clipped - exponents * _LN2_HIGH) - exponents * _LN2_LOW
    # exp(r) - 1: thirteen terms leave a relative error below 1e-17.
    series = np.zeros_like(remainder)
    for term in _INVERSE_FACTORIALS:
        series = series * remainder + term
    series = (series * remainder + 0.5) * remainder * remainder + remainder
    powers = np.ldexp(1.0 + series, exponents.astype(np.int32))
    return np.where(values < _LEAST, 0.0, np.where(values > _MOST, np.inf, powers))


def cosines(turns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the cosines of angles in turns, from 0 to 1: [n].

    >>> cosines(np.array([0.0, 0.25, 0.5, 1.0]))
    array([ 1.,  0., -1.,  1.])
    """
    # Measure each angle from the nearest axis: at most an eighth of a turn. The differences that count are exact.
    half = np.minimum(turns, 1.0 - turns)
    quarter = np.minimum(half, 0.5 - half)
    by_sine = quarter > 0.125
    angle = 2.0 * np.pi * np.where(by_sine, 0.25 - quarter, quarter)
    square = angle * angle
    sine = cosine = np.ones_like(square)
    for term in range(9, 0, -1):  # Horner: cos t = 1 - t^2 / 2 (1 - t^2 / 12 (1 - ...)); the error is below 1e-17
        cosine = 1.0 - square / (2 * term * (2 * term - 1)) * cosine
        sine = 1.0 - square / (2 * term * (2 * term + 1)) * sine
    return np.where(half > 0.25, -1.0, 1.0) * np.where(by_sine, angle * sine, cosine)

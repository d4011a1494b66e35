"""Logarithms and exponentials by additions, products, quotients and shifts of the exponent alone.

IEEE 754 says of these what the last bit is, so every platform agrees. It does not say so of `math.log` and its like:
those of NumPy differ between processors with and without AVX-512, and those of C libraries with and without fused
multiplication. A plan that is found by them may be another one elsewhere. No product and sum are
fused: NumPy and Numba do not, unless told to.

Errors here are below four units in the last place.
"""

from __future__ import annotations

import math

import numpy as np

from lengthwise._compile import kernel

_ROOT = 0.7071067811865476  # of 1/2
_LN2 = 0.6931471805599453
_LN2_HIGH = 6.93147180369123816490e-01  # of 32 bits, so that k times it is exact
_LN2_LOW = 1.90821492927058770002e-10  # the rest
_PER_LN2 = 1.4426950408889634
_LEAST, _MOST = -708.0, 709.0  # what is below is nothing, and what is above infinite


@kernel
def split(value):
    """Finds m from 1/2 to 1 and k, with value = m 2^k above 0: `math.frexp`, which as machine code is a slow call."""
    less = 0
    if value < 2.2250738585072014e-308:  # subnormal: its exponent is that of its leading bit
        value, less = value * 2.0**54, 54
    bits = np.float64(value).view(np.int64)
    mantissa = np.int64((bits & (2**52 - 1)) | (1022 << 52)).view(np.float64)
    return mantissa, (bits >> 52) - 1022 - less


@kernel
def scale(value, exponent):
    """Finds value x 2^exponent, of exponents from -1022 to 1023: `math.ldexp`, which as machine code is a slow call."""
    return value * np.int64((exponent + 1023) << 52).view(np.float64)


@kernel
def log(value):
    """The natural logarithm of a finite number from 0 on; of 0, minus infinity."""
    if not 0.0 < value < math.inf:  # `split` would take infinity for a number
        return -math.inf if value == 0.0 else math.nan
    # value = m 2^k with m in (sqrt(1/2), sqrt(2)]; see `series_of_log`.
    mantissa, exponent = split(value)
    if mantissa <= _ROOT:
        mantissa, exponent = mantissa * 2.0, exponent - 1
    return exponent * _LN2 + series_of_log(mantissa)


@kernel
def series_of_log(mantissa):
    """The logarithm of m in (sqrt(1/2), sqrt(2)], also of an array.

    log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172: eleven terms leave less than 1e-17.
    """
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    # Horner: atanh(s) = s (1 + s^2 / 3 + s^4 / 5 + ... + s^20 / 21). In a loop, each term would be divided anew.
    series = square * (1.0 / 21.0) + 1.0 / 19.0
    series = series * square + 1.0 / 17.0
    series = series * square + 1.0 / 15.0
    series = series * square + 1.0 / 13.0
    series = series * square + 1.0 / 11.0
    series = series * square + 1.0 / 9.0
    series = series * square + 1.0 / 7.0
    series = series * square + 1.0 / 5.0
    series = series * square + 1.0 / 3.0
    series = series * square + 1.0
    return 2.0 * s * series


@kernel
def exp(value):
    """The power of e to a number; nothing below -708, and infinity above 709."""
    if value < _LEAST:
        return 0.0
    if value > _MOST:
        return math.inf
    # value = k log 2 + r with |r| <= log(2) / 2
    halves = math.floor(value * _PER_LN2 + 0.5)
    rest = (value - halves * _LN2_HIGH) - halves * _LN2_LOW
    return scale(1.0 + series_of_exp(rest), int(halves))


@kernel
def series_of_exp(rest):
    """The power of e to r, less 1, for |r| <= 0.35, also of an array: thirteen terms leave less than 1e-17 of it."""
    series = rest * (1.0 / 6227020800.0) + 1.0 / 479001600.0  # r / 13! + 1 / 12!
    series = series * rest + 1.0 / 39916800.0
    series = series * rest + 1.0 / 3628800.0
    series = series * rest + 1.0 / 362880.0
    series = series * rest + 1.0 / 40320.0
    series = series * rest + 1.0 / 5040.0
    series = series * rest + 1.0 / 720.0
    series = series * rest + 1.0 / 120.0
    series = series * rest + 1.0 / 24.0
    series = series * rest + 1.0 / 6.0
    series = series * rest + 0.5
    return series * rest * rest + rest


@kernel
def logs(values, out):
    """Writes the logarithm of each of `values` [n], as `log` does; `out` may be the same array."""
    for index in range(values.size):
        out[index] = log(values[index])


@kernel
def exps(values, out):
    """Writes the power of e to each of `values` [n]; `out` may be the same array."""
    for index in range(values.size):
        out[index] = exp(values[index])


@kernel
def exponential(words, out):
    """Writes -log(1 - u) for the u in [0, 1) that the upper 53 bits of each of `words` [m] say."""
    for index in range(words.size):
        # 1 - u is in (0, 1], where the logarithm is finite; u itself may be 0.
        out[index] = -log(1.0 - np.float64(words[index] >> np.uint64(11)) * 2.0**-53)

"""Rate and distortion: the law of (length, padded length) that tells least about the length at a given padding.

X is the length of a sequence, T >= X the length it is padded to. Any way of making batches is a joint law of the two,
so the mutual information I(X; T), in nats, is at least R(D) = min {I : E[T - X] <= D}. The law that reaches R(D) is
p(t | x) ~ q(t) exp(-beta (t - x)) for t >= x. Blahut-Arimoto finds its q step by step, and finds it for any decay.
For this one `least_information` has it at once: let P be the share of the sequences up to x, drawn against exp(beta x),
and W(x) the slope of its least concave majorant. Then the sum over s >= x of q(s) exp(-beta (s - x)) is
Z(x) = exp(beta x) W(x). Proof: a(x) = p(x) / Z(x) must satisfy sum over x <= t of a(x) exp(-beta (t - x)) <= 1, with
equality where q(t) > 0 (Blahut's condition). Both say that P stays below the integral of W over exp(beta x) and
touches it wherever W falls.

References:
    Blahut 1972, "Computation of channel capacity and rate-distortion functions"; Arimoto 1972.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels


class Levels(NamedTuple):
    """Lengths that stand for `total` sequences: `sizes` [levels], rising, each with its share of them."""

    sizes: NDArray[np.float64]
    masses: NDArray[np.float64]
    total: float


def group_levels(sizes: NDArray[np.float64], most: int) -> Levels:
    """Groups lengths into at most `most` levels.

    Where there are more distinct lengths, half of the levels share out the sequences evenly and half the range: a long
    tail is few sequences and much padding. Each level is the mean of its sequences.
    """
    values, counts = np.unique(sizes, return_counts=True)
    if len(values) <= most:
        return Levels(values.astype(np.float64), counts / len(sizes), len(sizes))
    starts = spread_out(values, counts / len(sizes), most)
    tallies = np.add.reduceat(counts, starts)
    return Levels(np.add.reduceat(values * counts, starts) / tallies, tallies / len(sizes), len(sizes))


def spread_out(values: NDArray[np.float64], masses: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Where to start each of at most `most` groups of the rising `values`: half by equal mass, half by equal width."""
    # Of the values 1, 2, 3, 4, 100 in 4 groups: mass starts one at 3, width one at 100; with the first, [0, 2, 4].
    reached = np.cumsum(masses) / np.sum(masses)
    by_mass = np.searchsorted(reached, np.arange(1, most // 2) / (most // 2))
    by_width = np.searchsorted(values, np.linspace(values[0], values[-1], most // 2 + 1)[1:-1])
    return np.unique(np.concatenate([[0], by_mass, by_width]))


def least_information(levels: Levels, beta: float) -> tuple[float, float]:
    """The point of R(D) whose slope is -beta: D, and R(D) + beta D in nats. Exact, in time linear in the levels.

    R lies above its tangents, so the second less beta D' is at most R(D') for every other D' too.
    """
    sizes = levels.sizes - levels.sizes[-1]
    slopes = np.empty(len(sizes))
    _kernels.concave_majorant(sizes, levels.masses, beta, slopes)
    # q(t) is exp(beta t) times what W falls by at t; Z is at most 1, so neither overflows.
    marginal = np.exp(beta * sizes + slopes) - np.exp(beta * sizes + np.append(slopes[1:], -np.inf))
    distortion = float((marginal - levels.masses) @ sizes)
    return distortion, float(-levels.masses @ (beta * sizes + slopes))


def decay_of(sizes: NDArray[np.float64], beta: float) -> NDArray[np.float64]:
    """exp(-beta (t - x)) for t >= x, else zero: [x, t], both of `sizes`."""
    gaps = sizes[None, :] - sizes[:, None]
    return np.where(gaps >= 0, np.exp(-beta * np.maximum(gaps, 0)), 0.0)


def blahut_arimoto(masses: NDArray[np.float64], decay: NDArray[np.float64], *, rounds: int) -> NDArray[np.float64]:
    """The marginal of T: q(t) <- q(t) sum_x p(x) decay(x, t) / sum_s q(s) decay(x, s), from q = p."""
    marginal = masses.copy()  # q = p: no length is ruled out, for a q(t) of 0 stays 0
    for _ in range(rounds):
        marginal = marginal * ((masses / (decay @ marginal)) @ decay)
    return marginal / marginal.sum()

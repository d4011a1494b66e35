"""Rate and distortion: the law of (length, padded length) that tells least about the length at a given padding.

X is the length of a sequence, T >= X the length it is padded to. Any way of making batches is a joint law of the two,
so the mutual information I(X; T), in nats, is at least R(D) = min {I : E[T - X] <= D}. The law that reaches R(D) is
p(t | x) ~ q(t) exp(-beta (t - x)) for t >= x; Blahut-Arimoto finds its q.

References:
    Blahut 1972, "Computation of channel capacity and rate-distortion functions"; Arimoto 1972.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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

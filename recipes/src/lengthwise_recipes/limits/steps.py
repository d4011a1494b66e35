"""The limit of steps of k batches: S is the set of the k lengths that the batches of a step are padded to.

In a step that pads to the lengths S, a sequence of length x is padded at least to the least of S that is no shorter:
d(x, S) = min {t in S : t >= x} - x. So I(X; S) >= R(D) = min {I(X; S) : E[d(X, S)] <= D}, whatever makes the steps.
One end is Khomenko's problem: a step tells nothing where S is always the same, and the best such S are the
`optimal_edges` of k buckets. Another is k = 1, where R is that of `lengthwise.mixing_limit`.

There are far too many S to list. The dual asks for a(x) >= 0 that raise the sum of p(x) log a(x), less beta D, while
for every S

    sum over x of a(x) exp(-beta d(x, S)) <= 1

The S that breaks this most is found by dynamic programming, as the best buckets are: so S are added one by one where
they are needed, and the law of those at hand is brought to its best by Blahut and Arimoto's rounds. Any a proves a
bound, once it is divided by the greatest of the sums. So a search that is stopped early gives a limit that is a little
too high, and never one that is too low.

The a of those at hand leap about while sets are missing. So each S is looked for near the a that proved the most, a
third of the way to the new one (Wentges 1997): that takes a third of the sets, and less.

References:
    Wentges 1997, "Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.limits import kernels
from lengthwise_recipes.limits.levels import Levels

_NEAR = 2e-3  # nats: how far the bound may be below the information that the sets at hand have
_NEARER = 2e-4  # of exp(-R): how far a further line must move it
_ROUNDS = 100  # of Blahut and Arimoto, before another S is looked for
_SETS = 300  # looked for at one beta, at most
_NEW = 0.05  # the chance that an S begins with
_TOWARDS = 0.3  # how far from the a that proved the most to the new one the next S is looked for
_FARTHER = 8.0  # times beta, until the target lies between two lines


class _Line(NamedTuple):
    """What the search at one beta proves: R(D) >= height - beta D at every D; it touches R near `distortion`."""

    beta: float
    height: float
    distortion: float

    def rate(self, target: float) -> float:
        return self.height - self.beta * target


def rate_in_steps(levels: Levels, target: float, batches: int) -> float:
    """A lower bound, in nats, on I(X; S) of steps of `batches` batches that pad `target` a sequence on average.

    The line of one beta bounds R everywhere. The search ends where a further line would move exp(-R) by less than
    `_NEARER`: R is convex, and so lies below the chord between two places where lines touch it.
    """
    if batches >= len(levels.sizes):
        return 0.0  # every length has a batch of its own, and no step tells another
    sets, lines = _first_sets(len(levels.sizes), batches), list[_Line]()
    while (beta := _next_beta(levels, lines, target)) is not None:
        line, sets = _solve(levels, beta, batches, sets)
        lines = sorted([*lines, line])
    return _bound(lines, target)


def _bound(lines: Sequence[_Line], target: float) -> float:
    return max(0.0, *(line.rate(target) for line in lines)) if lines else 0.0


def _next_beta(levels: Levels, lines: Sequence[_Line], target: float) -> float | None:
    """The slope of the chord above `target`; None where the lines come near enough to it."""
    sizes = levels.sizes
    least, most = 1e-3 / (sizes[-1] - sizes[0]), 1e2 / float(np.diff(sizes).min())
    if not lines:  # padded lengths above X by an exponential amount have this slope
        return float(np.clip(1.0 / target if target else np.inf, least, most))
    before = [line for line in lines if line.distortion > target]
    behind = [line for line in lines if line.distortion <= target]
    if not before:
        return None if lines[0].beta == least else max(least, lines[0].beta / _FARTHER)
    if not behind:
        return None if lines[-1].beta == most else min(most, lines[-1].beta * _FARTHER)
    low, high = before[-1], behind[0]
    top, bottom = high.rate(high.distortion), low.rate(low.distortion)
    slope = (top - bottom) / (low.distortion - high.distortion)
    if np.exp(-_bound(lines, target)) - np.exp(-(bottom + slope * (low.distortion - target))) < _NEARER:
        return None
    # Where rounding puts the slope beside the two, their middle stands between them.
    return slope if 1.001 * low.beta < slope < high.beta / 1.001 else float(np.sqrt(low.beta * high.beta))


def _solve(
    levels: Levels, beta: float, batches: int, sets: list[NDArray[np.int64]]
) -> tuple[_Line, list[NDArray[np.int64]]]:
    """A bound on min I(X; S) + beta E[d(X, S)], the mean of d where the search stands, and the sets that are of use."""
    sizes, masses = levels.sizes, levels.masses
    decay = np.exp(-beta * np.stack([_gaps(sizes, each) for each in sets], axis=1))  # [levels, sets]
    law = np.full(len(sets), 1.0 / len(sets))
    height, best, share = -np.inf, np.zeros(len(sizes)), 1.0  # best: the logarithm of a / p that proved the most
    for _ in range(_SETS):
        law = _improve(law, masses, decay)
        raised = -np.log(decay @ law)
        tried = best + share * (raised - best)
        most, found = _costliest_set(sizes, masses * np.exp(tried), beta, batches)
        proved = float(masses @ tried - np.log(most))
        if proved > height:
            height, best = proved, tried - np.log(most)
        if float(masses @ raised) < height + _NEAR:
            break
        kept = np.exp(-beta * _gaps(sizes, found))
        # A set that the law of those at hand has no use for was looked for too far from it.
        share = _TOWARDS if float((masses * np.exp(raised)) @ kept) > 1 + _NEAR / 4 else min(1.0, 2.0 * share)
        used = law > 1e-9  # rounds would need very long to bring the others back
        sets = [each for each, kept in zip(sets, used, strict=True) if kept] + [found]
        decay = np.concatenate([decay[:, used], kept[:, None]], axis=1)
        law = np.append(law[used] / law[used].sum() * (1 - _NEW), _NEW)
    joint = masses[:, None] * decay * law / (decay @ law)[:, None]
    gaps = np.stack([_gaps(sizes, each) for each in sets], axis=1)
    distortion = float((joint * np.where(np.isfinite(gaps), gaps, 0.0)).sum())
    return _Line(beta, height, distortion), sets


def _improve(law: NDArray[np.float64], masses: NDArray[np.float64], decay: NDArray[np.float64]) -> NDArray[np.float64]:
    """The law of S after some rounds: each S gains by how much its sum is above 1."""
    for _ in range(_ROUNDS):
        sums = (masses / (decay @ law)) @ decay
        law = law * sums
        if sums.max() < 1 + _NEAR / 4:
            break
    return law / law.sum()


def _first_sets(count: int, batches: int) -> list[NDArray[np.int64]]:
    """Sets in which every level occurs, so that every length can be padded to itself; all have the longest."""
    strides = max(1, -(-count // max(1, batches - 1)))
    if batches == 1:
        return [np.array([level]) for level in range(count)]
    return [np.union1d(np.arange(first, count, strides), [count - 1]) for first in range(strides)]


def _gaps(sizes: NDArray[np.float64], chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """d(x, S) for every level x; infinite beyond the longest of S."""
    # Of the lengths 1, 2, 3 and S = {2}: [1, 0, infinite].
    place = np.searchsorted(chosen, np.arange(len(sizes)))
    return np.append(sizes[chosen], np.inf)[place] - sizes


def _costliest_set(
    sizes: NDArray[np.float64], prices: NDArray[np.float64], beta: float, batches: int
) -> tuple[float, NDArray[np.int64]]:
    """The S of at most `batches` levels for which the sum of prices x exp(-beta d(x, S)) is greatest, and that sum."""
    longest = np.empty(batches, np.int64)
    most, count = kernels.costliest_edges(sizes, prices, beta, longest)
    return most, longest[batches - count :]

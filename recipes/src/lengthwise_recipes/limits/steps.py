"""The limit of steps of k batches: S is the set of the k padded lengths of a step.

In a step with padded lengths S, a sequence of length x is padded at least to the next length in S:
d(x, S) = min {t in S : t >= x} - x. So I(X; S) >= R(D) = min {I(X; S) : E[d(X, S)] <= D} for all steps. If S is always
the same, a step has no information about a length; the best such S are the `optimal_edges` of k buckets (Khomenko's
problem). At k = 1, R is that of `mixing_limit`.

There are far too many S to list. The dual maximises the sum of p(x) log a(x), less beta D, over a(x) >= 0. The
condition is for every S

    sum over x of a(x) exp(-beta d(x, S)) <= 1.

Dynamic programming finds the S that violates this most, as it finds the best buckets. So S are added one by one, and
Blahut and Arimoto's rounds improve the law of the listed S. Any a proves a bound, once it is divided by the greatest of
the sums. So a search that stops early gives a limit that is a little too high, and never one that is too low.

While sets are missing, the best a changes a lot from round to round. So each new S is searched near the a with the best
bound, a third of the way to the new a (Wentges 1997). That needs at most a third as many sets.

References:
    Wentges 1997, "Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.limits import kernels
from lengthwise_recipes.limits.levels import Levels

_NEAR = 2e-3  # nats: the largest gap between the bound and the information of the listed sets
_NEARER = 2e-4  # of exp(-R): the least gain of a further line
_ROUNDS = 100  # of Blahut and Arimoto, before the next S is searched
_SETS = 300  # searched at one beta, at most
_NEW = 0.05  # the first probability of a new S
_TOWARDS = 0.3  # the next S is searched this far from the best a to the new a
_FARTHER = 8.0  # times beta, until the target lies between two lines


class _Line(NamedTuple):
    """The bound of the search at one beta: R(D) >= height - beta D at every D. It touches R near `distortion`."""

    beta: float
    height: float
    distortion: float

    def rate(self, target: float) -> float:
        return self.height - self.beta * target


def rate_in_steps(levels: Levels, target: float, batches: int) -> float:
    """Returns a lower bound, in nats, on I(X; S) of steps of `batches` batches with a mean padding of `target`.

    The line of one beta bounds R everywhere. R is convex, so it lies below the chord between two
    points of contact. The search ends when a further line would move exp(-R) by less than `_NEARER`.
    """
    if batches >= len(levels.sizes):
        return 0.0  # every length has a batch of its own in every step
    sets, lines = _first_sets(len(levels.sizes), batches), list[_Line]()
    while (beta := _next_beta(levels, lines, target)) is not None:
        line, sets = _solve(levels, beta, batches, sets)
        lines = sorted([*lines, line])
    return _bound(lines, target)


def _bound(lines: Sequence[_Line], target: float) -> float:
    return max(0.0, *(line.rate(target) for line in lines)) if lines else 0.0


def _next_beta(levels: Levels, lines: Sequence[_Line], target: float) -> float | None:
    """Returns the slope of the chord above `target`; None if the lines are close enough to it."""
    sizes = levels.sizes
    least, most = 1e-3 / (sizes[-1] - sizes[0]), 1e2 / float(np.diff(sizes).min())
    if not lines:  # the slope of padding with an exponential distribution
        return float(np.clip(1.0 / target if target else np.inf, least, most))
    far_lines = [line for line in lines if line.distortion > target]
    near_lines = [line for line in lines if line.distortion <= target]
    if not far_lines:
        return None if lines[0].beta == least else max(least, lines[0].beta / _FARTHER)
    if not near_lines:
        return None if lines[-1].beta == most else min(most, lines[-1].beta * _FARTHER)
    low, high = far_lines[-1], near_lines[0]
    top, bottom = high.rate(high.distortion), low.rate(low.distortion)
    slope = (top - bottom) / (low.distortion - high.distortion)
    if np.exp(-_bound(lines, target)) - np.exp(-(bottom + slope * (low.distortion - target))) < _NEARER:
        return None
    # If rounding puts the slope outside of the two, take their middle.
    return slope if 1.001 * low.beta < slope < high.beta / 1.001 else float(np.sqrt(low.beta * high.beta))


def _solve(
    levels: Levels, beta: float, batches: int, sets: list[NDArray[np.int64]]
) -> tuple[_Line, list[NDArray[np.int64]]]:
    """Returns a bound on min I(X; S) + beta E[d(X, S)], with the mean of d at the end, and the useful sets."""
    sizes, masses = levels.sizes, levels.masses
    decay = np.exp(-beta * np.stack([_gaps(sizes, levels_of_set) for levels_of_set in sets], axis=1))  # [levels, sets]
    law = np.full(len(sets), 1.0 / len(sets))
    height, best, share = -np.inf, np.zeros(len(sizes)), 1.0  # best: log(a / p) of the best bound
    for _ in range(_SETS):
        law = _improve(law, masses, decay)
        raised = -np.log(decay @ law)
        log_ratios = best + share * (raised - best)
        greatest_sum, new_set = _costliest_set(sizes, masses * np.exp(log_ratios), beta, batches)
        proved = float(masses @ log_ratios - np.log(greatest_sum))
        if proved > height:
            height, best = proved, log_ratios - np.log(greatest_sum)
        if float(masses @ raised) < height + _NEAR:
            break
        column = np.exp(-beta * _gaps(sizes, new_set))
        # If the law has no use for the new set, the search was too far from the new a.
        share = _TOWARDS if float((masses * np.exp(raised)) @ column) > 1 + _NEAR / 4 else min(1.0, 2.0 * share)
        used = law > 1e-9  # sets with less weight would need very many rounds to return
        sets = [*compress(sets, used), new_set]
        decay = np.concatenate([decay[:, used], column[:, None]], axis=1)
        law = np.append(law[used] / law[used].sum() * (1 - _NEW), _NEW)
    joint = masses[:, None] * decay * law / (decay @ law)[:, None]
    gaps = np.stack([_gaps(sizes, levels_of_set) for levels_of_set in sets], axis=1)
    distortion = float((joint * np.where(np.isfinite(gaps), gaps, 0.0)).sum())
    return _Line(beta, height, distortion), sets


def _improve(law: NDArray[np.float64], masses: NDArray[np.float64], decay: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the law of S after some rounds: each round multiplies the probability of S by its sum."""
    for _ in range(_ROUNDS):
        sums = (masses / (decay @ law)) @ decay
        law = law * sums
        if sums.max() < 1 + _NEAR / 4:
            break
    return law / law.sum()


def _first_sets(count: int, batches: int) -> list[NDArray[np.int64]]:
    """Returns sets that cover every level, so that every length can be padded to itself; all have the longest."""
    strides = max(1, -(-count // max(1, batches - 1)))
    if batches == 1:
        return [np.array([level]) for level in range(count)]
    return [np.union1d(np.arange(first, count, strides), [count - 1]) for first in range(strides)]


def _gaps(sizes: NDArray[np.float64], chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """Returns d(x, S) for every level x; infinite beyond the longest of S."""
    # Lengths 1, 2, 3 and S = {2}: [1, 0, infinite].
    place = np.searchsorted(chosen, np.arange(len(sizes)))
    return np.append(sizes[chosen], np.inf)[place] - sizes


def _costliest_set(
    sizes: NDArray[np.float64], prices: NDArray[np.float64], beta: float, batches: int
) -> tuple[float, NDArray[np.int64]]:
    """Returns the greatest sum of prices x exp(-beta d(x, S)) over S of at most `batches` levels, and that S."""
    longest = np.empty(batches, np.int64)
    most, count = kernels.costliest_edges(sizes, prices, beta, longest)
    return most, longest[batches - count :]

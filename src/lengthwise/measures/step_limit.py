"""The limit of steps of k batches: S is the set of the k lengths that the batches of a step are padded to.

In a step that pads to the lengths S, a sequence of length x is padded at least to the least of S that is no shorter:
d(x, S) = min {t in S : t >= x} - x. So I(X; S) >= R(D) = min {I(X; S) : E[d(X, S)] <= D}, whatever makes the steps.
One end is Khomenko's problem: a step tells nothing where S is always the same, and the best such S are the
`optimal_edges` of k buckets. Another is k = 1, where R is that of `rate_distortion`.

There are far too many S to list. The dual asks for a(x) >= 0 that raise the sum of p(x) log a(x), less beta D, while
for every S

    sum over x of a(x) exp(-beta d(x, S)) <= 1

The S that breaks this most is found by dynamic programming, as the best buckets are: so S are added one by one where
they are needed, and the law of those at hand is brought to its best by Blahut and Arimoto's rounds. Any a proves a
bound, once it is divided by the greatest of the sums. So a search that is stopped early gives a limit that is a little
too high, and never one that is too low.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.choices.rate_distortion import Levels

_NEAR = 2e-3  # how far above 1 a sum may be, and so by how much the limit may be too high, as a share of itself
_ROUNDS = 100  # of Blahut and Arimoto, before another S is looked for
_SETS = 300  # looked for at one beta, at most
_STEPS = 16  # halvings of the logarithm of beta
_NEW = 0.05  # the chance that an S begins with


def rate_in_steps(levels: Levels, target: float, batches: int) -> float:
    """A lower bound, in nats, on I(X; S) of steps of `batches` batches that pad `target` a sequence on average."""
    if batches >= len(levels.sizes):
        return 0.0  # every length has a batch of its own, and no step tells another
    spread = levels.sizes[-1] - levels.sizes[0]
    low, high = 1e-3 / spread, 1e2 / np.diff(levels.sizes).min()
    sets = _first_sets(len(levels.sizes), batches)
    best = 0.0
    for _ in range(_STEPS):
        beta = float(np.sqrt(low * high))
        height, distortion, sets = _solve(levels, beta, batches, sets)
        best = max(best, height - beta * target)
        low, high = (beta, high) if distortion > target else (low, beta)
    return best


class _Line(NamedTuple):
    """What the search at one beta proves: R(D) >= height - beta D at every D; it touches R near `distortion`."""

    beta: float
    height: float
    distortion: float

    def rate(self, target: float) -> float:
        return self.height - self.beta * target


def rates_in_steps(levels: Levels, targets: Sequence[float], batches: int, *, near: float) -> list[float]:
    """Lower bounds as of `rate_in_steps` at several paddings, for a curve that is drawn.

    The line of one beta bounds R everywhere, so all targets share their lines. The search at a target ends where a
    further line would move exp(-R) by less than `near`: R is convex, and so lies below the chord between two places
    where lines touch it. So a bound is proved as of `rate_in_steps`, and only how near it comes is coarser.
    """
    if batches >= len(levels.sizes):
        return [0.0] * len(targets)
    spread = levels.sizes[-1] - levels.sizes[0]
    ends = 1e-3 / spread, 1e2 / np.diff(levels.sizes).min()
    sets, lines = _first_sets(len(levels.sizes), batches), list[_Line]()
    found = []
    for target in targets:
        for _ in range(_STEPS):
            beta = _next_beta(lines, target, near) if len(lines) >= len(ends) else float(ends[len(lines)])
            if beta is None:
                break
            height, distortion, sets = _solve(levels, beta, batches, sets)
            lines = sorted([*lines, _Line(beta, height, distortion)])
        found.append(max(0.0, *(line.rate(target) for line in lines)))
    return found


def _next_beta(lines: Sequence[_Line], target: float, near: float) -> float | None:
    """The slope of the chord above `target`; None where the lines come near enough to it."""
    before = [line for line in lines if line.distortion > target]
    behind = [line for line in lines if line.distortion <= target]
    if not before or not behind:
        return None
    low, high = before[-1], behind[0]
    most, least = high.rate(high.distortion), low.rate(low.distortion)
    slope = (most - least) / (low.distortion - high.distortion)
    bound = max(0.0, *(line.rate(target) for line in lines))
    if np.exp(-bound) - np.exp(-(least + slope * (low.distortion - target))) < near:
        return None
    # Where rounding puts the slope beside the two, their middle stands between them.
    return slope if 1.001 * low.beta < slope < high.beta / 1.001 else float(np.sqrt(low.beta * high.beta))


def _solve(
    levels: Levels, beta: float, batches: int, sets: list[NDArray[np.int64]]
) -> tuple[float, float, list[NDArray[np.int64]]]:
    """A bound on min I(X; S) + beta E[d(X, S)], the mean of d where the search stands, and the sets that are of use."""
    sizes, masses, _ = levels
    gaps = np.stack([_gaps(sizes, each) for each in sets], axis=1)  # [levels, sets]
    law = np.full(len(sets), 1.0 / len(sets))
    height = -np.inf
    for _ in range(_SETS):
        decay = np.exp(-beta * gaps)
        law = _improve(law, masses, decay)
        reached = decay @ law
        most, found = _costliest_set(sizes, masses / reached, beta, batches)
        height = max(height, float(-masses @ np.log(reached) - np.log(most)))
        if most < 1 + _NEAR:
            break
        used = law > 1e-9  # rounds would need very long to bring the others back
        sets = [each for each, kept in zip(sets, used, strict=True) if kept] + [found]
        gaps = np.concatenate([gaps[:, used], _gaps(sizes, found)[:, None]], axis=1)
        law = np.append(law[used] / law[used].sum() * (1 - _NEW), _NEW)
    decay = np.exp(-beta * gaps)
    joint = masses[:, None] * decay * law / (decay @ law)[:, None]
    return height, float((joint * np.where(np.isfinite(gaps), gaps, 0.0)).sum()), sets


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
    """The S of at most `batches` levels for which the sum of prices x exp(-beta d(x, S)) is greatest, and that sum.

    Levels i to j that are padded to j add gains[i, j]. The best S whose longest is j, of one level more, is the best
    before some i, and then j: as `optimal_edges` are found.
    """
    count = len(sizes)
    gains = np.full((count, count), -np.inf)
    decay = np.exp(-beta * np.diff(sizes, prepend=sizes[0]))
    column = np.zeros(count)
    for level in range(count):
        column *= decay[level]
        column[: level + 1] += prices[level]
        gains[: level + 1, level] = column[: level + 1]
    best = gains[0]
    origins = []
    for _ in range(batches - 1):
        sums = np.append(0.0, best[:-1])[:, None] + gains
        origin = sums.argmax(axis=0)
        if np.array_equal(origin, np.zeros(count)):  # no further level gains anything
            break
        origins.append(origin)
        best = np.take_along_axis(sums, origin[None], axis=0)[0]
    last = int(best.argmax())
    chosen = [last]
    for origin in reversed(origins):
        last = int(origin[last]) - 1
        if last < 0:
            break
        chosen.append(last)
    return float(best.max()), np.array(chosen[::-1])

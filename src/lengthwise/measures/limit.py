"""The limit of mixing: the most random batches at a given padding, by rate-distortion theory.

X is the length of a sequence, T >= X its padded length. Any way of making batches gives a joint law of X and T. So the
mutual information I(X; T), in nats, is at least R(D) = min {I : E[T - X] <= D}, where D is the mean padding.

Walk up the lengths x_1 < x_2 < ... A sequence opens at its X and closes at its T. The flow F_s = P(X <= x_s < T) is the
share of open sequences after x_s, and p_s the share of sequences of length x_s. Then

    E[T - X] = the sum over s of (x_{s+1} - x_s) F_s,
    I(X; T) >= the sum over s of phi(F_s) - phi(F_{s-1} + p_s),  with phi(z) = z log z,

with equality if all open sequences close with the same chance, whatever their length. (The share F_{s-1} + p_s is open
before some close at x_s. Those that close are a random part of the open ones, and the entropies add up.) F_s occurs in
two terms only, and their sum, phi(F_s) - phi(F_s + p_{s+1}), is convex in F_s. So if a frame of padding costs beta
nats, the best F_s, taken alone, is p_{s+1} / (exp(beta (x_{s+1} - x_s)) - 1).

But only open sequences can close: P(T <= x_s) = P(X <= x_s) - F_s must not fall. Where it would fall, it stays level,
and the lengths of this stretch share one equation of the same form. `least_flows` joins neighbouring lengths until it
falls nowhere: isotonic regression by pooling adjacent violators.

References:
    Cover and Thomas 2006, "Elements of information theory", chapter 10, for rate and distortion. Barlow, Bartholomew,
    Bremner, Brunk 1972, "Statistical inference under order restrictions", for the pooling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _kernels, checks
from lengthwise.lengths import as_lengths

_LEVELS = 65_536  # the most different lengths by default
_HALVINGS = 60  # halvings of the range of beta: more than the 53 bits of a float


def mixing_limit(lengths: ArrayLike, padding: float, *, bins: int | None = None) -> float:
    """Returns the most mixing that any batching of these lengths can have at a padding share.

    exp(-R(D)) with D = mean length x padding / (1 - padding). The limit is exact, except for rounding, for at most
    65,536 distinct lengths; more are grouped. Few bins overestimate mixing, so `measure` with few bins may exceed this
    limit. Give both the same `bins`.

    Infinite batches reach the limit. Small batches stay below it, because their longest sequence has the padded length.

    Args:
        lengths: [n], in any unit.
        padding: The share of all computed frames that are padding, from 0 to 0.999.
        bins: The most groups of similar lengths. All lengths of a group count as their mean. By default all different
            lengths count.

    Returns:
        A number from 0 to 1; 1 if `padding` is enough to pad every sequence to the longest.

    Raises:
        ValueError: `padding` is out of range, or the lengths are not [n].

    >>> mixing_limit([100, 200, 300, 400], 0.4)
    1.0

    References:
        Cover and Thomas 2006, "Elements of information theory", chapter 10; the solution is our own, see the top of
        this file.
    """
    checks.check_number("padding", padding, maximum=0.999, remedy="Give a share from 0 to 0.999, such as 0.05.")
    remedy = "Give as many bins as mixing was estimated in, such as 128."
    bins = checks.check_whole("bins", _LEVELS if bins is None else bins, minimum=2, remedy=remedy)
    array = as_lengths(lengths)
    if array.ndim != 1 or not len(array):
        remedy = "Give at least one sequence, and one length each: lengths[:, 0], for example."
        raise checks.value_error("lengths", "of shape [n], n at least 1", array.shape, remedy)
    levels = group_levels(array.astype(np.float64), bins)
    mean = float(levels.sizes @ levels.masses)
    target = mean * padding / (1.0 - padding)
    # Enough frames to pad every sequence to the longest: then T is independent of X.
    if target >= levels.sizes[-1] - mean:
        return 1.0
    return min(1.0, float(np.exp(-least_information(levels, target))))


class Levels(NamedTuple):
    """Groups of similar lengths: their rising `sizes` [levels], and their shares of the sequences, `masses`."""

    sizes: NDArray[np.float64]
    masses: NDArray[np.float64]


def group_levels(sizes: NDArray[np.float64], most: int) -> Levels:
    """Groups lengths into at most `most` levels.

    With more distinct lengths, half of the levels have equal numbers of sequences, and half have equal widths: a long
    tail has few sequences and much padding. The size of a level is the mean of its sequences.
    """
    values, counts = np.unique(sizes, return_counts=True)
    if len(values) <= most:
        return Levels(values, counts / len(sizes))
    # Values 1, 2, 3, 4, 100 in 4 groups: by mass one starts at 3, by width one at 100. So starts are [0, 2, 4].
    by_mass = np.searchsorted(np.cumsum(counts) / len(sizes), np.arange(1, most // 2) / (most // 2))
    by_width = np.searchsorted(values, np.linspace(values[0], values[-1], most // 2 + 1)[1:-1])
    starts = np.unique(np.concatenate([[0], by_mass, by_width]))
    tallies = np.add.reduceat(counts, starts)
    return Levels(np.add.reduceat(values * counts, starts) / tallies, tallies / len(sizes))


def least_flows(levels: Levels, beta: float) -> NDArray[np.float64]:
    """Returns the flows that minimise I(X; T) + beta E[T - X]: [levels - 1]. Exact, in linear time.

    >>> least_flows(Levels(np.array([10.0, 20.0]), np.array([0.5, 0.5])), np.log(2) / 10)  # 0.5 / (2 - 1)
    array([0.5])
    """
    flows = np.empty(len(levels.sizes) - 1)
    with np.errstate(over="ignore"):  # infinite for far lengths, before which all sequences close
        rises = np.expm1(beta * np.diff(levels.sizes))
    _kernels.least_flows(levels.sizes, np.cumsum(levels.masses), beta, rises, flows)
    return flows


def padding_of_flows(levels: Levels, flows: NDArray[np.float64]) -> float:
    """Returns E[T - X], in the unit of the lengths."""
    return float(np.diff(levels.sizes) @ flows)


def information_of_flows(levels: Levels, flows: NDArray[np.float64]) -> float:
    """Returns the least I(X; T), in nats, of all laws with these flows [levels - 1]."""
    masses = levels.masses
    opened = flows + masses[1:]
    # phi(F) - phi(F + p) = -p log(F + p) - F log(1 + p / F): no difference of two large numbers.
    longer = np.log(1.0 + np.divide(masses[1:], flows, out=np.zeros_like(flows), where=flows > 1e-300))
    return float(-masses[0] * np.log(masses[0]) - masses[1:] @ np.log(opened) - flows @ longer)


def least_information(levels: Levels, target: float) -> float:
    """Returns the least I(X; T) at a padding of `target`, in nats, from the tangent of slope -beta."""
    sizes = levels.sizes
    beta, low, high = 1.0, 1e-9 / (sizes[-1] - sizes[0]), 1e3 / np.diff(sizes).min()
    flows = np.zeros(len(sizes) - 1)
    for _ in range(_HALVINGS):
        beta = float(np.sqrt(low * high))  # halfway between their logarithms: beta spans many decades
        flows = least_flows(levels, beta)
        low, high = (beta, high) if padding_of_flows(levels, flows) > target else (low, beta)
    return information_of_flows(levels, flows) + beta * (padding_of_flows(levels, flows) - target)

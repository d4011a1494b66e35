"""Levels: the lengths in groups, and the flows with the least information about them at a given padding.

X is the length of a sequence, T >= X its padded length. The flow between two levels is the share of sequences that are
open there, F_s = P(X <= x_s < T): a sequence opens at its X and closes at its T. Each flow may have a floor, its least
value. Let p_s be the share of level s and phi(z) = z log z. Then

    E[T - X] = the sum over s of (x_{s+1} - x_s) F_s
    I(X; T) >= the sum over s of phi(F_s) - phi(F_{s-1} + p_s),

with equality if all open sequences close with the same chance, whatever their length. (The share F_{s-1} + p_s is open
before some close at x_s. Those that close are a random part of the open ones, and the entropies add up.) F_s occurs in
two terms only, and their sum, phi(F_s) - phi(F_s + p_{s+1}), is convex in F_s. So if a frame of padding costs beta
nats, the best F_s, taken alone, is p_{s+1} / (exp(beta (x_{s+1} - x_s)) - 1).

But only open sequences can close: P(T <= x_s) = P(X <= x_s) - F_s must not fall. Where it would fall, it stays level,
and the lengths of this stretch share one equation of the same form: see `kernels.least_flows`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.limits import kernels

_HALVINGS = 60  # of the range of beta: more than the 53 bits of a float


class Levels(NamedTuple):
    """Lengths that represent `total` sequences: `sizes` [levels], rising, and the share `masses` of each.

    `lowest` and `highest` [levels] are the shortest and the longest length of each level.
    """

    sizes: NDArray[np.float64]
    masses: NDArray[np.float64]
    total: int
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]


def group_levels(lengths: NDArray[np.float64], most: int) -> Levels:
    """Groups lengths into at most `most` levels, each of the size of their mean.

    With more than `most` distinct lengths, half of the levels divide the sequences evenly, and half divide the range: a
    long tail has few sequences but much padding.
    """
    values, counts = np.unique(lengths, return_counts=True)
    starts = np.arange(len(values))
    if len(values) > most:
        # Values 1, 2, 3, 4, 100 in 4 groups: `by_mass` has a group at 3, `by_width` one at 100. Starts [0, 2, 4].
        reached = np.cumsum(counts) / len(lengths)
        by_mass = np.searchsorted(reached, np.arange(1, most // 2) / (most // 2))
        by_width = np.searchsorted(values, np.linspace(values[0], values[-1], most // 2 + 1)[1:-1])
        starts = np.unique(np.concatenate([[0], by_mass, by_width]))
    tallies = np.add.reduceat(counts, starts)
    sizes = np.add.reduceat(values * counts, starts) / tallies
    return Levels(sizes, tallies / len(lengths), len(lengths), values[starts], values[np.append(starts[1:] - 1, -1)])


def padding_of_flows(levels: Levels, flows: NDArray[np.float64]) -> float:
    """Returns E[T - X], in the unit of the lengths."""
    return float(np.diff(levels.sizes) @ flows)


def information_of_flows(levels: Levels, flows: NDArray[np.float64]) -> float:
    """Returns the least I(X; T), in nats, over all laws with these flows [levels - 1]."""
    masses = levels.masses
    opened = flows + masses[1:]
    # phi(F) - phi(F + p) = -p log(F + p) - F log(1 + p / F), without a difference of large numbers.
    longer = np.log1p(np.divide(masses[1:], flows, out=np.zeros_like(flows), where=flows > 1e-300))
    return float(-masses[0] * np.log(masses[0]) - masses[1:] @ np.log(opened) - flows @ longer)


def ends_of_betas(levels: Levels) -> tuple[float, float]:
    """Returns the range of prices of a frame to search, by the largest and the smallest difference of lengths."""
    sizes = levels.sizes
    return 1e-9 / (sizes[-1] - sizes[0]), 1e3 / float(np.diff(sizes).min())


def least_flows(
    levels: Levels, beta: float, floors: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the flows above `floors` [levels - 1] of least I(X; T) + beta E[T - X], and the price of each floor."""
    flows, prices = np.empty(len(floors)), np.empty(len(floors))
    with np.errstate(over="ignore"):
        rises = np.expm1(beta * np.diff(levels.sizes))
    kernels.least_flows(levels.sizes, np.cumsum(levels.masses), floors, beta, rises, flows, prices)
    return flows, prices


def least_information(levels: Levels, target: float, floors: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Returns the least I(X; T) of flows above `floors` that pad `target`, in nats, and the price of each floor.

    The value is read from the tangent of slope -beta. Floors and prices are [levels - 1].
    """
    low, high = ends_of_betas(levels)
    beta, flows, prices = low, floors, floors
    for _ in range(_HALVINGS):
        beta = float(np.sqrt(low * high))  # halfway between their logarithms: beta spans many decades
        flows, prices = least_flows(levels, beta, floors)
        low, high = (beta, high) if padding_of_flows(levels, flows) > target else (low, beta)
    return information_of_flows(levels, flows) + beta * (padding_of_flows(levels, flows) - target), prices

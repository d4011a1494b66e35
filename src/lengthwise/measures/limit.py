"""The limit: how random batches can be at a given padding, however they are made. Rate and distortion of the lengths.

X is the length of a sequence, T >= X the length it is padded to. Any way of making batches is a joint law of the two,
so the mutual information I(X; T), in nats, is at least R(D) = min {I : E[T - X] <= D}.

Walk up the lengths x_1 < x_2 < ... A sequence opens at its X and closes at its T. The flow between two lengths is the
share of the sequences that are open there, F_s = P(X <= x_s < T), and p_s is the share of length x_s. Then

    E[T - X] = the sum over s of (x_{s+1} - x_s) F_s,
    I(X; T) >= the sum over s of phi(F_s) - phi(F_{s-1} + p_s),  with phi(z) = z log z,

with equality where all that are open close with the same chance, whatever their length: then T tells least. (What is
open before x_s closes is F_{s-1} + p_s; among those that close, X is as among the open ones, and the entropies add up
to this sum.) F_s stands in two terms only, phi(F_s) - phi(F_s + p_{s+1}), and they are convex in it. So by itself, at
the price beta of a frame, the best F_s is p_{s+1} / (exp(beta (x_{s+1} - x_s)) - 1).

But none closes that is not open: P(T <= x_s) = P(X <= x_s) - F_s must not fall. Where the best flows would let it fall,
it stays level, and the lengths of such a stretch share one equation, of the same form. `least_flows` joins neighbours
until none falls, which is isotonic regression by pooling adjacent violators.

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

_LEVELS = 65_536  # lengths told apart where nobody says how many
_HALVINGS = 60  # of the range of beta: beyond the 53 bits to which a float is exact


def mixing_limit(lengths: ArrayLike, padding: float, *, bins: int | None = None) -> float:
    """The most mixing that any batching can have at a padding share of `padding` on these lengths.

    exp(-R(D)) with D = mean length x padding / (1 - padding). It is exact, except for rounding, if at most 65,536
    lengths are distinct; more are grouped. Few bins make little mixing look like more: mixing that `measure` estimated
    in few bins may lie above this limit. Compare it with the limit of the same `bins`.

    It is the limit of endless batches. Small batches stay below it: one of a batch is as long as the batch is padded
    to, and tells its length.

    Args:
        lengths: [n], in any unit.
        padding: The share of all computed frames that are padding, from 0 to 0.999.
        bins: Into how many groups of like length the lengths are put at most, as if all of a group were of its mean
            length; by default every length counts for itself.

    Returns:
        A number from 0 to 1; 1 where `padding` is enough to pad every sequence to the longest.

    Raises:
        ValueError: A padding out of range, or lengths that are not [n].

    >>> mixing_limit([100, 200, 300, 400], 0.4)
    1.0

    References:
        Cover and Thomas 2006, "Elements of information theory", chapter 10; the solution is our own, see
        the top of this file.
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
    # Frames enough to pad every sequence to the longest: then the padded length tells nothing.
    if target >= levels.sizes[-1] - mean:
        return 1.0
    return min(1.0, float(np.exp(-least_information(levels, target))))


class Levels(NamedTuple):
    """Groups of like length: `sizes` [levels], rising, each with its share of the sequences, `masses`."""

    sizes: NDArray[np.float64]
    masses: NDArray[np.float64]


def group_levels(sizes: NDArray[np.float64], most: int) -> Levels:
    """Groups lengths into at most `most` levels.

    Where there are more distinct lengths, half of the levels share out the sequences evenly and half the range: a long
    tail is few sequences and much padding. Each level is the mean of its sequences.
    """
    values, counts = np.unique(sizes, return_counts=True)
    if len(values) <= most:
        return Levels(values, counts / len(sizes))
    # Of the values 1, 2, 3, 4, 100 in 4 groups: mass starts one at 3, width one at 100; with the first, [0, 2, 4].
    by_mass = np.searchsorted(np.cumsum(counts) / len(sizes), np.arange(1, most // 2) / (most // 2))
    by_width = np.searchsorted(values, np.linspace(values[0], values[-1], most // 2 + 1)[1:-1])
    starts = np.unique(np.concatenate([[0], by_mass, by_width]))
    tallies = np.add.reduceat(counts, starts)
    return Levels(np.add.reduceat(values * counts, starts) / tallies, tallies / len(sizes))


def least_flows(levels: Levels, beta: float) -> NDArray[np.float64]:
    """The flows that lessen I(X; T) + beta E[T - X] most: [levels - 1]. Exact, in linear time.

    >>> least_flows(Levels(np.array([10.0, 20.0]), np.array([0.5, 0.5])), np.log(2) / 10)  # 0.5 / (2 - 1)
    array([0.5])
    """
    flows = np.empty(len(levels.sizes) - 1)
    with np.errstate(over="ignore"):  # all close before a length that is far beyond
        rises = np.expm1(beta * np.diff(levels.sizes))
    _kernels.least_flows(levels.sizes, np.cumsum(levels.masses), beta, rises, flows)
    return flows


def padding_of_flows(levels: Levels, flows: NDArray[np.float64]) -> float:
    """E[T - X], in the unit of the lengths."""
    return float(np.diff(levels.sizes) @ flows)


def information_of_flows(levels: Levels, flows: NDArray[np.float64]) -> float:
    """The least I(X; T), in nats, of all laws of these flows [levels - 1]."""
    masses = levels.masses
    opened = flows + masses[1:]
    # phi(F) - phi(F + p) = -p log(F + p) - F log(1 + p / F): no difference of two large numbers.
    longer = np.log(1.0 + np.divide(masses[1:], flows, out=np.zeros_like(flows), where=flows > 1e-300))
    return float(-masses[0] * np.log(masses[0]) - masses[1:] @ np.log(opened) - flows @ longer)


def least_information(levels: Levels, target: float) -> float:
    """The least I(X; T) of flows that pad `target`, in nats, read on its tangent of the slope -beta that touches it."""
    sizes = levels.sizes
    beta, low, high = 1.0, 1e-9 / (sizes[-1] - sizes[0]), 1e3 / np.diff(sizes).min()
    flows = np.zeros(len(sizes) - 1)
    for _ in range(_HALVINGS):
        beta = float(np.sqrt(low * high))  # halfway between their logarithms: beta spans many decades
        flows = least_flows(levels, beta)
        low, high = (beta, high) if padding_of_flows(levels, flows) > target else (low, beta)
    return information_of_flows(levels, flows) + beta * (padding_of_flows(levels, flows) - target)

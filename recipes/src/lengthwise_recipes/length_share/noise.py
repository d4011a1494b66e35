"""Estimates the mean and the spread of the gradients in every bin of lengths, from gradients of single sequences.

n is the number of sequences to plan, m of them are sampled. There are Q bins of similar length, and S steps.

gram      [m, m]   inner products of the sampled gradients, each times the weight of its sequence
bins      [m]      the bin of each sampled gradient
masses    [Q]      the share of the n sequences in each bin
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAST_IN_BIN = 8  # sampled sequences: with fewer, mean and spread are hard to separate


class Noise(NamedTuple):
    """Moments of the residuals r = w (g - G): w the weight of a sequence, g its gradient, G the mean gradient of all.

    Attributes:
        alone: [Q], E[r . r] for a sequence of each bin.
        pairs: [Q, Q], E[r . r'] for two different sequences: the mean residuals of their bins, multiplied.
        signal: G . G. The estimate has no bias, so it may fall below 0.
    """

    alone: NDArray[np.float64]
    pairs: NDArray[np.float64]
    signal: float

    def of_steps(self, counts: NDArray[np.int64], weights: NDArray[np.float64]) -> float:
        """Returns the mean over steps of E|step's gradient - G|^2.

        Batches depend on lengths and chance alone, so given their lengths, two sequences of a step are independent.
        So E|sum of r|^2 of a step is the sum of `alone` over its members, plus that of `pairs` over all ordered pairs
        of two different members.

        Args:
            counts: [S, Q], sequences of each bin in each step.
            weights: [S], the summed weight of each step; none is 0.
        """
        single = counts @ (self.alone - np.diag(self.pairs))  # a sequence forms no pair with itself
        together = ((counts @ self.pairs) * counts).sum(axis=1)
        return float(((single + together) / weights**2).mean())


def bin_lengths(
    lengths: NDArray[np.int64], sampled: NDArray[np.int64], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Puts all sequences into bins by length, with about equally many sampled sequences in each.

    Sequences of the same length share a bin. With several dimensions the second splits the bins of the first, and so
    on.

    Args:
        lengths: [n, dims].
        sampled: [m], sequence numbers.
        most: The most bins.

    Returns:
        The bin of each sequence, [n], and of each sampled one, [m].

    >>> bin_lengths(np.array([[5], [5], [9], [7]]), np.arange(4), 2)[0].tolist()  # too few for two bins
    [0, 0, 0, 0]
    """
    bins = np.zeros(len(lengths), np.int64)
    along = max(1, round(most ** (1 / lengths.shape[1])))  # 16 bins of two dimensions: 4 of the first, split into 4
    for dimension in lengths.T:
        finer = np.zeros_like(bins)
        for group in range(int(bins.max()) + 1):
            inside = bins == group
            edges = _edges(np.sort(dimension[sampled[inside[sampled]]]), along)
            finer[inside] = finer.max() + 1 + np.searchsorted(edges, dimension[inside], side="right")
        bins = np.unique(finer, return_inverse=True)[1]
    return bins, bins[sampled]


def _edges(rising: NDArray[np.int64], most: int) -> list[int]:
    """Returns the first length of each bin after the first. Every bin has at least LEAST_IN_BIN of the lengths."""
    share = max(LEAST_IN_BIN, len(rising) // most)
    values, firsts = np.unique(rising, return_index=True)
    edges: list[int] = []
    begun = 0
    for value, first in zip(values.tolist(), firsts.tolist(), strict=True):
        if first - begun >= share and len(rising) - first >= LEAST_IN_BIN:
            edges.append(value)
            begun = first
    return edges


def estimate(
    gram: NDArray[np.float64],
    bins: NDArray[np.int64],
    masses: NDArray[np.float64],
    weights: NDArray[np.float64],
    mean_weights: NDArray[np.float64],
) -> Noise:
    """Estimates the noise. Each product of two means comes from pairs of different sequences, so it has no bias.

    The square of a mean of 16 noisy gradients is too large by a sixteenth of their spread. With many parameters that
    exceeds the effect of length. So no gradient is multiplied by itself, except for `alone`.

    Args:
        gram: [m, m], as at the top of this file.
        bins: [m].
        masses: [Q].
        weights: [m], of the sampled sequences; 1 on average over all n.
        mean_weights: [Q], the mean weight of all sequences of each bin.
    """
    inside = (bins == np.arange(len(masses))[:, None]).astype(np.float64)  # [Q, m]
    sizes = inside.sum(axis=1)
    products = inside @ gram @ inside.T
    # Of three gradients a, b, c of one bin, the six products of two different ones are averaged.
    alike = (np.diag(products) - inside @ np.diag(gram)) / (sizes * (sizes - 1))
    means = products / np.outer(sizes, sizes)
    np.fill_diagonal(means, alike)
    # The residual of a mean gradient mu is mu - w G, with G the mean of all mu, weighted by their masses.
    towards = means @ masses
    signal = float(masses @ towards)
    pairs = means - np.outer(towards, mean_weights) - np.outer(mean_weights, towards)
    pairs += signal * np.outer(mean_weights, mean_weights)
    # G as a sum of sampled gradients: each has an equal share of its bin. Then r . r = g . g - 2 w g . G + w w G . G.
    counted = (masses / sizes)[bins]
    with_all = gram @ counted
    of_all = float(counted @ with_all)
    squares = np.diag(gram) - 2 * weights * with_all + weights**2 * of_all
    weight_sums, towards = inside @ weights, inside @ with_all
    sums = np.diag(products) - 2 * weight_sums * towards + weight_sums**2 * of_all
    spread = (inside @ squares - sums / sizes) / (sizes - 1)
    return Noise(alone=spread + np.diag(pairs), pairs=pairs, signal=signal)


def leave_out(bins: NDArray[np.int64], parts: int, order: NDArray[np.int64]) -> list[NDArray[np.bool_]]:
    """Returns for each of `parts` parts a mask of the sampled sequences outside of it; a bin is spread over all parts.

    >>> [mask.tolist() for mask in leave_out(np.array([0, 1, 0, 1]), 2, np.arange(4))]
    [[False, False, True, True], [True, True, False, False]]
    """
    part = np.empty(len(bins), np.int64)
    by_bin = order[np.argsort(bins[order], kind="stable")]
    part[by_bin] = np.arange(len(bins)) % parts  # dealt round robin, bin after bin
    return [part != number for number in range(parts)]

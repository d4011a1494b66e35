"""Joint: mixing from the joint histogram of the lengths of sequences and what their batches are padded to.

Of plans it is measured in `measures.mixing`, and of trial drafts, to which an order is fitted, here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import _exact


def mixing_of_batches(lengths: NDArray[np.int64], padded: NDArray[np.int64], sizes: NDArray[np.int64]) -> float:
    """Returns the mixing that `measure` gives a plan of these batches.

    Args:
        lengths: [m], of the sequences, batch by batch.
        padded: [batches], the length that each batch is padded to.
        sizes: [batches], its number of sequences.

    >>> mixing_of_batches(np.array([10, 10, 20, 20] * 50), np.array([10, 20] * 50), np.array([2, 2] * 50)) < 0.51
    True
    """
    if not len(lengths):
        return 1.0
    bins = mixing_bins(len(lengths))
    rows = bin_equally(lengths, None, bins).astype(np.int64)
    columns = np.repeat(bin_equally(padded, sizes, bins), sizes)
    joint = np.bincount(rows * bins + columns, minlength=bins * bins)
    return mixing_of_counts(joint.reshape(bins, bins).astype(np.float64), len(lengths))


def mixing_bins(count: int) -> int:
    """Returns the number of bins of mixing that `count` sequences fill, from 2 to 128.

    As many as keep the bias of the plain estimate, (bins - 1)^2 / 2n nats, under a twentieth.
    """
    return int(np.clip(1 + np.sqrt(count / 10), 2, 128))


def bin_equally(values: NDArray[Any], weights: NDArray[Any] | None, bins: int) -> NDArray[np.int64]:
    """Puts values into bins of equal weight by their rank, a weight of 1 by default; equal values share a bin.

    >>> bin_equally(np.array([5, 1, 9]), np.array([2, 1, 1]), 2)
    array([1, 0, 1])
    """
    if not len(values):
        return np.empty(0, np.int64)
    low = values.min()
    if values.dtype.kind in "iu" and values.max() - low <= 4 * len(values):  # few enough to count, and not to sort
        keys = values if 0 <= low <= len(values) else values - low
    else:
        keys = np.unique(values, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(keys, weights)
    # A value stands at the middle of its own ranks: with counts [1, 2, 1], at [0.5, 2, 3.5] of 4.
    middle = np.cumsum(counts) - counts / 2
    return (middle * bins / counts.sum()).clip(0, bins - 1).astype(np.int64)[keys]


def mixing_of_counts(joint: NDArray[np.float64], count: int) -> float:
    """exp(-I) of a joint histogram [bins, bins] of `count` sequences, its bias corrected as `measures.mixing` says."""
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    # Below 10 sequences for each cell the first-order correction is no longer enough.
    if len(joint) > 2 and count < 10 * (len(joint) - 1) * (len(joint) - 1):
        information = _entropy(rows, count) + _entropy(columns, count) - _entropy(joint, count)
        return _exact.exp(-max(0.0, information))
    seen = joint > 0
    information = _exact.dot(joint[seen], _exact.logs(joint[seen] * count / np.outer(rows, columns)[seen])) / count
    # Miller-Madow: an entropy from counts is too small by (filled cells - 1) / 2n, so the information is too large.
    bias = (seen.sum() - (rows > 0).sum() - (columns > 0).sum() + 1) / (2 * count)
    return _exact.exp(-max(0.0, information - bias))


def _entropy(counts: NDArray[np.float64], count: int) -> float:
    """Grassberger's estimate, in nats: log n less the mean over all n of G(how many share its cell)."""
    sharing = counts[counts > 0].astype(np.int64)
    return _exact.log(count) - _exact.dot(sharing, _grassberger(int(sharing.max()))[sharing]) / count


def _grassberger(most: int) -> NDArray[np.float64]:
    """G(0) .. G(most): G(1) = -gamma - log 2, and G(2k) = G(2k + 1) = G(1) + 2 / 1 + 2 / 3 + ... + 2 / (2k - 1).

    G(m) nears log m; few draws give too little.
    """
    halves = np.cumsum(2.0 / np.arange(1, most + 2, 2))
    pairs = np.concatenate([[0.0], np.repeat(halves, 2)])  # of 1, then of 2 and 3, of 4 and 5, ...
    return np.concatenate([[0.0], pairs[:most] - np.euler_gamma - _exact.log(2.0)])

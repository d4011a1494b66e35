"""Bucket edges: which lengths share a bucket.

Bucket b holds the lengths in (edges[b - 1], edges[b]]; edges are whole, rise strictly, and the last is the longest
length. Fewer distinct edges than buckets asked for come back where the lengths do not tell more apart.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _checks, _kernels
from lengthwise.lengths import as_lengths

_BUCKETS_REMEDY = "Give the number of buckets, 6 say."


def optimal_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges that pad least: the exact optimum of Khomenko's objective.

    Minimises the sum over buckets of count x longest, which is the padded frames when each bucket is padded to its
    edge. Batches padded only to their own longest pad less, and their optimum may differ a little.

    Args:
        lengths: [n], at least 1 each.
        buckets: How many at most; Q in the paper.

    Returns:
        [min(buckets, distinct lengths)] edges.

    Raises:
        ValueError: `buckets` below 1, or `lengths` not [n].

    >>> optimal_edges([1, 2, 9, 10], 2)
    array([ 2, 10])

    References:
        Khomenko et al. 2016, section III.A. The paper's recurrence, dp[i][k] = min over j < i of dp[j][k-1] + i x
        (count in (j, i]) as corrected, takes O(Q Lmax^2). Here j only ever enters as a line in i, so each of the Q
        layers is the lower envelope of lines met in order of slope: O(Q distinct lengths), after one sort.
    """
    values, counts = _histogram(lengths)
    if int(values[-1]) * int(counts.sum()) >= 2**62:
        remedy = "Give them in a coarser unit."
        raise _checks.value_error("lengths", "below 2**62 frames in all, padded", int(values[-1]), remedy)
    buckets = min(_checks.check_whole("buckets", buckets, minimum=1, remedy=_BUCKETS_REMEDY), len(values))
    values, reached = np.concatenate([[0], values]), np.concatenate([[0], np.cumsum(counts)])
    before = np.full(len(values), 2**62, np.int64)
    before[0] = 0
    cuts = np.zeros((buckets, len(values)), np.int32)
    for layer in range(buckets):
        best = np.full(len(values), 2**62, np.int64)
        _kernels.bucket_layer(values, reached, before, best, cuts[layer])
        before = best
    return values[_ends(cuts)]


def uniform_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges of equal width between the shortest and the longest length.

    >>> uniform_edges([10, 20, 50], 4)
    array([20, 30, 40, 50])
    """
    values, _ = _histogram(lengths)
    return _whole(values, lambda steps: values[0] + (values[-1] - values[0]) * steps, buckets)


def exponential_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges whose widths grow by a constant factor, from the shortest to the longest length.

    >>> exponential_edges([10, 20, 160], 4)
    array([ 20,  40,  80, 160])
    """
    values, _ = _histogram(lengths)
    return _whole(values, lambda steps: values[0] * (values[-1] / values[0]) ** steps, buckets)


def quantile_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges that leave about equally many sequences in each bucket; equal lengths stay together.

    >>> quantile_edges([1, 2, 3, 4, 5, 90], 3)
    array([ 2,  4, 90])
    """
    values, counts = _histogram(lengths)
    buckets = _checks.check_whole("buckets", buckets, minimum=1, remedy=_BUCKETS_REMEDY)
    reached = np.cumsum(counts)
    wanted = -(-reached[-1] * np.arange(1, buckets + 1) // buckets)
    return np.unique(values[np.searchsorted(reached, wanted)])


EDGES: dict[str, Callable[[ArrayLike, int], NDArray[np.int64]]] = {
    "optimal": optimal_edges,
    "uniform": uniform_edges,
    "quantile": quantile_edges,
    "exponential": exponential_edges,
}


def padded_frames(lengths: ArrayLike, edges: ArrayLike) -> int:
    """Frames computed when every sequence is padded to the edge of its bucket: Khomenko's objective.

    >>> padded_frames([1, 2, 9, 10], [2, 10])
    24
    """
    values, counts = _histogram(lengths)
    edges = np.asarray(edges, np.int64)
    if np.any(np.diff(edges) <= 0) or edges.max(initial=0) < values[-1]:
        rule = f"rising, the last at least the longest length, {values[-1]}"
        raise _checks.value_error("edges", rule, edges.tolist(), "Give the longest length of each bucket.")
    return int(edges[np.searchsorted(edges, values)] @ counts)


def _histogram(lengths: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    array = as_lengths(lengths)
    if array.ndim != 1 or not len(array):
        remedy = "Give at least one sequence, and one length each: lengths[:, 0], say (on the command line: FILE:0)."
        raise _checks.value_error("lengths", "of shape [n], n at least 1", array.shape, remedy)
    return np.unique(array, return_counts=True)


def _whole(values: NDArray[np.int64], edge_at: Callable[..., NDArray[np.float64]], buckets: int) -> NDArray[np.int64]:
    """Edges at the shares 1/buckets ... 1 of the way, rounded down to whole lengths; the last is exact."""
    buckets = _checks.check_whole("buckets", buckets, minimum=1, remedy=_BUCKETS_REMEDY)
    inner = np.floor(edge_at(np.arange(1, buckets) / buckets) + 1e-9).astype(np.int64)
    return np.unique(np.append(np.maximum(inner, values[0]), values[-1]))


def _ends(cuts: NDArray[np.int32]) -> list[int]:
    """Follows `cuts` [buckets, positions] back from the last position: where each bucket ends, first bucket first."""
    ends = [cuts.shape[1] - 1]
    for layer in range(len(cuts) - 1, 0, -1):
        ends.append(int(cuts[layer, ends[-1]]))
    return ends[::-1]

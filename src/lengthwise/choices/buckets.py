"""Bucket edges: which lengths share a bucket.

Bucket b holds the lengths in (edges[b - 1], edges[b]]. Edges are whole numbers, rise strictly, and the last is the
longest length. There are fewer edges than buckets asked for where there are too few distinct lengths.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _kernels, checks
from lengthwise.lengths import as_lengths

_EDGES_RULE, _EDGES_REMEDY = "whole numbers from 1 to 2**63 - 1", "Give the longest length of each bucket."


@checks.show_call("optimal_edges(lengths, 8)")
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
        ValueError: `buckets` below 1, `lengths` not [n], or 2**62 frames in all when padded to the longest.

    >>> optimal_edges([1, 2, 9, 10], 2)
    array([ 2, 10])

    References:
        Khomenko et al. 2016, section III.A. The paper's recurrence, dp[i][k] = min over j < i of dp[j][k-1] + i x
        (count in (j, i]) as corrected, takes O(Q Lmax^2). Here a bucket has a price, and bisection finds the price at
        which the cheapest division has Q buckets: Aggarwal, Schieber, Tokuyama 1994, "Finding a minimum-weight k-link
        path in graphs with the concave Monge property and applications". Each price takes time and memory linear in
        the distinct lengths, whatever Q, because j enters only as a line in i.
    """
    buckets = _check_buckets(buckets)
    values, counts = _histogram(lengths)
    if buckets >= len(values):
        return values
    values, reached = np.concatenate([[0], values]), np.concatenate([[0], np.cumsum(counts)])
    best, most, ends = np.empty_like(values), np.empty_like(values), np.empty(buckets, np.int64)
    # The more buckets there are, the less one more saves: say the second saves 40 frames, the third 9, the fourth 4.
    # At a price of 9, 2 and 3 buckets cost the same, and at any higher price 3 cost more. So 9 is the price for 3.
    price, too_high = 0, int(values[-1]) * int(reached[-1]) + 1
    while too_high - price > 1:
        middle = (price + too_high) // 2
        _kernels.price_buckets(values, reached, middle, best, most)
        price, too_high = (middle, too_high) if most[-1] >= buckets else (price, middle)
    _kernels.price_buckets(values, reached, price, best, most)
    _kernels.bucket_ends(values, reached, price, best, most, ends)
    return values[ends]


@checks.show_call("uniform_edges(lengths, 8)")
def uniform_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges of equal width between the shortest and the longest length.

    >>> uniform_edges([10, 20, 50], 4)
    array([20, 30, 40, 50])
    """
    low, high = _ends_of(lengths)
    most = high - low + 1  # buckets, where every whole length is an edge
    return _whole(low, high, lambda steps: low + (high - low) * steps, min(_check_buckets(buckets), most))


@checks.show_call("exponential_edges(lengths, 8)")
def exponential_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges whose widths grow by a constant factor, from the shortest to the longest length.

    >>> exponential_edges([10, 20, 160], 4)
    array([ 20,  40,  80, 160])
    """
    low, high = _ends_of(lengths)
    most = math.ceil(high * math.log(high / low)) + 1  # buckets, where the widest is less than a frame
    return _whole(low, high, lambda steps: low * (high / low) ** steps, min(_check_buckets(buckets), most))


@checks.show_call("quantile_edges(lengths, 8)")
def quantile_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges that leave about equally many sequences in each bucket; equal lengths stay together.

    >>> quantile_edges([1, 2, 3, 4, 5, 90], 3)
    array([ 2,  4, 90])
    """
    values, counts = _histogram(lengths)
    reached = np.cumsum(counts)  # of the lengths [1, 1, 2, 5]: values [1, 2, 5], reached [2, 3, 4]
    buckets = min(_check_buckets(buckets), int(reached[-1]))
    # In 2 buckets, 2 and 4 sequences are to be reached: at the values 1 and 5.
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

    Args:
        lengths: [n], at least 1 each.
        edges: [buckets] whole numbers, rising; the last no shorter than the longest length.

    Raises:
        ValueError: `lengths` not [n], `edges` not as above, or 2**62 frames or more in all.
        TypeError: `edges` that are not numbers.

    >>> padded_frames([1, 2, 9, 10], [2, 10])
    24
    """
    values, counts = _histogram(lengths)
    edges = _whole_edges(edges)
    if np.any(np.diff(edges) <= 0) or edges.max(initial=0) < values[-1]:
        rule = f"rising, the last at least the longest length, {values[-1]}"
        raise checks.value_error("edges", rule, edges.tolist(), _EDGES_REMEDY)
    padded = edges[np.searchsorted(edges, values)]  # edges (2, 10) for the lengths [1, 2, 9, 10]: [2, 2, 10, 10]
    _check_countable("edges", padded[-1], counts)
    return int(padded @ counts)


def _histogram(lengths: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # All edges depend on the distinct lengths and their counts alone: millions of sequences become some thousand.
    array = as_lengths(lengths)
    if array.ndim != 1 or not len(array):
        remedy = "Give at least one sequence, and one length each: lengths[:, 0], say (on the command line: FILE:0)."
        raise checks.value_error("lengths", "of shape [n], n at least 1", array.shape, remedy)
    values, counts = np.unique(array, return_counts=True)
    _check_countable("lengths", values[-1], counts)
    return values, counts


def _ends_of(lengths: ArrayLike) -> tuple[int, int]:
    """The shortest and the longest length."""
    values, _ = _histogram(lengths)
    return int(values[0]), int(values[-1])


def _check_countable(name: str, longest: np.int64, counts: NDArray[np.int64]) -> None:
    """Refuses lengths whose padded frames in sum would overflow int64, were all padded to `longest`."""
    if int(longest) * int(counts.sum()) >= 2**62:
        rule, remedy = "below 2**62 frames in all, padded", "Give them in a coarser unit."
        raise checks.value_error(name, rule, int(longest), remedy)


def _check_buckets(buckets: int) -> int:
    return checks.check_whole("buckets", buckets, minimum=1, remedy="Give the number of buckets, 6 say.")


def _whole_edges(edges: ArrayLike) -> NDArray[np.int64]:
    try:
        array = np.asarray(edges)
    except ValueError as error:  # rows of different widths
        raise checks.value_error("edges", "of shape [buckets]", edges, _EDGES_REMEDY) from error
    if array.ndim != 1:
        raise checks.value_error("edges", "of shape [buckets]", array.shape, _EDGES_REMEDY)
    if array.dtype.kind not in "iuf":
        raise checks.type_error("edges", _EDGES_RULE, array.tolist(), _EDGES_REMEDY)
    if array.dtype.kind == "f":
        array = array.astype(np.float64)  # half precision cannot be held against 2**63
    good = (array >= 1) & (array < 2**63) & (np.floor(array) == array)  # NaN compares as False
    if not good.all():
        at = int(np.argmin(good))
        raise checks.value_error("edges", _EDGES_RULE, array[at].item(), _EDGES_REMEDY, at=f"bucket {at}")
    return array.astype(np.int64)


def _whole(low: int, high: int, edge_at: Callable[..., NDArray[np.float64]], buckets: int) -> NDArray[np.int64]:
    """Edges at the shares 1/buckets ... 1 of the way, rounded down to whole lengths; the last is exact."""
    # 1e-9: a quotient that is whole in exact arithmetic may come out just below, and on some platforms only.
    inner = np.floor(edge_at(np.arange(1, buckets) / buckets) + 1e-9).astype(np.int64)
    return np.unique(np.append(np.clip(inner, low, high), high))

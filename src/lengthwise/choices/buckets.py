"""Bucket edges: which lengths share a bucket.

Bucket b holds the lengths in (edges[b - 1], edges[b]]. Edges are whole numbers, rise strictly, and the last is the
longest length. There are fewer edges than buckets asked for where there are too few distinct lengths.

Of sequences of several lengths, [n, dims], a bucket has an edge for each: edges are [buckets, dims], in the order that
the module `boxes` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _exact, _kernels, checks
from lengthwise.choices.boxes import cross_edges, find_boxes, optimal_rows, sort_rows
from lengthwise.choices.columns import distinct
from lengthwise.lengths import as_lengths

_EDGES_RULE, _EDGES_REMEDY = "whole numbers from 1 to 2**63 - 1", "Give the longest length of each bucket."


def optimal_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges that pad least: for one length a sequence, the exact optimum of Khomenko's objective.

    Minimises the sum over buckets of count x longest, which is the padded frames when each bucket is padded to its
    edge. Batches padded only to their own longest pad less, and their optimum may differ a little.

    With several lengths, a sequence is padded to all edges of the first bucket that holds it, and the padded frames
    are summed over the lengths. There the edges are found by search. They pad no more than a grid of optimal edges of
    each length, which is grown edge by edge. They are sure to be the optimum only for one bucket, or for as many as
    there are distinct sequences. On 1,260 random sets small enough to try all edges, the search found the optimum for
    97 in 100, and took at most 3 % more frames (see docs/results.md).

    Args:
        lengths: [n] or [n, dims], at least 1 each.
        buckets: How many at most; Q in the paper.

    Returns:
        [min(buckets, distinct lengths)] edges, rising; or [k, dims], k at most `buckets`, rising by their sum.

    Raises:
        ValueError: `buckets` below 1, no lengths, or 2**62 frames in all when padded to the longest.

    >>> optimal_edges([1, 2, 9, 10], 2)
    array([ 2, 10])
    >>> optimal_edges([[1, 2], [2, 1], [9, 4], [10, 3]], 2)
    array([[ 2,  2],
           [10,  4]])

    References:
        Khomenko et al. 2016, section III.A. The paper's recurrence, dp[i][k] = min over j < i of dp[j][k-1] + i x
        (count in (j, i]) as corrected, takes O(Q Lmax^2). Here a bucket has a price, and bisection finds the price at
        which the cheapest division has Q buckets: Aggarwal, Schieber, Tokuyama 1994, "Finding a minimum-weight k-link
        path in graphs with the concave Monge property and applications". Each price takes time and memory linear in
        the distinct lengths, whatever Q, because j enters only as a line in i.
        Several lengths are ours: each length is rounded up to at most 64 optimal edges of its own. Buckets begin as
        the best cuts of one box, and seven times at random. One after another is then placed anew where it saves most,
        until none saves any more; the best of the eight is taken. More than 16 buckets begin fewer times, and those of
        more than 128 are the first cuts, or the grid.
    """
    buckets, array = _check_buckets(buckets), _some_lengths(lengths)
    if array.ndim == 2:
        return optimal_rows(array, buckets, optimal_edges)
    values, counts = _histogram(array)
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


def uniform_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges of equal width between the shortest and the longest length.

    Of [n, dims], each length is divided by itself, and the products in which a sequence is are the buckets.

    >>> uniform_edges([10, 20, 50], 4)
    array([20, 30, 40, 50])
    """
    array = _some_lengths(lengths)
    if array.ndim == 2:
        return cross_edges(array, _check_buckets(buckets), uniform_edges)
    low, high = _ends_of(array)
    most = high - low + 1  # buckets, where every whole length is an edge
    return _whole(low, high, lambda steps: low + (high - low) * steps, min(_check_buckets(buckets), most))


def exponential_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges whose widths grow by a constant factor, from the shortest to the longest length.

    Of [n, dims], each length is divided by itself, and the products in which a sequence is are the buckets.

    >>> exponential_edges([10, 20, 160], 4)
    array([ 20,  40,  80, 160])
    """
    array = _some_lengths(lengths)
    if array.ndim == 2:
        return cross_edges(array, _check_buckets(buckets), exponential_edges)
    low, high = _ends_of(array)
    growth = _exact.log(high / low)
    most = math.ceil(high * growth) + 1  # buckets, where the widest is less than a frame
    return _whole(low, high, lambda steps: low * _exact.exps(steps * growth), min(_check_buckets(buckets), most))


def quantile_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges that leave about equally many sequences in each bucket; equal lengths stay together.

    Of [n, dims], each length is divided by itself, and the products in which a sequence is are the buckets. These
    are then not of equal counts.

    >>> quantile_edges([1, 2, 3, 4, 5, 90], 3)
    array([ 2,  4, 90])
    """
    array = _some_lengths(lengths)
    if array.ndim == 2:
        return cross_edges(array, _check_buckets(buckets), quantile_edges)
    values, counts = _histogram(array)
    reached = np.cumsum(counts)  # of the lengths [1, 1, 2, 5]: values [1, 2, 5], reached [2, 3, 4]
    buckets = min(_check_buckets(buckets), int(reached[-1]))
    # In 2 buckets, 2 and 4 sequences are to be reached: at the values 1 and 5.
    wanted = -(-reached[-1] * np.arange(1, buckets + 1) // buckets)
    return distinct(values[np.searchsorted(reached, wanted)])


EDGES: dict[str, Callable[[ArrayLike, int], NDArray[np.int64]]] = {
    "optimal": optimal_edges,
    "uniform": uniform_edges,
    "quantile": quantile_edges,
    "exponential": exponential_edges,
}


def padded_frames(lengths: ArrayLike, edges: ArrayLike) -> int:
    """Frames computed when every sequence is padded to the edge of its bucket: Khomenko's objective.

    Args:
        lengths: [n] or [n, dims], at least 1 each.
        edges: [buckets] whole numbers, rising; the last no shorter than the longest length. Or [buckets, dims] in any
            order; each sequence counts in the bucket that holds it with the fewest frames.

    Raises:
        ValueError: No lengths, `edges` not as above, or 2**62 frames or more in all.
        TypeError: `edges` that are not numbers.

    >>> padded_frames([1, 2, 9, 10], [2, 10])
    24
    >>> padded_frames([[1, 2], [2, 1], [9, 4]], [[2, 2], [9, 4]])
    21
    """
    array = _some_lengths(lengths)
    edges = _whole_edges(edges, array.ndim)
    if array.ndim == 2:
        return _frames_in_boxes(array, edges)
    values, counts = _histogram(array)
    if np.any(np.diff(edges) <= 0) or edges.max(initial=0) < values[-1]:
        rule = f"rising, the last at least the longest length, {values[-1]}"
        raise checks.value_error("edges", rule, edges.tolist(), _EDGES_REMEDY)
    padded = edges[np.searchsorted(edges, values)]  # edges (2, 10) for the lengths [1, 2, 9, 10]: [2, 2, 10, 10]
    _check_countable("edges", int(padded[-1]), len(array))
    return int((padded * counts).sum())


def find_bucket(lengths: NDArray[np.int64] | NDArray[np.float64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bucket of each of `lengths` [n] or [n, dims], by edges in their order; as many as there are if none holds it.

    >>> find_bucket(np.array([9, 10, 11, 21]), np.array([10, 20]))
    array([0, 0, 1, 2])
    """
    return find_boxes(lengths, edges) if edges.ndim == 2 else np.searchsorted(edges, lengths)


def _frames_in_boxes(lengths: NDArray[np.int64], edges: NDArray[np.int64]) -> int:
    if edges.shape[1:] != lengths.shape[1:]:
        rule = f"of shape [buckets, {lengths.shape[1]}], as sequences have so many lengths"
        raise checks.value_error("edges", rule, edges.shape, _EDGES_REMEDY)
    _check_countable("edges", sum(map(int, edges.max(axis=0, initial=0))), len(lengths))
    edges = sort_rows(edges)
    bucket = find_bucket(lengths, edges)
    if (bucket == len(edges)).any():
        at = int(np.argmax(bucket == len(edges)))
        rule = f"such that a bucket holds {tuple(lengths[at].tolist())}"
        raise checks.value_error("edges", rule, edges.tolist(), "Add longer ones.", at=f"sequence {at}")
    return int(edges.sum(axis=1)[bucket].sum())


def _some_lengths(lengths: ArrayLike) -> NDArray[np.int64]:
    """At least one sequence: [n], or [n, dims] of several lengths each."""
    array = as_lengths(lengths)
    if not len(array):
        raise checks.value_error(
            "lengths", "of at least one sequence", array.shape, "Give the lengths of one sequence at least."
        )
    _check_countable("lengths", sum(map(int, np.atleast_1d(array.max(axis=0)))), len(array))
    return array


def _histogram(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # All edges depend on the distinct lengths and their counts alone: millions of sequences become some thousand.
    return np.unique(lengths, return_counts=True)


def _ends_of(lengths: NDArray[np.int64]) -> tuple[int, int]:
    """The shortest and the longest length."""
    return int(lengths.min()), int(lengths.max())


def _check_countable(name: str, longest: int, count: int) -> None:
    """Refuses lengths whose padded frames in sum would overflow int64, were all padded to `longest`."""
    if longest * count >= 2**62:
        rule, remedy = "below 2**62 frames in all, padded", "Give them in a coarser unit."
        raise checks.value_error(name, rule, longest, remedy)


def _check_buckets(buckets: int) -> int:
    return checks.check_whole("buckets", buckets, minimum=1, remedy="Give the number of buckets, such as 6.")


def _whole_edges(edges: ArrayLike, dims: int) -> NDArray[np.int64]:
    rule = "of shape [buckets]" if dims == 1 else "of shape [buckets, dims]"
    try:
        array = np.asarray(edges)
    except ValueError as error:  # rows of different widths
        raise checks.value_error("edges", rule, edges, _EDGES_REMEDY) from error
    if array.ndim != dims:
        raise checks.value_error("edges", rule, array.shape, _EDGES_REMEDY)
    if array.dtype.kind not in "iuf":
        raise checks.type_error("edges", _EDGES_RULE, array.tolist(), _EDGES_REMEDY)
    if array.dtype.kind == "f":
        array = array.astype(np.float64)  # half precision cannot be held against 2**63
    good = (array >= 1) & (array < 2**63) & (np.floor(array) == array)  # NaN compares as False
    if not good.all():
        at = int(np.argmin(good.reshape(len(array), -1).all(axis=1)))
        raise checks.value_error("edges", _EDGES_RULE, array[at].tolist(), _EDGES_REMEDY, at=f"bucket {at}")
    return array.astype(np.int64)


def _whole(low: int, high: int, edge_at: Callable[..., NDArray[np.float64]], buckets: int) -> NDArray[np.int64]:
    """Edges at the shares 1/buckets ... 1 of the way, rounded down to whole lengths; the last is exact."""
    # 1e-9: a quotient that is whole in exact arithmetic may come out just below, and on some platforms only.
    inner = np.floor(edge_at(np.arange(1, buckets) / buckets) + 1e-9).astype(np.int64)
    return distinct(np.append(np.clip(inner, low, high), high))

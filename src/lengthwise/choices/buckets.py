"""Buckets: groups of similar lengths, divided by edges.

Bucket b holds the lengths in (edges[b - 1], edges[b]]. Edges are whole numbers and rise strictly. If they are computed
here, the last edge is the longest length. There may be fewer edges than asked for: at most one for each distinct length
(optimal, quantile), or for each whole length from the shortest to the longest (uniform, exponential).

If sequences have several lengths, the user gives the edges, as rows [buckets, dims]. Rows are sorted by their sum; rows
of equal sum by their first edge, then by their second, and so on. A sequence is in the first bucket that holds it. With
the rows (9, 4), (5, 9) and (9, 9), the sequence (5, 4) is in the first, (5, 8) in the second, and (6, 8) in the third.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _exact, _kernels, checks
from lengthwise.choices.arithmetic import distinct, one_length
from lengthwise.lengths import as_lengths


def optimal_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Finds the edges that pad least: the exact optimum of Khomenko's objective.

    Minimises the sum over buckets of count x longest, which is the padded frames when each bucket is padded to its
    edge. If each batch is padded only to its own longest sequence, there is less padding, and the best edges may differ
    a little.

    Args:
        lengths: [n], at least 1 each.
        buckets: The most buckets; Q in the paper.

    Returns:
        [min(buckets, distinct lengths)] edges, rising.

    Raises:
        ValueError: `buckets` is below 1, there are no lengths, a sequence has several, or all sequences padded to the
            longest have 2**62 frames or more.

    >>> optimal_edges([1, 2, 9, 10], 2)
    array([ 2, 10])

    References:
        Khomenko et al. 2016, section III.A. Let dp[i][k] be the fewest padded frames of all sequences up to length i in
        k buckets. Once the misprinted indices of the paper are corrected, its recurrence is dp[i][k] = min over j < i
        of dp[j][k-1] + i x (count in (j, i]). It takes O(Q Lmax^2), where Lmax is the longest length.

        Here, each bucket costs a price in addition to its frames. Bisection finds the price at which the cheapest
        division has Q buckets: Aggarwal, Schieber, Tokuyama 1994, "Finding a minimum-weight k-link path in graphs with
        the concave Monge property and applications". Each price takes time and memory linear in the number of distinct
        lengths, for any Q.
    """
    buckets, (values, counts) = _check_buckets(buckets), _count_lengths(lengths)
    if buckets >= len(values):
        return values
    values, reached = np.concatenate([[0], values]), np.concatenate([[0], np.cumsum(counts)])
    best, most, ends = np.empty_like(values), np.empty_like(values), np.empty(buckets, np.int64)
    # Each further bucket saves at most as much as the one before: say the second saves 40 frames, the third 9, the
    # fourth 4. At a price of 9, three buckets cost as much as two; at any higher price, three cost more. So 9 is the
    # highest price at which three buckets are among the cheapest.
    price, too_high = 0, int(values[-1]) * int(reached[-1]) + 1
    while too_high - price > 1:
        middle = (price + too_high) // 2
        _kernels.price_buckets(values, reached, middle, best, most)
        price, too_high = (middle, too_high) if most[-1] >= buckets else (price, middle)
    _kernels.price_buckets(values, reached, price, best, most)
    _kernels.bucket_ends(values, reached, price, best, most, ends)
    return values[ends]


def uniform_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Finds the edges of equally wide buckets, from the shortest to the longest length.

    >>> uniform_edges([10, 20, 50], 4)
    array([20, 30, 40, 50])
    """
    low, high = _find_ends(lengths)
    buckets = min(_check_buckets(buckets), high - low + 1)  # with so many, every whole length is already an edge
    return _round_edges(low, high, buckets, lambda share: low + (high - low) * share)


def exponential_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Finds the edges of buckets whose widths grow by a constant factor, from the shortest to the longest length.

    >>> exponential_edges([10, 20, 160], 4)
    array([ 20,  40,  80, 160])
    """
    low, high = _find_ends(lengths)
    growth = _exact.log(high / low)
    # With more buckets than this, even the widest would be narrower than one frame.
    buckets = min(_check_buckets(buckets), math.ceil(high * growth) + 1)
    return _round_edges(low, high, buckets, lambda share: low * _exact.exps(share * growth))


def quantile_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Finds edges for about equal counts of sequences in each bucket; equal lengths share a bucket.

    >>> quantile_edges([1, 2, 3, 4, 5, 90], 3)
    array([ 2,  4, 90])
    """
    values, counts = _count_lengths(lengths)
    reached = np.cumsum(counts)  # for the lengths [1, 1, 2, 5]: values [1, 2, 5], reached [2, 3, 4]
    buckets = min(_check_buckets(buckets), int(reached[-1]))
    # Of 2 buckets, the first ends at sequence 2 and the second at sequence 4, so the edges are 1 and 5.
    ends = -(-reached[-1] * np.arange(1, buckets + 1) // buckets)
    return distinct(values[np.searchsorted(reached, ends)])


EDGES: dict[str, Callable[[ArrayLike, int], NDArray[np.int64]]] = {
    "optimal": optimal_edges,
    "uniform": uniform_edges,
    "quantile": quantile_edges,
    "exponential": exponential_edges,
}


def padded_frames(lengths: NDArray[np.int64], edges: NDArray[np.int64]) -> int:
    """Counts the frames when every sequence is padded to the edge of its bucket: Khomenko's objective.

    >>> padded_frames(np.array([1, 2, 9, 10]), np.array([2, 10]))
    24
    """
    return int(edges[np.searchsorted(edges, lengths)].sum())


def find_bucket(lengths: NDArray[np.int64] | NDArray[np.float64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Finds the bucket of each of `lengths` [n] or [n, dims]; `len(edges)` if no bucket holds it.

    >>> find_bucket(np.array([9, 10, 11, 21]), np.array([10, 20]))
    array([0, 0, 1, 2])
    >>> find_bucket(np.array([[5, 4], [5, 8], [6, 8], [1, 10]]), np.array([[9, 4], [5, 9], [9, 9]]))
    array([0, 1, 2, 3])
    """
    if edges.ndim == 1:
        return np.searchsorted(edges, lengths)
    buckets = np.full(len(lengths), len(edges))
    for bucket in range(len(edges) - 1, -1, -1):
        buckets[(lengths <= edges[bucket]).all(axis=1)] = bucket
    return buckets


def sort_rows(edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the distinct rows, sorted by their sum; rows of equal sum by their first edge, their second, and so on.

    >>> sort_rows(np.array([[9, 9], [5, 9], [9, 4], [5, 9]])).tolist()
    [[9, 4], [5, 9], [9, 9]]
    """
    rows = np.unique(edges, axis=0)  # sorted by the first edge, then by the second, and so on
    return rows[np.argsort(rows.sum(axis=1), kind="stable")]


def check_edges_hold(sizes: NDArray[np.float64], edges: tuple[Any, ...], *, drop: bool) -> None:
    """Refuses edges that are not for as many lengths as a sequence has; without `drop`, also sequences in no bucket."""
    array, dims = np.array(edges, np.int64), sizes.shape[1] if sizes.ndim == 2 else 1
    if array.shape[1:] != sizes.shape[1:]:
        rule, remedy = "whole numbers, because sequences have one length", "Write (100, 200), for example."
        if dims > 1:
            rule = f"rows of {dims} edges, one for each length"
            remedy = f"Write ({(100,) * dims}, {(200,) * dims}), for example."
        raise checks.value_error("edges", rule, edges, remedy)
    beyond = find_bucket(sizes, array) == len(array)
    if drop or not beyond.any():
        return
    remedy = "Add a longer edge, or choose longer='drop'."
    if dims == 1:
        rule = f"such that a bucket holds the longest sequence, {sizes.max():.16g}"
        raise checks.value_error("edges", rule, edges, remedy)
    # The error shows the lengths of the sequence, not its index: `sizes` may hold only some of the user's sequences.
    longest = sizes[beyond][sizes[beyond].sum(axis=1).argmax()].astype(np.int64)
    raise checks.value_error("edges", f"such that a bucket holds {tuple(longest.tolist())}", edges, remedy)


def check_edges(edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns edges as whole numbers, after checking that they rise; sorts rows as `sort_rows` does."""
    remedy = "Give the longest length of each bucket, rising, in the unit of the lengths: (100, 200, 400), for example."
    plain = _as_plain(edges)
    if not isinstance(plain, Iterable):
        raise checks.type_error("edges", "whole numbers", edges, remedy)
    values = [_as_plain(edge) for edge in plain]
    if values and all(isinstance(row, Iterable) and not isinstance(row, str) for row in values):
        return _check_rows([tuple(map(_as_plain, row)) for row in values])
    numbers = tuple(checks.check_whole("edges", edge, minimum=1, remedy=remedy) for edge in values)
    if not numbers or any(low >= high for low, high in pairwise(numbers)):
        raise checks.value_error("edges", "rising and not empty", numbers, remedy)
    return numbers


def _as_plain(value: Any) -> Any:
    """Returns an array or a tensor as lists and numbers: the items of a tensor are tensors, not numbers."""
    return value.tolist() if hasattr(value, "tolist") else value


def _check_rows(rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    remedy = "Give an edge for each length of a sequence, bucket by bucket: ((100, 80), (200, 160)), for example."
    for row in rows:
        if not row or len(row) != len(rows[0]):
            raise checks.value_error("edges", "rows of equally many edges", row, remedy)
    numbers = [tuple(checks.check_whole("edges", edge, minimum=1, remedy=remedy) for edge in row) for row in rows]
    rising = sorted(numbers, key=lambda row: (sum(row), row))
    for low, high in pairwise([(), *rising]):
        if low == high or sum(high) >= 2**63:
            rule = "different from each other" if low == high else "below 2**63 in sum"
            raise checks.value_error("edges", rule, high, remedy)
    return tuple(rising) if len(rising[0]) > 1 else tuple(row[0] for row in rising)


def _count_lengths(lengths: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the distinct lengths and their counts.

    All edges depend on these alone: millions of sequences become some thousand numbers.
    """
    values, counts = np.unique(some_lengths(lengths), return_counts=True)
    if (padded := int(values[-1]) * int(counts.sum())) >= 2**62:
        rule, remedy = "below 2**62 frames in all when padded to the longest", "Give them in a coarser unit."
        raise checks.value_error("lengths", rule, padded, remedy)
    return values, counts


def some_lengths(lengths: ArrayLike) -> NDArray[np.int64]:
    """Returns the lengths [n] of at least one sequence; refuses several lengths a sequence."""
    array = one_length(as_lengths(lengths))
    if not len(array):
        remedy = "Give the lengths of at least one sequence."
        raise checks.value_error("lengths", "of at least one sequence", array.shape, remedy)
    return array


def _find_ends(lengths: ArrayLike) -> tuple[int, int]:
    """Returns the shortest and the longest length."""
    values, _ = _count_lengths(lengths)
    return int(values[0]), int(values[-1])


def _check_buckets(buckets: int) -> int:
    return checks.check_whole("buckets", buckets, minimum=1, remedy="Give the number of buckets, such as 6.")


def _round_edges(low: int, high: int, buckets: int, edge_at: Callable[..., NDArray[np.float64]]) -> NDArray[np.int64]:
    """Returns `edge_at` of 1/buckets, 2/buckets, ... as edges, rounded down to whole lengths; the last is `high`."""
    # 1e-9: an edge that is whole in exact arithmetic may come out just below that number, on some platforms only.
    inner = np.floor(edge_at(np.arange(1, buckets) / buckets) + 1e-9).astype(np.int64)
    return distinct(np.append(np.clip(inner, low, high), high))

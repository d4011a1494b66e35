"""Buckets: groups of similar lengths, divided by edges.

Bucket b holds the lengths in (edges[b - 1], edges[b]]. Edges are whole numbers, rise strictly, and the last is the
longest length. Few distinct lengths have fewer edges than `buckets`.

For several lengths, edges are rows [buckets, dims], and the user gives them. Rows rise by their sum, and rows of equal
sum by their edges from the first on. A sequence is in the first bucket that holds it, because that pads it least. In
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
    edge. Batches padded only to their own longest pad less, and their optimum may differ a little.

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
        Khomenko et al. 2016, section III.A. The paper's recurrence, dp[i][k] = min over j < i of dp[j][k-1] + i x
        (count in (j, i]) as corrected, takes O(Q Lmax^2). Here a bucket has a price, and bisection finds the price at
        which the cheapest division has Q buckets: Aggarwal, Schieber, Tokuyama 1994, "Finding a minimum-weight k-link
        path in graphs with the concave Monge property and applications". Each price takes time and memory linear in
        the distinct lengths, for any Q, because each j is a line in i.
    """
    buckets, (values, counts) = _check_buckets(buckets), _count_lengths(lengths)
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
    """Finds edges of equal width between the shortest and the longest length.

    >>> uniform_edges([10, 20, 50], 4)
    array([20, 30, 40, 50])
    """
    low, high = _find_ends(lengths)
    buckets = min(_check_buckets(buckets), high - low + 1)  # every whole length is an edge
    return _round_edges(low, high, buckets, lambda share: low + (high - low) * share)


def exponential_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Finds edges whose widths grow by a constant factor, from the shortest to the longest length.

    >>> exponential_edges([10, 20, 160], 4)
    array([ 20,  40,  80, 160])
    """
    low, high = _find_ends(lengths)
    growth = _exact.log(high / low)
    buckets = min(
        _check_buckets(buckets), math.ceil(high * growth) + 1
    )  # with more, even the widest has less than a frame
    return _round_edges(low, high, buckets, lambda share: low * _exact.exps(share * growth))


def quantile_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Finds edges for about equal counts of sequences in each bucket; equal lengths share a bucket.

    >>> quantile_edges([1, 2, 3, 4, 5, 90], 3)
    array([ 2,  4, 90])
    """
    values, counts = _count_lengths(lengths)
    reached = np.cumsum(counts)  # for the lengths [1, 1, 2, 5]: values [1, 2, 5], reached [2, 3, 4]
    buckets = min(_check_buckets(buckets), int(reached[-1]))
    # 2 buckets end at 2 and 4 sequences: at the values 1 and 5.
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
    """Returns the distinct rows, rising by their sum, and rows of equal sum by their edges from the first on.

    >>> sort_rows(np.array([[9, 9], [5, 9], [9, 4], [5, 9]])).tolist()
    [[9, 4], [5, 9], [9, 9]]
    """
    rows = np.unique(edges, axis=0)  # by their edges from the first on
    return rows[np.argsort(rows.sum(axis=1), kind="stable")]


def check_edges_hold(sizes: NDArray[np.float64], edges: tuple[Any, ...], *, drop: bool) -> None:
    """Refuses edges for another number of lengths and, without `drop`, sequences that no bucket holds."""
    array, dims = np.array(edges, np.int64), sizes.shape[1] if sizes.ndim == 2 else 1
    if array.shape[1:] != sizes.shape[1:]:
        rule, remedy = "whole numbers, as sequences have one length", "Write (100, 200), for example."
        if dims > 1:
            rule = f"rows of {dims} edges, one for each length"
            remedy = f"Write ({(100,) * dims}, {(200,) * dims}), for example."
        raise checks.value_error("edges", rule, edges, remedy)
    beyond = find_bucket(sizes, array) == len(array)
    if drop or not beyond.any():
        return
    remedy = "Add a longer edge, or choose longer='drop'."
    if dims == 1:
        raise checks.value_error("edges", f"no shorter than the longest sequence, {sizes.max():.16g}", edges, remedy)
    # Name the lengths: an index would count the sequences that the order is fitted to, which the user does not know.
    longest = sizes[beyond][sizes[beyond].sum(axis=1).argmax()].astype(np.int64)
    raise checks.value_error("edges", f"such that a bucket holds {tuple(longest.tolist())}", edges, remedy)


def check_edges(edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns edges as whole numbers, rising; rows as `sort_rows` sorts them."""
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
            raise checks.value_error("edges", "rows of one width", row, remedy)
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
    if int(values[-1]) * int(counts.sum()) >= 2**62:  # the sum of all, padded to the longest
        rule, remedy = "below 2**62 frames in all, padded", "Give them in a coarser unit."
        raise checks.value_error("lengths", rule, int(values[-1]), remedy)
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
    """Returns the edges at the shares 1/buckets ... 1, rounded down to whole lengths; the last is exact."""
    # 1e-9: a quotient that is whole in exact arithmetic may come out just below, on some platforms only.
    inner = np.floor(edge_at(np.arange(1, buckets) / buckets) + 1e-9).astype(np.int64)
    return distinct(np.append(np.clip(inner, low, high), high))

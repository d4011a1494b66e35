"""Bucket edges: which lengths share a bucket.

Bucket b holds the lengths in (edges[b - 1], edges[b]]. Edges are whole numbers, rise strictly, and the last is the
longest length. There are fewer edges than buckets asked for where there are too few distinct lengths.

Buckets of several lengths have an edge for each, [buckets, dims], and are given by hand. Rows rise by their sum, and
rows of one sum by their edges from the first on. A sequence is in the first bucket that holds it, which is the one that
pads it least. In the rows (9, 4), (5, 9) and (9, 9), the sequence (5, 4) is in the first, (5, 8) in the second, and
(6, 8) in the third.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _exact, _kernels, checks
from lengthwise.choices.arithmetic import distinct
from lengthwise.lengths import as_lengths


def optimal_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges that pad least: the exact optimum of Khomenko's objective.

    Minimises the sum over buckets of count x longest, which is the padded frames when each bucket is padded to its
    edge. Batches padded only to their own longest pad less, and their optimum may differ a little.

    Args:
        lengths: [n], at least 1 each.
        buckets: How many at most; Q in the paper.

    Returns:
        [min(buckets, distinct lengths)] edges, rising.

    Raises:
        ValueError: `buckets` below 1, no lengths, several lengths a sequence, or 2**62 frames in all when padded to
            the longest.

    >>> optimal_edges([1, 2, 9, 10], 2)
    array([ 2, 10])

    References:
        Khomenko et al. 2016, section III.A. The paper's recurrence, dp[i][k] = min over j < i of dp[j][k-1] + i x
        (count in (j, i]) as corrected, takes O(Q Lmax^2). Here a bucket has a price, and bisection finds the price at
        which the cheapest division has Q buckets: Aggarwal, Schieber, Tokuyama 1994, "Finding a minimum-weight k-link
        path in graphs with the concave Monge property and applications". Each price takes time and memory linear in
        the distinct lengths, whatever Q, because j enters only as a line in i.
    """
    buckets, array = _check_buckets(buckets), _some_lengths(lengths)
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

    >>> uniform_edges([10, 20, 50], 4)
    array([20, 30, 40, 50])
    """
    array = _some_lengths(lengths)
    low, high = _ends_of(array)
    most = high - low + 1  # buckets, where every whole length is an edge
    return _whole(low, high, lambda steps: low + (high - low) * steps, min(_check_buckets(buckets), most))


def exponential_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges whose widths grow by a constant factor, from the shortest to the longest length.

    >>> exponential_edges([10, 20, 160], 4)
    array([ 20,  40,  80, 160])
    """
    array = _some_lengths(lengths)
    low, high = _ends_of(array)
    growth = _exact.log(high / low)
    most = math.ceil(high * growth) + 1  # buckets, where the widest is less than a frame
    return _whole(low, high, lambda steps: low * _exact.exps(steps * growth), min(_check_buckets(buckets), most))


def quantile_edges(lengths: ArrayLike, buckets: int) -> NDArray[np.int64]:
    """Edges that leave about equally many sequences in each bucket; equal lengths stay together.

    >>> quantile_edges([1, 2, 3, 4, 5, 90], 3)
    array([ 2,  4, 90])
    """
    array = _some_lengths(lengths)
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


def padded_frames(lengths: NDArray[np.int64], edges: NDArray[np.int64]) -> int:
    """Counts the frames when every sequence is padded to the edge of its bucket: Khomenko's objective.

    >>> padded_frames(np.array([1, 2, 9, 10]), np.array([2, 10]))
    24
    """
    return int(edges[np.searchsorted(edges, lengths)].sum())


def find_bucket(lengths: NDArray[np.int64] | NDArray[np.float64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bucket of each of `lengths` [n] or [n, dims], by edges in their order; `len(edges)` if none holds it.

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
    """The rows in the order of this file, each once.

    >>> sort_rows(np.array([[9, 9], [5, 9], [9, 4], [5, 9]])).tolist()
    [[9, 4], [5, 9], [9, 9]]
    """
    rows = np.unique(edges, axis=0)  # by their edges from the first on
    return rows[np.argsort(rows.sum(axis=1), kind="stable")]


def one_length(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lengths [n] or [n, 1] as [n]; several lengths a sequence are refused, for which edges are given by hand."""
    if lengths.ndim == 1 or lengths.shape[1] == 1:
        return lengths.reshape(len(lengths))
    remedy = (
        "Take one, such as lengths[:, 0] (FILE:0); for all, give edges by hand: Bucketed(edges=((20, 30), (60, 50)))."
    )
    raise checks.value_error("lengths", "of shape [n]", lengths.shape, remedy)


def check_held(sizes: NDArray[np.float64], edges: tuple[Any, ...], *, drop: bool) -> None:
    """Refuses edges of another number of lengths; and, unless they are to `drop`, sequences that no bucket holds."""
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
    # The index is among the sequences that the order is fitted to: their lengths say more.
    longest = sizes[beyond][sizes[beyond].sum(axis=1).argmax()].astype(np.int64)
    raise checks.value_error("edges", f"such that a bucket holds {tuple(longest.tolist())}", edges, remedy)


def check_edges(edges: tuple[Any, ...]) -> tuple[Any, ...]:
    """Edges as whole numbers, rising; rows of them in the order of this file."""
    remedy = "Give the longest length of each bucket, rising, in the unit of the lengths: (100, 200, 400), for example."
    plain = _as_plain(edges)
    if not isinstance(plain, Iterable):
        raise checks.type_error("edges", "whole numbers", edges, remedy)
    given = [_as_plain(edge) for edge in plain]
    if given and all(isinstance(row, Iterable) and not isinstance(row, str) for row in given):
        return _check_rows([tuple(map(_as_plain, row)) for row in given])
    whole = tuple(checks.check_whole("edges", edge, minimum=1, remedy=remedy) for edge in given)
    if not whole or any(low >= high for low, high in pairwise(whole)):
        raise checks.value_error("edges", "rising and not empty", whole, remedy)
    return whole


def _as_plain(value: Any) -> Any:
    """An array or a tensor as lists and numbers: what a tensor holds are tensors, which are no numbers."""
    return value.tolist() if hasattr(value, "tolist") else value


def _check_rows(rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    remedy = "Give an edge for each length of a sequence, bucket by bucket: ((100, 80), (200, 160)), for example."
    for row in rows:
        if not row or len(row) != len(rows[0]):
            raise checks.value_error("edges", "rows of one width", row, remedy)
    whole = [tuple(checks.check_whole("edges", edge, minimum=1, remedy=remedy) for edge in row) for row in rows]
    rising = sorted(whole, key=lambda row: (sum(row), row))
    for low, high in pairwise([(), *rising]):
        if low == high or sum(high) >= 2**63:
            rule = "different from each other" if low == high else "below 2**63 in sum"
            raise checks.value_error("edges", rule, high, remedy)
    return tuple(rising) if len(rising[0]) > 1 else tuple(row[0] for row in rising)


def _some_lengths(lengths: ArrayLike) -> NDArray[np.int64]:
    """At least one sequence, of one length each: [n]."""
    array = one_length(as_lengths(lengths))
    if not len(array):
        raise checks.value_error(
            "lengths", "of at least one sequence", array.shape, "Give the lengths of one sequence at least."
        )
    if int(array.max()) * len(array) >= 2**62:  # all padded to the longest, in sum
        rule, remedy = "below 2**62 frames in all, padded", "Give them in a coarser unit."
        raise checks.value_error("lengths", rule, int(array.max()), remedy)
    return array


def _histogram(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # All edges depend on the distinct lengths and their counts alone: millions of sequences become some thousand.
    return np.unique(lengths, return_counts=True)


def _ends_of(lengths: NDArray[np.int64]) -> tuple[int, int]:
    """The shortest and the longest length."""
    return int(lengths.min()), int(lengths.max())


def _check_buckets(buckets: int) -> int:
    return checks.check_whole("buckets", buckets, minimum=1, remedy="Give the number of buckets, such as 6.")


def _whole(low: int, high: int, edge_at: Callable[..., NDArray[np.float64]], buckets: int) -> NDArray[np.int64]:
    """Edges at the shares 1/buckets ... 1 of the way, rounded down to whole lengths; the last is exact."""
    # 1e-9: a quotient that is whole in exact arithmetic may come out just below, and on some platforms only.
    inner = np.floor(edge_at(np.arange(1, buckets) / buckets) + 1e-9).astype(np.int64)
    return distinct(np.append(np.clip(inner, low, high), high))

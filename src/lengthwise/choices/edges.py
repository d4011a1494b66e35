"""Edges as a user gives them to an order: whole numbers, one a bucket, or one for each length of its sequences."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.choices.buckets import find_bucket


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
    """Edges as whole numbers, rising; rows of them in the order of the module `boxes`."""
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

"""Shapes: the few (rows, padded length) of batches that are padded to edges, known before any epoch is planned.

    shapes   [k, 1 + dims]   int64: rows and padded lengths; padded lengths rise by their sum

A model is compiled once for each shape. A batch of fewer rows is filled up with masked rows.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.arithmetic import count_multiple, raise_counts
from lengthwise.choices.batching import Batching, check_batching
from lengthwise.choices.buckets import find_bucket, sort_rows
from lengthwise.choices.cut import Budget, DynamicSize, FixedSize
from lengthwise.choices.deal import Balanced
from lengthwise.choices.order import Bucketed
from lengthwise.planning import make_plan


def batch_shapes(lengths: ArrayLike, batching: Batching) -> NDArray[np.int64]:
    """Returns the shapes of batches that are padded to the edges of buckets, for every seed, epoch and world size.

    Every sequence of a bucket counts as long as the edge. So the number of sequences in a bucket decides its cut, and
    one plan shows the largest batch of each bucket. Portions and split tails make batches smaller.

    Args:
        lengths: [n] or [n, dims], as they will be planned. With `times`, give the most copies that an epoch takes:
            `np.repeat(lengths, np.ceil(times).astype(int), axis=0)`.
        batching: With an order that pads to edges.

    Returns:
        [k, 2] int64: rows and padded length, one for each bucket that has batches, padded lengths rising.
        With several lengths [k, 1 + dims]: rows, and a padded length for each, rising by their sum.
        Every batch of every plan has one of these padded lengths, and at most the rows beside it. This also holds under
        `DynamicSize(rule="paper")`, which overshoots, and `Budget(oversize="alone")`. A cut of your own must not make
        larger batches of fewer sequences.

    Raises:
        ValueError: The order does not pad to edges; or as `make_plan`.

    >>> import lengthwise as lw
    >>> order = lw.Bucketed(edges=(10, 40), pad_to_edge=True)
    >>> batch_shapes([3, 9, 8, 10, 31, 40, 22], lw.Batching(budget=100, order=order))
    array([[ 4, 10],
           [ 2, 40]])
    """
    check_batching(batching)
    if not (isinstance(batching.order, Bucketed) and batching.order.pad_to_edge):
        remedy = "Take order=lw.Bucketed(buckets=8, pad_to_edge=True)."
        raise checks.value_error("order", "one that pads every batch to an edge", batching.order, remedy)
    if batching.takes_random_steps:
        return _shapes_of_steps(lengths, batching)
    # Planned without portions: a rank's part of a bucket has no larger batches. A tail that repeats splits none.
    plan = make_plan(lengths, dataclasses.replace(batching, deal=Balanced(tail="repeat")))
    padded_lengths = sort_rows(plan.padded_lengths)
    # Batches padded to [10, 40, 10] of [4, 2, 3] sequences: shape_of is [0, 1, 0], and the rows are [4, 2].
    shape_of = find_bucket(plan.padded_lengths, padded_lengths)
    rows = np.zeros(len(padded_lengths), np.int64)
    np.maximum.at(rows, shape_of, plan.batch_sizes)
    # A batch of 13 is filled up to 16 rows, at a multiple of 8: the cut has left room for them.
    return np.column_stack([raise_counts(rows, count_multiple(batching.cut)), padded_lengths])


def _shapes_of_steps(lengths: ArrayLike, batching: Batching) -> NDArray[np.int64]:
    """Returns the shapes of random steps. Batches may hold sequences of shorter buckets, so rows are upper limits."""
    cut = batching.cut
    plan = make_plan(lengths, dataclasses.replace(batching, deal=Balanced()))
    padded_lengths = np.unique(plan.padded_lengths, axis=0)
    if not len(padded_lengths):
        return np.empty((0, 1 + padded_lengths.shape[1]), np.int64)
    if isinstance(cut, FixedSize) and batching.deal.even:
        # No batch costs more than a full one of the longest.
        cut = _remake(DynamicSize, cut)
    elif isinstance(cut, DynamicSize):  # by the longest of all sequences, even if the order drops it
        cut = _remake(Budget, cut, budget=plan.max_cost)
    rows = cut.batch_sizes(padded_lengths, cost=batching.cost, longest=padded_lengths[-1])
    most = raise_counts(np.array([plan.count]), count_multiple(cut))
    return np.column_stack([np.minimum(rows, most).astype(np.int64), padded_lengths])


def _remake(kind: Any, cut: Any, **more: Any) -> Any:
    """Makes a cut of another `kind`, with the options that both have."""
    return kind(**{name: getattr(cut, name) for name in kind.__dataclass_fields__ if hasattr(cut, name)}, **more)

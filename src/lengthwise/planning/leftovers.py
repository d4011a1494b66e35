"""Leftovers: sequences that fill no batch of their bucket go to the next longer one, where that costs less.

    bucket     up to 4    up to 9          a budget of 72: 18 rows of 4, 8 rows of 9
    sequences  22         20
    own        18 4       8 8 4            five batches of full shapes: 360 frames
    next       18         8 8 8            the 4 join the 20: four batches, 288 frames

Whether a bucket passes its leftover on is decided for all of them together: what one passes on, the next may, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise._random import Key
from lengthwise.choices.cost import Cost, cost_of_one, costs_alone, costs_of
from lengthwise.choices.cut import Cut
from lengthwise.choices.multiples import count_multiple, fill_up
from lengthwise.planning.custom import check_batch_sizes, is_custom

_MOST_PASSED = 64  # buckets in a row that pass leftovers on: more save next to nothing


class Buckets(NamedTuple):
    """Buckets by rising edges: how many sequences each holds, [k], and the shape of its batches.

    edges   [k, dims]    what a batch is padded to
    rows    [k]          the most sequences of a batch
    full    [k]          what a batch of so many costs
    open    [k]          whether the bucket may take sequences of the one before: it holds them within the budget
    price                what so few sequences of a bucket cost that they are one batch: (bucket, count) to a cost
    """

    counts: NDArray[np.int64]
    edges: NDArray[np.int64]
    rows: NDArray[np.int64]
    full: NDArray[np.float64]
    open: NDArray[np.bool_]
    price: Callable[[int, int], float]


class Leftovers(NamedTuple):
    """How many sequences each bucket passes on, [k], and what all batches then cost, each as its full shape."""

    passed: NDArray[np.int64]
    cost: float


def describe_buckets(
    counts: NDArray[np.int64], edges: NDArray[np.int64], cut: Cut, cost: Cost, longest: NDArray[np.int64]
) -> Buckets:
    """The buckets of these edges, by what a cut and a cost say of them."""
    sizes = cut.batch_sizes(edges, cost=cost, longest=longest)
    sizes = check_batch_sizes(sizes, len(edges)) if is_custom(cut) else sizes
    rows = np.clip(sizes, 1, 2**40).astype(np.int64)
    holds = np.append(False, (edges[1:] >= edges[:-1]).all(axis=1))

    def price(bucket: int, count: int) -> float:
        """What so few sequences cost that they are one batch, which has no more rows than they fill."""
        few = np.minimum(rows[bucket], fill_up(np.array([count]), count_multiple(cut)))
        return cost_of_one(cost, int(few[0]), edges[bucket])

    fits = costs_alone(cost, edges) <= cut.max_cost(cost, longest)
    return Buckets(counts, edges, rows, costs_of(cost, rows, edges), holds & fits, price)


def settle_leftovers(buckets: Buckets) -> Leftovers:
    """Which buckets pass their leftovers on under which all batches cost least: exact.

    Between two buckets that pass nothing on, all that are between them do: so the best way to close each bucket is
    found from the best ways to close those before it. A bucket keeps at least one batch.
    """
    counts, rows, full = buckets.counts.tolist(), buckets.rows.tolist(), buckets.full.tolist()
    is_open, count = buckets.open.tolist(), len(buckets.counts)
    best, begins = np.full(count + 1, np.inf), np.zeros(count + 1, np.int64)
    best[0] = 0.0
    for begin in range(count):
        paid, carried = best[begin], 0
        for bucket in range(begin, min(count, begin + _MOST_PASSED)):
            held = counts[bucket] + carried
            batches = held // rows[bucket]
            # 61 sequences in rows of 24 are three batches, and 72 rows are computed.
            closed = paid + (-(-held // rows[bucket]) * full[bucket] if batches else buckets.price(bucket, held))
            # Of ways that cost the same, that of the latest begin: it passes the least on.
            if closed <= best[bucket + 1]:
                best[bucket + 1], begins[bucket + 1] = closed, begin
            carried = held - batches * rows[bucket]
            if not carried or not batches or bucket + 1 == count or not is_open[bucket + 1]:
                break
            paid += batches * full[bucket]
    passed, end = np.zeros(count, np.int64), count
    while end:
        begin, carried = int(begins[end]), 0
        for bucket in range(begin, end - 1):
            carried = (counts[bucket] + carried) % rows[bucket]
            passed[bucket] = carried
        end = begin
    return Leftovers(passed, float(best[count]))


def pass_leftovers_on(
    sequences: NDArray[np.int64],
    needed: NDArray[np.int64],
    boundaries: NDArray[np.int64],
    cut: Cut,
    cost: Cost,
    longest: NDArray[np.int64],
    key: Key,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The same for sequences in the order of their buckets: (sequences, what each needs, boundaries).

    Args:
        sequences: [m], bucket by bucket, at random within each.
        needed: [m, dims], the edges of each one's bucket.
        boundaries: [buckets - 1], where the next bucket begins.
        cut: What a batch holds.
        cost: What a batch costs.
        longest: [dims], of all data.
        key: Mixes what a bucket is passed with what it holds.
    """
    counts = np.diff(boundaries, prepend=0, append=len(sequences))
    edges = needed[np.append(0, boundaries)]
    passed = settle_leftovers(describe_buckets(counts, edges.astype(np.int64), cut, cost, longest)).passed
    if not passed.any():
        return sequences, needed, boundaries
    # The last 3 of a bucket are those before its border: the border moves, and they are in the next.
    boundaries = boundaries - passed[:-1]
    bucket = np.repeat(np.arange(len(edges)), np.diff(boundaries, prepend=0, append=len(sequences)))
    mixed = key.permutation(len(sequences))
    mixed = mixed[np.argsort(bucket[mixed], kind="stable")]
    return sequences[mixed], edges[bucket], boundaries

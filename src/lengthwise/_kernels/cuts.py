"""Batches cut in order."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel


@kernel
def count_rows(count, multiple):
    """The rows of a batch of `count` sequences that is filled up to a multiple, unless it holds less than one.

    Of multiples of 8, batches of 5, 8 and 13 sequences have 5, 8 and 16 rows.
    """
    return count if count < multiple else -(-count // multiple) * multiple


@kernel
def fill_batch(lengths, start, prices, budget, most, multiple, overshoot, longest):
    """The batch from row `start` of `lengths` [m, dims] on: how many it takes, its cost, and its cost with one more.

    It takes one at least. Where none is left, one more costs infinity. Batches are priced with `count_rows`. Where
    `overshoot`, the batch ends behind the sequence that reaches the budget. `longest` [dims] is room to work in.
    """
    dims, stop = lengths.shape[1], lengths.shape[0]
    for dim in range(dims):
        longest[dim] = 0
    each, once, cost, grown, size = 0.0, 0.0, 0.0, np.inf, 0
    for row in range(start, stop):
        # All are padded to the longest, and most sequences are shorter: then what one costs is known.
        longer = False
        for dim in range(dims):
            longer = longer or lengths[row, dim] > longest[dim]
        if longer:
            each, once = 0.0, prices[0]
            for dim in range(dims):
                length = float(max(longest[dim], lengths[row, dim]))
                each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
                once += prices[2 + 2 * dims + dim] * length
        grown = once + count_rows(size + 1, multiple) * (prices[1] + each)
        if size > 0 and (size == most or (cost >= budget if overshoot else grown > budget)):
            return size, cost, grown
        if longer:
            for dim in range(dims):
                longest[dim] = max(longest[dim], lengths[row, dim])
        size += 1
        cost = grown
    return size, cost, np.inf


@kernel
def greedy_cut(lengths, boundaries, prices, budget, most, multiple, overshoot, offsets):
    """Cuts the sequences of `lengths` [n, dims] in order into batches, and returns how many.

    A batch of `count` sequences whose longest are L costs
    fixed + sum_d per_length_d L_d + count (each + sum_d linear_d L_d + quadratic_d L_d^2), with
    `prices` = [fixed, each, linear..., quadratic..., per_length...]. It is closed before a sequence that would bring it
    over `budget`, or, where `overshoot`, behind the sequence that reaches it; and at every boundary (rising positions),
    and at `most` sequences. `offsets` [n + 1] receives the starts and the end. Operations come in the order of
    `cost.Quadratic`, so that both round alike at the budget. A batch that is filled up to a multiple is priced with
    its `count_rows`.
    """
    longest = np.empty(lengths.shape[1], np.int64)
    count, start, batches, passed = np.int64(lengths.shape[0]), np.int64(0), 0, 0
    while start < count:
        while passed < boundaries.size and boundaries[passed] <= start:
            passed += 1
        bucket = lengths[: boundaries[passed]] if passed < boundaries.size else lengths
        offsets[batches] = start
        batches += 1
        start += fill_batch(bucket, start, prices, budget, most, multiple, overshoot, longest)[0]
    offsets[batches] = count
    return batches

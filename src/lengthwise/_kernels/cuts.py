"""Batches cut in order."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel


@kernel
def greedy_cut_of_one(lengths, boundaries, prices, budget, most, overshoot, offsets):
    """`greedy_cut` of sequences of one length each, `lengths` [n], in half of the time.

    Every sequence is priced, and none is asked whether it is the longest: processors guess such a branch wrong.
    """
    fixed, alone, linear, quadratic, per_length = prices[0], prices[1], prices[2], prices[3], prices[4]
    batches = index = passed = 0
    while index < len(lengths):
        offsets[batches] = index
        batches += 1
        while passed < len(boundaries) and boundaries[passed] <= index:
            passed += 1
        end = boundaries[passed] if passed < len(boundaries) else len(lengths)
        if most < end - index:  # `index + most` may be more than 64 bits hold
            end = index + most
        size = longest = 0
        while index < end:
            longest = max(longest, lengths[index])
            padded = float(longest)
            each = alone + (linear * padded + quadratic * (padded * padded))
            once = fixed + per_length * padded
            size += 1
            if not overshoot and size > 1 and once + size * each > budget:
                break
            index += 1
            if overshoot and once + size * each >= budget:
                break
    offsets[batches] = len(lengths)
    return batches


@kernel
def greedy_cut(lengths, boundaries, prices, budget, most, overshoot, offsets):
    """Cuts the sequences of `lengths` [n, dims] in order into batches, and returns how many.

    A batch of `count` sequences whose longest are L costs
    fixed + sum_d per_length_d L_d + count (each + sum_d linear_d L_d + quadratic_d L_d^2), with
    `prices` = [fixed, each, linear..., quadratic..., per_length...]. It is closed before a sequence that would bring it
    over `budget`, or, where `overshoot`, behind the sequence that reaches it; and at every boundary (rising positions),
    and at `most` sequences. `offsets` [n + 1] receives the starts and the end. Operations come in the order of
    `cost.Quadratic`, so that both round alike at the budget.
    """
    count, dims = lengths.shape
    if not overshoot and is_padded(prices, dims):
        return _cut_padded(lengths, boundaries, budget, most, offsets)
    longest = np.zeros(dims, np.int64)
    batches = 0
    size = 0
    full = False
    boundary = 0
    each = once = 0.0
    for index in range(count):
        # All are padded to the longest, and most sequences are shorter: then what one costs is known.
        longer = False
        for dim in range(dims):
            longer = longer or lengths[index, dim] > longest[dim]
        if longer:
            each, once = _price_with(lengths, index, prices, longest)
        closed = full or size == most or (not overshoot and once + (size + 1) * (prices[1] + each) > budget)
        # Boundaries and positions both rise, so that one pass reads both.
        while boundary < boundaries.size and boundaries[boundary] <= index:
            closed = closed or boundaries[boundary] == index
            boundary += 1
        if size == 0 or closed:
            offsets[batches] = index
            batches += 1
            size = 0
            for dim in range(dims):
                longest[dim] = 0
            # Once more: a batch that has just begun is no longer than this sequence.
            each, once = _price_with(lengths, index, prices, longest)
        size += 1
        full = overshoot and once + size * (prices[1] + each) >= budget
    offsets[batches] = count
    return batches


@kernel
def fill_padded(lengths, start, budget, most):
    """The batch of pairs from row `start` on by their padded frames: how many, its cost, and its cost with one more.

    It takes one at least. Where none is left, one more costs infinity. It computes in whole numbers, without a branch
    for which sequence is longer: this takes half of the time that other prices take.
    """
    first, second, size = np.int64(0), np.int64(0), np.int64(0)
    whole = np.int64(min(budget, 2.0**62))
    for row in range(start, lengths.shape[0]):
        longer, wider = max(first, np.int64(lengths[row, 0])), max(second, np.int64(lengths[row, 1]))
        grown = (size + 1) * (longer + wider)
        if size > 0 and (grown > whole or size == most):
            return size, float(size * (first + second)), float(grown)
        first, second = longer, wider
        size += 1
    return size, float(size * (first + second)), np.inf


@kernel
def is_padded(prices, dims):
    """Whether a batch of two lengths a sequence costs the frames that it is padded to."""
    plain = dims == 2 and prices[2] == 1.0 and prices[3] == 1.0
    for place in range(prices.size):
        plain = plain and (prices[place] == 0.0 or place in (2, 3))
    return plain


@kernel
def _cut_padded(lengths, boundaries, budget, most, offsets):
    """`greedy_cut` of pairs by their padded frames."""
    count, start, batches, passed = np.int64(lengths.shape[0]), np.int64(0), 0, 0
    while start < count:
        while passed < boundaries.size and boundaries[passed] <= start:
            passed += 1
        own = lengths[: boundaries[passed]] if passed < boundaries.size else lengths
        while start < own.shape[0]:
            offsets[batches] = start
            batches += 1
            start += fill_padded(own, start, budget, most)[0]
    offsets[batches] = count
    return batches


@kernel
def _price_with(lengths, index, prices, longest):
    """What each sequence of a batch costs, and the batch once, if this one joins: `longest` [dims] becomes as long."""
    dims = longest.size
    each, once = 0.0, prices[0]
    for dim in range(dims):
        longest[dim] = max(longest[dim], lengths[index, dim])
        length = float(longest[dim])
        each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
        once += prices[2 + 2 * dims + dim] * length
    return each, once


@kernel
def count_rows(count, multiple):
    """The rows of a batch of `count` sequences that is filled up to a multiple, unless it holds less than one.

    Of multiples of 8, batches of 5, 8 and 13 sequences have 5, 8 and 16 rows.
    """
    return count if count < multiple else -(-count // multiple) * multiple


@kernel
def fill_batch(lengths, start, prices, budget, most, multiple, longest):
    """The batch from row `start` of `lengths` [m, dims] on: how many it takes, its cost, and its cost with one more.

    It takes one at least. Where none is left, one more costs infinity. Batches are priced with `count_rows`.
    `longest` [dims] is room to work in.
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
        if size > 0 and (grown > budget or size == most):
            return size, cost, grown
        if longer:
            for dim in range(dims):
                longest[dim] = max(longest[dim], lengths[row, dim])
        size += 1
        cost = grown
    return size, cost, np.inf


@kernel
def cut_filled(lengths, boundaries, prices, budget, most, multiple, offsets):
    """`greedy_cut` of batches that are filled up to a multiple, and priced with their `count_rows`."""
    longest = np.empty(lengths.shape[1], np.int64)
    count, start, batches, passed = np.int64(lengths.shape[0]), np.int64(0), 0, 0
    while start < count:
        while passed < boundaries.size and boundaries[passed] <= start:
            passed += 1
        own = lengths[: boundaries[passed]] if passed < boundaries.size else lengths
        offsets[batches] = start
        batches += 1
        start += fill_batch(own, start, prices, budget, most, multiple, longest)[0]
    offsets[batches] = count
    return batches

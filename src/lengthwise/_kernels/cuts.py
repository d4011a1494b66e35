"""Batches cut in order, and buckets of the least padding."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import compile_kernel


@compile_kernel
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
    longest = np.zeros(dims, np.int64)
    batches = 0
    size = 0
    full = False
    boundary = 0
    for index in range(count):
        # What one sequence of the batch would cost, if this one joined it: all are padded to the longest.
        each, once = 0.0, prices[0]
        for dim in range(dims):
            length = float(max(longest[dim], lengths[index, dim]))
            each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
            once += prices[2 + 2 * dims + dim] * length
        cost = once + (size + 1) * (prices[1] + each)
        closed = full or size == most or (not overshoot and cost > budget)
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
        each, once = 0.0, prices[0]
        for dim in range(dims):
            longest[dim] = max(longest[dim], lengths[index, dim])
            length = float(longest[dim])
            each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
            once += prices[2 + 2 * dims + dim] * length
        size += 1
        full = overshoot and once + size * (prices[1] + each) >= budget
    offsets[batches] = count
    return batches


@compile_kernel
def price_buckets(lengths, counts, price, best, most):
    """The least that the lengths up to each cost where a bucket costs `price` beside its frames, in linear time.

    best[i] = min over j < i of best[j] + price + lengths[i] (counts[i] - counts[j]), and most[i] the most buckets that
    cost so little. `lengths` are the distinct lengths, rising, with lengths[0] = 0 for the empty prefix; `counts` how
    many sequences are no longer. Position j is a line in x = lengths[i], of slope -counts[j] and height best[j];
    slopes fall and queries rise, so the lower envelope is a queue read from its front. Lines meet at whole x by floor
    division: no product that could overflow. Of lines that are equally low the last is taken: it has the most buckets.
    """
    queue = np.empty(lengths.size, np.int64)
    front, back = 0, 0
    best[0], most[0] = 0, 0
    for i in range(1, lengths.size):
        # Line i - 1 enters. It is no higher than line a from x >= meet(a, i - 1); the last line goes if it is never
        # needed.
        entering = i - 1
        # If the newest line meets the last one no later than the last meets the one before, the last is nowhere lowest.
        while back - front >= 2:
            last, previous = queue[back - 1], queue[back - 2]
            rise = best[last] - best[previous]
            meet_last = -((-rise) // (counts[last] - counts[previous]))
            rise = best[entering] - best[last]
            meet_entering = -((-rise) // (counts[entering] - counts[last]))
            if meet_entering > meet_last:
                break
            back -= 1
        queue[back] = entering
        back += 1
        # Queries rise: a line at the front that the next one has passed is never lowest again.
        x = lengths[i]
        while back - front >= 2:
            first, second = queue[front], queue[front + 1]
            if best[second] - counts[second] * x > best[first] - counts[first] * x:
                break
            front += 1
        j = queue[front]
        best[i] = best[j] + price + x * (counts[i] - counts[j])
        most[i] = most[j] + 1


@compile_kernel
def bucket_ends(lengths, counts, price, best, most, ends):
    """Follows `best` and `most` of `price_buckets` back, over as many buckets as `ends` [buckets] receives.

    The last bucket ends at the last length. Where several ways to divide what is left pad equally little, its bucket is
    the widest of them.
    """
    i = lengths.size - 1
    for bucket in range(ends.size - 1, -1, -1):
        ends[bucket] = i
        j = np.searchsorted(most, bucket)  # the first that `bucket` buckets may end at: `most` never falls
        while best[j] + price + lengths[i] * (counts[i] - counts[j]) != best[i]:
            j += 1
        i = j

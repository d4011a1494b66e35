"""The edges of buckets that pad least."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel


@kernel
def price_buckets(lengths, counts, price, best, most):
    """Finds best[i], the least cost of the lengths up to i, if a bucket costs `price` beside its frames. Linear time.

    best[i] = min over j < i of best[j] + price + lengths[i] (counts[i] - counts[j]), and most[i] is the most buckets of
    this cost. `lengths` are the distinct lengths, rising, after lengths[0] = 0 for the empty prefix. counts[i] is the
    number of sequences up to lengths[i]. Position j is a line in x = lengths[i], of slope -counts[j] and height
    best[j]. Slopes fall and queries rise, so the lower envelope is a queue that is read from its front. Floor division
    finds the whole x where lines meet, without products that could overflow. Of equally low lines the last is taken,
    because it has the most buckets.
    """
    queue = np.empty(lengths.size, np.int64)
    front, back = 0, 0
    best[0], most[0] = 0, 0
    for i in range(1, lengths.size):
        entering = i - 1
        # If the entering line meets the last one no later than the last meets the one before, the last is never lowest.
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


@kernel
def bucket_ends(lengths, counts, price, best, most, ends):
    """Follows `best` and `most` of `price_buckets` back, and writes the ends of the buckets to `ends` [buckets].

    Buckets are found from the last to the first. If several divisions cost equally little, the widest bucket is taken.
    """
    i = lengths.size - 1
    for bucket in range(ends.size - 1, -1, -1):
        ends[bucket] = i
        j = i
        while j > 0 and most[j - 1] >= bucket:  # the first length that `bucket` buckets may end at: `most` never falls
            j -= 1
        while best[j] + price + lengths[i] * (counts[i] - counts[j]) != best[i]:
            j += 1
        i = j

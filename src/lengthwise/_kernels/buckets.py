"""Buckets of the least padding."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel


@kernel
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


@kernel
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

"""What the laws of length and padded length come to."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel
from lengthwise._kernels.exact import exp, expm1, power


@kernel
def longest_of_batches(levels, masses, heights, lows, highs, sizes, longest):
    """What batches are padded to, on average, when sequences are sorted by height(length) + a standard exponential.

    Sequences stand at `levels`, rising, in shares `masses`, of warped height `heights` [levels]. Batch b is sizes[b]
    draws from those whose sort key lies between its quantiles lows[b] and highs[b]. Writes `longest` [batches].
    """
    count = levels.size
    # Loops over numbers: the array methods of NumPy, `cumsum` and the like, take a second to compile.
    total = np.empty(count)  # share at level j or lower
    falls = np.empty(count)  # how much less often a key is above a number beyond heights[j] at level j - 1 than at j
    above = np.empty(count)  # share at level j or lower whose key is above heights[j]
    begun = np.empty(count)  # share of keys below heights[j]
    total[0], falls[0], above[0], begun[0] = masses[0], 0.0, masses[0], 0.0
    for j in range(1, count):
        total[j] = total[j - 1] + masses[j]
        falls[j] = exp(heights[j - 1] - heights[j])
        above[j] = above[j - 1] * falls[j] + masses[j]
        begun[j] = total[j] - above[j]
    yes, no = np.bool_(True), np.bool_(False)  # no literals: `_count_below` would be compiled twice
    for batch in range(sizes.size):
        low, high = lows[batch], highs[batch]
        top = max(0, _count_below(begun, high, no) - 1)
        bottom = max(0, _count_below(begun, low, yes) - 1)
        # Of those at level `top` or lower whose key is above its height, the share that is above the quantile `high`.
        # The key of each of them is heights[top] + a standard exponential; at a lower level, fewer come so far.
        beyond_high = max(total[top] - high, 1e-300) / above[top]
        beyond_low = max(total[bottom] - low, 1e-300) / above[bottom]
        longest[batch] = levels[top]
        for j in range(top - 1, -1, -1):
            beyond_high *= falls[j + 1]
            if j < bottom:
                beyond_low *= falls[j + 1]
            share = (above[j] * beyond_low if j <= bottom else total[j] - low) - above[j] * beyond_high
            below = power(min(1.0, max(0.0, share / (high - low))), sizes[batch])  # every draw at level j or lower
            longest[batch] -= (levels[j + 1] - levels[j]) * below
            if below < 1e-7:
                break


@kernel
def _count_below(rising, value, or_equal):
    """How many of `rising` are below `value`, or equal to it where `or_equal`: `searchsorted`, left and right."""
    low, high = 0, rising.size
    while low < high:
        middle = (low + high) // 2
        if rising[middle] < value or (or_equal and rising[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def least_flows(sizes, reached, beta, rises, flows):
    """Writes the flows between neighbouring levels that tell least at the price `beta` of a frame.

    Sequences stand at `sizes` [levels], rising; the share up to level s is reached[s]. Flow s, of levels - 1, is the
    share that is open between level s and s + 1. What has closed, reached[s] - flows[s], must not fall from one level
    to the next. rises[s] is exp(beta (sizes[s + 1] - sizes[s])) - 1, computed for all at once.
    """
    # Stretches over which as much has closed: a stretch of one level to begin with, joined with the one before while
    # less has closed at its end than there. After closed shares [0.1, 0.3] one of 0.2 makes [0.1, c], c between them.
    starts = np.empty(flows.size, np.int64)
    opened = np.empty(flows.size)  # the flow at the first level of each stretch
    count = 0
    for level in range(flows.size):
        start = level
        while True:
            risen = reached[level + 1] - reached[start]
            rise = rises[level] if start == level else expm1(beta * (sizes[level + 1] - sizes[start]))
            flow = risen / rise
            flow = min(flow, reached[start])
            if count == 0 or reached[start] - flow >= reached[starts[count - 1]] - opened[count - 1]:
                break
            count -= 1
            start = starts[count]
        starts[count], opened[count] = start, flow
        count += 1
    for stretch in range(count):
        start = starts[stretch]
        end = starts[stretch + 1] if stretch + 1 < count else flows.size
        for level in range(start, end):
            flows[level] = opened[stretch] + (reached[level] - reached[start])

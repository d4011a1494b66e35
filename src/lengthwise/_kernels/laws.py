"""The flows of the law of length and padded length that tells least."""

from __future__ import annotations

import math

import numpy as np

from lengthwise._compile import kernel


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
            rise = rises[level] if start == level else math.expm1(beta * (sizes[level + 1] - sizes[start]))
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

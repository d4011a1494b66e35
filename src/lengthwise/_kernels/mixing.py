"""Mixing: histograms from which it is measured, and the flows of its limit."""

from __future__ import annotations

import math

import numpy as np

from lengthwise._compile import kernel


@kernel
def count_pairs(bins, offsets, most, joint):
    """Adds pairs of members of each group to `joint` [bins, bins], each member with the weight 1 in sum.

    Each pair is added once: `joint` and its transpose together count it both ways. Each member meets all others of its
    group; in a group of more than `most` + 1, `most` others at even distances. So of 7 members and `most` = 4, each
    meets those 1 and 2 places on, and is met from as far. Returns the members that were paired, and the sum of the
    squared weights of all pairs, both ways.

    Args:
        bins: [m], the bin of each member.
        offsets: [number of groups + 1].
        most: An even number.
    """
    paired = 0
    squares = 0.0
    # Of groups of like members most pairs are of one cell: they are summed up before they are added.
    row, column, weights = 0, 0, 0.0
    for group in range(offsets.size - 1):
        start, stop = offsets[group], offsets[group + 1]
        size = stop - start
        if size < 2:
            continue
        met = min(most, size - 1)
        for turn in range((met + 1) // 2):
            # Those half a group apart meet once: of 4 members, the first two meet the last two.
            halved = 2 * turn + 1 == met
            distance = size // 2 if halved else 1 + turn * ((size - 1) // 2) // (met // 2)
            for place in range(start, start + (size // 2 if halved else size)):
                partner = place + distance
                if partner >= stop:
                    partner -= size
                if bins[place] != row or bins[partner] != column:
                    joint[row, column] += weights
                    row, column, weights = bins[place], bins[partner], 0.0
                weights += 1.0 / met
        paired += size
        squares += size / met
    joint[row, column] += weights
    return paired, squares


@kernel
def count_cells(rows, columns, offsets, joint):
    """Adds to `joint` [bins, bins], int64, how many members of `rows` [m] stand in the groups of each of `columns`.

    Members 0, 1, 0 in two groups, the first two in column 1 and the last in column 0, add [[1, 1], [0, 1]].

    Args:
        rows: [m], the bin of each member, group by group.
        columns: [groups], the bin of each group.
        offsets: [groups + 1].
    """
    for group in range(columns.size):
        column = columns[group]
        for place in range(offsets[group], offsets[group + 1]):
            joint[rows[place], column] += 1


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

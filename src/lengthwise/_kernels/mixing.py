"""Mixing: the histograms that measure it."""

from __future__ import annotations

from lengthwise._compile import kernel


@kernel
def count_pairs(bins, offsets, most, joint):
    """Adds pairs of members of each group to `joint` [bins, bins]. The pairs of a member weigh 1 together.

    Each pair is added once: `joint` and its transpose together count it both ways. Each member is paired with all
    others of its group; in a group of more than `most` + 1, with `most` others at even distances. With 7 members and
    `most` = 4, its partners are 1 and 2 places before and behind. Returns the number of paired members, and the sum of
    the squared weights of all pairs, both ways.

    Args:
        bins: [m], the bin of each member.
        offsets: [number of groups + 1].
        most: An even number.
    """
    paired = 0
    squares = 0.0
    # In groups of similar members most pairs are in one cell: weights are summed up before they are added.
    row, column, weights = 0, 0, 0.0
    for group in range(offsets.size - 1):
        start, stop = offsets[group], offsets[group + 1]
        size = stop - start
        if size < 2:
            continue
        met = min(most, size - 1)
        for turn in range((met + 1) // 2):
            # Members half a group apart are paired once: of 4 members, the first two with the last two.
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

"""Shares out the packed rows of a step to its batches, so that these cost about the same.

The batches of a step are shared out to ranks the same way: a row is then a batch, and a batch a rank.

costs       [rows]    the cost of each row
order       [rows]    the rows step by step, each step from its costliest
step_rows   [steps]   the number of rows in each step
batch       [rows]    the batch within the step that each row is given to
"""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel

_SWAPS = 64  # the most in a step: about ten were enough for 8 batches of 8 rows, and time stays linear in the rows
_NEAR = 1e-4  # of the mean cost of a batch: once the costliest is so near to the mean, swaps end


@kernel
def share_rows(costs, order, step_rows, slots, most, batch):
    """Gives each row to the cheapest batch so far, of those with fewer than `most` rows, then swaps rows.

    Costs 9 5 4 3 2 1 in two batches of three rows: the first takes 9, 3 and 1, the second 5, 4 and 2. Of batches that
    cost the same so far, the one with the fewest rows takes the next. So no batch stays empty if rows are enough.
    """
    sums = np.empty(slots)
    counts = np.empty(slots, np.int64)
    start = np.int64(0)
    for size in step_rows:
        sums[:] = 0.0
        counts[:] = 0
        total = 0.0
        rows = order[start : start + size]
        for row in rows:
            best = -1
            for slot in range(slots):
                if counts[slot] == most:
                    continue
                if best < 0 or sums[slot] < sums[best] or (sums[slot] == sums[best] and counts[slot] < counts[best]):
                    best = slot
            batch[row] = best
            sums[best] += costs[row]
            counts[best] += 1
            total += costs[row]
        tolerated = total / slots * (1.0 + _NEAR)
        for _ in range(_SWAPS):
            costliest = np.int64(0)  # no literal: `_swap` would be compiled twice
            for slot in range(slots):
                costliest = slot if sums[slot] > sums[costliest] else costliest
            if sums[costliest] <= tolerated or not _swap(costs, rows, batch, sums, costliest):
                break
        start += size


@kernel
def _swap(costs, rows, batch, sums, costliest):
    """Swaps a row of the costliest batch with one of another batch, so that the greater of both sums is least.

    Returns False if no swap lowers the sum of the costliest batch.
    """
    least, out, back = sums[costliest], -1, -1
    for row in rows:
        if batch[row] != costliest:
            continue
        for partner in rows:
            saving = costs[row] - costs[partner]
            if batch[partner] == costliest or saving <= 0.0:
                continue
            greater = max(sums[costliest] - saving, sums[batch[partner]] + saving)
            if greater < least:
                least, out, back = greater, row, partner
    if out < 0:
        return False
    saving = costs[out] - costs[back]
    sums[costliest] -= saving
    sums[batch[back]] += saving
    batch[out], batch[back] = batch[back], batch[out]
    return True


@kernel
def lay_rows(lengths, starts, rows, places):
    """Writes the places of the members of `rows`, row by row, to `places` [m]; each row begins with its longest.

    Args:
        lengths: [m].
        starts: [all rows + 1], where each row begins, and the end.
        rows: The rows to write, in order.
    """
    written = 0
    for row in rows:
        longest = starts[row]
        for place in range(starts[row], starts[row + 1]):
            longest = place if lengths[place] > lengths[longest] else longest
        places[written] = longest
        written += 1
        for place in range(starts[row], starts[row + 1]):
            if place != longest:
                places[written] = place
                written += 1

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
_NEAR_ENOUGH = 1e-3  # the same for owners of bins
_COMPARED = 2**18  # pairs of items in all swaps between owners: some milliseconds


@kernel
def share_rows(costs, order, step_rows, slots, most, batch):
    """Gives each row to the cheapest batch so far, of those with fewer than `most` rows, then swaps rows.

    Costs 9 5 4 3 2 1 in two batches of three rows: the first takes 9, 3 and 1, the second 5, 4 and 2. Of batches that
    cost the same so far, the one with the fewest rows takes the next. So no batch stays empty if rows are enough.
    """
    sums, filled, sizes = np.empty(slots), np.zeros(slots), np.zeros(costs.size)
    counts, owners = np.empty(slots, np.int64), np.empty(slots, np.int64)
    for slot in range(slots):
        owners[slot] = slot
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
        _swap_down(costs, sizes, np.inf, rows, batch, owners, sums, filled, tolerated, _SWAPS)
        start += size


@kernel
def _swap_down(costs, sizes, room, items, bin_of, owners, totals, filled, tolerated, swaps):
    """Swaps items of the costliest owner with those of others, until it costs at most `tolerated`.

    Each swap is the one by which the greater of both totals is least, and which leaves room in both bins. The search
    ends once no swap lowers the costliest total, or after so many `swaps`. Items are rows in batches of a step, each
    its own owner, or as in `even_out`.
    """
    for _ in range(swaps):
        top = 0
        for owner in range(totals.size):
            top = owner if totals[owner] > totals[top] else top
        if totals[top] <= tolerated:
            return
        least, out, back = totals[top], -1, -1
        for item in items:
            if owners[bin_of[item]] != top:
                continue
            for partner in items:
                saving, other = costs[item] - costs[partner], owners[bin_of[partner]]
                if saving <= 0.0 or other == top:
                    continue
                greater, growth = max(totals[top] - saving, totals[other] + saving), sizes[item] - sizes[partner]
                fits = filled[bin_of[partner]] + growth <= room and filled[bin_of[item]] - growth <= room
                if greater < least and fits:
                    least, out, back = greater, item, partner
        if out < 0:
            return
        saving, growth = costs[out] - costs[back], sizes[out] - sizes[back]
        totals[top] -= saving
        totals[owners[bin_of[back]]] += saving
        filled[bin_of[out]] -= growth
        filled[bin_of[back]] += growth
        bin_of[out], bin_of[back] = bin_of[back], bin_of[out]


@kernel
def even_out(costs, sizes, room, bin_of, owners, totals):
    """Swaps items of bins, until the costliest owner of bins is near the mean, or no swap lowers it.

    Args:
        costs: [items], the cost of each item.
        sizes: [items], the part of a bin's `room` that each item fills.
        bin_of: [items], the bin of each item; changed.
        owners: [bins], the owner of each bin: the bin itself, or the rank that has it.
        totals: [owners], receives the cost of each owner.
    """
    items, filled, mean = np.arange(costs.size), np.zeros(owners.size), 0.0
    totals[:] = 0.0
    for item in items:
        totals[owners[bin_of[item]]] += costs[item]
        filled[bin_of[item]] += sizes[item]
        mean += costs[item] / totals.size
    swaps = _COMPARED * totals.size // (1 + items.size * items.size)
    _swap_down(costs, sizes, room, items, bin_of, owners, totals, filled, mean * (1.0 + _NEAR_ENOUGH), swaps)


@kernel
def fill_bins(costs, sizes, limits, level, bin_of, totals):
    """Gives each item, in order, to the cheapest bin so far that has room for it.

    Costs 9 5 4 3 2 1 in two bins: the first takes 9, 3 and 1, the second 5, 4 and 2.

    Args:
        costs, sizes: As in `even_out`.
        limits: The room of a bin; the most items of a bin; the least, as long as items suffice.
        level: The most that a bin of several items may cost.
        bin_of: [items], receives the bins; -1 for an item that finds no room.
        totals: [bins], receives the costs.
    """
    room, most, least = limits
    filled, item_counts = np.zeros(totals.size), np.zeros(totals.size, np.int64)
    totals[:] = 0.0
    left, missing = costs.size, least * totals.size
    for item in range(costs.size):
        best = -1
        for number in range(totals.size):
            size, cost = item_counts[number], totals[number]
            if (best >= 0 and cost >= totals[best]) or filled[number] + sizes[item] > room or size == most:
                continue
            # If no more items are left than bins need, only these bins take some.
            if (size == 0 or cost + costs[item] <= level) and (left > missing or size < least):
                best = number
        bin_of[item] = best
        left -= 1
        if best >= 0:
            missing -= item_counts[best] < least
            totals[best] += costs[item]
            filled[best] += sizes[item]
            item_counts[best] += 1

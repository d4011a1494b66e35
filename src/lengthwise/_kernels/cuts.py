"""Cuts sequences in order: into the fewest batches under a budget, or into a given number of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise._compile import kernel


class Bounds(NamedTuple):
    """The limits of a batch, as kernels take them.

    A batch of `count` sequences whose longest are L costs
    fixed + sum_d per_length_d L_d + count (each + sum_d linear_d L_d + quadratic_d L_d^2).

    Attributes:
        coefficients: [2 + 3 dims] float64: fixed, each, linear..., quadratic..., per_length...
        budget: The most that a batch of several sequences may cost: a hard limit, as of memory.
        max_sequences: The most sequences in a batch.
        multiple: Batches are priced with their rows: the sequences, filled up to this multiple. Below it, rows are not
            filled up: with a multiple of 8, batches of 5, 8 and 13 sequences have 5, 8 and 16 rows.
        balance_coefficients: [2 + 3 dims] float64, those of another cost, such as of time.
        longest: [dims] float64, memory for the longest lengths of the batch that is filled.
        overshoot: A batch ends only after the sequence that reaches the budget.
    """

    coefficients: NDArray[np.float64]
    budget: float
    max_sequences: int
    multiple: int
    balance_coefficients: NDArray[np.float64]
    longest: NDArray[np.float64]
    overshoot: bool = False


_TRIES = 8  # tries that follow the estimate of the one before; then bisection


@kernel
def cut_batches(lengths, order, start, stop, groups, bounds, level, falling, ends):
    """Cuts the sequences order[start:stop] into batches, each filled in order, unless these are more than `ends`.

    A batch ends before a sequence that would bring it over the budget or the level, or that is of another group. It
    takes at least one sequence. The operations have the order of `cost.Quadratic`, so that both round the same way at
    the budget.

    Args:
        lengths: [n, dims], the lengths of all sequences.
        order: [m], numbers of sequences.
        start, stop: Where to begin in the order, and where to stop.
        groups: [n], the group of each sequence; or empty, for one group.
        bounds: The limits of a batch.
        level: The most that a batch of several sequences may cost by `balance_coefficients`.
        falling: In each group, lengths fall, and there is one for each sequence. A division then finds most of a batch.
        ends: Receives the place in the order where each batch ends.

    Returns:
    - the number of batches, or one more than there are `ends` if the sequences need more;
    - the costliest by `balance_coefficients`, except those that alone are over the budget or the level;
    - the least level by which a batch would take another sequence; infinite if none can;
    - about how many batches all sequences fill: 2.5 if the third of three is half full. If only two are wanted, it is
      2.5 if the sequences left over are half as many as those of the second.
    """
    factors, budget, most, multiple, level_factors, longest, overshoot = bounds
    dims, grouped = longest.size, groups.size > 0
    row, batches, size = start, 0, 0
    cost = level_cost = costliest = 0.0
    next_level = np.inf
    while row < stop and batches < ends.size:
        first = order[row]
        for dim in range(dims):
            longest[dim] = lengths[first, dim]
        size = 0
        while row < stop:
            place = order[row]
            once, each = factors[0], 0.0
            level_once, level_each = level_factors[0], 0.0
            for dim in range(dims):  # all sequences are padded to the longest
                length = max(longest[dim], float(lengths[place, dim]))
                longest[dim] = length
                linear = 2 + dim
                quadratic = linear + dims
                per_length = quadratic + dims
                each += factors[linear] * length + factors[quadratic] * (length * length)
                once += factors[per_length] * length
                level_each += level_factors[linear] * length + level_factors[quadratic] * (length * length)
                level_once += level_factors[per_length] * length
            each, level_each = factors[1] + each, level_factors[1] + level_each
            if falling and size == 0:
                # One less than the divisions say, because they round; and no row that is only filled up.
                within = min(float(min(most, stop - row)), (budget - once) / each)
                within = max(0.0, min(within, (level - level_once) / level_each))
                sure = np.int64(within) - 1
                if multiple > 1:
                    sure -= sure % multiple
                if sure > 0 and not (grouped and groups[order[row + sure - 1]] != groups[first]):
                    size = sure
                    row += sure
                    place = order[row]
                    cost, level_cost = once + sure * each, level_once + sure * level_each
            rows = size + 1
            if 1 < multiple < rows:
                rows = -(-rows // multiple) * multiple
            grown, level_grown = once + rows * each, level_once + rows * level_each
            if size > 0:
                if size == most or (grouped and groups[place] != groups[first]):
                    break
                if cost >= budget if overshoot else grown > budget:
                    break
                if level_grown > level:
                    next_level = min(next_level, level_grown)
                    break
            size += 1
            row += 1
            cost, level_cost = grown, level_grown
        ends[batches] = row
        batches += 1
        if cost <= budget and level_cost <= level:
            costliest = max(costliest, level_cost)
    if row < stop:
        filled = batches + (stop - row) / size
        batches += 1
    else:
        filled = batches - 1.0 + max(min(1.0, max(cost / budget, level_cost / level)), size / most)
    return batches, costliest, next_level, filled


@kernel
def cut_steps(lengths, order, groups, bounds, step_sizes, falling, tolerance, nearness, tried, ends, counts):
    """Cuts each step into as many batches as there are `tried`, the costliest as cheap as possible.

    Bisects the level. The result is exact, because both ends move to costs that occur. A level that is too low is
    raised to the next one that changes a batch. A level that is enough is lowered to the cost of its costliest batch.
    So the order of tries only changes the time: it follows the estimate of each try.

    Args:
        lengths, order, groups, bounds, falling: As in `cut_batches`. The budget must allow so many batches.
        step_sizes: [steps], the number of sequences in each step.
        tolerance, nearness: The search ends once at most `tolerance` batches are missing, or the level is at most by
            this share too high; with -1 and 0.0, it is exact.
        tried: [batches], memory to work in.
        ends: [steps, batches], receives the place in the order where each batch ends.
        counts: [steps], receives the number of batches: fewer than wanted if these are as cheap.
    """
    wanted, start = tried.size, np.int64(0)  # no literal: `cut_batches` would be compiled twice
    for step in range(step_sizes.size):
        stop = start + step_sizes[step]
        count, tries = 0, 0
        low, high = 0.0, np.inf
        level = high
        while low < high:
            batches, costliest, next_level, filled = cut_batches(
                lengths, order, start, stop, groups, bounds, level, falling, tried
            )
            if batches > wanted:
                low = next_level
            else:
                count, high = batches, costliest
                for batch in range(batches):
                    ends[step, batch] = tried[batch]
            if wanted - count <= tolerance or high - low < high * nearness:
                break
            if tries >= _TRIES:
                level = low + (high - low) / 2.0
            else:
                level = level * (filled / wanted) if tries > 0 else high * (1.0 - 2.0**-10)  # full steps
                level = max(low, min(level, high - high * 2.0**-52))
            if level >= high:  # no float lies between
                break
            tries += 1
        counts[step] = count
        start = stop


@kernel
def split_widest(ends, counts):
    """Halves the batch with the most sequences, in each step, until `ends` are full, or all are single.

    Three batches of 1, 4 and 2 sequences, `ends` [1, 5, 7, _], become four of 1, 2, 2 and 2: [1, 3, 5, 7].

    Args:
        ends: [steps, batches], the place in the order where each batch ends.
        counts: [steps], the number of batches, before and after.
    """
    start, halved = 0, np.empty(ends.shape[1], np.int64)
    for step in range(counts.size):
        while counts[step] < ends.shape[1]:
            widest, previous = 1, start
            for end in ends[step, : counts[step]]:
                widest, previous = max(widest, end - previous), end
            if widest < 2:
                break
            # Halves all batches of this width; if fewer are missing, the first ones.
            missing, count, previous = ends.shape[1] - counts[step], 0, start
            for end in ends[step, : counts[step]]:
                if end - previous == widest and missing > 0:
                    halved[count] = end - widest // 2
                    missing, count = missing - 1, count + 1
                halved[count] = end
                count, previous = count + 1, end
            ends[step, :count] = halved[:count]
            counts[step] = count
        start = ends[step, counts[step] - 1]

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
        prices: [2 + 3 dims] float64: fixed, each, linear..., quadratic..., per_length...
        budget: The most that a batch of several sequences may cost: a hard limit, as of memory.
        max_sequences: The most sequences in a batch.
        multiple: Batches are priced with the rows that `count_rows` fills up to this multiple.
        level_prices: [2 + 3 dims] float64, the prices of another cost, such as of time.
        level: The most that a batch of several sequences may cost by `level_prices`; searched, to level batches.
    """

    prices: NDArray[np.float64]
    budget: float
    max_sequences: int
    multiple: int
    level_prices: NDArray[np.float64]
    level: float


_TRIES = 8  # tries that follow the estimate of the one before; then bisection


@kernel
def count_rows(count, multiple):
    """Returns the rows of a batch of `count` sequences, filled up to a multiple; counts below the multiple stay.

    With a multiple of 8, batches of 5, 8 and 13 sequences have 5, 8 and 16 rows.
    """
    return count if count < multiple else -(-count // multiple) * multiple


@kernel
def _price_lengths(prices, lengths, row, longest):
    """Returns the prices of a batch and of each of its rows, if `lengths[row]` joins sequences up to `longest`."""
    dims = longest.size
    per_batch, per_row = prices[0], 0.0
    for dim in range(dims):
        length = float(max(longest[dim], lengths[row, dim]))
        per_row += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
        per_batch += prices[2 + 2 * dims + dim] * length
    return per_batch, prices[1] + per_row


@kernel
def fill_batch(lengths, start, bounds, overshoot, longest):
    """Fills a batch from row `start` of `lengths` [m, dims] on. `longest` [dims] is memory to work in.

    A batch takes at least one sequence. With `overshoot`, it ends after the sequence that reaches the budget.

    Returns:
    - the number of its sequences;
    - its cost, and its cost by `level_prices`;
    - the least level by which it would take one more; infinite if none is left, or another limit ends it.
    """
    dims, stop = lengths.shape[1], lengths.shape[0]
    for dim in range(dims):
        longest[dim] = 0
    cost, level_cost, size = 0.0, 0.0, 0
    cost_once, cost_each, level_once, level_each = 0.0, 0.0, 0.0, 0.0
    for row in range(start, stop):
        # All sequences are padded to the longest. Most sequences are shorter, and leave the cost of a row as it is.
        longer = False
        for dim in range(dims):
            longer = longer or lengths[row, dim] > longest[dim]
        if longer:
            cost_once, cost_each = _price_lengths(bounds.prices, lengths, row, longest)
            level_once, level_each = _price_lengths(bounds.level_prices, lengths, row, longest)
        rows = count_rows(size + 1, bounds.multiple)
        grown, level_grown = cost_once + rows * cost_each, level_once + rows * level_each
        if size > 0:
            if size == bounds.max_sequences or (cost >= bounds.budget if overshoot else grown > bounds.budget):
                return size, cost, level_cost, np.inf
            if level_grown > bounds.level:
                return size, cost, level_cost, level_grown
        if longer:
            for dim in range(dims):
                longest[dim] = max(longest[dim], lengths[row, dim])
        size += 1
        cost, level_cost = grown, level_grown
    return size, cost, level_cost, np.inf


@kernel
def greedy_cut(lengths, boundaries, bounds, overshoot, offsets):
    """Cuts the sequences of `lengths` [n, dims] in order into batches, and returns the number of batches.

    A batch ends before a sequence that would bring it over the budget, or with `overshoot` after the sequence that
    reaches it. It also ends at every boundary (rising positions), and at the most sequences. `offsets` [n + 1] receives
    the starts and the end. The operations have the order of `cost.Quadratic`, so that both round the same way at the
    budget.
    """
    longest = np.empty(lengths.shape[1], np.int64)
    count, start, batches, passed = np.int64(lengths.shape[0]), np.int64(0), 0, 0
    while start < count:
        while passed < boundaries.size and boundaries[passed] <= start:
            passed += 1
        bucket = lengths[: boundaries[passed]] if passed < boundaries.size else lengths
        offsets[batches] = start
        batches += 1
        start += fill_batch(bucket, start, bounds, overshoot, longest)[0]
    offsets[batches] = count
    return batches


@kernel
def _price_length(prices, length):
    """Returns the price of a batch of this padded length, and of each of its rows."""
    return prices[0] + prices[4] * length, prices[1] + (prices[2] * length + prices[3] * (length * length))


@kernel
def _count_within(prices, length, budget, rows):
    """Counts the rows of one length, at most `rows`, that cost at most `budget`; at least one.

    A division finds about how many fit, and its rounding is corrected one by one.
    """
    per_batch, per_row = _price_length(prices, length)
    if per_batch + rows * per_row <= budget:
        return rows
    fits = (budget - per_batch) / per_row if per_row > 0.0 else 1.0
    size = min(rows, int(fits)) if fits > 1.0 else 1
    while size < rows and per_batch + (size + 1) * per_row <= budget:
        size += 1
    while size > 1 and per_batch + size * per_row > budget:
        size -= 1
    return size


@kernel
def _divide_budget(length, left, bounds):
    """Fills a batch as `fill_batch` does, from `left` sequences of one length each. The first, `length`, is longest."""
    multiple = bounds.multiple
    most = min(bounds.max_sequences, left)
    within = _count_within(bounds.prices, length, bounds.budget, count_rows(most, multiple))
    fits = _count_within(bounds.level_prices, length, bounds.level, within)
    # `fits` rows fit. With a multiple of 8, 13 rows hold 8 sequences, and 5 rows hold 5.
    size = min(most, fits - (fits % multiple if fits >= multiple else 0))
    once, each = _price_length(bounds.prices, length)
    level_once, level_each = _price_length(bounds.level_prices, length)
    rows, more = count_rows(size, multiple), count_rows(size + 1, multiple)
    grown = level_once + more * level_each if size < most and more <= within else np.inf
    return size, once + rows * each, level_once + rows * level_each, grown


@kernel
def try_budget(lengths, boundaries, bounds, falling, wanted, ends):
    """Cuts sequences in order into batches as `greedy_cut` does, unless these are more than `wanted`.

    If lengths are `falling`, and each sequence has only one, a batch is as long as its first sequence. The time then
    grows with the batches, and not with the sequences. `ends` [wanted] receives the number of sequences up to the end
    of each batch.

    Returns:
    - the number of batches, or wanted + 1 if the sequences need more than `wanted`;
    - the costliest by `level_prices`, except those that alone are over the budget or the level;
    - the least level by which a batch would take another sequence; infinite if none can;
    - about how many batches all sequences fill: 2.5 if the third of three is half full. If only two are `wanted`, it is
      2.5 if the sequences left over are half as many as those of the second.
    """
    longest = np.empty(lengths.shape[1], np.int64)
    # No literals: a kernel that is called with a literal is compiled a second time.
    count, overshoot = np.int64(lengths.shape[0]), np.bool_(False)
    start, batches, size, passed = np.int64(0), 0, np.int64(0), 0
    cost, level_cost, costliest, next_level, filled = 0.0, 0.0, 0.0, np.inf, 0.0
    while start < count:
        if batches == wanted:
            return wanted + 1, costliest, next_level, wanted + (count - start) / size
        while passed < boundaries.size and boundaries[passed] <= start:
            passed += 1
        stop = boundaries[passed] if passed < boundaries.size else count
        if falling and longest.size == 1:
            length = float(lengths[start, 0])
            size, cost, level_cost, grown = _divide_budget(length, stop - start, bounds)
        else:
            size, cost, level_cost, grown = fill_batch(lengths[:stop], start, bounds, overshoot, longest)
        next_level = min(next_level, grown)
        if cost <= bounds.budget and level_cost <= bounds.level:
            costliest = max(costliest, level_cost)
        start += size
        ends[batches] = start
        batches += 1
    if batches > 0:
        spent = max(cost / bounds.budget, level_cost / bounds.level) if bounds.level > 0.0 else 1.0
        filled = batches - 1.0 + max(min(1.0, spent), size / bounds.max_sequences)
    return batches, costliest, next_level, filled


@kernel
def _count_wider(ends, batches, width):
    """Counts the batches that hold more than `width` sequences."""
    wider = previous_end = 0
    for batch in range(batches):
        wider += ends[batch] - previous_end > width
        previous_end = ends[batch]
    return wider


@kernel
def split_widest(ends, batches):
    """Halves the batch with the most sequences until `ends` is full, or all are single. Returns the number of batches.

    Three batches of 1, 4 and 2 sequences, `ends` [1, 5, 7, _], become four of 1, 2, 2 and 2: [1, 3, 5, 7].
    """
    slots = ends.size
    while batches < slots:
        widest = previous_end = 0
        for batch in range(batches):
            widest = max(widest, ends[batch] - previous_end)
            previous_end = ends[batch]
        if widest < 2:
            break
        # One round halves all batches that are wider than the halves of the widest: of the widths [9, 6, 5] these are 9
        # and 6. If fewer batches are missing, it halves only those above a larger width.
        low, high = (widest + 1) // 2, widest
        while low < high:
            middle = (low + high) // 2
            if _count_wider(ends, batches, middle) <= slots - batches:
                high = middle
            else:
                low = middle + 1
        wider = _count_wider(ends, batches, low)
        # Of the batches of exactly this width, the first ones are halved too, unless halves may have this width.
        equals = slots - batches - wider if low > (widest + 1) // 2 else 0
        equals = min(equals, _count_wider(ends, batches, low - 1) - wider)
        skipped = _count_wider(ends, batches, low - 1) - wider - equals
        batches += wider + equals
        place = batches - 1
        for batch in range(batches - wider - equals - 1, -1, -1):
            end = ends[batch]
            width = end - (ends[batch - 1] if batch > 0 else 0)
            ends[place] = end
            place -= 1
            skipped -= width == low
            if width > low or (width == low and skipped < 0):
                ends[place] = end - width // 2
                place -= 1
    return batches


@kernel
def _copy(source, target):
    """Copies an array. `target[:] = source` takes seconds to compile, because its error names both shapes."""
    for index in range(len(source)):
        target[index] = source[index]


@kernel
def cut_into(lengths, boundaries, bounds, falling, tolerance, guess, ends):
    """Cuts sequences in order into as many batches as there are `ends`, the costliest as cheap as possible.

    Bisects the level. The result is exact, because both ends move to costs that occur. A level that is too low is
    raised to the next one that changes a batch. A level that is enough is lowered to the cost of its costliest batch.
    So the order of tries only changes the time: first the `guess`, then the estimate of each try. In the end, the
    batches with the most sequences are halved until there are enough.

    Args:
        lengths, boundaries: As in `greedy_cut`.
        bounds: The limits of a batch; no batch of the result costs more than its budget.
        falling: As in `try_budget`.
        tolerance: The search ends once at most so many batches are missing, or the level hardly changes; 0 searches
            exactly.
        guess: The first level to try.
        ends: [batches], receives the number of sequences up to the end of each batch.

    Returns:
        The number of batches: fewer than wanted only if all are single sequences, and one more if the sequences need
        more. And the least level that was found.
    """
    low, tries, wanted, best_ends = 0.0, 0, ends.size, np.empty(ends.size, np.int64)
    best_count, high, _, _ = try_budget(lengths, boundaries, bounds, falling, wanted, ends)
    if best_count > wanted:
        return best_count, high
    _copy(ends, best_ends)
    middle = guess if guess < high else high * (1.0 - 2.0**-10)  # full steps need nearly all of the level
    while low < high and wanted > 1:
        if tolerance > 0 and (wanted - best_count <= tolerance or high - low < high * 2.0**-11):
            break
        middle = low + (high - low) / 2.0 if tries >= _TRIES else max(low, min(middle, high - high * 2.0**-52))
        if middle >= high:  # no float lies between
            break
        tried = Bounds(bounds.prices, bounds.budget, bounds.max_sequences, bounds.multiple, bounds.level_prices, middle)
        batches, costliest, next_level, filled = try_budget(lengths, boundaries, tried, falling, wanted, ends)
        if batches > wanted:
            low = next_level
        else:
            best_count, high = batches, costliest
            _copy(ends, best_ends)
        middle *= filled / wanted
        tries += 1
    _copy(best_ends, ends)
    return split_widest(ends, best_count), high

"""Whole steps: filled, sorted, and cut into batches of about equal cost."""

from __future__ import annotations

import math

import numpy as np

from lengthwise._compile import compile_kernel
from lengthwise._kernels.step_sorts import keep_until, largest, sort_step


@compile_kernel
def _divide_budget(length, left, prices, budget, most):
    """As `_fill_batch`, of the next `left` sequences of one length each, of which the first, `length`, is the longest.

    A division says how many fit, and what it rounds is put right one by one.
    """
    each = prices[1] + (prices[2] * length + prices[3] * (length * length))
    once = prices[0] + prices[4] * length
    size = room = min(most, left)
    if once + room * each > budget:
        fits = (budget - once) / each if each > 0.0 else 1.0
        size = min(room, int(fits)) if fits > 1.0 else 1
        while size < room and once + (size + 1) * each <= budget:
            size += 1
        while size > 1 and once + size * each > budget:
            size -= 1
    return size, once + size * each, once + (size + 1) * each if size < left else np.inf


@compile_kernel
def _pass_by(out, passed, place):
    """How many rows of `out`, rising, stand before the row that is at `place` without them; `passed` are known to.

    Without the rows [1, 2] of 5, the rows at the places 0, 1 and 2 are 0, 3 and 4.
    """
    while passed < out.size and out[passed] <= place + passed:
        passed += 1
    return passed


@compile_kernel
def _fill_batch(lengths, start, prices, budget, most, longest):
    """The batch from row `start` of `lengths` [m, dims] on: how many it takes, its cost, and its cost with one more.

    It takes one at least. Where none is left, one more costs infinity. `longest` [dims] is room to work in.
    """
    dims, stop = lengths.shape[1], lengths.shape[0]
    for dim in range(dims):
        longest[dim] = 0
    each, once, cost, grown, size = 0.0, 0.0, 0.0, np.inf, 0
    for row in range(start, stop):
        # All are padded to the longest, and most sequences are shorter: then what one costs is known.
        longer = False
        for dim in range(dims):
            longer = longer or lengths[row, dim] > longest[dim]
        if longer:
            each, once = 0.0, prices[0]
            for dim in range(dims):
                length = float(max(longest[dim], lengths[row, dim]))
                each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
                once += prices[2 + 2 * dims + dim] * length
        grown = once + (size + 1) * (prices[1] + each)
        if size > 0 and (grown > budget or size == most):
            return size, cost, grown
        if longer:
            for dim in range(dims):
                longest[dim] = max(longest[dim], lengths[row, dim])
        size += 1
        cost = grown
    return size, cost, np.inf


@compile_kernel
def _fill_padded(lengths, start, budget, most):
    """`_fill_batch` of two lengths a sequence by their padded frames, in half the time.

    Whole numbers, which are exact, and no branch that nobody can foresee.
    """
    first, second, size = np.int64(0), np.int64(0), np.int64(0)
    whole = np.int64(min(budget, 2.0**62))
    for row in range(start, lengths.shape[0]):
        longer, wider = max(first, np.int64(lengths[row, 0])), max(second, np.int64(lengths[row, 1]))
        grown = (size + 1) * (longer + wider)
        if size > 0 and (grown > whole or size == most):
            return size, float(size * (first + second)), float(grown)
        first, second = longer, wider
        size += 1
    return size, float(size * (first + second)), np.inf


@compile_kernel
def _is_padded(prices, dims):
    """Whether a batch of two lengths a sequence costs the frames that it is padded to."""
    plain = dims == 2 and prices[2] == 1.0 and prices[3] == 1.0
    for place in range(prices.size):
        plain = plain and (prices[place] == 0.0 or place in (2, 3))
    return plain


@compile_kernel
def cut_falling(lengths, out, prices, budget, most, slots, ends):
    """Cuts a step, its sequences sorted from the longest, into batches of at most `budget` in cost each.

    A sequence of `lengths` [m, dims] that is over the budget by itself stands alone. Of one length a sequence, a batch
    is as long as its first: this takes time for the batches, and not for the sequences. There, rows `out`, rising, may
    take no part; of several lengths there are no such rows. `ends` [slots] receives how many sequences stand in the
    batches up to each. Returns

    - how many batches there are, or slots + 1 as soon as the sequences need more than `slots`;
    - what the costliest of them costs, without those that stand alone over the budget;
    - the least budget under which one of them would take another sequence: infinite where none can.
    """
    longest = np.empty(lengths.shape[1], np.int64)
    count, padded = lengths.shape[0] - out.size, _is_padded(prices, longest.size)
    # No literals: what is called with one is compiled a second time.
    start, passed, batches = np.int64(0), np.int64(0), 0
    costliest, more = 0.0, np.inf
    while start < count:
        if batches == slots:
            return slots + 1, costliest, more
        if longest.size == 1:
            passed = _pass_by(out, passed, start)
            longest_of_all = float(lengths[start + passed, 0])
            size, cost, grown = _divide_budget(longest_of_all, count - start, prices, budget, most)
        elif padded:
            size, cost, grown = _fill_padded(lengths, start, budget, most)
        else:
            size, cost, grown = _fill_batch(lengths, start, prices, budget, most, longest)
        # A batch that is full by count takes no more under any budget.
        more = min(more, grown) if size < most else more
        costliest = max(costliest, cost) if cost <= budget else costliest
        start += size
        ends[batches] = start
        batches += 1
    return batches, costliest, more


@compile_kernel
def _count_wider(ends, batches, width):
    """How many batches hold more than `width` sequences."""
    wider = before = 0
    for batch in range(batches):
        wider += ends[batch] - before > width
        before = ends[batch]
    return wider


@compile_kernel(linear=True)
def split_widest(ends, batches, slots):
    """Halves the batch of most sequences until there are `slots` batches, or all are single sequences: how many.

    Three batches of 1, 4 and 2 sequences, `ends` [1, 5, 7, _], become four of 1, 2, 2 and 2: [1, 3, 5, 7].
    """
    while batches < slots:
        widest = before = 0
        for batch in range(batches):
            widest = max(widest, ends[batch] - before)
            before = ends[batch]
        if widest < 2:
            break
        # All that are wider than the halves of the widest are halved before any half is: in one round. Of widths
        # [9, 6, 5] these are 9 and 6. Where they are more than what is missing, a larger width parts them.
        low, high = (widest + 1) // 2, widest
        while low < high:
            middle = (low + high) // 2
            if _count_wider(ends, batches, middle) <= slots - batches:
                high = middle
            else:
                low = middle + 1
        wider = _count_wider(ends, batches, low)
        # Of those just as wide the first ones, unless halves may be as wide.
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


@compile_kernel
def level_step(lengths, prices, budget, most, slots, ends, guess):
    """Cuts a step into `slots` batches, the costliest of which costs the least possible.

    Bisection on the budget, exact because both ends move to costs that occur: a budget that is too small is raised to
    the next that changes a batch, and one that is enough is lowered to the costliest batch under it. So the `guess`
    changes only how many tries it takes. The next tries are ever further from it, until the least lies between two.

    Returns:
        How many batches there are, and what the costliest costs.
    """
    none = ends[:0]
    _, high, _ = cut_falling(lengths, none, prices, budget, most, slots, ends)
    # Full steps need nearly all of the budget: the first try is a little below it.
    guess = min(guess, high)
    low, stride = 0.0, guess / 1024.0
    guess -= stride
    while low < high and slots > 1:
        middle = guess if low < guess < high else low + (high - low) / 2.0
        if middle >= high:  # neighbours among the floats
            break
        batches, costliest, more = cut_falling(lengths, none, prices, middle, most, slots, ends)
        if batches > slots:
            low, guess = more, middle + stride
        else:
            high, guess = costliest, middle - stride
        stride *= 2.0
    batches, _, _ = cut_falling(lengths, none, prices, high, most, slots, ends)
    return split_widest(ends, batches, slots), high


@compile_kernel
def _copy_rows(needed, positions, lengths):
    """The rows of `needed` at those `positions`, in the first rows of `lengths`."""
    for dim in range(needed.shape[1]):
        for row in range(positions.size):
            lengths[row, dim] = needed[positions[row], dim]
    return lengths[: positions.size]


@compile_kernel
def _find_late(positions, first, late):
    """The ranks, rising, of those whose position is `first` or beyond; they stand in `late`."""
    count = 0
    for rank in range(positions.size):
        late[count] = rank
        count += positions[rank] >= first
    return late[:count]


@compile_kernel
def _cut_until(lengths, positions, late, end, prices, budget, most, slots, ends, more, kept):
    """How many batches `cut_falling` makes of those whose position is below `end`: all but some of `late`.

    `more` [m] and `kept` [m, dims] are room to work in.
    """
    count, dims = 0, lengths.shape[1]
    if dims == 1:
        for rank in late:
            more[count] = rank
            count += positions[rank] >= end
        batches, _, _ = cut_falling(lengths, more[:count], prices, budget, most, slots, ends)
        return batches
    # Of several lengths every row is looked at, and it is quicker to copy those that stay than to pass others by.
    for row in range(positions.size):
        kept[count, 0], kept[count, 1] = lengths[row, 0], lengths[row, 1]
        for dim in range(2, dims):
            kept[count, dim] = lengths[row, dim]
        count += positions[row] < end  # if not, the next one takes its place
    batches, _, _ = cut_falling(kept[:count], more[:0], prices, budget, most, slots, ends)
    return batches


@compile_kernel
def _fit_most(lengths, positions, start, fits, guess, prices, budget, most, slots, ends, spare, more, kept):
    """The most sequences, from position `start` on, that `slots` batches hold: `fits` do, and all of them do not.

    Each try leaves out those beyond a number of them. The first is a little below the guess, so that the next ones
    need only look at what is beyond. They are ever further from the guess; then follows bisection.

    Args:
        lengths: [m, dims], sorted from the longest.
        positions: [m], of each in order, from `start` on.
        spare, more: [m], room to work in.
        kept: [m, dims], room to work in.
    """
    beyond, spread = np.int64(positions.size), int(math.sqrt(guess)) + 1
    first = max(fits, guess - 4 * spread)
    late = _find_late(positions, start + first, spare)
    if first > fits:
        end = start + first
        if _cut_until(lengths, positions, late, end, prices, budget, most, slots, ends, more, kept) <= slots:
            fits = first
        else:
            beyond = first
            late = _find_late(positions, start + fits, spare)
    stride = spread // 2 + 1
    while beyond - fits > 1:
        middle = guess if fits < guess < beyond else (fits + beyond) // 2
        end = start + middle
        if _cut_until(lengths, positions, late, end, prices, budget, most, slots, ends, more, kept) > slots:
            beyond, guess = middle, middle - stride
        else:
            fits, guess = middle, middle + stride
        stride *= 2
    return fits


@compile_kernel(linear=True)
def fill_steps(needed, sizes, prices, budget, most, slots, guess, taken, sequences):
    """Fills steps in order, each with the most sequences that `slots` batches under the budget hold. Returns how many.

    Args:
        needed: [n, dims], what each sequence must be padded to, in order.
        sizes: [n] int64, by which a step is sorted before it is cut.
        prices, budget, most: As in `greedy_cut`.
        slots: Batches of a step.
        guess: About how many sequences the first step takes, at least one: it changes nothing but the time.
        taken: [n], receives how many sequences each step takes.
        sequences: [n], receives the positions of the sequences, step by step, each step from its largest.
    """
    count = needed.shape[0]
    top = largest(sizes)
    ends = np.empty(slots, np.int64)
    counts = np.empty(8192, np.int64)
    room = np.empty((3, 64), np.int64)
    copies = min(2, needed.shape[1])  # of one length, tries need no rows of their own
    lengths = np.empty((copies, 64, needed.shape[1]), needed.dtype)
    start, steps = np.int64(0), 0
    while start < count:
        left = count - start
        # Random steps take about as many as the one before: of 100, some 10 more or less; of 10,000, some 100.
        reach = min(left, guess + 4 * (int(math.sqrt(guess)) + 1))
        fits = min(slots, left)
        while True:
            if reach > room.shape[1]:
                room = np.empty((3, reach + reach // 8), np.int64)
                lengths = np.empty((copies, room.shape[1], needed.shape[1]), needed.dtype)
            positions, spare = sort_step(sizes, top, start, start + reach, room, counts)
            if fits == reach:
                break
            own = _copy_rows(needed, positions, lengths[0])
            batches, _, _ = cut_falling(own, room[2, :0], prices, budget, most, slots, ends)
            if batches > slots:
                limits = (prices, budget, most, slots, ends, spare, room[2], lengths[copies - 1])
                fits = _fit_most(own, positions, start, fits, guess, *limits)
                break
            fits = reach
            if reach == left:
                break
            reach = min(left, 2 * reach)
        keep_until(positions, start + fits, sequences[start:])
        taken[steps] = fits
        steps += 1
        start += fits
        guess = fits
    return steps


@compile_kernel(linear=True)
def cut_steps(lengths, taken, prices, budget, most, slots, offsets):
    """Cuts each step, sorted, into `slots` batches by `level_step`. Returns how many batches there are.

    Args:
        lengths: [n, dims], what each sequence must be padded to, step by step, each step from its largest.
        taken: [steps], how many sequences each step takes.
        prices, budget, most: As in `greedy_cut`.
        slots: Batches of a step.
        offsets: [steps x slots + 1], receives where each batch begins, and the end.
    """
    ends = np.empty(slots, np.int64)
    start = batches = 0
    costliest = np.inf
    offsets[0] = 0
    for size in taken:
        # Steps cost about as much as the one before.
        found, costliest = level_step(lengths[start : start + size], prices, budget, most, slots, ends, costliest)
        for batch in range(found):
            offsets[batches + 1 + batch] = start + ends[batch]
        batches += found
        start += size
    return batches

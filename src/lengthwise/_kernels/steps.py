"""Whole steps: filled, sorted, and cut into batches of about equal cost."""

from __future__ import annotations

import math

import numpy as np

from lengthwise._compile import kernel
from lengthwise._kernels.cuts import count_rows, fill_batch
from lengthwise._kernels.step_sorts import keep_until, largest, sort_step

_TRIES = 8  # by what the try before says; then bisection, which needs no luck
_SURE = 4  # tries of a step from which on what a try says of the next is mostly chance
_NEAR = 64  # sequences: the bisection of so few takes no more tries


@kernel
def _divide_budget(length, left, prices, budget, most, multiple):
    """As `fill_batch`, of the next `left` sequences of one length each, of which the first, `length`, is the longest.

    A division says how many fit, and what it rounds is put right one by one.
    """
    each = prices[1] + (prices[2] * length + prices[3] * (length * length))
    once = prices[0] + prices[4] * length
    size = min(most, left)
    rows = count_rows(size, multiple)
    if once + rows * each > budget:
        fits = (budget - once) / each if each > 0.0 else 1.0
        size = min(rows, int(fits)) if fits > 1.0 else 1
        while size < rows and once + (size + 1) * each <= budget:
            size += 1
        while size > 1 and once + size * each > budget:
            size -= 1
        # As many rows fit. Of multiples of 8, 13 rows hold 8 sequences, and 5 rows hold 5.
        size -= size % multiple if size >= multiple else 0
    cost = once + count_rows(size, multiple) * each
    return size, cost, once + count_rows(size + 1, multiple) * each if size < left else np.inf


@kernel
def cut_falling(lengths, prices, budget, most, multiple, slots, ends):
    """Cuts a step, its sequences sorted from the longest, into batches of at most `budget` in cost each.

    A sequence of `lengths` [m, dims] that is over the budget by itself stands alone. Of one length a sequence, a batch
    is as long as its first: this takes time for the batches, and not for the sequences. `ends` [slots] receives how
    many sequences stand in the batches up to each. Returns

    - how many batches there are, or slots + 1 as soon as the sequences need more than `slots`;
    - what the costliest of them costs, without those that stand alone over the budget;
    - the least budget under which one of them would take another sequence: infinite where none can;
    - about how many batches all sequences fill: 2.5 if the third of three is half full. If there may be only two, it is
      2.5 where half as many sequences are left over as stand in the second.
    """
    longest = np.empty(lengths.shape[1], np.int64)
    count, overshoot = lengths.shape[0], np.bool_(False)
    # No literals: what is called with one is compiled a second time.
    start, batches, size = np.int64(0), 0, np.int64(0)
    cost, costliest, more, filled = 0.0, 0.0, np.inf, 0.0
    while start < count:
        if batches == slots:
            return slots + 1, costliest, more, slots + (count - start) / size
        if longest.size == 1:
            length = float(lengths[start, 0])
            size, cost, grown = _divide_budget(length, count - start, prices, budget, most, multiple)
        else:
            size, cost, grown = fill_batch(lengths, start, prices, budget, most, multiple, overshoot, longest)
        # A batch that is full by count takes no more under any budget.
        more = min(more, grown) if size < most else more
        costliest = max(costliest, cost) if cost <= budget else costliest
        start += size
        ends[batches] = start
        batches += 1
    if batches > 0:
        filled = batches - 1.0 + max(min(1.0, cost / budget) if budget > 0.0 else 1.0, size / most)
    return batches, costliest, more, filled


@kernel
def _count_wider(ends, batches, width):
    """How many batches hold more than `width` sequences."""
    wider = before = 0
    for batch in range(batches):
        wider += ends[batch] - before > width
        before = ends[batch]
    return wider


@kernel
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


@kernel
def _copy(source, target):
    """As `target[:] = source`, which takes seconds to compile: Numba's error about their shapes formats texts."""
    for index in range(len(source)):
        target[index] = source[index]


@kernel
def level_step(lengths, prices, budget, most, multiple, slots, ends, guess):
    """Cuts a step into `slots` batches, the costliest of which costs the least possible.

    Bisection on the budget, exact because both ends move to costs that occur: a budget that is too small is raised to
    the next that changes a batch, and one that is enough is lowered to the costliest batch under it. So what is tried
    changes only how many tries it takes: first the `guess`, and then what each try says of the next.

    Returns:
        How many batches there are, and what the costliest costs.
    """
    low, tries, kept = 0.0, 0, np.empty(slots, np.int64)
    enough, high, _, _ = cut_falling(lengths, prices, budget, most, multiple, slots, ends)
    _copy(ends, kept)
    middle = guess if guess < high else high * (1.0 - 2.0**-10)  # full steps need nearly all of the budget
    while low < high and slots > 1:
        middle = low + (high - low) / 2.0 if tries >= _TRIES else max(low, min(middle, high - high * 2.0**-52))
        if middle >= high:  # neighbours among the floats
            break
        batches, costliest, more, filled = cut_falling(lengths, prices, middle, most, multiple, slots, ends)
        if batches > slots:
            low = more
        else:
            enough, high = batches, costliest
            _copy(ends, kept)
        middle *= filled / slots
        tries += 1
    _copy(kept, ends)
    return split_widest(ends, enough, slots), high


@kernel
def copy_until(needed, positions, end, lengths):
    """The rows of `needed` at those `positions` that are below `end`, in the first rows of `lengths`."""
    row, dims = 0, needed.shape[1]
    second = min(1, dims - 1)
    for position in positions:
        # One or two without a loop: that would take longer than the rest.
        lengths[row, 0] = needed[position, 0]
        lengths[row, second] = needed[position, second]
        for dim in range(2, dims):
            lengths[row, dim] = needed[position, dim]
        row += position < end  # if not, the next one takes its place
    return lengths[:row]


@kernel
def fill_steps(needed, sizes, prices, budget, most, multiple, slots, guess, taken, sequences):
    """Fills steps in order, each with the most sequences that `slots` batches under the budget hold. Returns how many.

    More sequences than a step may take are sorted. Each try leaves out those beyond a number of them, and says about
    how many more or fewer fit. After some tries, bisection follows.

    Args:
        needed: [n, dims], what each sequence must be padded to, in order.
        sizes: [n], whole numbers by which a step is sorted before it is cut.
        prices, budget, most: As in `greedy_cut`.
        multiple: As in `greedy_cut`.
        slots: Batches of a step.
        guess: About how many sequences the first step takes, at least one: it changes nothing but the time.
        taken: [n], receives how many sequences each step takes.
        sequences: [n], receives the positions of the sequences, step by step, each step from its largest.
    """
    count, dims = needed.shape
    top = largest(sizes)
    ends = np.empty(slots, np.int64)
    counts = np.empty(8192, np.int64)
    spare, lengths, positions = np.empty(64, np.int64), np.empty((64, dims), np.int64), sequences[:0]
    start, steps = np.int64(0), 0
    while start < count:
        left = count - start
        fits, reach = min(slots, left), np.int64(0)  # so many fit, and so many are sorted
        beyond, middle, tries, further = fits + 1, guess, 0, 0
        while True:
            if beyond - fits == 1:
                if fits < reach or reach == left:
                    break
                # Random steps take about as many as those before: of 100, some 10 more or less; of 10,000, some 100.
                reach = min(left, max(fits, 2 * reach if reach > 0 else guess + 3 * (int(math.sqrt(guess)) + 1)))
                if reach > spare.size:
                    spare = np.empty(reach + reach // 8, np.int64)
                    lengths = np.empty((spare.size, dims), np.int64)
                positions = sequences[start : start + reach]
                sort_step(sizes, top, start, start + reach, positions, spare, counts)
                beyond = reach + 1
                continue
            middle = (fits + beyond) // 2 if tries >= _TRIES else max(fits + 1, min(middle, beyond - 1))
            end = start + middle
            own = copy_until(needed, positions, end, lengths)
            batches, _, _, filled = cut_falling(own, prices, budget, most, multiple, slots, ends)
            # Ever further in the same direction, until what fits lies between two tries.
            if batches > slots:
                beyond, further = middle, min(further, 0) * 2 - 1
            else:
                fits, further = middle, max(further, 0) * 2 + 1
            middle = int(middle * slots / filled)
            tries += 1
            if tries >= _SURE:
                middle = (fits + beyond) // 2 if beyond - fits <= _NEAR else middle + further // 2
        keep_until(positions, start + fits, positions)
        guess = fits if steps == 0 else guess + (fits - guess) // 4
        taken[steps] = fits
        steps += 1
        start += fits
    return steps


@kernel
def cut_steps(lengths, taken, prices, budget, most, multiple, slots, offsets):
    """Cuts each step, sorted, into `slots` batches by `level_step`. Returns how many batches there are.

    Args:
        lengths: [n, dims], what each sequence must be padded to, step by step, each step from its largest.
        taken: [steps], how many sequences each step takes.
        prices, budget, most: As in `greedy_cut`.
        multiple: As in `greedy_cut`.
        slots: Batches of a step.
        offsets: [steps x slots + 1], receives where each batch begins, and the end.
    """
    ends = np.empty(slots, np.int64)
    start = batches = 0
    costliest = np.inf
    offsets[0] = 0
    for size in taken:
        # Steps cost about as much as the one before.
        step = lengths[start : start + size]
        found, costliest = level_step(step, prices, budget, most, multiple, slots, ends, costliest)
        for batch in range(found):
            offsets[batches + 1 + batch] = start + ends[batch]
        batches += found
        start += size
    return batches

"""A step cut into batches that hold multiples: the fewest batches on the way to each of its positions.

costs   [n, ahead]    what the next 1, 2, ... sequences from each position on cost, filled up to the multiple
number  [n + 1]       the fewest batches that hold all sequences before a position; -1 where no way leads there
paid    [n + 1]       what the costliest of these batches costs
first   [n + 1]       where the last of them begins

Batches hold a multiple of sequences. One that begins where the `hard` budget does not hold so many may hold any fewer.
One of a single sequence over the hard budget counts as free. Where `loose`, the last of all may hold any number.
"""

from __future__ import annotations

import numpy as np

from lengthwise._compile import compile_kernel


@compile_kernel
def _keep(start, stop, cost, number, paid, first):
    """Keeps the batch start..stop-1 as the last on the way to `stop`, if that is fewer or cheaper ones."""
    batches, costliest = number[start] + 1, max(paid[start], cost)
    known = number[stop]
    if known < 0 or batches < known or (batches == known and costliest < paid[stop]):
        number[stop], paid[stop], first[stop] = batches, costliest, start


@compile_kernel
def _holds(lengths, start, within, rows, prices, budget):
    """Whether so many `rows`, as long as the next `within` sequences, are within the budget."""
    dims = lengths.shape[1]
    longest = np.zeros(dims, np.int64)
    for index in range(start, start + within):
        each, once, grown = 0.0, prices[0], False
        for dim in range(dims):
            grown = grown or lengths[index, dim] > longest[dim]
            longest[dim] = max(longest[dim], lengths[index, dim])
            length = float(longest[dim])
            each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
            once += prices[2 + 2 * dims + dim] * length
        if grown and once + rows * (prices[1] + each) > budget:
            return False
    return True


@compile_kernel
def reach_multiples(lengths, prices, budget, hard, most, multiple, loose, number, paid, first):
    """Cuts `lengths` [n, dims] into batches of at most `budget` in cost, and of at most `most` sequences.

    Returns the least budget above this one that may allow another batch; infinite where none does.
    """
    count, dims = lengths.shape
    longest = np.zeros(dims, np.int64)
    more = np.inf
    number[:] = -1
    number[0], paid[0] = 0, 0.0
    for start in range(count):
        if number[start] < 0:
            continue
        left = count - start
        few = not _holds(lengths, start, min(multiple, left), multiple, prices, hard)
        longest[:] = 0
        for size in range(1, min(left, most) + 1):
            each, once = 0.0, prices[0]
            for dim in range(dims):
                longest[dim] = max(longest[dim], lengths[start + size - 1, dim])
                length = float(longest[dim])
                each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
                once += prices[2 + 2 * dims + dim] * length
            rows = size if size < multiple else -(-size // multiple) * multiple
            cost = once + rows * (prices[1] + each)
            if size == 1 and cost > hard:
                _keep(start, start + 1, 0.0, number, paid, first)
                break
            if cost > budget:
                more = min(more, cost) if cost <= hard else more
                break
            if size % multiple == 0 or (few and size < multiple) or (loose and size == left):
                _keep(start, start + size, cost, number, paid, first)
    return more


@compile_kernel
def reach_multiples_from(costs, full, budget, hard, most, multiple, loose, number, paid, first):
    """The same for costs that a table gives; `ahead` sequences are as many as the hard budget holds, or more.

    full [n] is what a batch of `multiple` sequences from each position on costs.
    """
    count, ahead = costs.shape
    more = np.inf
    number[:] = -1
    number[0], paid[0] = 0, 0.0
    for start in range(count):
        if number[start] < 0:
            continue
        left = count - start
        few = full[start] > hard
        for size in range(1, min(min(left, most), ahead) + 1):
            cost = costs[start, size - 1]
            if size == 1 and cost > hard:
                _keep(start, start + 1, 0.0, number, paid, first)
                break
            if cost > budget:
                more = min(more, cost) if cost <= hard else more
                break
            if size % multiple == 0 or (few and size < multiple) or (loose and size == left):
                _keep(start, start + size, cost, number, paid, first)
    return more


@compile_kernel
def split_multiples(ends, batches, slots, multiple):
    """Halves the batch of most sequences until there are `slots` batches, or all are single sequences: how many.

    The second half of a batch of more than `multiple` sequences holds a multiple: of 8s, 24 become 16 and 8. Of 1,
    `split_widest` does the same in fewer passes.
    """
    while batches < slots:
        widest = at = 0
        for batch in range(batches):
            width = ends[batch] - (ends[batch - 1] if batch > 0 else 0)
            if width > widest:
                widest, at = width, batch
        if widest < 2:
            break
        for batch in range(batches, at, -1):
            ends[batch] = ends[batch - 1]
        half = widest // 2
        if widest > multiple:
            half = max(multiple, half // multiple * multiple)
        ends[at] -= half
        batches += 1
    return batches

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

from lengthwise._compile import kernel


@kernel
def _keep(start, stop, cost, number, paid, first):
    """Keeps the batch start..stop-1 as the last on the way to `stop`, if that is fewer or cheaper ones."""
    batches, costliest = number[start] + 1, max(paid[start], cost)
    known = number[stop]
    if known < 0 or batches < known or (batches == known and costliest < paid[stop]):
        number[stop], paid[stop], first[stop] = batches, costliest, start


@kernel
def _keep_all(start, costs, rules, number, paid, first):
    """Keeps all batches that begin at `start`; `costs` [size] says what the next 1, 2, ... sequences cost together.

    Returns the least budget above that of the rules that may allow another of them. `rules` are the budget, the hard
    one, the multiple, whether a batch may hold fewer, and how many sequences a loose cut may leave to the last, or 0.
    """
    budget, hard, multiple, few, last = rules
    for size in range(1, costs.size + 1):
        cost = costs[size - 1]
        if size == 1 and cost > hard:
            _keep(start, start + 1, 0.0, number, paid, first)
            break
        if cost > budget:
            return cost if cost <= hard else np.inf
        if size % multiple == 0 or (few and size < multiple) or size == last:
            _keep(start, start + size, cost, number, paid, first)
    return np.inf


@kernel
def _price_from(lengths, start, prices, budget, hard, most, multiple, costs):
    """Writes to `costs` what the next 1, 2, ... sequences from `start` on cost, filled up, until they are too many.

    Returns how many were priced, and whether a whole multiple would be over the hard budget, as long as these are.
    """
    dims = lengths.shape[1]
    longest = np.zeros(dims, np.int64)
    few = False
    size = 0
    while size < min(lengths.shape[0] - start, most):
        each, once = 0.0, prices[0]
        for dim in range(dims):
            longest[dim] = max(longest[dim], lengths[start + size, dim])
            length = float(longest[dim])
            each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
            once += prices[2 + 2 * dims + dim] * length
        size += 1
        rows = size if size < multiple else -(-size // multiple) * multiple
        costs[size - 1] = once + rows * (prices[1] + each)
        few = few or (size <= multiple and once + multiple * (prices[1] + each) > hard)
        # Whether fewer are allowed is known once a multiple was priced.
        if costs[size - 1] > budget and (few or size >= multiple):
            break
    return size, few


@kernel
def reach_multiples(lengths, prices, budget, hard, most, multiple, loose, number, paid, first):
    """Cuts `lengths` [n, dims] into batches of at most `budget` in cost, and of at most `most` sequences.

    Sequences of one length each must stand from the longest. Returns the least budget above this one that may allow
    another batch; infinite where none does.
    """
    count = lengths.shape[0]
    if lengths.shape[1] == 1:
        return _reach_falling(lengths, prices, budget, hard, most, multiple, loose, number, paid, first)
    costs = np.empty(count)
    more = np.inf
    number[:] = -1
    number[0], paid[0] = 0, 0.0
    for start in range(count):
        if number[start] >= 0:
            size, few = _price_from(lengths, start, prices, budget, hard, most, multiple, costs)
            rules = (budget, hard, multiple, few, count - start if loose else 0)
            more = min(more, _keep_all(start, costs[:size], rules, number, paid, first))
    return more


@kernel
def _reach_falling(lengths, prices, budget, hard, most, multiple, loose, number, paid, first):
    """The same for sequences of one length each, from the longest: a batch is as long as its first.

    All numbers of sequences that are filled up to one multiple cost the same, so that the largest of them is tried: of
    multiples of 8 and 21 sequences, these are 8, 16 and 21. Below 8 all are tried, unless 8 are within the budget.
    """
    count = lengths.shape[0]
    more = np.inf
    number[:] = -1
    number[0], paid[0] = 0, 0.0
    for start in range(count):
        if number[start] < 0:
            continue
        length = float(lengths[start, 0])
        price = prices[1] + (prices[2] * length + prices[3] * (length * length))
        once = prices[0] + prices[4] * length
        few = once + multiple * price > hard
        limit = min(count - start, most)
        last = count - start if loose else 0
        rows = 1 if once + multiple * price > budget else min(multiple, limit)
        while True:
            size = min(rows, limit)
            cost = once + rows * price
            if rows == 1 and cost > hard:
                _keep(start, start + 1, 0.0, number, paid, first)
                break
            if cost > budget:
                more = min(more, cost) if cost <= hard else more
                break
            if size == last or (size == rows if rows >= multiple else few):
                _keep(start, start + size, cost, number, paid, first)
            if size == limit:
                break
            rows += 1 if rows < multiple else multiple
    return more


@kernel
def reach_multiples_from(costs, full, budget, hard, most, multiple, loose, number, paid, first):
    """The same for costs that a table gives; `ahead` sequences are as many as the hard budget holds, or more.

    full [n] is what a batch of `multiple` sequences from each position on costs.
    """
    count, ahead = costs.shape
    more = np.inf
    number[:] = -1
    number[0], paid[0] = 0, 0.0
    for start in range(count):
        if number[start] >= 0:
            rules = (budget, hard, multiple, full[start] > hard, count - start if loose else 0)
            size = min(min(count - start, most), ahead)
            more = min(more, _keep_all(start, costs[start, :size], rules, number, paid, first))
    return more


@kernel
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

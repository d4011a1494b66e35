"""The loops of the limits, as machine code. Platforms may round their last digits differently."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True)
def mix_in_batches(decays, masses, most, rounds, marginal, factors, weights):
    """Blahut-Arimoto where at least one in most[t] of those padded to t is of length t itself.

    Sequences stand at levels of rising lengths, in shares `masses`. To pad one from level s to s + 1 costs
    -log(decays[s]), of levels - 1; `most` [levels] is at least 1. `marginal` is q(t) to begin with and in the end. The
    condition has a multiplier, price(t); `factors` [2, levels] are exp(-price(t) / most(t)) and exp(price(t)) times
    that, 1 to begin with. Each round computes Z(x) = the sum over t of q(t) K(x, t) into `weights`, with K(x, t) = the
    decays from x to t, times the first factor, or for t = x the second; then the best prices, and q(t) times the sum
    over x of p(x) K(x, t) / Z(x).
    """
    last = masses.size - 1
    for _ in range(rounds):
        longer = 0.0  # what the lengths beyond x add to Z(x)
        for level in range(last, -1, -1):
            if level < last:
                longer = decays[level] * (longer + marginal[level + 1] * factors[0, level + 1])
            weights[level] = longer + marginal[level] * factors[1, level]
        shorter = 0.0  # the sum over x < t of p(x) / Z(x), times the decays from x to t
        for level in range(last + 1):
            if level:
                shorter = decays[level - 1] * (shorter + masses[level - 1] / weights[level - 1])
            own = masses[level] / weights[level]
            # Of those padded to t the share exp(price) own / (shorter + exp(price) own) are of length t: 1 in `most`.
            raised = max(1.0, shorter / max(1e-300, (most[level] - 1.0) * own))  # exp(price)
            factors[0, level] = math.exp(-math.log(raised) / most[level]) if raised > 1.0 else 1.0
            factors[1, level] = raised * factors[0, level]
            marginal[level] = max(1e-300, marginal[level] * (shorter * factors[0, level] + own * factors[1, level]))


@njit(cache=True)
def information_in_batches(decays, masses, most, weights):
    """At most the least I(X; T) plus what padding costs, in nats, whatever `weights` [levels] of `mix_in_batches` are.

    It is the dual's value. a(x) = p(x) / Z(x) counts as far as it is feasible: a(t) <= g(s), with s the sum over x < t
    of a(x) times the decays from x to t. With B = most[t], g(s) = 1 - s up to s = 1 - 1 / B, and beyond
    (1 / B) (s B / (B - 1))^(1 - B).
    """
    total, shorter = 0.0, 0.0
    for level in range(masses.size):
        batch = most[level]
        if shorter <= 1.0 - 1.0 / batch:
            allowed = 1.0 - shorter
        elif batch == 1.0:
            allowed = 1.0
        else:
            allowed = np.exp(-np.log(batch) - (batch - 1.0) * np.log(shorter * batch / (batch - 1.0)))
        own = min(allowed, masses[level] / weights[level])
        total += masses[level] * np.log(own / masses[level])
        if level < masses.size - 1:
            shorter = decays[level] * (shorter + own)
    return total


@njit(cache=True)
def costliest_edges(sizes, prices, beta, edges):
    """The edges for which the sum of prices[x] exp(-beta (edge of x - sizes[x])) is greatest: that sum, and how many.

    `sizes` [levels] rise; the edge of x is the least that is no shorter. Writes the levels of at most `edges.size` of
    them, rising, to the end of `edges`.

    Levels i to j that are padded to j add held[j] - held[i - 1] exp(-beta (sizes[j] - sizes[i - 1])), with held[j] the
    sum over all levels up to j. The best of m edges whose last is j is the best of m - 1 before some i, and then j. The
    best i never falls as j rises: what a longer first level takes away shrinks by the same factor for all. So the
    levels are halved: the i of the middle one bounds those of both halves.
    """
    count = sizes.size
    held = np.empty(count)
    for level in range(count):
        before = held[level - 1] * np.exp(-beta * (sizes[level] - sizes[level - 1])) if level else 0.0
        held[level] = before + prices[level]
    best, better = held.copy(), np.empty(count)
    first = np.zeros((edges.size, count), np.int32)  # the i of each j: 0 where fewer edges do
    waiting = np.empty((64, 4), np.int64)  # low, high, and the least and the most that i can be
    for edge in range(1, edges.size):
        waiting[0] = 0, count - 1, 0, count - 1
        left = 1
        while left:
            left -= 1
            low, high, least, most = waiting[left]
            middle = (low + high) // 2
            value, start = held[middle], 0
            for i in range(max(1, least), min(middle, most) + 1):
                padded = held[i - 1] * np.exp(-beta * (sizes[middle] - sizes[i - 1]))
                gain = best[i - 1] + (held[middle] - padded)
                if gain > value:
                    value, start = gain, i
            better[middle], first[edge, middle] = value, start
            if low < middle:
                waiting[left] = low, middle - 1, least, start
                left += 1
            if middle < high:
                waiting[left] = middle + 1, high, start, most
                left += 1
        best, better = better, best
    last, edge = np.argmax(best), edges.size - 1
    total, found = best[last], 0
    while True:
        found += 1
        edges[edges.size - found] = last
        if first[edge, last] == 0:
            return total, found
        last, edge = first[edge, last] - 1, edge - 1


@njit(cache=True)
def fill_epoch(counts, fewest, most, prices, least, opened, origins, beside):
    """The batches of an epoch whose places for shorter sequences cost least: writes how many places at each level.

    Returns what they cost, infinity where no batches leave so few places empty. Sequences stand at levels of rising
    lengths, `counts` of each. A batch that is padded to a level has fewest to most
    places there. Those beyond level s that no longer sequence takes are beside[s] [levels - 1], of price prices[s]
    each; shorter ones take them, and a few stay empty: `least` [empty + 1, room + 1] says how many at most.

    Of the counts 3 and 2 and batches of 4: one batch beyond level 0, and beside[0] = 2. All five are held by two, which
    leaves three places empty.

    Down the levels, least[w, e] is what e places beside cost at least, if w are empty by then. An e of `room` stands
    for room and more: any number from there on may follow. `opened` [empty + 1, room + 1 + max(counts)] is the same
    before the sequences of the level are seated; `origins` [levels, ...] of its shape is where each came from.
    """
    room, levels = least.shape[1] - 1, counts.size
    least[:] = np.inf
    least[0, 0] = 0.0
    window = np.empty(opened.shape[1], np.int64)
    for level in range(levels - 1, -1, -1):
        count = counts[level]
        price = prices[level - 1] if level else 0.0
        for empty in range(least.shape[0]):
            for place in range(room + count + 1):
                opened[empty, place] = least[empty, min(place, room)]
                origins[level, empty, place] = -1  # no batch is opened
            _open_batches(opened[empty], origins[level, empty], fewest[level], most[level], room + count, window)
            if empty:
                for place in range(room + count):
                    if opened[empty - 1, place + 1] < opened[empty, place]:
                        opened[empty, place] = opened[empty - 1, place + 1]
                        origins[level, empty, place] = -2  # one of them stays empty
        for empty in range(least.shape[0]):
            for place in range(room + 1):
                least[empty, place] = opened[empty, place + count] + price * place
    empty = np.argmin(least[:, 0])
    total, place = least[empty, 0], 0
    for level in range(levels - 1):
        place += counts[level]
        while origins[level, empty, place] != -1:
            if origins[level, empty, place] == -2:
                empty, place = empty - 1, place + 1
            else:
                place = origins[level, empty, place]
        place = min(place, room)
        beside[level] = place
    return total


@njit(cache=True)
def _open_batches(opened, origins, fewest, most, top, window):
    """Opens batches of fewest to most places wherever that costs less: opened[place] is then the least of all ways.

    `top` stands for as many places and more. `window` holds the places from which one batch leads here: a queue whose
    costs rise, so that the cheapest is at its front.
    """
    front, back, entering = 0, 0, 0
    for after in range(min(fewest, top), top + 1):
        last = after - fewest if after < top else top - 1
        while entering <= last:
            while back > front and opened[window[back - 1]] >= opened[entering]:
                back -= 1
            window[back] = entering
            back += 1
            entering += 1
        while front < back and window[front] < after - most:
            front += 1
        if front < back and opened[window[front]] < opened[after]:
            opened[after], origins[after] = opened[window[front]], window[front]


@njit(cache=True)
def least_flows(sizes, reached, floors, beta, rises, flows, prices):
    """Writes the flows between neighbouring levels that tell least at the price `beta` of a frame, and floors' prices.

    Sequences stand at `sizes` [levels], rising; the share up to level s is reached[s]. Flow s, of levels - 1, is the
    share that is open between level s and s + 1, at least floors[s]. What has closed, reached[s] - flows[s], must not
    fall from one level to the next. rises[s] is exp(beta (sizes[s + 1] - sizes[s])) - 1. prices[s] is what a higher
    floor s costs, in nats.

    Stretches over which as much has closed are joined with the one before while less has closed at its end than there.
    After closed shares [0.1, 0.3] one of 0.2 makes [0.1, c], c between them: isotonic regression by pooling adjacent
    violators (Barlow, Bartholomew, Bremner, Brunk 1972).
    """
    # As none opens again, no more has closed at a level than the floors beyond it allow. Kept in `flows` until used.
    most = np.inf
    for level in range(flows.size - 1, -1, -1):
        most = min(most, reached[level] - floors[level])
        flows[level] = reached[level] - most
    starts = np.empty(flows.size, np.int64)
    opened = np.empty(flows.size)  # the flow at the first level of each stretch
    count = 0
    for level in range(flows.size):
        start = level
        while True:
            risen = reached[level + 1] - reached[start]
            rise = rises[level] if start == level else np.expm1(beta * (sizes[level + 1] - sizes[start]))
            flow = min(max(risen / rise, flows[start]), reached[start])
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
        # What floors cost is borne by the last levels that stand on theirs: beyond them, none would rather close.
        borne = 0.0
        for level in range(end - 1, start - 1, -1):
            share = flows[level] / (flows[level] + (reached[level + 1] - reached[level]))
            borne += np.log(max(share, 1e-300)) + beta * (sizes[level + 1] - sizes[level])
            prices[level] = max(0.0, borne) if flows[level] - floors[level] <= 1e-12 else 0.0
            borne -= prices[level]

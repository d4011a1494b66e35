"""The compiled loops of the limits. Platforms may round their last digits differently."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True)
def mix_in_batches(decays, masses, most, rounds, marginal, factors, weights):
    """Runs Blahut-Arimoto; of the sequences padded to t, at least one in most[t] has length t.

    Sequences have levels of rising lengths, in shares `masses`. Padding from level s to s + 1 costs -log(decays[s]), of
    levels - 1; `most` [levels] is at least 1. `marginal` is q(t), before and after. The condition has a multiplier
    price(t). `factors` [2, levels] are exp(-price(t) / most(t)) and exp(price(t)) times that; they start at 1.

    Let K(x, t) be the decays from x to t times the first factor, or for t = x the second. Each round has three steps:

    - It writes Z(x), the sum over t of q(t) K(x, t), to `weights`.
    - It computes the best prices.
    - It multiplies q(t) by the sum over x of p(x) K(x, t) / Z(x).
    """
    last = masses.size - 1
    for _ in range(rounds):
        longer = 0.0  # the part of Z(x) from lengths beyond x
        for level in range(last, -1, -1):
            if level < last:
                longer = decays[level] * (longer + marginal[level + 1] * factors[0, level + 1])
            weights[level] = longer + marginal[level] * factors[1, level]
        shorter = 0.0  # the sum over x < t of p(x) / Z(x), times the decays from x to t
        for level in range(last + 1):
            if level:
                shorter = decays[level - 1] * (shorter + masses[level - 1] / weights[level - 1])
            ratio = masses[level] / weights[level]
            # Of those padded to t, the share exp(price) ratio / (shorter + exp(price) ratio) has length t: 1 in `most`.
            raised = max(1.0, shorter / max(1e-300, (most[level] - 1.0) * ratio))  # exp(price)
            factors[0, level] = math.exp(-math.log(raised) / most[level]) if raised > 1.0 else 1.0
            factors[1, level] = raised * factors[0, level]
            marginal[level] = max(1e-300, marginal[level] * (shorter * factors[0, level] + ratio * factors[1, level]))


@njit(cache=True)
def information_in_batches(decays, masses, most, weights):
    """Returns a lower bound, in nats, on I(X; T) plus the cost of padding. Any `weights` [levels] prove one.

    It is the value of the dual at a(x) = p(x) / Z(x), reduced where it is not feasible. Feasible is a(t) <= g(s), with
    s the sum over x < t of a(x) times the decays from x to t. Let B = most[t]. Then g(s) = 1 - s for s <= 1 - 1 / B,
    and g(s) = (1 / B) (s B / (B - 1))^(1 - B) for larger s.
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
        ratio = min(allowed, masses[level] / weights[level])
        total += masses[level] * np.log(ratio / masses[level])
        if level < masses.size - 1:
            shorter = decays[level] * (shorter + ratio)
    return total


@njit(cache=True)
def costliest_edges(sizes, prices, beta, edges):
    """Finds the edges with the greatest sum of prices[x] exp(-beta (edge of x - sizes[x])). Returns sum and number.

    `sizes` [levels] rise. The edge of x is the first edge that is not shorter. Writes the levels of at most
    `edges.size` edges, rising, to the end of `edges`.

    Let sums[j] be the sum over all levels up to j. Levels i to j, padded to j, add
    sums[j] - sums[i - 1] exp(-beta (sizes[j] - sizes[i - 1])). The best m edges that end with j are the best m - 1
    edges before some i, and j. The best i never falls as j rises, because the subtracted terms shrink by the same
    factor. So the search halves the levels: the i of the middle level bounds the i of both halves.
    """
    count = sizes.size
    sums = np.empty(count)
    for level in range(count):
        decayed = sums[level - 1] * np.exp(-beta * (sizes[level] - sizes[level - 1])) if level else 0.0
        sums[level] = decayed + prices[level]
    best, better = sums.copy(), np.empty(count)
    first = np.zeros((edges.size, count), np.int32)  # the i of each j: 0 if fewer edges suffice
    waiting = np.empty((64, 4), np.int64)  # low, high, and the bounds of i
    for edge in range(1, edges.size):
        waiting[0] = 0, count - 1, 0, count - 1
        left = 1
        while left:
            left -= 1
            low, high, least, most = waiting[left]
            middle = (low + high) // 2
            value, start = sums[middle], 0
            for i in range(max(1, least), min(middle, most) + 1):
                padded = sums[i - 1] * np.exp(-beta * (sizes[middle] - sizes[i - 1]))
                gain = best[i - 1] + (sums[middle] - padded)
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
    total, edge_count = best[last], 0
    while True:
        edge_count += 1
        edges[edges.size - edge_count] = last
        if first[edge, last] == 0:
            return total, edge_count
        last, edge = first[edge, last] - 1, edge - 1


@njit(cache=True)
def fill_epoch(counts, fewest, most, prices, least, opened, origins, spare_places):
    """Finds the batches of an epoch whose places for shorter sequences cost least. Returns their cost.

    Sequences have levels of rising lengths, `counts` of each. A batch padded to a level has `fewest` to `most` places
    there. Writes spare_places[s] [levels - 1], the places of batches beyond level s that no longer sequence fills; each
    costs prices[s]. Shorter sequences fill them, except for at most `empty` places. The cost is infinite if every epoch
    has more empty places.

    Example: counts 3 and 2, batches of 4. One batch is beyond level 0, and spare_places[0] = 2. Two batches hold all
    five sequences and leave three places empty.

    At each level, least[w, e] is the least cost of e spare places with w empty places so far. The last e, `room`, means
    room or more. `opened` [empty + 1, room + 1 + max(counts)] is the same before the sequences of the level fill their
    places. `origins` [levels, ...], of its shape, is the previous state of each.
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
        spare_places[level] = place
    return total


@njit(cache=True)
def _open_batches(opened, origins, fewest, most, top, window):
    """Opens batches of `fewest` to `most` places wherever that costs less; opened[place] becomes the least cost.

    The last place, `top`, means top or more. `window` is a queue of the places one batch earlier, by rising cost: the
    cheapest is at its front.
    """
    front, back, entering = 0, 0, 0
    for place in range(min(fewest, top), top + 1):
        last = place - fewest if place < top else top - 1
        while entering <= last:
            while back > front and opened[window[back - 1]] >= opened[entering]:
                back -= 1
            window[back] = entering
            back += 1
            entering += 1
        while front < back and window[front] < place - most:
            front += 1
        if front < back and opened[window[front]] < opened[place]:
            opened[place], origins[place] = opened[window[front]], window[front]


@njit(cache=True)
def least_flows(sizes, reached, floors, beta, rises, flows, prices):
    """Writes the flows between neighbouring levels with the least information at the price `beta` of a frame.

    Also writes the prices of their floors. Sequences have the lengths `sizes` [levels], rising; the share up to level s
    is reached[s]. Flow s, of levels - 1, is the share that is open between level s and s + 1, at least floors[s]. The
    closed share, reached[s] - flows[s], must not fall. rises[s] is exp(beta (sizes[s + 1] - sizes[s])) - 1. prices[s]
    is the cost of raising floor s, in nats.

    A stretch is a run of levels with an equal closed share. If the closed share would fall, the stretch is joined with
    the one before: [0.1, 0.3] and 0.2 give [0.1, c], with c between 0.2 and 0.3. This is isotonic regression by pooling
    adjacent violators (Barlow, Bartholomew, Bremner, Brunk 1972).
    """
    # The closed share of a level is at most what the floors beyond it allow. `flows` holds that bound at first.
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
        # The last levels at their floors bear the cost of the floors.
        borne = 0.0
        for level in range(end - 1, start - 1, -1):
            share = flows[level] / (flows[level] + (reached[level + 1] - reached[level]))
            borne += np.log(max(share, 1e-300)) + beta * (sizes[level + 1] - sizes[level])
            prices[level] = max(0.0, borne) if flows[level] - floors[level] <= 1e-12 else 0.0
            borne -= prices[level]

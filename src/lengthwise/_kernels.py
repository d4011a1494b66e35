"""The loops that NumPy cannot say.

Every kernel is plain Python too (`kernel.py_func`), and the tests hold the two against each other.
"""

from __future__ import annotations

import numpy as np

from lengthwise._compile import compile_kernel


@compile_kernel
def threefry(key0, key1, counter1, words):
    """Fills `words` [m], uint64, with Threefry-2x64-20 under the key (key0, key1).

    The counters are (0, counter1), (1, counter1), ...; each gives two words. All arithmetic is on uint64 and wraps.

    References:
        Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", section 4.2.
    """
    key2 = key0 ^ key1 ^ np.uint64(0x1BD11BDAA9FC1A22)
    rotations = (16, 42, 12, 31, 16, 32, 24, 21)
    keys = (key0, key1, key2)
    for block in range((words.size + 1) // 2):
        x0 = np.uint64(block) + key0
        x1 = counter1 + key1
        for turn in range(20):
            left = np.uint64(rotations[turn % 8])
            x0 = x0 + x1
            x1 = ((x1 << left) | (x1 >> (np.uint64(64) - left))) ^ x0
            if turn % 4 == 3:
                injection = turn // 4 + 1
                x0 = x0 + keys[injection % 3]
                x1 = x1 + keys[(injection + 1) % 3] + np.uint64(injection)
        words[2 * block] = x0
        if 2 * block + 1 < words.size:
            words[2 * block + 1] = x1


@compile_kernel
def negative_log(fractions, out):
    """Writes -log(x) for each x in (0, 1], by exact IEEE operations only, so that every platform agrees to the last
    bit.

    x = m 2^-k with m in (sqrt(1/2), sqrt(2)]; log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172: ten terms
    leave less than 1e-17.
    """
    for index in range(fractions.size):
        mantissa = fractions[index]
        halvings = 0
        while mantissa <= 0.7071067811865476:
            mantissa *= 2.0
            halvings += 1
        s = (mantissa - 1.0) / (mantissa + 1.0)
        square = s * s
        series = 0.0
        for term in range(21, 0, -2):
            series = series * square + 1.0 / term
        out[index] = halvings * 0.6931471805599453 - 2.0 * s * series


@compile_kernel
def stable_argsort(keys, order, spare):
    """Sorts numbers 0..n-1 into `order` by rising uint64 `keys`, ties by number: a radix sort, 11 bits at a time.

    `order` and `spare` are int64 [n]; digits that all keys share cost nothing.
    """
    count = keys.size
    digits = 2048
    tallies = np.zeros((6, digits), np.int64)
    for index in range(count):
        key = keys[index]
        for level in range(6):
            tallies[level, (key >> np.uint64(11 * level)) & np.uint64(digits - 1)] += 1
    for index in range(count):
        order[index] = index
    for level in range(6):
        tally = tallies[level]
        if tally.max() == count:
            continue
        start = 0
        for digit in range(digits):
            width = tally[digit]
            tally[digit] = start
            start += width
        for index in range(count):
            number = order[index]
            digit = (keys[number] >> np.uint64(11 * level)) & np.uint64(digits - 1)
            spare[tally[digit]] = number
            tally[digit] += 1
        order[:] = spare


@compile_kernel
def greedy_cut(lengths, boundaries, prices, budget, most, overshoot, offsets):
    """Cuts the sequences of `lengths` [n, dims] in order into batches, and returns how many.

    A batch of `count` sequences whose longest are L costs
    fixed + count (each + sum_d linear_d L_d + quadratic_d L_d^2), with `prices` = [fixed, each, linear...,
    quadratic...]. It is closed before a sequence that would bring it over `budget`, or, where `overshoot`, behind the
    sequence that reaches it; and at every boundary (rising positions), and at `most` sequences. `offsets` [n + 1]
    receives the starts and the end. Operations come in the order of `cost.Quadratic`, so that both round alike at the
    budget.
    """
    count, dims = lengths.shape
    longest = np.zeros(dims, np.int64)
    batches = 0
    size = 0
    full = False
    boundary = 0
    for index in range(count):
        each = 0.0
        for dim in range(dims):
            length = float(max(longest[dim], lengths[index, dim]))
            each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
        cost = prices[0] + (size + 1) * (prices[1] + each)
        closed = full or size == most or (not overshoot and cost > budget)
        while boundary < boundaries.size and boundaries[boundary] <= index:
            closed = closed or boundaries[boundary] == index
            boundary += 1
        if size == 0 or closed:
            offsets[batches] = index
            batches += 1
            size = 0
            longest[:] = 0
        each = 0.0
        for dim in range(dims):
            longest[dim] = max(longest[dim], lengths[index, dim])
            length = float(longest[dim])
            each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
        size += 1
        full = overshoot and prices[0] + size * (prices[1] + each) >= budget
    offsets[batches] = count
    return batches


@compile_kernel
def price_buckets(lengths, counts, price, best, most):
    """The least that the lengths up to each cost where a bucket costs `price` beside its frames, in linear time.

    best[i] = min over j < i of best[j] + price + lengths[i] (counts[i] - counts[j]), and most[i] the most buckets that
    cost so little. `lengths` are the distinct lengths, rising, with lengths[0] = 0 for the empty prefix; `counts` how
    many sequences are no longer. Position j is a line in x = lengths[i], of slope -counts[j] and height best[j];
    slopes fall and queries rise, so the lower envelope is a queue read from its front. Lines meet at whole x by floor
    division: no product that could overflow. Of lines that are equally low the last is taken: it has the most buckets.
    """
    queue = np.empty(lengths.size, np.int64)
    front, back = 0, 0
    best[0], most[0] = 0, 0
    for i in range(1, lengths.size):
        # Line i - 1 enters. It is no higher than line a from x >= meet(a, i - 1); the last line goes if it is never
        # needed.
        entering = i - 1
        while back - front >= 2:
            last, previous = queue[back - 1], queue[back - 2]
            rise = best[last] - best[previous]
            meet_last = -((-rise) // (counts[last] - counts[previous]))
            rise = best[entering] - best[last]
            meet_entering = -((-rise) // (counts[entering] - counts[last]))
            if meet_entering > meet_last:
                break
            back -= 1
        queue[back] = entering
        back += 1
        x = lengths[i]
        while back - front >= 2:
            first, second = queue[front], queue[front + 1]
            if best[second] - counts[second] * x > best[first] - counts[first] * x:
                break
            front += 1
        j = queue[front]
        best[i] = best[j] + price + x * (counts[i] - counts[j])
        most[i] = most[j] + 1


@compile_kernel
def bucket_ends(lengths, counts, price, best, most, ends):
    """Follows `best` and `most` of `price_buckets` back, over as many buckets as `ends` [buckets] receives.

    The last bucket ends at the last length. Where several ways to divide what is left pad equally little, its bucket is
    the widest of them.
    """
    i = lengths.size - 1
    for bucket in range(ends.size - 1, -1, -1):
        ends[bucket] = i
        j = np.searchsorted(most, bucket)  # the first that `bucket` buckets may end at: `most` never falls
        while best[j] + price + lengths[i] * (counts[i] - counts[j]) != best[i]:
            j += 1
        i = j


@compile_kernel
def longest_of_batches(levels, masses, heights, lows, highs, sizes, longest):
    """What batches are padded to, on average, when sequences are sorted by height(length) + a standard exponential.

    Sequences stand at `levels`, rising, in shares `masses`, of warped height `heights` [levels]. Batch b is sizes[b]
    draws from those whose sort key lies between its quantiles lows[b] and highs[b]. Writes `longest` [batches].
    """
    count = levels.size
    total = np.cumsum(masses)  # share at level j or lower
    above = np.empty(count)  # share at level j or lower whose key is above heights[j]
    above[0] = masses[0]
    for j in range(1, count):
        above[j] = above[j - 1] * np.exp(heights[j - 1] - heights[j]) + masses[j]
    begun = total - above  # share of keys below heights[j]
    for batch in range(sizes.size):
        low, high = lows[batch], highs[batch]
        top = max(0, np.searchsorted(begun, high) - 1)
        bottom = max(0, np.searchsorted(begun, low, side="right") - 1)
        low_key = heights[bottom] - np.log(max(total[bottom] - low, 1e-300) / above[bottom])
        high_key = heights[top] - np.log(max(total[top] - high, 1e-300) / above[top])
        longest[batch] = levels[top]
        for j in range(top - 1, -1, -1):
            share = above[j] * np.exp(heights[j] - low_key) if j <= bottom else total[j] - low
            share -= above[j] * np.exp(heights[j] - high_key)
            below = min(1.0, max(0.0, share / (high - low))) ** sizes[batch]  # every draw at level j or lower
            longest[batch] -= (levels[j + 1] - levels[j]) * below
            if below < 1e-7:
                break


@compile_kernel
def cut_falling(needed, positions, end, prices, budget, most, slots, ends):
    """Cuts a step, its sequences sorted from the longest, into batches of at most `budget` in cost each.

    The step is those of `positions` [m], rows of `needed` [n, dims], that are below `end`. A sequence that is over the
    budget by itself stands alone. `ends` [slots] receives how many sequences stand in the batches up to each. Returns

    - how many batches there are, or slots + 1 as soon as the sequences need more than `slots`;
    - what the costliest of them costs, without those that stand alone over the budget;
    - the least budget under which one of them would take another sequence: infinite where none can.
    """
    dims = needed.shape[1]
    longest = np.zeros(dims, np.int64)
    batches = size = taken = 0
    cost = costliest = 0.0
    more = np.inf
    for row in positions:
        if row >= end:
            continue
        each = 0.0
        for dim in range(dims):
            length = float(max(longest[dim], needed[row, dim]))
            each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
        grown = prices[0] + (size + 1) * (prices[1] + each)
        if size > 0 and (grown > budget or size == most):
            more = min(more, grown) if size < most else more
            costliest = max(costliest, cost) if cost <= budget else costliest
            ends[batches] = taken
            batches += 1
            if batches == slots:
                return slots + 1, costliest, more
            size = 0
            longest[:] = 0
            each = 0.0
            for dim in range(dims):
                length = float(needed[row, dim])
                each += prices[2 + dim] * length + prices[2 + dims + dim] * (length * length)
            grown = prices[0] + (prices[1] + each)
        for dim in range(dims):
            longest[dim] = max(longest[dim], needed[row, dim])
        size += 1
        taken += 1
        cost = grown
    if size > 0:
        costliest = max(costliest, cost) if cost <= budget else costliest
        ends[batches] = taken
        batches += 1
    return batches, costliest, more


@compile_kernel
def split_widest(ends, batches, slots):
    """Halves the batch of most sequences until there are `slots` batches, or all are single sequences: how many.

    Three batches of 1, 4 and 2 sequences, `ends` [1, 5, 7, _], become four of 1, 2, 2 and 2: [1, 3, 5, 7].
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
        ends[at] -= widest // 2
        batches += 1
    return batches


@compile_kernel
def level_step(needed, positions, prices, budget, most, slots, ends):
    """Cuts a step into `slots` batches, the costliest of which costs the least possible, and returns how many.

    Bisection on the budget, exact because both ends move to costs that occur: a budget that is too small is raised to
    the next that changes a batch, and one that is enough is lowered to the costliest batch under it.
    """
    count = needed.shape[0]
    _, high, _ = cut_falling(needed, positions, count, prices, budget, most, slots, ends)
    low = 0.0
    while low < high:
        middle = low + (high - low) / 2.0
        if middle >= high:  # neighbours among the floats
            break
        batches, costliest, more = cut_falling(needed, positions, count, prices, middle, most, slots, ends)
        if batches > slots:
            low = more
        else:
            high = costliest
    batches, _, _ = cut_falling(needed, positions, count, prices, high, most, slots, ends)
    return split_widest(ends, batches, slots)


@compile_kernel
def fill_steps(needed, ranks, by_rank, prices, budget, most, slots, sizes):
    """Fills steps in order, each with the most sequences that `slots` batches under the budget hold. Returns how many.

    A step is sorted before it is cut. `ranks` [n] says which place a sequence has from the longest of all, and
    `by_rank` [n] which sequence has a place. `sizes` [n] receives how many sequences each step takes. A part of what
    fits fits, so that doubling what fits, and then bisection, find the most.
    """
    count = needed.shape[0]
    ends = np.empty(slots, np.int64)
    start = steps = 0
    fits = slots
    while start < count:
        left = count - start
        reach = min(left, fits + fits // 4 + 1)  # steps take about as many as the one before
        fits = min(slots, left)
        while True:
            positions = by_rank[np.sort(ranks[start : start + reach])]
            batches, _, _ = cut_falling(needed, positions, start + reach, prices, budget, most, slots, ends)
            if batches > slots:
                break
            fits = max(fits, reach)
            if reach == left:
                break
            reach = min(left, 2 * reach)
        while batches > slots and reach - fits > 1:
            middle = (fits + reach) // 2
            found, _, _ = cut_falling(needed, positions, start + middle, prices, budget, most, slots, ends)
            if found > slots:
                reach = middle
            else:
                fits = middle
        sizes[steps] = fits
        steps += 1
        start += fits
    return steps


@compile_kernel
def cut_steps(needed, ranks, by_rank, sizes, prices, budget, most, slots, sequences, offsets):
    """Sorts each step, and cuts it into `slots` batches by `level_step`. Returns how many batches there are.

    `sizes` [steps] says how many sequences each step takes, in order. `sequences` [n] receives them step by step, each
    step from its longest, and `offsets` [n + 1] where each batch begins, and the end.
    """
    ends = np.empty(slots, np.int64)
    start = batches = 0
    for size in sizes:
        positions = by_rank[np.sort(ranks[start : start + size])]
        found = level_step(needed, positions, prices, budget, most, slots, ends)
        offsets[batches] = start
        offsets[batches + 1 : batches + found + 1] = start + ends[:found]
        batches += found
        sequences[start : start + size] = positions
        start += size
    return batches


@compile_kernel
def concave_majorant(sizes, masses, beta, slopes):
    """Writes log W [levels]: W are the slopes of the least concave function above the points (exp(beta x), P(x)).

    P(x) is the share of the sequences up to level x, the sum of `masses` [levels] up to there; the function begins at
    (0, 0). `sizes` [levels] rise. All is in logarithms, so that no exponential overflows.
    """
    # Slopes that rise are joined: after slopes [3, 1] a further one of 2 makes [3, 1.5], if the last two are as wide.
    ends = np.empty(sizes.size, np.int64)  # the last level of each piece, its share of the sequences, its slope
    shares = np.empty(sizes.size)
    pieces = 0
    for level in range(sizes.size):
        share = masses[level]
        slope = np.log(share) - beta * sizes[level]
        if pieces:
            slope -= np.log(-np.expm1(-beta * (sizes[level] - sizes[level - 1])))
        while pieces and slope >= slopes[pieces - 1]:
            pieces -= 1
            share += shares[pieces]
            slope = np.log(share) - beta * sizes[level]
            if pieces:
                slope -= np.log(-np.expm1(-beta * (sizes[level] - sizes[ends[pieces - 1]])))
        ends[pieces], shares[pieces], slopes[pieces] = level, share, slope
        pieces += 1
    for piece in range(pieces - 1, -1, -1):  # from the last: no piece starts before its own number
        start = ends[piece - 1] + 1 if piece else 0
        slopes[start : ends[piece] + 1] = slopes[piece]


@compile_kernel
def mix_in_batches(sizes, masses, beta, batch, rounds, marginal, prices, weights):
    """Blahut-Arimoto where at least one in `batch` of those padded to t are of length t themselves.

    Sequences stand at `sizes` [levels], rising, in shares `masses`. `marginal` is q(t) to begin with and in the end;
    `prices` [levels] are the multipliers of the condition, 0 to begin with. Each round computes
    Z(x) = the sum over t of q(t) K(x, t) into `weights`, with K(x, t) = exp(-beta (t - x) - price(t) / batch), times
    exp(price(x)) for t = x; then the best prices, and q(t) times the sum over x of p(x) K(x, t) / Z(x).
    """
    last = sizes.size - 1
    decays = np.exp(-beta * np.diff(sizes))
    for _ in range(rounds):
        longer = 0.0  # what the lengths beyond x add to Z(x)
        for level in range(last, -1, -1):
            if level < last:
                longer = decays[level] * (longer + marginal[level + 1] * np.exp(-prices[level + 1] / batch))
            weights[level] = longer + marginal[level] * np.exp(prices[level] * (1.0 - 1.0 / batch))
        shorter = 0.0  # the sum over x < t of p(x) exp(-beta (t - x)) / Z(x)
        for level in range(last + 1):
            if level:
                shorter = decays[level - 1] * (shorter + masses[level - 1] / weights[level - 1])
            own = masses[level] / weights[level]
            # Of those padded to t the share exp(price) own / (shorter + exp(price) own) are of length t: 1 in `batch`.
            price = np.log(shorter / ((batch - 1.0) * own)) if shorter > (batch - 1.0) * own else 0.0
            prices[level] = price
            factor = shorter * np.exp(-price / batch) + own * np.exp(price * (1.0 - 1.0 / batch))
            marginal[level] = max(1e-300, marginal[level] * factor)


@compile_kernel
def information_in_batches(sizes, masses, beta, batch, weights):
    """At most min I(X; T) + beta D in nats, whatever `weights` [levels] of `mix_in_batches` are: the dual's value.

    a(x) = p(x) / Z(x) counts as far as it is feasible: a(t) <= g(s), with s the sum over x < t of
    a(x) exp(-beta (t - x)), and g(s) = 1 - s up to s = 1 - 1 / batch, and beyond
    (1 / batch) (s batch / (batch - 1))^(1 - batch).
    """
    total, shorter = 0.0, 0.0
    for level in range(sizes.size):
        if shorter <= 1.0 - 1.0 / batch:
            most = 1.0 - shorter
        else:
            most = np.exp(-np.log(batch) - (batch - 1.0) * np.log(shorter * batch / (batch - 1.0)))
        own = min(most, masses[level] / weights[level])
        total += masses[level] * np.log(own / masses[level])
        if level < sizes.size - 1:
            shorter = np.exp(-beta * (sizes[level + 1] - sizes[level])) * (shorter + own)
    return total

"""The cut of sorted lengths that costs least: in time linear in the sequences, whatever a batch holds."""

from __future__ import annotations

from lengthwise._compile import compile_kernel


@compile_kernel(linear=True, lists=("number", "total", "first"))
def least_cost_cut_of_sorted(lengths, prices, budget, most, number, total, first, ways):
    """What `least_cost_cut` does where `fewest`, for rising lengths [n], no boundaries and no multiple.

    `number` is the fewest batches up to a position. Positions of one number follow each other. A batch leads from those
    of one number to those of the next:

        lengths     2 6 19 20 30 33 37 38    in batches of at most 3
        number    0 1 1  1  2  2  2  3  3    a batch up to the last position starts at one of the three of 2

    The batch start..stop-1 costs (stop - start) x each + once, where `each` rises with its longest, the last. So for
    any stop, the best start has the least of total[start] - start x each, a line in `each`. Stops are taken from the
    last one down: `each` falls, and the earliest start within the budget too. `ways` [n + 1] holds those starts whose
    lines are the least somewhere, from the later to the earlier ones. The less `each` is, the earlier the best start.
    """
    count = len(lengths)
    start = 0
    for stop in range(1, count + 1):
        length = float(lengths[stop - 1])
        each = prices[1] + (prices[2] * length + prices[3] * (length * length))
        once = prices[0] + prices[4] * length
        while stop - start > 1 and (stop - start > most or once + (stop - start) * each > budget):
            start += 1
        first[stop] = start  # the earliest, until the best is known
        number[stop] = number[start] + 1
    before, last = 0, 0  # of the positions of one number, the last, and of those of the next
    while before < count:
        while last < count and number[last + 1] == number[before] + 1:
            last += 1
        head = end = 0
        start = before + 1
        for stop in range(last, before, -1):
            length = float(lengths[stop - 1])
            each = prices[1] + (prices[2] * length + prices[3] * (length * length))
            once = prices[0] + prices[4] * length
            while start > first[stop]:
                start -= 1
                # The last way is never the best where the new one overtakes it before it overtakes its neighbour.
                while end - head > 1:
                    later, middle = ways[end - 2], ways[end - 1]
                    overtakes = (total[middle] - total[start]) * (later - middle)
                    if overtakes < (total[later] - total[middle]) * (middle - start):
                        break
                    end -= 1
                ways[end] = start
                end += 1
            while end - head > 1:
                later, earlier = ways[head], ways[head + 1]
                if (later - earlier) * each > total[later] - total[earlier]:
                    break
                head += 1
            best = ways[head]
            first[stop] = best
            total[stop] = total[best] + (once + (stop - best) * each)
        before = last

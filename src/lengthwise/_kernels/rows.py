"""Packs whole sequences into rows.

Rows wait in queues by the room they have left, and sequences in queues by their length: one queue for each of 0..top.
`front` and `back` [top + 1] have the first and the last of each queue, -1 if it is empty; `behind` [n] has the next.
Bit i of `bits` [top // 64 + 1] says that queue i is not empty, so that a search looks at 64 queues at a time: if only
the queues 3 and 70 are not empty, the bits are [1 << 3, 1 << 6].
"""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel


@kernel
def best_fit(counts, most, row_of):
    """Best-fit decreasing: each sequence, longest first, goes into the fullest row that has room. Returns the rows.

    Rows with equal room left wait in a queue: first come, first filled.

    Args:
        counts: [capacity + 1], the number of sequences of each length.
        most: The most sequences in a row: a row that holds as many has no room.
        row_of: [n], receives the row of each sequence, longest first; rows are numbered as they are opened.
    """
    capacity = counts.size - 1
    limited = most < row_of.size
    row_sizes = np.zeros(row_of.size if limited else 0, np.int64)  # sequences in each row
    queues = make_queues(capacity, row_of.size)
    rows = place = 0
    for length in range(capacity, 0, -1):
        for _ in range(counts[length]):
            room = least_from(queues, length)
            if room < 0:
                row = rows
                rows += 1
                room = capacity
            else:
                row = leave(queues, room)
            row_of[place] = row
            place += 1
            room -= length
            if limited:
                row_sizes[row] += 1
                room = room if row_sizes[row] < most else 0
            if room > 0:
                join(queues, room, row)
    return rows


@kernel
def batch_rows(order, row_of, rows, rows_per_batch, positions, offsets):
    """Puts rows into batches, in the order of the positions of their first members. Returns the batches.

    Within a batch, rows stand in the order in which they were opened.

    Args:
        order: [n], positions in the order in which they were put into rows.
        row_of: [n], the row of each position in `order`; rows are numbered as they are opened.
        rows: The number of rows.
        positions: [n], receives the positions, batch by batch and row by row.
        offsets: [batches + 1] at least, receives where each batch begins, and the end.
    """
    count = order.size
    opened = np.full(count, -1, np.int64)  # which row each position opened
    sizes = np.zeros(rows, np.int64)
    for place in range(count):
        row = row_of[place]
        if sizes[row] == 0:
            opened[order[place]] = row
        sizes[row] += 1
    starts = np.empty(rows, np.int64)
    batch = np.empty(rows_per_batch, np.int64)
    batches = batch_size = start = 0
    for position in range(count):
        row = opened[position]
        if row >= 0:
            place = batch_size
            while place > 0 and batch[place - 1] > row:
                batch[place] = batch[place - 1]
                place -= 1
            batch[place] = row
            batch_size += 1
        if batch_size == rows_per_batch or (batch_size > 0 and position == count - 1):
            offsets[batches] = start
            batches += 1
            for place in range(batch_size):
                starts[batch[place]] = start
                start += sizes[batch[place]]
            batch_size = 0
    offsets[batches] = start
    for place in range(count):
        row = row_of[place]
        positions[starts[row]] = order[place]
        starts[row] += 1
    return batches


@kernel
def pool_rows(lengths, capacity, most, pool, rows_per_batch, looked_at, positions, offsets):
    """Fills rows one after another from a pool of waiting sequences. Returns the batches.

    The pool holds the first `pool` sequences of the order that are in no row yet. A row takes the oldest of them, then
    the next oldest, until one does not fit. Then it takes the longest that fits, or the first of a pair that leaves
    less room. To find a pair, `looked_at` lengths are tried, each with the longest that fits beside it.

    Args:
        lengths: [n], each 1..capacity, in order.
        most: The most sequences in a row: a row that holds as many ends.
        positions: [n], receives the positions, row by row.
        offsets: [n + 1], receives where each batch begins, and the end.

    Sequences of equal length leave in the order in which they came: the pool is a queue for each length.
    """
    count = lengths.size
    queues = front, _, behind, _ = make_queues(capacity, count)
    packed = np.zeros(count, np.bool_)
    entered = oldest = batches = rows = row_size = 0
    room = np.int64(0)  # no literal: a kernel that is called with a literal is compiled a second time
    by_age = False
    for out in range(count):
        # `out` sequences have left the pool.
        while entered < count and entered - out < pool:
            join(queues, lengths[entered], entered)
            entered += 1
        while packed[oldest]:
            oldest += 1
        length = lengths[oldest] if by_age and lengths[oldest] <= room else -1
        if length < 0 and room > 0:
            by_age = False
            length = greatest_to(queues, room)
            if 0 < length < room and row_size + 1 < most:  # else no two fit
                best, candidate = length, length
                for _ in range(looked_at):
                    second = greatest_to(queues, room - candidate)
                    # A single sequence of a length makes no pair with itself.
                    alone = second == candidate and behind[front[candidate]] < 0
                    if second > 0 and not alone and candidate + second > best:
                        best, length = candidate + second, candidate
                    if best == room or candidate == 1:
                        break
                    candidate = greatest_to(queues, candidate - 1)
                    # Two of at most this length leave as much room as the best, or more.
                    if candidate <= 0 or 2 * candidate <= best:
                        break
        if length < 0:  # nothing fits: the next row begins with the oldest
            if rows % rows_per_batch == 0:
                offsets[batches] = out
                batches += 1
            rows += 1
            room, row_size, by_age = capacity, 0, True
            length = lengths[oldest]
        position = leave(queues, length)
        packed[position] = True
        positions[out] = position
        room -= length
        row_size += 1
        if row_size == most:
            room -= room
    offsets[batches] = count
    return batches


@kernel
def fill_rows(lengths, offsets, capacity, most, starts):
    """Fills the rows of each batch in order: a row ends before the sequence that does not fit. Returns the rows.

    Args:
        lengths: [m], each 1..capacity, batch by batch.
        offsets: [batches + 1], where each batch begins, and the end.
        most: The most sequences in a row: a row that holds as many ends.
        starts: [m + 1], receives where each row begins, and the end.
    """
    rows = 0
    for batch in range(offsets.size - 1):
        room = 0
        start = offsets[batch]
        for place in range(offsets[batch], offsets[batch + 1]):
            if place == offsets[batch] or lengths[place] > room or place - start == most:
                starts[rows] = place
                rows += 1
                room = capacity
                start = place
            room -= lengths[place]
    starts[rows] = lengths.size
    return rows


@kernel
def make_queues(top, count):
    """Returns empty queues for the numbers 0..top, in which each of `count` rows or sequences waits at most once."""
    front, back = np.full(top + 1, -1, np.int64), np.empty(top + 1, np.int64)
    return front, back, np.empty(count, np.int64), np.zeros((top >> 6) + 1, np.uint64)


@kernel
def join(queues, number, newest):
    """Puts `newest` at the end of the queue of `number`."""
    front, back, behind, bits = queues
    behind[newest] = -1
    if front[number] < 0:
        front[number] = newest
        bits[number >> 6] |= np.uint64(1) << np.uint64(number & 63)
    else:
        behind[back[number]] = newest
    back[number] = newest


@kernel
def leave(queues, number):
    """Takes the first out of the queue of `number`, which must not be empty, and returns it."""
    front, _, behind, bits = queues
    first = front[number]
    front[number] = behind[first]
    if front[number] < 0:
        bits[number >> 6] ^= np.uint64(1) << np.uint64(number & 63)
    return first


@kernel
def least_from(queues, number):
    """Returns the least number that is at least `number` and whose queue is not empty; -1 if there is none."""
    bits = queues[3]
    word = number >> 6
    hits = bits[word] >> np.uint64(number & 63)
    while hits == 0 and word < bits.size - 1:
        word += 1
        hits, number = bits[word], word << 6
    return number + highest_bit(hits & (~hits + np.uint64(1))) if hits else -1


@kernel
def greatest_to(queues, number):
    """Returns the greatest number that is at most `number` and whose queue is not empty; -1 if there is none."""
    bits = queues[3]
    word = number >> 6
    hits = bits[word] << np.uint64(63 - (number & 63))
    while hits == 0 and word > 0:
        hits, number = bits[word - 1], (word << 6) - 1
        word -= 1
    return number - 63 + highest_bit(hits) if hits else -1


@kernel
def highest_bit(word):
    """Returns the place of the highest bit of a word that is not 0."""
    upper = word >> np.uint64(32)
    # A float holds 32 bits exactly, and its exponent is the place of the highest bit.
    half = np.float64(upper if upper else word)
    return (half.view(np.int64) >> 52) - 1023 + (32 if upper else 0)

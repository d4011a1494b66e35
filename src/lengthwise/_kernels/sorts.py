"""The stable sort by 64-bit keys: buckets by the highest bits, and each bucket sorted while it lies in the cache.

A sequence travels as one word: 32 bits of its key above the 32 bits of its number. So it takes 8 bytes, and what is
compared lies beside what is moved.
"""

from __future__ import annotations

import numpy as np

from lengthwise._compile import compile_kernel

_HALF = np.uint64(32)
_NUMBER = np.uint64(0xFFFFFFFF)
_DIGIT = np.uint64(2047)


def _count_at_once(keys, numbers, count, starts):
    """`count_keys` by a few calls of NumPy."""
    differing = int(np.bitwise_or.reduce(keys ^ keys[:1], initial=0))
    low = max(0, (differing & -differing).bit_length() - 1)
    width = differing.bit_length() - low if differing else 0
    top = _choose_top(count, width)
    counted = keys[numbers] if 0 < numbers.size < keys.size else keys
    buckets = (counted >> np.uint64(min(low + width - top, 63))) & np.uint64((1 << top) - 1)
    sizes = np.bincount(buckets.astype(np.int64), minlength=1 << top)
    starts[0], starts[1 : len(sizes) + 1] = 0, np.cumsum(sizes)
    return low, width, top, int(sizes.max(initial=0))


@compile_kernel(linear=True, in_python=_count_at_once)
def count_keys(keys, numbers, count, starts):
    """Finds the buckets of `sort_by_key`: they begin at `starts` [2049] uint32, by the highest `top` of their bits.

    Returns:
        The lowest bit in which keys differ; how many bits from there to the highest; `top`; and how many sequences the
        largest bucket holds.
    """
    # The highest and the lowest bit in which keys differ. Of the keys 1000, 1010 and 1100 in binary these are the
    # third and the second from the right, and the sort looks at two bits.
    differing = np.uint64(0)
    for index in range(keys.size):
        differing |= keys[index] ^ keys[0]
    low, width = 0, 0
    while differing and not differing & np.uint64(1):
        differing >>= np.uint64(1)
        low += 1
    while differing:
        differing >>= np.uint64(1)
        width += 1
    top = _choose_top(count, width)
    bucket_bits, bucket_mask = np.uint64(min(low + width - top, 63)), np.uint64((1 << top) - 1)
    for bucket in range((1 << top) + 1):
        starts[bucket] = 0
    # All keys are counted in the order in which they lie in memory.
    some = 0 < numbers.size < keys.size
    for index in range(count):
        number = numbers[index] if some else index
        starts[np.int64((keys[number] >> bucket_bits) & bucket_mask) + 1] += 1
    largest = np.int64(0)
    for bucket in range(1 << top):
        largest = max(largest, np.int64(starts[bucket + 1]))
        starts[bucket + 1] += starts[bucket]
    return low, width, top, largest


@compile_kernel
def _choose_top(count, width):
    """How many of `width` bits tell buckets apart: buckets of some 4,000 of `count` sequences stay in the cache."""
    top = 6
    while top < 11 and count >> (top + 12):
        top += 1
    return min(top, width)


def _sort_at_once(keys, numbers, low, width, top, words, spare, room):
    """`sort_by_key` by NumPy's sort, which needs no buckets."""
    del low, width, top, spare, room
    words[:] = numbers[np.argsort(keys[numbers], kind="stable")] if numbers.size else np.argsort(keys, kind="stable")
    return True


@compile_kernel(linear=True, in_python=_sort_at_once)
def sort_by_key(keys, numbers, low, width, top, words, spare, room):
    """Writes `numbers` [m] into `words` [m], uint64, by rising keys[number]; equal keys stay in their order.

    Args:
        keys: [n] uint64, with n < 2**32.
        numbers: [m] int64, each below n and at most once; empty for 0..n-1.
        low, width, top: As `count_keys` returns them.
        words: [m] uint64.
        spare: uint64, room for the largest bucket.
        room: [4, 2049] uint32, for counts: to make arrays in here would take longer to compile than all else. In the
            first row, where buckets begin, as `count_keys` says.

    Returns:
        False if keys agree in their highest 33 differing bits too often. Then `words` holds nothing of use, and the
        caller sorts in another way. Such keys would be sorted here in quadratic time.
    """
    for bucket in range(1 << top):
        room[1, bucket] = room[0, bucket]
    spread_by_key(keys, numbers, np.int64(0), words.size, low, width, top, words, room[1])
    return sort_buckets(keys, np.int64(0), 1 << top, width, top, words, spare, room[0], room[2], room[3])


@compile_kernel
def count_buckets(keys, numbers, first, last, low, width, top, counts):
    """Counts how many of numbers[first:last] are of each bucket, into `counts` [2**top]; see `sort_by_key`."""
    bucket_bits, bucket_mask = np.uint64(min(low + width - top, 63)), np.uint64((1 << top) - 1)
    for bucket in range(1 << top):
        counts[bucket] = 0
    for index in range(first, last):
        number = numbers[index] if numbers.size else index
        counts[np.int64((keys[number] >> bucket_bits) & bucket_mask)] += 1


@compile_kernel
def spread_by_key(keys, numbers, first, last, low, width, top, words, ends):
    """Writes numbers[first:last], under 32 bits of their keys, into their buckets of `words`; see `sort_by_key`.

    `ends` [2**top] say where the next of each bucket goes, and are moved on.
    """
    rest = width - top
    # The 32 bits below the highest `top`, or as many as there are.
    below = np.uint64(low + max(0, rest - 32))
    mask = np.uint64((1 << min(rest, 32)) - 1)
    # If no bits differ, `low` may be 64, and a shift by 64 is not defined.
    bucket_bits, bucket_mask = np.uint64(min(low + rest, 63)), np.uint64((1 << top) - 1)
    for index in range(first, last):
        number = numbers[index] if numbers.size else index
        key = keys[number]
        bucket = np.int64((key >> bucket_bits) & bucket_mask)
        words[ends[bucket]] = (((key >> below) & mask) << _HALF) | np.uint64(number)
        ends[bucket] += 1


@compile_kernel
def sort_buckets(keys, first, last, width, top, words, spare, starts, lows, highs):
    """Sorts the buckets first..last-1 of `words`, and leaves the numbers there alone; returns as `sort_by_key`."""
    rest = width - top
    for bucket in range(first, last if rest else first):
        start, end = np.int64(starts[bucket]), np.int64(starts[bucket + 1])
        if end - start > 48:
            _sort_digits(words, start, end, spare, lows, highs, min(rest, 32))
        if (end - start <= 48 or rest > 22) and not _mend_order(words, start, end, keys, rest > 32):
            return False
    for index in range(np.int64(starts[first]), np.int64(starts[last])):
        words[index] &= _NUMBER
    return True


def _distinct_at_once(numbers, count, seen):
    """`are_distinct` by NumPy."""
    del seen
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
        return False
    each = np.zeros(count, bool)
    each[numbers] = True
    return np.count_nonzero(each) == numbers.size


@compile_kernel(linear=True, in_python=_distinct_at_once)
def are_distinct(numbers, count, seen):
    """Whether all of `numbers` [m] are from 0 to `count` - 1, and no two equal.

    `seen` [count // 8 + 1], uint8, is 0, and is written to: a bit for each number, so that those of millions stay in
    the cache.
    """
    for place in range(numbers.size):
        number = numbers[place]
        if not 0 <= number < count:
            return False
        bit = 1 << (number & 7)
        if seen[number >> 3] & bit:
            return False
        seen[number >> 3] |= bit
    return True


def _look_up_at_once(values, index, found):
    """`look_up` by NumPy."""
    if index.size and not 0 <= index.min() <= index.max() < values.size:
        return False
    found[:] = values[index]
    return True


@compile_kernel(linear=True, in_python=_look_up_at_once)
def look_up(values, index, found):
    """Writes values[number] for each number of `index` [m] into `found` [m].

    Returns:
        False if a number is no place in `values` [n].
    """
    for place in range(index.size):
        if not 0 <= index[place] < values.size:
            return False
        found[place] = values[index[place]]
    return True


@compile_kernel
def _sort_digits(words, start, end, spare, lows, highs, width):
    """Sorts words[start:end] stably by the highest 22 of the `width` bits from bit 32 on: two digits of 11 bits."""
    first = np.uint64(32 + max(0, width - 22))
    second = np.uint64(32 + max(0, width - 22) + 11)
    for digit in range(2048):
        lows[digit] = 0
        highs[digit] = 0
    for index in range(start, end):
        lows[np.int64((words[index] >> first) & _DIGIT)] += 1
        highs[np.int64((words[index] >> second) & _DIGIT)] += 1
    # From here on the counts say where the next word of each digit goes: counts [2, 0, 3] become [0, 2, 2].
    low = high = 0
    for digit in range(2048):
        width_low, width_high = lows[digit], highs[digit]
        lows[digit], highs[digit] = low, high
        low += width_low
        high += width_high
    for index in range(start, end):
        digit = np.int64((words[index] >> first) & _DIGIT)
        spare[lows[digit]] = words[index]
        lows[digit] += 1
    for index in range(end - start):
        digit = np.int64((spare[index] >> second) & _DIGIT)
        words[start + highs[digit]] = spare[index]
        highs[digit] += 1


@compile_kernel
def _mend_order(words, start, end, keys, deep):
    """Sorts words[start:end], nearly sorted, by insertion. Where `deep`, words of equal bits go by their whole keys.

    Returns:
        False if that takes more than 32 moves a word.
    """
    moves = 0
    for index in range(start + 1, end):
        word = words[index]
        bits = word >> _HALF
        at = index
        while at > start:
            other = words[at - 1]
            if other >> _HALF < bits:
                break
            if other >> _HALF == bits and not (
                deep and keys[np.int64(other & _NUMBER)] > keys[np.int64(word & _NUMBER)]
            ):
                break
            words[at] = other
            at -= 1
        words[at] = word
        moves += index - at
        if moves > 32 * (end - start):
            return False
    return True

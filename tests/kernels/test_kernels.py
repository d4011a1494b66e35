"""Each kernel against its own Python and against brute force or a second implementation."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise import _kernels, _random
from lengthwise._random import Key
from lengthwise.choices.arithmetic import longest_of, sort_parts, sum_rows

FAST = settings(max_examples=60, derandomize=True)
MASK = 2**64 - 1


def threefry_by_hand(key0, key1, counter0, counter1):
    """Threefry-2x64-20 in whole numbers modulo 2**64, its key schedule written out round by round."""
    schedule = [key0, key1, 0x1BD11BDAA9FC1A22 ^ key0 ^ key1]
    left, right = (counter0 + key0) & MASK, (counter1 + key1) & MASK
    for turn, turned in enumerate(itertools.islice(itertools.cycle((16, 42, 12, 31, 16, 32, 24, 21)), 20), 1):
        left = (left + right) & MASK
        right = ((right << turned | right >> (64 - turned)) & MASK) ^ left
        if turn % 4 == 0:
            injected = turn // 4
            left = (left + schedule[injected % 3]) & MASK
            right = (right + schedule[(injected + 1) % 3] + injected) & MASK
    return left, right


def threefry(key0, key1, counter1, count, *, kernel=_kernels.threefry):
    out = np.zeros(count, np.uint64)
    kernel(np.uint64(key0), np.uint64(key1), np.uint64(counter1), out)
    return out.tolist()


def test_threefry_gives_the_known_answers_of_its_authors():
    assert threefry(0, 0, 0, 2) == [0xC2B6E3A8C2C69865, 0x6F81ED42F350084D]
    # Their other two vectors have counters that the kernel cannot be given; they hold the other implementation to it.
    assert threefry_by_hand(MASK, MASK, MASK, MASK) == (0xE02CB7C4D95D277A, 0xD06633D0893B8B68)
    digits_of_pi = (0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89)
    counter0, counter1, key0, key1 = digits_of_pi
    assert threefry_by_hand(key0, key1, counter0, counter1) == (0x263C7D30BB0F0AF1, 0x56BE8361D3311526)


@FAST
@given(*[st.integers(0, MASK)] * 3, st.integers(0, 5))
def test_threefry_equals_the_same_in_whole_numbers(key0, key1, counter1, blocks):
    pairs = [threefry_by_hand(key0, key1, block, counter1) for block in range(blocks)]
    expected = [word for pair in pairs for word in pair]
    assert threefry(key0, key1, counter1, 2 * blocks) == expected
    with np.errstate(over="ignore"):
        assert threefry(key0, key1, counter1, 2 * blocks, kernel=_kernels.threefry.py_func) == expected
    assert Key(seed=3).words(7).tolist() == Key(seed=3).words(8).tolist()[:7]


MASKS = st.sampled_from([3, 2**20 - 1, MASK])


@FAST
@given(st.lists(st.integers(0, MASK), max_size=60), MASKS, st.integers(0, 44), st.randoms(use_true_random=False))
def test_keys_are_sorted_stably(keys, mask, low, chance):
    """Sorts as NumPy's stable sort does, all keys and some of them, wherever their bits stand."""
    keys = np.array([(key & mask) << low & MASK for key in keys], np.uint64)
    assert _random.argsort(keys).tolist() == np.argsort(keys, kind="stable").tolist()
    numbers = np.array(chance.sample(range(len(keys)), chance.randint(0, len(keys))), np.int64)
    some = sorted(numbers.tolist(), key=lambda number: keys[number])  # Python's sort is stable too
    assert _random.sort_by(numbers, keys).tolist() == some


@pytest.mark.parametrize("scale", [1e-280, 1e-3, 1.0, 1e300, 0.0])
def test_many_keys_are_sorted_by_as_many_of_their_bits_as_a_word_has_room_for(scale):
    keys = np.random.default_rng(8).exponential(size=5_000) * scale
    keys[9] = keys[4_000] = 0.0
    assert _random.argsort(keys).tolist() == np.argsort(keys, kind="stable").tolist()
    # 13 bits number 5,000 places, and 51 are left: keys that differ in lower ones alone keep their order.
    words = np.arange(5_000, dtype=np.uint64)[::-1].copy()
    words[0] |= np.uint64(2**63)
    order = _random.argsort(words)
    assert order[-1] == 0
    assert (np.diff(words[order].astype(np.float64)) > -(2.0**13)).all()


def parts_by_hand(sequences, sizes, starts, turned):
    parts = [sorted(part, key=lambda number: sizes[number]) for part in map(list, np.split(sequences, starts[1:]))]
    return [number for at, part in enumerate(parts) for number in (part[::-1] if turned and at % 2 else part)]


@FAST
@given(
    st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2**31 - 1)), min_size=1, max_size=200),
    st.lists(st.integers(1, 90), max_size=6),
    st.booleans(),
    st.integers(0, 99),
)
def test_parts_are_sorted_stably_and_every_other_is_turned(sizes, widths, turned, seed):
    sizes, sequences = np.array(sizes), np.random.default_rng(seed).permutation(len(sizes))
    starts = np.array([0, *(start for start in np.cumsum(widths) if start < len(sizes))])
    expected = parts_by_hand(sequences, sizes, starts, turned)
    for others in (sizes, sizes.astype(float), sizes + 0.5, sizes * 2.0**30):
        assert sort_parts(sequences, others, starts, turned=turned).tolist() == expected


@pytest.mark.parametrize("count", [0, 20, 2**11, 2**11 + 1])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_rows_are_summed_and_their_longest_found_as_numpy_does(count, dims):
    rows = np.random.default_rng(dims).integers(1, 2**40, (count, dims))
    assert sum_rows(rows).tolist() == rows.sum(axis=1).tolist()
    assert longest_of(rows).tolist() == rows.max(axis=0, initial=0).tolist()


def edges_by_recurrence(lengths, buckets):
    """The paper's recurrence over distinct lengths, in whole numbers of any size; of equals the widest last buckets."""
    values = sorted(set(lengths))
    reached = [sum(length <= value for length in lengths) for value in [0, *values]]
    count = min(buckets, len(values))
    best = [0] + [math.inf] * len(values)
    tables = []
    for _ in range(count):
        rows = range(1, len(values) + 1)
        ways = [[(best[j] + values[i - 1] * (reached[i] - reached[j]), j) for j in range(i)] for i in rows]
        tables.append([0, *(min(way)[1] for way in ways)])
        best = [math.inf, *(min(way)[0] for way in ways)]
    ends = [len(values)]
    for table in reversed(tables[1:]):
        ends.append(table[ends[-1]])
    return [values[end - 1] for end in reversed(ends)]


@FAST
@given(
    st.sampled_from([6, 40, 2**58]).flatmap(lambda longest: st.lists(st.integers(1, longest), min_size=1, max_size=14)),
    st.integers(1, 14),
)
def test_optimal_edges_are_those_of_the_recurrence(lengths, buckets):
    assert lw.optimal_edges(lengths, buckets).tolist() == edges_by_recurrence(lengths, buckets)


def test_optimal_edges_take_memory_for_the_lengths_and_not_for_each_bucket():
    lengths = np.random.default_rng(5).permutation(np.arange(1, 20_001) ** 2)
    lw.optimal_edges(lengths[:9], 3)
    tracemalloc.start()
    edges = lw.optimal_edges(lengths, 500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(edges) == 500
    assert peak < 30 * lengths.nbytes  # 500 rows of 32 bits would be 250 times as much


def test_parts_are_shuffled_evenly_and_each_by_its_own_words():
    ends, words = np.array([3, 4, 4, 10]), Key(seed=1).words(10).view(np.int64)
    found = []
    for kernel in (_kernels.shuffle_parts, _kernels.shuffle_parts.py_func):
        numbers = np.arange(10) * 10
        kernel(numbers, ends, words)
        assert [sorted(part) for part in np.split(numbers, ends[:-1])] == [[0, 10, 20], [30], [], [*range(40, 100, 10)]]
        found.append(numbers.tolist())
    assert found[0] == found[1]
    # Six orders of three numbers, each a sixth of 6,000 times: 1,000 more or less, with a deviation of 29.
    threes = np.tile(np.arange(3), 6_000)
    _kernels.shuffle_parts(threes, np.arange(3, 18_001, 3), Key(seed=2).words(18_000).view(np.int64))
    orders, counts = np.unique(threes.reshape(-1, 3), axis=0, return_counts=True)
    assert len(orders) == 6
    assert abs(counts - 1_000).max() < 130


@FAST
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=12),
    st.integers(1, 4),
    st.sampled_from([9, 15, 99]),
    st.integers(1, 5),
    st.integers(0, 2),
    st.sampled_from([30.0, np.inf]),
)
def test_bins_are_filled_by_the_rule_and_evened_out_within_their_room(items, bins, room, most, least, level):
    costs, sizes = (np.array(column, np.float64) for column in zip(*sorted(items, reverse=True), strict=True))
    expected = fill_by_hand(costs.tolist(), sizes.tolist(), bins, room, most, least, level)
    for fill, even in (
        (_kernels.fill_bins, _kernels.even_out),
        (_kernels.fill_bins.py_func, _kernels.even_out.py_func),
    ):
        bin_of, totals = np.empty(len(items), np.int64), np.empty(bins)
        fill(costs, sizes, (float(room), most, least), level, bin_of, totals)
        assert bin_of.tolist() == expected
        assert totals.tolist() == np.bincount(bin_of[bin_of >= 0], costs[bin_of >= 0], minlength=bins).tolist()
        if (bin_of < 0).any():
            continue
        owners = np.arange(bins) % max(1, bins - 1)  # the first owner may have two bins
        before = np.bincount(owners[bin_of], costs, minlength=owners.max() + 1)
        after = np.empty(owners.max() + 1)
        even(costs, sizes, float(room), bin_of, owners, after)
        assert after.tolist() == pytest.approx(np.bincount(owners[bin_of], costs, minlength=len(after)).tolist())
        assert after.max() <= before.max() + 1e-9
        assert np.bincount(bin_of, sizes).max() <= room
        assert np.bincount(bin_of, minlength=bins).tolist() == np.bincount(expected, minlength=bins).tolist()


def fill_by_hand(costs, sizes, bins, room, most, least, level):
    members = [[] for _ in range(bins)]
    for item in range(len(costs)):
        missing = sum(max(0, least - len(own)) for own in members)
        open_bins = [
            number
            for number, own in enumerate(members)
            if sum(sizes[each] for each in own) + sizes[item] <= room
            and len(own) < most
            and (not own or sum(costs[each] for each in own) + costs[item] <= level)
            and (len(costs) - item > missing or len(own) < least)
        ]
        if open_bins:
            min((members[number] for number in open_bins), key=lambda own: sum(costs[each] for each in own)).append(
                item
            )
    homes = {item: number for number, own in enumerate(members) for item in own}
    return [homes.get(item, -1) for item in range(len(costs))]

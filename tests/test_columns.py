"""Shortcuts for millions of lengths give what the long way gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.choices.columns import (
    add_once,
    apply_once,
    longest_of,
    narrow,
    small_whole,
    sum_groups,
    sum_rows,
    take_rows,
)

FAST = settings(max_examples=50, derandomize=True)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_rows_are_taken_and_summed_as_numpy_does(dims):
    rows = np.random.default_rng(dims).integers(1, 99, (20, dims))
    index = np.array([3, 3, 19, 0])
    assert take_rows(rows, index).tolist() == rows[index].tolist()
    assert not np.shares_memory(take_rows(rows, np.arange(20)), rows)
    assert sum_rows(rows).tolist() == rows.sum(axis=1).tolist()
    assert longest_of(rows).tolist() == rows.max(axis=0).tolist()
    assert longest_of(rows[:0]).tolist() == [0] * dims


@pytest.mark.parametrize("count", [2**11, 2**11 + 1, 2**17 + 5])
@pytest.mark.parametrize(
    ("dims", "kind"), [(2, np.uint16), (4, np.uint16), (2, np.int32), (3, np.uint16), (2, np.int64)]
)
def test_many_rows_are_taken_and_summed_as_numpy_does(count, dims, kind):
    chance = np.random.default_rng(count)
    rows, index = chance.integers(1, 2**15, (count, dims)).astype(kind), chance.permutation(count)
    rows[-1] = 2**15
    found = take_rows(rows, index)
    assert found.dtype == kind
    assert np.array_equal(found, rows[index])
    assert longest_of(rows).tolist() == [2**15] * dims
    for each in (rows, rows // 4):  # the sums of these are below 2**16
        assert np.array_equal(sum_rows(each), each.sum(axis=1))
    if count > 2**17 and kind == np.uint16 and dims == 2:
        with pytest.raises(IndexError, match="from 0 to"):
            take_rows(rows, index + 1)


@pytest.mark.parametrize("count", [0, 1, 1_000, 2**17 + 3])  # the last by a kernel
@pytest.mark.parametrize("kind", [np.uint16, np.int64])
def test_groups_are_summed_beyond_two_bytes(count, kind):
    chance = np.random.default_rng(count)
    values = chance.integers(1, 2**16, count).astype(kind)
    offsets = np.unique([0, *chance.integers(0, count + 1, 50), count])
    sums = sum_groups(values, offsets)
    groups = np.split(values.astype(np.int64), offsets[1:-1])[: len(sums)]
    assert sums.dtype == np.int64
    assert sums.tolist() == [group.sum() for group in groups]


@pytest.mark.parametrize(
    ("longest", "kind"), [(32_767, np.uint16), (32_768, np.int64), (65_535, np.int64), (65_536, np.int64)]
)
def test_sums_have_two_bytes_where_these_hold_them(longest, kind):
    pairs = narrow(np.array([[longest, longest], [1, 2]]))
    assert sum_rows(pairs).tolist() == [2 * longest, 3]
    assert sum_rows(pairs).dtype == kind
    assert pairs.dtype == (np.uint16 if longest < 2**16 else np.int64)


@FAST
@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, 2.5, 9.0, 70_000.0, -1.0]), max_size=80))
def test_a_function_that_is_asked_once_for_each_whole_number_gives_the_same(sizes):
    sizes = np.array(sizes, float)
    assert apply_once(lambda each: each * each + 0.5, sizes).tolist() == (sizes * sizes + 0.5).tolist()


def test_a_function_of_many_small_lengths_is_asked_about_few():
    asked = []
    apply_once(lambda sizes: asked.append(len(sizes)) or sizes, np.tile([3.0, 8.0], 50))
    assert asked == [9]


@pytest.mark.parametrize(
    ("sizes", "whole"),
    [([3.0, 0.0], [3, 0]), ([65_535.0], [65_535]), ([65_536.0], None), ([2.5], None), ([-1.0], None), ([], [])],
)
def test_small_whole_numbers_are_told_from_others(sizes, whole):
    found = small_whole(np.array(sizes))
    assert (found if found is None else found.tolist()) == whole


def test_whole_numbers_are_held_in_the_first_kind_that_has_room():
    for numbers, kind in (
        ([0, 65_535], np.uint16),
        ([65_536], np.uint32),
        ([2**32], None),
        ([-1], None),
        ([0.5], None),
    ):
        for each in (np.array(numbers), np.array(numbers, np.float64)):
            held = small_whole(each, np.uint16, np.uint32)
            assert held is None if kind is None else (held.dtype, held.tolist()) == (kind, numbers)


def test_a_function_is_added_in_place_whether_sizes_are_told_by_a_table_or_not():
    for sizes in (np.arange(40_000) % 700, np.arange(40_000) * 10.5, np.arange(40_000, dtype=np.uint32) * 1_000):
        sums = np.ones(len(sizes))
        add_once(np.sqrt, sizes, sums)
        assert np.array_equal(sums, 1.0 + np.sqrt(sizes))

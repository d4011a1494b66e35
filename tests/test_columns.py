"""Shortcuts for millions of lengths give what the long way gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthwise.choices.columns import apply_once, longest_of, small_whole, sum_rows, take_rows

FAST = settings(max_examples=100, derandomize=True)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_rows_are_taken_and_summed_as_numpy_does(dims):
    rows = np.random.default_rng(dims).integers(1, 99, (20, dims))
    index = np.array([3, 3, 19, 0])
    assert take_rows(rows, index).tolist() == rows[index].tolist()
    assert not np.shares_memory(take_rows(rows, np.arange(20)), rows)
    assert sum_rows(rows).tolist() == rows.sum(axis=1).tolist()
    assert longest_of(rows).tolist() == rows.max(axis=0).tolist()
    assert longest_of(rows[:0]).tolist() == [0] * dims


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

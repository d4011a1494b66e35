"""Multiples of lengths and counts: by hand, by the rule, by kernels and by calls."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
import menu
from lengthwise.choices.greedy import Limits, cut_greedily

CASES = st.tuples(
    st.lists(st.integers(1, 12), min_size=1, max_size=9),
    st.integers(1, 2),  # lengths of each sequence
    st.lists(st.integers(1, 8), max_size=2),  # boundaries
    st.integers(5, 70),
    st.one_of(st.none(), st.integers(1, 5)),
    st.sampled_from([1, 1, 2, 3]),
    st.sampled_from(list(menu.COSTS.values())),
)


def case_of(drawn):
    """The arguments of a cut: lengths [m, dims], boundaries, and the limits of batches."""
    lengths, dims, boundaries, budget, most, multiple, cost = drawn
    rows = np.array([lengths, np.roll(lengths, 1)][:dims]).T
    boundaries = np.unique([each for each in boundaries if each < len(rows)]).astype(np.int64)
    return rows, boundaries, Limits(cost, float(budget), most or 2**62, multiple)


def fits(rows, start, stop, limits):
    """Whether a batch is within the budget when it is filled up to the multiple."""
    size, multiple = stop - start, limits.count_multiple
    filled = size if size < multiple else -(-size // multiple) * multiple
    return float(limits.cost(np.array([filled]), rows[start:stop].max(axis=0)[None])[0]) <= limits.budget


@settings(max_examples=75, derandomize=True, deadline=None)
@given(CASES)
def test_by_calls_as_by_kernels(drawn):
    rows, boundaries, limits = case_of(drawn)
    called = limits._replace(cost=lambda *given: limits.cost(*given))
    assert np.array_equal(cut_greedily(rows, boundaries, limits), cut_greedily(rows, boundaries, called))


@settings(max_examples=50, derandomize=True, deadline=None)
@given(CASES)
def test_batches_take_all_that_fits_with_filled_rows_and_no_more(drawn):
    rows, boundaries, limits = case_of(drawn)
    borders, most = {*boundaries.tolist(), len(rows)}, limits.max_sequences
    for start, stop in itertools.pairwise(cut_greedily(rows, boundaries, limits).tolist()):
        assert stop - start == 1 or fits(rows, start, stop, limits)
        assert not any(start < border < stop for border in borders)
        assert stop in borders or stop - start == most or not fits(rows, start, stop + 1, limits)


def test_rows_are_filled_up_by_hand():
    # 13 sequences of 10 are filled up to 16 rows, and cost 160; 5 are not, and cost 50.
    # Two batches cost least if they are equal; a cost of the user's own is called for filled ones alone.
    for cost, two in ((lw.Padded(), [7, 6]), (lambda counts, padded: counts * padded[:, 0], [8, 5])):
        for budget, sizes in ((160, [13]), (159, two), (80, two), (79, [7, 6])):
            batching = lw.Batching(cut=lw.Budget(budget, count_multiple_of=8), cost=cost, order=lw.Sorted())
            plan = lw.make_plan([10] * 13, batching)
            assert sorted(plan.batch_sizes.tolist(), reverse=True) == sizes
            assert sorted(plan.costs.tolist(), reverse=True) == [160 if size == 13 else 10 * size for size in sizes]
    assert lw.measure(plan, [10] * 13).padding_share == 0.0
    batching = lw.Batching(cut=lw.Budget(160, count_multiple_of=8), order=lw.Sorted())
    assert lw.measure(lw.make_plan([10] * 13, batching), [10] * 13).padding_share == pytest.approx(3 / 16)


@pytest.mark.parametrize(
    ("cut", "lengths", "world_size", "sizes"),
    [
        (lw.Budget(1_000, max_sequences=13, count_multiple_of=8), [10] * 20, 1, [6, 7, 7]),  # at most 8
        (lw.Budget(1_600, count_multiple_of=8), [50] * 96, 4, [24] * 4),  # halves of 48 fill the step
    ],
)
def test_multiples_of_counts_by_hand(cut, lengths, world_size, sizes):
    plan = lw.make_plan(lengths, lw.Batching(cut=cut, order=lw.Sorted()), world_size=world_size)
    assert sorted(plan.batch_sizes.tolist()) == sizes


def test_batches_that_are_cut_smaller_keep_the_borders_of_what_is_not_dropped():
    lengths = np.array([3] * 7 + [9] * 7)
    batching = lw.Batching(cut=lw.FixedSize(3, drop_incomplete=True), order=lw.Bucketed(edges=(3, 9)))
    plan = lw.make_plan(lengths, batching, world_size=8)
    assert lengths[plan.dropped()].tolist() == [3, 9]
    assert sorted(plan.batch_sizes.tolist()) == [1, 1, 1, 1, 2, 2, 2, 2]
    assert all(len(set(lengths[plan.batch(number)].tolist())) == 1 for number in range(8))


def test_what_stands_alone_is_padded_to_a_multiple_too():
    cut = lw.Budget(40, oversize="alone", multiple_of=16)
    plan = lw.make_plan([41, 5, 33, 7], lw.Batching(cut=cut, order=lw.Sorted(), deal=lw.Balanced()))
    # 33 fits the budget, and 48 does not.
    assert sorted(plan.padded_lengths[:, 0].tolist()) == [16, 48, 48]
    assert len(plan.over_max_cost()) == 2


def test_edges_are_found_for_the_lengths_that_are_padded_to():
    cut = lw.Budget(400, multiple_of=8)
    order = lw.Bucketed(edges=(10, 50), pad_to_edge=True)
    plan = lw.make_plan([3, 9, 41, 50], lw.Batching(cut=cut, order=order))
    assert sorted(set(plan.padded_lengths[:, 0].tolist())) == [16, 56]
    shapes = lw.batch_shapes([3, 9, 41, 50], lw.Batching(cut=cut, order=order))
    assert shapes.tolist() == [[2, 16], [2, 56]]
    # Of [9, 15, 24] the edges 9 and 24 would pad least, of [16, 16, 24] the edges 16 and 24 pad nothing more.
    lengths, order = [9] * 10 + [15] * 2 + [24], lw.Bucketed(buckets=2, pad_to_edge=True)
    plan = lw.make_plan(lengths, lw.Batching(cut=cut, order=order))
    assert sorted(plan.padded_lengths[plan.batch_numbers, 0].tolist()) == [16] * 12 + [24]

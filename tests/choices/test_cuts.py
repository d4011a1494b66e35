"""Multiples of lengths and counts: by hand, by the rule, by kernels and by calls."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
import menu
from lengthwise.choices.greedy import cut_greedily

NONE = np.empty(0, np.int64)
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
    """The arguments of a cut: lengths [m, dims], boundaries, and what limits batches."""
    lengths, dims, boundaries, budget, most, multiple, cost = drawn
    rows = np.array([lengths, np.roll(lengths, 1)][:dims]).T
    boundaries = np.unique([each for each in boundaries if each < len(rows)]).astype(np.int64)
    return rows, boundaries, {"budget": float(budget), "most": most, "multiple": multiple, "cost": cost}


def fits(rows, start, stop, *, budget, multiple, cost, **_):
    """Whether a batch is within the budget when it is filled up to the multiple."""
    size = stop - start
    filled = size if size < multiple else -(-size // multiple) * multiple
    return float(cost(np.array([filled]), rows[start:stop].max(axis=0)[None])[0]) <= budget


@settings(max_examples=75, derandomize=True, deadline=None)
@given(CASES)
def test_by_calls_as_by_kernels(drawn):
    rows, boundaries, limits = case_of(drawn)
    called = limits | {"cost": lambda *given: limits["cost"](*given)}
    assert np.array_equal(cut_greedily(rows, boundaries, **limits), cut_greedily(rows, boundaries, **called))


@settings(max_examples=50, derandomize=True, deadline=None)
@given(CASES)
def test_batches_take_all_that_fits_with_filled_rows_and_no_more(drawn):
    rows, boundaries, limits = case_of(drawn)
    borders, most = {*boundaries.tolist(), len(rows)}, limits["most"] or len(rows)
    for start, stop in itertools.pairwise(cut_greedily(rows, boundaries, **limits).tolist()):
        assert stop - start == 1 or fits(rows, start, stop, **limits)
        assert not any(start < border < stop for border in borders)
        assert stop in borders or stop - start == most or not fits(rows, start, stop + 1, **limits)


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


def test_the_most_sequences_are_those_of_whole_multiples():
    cut = lw.Budget(1_000, max_sequences=13, count_multiple_of=8)
    plan = lw.make_plan([10] * 20, lw.Batching(cut=cut, order=lw.Sorted()))
    assert sorted(plan.batch_sizes.tolist()) == [6, 7, 7]


def test_halves_that_fill_a_step_cost_no_more_than_the_whole():
    cut = lw.Budget(1_600, count_multiple_of=8)
    plan = lw.make_plan(np.full(96, 50), lw.Batching(cut=cut, order=lw.Sorted()), world_size=4)
    assert sorted(plan.batch_sizes.tolist()) == [24, 24, 24, 24]
    plan = lw.make_plan(np.full(90, 50), lw.Batching(cut=cut, order=lw.Sorted()), world_size=7)
    assert plan.costs.max() <= 1_600


def test_by_hand():
    lengths = np.array([2, 9, 2, 2, 9, 9])[:, None]
    assert cut_greedily(lengths, NONE, cost=lw.Padded(), budget=27.0).tolist() == [0, 3, 6]
    lengths = np.array([2, 2, 2, 9, 9])[:, None]
    assert cut_greedily(lengths, NONE, cost=lw.Padded(), budget=36.0).tolist() == [0, 4, 5]  # 36 + 9


@pytest.mark.parametrize(
    "cut",
    [
        lw.Budget(20_000, multiple_of=64),
        lw.FixedSize(16, multiple_of=64),
        lw.DynamicSize(8, multiple_of=64),
        lw.Budget(20_000, multiple_of=64, count_multiple_of=4),
    ],
)
@pytest.mark.parametrize("order", [lw.Shuffled(), lw.Bucketed(buckets=6, pad_to_edge=True), lw.MaxEntropy(padding=0.2)])
def test_padded_lengths_are_multiples_and_cost_so(cut, order):
    lengths = lw.example_lengths(count=1_000)
    deals = (lw.Balanced(), None) if cut == lw.Budget(20_000, multiple_of=64) else (lw.Balanced(),)
    for deal in deals:
        plan = lw.make_plan(lengths, lw.Batching(cut=cut, order=order, deal=deal), world_size=4)
        assert (plan.padded_lengths % 64 == 0).all()
        assert (plan.costs == plan.row_counts * plan.padded_lengths[:, 0]).all()
        assert plan.costs.max() <= plan.max_cost
        useful, computed = lengths.sum(), plan.costs.sum()
        assert lw.measure(plan, lengths).padding_share == pytest.approx(1 - useful / computed)
    evaluation = lw.evaluation_plan(lengths, cut)
    assert (evaluation.padded_lengths % 64 == 0).all()


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

"""The budget is hard, and batches are as full as it allows."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import length_sets
import lengthwise as lw
import menu
from lengthwise.choices.cut import cut_greedily

NO_BOUNDARIES = np.empty(0, np.int64)


def plan_of(lengths, cut, *, order=None, cost=None):
    """Batches as they are cut, in the order of the sequences sorted, or as said."""
    batching = lw.Batching(
        cut=cut, order=order or lw.Sorted(), cost=cost or lw.Padded(), deal=lw.InTurn(), arrange=lw.InOrder()
    )
    return lw.make_plan(lengths, batching)


def padded(plan):
    return [
        (len(batch), int(longest)) for batch, longest in zip(plan.batches(), plan.padded_lengths[:, 0], strict=True)
    ]


def test_a_budget_worked_by_hand():
    # 2 x 3 = 6 fits; a third of 4 would be 12 > 10. Then 2 x 5 = 10 fits exactly, and 6 and 9 stand alone.
    assert padded(plan_of([2, 3, 4, 5, 6, 9], lw.Budget(10))) == [(2, 3), (2, 5), (1, 6), (1, 9)]
    assert padded(plan_of([2, 3, 4, 5, 6, 9], lw.Budget(12))) == [(3, 4), (2, 6), (1, 9)]
    assert padded(plan_of([1, 1, 1, 1, 1], lw.Budget(10, max_sequences=2))) == [(2, 1), (2, 1), (1, 1)]


def test_two_dimensions_pad_each_to_its_own_longest():
    # [1, 9] and [9, 1] together pad to 9 + 9 each, 36 in all; alone they cost 10.
    assert len(plan_of([[1, 9], [9, 1]], lw.Budget(35)).costs) == 2
    assert plan_of([[1, 9], [9, 1]], lw.Budget(36)).costs.tolist() == [36.0]


def test_dynamic_sizes_worked_by_hand():
    lengths = [1, 2, 2, 3, 4, 6]  # the capacity of DynamicSize(1) is 6
    assert padded(plan_of(lengths, lw.DynamicSize(1))) == [(3, 2), (1, 3), (1, 4), (1, 6)]
    # The paper's batches close once they reach 6: 3 x 2, then 2 x 4 = 8, then 6.
    paper = plan_of(lengths, lw.DynamicSize(1, rule="paper"))
    assert padded(paper) == [(3, 2), (2, 4), (1, 6)]
    assert paper.over_max_cost().tolist() == [1]
    assert paper.max_cost == 6.0


def test_what_is_longer_than_the_budget_is_refused_stands_alone_or_is_dropped():
    lengths = [3, 50, 4, 60, 5]
    message = (
        r"^`budget` must be at least the cost of the costliest sequence, 60, but is 20.0 at sequence 3. "
        r"A sequence of the mean length is over it too: it costs 24, and 16 of them cost about 384\. Is the budget in "
        r"the unit of the lengths, or of `cost`\? Raise it, or choose oversize='alone' or oversize='drop' "
        r"\(on the command line: .*oversize=alone\).$"
    )
    with pytest.raises(ValueError, match=message):
        plan_of(lengths, lw.Budget(20))
    alone = plan_of(lengths, lw.Budget(20, oversize="alone"))
    assert [batch.tolist() for batch in alone.batches()] == [[0, 2, 4], [1], [3]]
    assert alone.over_max_cost().tolist() == [1, 2]
    assert alone.dropped().size == 0
    dropped = plan_of(lengths, lw.Budget(20, oversize="drop"))
    assert [batch.tolist() for batch in dropped.batches()] == [[0, 2, 4]]
    assert dropped.dropped().tolist() == [1, 3]
    assert dropped.over_max_cost().size == 0


def test_incomplete_batches_are_dropped_on_request_bucket_by_bucket():
    order = lw.Bucketed(edges=(10, 20))
    plan = plan_of([1, 2, 3, 11, 12, 13, 14], lw.FixedSize(2, drop_incomplete=True), order=order)
    assert plan.batch_sizes.tolist() == [2, 2, 2]
    assert len(plan.dropped()) == 1
    assert plan.dropped()[0] < 3


def test_no_batch_crosses_the_border_of_a_bucket():
    lengths = lw.example_lengths(count=500)
    edges = lw.optimal_edges(lengths, 6)
    for cut in (lw.FixedSize(16), lw.Budget(20_000), lw.DynamicSize(8)):
        for pad in (False, True):
            plan = plan_of(lengths, cut, order=lw.Bucketed(buckets=6, pad_to_edge=pad))
            buckets = [set(np.searchsorted(edges, lengths[batch]).tolist()) for batch in plan.batches()]
            assert all(len(each) == 1 for each in buckets)
            if pad:
                assert set(plan.padded_lengths[:, 0].tolist()) == set(edges.tolist())


def test_borders_of_buckets_move_with_what_is_dropped_before_them():
    # [1, 1, 18] costs 326 and is dropped from the first bucket; [7, 7, 6] and [7, 7, 7] would cost 294 together.
    lengths = np.array([[1, 1, 18], [7, 7, 6], [7, 7, 7]])
    for cost in (lw.Quadratic(linear=0, quadratic=1), lambda counts, padded: counts * (padded**2).sum(axis=1)):
        order = lw.Bucketed(edges=((1, 1, 18), (7, 7, 6), (7, 7, 7)))
        plan = plan_of(lengths, lw.Budget(300, oversize="drop"), order=order, cost=cost)
        assert plan.dropped().tolist() == [0]
        assert [batch.tolist() for batch in plan.batches()] == [[1], [2]]


def test_a_cut_by_itself_drops_what_is_over_the_budget_and_not_what_equals_it():
    lengths = np.array([[4], [11], [10], [5], [5], [5]])
    for cost in (lw.Padded(), lambda counts, padded: counts * padded[:, 0]):
        rules = {"cost": cost, "longest": np.array([11])}
        kept, offsets = lw.Budget(10, oversize="drop")(lengths, np.array([4]), **rules)
        assert kept.tolist() == [0, 2, 3, 4, 5]
        # A boundary before position 4, the fourth of those that stay: 5 and the two fives behind it do not meet.
        assert offsets.tolist() == [0, 1, 2, 3, 5]


def test_capacity_is_reckoned_from_edges_longer_than_any_sequence():
    plan = plan_of([5, 6, 7, 8], lw.DynamicSize(2), order=lw.Bucketed(edges=(1_000,), pad_to_edge=True))
    assert padded(plan) == [(2, 1_000), (2, 1_000)]
    assert plan.max_cost == 2_000.0


@settings(max_examples=150, derandomize=True)
@given(
    st.one_of(length_sets.flat, length_sets.pairs),
    st.tuples(*[st.floats(0, 2, width=32)] * 5),
    st.integers(1, 9),
    st.sampled_from([-1, 0, 1]),
)
def test_a_batch_takes_the_next_sequence_exactly_if_its_own_cost_allows(lengths, coefficients, count, nudge):
    """Also where the budget lies on the cost of a batch, or one rounding beside it."""
    names = ("linear", "quadratic", "per_sequence", "per_batch", "per_length")
    cost = lw.Quadratic(**dict(zip(names, coefficients, strict=True)))
    rows = lengths if lengths.ndim == 2 else lengths[:, None]
    if not len(rows):
        return
    budget = float(cost(np.array([count]), rows.max(axis=0)[None])[0])
    budget = max(np.nextafter(budget, nudge * np.inf) if nudge else budget, 5e-324)
    cut, given = lw.Budget(budget, oversize="alone"), {"longest": rows.max(axis=0)}
    offsets = cut(rows, np.empty(0, np.int64), cost=cost, **given).offsets
    by_calls = cut(rows, np.empty(0, np.int64), cost=lambda *batches: cost(*batches), **given)
    assert by_calls.offsets.tolist() == offsets.tolist()
    for start, end in itertools.pairwise(offsets.tolist()):
        assert end - start == 1 or cost(np.array([end - start]), rows[start:end].max(axis=0)[None])[0] <= budget
        if end < len(rows):
            more = rows[start : end + 1]
            assert cost(np.array([len(more)]), more.max(axis=0)[None])[0] > budget


@pytest.mark.parametrize("dims", range(1, 13))
def test_no_batch_costs_more_than_its_budget_by_a_bit(dims):
    """Prices such as 0.1 round at every sum, so that the sum of 8 lengths depends on the order of its terms."""
    chance = np.random.default_rng(dims)
    for _ in range(30):
        linear, quadratic, per_length = chance.random((3, dims))  # one for each dimension
        each, fixed = chance.random(2)
        cost = lw.Quadratic(
            linear=linear, quadratic=quadratic, per_sequence=each, per_batch=fixed, per_length=per_length
        )
        lengths = chance.integers(1, 999, (30, dims))
        count = int(chance.integers(1, 6))
        budget = float(cost([count], lengths[:count].max(axis=0)[None])[0])
        for max_cost in (
            budget,
            float(np.nextafter(budget, 0.0)),
        ):  # one the first batch just fits, one it just exceeds
            offsets = cut_greedily(lengths, NO_BOUNDARIES, cost=cost, budget=max_cost)
            sizes, longest = np.diff(offsets), np.maximum.reduceat(lengths, offsets[:-1], axis=0)
            assert (cost(sizes, longest)[sizes > 1] <= max_cost).all()
            assert offsets.tolist() == cut_one_by_one(lengths, [], cost, max_cost, 99, False)


def cut_one_by_one(lengths, boundaries, cost, budget, most, overshoot):
    """The rule in plain Python: a sequence joins the batch or begins the next, and stands alone where it is over."""
    offsets, longest, full = [0], lengths[0], False
    for index in range(len(lengths)):
        size, joined = index - offsets[-1], np.maximum(longest, lengths[index])
        over = not overshoot and cost([size + 1], joined[None])[0] > budget
        if size and (full or over or size == most or index in boundaries):
            offsets.append(index)
            size, joined = 0, lengths[index]
        reached = cost([size + 1], joined[None])[0]
        longest, full = joined, reached >= budget if overshoot else reached > budget
    return [*offsets, len(lengths)]


def rising(counts, padded_lengths):
    return np.asarray(counts) * np.asarray(padded_lengths, np.float64).sum(axis=1)


def falling_at_times(counts, padded_lengths):
    """What no cost may do, and what is then done must still be the rule: 37 x 2 + 20 x 5 = 174, but 111 + 100 = 11."""
    return (37 * np.asarray(counts) + 5 * np.asarray(padded_lengths).sum(axis=1)) % 200


@pytest.mark.parametrize("cost", [rising, falling_at_times])
@pytest.mark.parametrize("overshoot", [False, True])
@pytest.mark.parametrize("most", [3, 700, 10**9])
@pytest.mark.parametrize("budget", [30, 190, 9_000, 60_000])
def test_calls_of_a_cost_cut_what_the_rule_does(cost, overshoot, most, budget):
    """Batches of one to hundreds, small beside large: the lengths of the second half are a hundredth of the others."""
    chance = np.random.default_rng(most)
    lengths = np.concatenate([chance.integers(100, 2_000, (300, 2)), chance.integers(1, 20, (1_500, 2))])
    boundaries = np.unique(chance.integers(1, 1_800, 9))
    found = cut_greedily(lengths, boundaries, cost=cost, budget=budget, most=most, overshoot=overshoot)
    expected = cut_one_by_one(lengths, set(boundaries.tolist()), cost, budget, most, overshoot)
    assert found.tolist() == expected


@pytest.mark.parametrize("size", [1, 3, 20, 400])
def test_a_cost_is_called_far_less_often_than_there_are_sequences(size):
    calls = []

    def cost(counts, padded_lengths):
        calls.append(len(counts))
        return rising(counts, padded_lengths)

    offsets = cut_greedily(np.full((20_000, 1), 7), NO_BOUNDARIES, cost=cost, budget=7 * size)
    assert np.diff(offsets)[:-1].tolist() == [size] * (len(offsets) - 2)
    assert len(calls) < 100
    assert max(calls) < 20_000


def test_a_callable_cuts_batches_longer_than_it_first_looks_ahead():
    def cost(counts, padded_lengths):
        return menu.by_calls(counts, padded_lengths)

    plan = plan_of(np.ones(1_000, np.int64), lw.Budget(300.5), cost=cost)  # 0.5 + 300 x 1
    assert plan.batch_sizes.tolist() == [300, 300, 300, 100]
    limited = plan_of(np.ones(1_000, np.int64), lw.Budget(300.5, max_sequences=64), cost=cost)
    assert limited.batch_sizes.max() == 64
    assert len(limited.costs) == 16


class Twice(lw.Quadratic):
    """Extends a cost of the package, and is more than that."""

    def __call__(self, counts, padded_lengths):
        return 2 * lw.Quadratic.__call__(self, counts, padded_lengths)


def test_a_cost_that_extends_one_of_ours_is_asked_itself():
    plan = plan_of(lw.example_lengths(count=400), lw.Budget(20_000), cost=Twice())
    assert plan.costs.max() <= 20_000
    assert not len(plan.over_max_cost())


@pytest.mark.parametrize("cut", [lw.Budget(1), lw.DynamicSize(2), lw.FixedSize(3)])
def test_batches_that_cost_nothing_are_planned_and_measured(cut):
    plan = plan_of([3, 1, 2, 5], cut, cost=lambda counts, _: np.zeros(len(counts)))
    found = lw.measure(plan, [3, 1, 2, 5])
    assert (found.dropped, found.straggler_waste, found.largest_cost) == (0, 0.0, 0.0)
    assert sorted(plan.sequences.tolist()) == [0, 1, 2, 3]


def test_a_cost_that_writes_into_what_it_is_given_changes_no_plan():
    def careful(counts, padded_lengths):
        return counts * padded_lengths[:, 0].astype(float)

    def careless(counts, padded_lengths):
        counts *= padded_lengths[:, 0]
        padded_lengths[:] = 0
        return counts.astype(float)

    lengths = lw.example_lengths(count=200)
    costs = careful, careless
    careful, plan = (lw.make_plan(lengths, lw.Batching(budget=20_000, padding=0.1, cost=cost)) for cost in costs)
    assert plan.sequences.tolist() == careful.sequences.tolist()
    assert plan.padded_lengths.tolist() == careful.padded_lengths.tolist()


@pytest.mark.filterwarnings("always:`budget` must be at least the cost of a sequence of the mean")
@pytest.mark.parametrize("oversize", ["error", "alone", "drop"])
def test_a_budget_in_another_unit_than_the_lengths_is_doubted(oversize):
    samples = np.append(200_000 + np.arange(-60_000, 60_000, 1_000), 500)  # at 16 kHz, and a budget in frames of 10 ms
    cut = lw.Budget(20_000, oversize=oversize)
    if oversize == "error":
        message = (
            r"but is 20000\.0 at sequence 119\. A sequence of the mean length is over it too: it costs 197855, and "
            r"16 of them cost about 3165680\. Is the budget in the unit of the lengths, or of `cost`\? Raise it"
        )
        with pytest.raises(lw.OversizeError, match=message):
            plan_of(samples, cut)
        return
    message = (
        r"^`budget` must be at least the cost of a sequence of the mean length, 197855, but is 20000\.0\. "
        r"120 of 121 sequences are over it: give it in the unit of the lengths\. "
        r"16 sequences of the mean length cost about 3,170,000\.$"
    )
    with pytest.warns(UserWarning, match=message):
        plan_of(samples, cut)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan_of(samples, cut)  # once is enough
        plan_of(samples // 160, cut)
        plan_of([3, 50, 4, 60, 5], lw.Budget(4, oversize=oversize))  # three of five: asked for

"""Shapes: known before any epoch, enough for all of them; the few of least cost, and what plans by them compute."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
import menu
from lengthwise.choices.buckets import padded_frames
from lengthwise.planning import few_shapes
from lengthwise.planning.few_shapes import shape_costs


def fixed(cut, *, edges=(10, 40), cost=None):
    order = lw.Bucketed(edges=edges, pad_to_edge=True)
    return lw.Batching(cut=cut, order=order, cost=cost or lw.Padded())


@pytest.mark.parametrize(
    ("cut", "shapes"),
    [
        (lw.FixedSize(3), [[3, 10], [3, 40]]),
        (lw.FixedSize(5), [[4, 10], [3, 40]]),  # no bucket holds five
        (lw.FixedSize(4, drop_incomplete=True), [[4, 10]]),
        (lw.Budget(100), [[4, 10], [2, 40]]),
        (lw.Budget(100, max_sequences=3), [[3, 10], [2, 40]]),
        (lw.Budget(35, oversize="alone"), [[3, 10], [1, 40]]),
        (lw.Budget(35, oversize="drop"), [[3, 10]]),
        (lw.DynamicSize(1), [[4, 10], [1, 40]]),
        (lw.DynamicSize(2, rule="paper"), [[4, 10], [2, 40]]),
    ],
)
def test_shapes_worked_by_hand(cut, shapes):
    # Four sequences go up to 10 and three up to 40.
    assert lw.batch_shapes([3, 9, 8, 10, 31, 40, 22], fixed(cut)).tolist() == shapes


def test_the_papers_rule_has_a_bound_within_a_bucket():
    # The capacity is 1 x 9. Batches close once they reach it: 3 x 4 = 12 and 1 x 9, where the hard rule takes 2 x 4.
    lengths = [4, 4, 4, 4, 4, 9, 9]
    assert lw.batch_shapes(lengths, fixed(lw.DynamicSize(1, rule="paper"), edges=(4, 9))).tolist() == [[3, 4], [1, 9]]
    assert lw.batch_shapes(lengths, fixed(lw.DynamicSize(1), edges=(4, 9))).tolist() == [[2, 4], [1, 9]]


def test_empty_buckets_need_no_shape_and_no_lengths_none():
    assert lw.batch_shapes([3, 90], fixed(lw.FixedSize(2), edges=(10, 40, 100))).tolist() == [[1, 10], [1, 100]]
    assert lw.batch_shapes([], fixed(lw.FixedSize(2))).shape == (0, 2)


def test_chunks_are_what_is_counted():
    # 25 and 7 become chunks of 10, 10, 5 and 7: two up to 7, two of 10.
    batching = replace(fixed(lw.FixedSize(8), edges=(7, 10)), chunks=lw.Chunks(10))
    assert lw.batch_shapes([25, 7], batching).tolist() == [[2, 7], [2, 10]]


@settings(max_examples=30, derandomize=True)
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=8),
    st.integers(1, 5),
    st.sampled_from([lw.FixedSize(3), lw.Budget(180), lw.DynamicSize(2, rule="paper")]),
    st.integers(1, 4),
)
def test_a_run_meets_at_most_k_shapes_chosen_optimally(lengths, buckets, cut, world_size):
    batching = lw.Batching(order=lw.Bucketed(buckets=buckets, pad_to_edge=True), cut=cut)
    rows = dict(lw.batch_shapes(lengths, batching)[:, ::-1].tolist())
    values, met = np.unique(lengths), set()
    inner = itertools.chain.from_iterable(itertools.combinations(values[:-1], few) for few in range(buckets))
    least = min(padded_frames(lengths, np.array([*edges, values[-1]])) for edges in inner)
    for epoch in range(2):
        plan = lw.make_plan(lengths, batching, epoch=epoch, world_size=world_size)
        met |= {(rows[length], length) for length in plan.padded_lengths[:, 0].tolist()}
        assert plan.batch_sizes @ plan.padded_lengths[:, 0] == least
    assert len(met) <= buckets
    assert len(met) == len(rows)


@pytest.mark.parametrize("order", [lw.Shuffled(), lw.Bucketed(buckets=4), lw.Bucketed(size=8), lw.Sorted()])
def test_other_orders_are_refused_in_one_sentence(order):
    message = (
        r"^`order` must be one that pads every batch to an edge, but is \w+\(.*\. "
        r"Take order=lw\.Bucketed\(buckets=8, pad_to_edge=True\)\.$"
    )
    with pytest.raises(ValueError, match=message):
        lw.batch_shapes([3, 5], lw.Batching(cut=lw.FixedSize(2), order=order))


def test_steps_of_a_dropped_giant_and_of_incomplete_buckets_fit_their_shapes():
    longer = lw.Bucketed(edges=(10, 50), pad_to_edge=True, longer="drop")
    giant = lw.Batching(cut=lw.DynamicSize(1), deal=lw.RandomSteps(), order=longer)
    edges = lw.Bucketed(edges=(10, 40), pad_to_edge=True)
    incomplete = lw.Batching(cut=lw.FixedSize(4), deal=lw.RandomSteps(tail="drop"), order=edges)
    for lengths, batching in (([10] * 30 + [50, 100], giant), ([10] * 8 + [40] * 3, incomplete)):
        shapes = dict(lw.batch_shapes(lengths, batching)[:, ::-1].tolist())
        for epoch in range(20):
            plan = lw.make_plan(lengths, batching, epoch=epoch)
            for size, padded in zip(plan.batch_sizes.tolist(), plan.padded_lengths[:, 0].tolist(), strict=True):
                assert size <= shapes[padded]


def test_no_shape_of_random_steps_has_more_rows_than_there_are_sequences():
    batching = replace(fixed(lw.Budget(1_000)), deal=lw.RandomSteps())
    assert lw.batch_shapes([3, 9, 8, 10, 31, 40, 22], batching).tolist() == [[7, 10], [7, 40]]


def test_shapes_of_pairs_worked_by_hand():
    lengths = [[3, 9], [2, 8], [9, 2], [10, 3], [9, 9]]
    batching = lw.Batching(order=lw.Bucketed(edges=((10, 10), (10, 3), (3, 9)), pad_to_edge=True), cut=lw.Budget(30))
    # Two of 12 or 13 frames fit into a budget of 30, and one of 20.
    assert lw.batch_shapes(lengths, batching).tolist() == [[2, 3, 9], [2, 10, 3], [1, 10, 10]]
    assert batching.order.edges == ((3, 9), (10, 3), (10, 10))
    plan = lw.make_plan(lengths, replace(batching, arrange=lw.ShortestFirst()))
    assert plan.padded_lengths.tolist() == [[3, 9], [10, 3], [10, 10]]
    assert plan.costs.tolist() == [24.0, 26.0, 20.0]
    measures = lw.measure(plan, lengths)
    assert measures.padding_share == pytest.approx(1 - 64 / 70)


@pytest.mark.parametrize("cut", [cut for cut in menu.cuts(1, 1) if not cut.startswith("rows")])
def test_every_batch_of_every_plan_fits_a_shape_that_is_known_before(cut):
    for case in menu.draw_cases(cut):
        order = case.batching.order
        if not getattr(order, "pad_to_edge", False) or {"times", "groups"} & set(case.options):
            continue
        first = case.plan(world_size=5, micro_batches=1)
        if first is None:
            continue
        shapes = {tuple(row): rows for rows, *row in lw.batch_shapes(case.lengths, case.batching).tolist()}
        assert len(shapes) <= (order.buckets or len(order.edges or ()))
        for plan in (first, case.plan(after=[(5, 1, min(1, first.steps))])):  # an epoch, and what is left of it
            for size, row in zip(plan.batch_sizes.tolist(), plan.padded_lengths.tolist(), strict=True):
                assert size <= shapes[tuple(row)]


# Few shapes: the least cost of all choices of padded lengths.

LENGTHS = lw.example_lengths("long-tailed", count=2_000)


def cost_by_hand(lengths, edges, cut, cost):
    """Counts batches one by one: each bucket's sequences in rows as many as fit, every batch a full shape."""
    total, below = 0.0, 0
    for edge in edges:
        count, rows = sum(below < length <= edge for length in lengths), 1
        below = edge
        while rows_fit(rows + 1, edge, cut, cost, max(edges)) and rows < count:
            rows += 1
        multiple = getattr(cut, "count_multiple_of", 1)
        if rows >= multiple:  # filled up for few sequences, and rounded down for many
            filled = -(-rows // multiple) * multiple
            rows = filled if rows_fit(filled, edge, cut, cost, max(edges)) else rows // multiple * multiple
        total += -(-count // rows) * float(cost(np.array([rows]), np.array([[edge]]))[0]) if count else 0.0
    return total


def rows_fit(rows, edge, cut, cost, longest):
    if isinstance(cut, lw.FixedSize):
        return rows <= cut.batch_size
    most = getattr(cut, "max_sequences", None) or rows
    budget = cut.max_cost(cost, np.array([longest]))
    return rows <= most and float(cost(np.array([rows]), np.array([[edge]]))[0]) <= budget


@settings(max_examples=40, derandomize=True)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=30),
    st.integers(1, 5),
    st.sampled_from(
        [
            lw.Budget(30),
            lw.Budget(20, oversize="alone", count_multiple_of=3),
            lw.Budget(60, max_sequences=7, count_multiple_of=2),
            lw.FixedSize(4),
            lw.DynamicSize(2),
        ]
    ),
    st.sampled_from([lw.Padded(), lw.Quadratic(linear=1, quadratic=0.1, per_batch=2), menu.by_calls]),
)
def test_least_of_all_padded_lengths(lengths, shapes, cut, cost):
    if not isinstance(cut, lw.FixedSize | lw.DynamicSize):
        cut = replace(cut, oversize="alone")
    longest, distinct = max(lengths), sorted(set(lengths))
    costs = [np.inf]
    for count in range(1, shapes + 1):
        ways = itertools.combinations(distinct[:-1], count - 1)
        tried = [cost_by_hand(lengths, (*inner, longest), cut, cost) for inner in ways]
        costs.append(min([costs[-1], *tried]))
    assert shape_costs(lengths, shapes, cut, cost=cost) == pytest.approx(costs[1:])
    best = lw.optimal_shapes(lengths, shapes, cut, cost=cost)
    assert len(best) <= shapes
    assert cost_by_hand(lengths, best[:, 1].tolist(), cut, cost) == pytest.approx(costs[-1])


@pytest.mark.parametrize(
    ("cut", "shapes"),
    [
        (lw.Budget(9_000, multiple_of=16, count_multiple_of=4), 8),
        (lw.Budget(9_000, max_sequences=20, oversize="alone"), 12),
        (lw.FixedSize(16, multiple_of=8), 1),
        (lw.DynamicSize(4), 5),
    ],
    ids=repr,
)
def test_plans_by_these_shapes_compute_what_was_minimised(cut, shapes):
    best = lw.optimal_shapes(LENGTHS, shapes, cut)
    order = lw.Bucketed(edges=tuple(best[:, 1].tolist()), pad_to_edge=True)
    batching = lw.Batching(cut=cut, order=order, deal=lw.Balanced())
    assert lw.batch_shapes(LENGTHS, batching).tolist() == best.tolist()
    plan = lw.make_plan(LENGTHS, batching, seed=3)
    rows = best[np.searchsorted(best[:, 1], plan.padded_lengths[:, 0]), 0]
    assert (plan.batch_sizes <= rows).all()
    assert float(rows @ plan.padded_lengths[:, 0]) == shape_costs(LENGTHS, shapes, cut)[-1]


def test_costs_never_rise_and_are_as_many_as_asked():
    costs = shape_costs([3, 3, 5], 6, lw.FixedSize(2))
    # One shape: 2 batches of 2 x 5. Two: 2 x 3 and 1 x 5. More there are not.
    assert costs.tolist() == [20.0, 11.0, 11.0, 11.0, 11.0, 11.0]


def test_of_too_many_lengths_those_are_tried_that_pad_least(monkeypatch):
    exact = shape_costs(LENGTHS, 8, lw.Budget(9_000))
    monkeypatch.setattr(few_shapes, "_MOST_LENGTHS", 64)
    coarse = shape_costs(LENGTHS, 8, lw.Budget(9_000))
    assert (coarse >= exact).all()
    assert (coarse <= 1.05 * exact).all()
    assert len(lw.optimal_shapes(LENGTHS, 8, lw.Budget(9_000))) == 8


def test_what_is_over_the_budget_is_an_error_alone_or_left_out():
    lengths = [4, 4, 30]
    doubt = r"A sequence of the mean length is over the budget too: it costs 20, and 16 of them cost about 320\. "
    for shapes_of in (lw.optimal_shapes, shape_costs):  # lengths in samples, and a budget in frames
        with pytest.raises(lw.OversizeError, match=rf"^`budget` must be .* 30, but is 5\.0 at sequence 1\. {doubt}"):
            shapes_of([10, 30, 20], 2, lw.Budget(5))
    with pytest.raises(lw.OversizeError, match="at sequence 2"):
        lw.optimal_shapes(lengths, 2, lw.Budget(20))
    assert lw.optimal_shapes(lengths, 2, lw.Budget(20, oversize="alone")).tolist() == [[2, 4], [1, 30]]
    assert lw.optimal_shapes(lengths, 2, lw.Budget(20, oversize="drop")).tolist() == [[2, 4]]
    with pytest.raises(ValueError, match=r"^`budget` must be enough for some sequence, but is 3\.0\. "):
        lw.optimal_shapes(lengths, 2, lw.Budget(3, oversize="drop"))


BUDGET = lw.Budget(20)
FAULTS = {
    "lw.batch_shapes([3, 31], fixed(lw.Budget(30)))": "`budget` must be at least the cost of the costliest",
    "lw.batch_shapes([3, 41], fixed(lw.FixedSize(2)))": "`edges` must be such that a bucket holds the longest",
    "lw.batch_shapes([[3, 4], [5, 6]], fixed(lw.FixedSize(2)))": "`edges` must be rows of 2 edges, one for each length",
    "lw.batch_shapes([3], 16)": "`batching` must be a Batching, but is 16",
    "shape_costs([], 2, BUDGET)": "`lengths` must be of at least one sequence",
    "lw.optimal_shapes([3, 4], 2, lw.Rows(20))": "`cut` must be one that pads, but is Rows",
    "lw.optimal_shapes([[3, 4], [5, 6]], 2, BUDGET)": "`lengths` must be of shape [n], but is (2, 2). ",
    "lw.optimal_shapes([3, 4], 0, BUDGET)": "`shapes` must be at least 1",
    "shape_costs([3, 4], 10**10, BUDGET)": "`shapes` must be at most 1024, but is 10000000000",
    "shape_costs([3, 4], 2, 9)": "`cut` must be a choice such as FixedSize(16), but is 9",
    "lw.optimal_shapes([3, 4], 2, BUDGET, cost=lw.Padded)": "`cost` must be a choice such as Padded(), but is",
    "shape_costs([3, 4] * 50, 2, lw.Budget(1e308), cost=lw.Quadratic(linear=1e306))": "`cost` must be finite",
    "lw.optimal_shapes([2**62, 4], 2, lw.Budget(1e20, multiple_of=1024))": "`lengths` must be few and short enough",
}


@pytest.mark.parametrize(("code", "sentence"), FAULTS.items(), ids=FAULTS)
def test_what_has_no_shapes_is_refused(code, sentence):
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(sentence)}"):
        eval(code)

"""Few shapes: the least cost of all choices of padded lengths, and what plans by them compute."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
import menu
from lengthwise.planning import few_shapes
from lengthwise.planning.few_shapes import shape_costs

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
    "shape_costs([], 2, BUDGET)": "`lengths` must be of at least one sequence",
    "lw.optimal_shapes([3, 4], 2, lw.Rows(20))": "`cut` must be one that pads, but is Rows",
    "lw.optimal_shapes([[3, 4], [5, 6]], 2, BUDGET)": "`lengths` must be of shape [n], but is (2, 2). ",
    "lw.optimal_edges([[3, 4], [5, 6]], 2)": "`lengths` must be of shape [n], but is (2, 2). ",
    "lw.optimal_shapes([3, 4], 0, BUDGET)": "`shapes` must be at least 1",
    "shape_costs([3, 4], 10**10, BUDGET)": "`shapes` must be at most 1024, but is 10000000000",
    "shape_costs([3, 4], 2, 9)": "`cut` must be a choice such as FixedSize(16), but is 9",
    "lw.optimal_shapes([3, 4], 2, lw.Batching(budget=9))": "`cut` must be a choice such as FixedSize(16), but is",
    "lw.optimal_shapes([3, 4], 2, BUDGET, cost=lw.Padded)": "`cost` must be a choice such as Padded(), but is",
    "shape_costs([3, 4] * 50, 2, lw.Budget(1e308), cost=lw.Quadratic(linear=1e306))": "`cost` must be finite",
    "lw.optimal_shapes([2**62, 4], 2, lw.Budget(1e20, multiple_of=1024))": "`lengths` must be few and short enough",
}


@pytest.mark.parametrize(("code", "sentence"), FAULTS.items(), ids=FAULTS)
def test_what_has_no_few_shapes_is_refused(code, sentence):
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(sentence)}"):
        eval(code)

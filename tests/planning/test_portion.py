"""Drafts: batches within a hard budget, as full as it allows, padded to the edges of their bucket."""

import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import length_sets
import lengthwise as lw
import menu
from lengthwise.choices.buckets import find_bucket, sort_rows


def plan_of(lengths, cut, *, order=None, cost=None):
    """Plans batches as they are cut, of sorted sequences by default."""
    in_turn = {"deal": lw.InTurn(), "arrange": lw.InOrder()}
    return lw.make_plan(lengths, lw.Batching(cut=cut, order=order or lw.Sorted(), cost=cost or lw.Padded(), **in_turn))


def padded(plan):
    return list(zip(plan.batch_sizes.tolist(), plan.padded_lengths[:, 0].tolist(), strict=True))


def test_a_budget_worked_by_hand():
    # 2 x 3 = 6 fits; a third of 4 would be 12 > 10. Then 2 x 5 = 10 fits exactly, and 6 and 9 stand alone.
    assert padded(plan_of([2, 3, 4, 5, 6, 9], lw.Budget(10))) == [(2, 3), (2, 5), (1, 6), (1, 9)]
    assert padded(plan_of([2, 3, 4, 5, 6, 9], lw.Budget(12))) == [(3, 4), (2, 6), (1, 9)]
    assert padded(plan_of([1, 1, 1, 1, 1], lw.Budget(10, max_sequences=2))) == [(2, 1), (2, 1), (1, 1)]


def test_dynamic_sizes_worked_by_hand():
    lengths = [1, 2, 2, 3, 4, 6]  # the capacity of DynamicSize(1) is 6
    assert padded(plan_of(lengths, lw.DynamicSize(1))) == [(3, 2), (1, 3), (1, 4), (1, 6)]
    # The paper's batches close once they reach 6: 3 x 2, then 2 x 4 = 8, then 6.
    paper = plan_of(lengths, lw.DynamicSize(1, rule="paper"))
    assert padded(paper) == [(3, 2), (2, 4), (1, 6)]
    assert paper.over_max_cost().tolist() == [1]
    assert paper.max_cost == 6.0
    assert lw.DynamicSize(2, multiple_of=8).max_cost(lw.Padded(), np.array([9])) == 2 * 16


def test_what_is_longer_than_the_budget_is_refused_stands_alone_or_is_dropped():
    lengths = [3, 50, 4, 60, 5]
    message = (
        r"^`budget` must be at least the cost of the costliest sequence, 60, but is 20.0 at sequence 3. "
        r"A sequence of the mean length is over the budget too: it costs 24, and 16 of them cost about 384\. "
        r"Is the budget in the unit of the lengths, or of `cost`\? Raise it, crop the sequence and its length, "
        r"or give cut=lw.Budget\(20, oversize='alone'\), or oversize='drop' \(on the command line: .*oversize=alone\).$"
    )
    with pytest.raises(ValueError, match=message):
        plan_of(lengths, lw.Budget(20))
    with pytest.raises(ValueError, match=r"is 24\.0 at sequence 3\. Raise it, crop"):  # a mean of 24 is no doubt
        plan_of(lengths, lw.Budget(24))
    alone = plan_of(lengths, lw.Budget(20, oversize="alone"))
    assert [batch.tolist() for batch in alone.batches()] == [[0, 2, 4], [1], [3]]
    assert alone.over_max_cost().tolist() == [1, 2]
    assert alone.dropped().size == 0
    dropped = plan_of(lengths, lw.Budget(20, oversize="drop"))
    assert [batch.tolist() for batch in dropped.batches()] == [[0, 2, 4]]
    assert dropped.dropped().tolist() == [1, 3]
    assert dropped.over_max_cost().size == 0


def test_no_batch_crosses_the_border_of_a_bucket():
    lengths = lw.example_lengths(count=300)
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
    order = lw.Bucketed(edges=((1, 1, 18), (7, 7, 6), (7, 7, 7)))
    for cost in (lw.Quadratic(linear=0, quadratic=1), lambda counts, padded: counts * (padded**2).sum(axis=1)):
        plan = plan_of(lengths, lw.Budget(300, oversize="drop"), order=order, cost=cost)
        assert plan.dropped().tolist() == [0]
        assert [batch.tolist() for batch in plan.batches()] == [[1], [2]]


def test_capacity_is_reckoned_from_edges_longer_than_any_sequence():
    plan = plan_of([5, 6, 7, 8], lw.DynamicSize(2), order=lw.Bucketed(edges=(1_000,), pad_to_edge=True))
    assert padded(plan) == [(2, 1_000), (2, 1_000)]
    assert plan.max_cost == 2_000.0


@pytest.mark.parametrize("cut", [lw.Budget(1), lw.DynamicSize(2), lw.FixedSize(3)])
def test_batches_that_cost_nothing_are_planned_and_measured(cut):
    plan = plan_of([3, 1, 2, 5], cut, cost=lambda counts, _: np.zeros(len(counts)))
    measures = lw.measure(plan, [3, 1, 2, 5])
    assert (measures.dropped, measures.straggler_waste, measures.largest_cost) == (0, 0.0, 0.0)
    assert sorted(plan.sequences.tolist()) == [0, 1, 2, 3]


@pytest.mark.filterwarnings("always:`budget` must be at least the cost of a sequence of the mean")
@pytest.mark.parametrize("oversize", ["alone", "drop"])
def test_a_budget_in_another_unit_than_the_lengths_is_doubted(oversize):
    samples = np.append(200_000 + np.arange(-60_000, 60_000, 1_000), 500)  # at 16 kHz, and a budget in frames of 10 ms
    cut = lw.Budget(20_000, oversize=oversize)
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


@settings(max_examples=25, derandomize=True)
@given(length_sets.pairs.filter(len), st.sampled_from(["edges", "edges_fixed", "edges_drop_fixed"]), st.integers(1, 4))
def test_a_batch_is_of_one_bucket_and_padded_to_its_edges(lengths, name, world_size):
    order = menu.OF_PAIRS[name]
    edges = np.array(order.edges)
    plan = lw.make_plan(lengths, lw.Batching(order=order, cut=lw.FixedSize(4)), world_size=world_size)
    for number, padded in enumerate(plan.padded_lengths.tolist()):
        members = lengths[plan.batch(number)]
        (bucket,) = set(find_bucket(members, edges).tolist())
        assert padded == (edges[bucket] if order.pad_to_edge else members.max(axis=0)).tolist()


def test_a_sequence_counts_as_its_bucket_does_under_a_budget():
    """(9, 1) and (1, 9) cost 10 each, and 18 in the one bucket that holds both."""
    lengths, order = [[9, 1], [1, 9], [1, 1]], lw.Bucketed(edges=((9, 9),), pad_to_edge=True)
    with pytest.raises(lw.OversizeError, match=r"`budget` must be at least the cost of the costliest sequence, 18"):
        lw.make_plan(lengths, lw.Batching(order=order, cut=lw.Budget(12)))
    plan = lw.make_plan(lengths, lw.Batching(order=order, cut=lw.Budget(12, oversize="alone")))
    assert plan.costs.tolist() == [18.0] * 3
    assert plan.over_max_cost().tolist() == [0, 1, 2]
    apart = replace(order, edges=((9, 1), (1, 9)))
    assert lw.make_plan(lengths, lw.Batching(order=apart, cut=lw.Budget(20))).costs.max() <= 20


def test_edges_of_several_lengths_are_given_by_hand():
    sentence = (
        r"^`buckets` must be left out if sequences have several lengths, but is 3\. "
        r"Give edges by hand, such as Bucketed\(edges=\(\(20, 30\), \(60, 50\)\)\)\.$"
    )
    for cut, deal in ((lw.Budget(2_500), lw.RandomSteps()), (lw.Budget(200, oversize="alone"), lw.Balanced())):
        batching = lw.Batching(order=lw.Bucketed(buckets=3, pad_to_edge=True), cut=cut, deal=deal)
        with pytest.raises(ValueError, match=sentence):
            lw.make_plan([[5, 9], [2, 4], [7, 1], [3, 3]], batching)


def test_steps_that_mix_buckets_are_padded_to_buckets_within_each_other():
    """A batch of the buckets (9, 4) and (5, 9) would be padded to (9, 9), which is no bucket."""
    order, cut = lw.Bucketed(edges=((9, 4), (5, 9), (12, 12)), pad_to_edge=True), lw.Budget(100)
    with pytest.raises(ValueError, match=r"^`edges` must be such that no edge is below that of the bucket before"):
        lw.Batching(order=order, cut=cut, deal=lw.RandomSteps())
    for batching in (
        lw.Batching(order=order, cut=cut, deal=lw.Balanced()),
        lw.Batching(order=replace(order, pad_to_edge=False), cut=cut, deal=lw.RandomSteps()),
        lw.Batching(order=replace(order, edges=((9, 4), (9, 9), (12, 12))), cut=cut, deal=lw.RandomSteps()),
    ):
        plan = lw.make_plan([[9, 1], [1, 9], [9, 4], [5, 5], [12, 2]] * 8, batching, world_size=2)
        padded = {tuple(row) for row in plan.padded_lengths.tolist()}
        assert padded <= set(batching.order.edges) or not batching.order.pad_to_edge


@settings(max_examples=25, derandomize=True)
@given(length_sets.pairs, st.data())
def test_a_sequence_is_in_the_bucket_that_holds_it_with_the_fewest_frames(lengths, data):
    row = st.lists(st.sampled_from([1, 9, 40, 300, 5_000]), min_size=2, max_size=2)
    edges = sort_rows(np.array(data.draw(st.lists(row, min_size=1, max_size=5))))
    for sizes, bucket in zip(lengths.tolist(), find_bucket(lengths, edges).tolist(), strict=True):
        holding = [b for b, row in enumerate(edges.tolist()) if all(s <= e for s, e in zip(sizes, row, strict=True))]
        assert bucket == min(holding, key=lambda b: (sum(edges[b]), edges[b].tolist()), default=len(edges))


def test_planning_pairs_takes_no_more_memory_than_the_page_on_windows_says():
    lengths = lw.example_lengths("long-tailed", count=100_000)
    pairs, batching = np.stack([lengths, lengths[::-1]], axis=1), lw.Batching(budget=40_000)
    lw.make_plan(pairs, batching, world_size=8, epoch=1)  # compiles, and fits
    tracemalloc.start()
    lw.make_plan(pairs, batching, world_size=8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80 * len(pairs)

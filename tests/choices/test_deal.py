"""Which rank takes which batch, what becomes of the tail, and in which order the steps come."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.choices.deal import share_out

LENGTHS = lw.example_lengths(count=2_000)


def planned(lengths, *, cut=None, world_size=1, micro_batches=1, epoch=0, **verbs):
    batching = lw.Batching(cut=cut or lw.FixedSize(2), **verbs)
    return lw.make_plan(lengths, batching, world_size=world_size, micro_batches=micro_batches, epoch=epoch)


def test_in_turn_deals_as_the_batches_were_cut():
    in_turn = {"order": lw.Sorted(), "deal": lw.InTurn(), "arrange": lw.InOrder()}
    plan = planned([1, 2, 3, 4, 5, 6, 7, 8], cut=lw.FixedSize(1), world_size=2, micro_batches=2, **in_turn)
    assert plan.sequences[plan.grid].tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]


def test_ranks_get_about_equal_shares_of_a_step():
    costs = np.array([10.0, 9.0, 8.0, 7.0, 6.0, 5.0])
    # By falling cost, the second row backwards: rank 0 has 10 + 5, rank 1 has 9 + 6, rank 2 has 8 + 7.
    first, second = share_out(np.array([[5, 0, 4, 1, 3, 2]] * 2), costs, 3).tolist()
    assert first == [[0, 1, 2], [5, 4, 3]]
    assert second == [[1, 2, 0], [4, 3, 5]], "in turn: else rank 0 would always have the costliest"


@settings(max_examples=60, derandomize=True)
@given(st.data())
def test_no_other_pairs_make_ranks_wait_less_and_of_more_no_swap_does(data):
    ranks, micro_batches = data.draw(st.sampled_from([(1, 4), (2, 2), (3, 2), (2, 3), (3, 3), (2, 4)]))
    slots = ranks * micro_batches
    costs = np.array(data.draw(st.lists(st.integers(0, 40), min_size=slots, max_size=slots)), float)
    step = share_out(np.arange(slots)[::-1][None], costs, ranks)[0]
    assert sorted(step.ravel().tolist()) == list(range(slots))
    assert (np.diff(costs[step], axis=0) <= 0).all(), "each rank begins with its costliest"
    sums = costs[step].sum(axis=0)
    if micro_batches == 2:
        orders = map(list, itertools.permutations(range(slots)))
        assert sums.max() == min(costs[order].reshape(2, ranks).sum(axis=0).max() for order in orders)
    costliest = int(sums.argmax())
    for batch, partner in itertools.product(step[:, costliest], np.delete(step, costliest, axis=1).ravel()):
        gain = costs[batch] - costs[partner]
        other = sums[np.nonzero(step == partner)[1][0]] + gain
        assert gain <= 0 or max(sums[costliest] - gain, other) >= sums.max()


def test_a_split_tail_cuts_a_row_where_rows_are_fewer_than_places():
    plan = planned([1] * 8, cut=lw.Rows(10), order=lw.Shuffled(), world_size=4)
    assert (plan.batch_sizes.tolist(), plan.repeated().tolist()) == ([2, 2, 2, 2], [])


def test_a_repeated_tail_takes_the_cheapest_again():
    plan = planned([5, 5, 1, 1, 9, 9], order=lw.Sorted(), deal=lw.Balanced(tail="repeat"), world_size=2)
    assert len(plan.costs) == 3
    assert plan.grid.size == 4
    assert plan.repeated().tolist() == [2, 3]


def test_a_dropped_tail_is_another_one_each_epoch():
    dropped = set()
    for epoch in range(40):
        tail = lw.InTurn(tail="drop")
        plan = planned([1, 2, 3, 4, 5], cut=lw.FixedSize(1), order=lw.Sorted(), deal=tail, world_size=4, epoch=epoch)
        assert plan.grid.size == 4
        dropped.add(tuple(plan.dropped().tolist()))
    assert dropped == {(0,), (1,), (2,), (3,), (4,)}


def test_a_rank_without_a_portion_borrows():
    for epoch in range(8):
        plan = planned([7, 3], cut=lw.FixedSize(1), deal=lw.Portions(), world_size=4, epoch=epoch)
        assert plan.grid.shape == (1, 1, 4)
        assert plan.repeated().tolist() == [1], "the cheapest"


def test_a_rank_with_too_few_sequences_takes_some_of_its_own_again():
    for epoch in range(8):
        plan = planned([3, 4, 5, 6, 7], cut=lw.FixedSize(1), deal=lw.Portions(), world_size=2, epoch=epoch)
        ranks = [{number for batch in plan.batches(rank) for number in batch.tolist()} for rank in (0, 1)]
        assert sorted(map(len, ranks)) == [2, 3]
        assert not ranks[0] & ranks[1]


def test_arrangements_by_length():
    """A step of two batches is as long as they are on average."""
    trends = {}
    for arrange in (lw.InOrder(), lw.ShortestFirst(), lw.ShortestFirst(reverse=True), lw.ShuffledSteps()):
        plan = planned(LENGTHS, order=lw.Sorted(), arrange=arrange, deal=lw.InTurn(), world_size=2)
        lengths = plan.padded_lengths[plan.grid].mean(axis=(1, 2, 3))
        trends[str(arrange)] = ((np.diff(lengths) >= 0).all(), (np.diff(lengths) <= 0).all())
    assert list(trends.values()) == [(True, False), (True, False), (False, True), (False, False)]


@pytest.mark.parametrize("steps", [1, 5, None])
def test_the_costliest_steps_lead(steps):
    plan = planned(LENGTHS, deal=lw.Mixed(), arrange=lw.CostliestFirst(steps=steps), world_size=2, micro_batches=2)
    costs = plan.costs[plan.grid].max(axis=(1, 2)).tolist()
    assert costs[:steps] == sorted(costs, reverse=True)[:steps]
    assert (costs == sorted(costs, reverse=True)) == (steps is None)
    assert plan.costliest(1)[0] in plan.grid[0]


@pytest.mark.parametrize("arrange", [lw.ShortestFirst, partial(lw.ShortestFirst, reverse=True)])
def test_steps_are_in_random_order_after_the_epochs_that_are_sorted(arrange):
    def lengths_of(arrange, epoch):
        plan = planned(LENGTHS, order=lw.Sorted(), arrange=arrange, epoch=epoch)
        return plan.padded_lengths[plan.grid[:, 0, 0], 0].tolist()

    sorts = [lengths_of(arrange(epochs=2), epoch) == lengths_of(arrange(), epoch) for epoch in range(4)]
    assert sorts == [True, True, False, False]
    assert lengths_of(arrange(epochs=2), 3) == lengths_of(lw.ShuffledSteps(), 3)


def test_buckets_keep_their_order_where_incomplete_batches_are_dropped():
    lengths = [1, 2, 3, 4, 5, 6, 7, *range(11, 27)]  # 4 of 7 are kept in the first bucket, all 16 in the second
    order, cut = lw.Bucketed(edges=(10, 30)), lw.FixedSize(4, drop_incomplete=True)
    for epoch in range(20):
        plan = planned(lengths, cut=cut, order=order, arrange=lw.ShortestFirst(), epoch=epoch)
        assert len(plan.costs) == 5
        assert plan.padded_lengths[plan.grid[0, 0, 0], 0] <= 7


def test_halves_of_a_batch_stay_in_its_bucket():
    # 13 batches for steps of 4: some are halved, and their steps still come in random order within the bucket.
    lengths = np.arange(1, 105)
    halved = planned(lengths, cut=lw.FixedSize(8), order=lw.Bucketed(edges=(104,)), arrange=lw.ShortestFirst())
    plans = [
        planned(lengths, cut=lw.FixedSize(8), order=order, arrange=lw.ShortestFirst(), world_size=4, deal=lw.Mixed())
        for order in (lw.Bucketed(edges=(4, 104)), lw.Shuffled())
    ]
    assert halved.steps == 13
    in_bucket, by_length = (plan.padded_lengths[plan.grid].mean(axis=(1, 2, 3)) for plan in plans)
    assert (np.diff(by_length) >= 0).all()
    assert (np.diff(in_bucket[1:]) < 0).any()


def test_every_portion_has_the_capacity_of_the_longest_of_all():
    lengths = [1] * 399 + [100]  # whoever has not the longest takes its 100 in one batch, and not in two
    plan = planned(lengths, cut=lw.DynamicSize(2), order=lw.Sorted(), deal=lw.Portions(), world_size=4)
    assert len(plan.costs) == 8


def test_a_portion_names_the_sequence_that_is_over_the_budget():
    with pytest.raises(ValueError, match=r"`budget` must be .*, but is 20.0 at sequence 9\."):
        planned([3] * 9 + [60], cut=lw.Budget(20), deal=lw.Portions(), world_size=2)

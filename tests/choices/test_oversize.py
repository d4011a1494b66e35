"""What is over the budget by itself leaves before the order is fitted: the others are planned as without it."""

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.planning.items import kinds_of

ORDINARY = np.random.default_rng(0).integers(50, 401, 300)
GIANTS = [1_000_000, 700_000]
# The giants stand among the others, and after them; numbers of the others are those of ORDINARY, or one more.
LENGTHS = np.concatenate([[GIANTS[0]], ORDINARY, [GIANTS[1]]])
BUDGET = 6_400

ORDERS = {
    "max-entropy": lw.MaxEntropy(padding=0.1),
    "noise of a scale": lw.MaxEntropy(scale=40.0),
    "semi-sorted": lw.SemiSorted(0.2),
    "sorted": lw.Sorted(),
    "falling": lw.Sorted(descending=True),
    "uniform": lw.Bucketed(buckets=6, by="uniform"),
    "optimal": lw.Bucketed(buckets=4),
    "windowed": lw.Windowed(64),
    "edges": lw.Bucketed(edges=(200, 400)),
}


def plan_of(lengths, order, oversize, **choices):
    cut = lw.Budget(BUDGET, oversize=oversize)
    return lw.make_plan(lengths, lw.Batching(order=order, cut=cut, **choices))


def padding_of_others(plan, lengths):
    shared = plan.costs <= BUDGET
    computed = (plan.padded_lengths[:, 0] * plan.batch_sizes)[shared].sum()
    return 1 - lengths[lengths <= BUDGET].sum() / computed


@pytest.mark.parametrize("oversize", ["drop", "alone"])
@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_giants_change_nothing_for_the_others(order, oversize):
    without = padding_of_others(plan_of(ORDINARY, order, "error"), ORDINARY)
    had = padding_of_others(plan_of(LENGTHS, order, oversize), LENGTHS)
    assert had == pytest.approx(without, abs=0.03)  # other noise falls to the same lengths
    if order == lw.MaxEntropy(padding=0.1):
        assert had == pytest.approx(0.1, abs=0.015)


def test_giants_alone_leave_sorted_steps_sorted():
    lengths = [5, 900, 9, 800, 2, 4, 7, 3]
    cut = lw.Budget(20, oversize="alone", max_sequences=2)
    for order, batches in (
        (lw.Sorted(), [[2, 3], [4, 5], [7, 9], [800], [900]]),
        (lw.Sorted(descending=True), [[900], [800], [9, 7], [5, 4], [3, 2]]),
    ):
        plan = lw.make_plan(lengths, lw.Batching(order=order, cut=cut, arrange=lw.InOrder(), deal=lw.InTurn()))
        assert [[lengths[member] for member in batch] for batch in plan.batches()] == batches


def test_giants_alone_have_buckets_of_their_own_between_shortest_and_longest():
    # The steps go by bucket: those of the longest bucket do not come to count as long as a giant.
    lengths = [10, 12, 30, 31, 5_000, 11, 32, 29]
    order = lw.Bucketed(edges=(20, 40))
    batching = lw.Batching(order=order, cut=lw.Budget(64, oversize="alone"), arrange=lw.ShortestFirst())
    for epoch in range(4):
        plan = lw.make_plan(lengths, batching, epoch=epoch)
        taken = [max(lengths[member] for member in batch) for batch in plan.batches()]
        assert [length > 20 for length in taken] == sorted(length > 20 for length in taken)
        assert taken[-1] == 5_000


def test_what_stands_alone_counts_among_the_batches_that_fill_the_last_step():
    # 16 batches of ten and a giant: 20 places. 17 batches of nine and one of seven fit, and one of nine is halved.
    batching = lw.Batching(cut=lw.Budget(100, oversize="alone"), order=lw.Sorted())
    plan = lw.make_plan([10] * 160 + [500], batching, world_size=4)
    assert sorted(plan.costs.tolist()) == [40.0, 50.0, 70.0, *[90.0] * 16, 500.0]


@pytest.mark.parametrize("ranks", [40, 48])
def test_what_stands_alone_counts_in_the_trials_of_a_padding(ranks):
    """24 giants leave 56 of 80 places to the others, or 24 of 48. Trials of 80 or 48 others would pad otherwise."""
    lengths = np.append(np.random.default_rng(0).lognormal(4.5, 0.5, 300).astype(int).clip(20, 400), [3_000] * 24)
    batching = lw.Batching(cut=lw.Budget(2_000, oversize="alone"), padding=0.1, deal=lw.Mixed())
    plans = [lw.make_plan(lengths, batching, epoch=epoch, world_size=ranks) for epoch in range(20)]
    computed = [(plan.padded_lengths[:, 0] * plan.batch_sizes)[plan.costs <= 2_000].sum() for plan in plans]
    assert 1 - lengths[:300].sum() / np.mean(computed) == pytest.approx(0.1, abs=0.006)


def test_what_costs_as_much_as_the_budget_is_within_it_and_what_is_rounded_up_beyond_it_is_not():
    order = lw.Sorted()
    for cost in (lw.Padded(), lambda counts, padded: counts * padded[:, 0]):
        dropping = lw.Batching(cut=lw.Budget(10, oversize="drop"), order=order, cost=cost)
        assert lw.make_plan([11, 10, 3], dropping).dropped().tolist() == [0]
        rounding = lw.Batching(cut=lw.Budget(15, oversize="alone", multiple_of=8), order=order, cost=cost)
        assert kinds_of(np.array([[8], [9], [16]]), rounding).alone.tolist() == [False, True, True]
    # One of the longest of both lengths would cost 20.
    assert lw.make_plan([[10, 1], [1, 10]], lw.Batching(budget=11, order=order)).costs.tolist() == [11, 11]


def test_a_giant_fills_one_batch_of_a_random_step():
    batching = lw.Batching(cut=lw.Budget(100, oversize="alone"), deal=lw.RandomSteps())
    lengths = np.array([10] * 60 + [500] * 4)
    plans = [lw.make_plan(lengths, batching, epoch=epoch, world_size=8) for epoch in range(6)]
    assert [(plan.steps, len(plan.costs), plan.repeated().tolist()) for plan in plans] == [(2, 16, [])] * 6
    in_first = [(plan.costs[plan.grid[0]] == 500).sum() for plan in plans]
    assert len(set(in_first)) > 1  # by chance


def test_only_giants():
    alone = lw.make_plan([50, 60], lw.Batching(cut=lw.Budget(10, oversize="alone"), padding=0.1))
    assert sorted(batch.tolist() for batch in alone.batches()) == [[0], [1]]
    with pytest.raises(ValueError, match=r"`steps` must be at least 1"):
        lw.make_plan([50, 60], lw.Batching(cut=lw.Budget(10, oversize="drop"), padding=0.1))


@pytest.mark.parametrize("by", ["optimal", "uniform", "quantile", "exponential"])
@pytest.mark.parametrize("deal", [lw.Balanced(), lw.Portions()])
def test_where_every_batch_is_padded_to_an_edge_only_giants_are_over_the_budget(by, deal):
    order = lw.Bucketed(buckets=6, by=by, pad_to_edge=True)
    plan = plan_of(LENGTHS, order, "alone", deal=deal)
    assert LENGTHS[np.concatenate([plan.batch(number) for number in plan.over_max_cost()])].min() == min(GIANTS)
    assert len(np.unique(plan.padded_lengths)) <= 6
    # The others have five edges, and pad as they do without giants. A single edge is that of the giant.
    within = plan_of(ORDINARY, lw.Bucketed(buckets=5, by=by, pad_to_edge=True), "error", deal=deal)
    assert sorted(set(plan.padded_lengths[:, 0])) == [*sorted(set(within.padded_lengths[:, 0])), max(GIANTS)]
    single = plan_of(LENGTHS, lw.Bucketed(buckets=1, by=by, pad_to_edge=True), "alone", deal=deal)
    assert np.unique(single.padded_lengths).tolist() == [max(GIANTS)]


@pytest.mark.parametrize("order", [lw.Windowed(20), lw.AlternatedSort(2), lw.Sorted()], ids=repr)
@pytest.mark.parametrize("giant", [65_535, 65_536, 100_000])
def test_a_giant_alone_is_padded_to_its_own_length(order, giant):
    lengths = np.append(np.full(40, 50), giant)
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.Budget(200, oversize="alone"), order=order), world_size=2)
    [number] = plan.over_max_cost()
    assert (plan.batch(number).tolist(), plan.padded_lengths[number].tolist()) == ([40], [giant])
    assert plan.costs[number] == giant

"""Evaluation plans: each sequence once, exact averages, the order of the data set again."""

import functools
import itertools
import random

import numpy as np
import pytest

import choices
import lengthwise as lw


@pytest.mark.parametrize("cut", ["fixed", "one", "budget", "budget_few", "budget_alone", "budget_drop", "dynamic"])
def test_outputs_come_back_in_order_and_averages_are_exact(cut):
    chance = random.Random(cut)
    for _ in range(60):
        lengths = np.array([max(1, round(chance.lognormvariate(3, 1))) for _ in range(chance.randint(1, 50))])
        budget = 2.0 * lengths.max()
        choice = choices.cuts(budget, float(np.median(lengths)))[cut]
        plan = lw.evaluation_plan(lengths, choice, world_size=chance.randint(1, 7))
        losses = np.array([chance.random() for _ in lengths])
        outputs = [[f"of {number}" for batch in plan.batches(rank) for number in batch] for rank in ranks(plan)]
        kept = np.setdiff1d(np.arange(len(lengths)), plan.dropped())
        expected = [f"of {number}" if number in kept else None for number in range(len(lengths))]
        assert lw.restore_order(plan, outputs) == expected
        weights = lw.evaluation_weights(plan, lengths)
        mean = sum(
            weight * np.average(losses[batch], weights=lengths[batch])
            for rank in ranks(plan)
            for weight, batch in zip(weights[:, :, rank].reshape(-1), plan.batches(rank), strict=True)
        )
        assert mean == pytest.approx(np.average(losses[kept], weights=lengths[kept]), abs=1e-12)
        assert len({len(list(plan.batches(rank))) for rank in ranks(plan)}) == 1


def ranks(plan):
    return range(plan.world_size)


def test_the_costliest_comes_first_and_padding_is_that_of_sorted_batches():
    lengths = lw.example_lengths("long-tailed")
    plan = lw.evaluation_plan(lengths, lw.Budget(20_000))
    assert plan.costs[plan.grid[0, 0, 0]] == plan.costs.max()
    assert np.all(np.diff(plan.costs[plan.grid.reshape(-1)]) <= 0)
    assert lw.measure(plan, lengths).padding_share < 0.02
    assert lw.evaluation_plan(lengths, lw.Budget(20_000)).fingerprint() == plan.fingerprint()


def least_of_all(padded, cost, *, budget, most):
    """The (batches, cost) of the partitions of sequences into the fewest batches within the limits that cost least.

    The first sequence that is left shares a batch with some of the others: every way to choose them is tried. What is
    over the budget by itself may stand alone.
    """

    @functools.cache
    def least(left):
        if not left:
            return 0, 0.0
        found = []
        for size in range(min(most, len(left))):
            for others in itertools.combinations(left[1:], size):
                longest = max(padded[number] for number in (left[0], *others))
                price = float(cost(np.array([size + 1]), np.array([[longest]]))[0])
                if price <= budget or not size:
                    batches, total = least(tuple(number for number in left[1:] if number not in others))
                    found.append((batches + 1, round(total + price, 6)))
        return min(found)

    return least(tuple(range(len(padded))))


EXACT = {
    "fixed": lw.FixedSize(3),
    "fixed to multiples": lw.FixedSize(3, multiple_of=8),
    "budget": lw.Budget(90),
    "optimal": lw.Budget(90, by="optimal"),
    "few": lw.Budget(90, max_sequences=2, multiple_of=4),
    "alone": lw.Budget(40, oversize="alone", max_sequences=3),
    "drop": lw.Budget(40, oversize="drop"),
    "dynamic": lw.DynamicSize(2, multiple_of=2),
}


@pytest.mark.parametrize("cost", choices.COSTS.values(), ids=choices.COSTS)
@pytest.mark.parametrize("cut", EXACT.values(), ids=EXACT)
def test_of_all_ways_to_make_as_few_batches_it_costs_least(cut, cost):
    chance = random.Random(0)
    for _ in range(12):
        # No sequence of 14 is over the budget of 90 by any of the costs; one of 13 may be over that of 40.
        lengths = np.array([chance.randint(1, 14) for _ in range(chance.randint(1, 8))] + [1])
        padded = choices.padded_to(lengths, cut)
        budget = cut.max_cost(cost, np.array([lengths.max()]))
        if getattr(cut, "oversize", "") == "drop":
            padded = padded[cost(np.ones(len(padded)), padded[:, None]) <= budget]
        most = getattr(cut, "max_sequences", None) or getattr(cut, "batch_size", 9)
        limits = {"budget": budget, "most": 9 if isinstance(cut, lw.DynamicSize) else most}
        plan = lw.evaluation_plan(lengths, cut, cost=cost, world_size=chance.randint(1, 3))
        assert (len(plan.costs), plan.costs.sum()) == pytest.approx(least_of_all(padded, cost, **limits), abs=1e-4)


def test_the_batch_that_is_not_full_need_not_be_that_of_the_longest():
    lengths = np.array([2, 6, 19, 20, 30, 33, 37, 38])
    plan = lw.evaluation_plan(lengths, lw.FixedSize(3))
    # 3 x 38 + 3 x 30 + 2 x 6 frames. With the two longest by themselves, it would be 2 x 38 + 3 x 33 + 3 x 19 = 232.
    assert [lengths[batch].tolist() for batch in plan.batches()] == [[33, 37, 38], [19, 20, 30], [2, 6]]
    assert plan.costs.sum() == 216
    assert lw.Batching.from_json(plan.batching).cut == lw.FixedSize(3, by="optimal")


def test_a_budget_is_cut_at_least_cost():
    lengths = lw.example_lengths("long-tailed")
    plans = [lw.evaluation_plan(lengths, cut) for cut in (lw.Budget(20_000), lw.Budget(20_000, by="optimal"))]
    assert plans[0].fingerprint() == plans[1].fingerprint()
    greedy = lw.make_plan(lengths, lw.Batching(budget=20_000, order=lw.Sorted(), deal=lw.Balanced(tail="repeat")))
    assert len(greedy.costs) == len(plans[0].costs)
    padding = [lw.measure(plan, lengths).padding_share for plan in (greedy, plans[0])]
    assert [f"{share:.2%}" for share in padding] == ["0.75%", "0.69%"]


@pytest.mark.parametrize(
    "cut",
    [
        lw.FixedSize(3, drop_incomplete=True),
        lw.DynamicSize(2, rule="paper"),
        lw.Rows(500, rows=2),
        lw.Budget(900, by="cheapest"),
        choices.cuts(900.0, 90.0)["rows_best_fit"],
    ],
)
def test_other_cuts_stay_as_they_are(cut):
    lengths = lw.example_lengths("speech", count=50) // 10
    plan = lw.evaluation_plan(lengths, cut, cost=lw.Quadratic(per_batch=5))
    assert lw.Batching.from_json(plan.batching).cut == cut


@pytest.mark.parametrize("by", ["pool", "best-fit"])
def test_packed_rows_are_as_full_as_those_of_training(by):
    lengths, cut = lw.example_lengths("long-tailed").clip(max=4_096), lw.Rows(4_096, rows=8, by=by)
    plan = lw.evaluation_plan(lengths, cut, world_size=3)
    assert plan.fingerprint() == lw.evaluation_plan(lengths, cut, world_size=3).fingerprint()
    assert lw.measure(plan, lengths).fill > 0.998
    taken = np.concatenate([plan.batch(number) for number in range(len(plan.costs))])
    assert sorted(taken.tolist()) == list(range(len(lengths)))
    assert (np.diff(plan.costs[plan.grid].max(axis=(1, 2))) <= 0).all()


def test_a_cut_that_extends_ours_stays_as_it_is():
    class Mine(lw.FixedSize):
        """As its parent, but not of this package."""

    assert sorted(lw.evaluation_plan([2, 9, 4, 11, 5], Mine(2)).costs.tolist()) == [8, 11, 18]


def test_pairs_are_cut_as_they_were():
    pairs = np.column_stack([lw.example_lengths("speech", count=80)] * 2)
    plan = lw.evaluation_plan(pairs, lw.FixedSize(7))
    assert lw.Batching.from_json(plan.batching).cut == lw.FixedSize(7)
    one = lw.evaluation_plan(pairs[:, :1], lw.FixedSize(7))
    assert one.costs.sum() == lw.evaluation_plan(pairs[:, 0], lw.FixedSize(7)).costs.sum()


def test_by_hand():
    # Sorted: 2 | 4, 5 | 9, 11; the cheapest, [0], stands again on rank 1 so that both take two batches.
    plan = lw.evaluation_plan([2, 9, 4, 11, 5], lw.FixedSize(2), world_size=2)
    taken = [[batch.tolist() for batch in plan.batches(rank)] for rank in (0, 1)]
    assert taken == [[[1, 3], [0]], [[2, 4], [0]]]
    np.testing.assert_allclose(lw.evaluation_weights(plan)[:, 0, :], [[0.4, 0.4], [0.2, 0.0]])
    assert lw.restore_order(plan, [["b", "d", "a"], ["c", "e", "again"]]) == ["a", "b", "c", "d", "e"]


def test_outputs_of_too_few_sequences_are_refused():
    plan = lw.evaluation_plan([2, 9, 4], lw.FixedSize(2), world_size=1)
    with pytest.raises(
        ValueError, match=r"`outputs` must be 3 outputs, one for each sequence it took, but is 2 at rank 0"
    ):
        lw.restore_order(plan, [["a", "b"]])
    with pytest.raises(ValueError, match="`outputs` must be of 1 ranks, but is 2"):
        lw.restore_order(plan, [["a", "b"], ["c"]])


def test_training_plans_are_restored_too():
    batching = lw.Batching(budget=20_000, padding=0.1)
    lengths = lw.example_lengths("long-tailed", count=500)
    plan = lw.make_plan(lengths, batching, epoch=3, world_size=3, micro_batches=2)
    outputs = [[number for batch in plan.batches(rank) for number in batch] for rank in ranks(plan)]
    assert lw.restore_order(plan, outputs) == list(range(500))


def test_of_several_copies_the_first_output_is_restored():
    batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder())
    plan = lw.make_plan([5, 9, 2, 4], batching, times=[2, 0, 1, 1])
    outputs = [(int(number), place) for place, number in enumerate(np.concatenate(list(plan.batches())))]
    assert outputs == [(2, 0), (3, 1), (0, 2), (0, 3)]
    assert lw.restore_order(plan, [outputs]) == [(0, 2), None, (2, 0), (3, 1)]


def test_the_budget_counts_the_cost_that_is_given():
    plan = lw.evaluation_plan([2, 9, 4, 11, 5], lw.Budget(132), cost=lw.Quadratic(quadratic=1.0))
    assert sorted(plan.costs.tolist()) == [90.0, 90.0, 132.0]  # 3 x (5 + 5^2), 9 + 9^2, 11 + 11^2

"""Evaluation plans: each sequence once, exact averages, the order of the data set again."""

import itertools
import math
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


@pytest.mark.parametrize("seed", range(8))
def test_no_full_batches_of_a_fixed_size_pad_less(seed):
    lengths = np.random.default_rng(seed).integers(1, 40, 9)
    plan = lw.evaluation_plan(lengths, lw.FixedSize(3))

    def least(left, batches):
        """The fewest frames of so many batches of at most three that hold the numbers `left`."""
        if not left or batches == 0:
            return math.inf if left else 0
        with_first = [left[:1] + more for size in range(3) for more in itertools.combinations(left[1:], size)]
        return min(
            len(batch) * max(lengths[list(batch)]) + least(tuple(n for n in left if n not in batch), batches - 1)
            for batch in with_first
        )

    assert plan.batch_sizes @ plan.padded_lengths[:, 0] == least(tuple(range(9)), 3)


def test_a_budget_by_optimal_pads_a_little_less_than_the_greedy_one():
    lengths = lw.example_lengths("long-tailed")
    cuts = lw.Budget(20_000), lw.Budget(20_000, by="optimal")
    padding = [lw.measure(lw.evaluation_plan(lengths, cut), lengths).padding_share for cut in cuts]
    assert [f"{share:.2%}" for share in padding] == ["0.75%", "0.69%"]


def test_by_hand():
    # Sorted: 2, 4 | 5, 9 | 11; the cheapest, [0, 2], stands again on rank 1 so that both take two batches.
    plan = lw.evaluation_plan([2, 9, 4, 11, 5], lw.FixedSize(2), world_size=2)
    taken = [[batch.tolist() for batch in plan.batches(rank)] for rank in (0, 1)]
    assert taken == [[[4, 1], [0, 2]], [[3], [0, 2]]]
    np.testing.assert_allclose(lw.evaluation_weights(plan)[:, 0, :], [[0.4, 0.2], [0.4, 0.0]])
    assert lw.restore_order(plan, [["e", "b", "a", "c"], ["d", "again", "again"]]) == ["a", "b", "c", "d", "e"]


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


def test_the_budget_counts_the_cost_that_is_given():
    plan = lw.evaluation_plan([2, 9, 4, 11, 5], lw.Budget(132), cost=lw.Quadratic(quadratic=1.0))
    assert sorted(plan.costs.tolist()) == [90.0, 90.0, 132.0]  # 3 x (5 + 5^2), 9 + 9^2, 11 + 11^2

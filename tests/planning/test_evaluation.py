"""Evaluation plans: each sequence once, least padding, exact averages, the order of the data set again."""

import numpy as np
import pytest

import lengthwise as lw
import menu


def ranks(plan):
    return range(plan.world_size)


def test_the_costliest_comes_first_and_padding_is_that_of_sorted_batches():
    lengths = lw.example_lengths("long-tailed")
    plan = lw.evaluation_plan(lengths, lw.Budget(20_000))
    assert lw.Batching.from_json(plan.batching).cut == lw.Budget(20_000)
    assert plan.costs[plan.grid[0, 0, 0]] == plan.costs.max()
    assert np.all(np.diff(plan.costs[plan.grid.reshape(-1)]) <= 0)
    assert lw.measure(plan, lengths).padding_share < 0.01
    assert lw.evaluation_plan(lengths, lw.Budget(20_000)).fingerprint() == plan.fingerprint()


@pytest.mark.parametrize("by", ["pool", "best-fit"])
def test_packed_rows_are_as_full_as_those_of_training(by):
    lengths, cut = lw.example_lengths("long-tailed").clip(max=4_096), lw.Rows(4_096, rows=8, by=by)
    plan = lw.evaluation_plan(lengths, cut, world_size=3)
    assert plan.fingerprint() == lw.evaluation_plan(lengths, cut, world_size=3).fingerprint()
    assert lw.measure(plan, lengths).fill > 0.998
    taken = np.concatenate([plan.batch(number) for number in range(len(plan.costs))])
    assert sorted(taken.tolist()) == list(range(len(lengths)))
    assert (np.diff(plan.costs[plan.grid].max(axis=(1, 2))) <= 0).all()


def test_by_hand():
    # Sorted: 2, 4 | 5, 9 | 11; the cheapest, [0, 2], stands again on rank 1 so that both take two batches.
    plan = lw.evaluation_plan([2, 9, 4, 11, 5], lw.FixedSize(2), world_size=2)
    taken = [[batch.tolist() for batch in plan.batches(rank)] for rank in (0, 1)]
    assert taken == [[[3], [0, 2]], [[4, 1], [0, 2]]]
    np.testing.assert_allclose(lw.evaluation_weights(plan)[:, 0, :], [[0.2, 0.4], [0.4, 0.0]])
    assert lw.restore_order(plan, [["d", "a", "c"], ["e", "b", "again", "again"]]) == ["a", "b", "c", "d", "e"]


def test_outputs_of_too_few_sequences_are_refused():
    plan = lw.evaluation_plan([2, 9, 4], lw.FixedSize(2), world_size=1)
    with pytest.raises(ValueError, match=r"`outputs` must be 3 outputs, one for each sequence of the rank, but is 2"):
        lw.restore_order(plan, [["a", "b"]])
    with pytest.raises(ValueError, match=r"`outputs` must be of 1 list\(s\), one for each rank, but is 2"):
        lw.restore_order(plan, [["a", "b"], ["c"]])


def test_of_several_copies_the_first_output_is_restored():
    batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder())
    plan = lw.make_plan([5, 9, 2, 4], batching, times=[2, 0, 1, 1])
    outputs = [(int(number), place) for place, number in enumerate(np.concatenate(list(plan.batches())))]
    assert outputs == [(2, 0), (3, 1), (0, 2), (0, 3)]
    assert lw.restore_order(plan, [outputs]) == [(0, 2), None, (2, 0), (3, 1)]


def test_the_budget_counts_the_cost_that_is_given():
    plan = lw.evaluation_plan([2, 9, 4, 11, 5], lw.Budget(132), cost=lw.Quadratic(quadratic=1.0))
    assert sorted(plan.costs.tolist()) == [90.0, 90.0, 132.0]  # 3 x (5 + 5^2), 9 + 9^2, 11 + 11^2


@pytest.mark.parametrize("cut", ["fixed", "one", "budget_few", "budget_alone", "budget_drop", "dynamic", "rows"])
def test_outputs_come_back_in_order_and_averages_are_exact(cut):
    for number, case in enumerate(menu.draw_cases(cut)):
        if case.batching.chunks is not None or not len(case.lengths):  # the cut was chosen for chunks
            continue
        choices = {"cost": case.batching.cost, "world_size": 1 + number % 5}
        plan = lw.evaluation_plan(case.lengths, case.batching.cut, **choices)
        assert len({len(list(plan.batches(rank))) for rank in ranks(plan)}) == 1
        outputs = [
            [f"of {number}" if is_first else "again" for batch, is_first in taken for number in batch]
            for taken in (zip(plan.batches(rank), plan.first_taken[:, 0, rank], strict=True) for rank in ranks(plan))
        ]
        kept = np.setdiff1d(np.arange(len(case.lengths)), plan.dropped())
        expected = [f"of {number}" if number in kept else None for number in range(len(case.lengths))]
        assert lw.restore_order(plan, outputs) == expected
        weights, of_sequences = lw.evaluation_weights(plan), np.zeros(len(case.lengths))
        for rank in ranks(plan):
            for weight, batch in zip(weights[:, :, rank].reshape(-1), plan.batches(rank), strict=True):
                of_sequences[batch] += weight / len(batch)
        assert of_sequences[kept] == pytest.approx(1 / len(kept))

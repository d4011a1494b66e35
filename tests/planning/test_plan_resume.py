"""Resume: the batches that earlier runs left, on another number of ranks."""

import numpy as np
import pytest

import lengthwise as lw
from lengthwise._random import Key


@pytest.mark.parametrize(
    ("deal", "places"),
    [(lw.Balanced(), (4, 2)), (lw.Mixed(), (1, 8)), (lw.InTurn(), (8, 1)), (lw.RandomSteps(), (2, 4))],
)
def test_the_same_steps_follow_where_the_micro_batches_divide(deal, places):
    lengths = lw.example_lengths("long-tailed", count=4_000)
    batching = lw.Batching(cut=lw.Budget(30_000), order=lw.SemiSorted(0.2), deal=deal)
    whole = lw.make_plan(lengths, batching, seed=5, world_size=8)
    rest = lw.make_plan(lengths, batching, seed=5, world_size=places[0], micro_batches=places[1], after=[(8, 1, 6)])
    assert steps(rest) == steps(whole)[6:]
    again = lw.make_plan(lengths, batching, seed=5, world_size=8, after=[(8, 1, 6), (*places, 2 * places[1])])
    assert steps(again) == steps(whole)[8:]


def steps(plan):
    return [sorted(np.concatenate([plan.batch(number) for number in step.reshape(-1)])) for step in plan.grid]


def test_redealt_batches_keep_their_company_and_their_budget():
    lengths = lw.example_lengths("long-tailed", count=8_000)
    batching = lw.Batching(budget=20_000, padding=0.1)
    whole = lw.make_plan(lengths, batching, world_size=8)
    rest = lw.make_plan(lengths, batching, world_size=6, after=[(8, 1, 10)])
    batches = {tuple(sorted(whole.batch(number).tolist())) for number in range(len(whole.costs))}
    kept = [tuple(sorted(rest.batch(number).tolist())) in batches for number in range(len(rest.costs))]
    assert np.mean(kept) > 0.9  # but for those that a tail splits
    assert rest.costs.max() <= 20_000
    assert lw.measure(rest, lengths).straggler_waste < 0.05  # of similar cost again


LENGTHS = lw.example_lengths(count=2_000)


def test_steps_that_are_dealt_again_mix_lengths_where_they_were_random():
    """A step of 6 sorted batches takes one of every length: its mean varies little, where 6 neighbours' varies most."""
    batching = lw.Batching(budget=20_000, deal=lw.RandomSteps())
    rest = [lw.make_plan(LENGTHS, batching, epoch=epoch, world_size=6, after=[(8, 1, 3)]) for epoch in range(4)]
    assert lw.measure(rest, LENGTHS).step_length_variance < 4


@pytest.mark.parametrize(
    ("deal", "after", "places", "most"),
    [
        (lw.Portions(), (), (4, 1), 0.15),
        (lw.Portions(), [(4, 1, 10)], (6, 1), 0.06),  # without a sort by cost, ranks wait 11 %
        (lw.Mixed(), [(2, 8, 16)], (4, 4), 0.1),  # the same steps, shared out to other ranks: else they wait 14 %
    ],
)
def test_ranks_wait_little_for_each_other_in_steps_that_are_shared_out_anew(deal, after, places, most):
    batching = lw.Batching(cut=lw.FixedSize(8), order=lw.Shuffled(), deal=deal)
    plan = lw.make_plan(LENGTHS, batching, world_size=places[0], micro_batches=places[1], after=after)
    assert lw.measure(plan, LENGTHS).straggler_waste < most


def test_a_tail_that_repeats_repeats_in_the_rest_too():
    batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), deal=lw.Mixed(tail="repeat"))
    rest = lw.make_plan(range(1, 11), batching, world_size=3, after=[(1, 1, 1)])
    # Four of five batches are left, for six places: the two cheapest stand twice.
    assert (rest.batch_sizes.tolist(), rest.steps) == ([2, 2, 2, 2], 2)
    assert rest.repeated().tolist() == sorted(rest.sequences.tolist())[:4]


def test_halves_of_the_last_batch_are_of_the_last_bucket():
    lengths, order = [*range(1, 7), *range(11, 17), *range(21, 29)], lw.Bucketed(edges=(9, 19, 29))
    batching = lw.Batching(cut=lw.FixedSize(8), order=order, arrange=lw.ShortestFirst())
    rest = lw.make_plan(lengths, batching, world_size=3, after=[(1, 1, 1)])
    assert sorted(rest.batch_sizes.tolist()) == [4, 4, 6]


def test_a_batch_that_stood_twice_and_was_delivered_weighs_nothing():
    # Three batches on two ranks, the cheapest twice: [[2, 2], [0, 1]] or so.
    batching = lw.Batching(cut=lw.FixedSize(1), order=lw.Sorted(), deal=lw.InTurn(tail="repeat"), arrange=lw.InOrder())
    lengths = [3, 4, 5]
    whole = lw.make_plan(lengths, batching, world_size=2)
    assert whole.grid.tolist() == [[[0, 1]], [[2, 0]]]
    rest = lw.make_plan(lengths, batching, world_size=1, micro_batches=2, after=[(2, 1, 1)])
    assert sorted(number for batch in rest.batches() for number in batch) == [0, 2]
    weights = lw.loss_scales(rest)
    of_repeated = [rest.batch(int(number)).tolist() == [0] for number in rest.grid.reshape(-1)]
    assert weights.reshape(-1)[of_repeated].tolist() == [0.0]
    assert weights.sum() == 1.0


def test_a_batch_that_stood_twice_is_not_taken_again_two_runs_later():
    """Two ranks take two of three sequences. Then one rank takes the third, before one of those again."""
    batching = lw.Batching(order=lw.Shuffled(), cut=lw.FixedSize(1), deal=lw.Mixed(tail="repeat"))
    for epoch in range(8):
        plan = lw.make_plan([3, 4, 5], batching, epoch=epoch, world_size=4, after=[(2, 1, 1), (1, 2, 1)])
        assert plan.sequences.tolist() == np.setdiff1d(np.arange(3), plan.delivered).tolist()


def test_the_rest_is_priced_with_filled_rows_too():
    batching = lw.Batching(cut=lw.Budget(240, count_multiple_of=8), order=lw.Sorted())
    rest = lw.make_plan([10] * 72, batching, after=[(1, 1, 1)], world_size=3)
    assert sorted(zip(rest.batch_sizes.tolist(), rest.costs.tolist(), strict=True)) == [(12, 160), (12, 160), (24, 240)]


def test_nothing_may_be_left():
    batching = lw.Batching(cut=lw.FixedSize(2))
    rest = lw.make_plan([1, 2, 3, 4], batching, world_size=3, after=[(1, 1, 2)])
    assert rest.grid.shape == (0, 1, 3)
    assert len(rest) == 0
    assert rest.delivered.tolist() == [0, 1, 2, 3]
    assert not len(rest.dropped())


def test_an_epoch_without_a_step_names_the_step_of_the_ranks_that_began_it():
    batching = lw.Batching(cut=lw.FixedSize(1), deal=lw.Balanced(tail="drop"))
    with pytest.raises(ValueError, match=r"A step takes 4 batches, but there are 3\."):
        lw.make_plan([5, 6, 7], batching, world_size=2, after=[(4, 1, 0)])


def test_every_run_of_an_epoch_draws_by_keys_of_its_own(monkeypatch):
    drawn, words = [], Key.words
    monkeypatch.setattr(Key, "words", lambda key, count: drawn.append((key.stage, key.lane)) or words(key, count))
    batching = lw.Batching(cut=lw.FixedSize(1), deal=lw.Mixed())
    lw.make_plan(np.arange(1, 41), batching, world_size=5, after=[(2, 1, 3), (3, 1, 2), (4, 1, 1)])
    lanes = [lane for stage, lane in drawn if stage == "rest"]
    assert len(lanes) == len(set(lanes)) >= 3

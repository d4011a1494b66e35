"""Settled: every epoch of a run has the same number of steps, and its batches are full."""

from dataclasses import replace

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.choices.cut import OversizeError
from lengthwise.choices.deal import has_equal_epochs
from lengthwise.planning import epoch as epochs
from lengthwise.planning import settle
from lengthwise.planning.settle import Recent

LONG_TAILED = lw.example_lengths()


def steps_of(lengths, batching, epochs, **which):
    return {lw.make_plan(lengths, batching, epoch=epoch, **which).steps for epoch in epochs}


@pytest.mark.parametrize("ranks", [1, 8, 1_024])
def test_batches_are_as_full_as_the_budget_and_the_ranks_allow(ranks):
    batchings = {
        "open": lw.Batching(budget=20_000),
        "random steps": lw.Batching(budget=20_000, deal=lw.RandomSteps()),
        "strata": lw.Batching(budget=20_000, order=lw.MaxEntropy(padding=0.1)),
        "random": lw.Batching(budget=20_000, order=lw.Shuffled()),
        "sorted": lw.Batching(budget=20_000, order=lw.Sorted()),
        "buckets": lw.Batching(budget=20_000, order=lw.Bucketed(buckets=8)),
        "rows": lw.Batching(cut=lw.Rows(8_192, rows=2)),
    }
    for name, batching in batchings.items():
        plans = [lw.make_plan(LONG_TAILED, batching, epoch=epoch, world_size=ranks) for epoch in range(5)]
        assert len({plan.steps for plan in plans}) == 1, name
        # As many full batches as one rank has fill so many steps, and no more than a twentieth is left to chance.
        deal = lw.Batching.from_json(plans[0].batching).deal
        deal = lw.Balanced() if isinstance(deal, lw.RandomSteps) else deal
        alone = lw.make_plan(LONG_TAILED, replace(batching, deal=deal))
        assert plans[0].steps <= max(1, np.ceil(1.05 * len(alone.costs) / ranks)), name
        if ranks == 1:
            assert np.mean([plan.costs.mean() / plan.max_cost for plan in plans]) > (0.85 if "random" in name else 0.9)


@pytest.mark.parametrize("tried", [2**21, 1])
def test_an_epoch_that_needs_more_steps_is_drawn_again(tried, monkeypatch):
    monkeypatch.setattr(settle, "_TRIED", tried)  # so that eight epochs are tried, or one
    monkeypatch.setattr(settle, "_remembered", Recent(most=16))
    lengths = np.random.default_rng(3).lognormal(4, 1.0, 400).astype(np.int64) + 1
    batching = lw.Batching(budget=3_000, order=lw.Shuffled())
    (steps,) = steps_of(lengths, batching, range(40))
    # What the order of the first draw needs, of as many epochs: some need a batch more than the run has.
    keys = [lw.Key(seed=0, epoch=epoch, stage="order") for epoch in range(40)]
    orders = [lengths[lw.Shuffled()(lengths, key).sequences][:, None] for key in keys]
    options = {"cost": lw.Padded(), "longest": lengths.max(keepdims=True)}
    alone = [len(lw.Budget(3_000)(order, np.empty(0, np.int64), **options).offsets) - 1 for order in orders]
    assert max(alone) > steps
    assert np.mean(np.array(alone) > steps) < 0.3


def test_copies_of_other_sequences_in_every_epoch_fill_as_many_steps():
    lengths = np.random.default_rng(5).lognormal(4, 0.8, 3_000).astype(np.int64) + 1
    times = np.where(np.arange(3_000) % 3 == 0, 0.4, 1.3)
    for batching in (lw.Batching(budget=5_000), lw.Batching(budget=5_000, order=lw.Sorted())):
        assert len(steps_of(lengths, batching, range(0, 200, 20), times=times, world_size=4)) == 1
    # Of these few, epoch 39 needs a step more than the trial epochs.
    batching, times = lw.Batching(budget=500, order=lw.Sorted()), np.linspace(0.3, 1.7, 40)
    lengths = np.random.default_rng(5).lognormal(4, 0.8, 40).astype(np.int64) + 1
    assert len(steps_of(lengths, batching, (0, 39), times=times)) == 1


def test_epochs_of_copies_have_a_step_in_reserve_at_most():
    chance = np.random.default_rng(2)
    lengths, times = chance.lognormal(5, 0.6, 2_000).astype(np.int64) + 1, chance.random(2_000) * 2
    budget = max(float(lengths.max()), 16 * lengths.mean())
    for tail, most_dropped in (("split", 0.0), ("drop", 1 / 9)):
        batching = lw.Batching(budget=budget, deal=lw.RandomSteps(tail=tail))
        plans = [lw.make_plan(lengths, batching, world_size=16, times=times, epoch=epoch) for epoch in range(12)]
        assert {plan.steps for plan in plans} == {10 if tail == "split" else 8}  # they fill 8.8 to 9.3
        assert np.mean([len(plan.dropped()) / plan.count for plan in plans]) <= most_dropped


@pytest.mark.parametrize("choices", [{"budget": 800, "order": lw.Sorted()}, {"cut": lw.Rows(800)}])
def test_a_long_sequence_that_few_epochs_take_has_its_place_in_all(choices):
    options = {"times": [1.0] * 80 + [0.02], "seed": 8}
    assert steps_of([10] * 80 + [800], lw.Batching(**choices), range(100), **options) == {2}


@pytest.mark.parametrize("choices", [{}, {"padding": 0.1, "deal": lw.Mixed()}], ids=["open", "given"])
def test_the_sequence_that_is_over_the_budget_is_named_whatever_was_tried(choices):
    lengths = np.full(400_000, 10)
    lengths[123_456] = 1_000
    few, seldom = [5, 6, 7, 900, 8, 4, 3, 2], [1, 1, 1, 0.001, 1, 1, 2, 1]
    for many, budget, times, sequence in ((lengths, 500, None, 123_456), (few, 50, seldom, 3), ([900] * 3, 50, 0.1, 0)):
        with pytest.raises(OversizeError) as caught:
            lw.make_plan(many, lw.Batching(budget=budget, **choices), times=times)
        assert many[caught.value.sequence] == many[sequence]


def test_batches_of_a_fixed_size_stay_full_if_all_others_are_dropped():
    batching = lw.Batching(cut=lw.FixedSize(8, drop_incomplete=True), deal=lw.InTurn(tail="repeat"))
    for seed in range(30):
        chance = np.random.default_rng(seed)
        lengths, times = chance.integers(1, 99, 17), chance.random(17) * 2
        assert set(lw.make_plan(lengths, batching, times=times).batch_sizes.tolist()) == {8}


def test_no_batch_of_a_group_takes_more_than_a_fixed_size():
    chance = np.random.default_rng(0)
    lengths, groups = chance.integers(90, 110, 4_000), chance.choice(4, 4_000, p=[0.94, 0.02, 0.02, 0.02])
    batching = lw.Batching(cut=lw.FixedSize(16), deal=lw.RandomSteps())
    plan = lw.make_plan(lengths, batching, world_size=4, groups=groups)
    assert plan.batch_sizes.max() == 16
    assert all(len(set(groups[plan.batch(number)])) == 1 for number in range(len(plan.costs)))


def test_a_rule_that_overshoots_and_a_cut_of_the_users_promise_no_number():
    assert not has_equal_epochs(lw.DynamicSize(4, rule="paper"))
    assert has_equal_epochs(lw.DynamicSize(4))
    assert has_equal_epochs(lw.Rows(10))

    class Own(lw.Budget):
        pass

    assert not has_equal_epochs(Own(10))


# The first draw of this epoch needs another number of steps than the run has; it is drawn again.
REDRAWN = {  # the cut, the tail, how many sequences, ranks, the epoch
    "steps": (lw.Budget(2_000), "split", 33, 2, 2),
    "steps that drop": (lw.Budget(2_000), "drop", 45, 2, 8),
    "rows": (lw.Rows(1_000, pool=1), "split", 80, 1, 10),
    "rows that drop": (lw.Rows(1_000, pool=1), "drop", 60, 1, 16),
}


@pytest.mark.parametrize(("cut", "tail", "count", "ranks", "epoch"), REDRAWN.values(), ids=REDRAWN)
def test_random_steps_are_drawn_again_too(cut, tail, count, ranks, epoch, monkeypatch):
    lengths = np.random.default_rng(count).lognormal(5, 0.8, count).astype(int).clip(1, 1_000)
    batching = lw.Batching(cut=cut, order=lw.Shuffled(), deal=lw.RandomSteps(tail=tail))
    assert len(steps_of(lengths, batching, (0, epoch), world_size=ranks)) == 1
    attempts, cut_portions = [], epochs.cut_portions
    monkeypatch.setattr(epochs, "cut_portions", lambda *given, **how: attempts.append(1) or cut_portions(*given, **how))
    lw.make_plan(lengths, batching, epoch=epoch, world_size=ranks)
    assert len(attempts) > 1


# The small cache of what is settled: it keeps the most recent results, for several threads at a time.


def test_any_result_is_kept_but_no_error():
    cache, calls = Recent(most=2), []
    for _ in range(3):
        assert cache.get("nothing", lambda: calls.append(1)) is None
        with pytest.raises(ZeroDivisionError):
            cache.get("error", lambda: 1 // 0)
    assert calls == [1]
    assert ("nothing" in cache, "error" in cache) == (True, False)
    cache.clear()
    assert "nothing" not in cache


class Interrupted:
    """A name: where it is looked up `after` more times, another thread keeps two other results."""

    def __init__(self, cache):
        self.cache, self.after = cache, 0

    def __hash__(self):
        self.after -= 1
        if self.after == 0:
            for other in ("first", "second"):
                self.cache.get(other, lambda: 0)
        return 1


@pytest.mark.parametrize("after", [1, 2])
def test_another_thread_may_make_room_at_any_time(after):
    cache = Recent(most=2)
    name = Interrupted(cache)
    assert [cache.get(each, lambda: 5) for each in (name, "before")] == [5, 5]
    name.after = after
    assert cache.get(name, lambda: 5) == 5
    assert name.after <= 0  # it was interrupted
    assert cache.get("last", lambda: 6) == 6
    assert sum(each in cache for each in (name, "before", "first", "second", "last")) == 2

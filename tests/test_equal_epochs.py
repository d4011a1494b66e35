"""Every epoch of a run has the same number of steps, whatever is chosen, and its batches are as full as before."""

import random
from dataclasses import replace

import numpy as np
import pytest

import lengthwise as lw
import menu
from lengthwise.planning.fit import has_equal_epochs

EPOCHS = 12
LONG_TAILED = lw.example_lengths()
SETS = {
    "even": lambda chance, count: chance.integers(10, 400, count),
    "log-normal": lambda chance, count: np.clip(chance.lognormal(4, 0.9, count), 1, 3_000).astype(np.int64),
    "bimodal": lambda chance, count: np.where(chance.random(count) < 0.3, 900, 20) + chance.integers(0, 9, count),
    "equal": lambda _, count: np.full(count, 50),
    "one giant": lambda _, count: np.append(np.full(count - 1, 30), 2_900),
}


def steps_of(lengths, batching, epochs, **which):
    return {lw.make_plan(lengths, batching, epoch=epoch, **which).steps for epoch in epochs}


@pytest.mark.parametrize("lengths", SETS)
@pytest.mark.parametrize("cut", [name for name, cut in menu.cuts(1, 1).items() if has_equal_epochs(cut)])
def test_every_epoch_has_as_many_steps_under_every_cut(cut, lengths):
    chance = random.Random(f"{cut} {lengths}")
    for _ in range(8):
        count = chance.choice([1, 2, 7, 60, 300])
        sizes = SETS[lengths](np.random.default_rng(chance.randint(0, 99)), count)
        chosen = menu.cuts(*(max(times * float(sizes.max()), 6_100.0) for times in (6, 2)))[
            cut
        ]  # edges are up to 6,000
        order = menu.suit_order(menu.ORDERS[chance.choice(list(menu.ORDERS))], chosen)
        deal = menu.suit(menu.DEALS[chance.choice(list(menu.DEALS))], chosen, order=order)
        batching = lw.Batching(cut=chosen, order=order, deal=deal)
        which = {"world_size": chance.choice([1, 2, 3, 8, 64]), "micro_batches": chance.choice([1, 2])}
        try:
            assert len(steps_of(sizes, batching, range(EPOCHS), **which)) == 1
        except ValueError as error:  # all is dropped, in every epoch
            if not menu.may_drop(order, chosen, deal) or not str(error).startswith("`steps` must be at least 1"):
                raise


@pytest.mark.parametrize("ranks", [1, 8, 100, 1_024])
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
        plans = [lw.make_plan(LONG_TAILED, batching, epoch=epoch, world_size=ranks) for epoch in range(EPOCHS)]
        assert len({plan.steps for plan in plans}) == 1, name
        # As many full batches as one rank has fill so many steps, and no more than a twentieth is left to chance.
        alone = lw.make_plan(LONG_TAILED, replace(batching, deal=plan_deal(plans[0])))
        assert plans[0].steps <= max(1, np.ceil(1.05 * len(alone.costs) / ranks)), name
        if ranks == 1:
            assert np.mean([plan.costs.mean() / plan.max_cost for plan in plans]) > (0.85 if "random" in name else 0.9)


def plan_deal(plan):
    deal = lw.Batching.from_json(plan.batching).deal
    return lw.Balanced() if isinstance(deal, lw.RandomSteps) else deal


def test_an_epoch_that_needs_more_is_drawn_again_the_same_on_every_rank():
    lengths = np.random.default_rng(3).lognormal(4, 1.0, 400).astype(np.int64) + 1
    batching = lw.Batching(budget=3_000, order=lw.Shuffled())
    (steps,) = steps_of(lengths, batching, range(60))
    again = lw.make_plan(lengths, batching, epoch=7)
    assert again.fingerprint() == lw.make_plan(lengths, batching, epoch=7).fingerprint()
    # What the order of the first draw needs, of as many epochs: some need a batch more than the run has.
    alone = [
        len(
            lw.Budget(3_000)(
                lengths[lw.Shuffled()(lengths, key_of(epoch)).sequences][:, None],
                NONE,
                cost=lw.Padded(),
                longest=lengths.max(keepdims=True),
            ).offsets
        )
        - 1
        for epoch in range(60)
    ]
    assert max(alone) > steps
    assert np.mean(np.array(alone) > steps) < 0.3


NONE = np.empty(0, np.int64)


def key_of(epoch):
    return lw.Key(seed=0, epoch=epoch, stage="order")


def test_copies_of_other_sequences_in_every_epoch_fill_as_many_steps():
    lengths = np.random.default_rng(5).lognormal(4, 0.8, 3_000).astype(np.int64) + 1
    times = np.where(np.arange(3_000) % 3 == 0, 0.4, 1.3)
    for batching in (lw.Batching(budget=5_000), lw.Batching(budget=5_000, order=lw.Sorted())):
        assert len(steps_of(lengths, batching, range(0, 200, 5), times=times, world_size=4)) == 1


def test_more_than_a_million_lengths_are_counted_by_a_sample():
    lengths = np.random.default_rng(5).lognormal(5, 0.7, 600_000).astype(np.int64) + 1
    batching = lw.Batching(budget=40_000)
    plans = [lw.make_plan(lengths, batching, epoch=epoch, world_size=8) for epoch in range(3)]
    assert len({plan.steps for plan in plans}) == 1
    assert min(plan.costs.mean() / plan.max_cost for plan in plans) > 0.95


def test_what_other_rules_say_alone_is_not_promised():
    assert not has_equal_epochs(lw.DynamicSize(4, rule="paper"))
    assert has_equal_epochs(lw.DynamicSize(4))
    assert has_equal_epochs(lw.Rows(10))

    class Own(lw.Budget):
        pass

    assert not has_equal_epochs(Own(10))

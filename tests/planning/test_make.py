"""`make_plan`: the same plan from the same inputs, another one for every seed and epoch."""

import random

import numpy as np
import pytest

import lengthwise as lw
import menu
from lengthwise._random import Key

LENGTHS = lw.example_lengths(count=300)


def test_every_portion_draws_by_keys_of_its_own(monkeypatch):
    """One that drops, too: of equal portions it would leave out the batches at the same places."""

    class Dropping(lw.Portions):
        tail = "drop"

    drawn, words = [], Key.words
    monkeypatch.setattr(Key, "words", lambda key, count: drawn.append((key.stage, key.lane)) or words(key, count))
    batching = lw.Batching(cut=lw.FixedSize(4), order=lw.SemiSorted(), deal=Dropping())
    lw.make_plan(np.arange(1, 61), batching, world_size=3, micro_batches=2)
    for stage in ("order", "tail"):  # the lanes of trial epochs begin at 2**40
        assert sorted(lane for each, lane in drawn if each == stage and lane < 2**40) == [0, 1, 2]


@pytest.mark.parametrize(
    ("lengths", "cut", "ranks", "micro_batches", "repeats"),
    [([5, 6, 7, 8, 9], lw.FixedSize(1), 2, 1, 1), ([900] * 1_001, lw.Budget(1_000), 8, 4, 23)],
)
def test_places_that_are_left_over_repeat_the_cheapest_at_no_weight(lengths, cut, ranks, micro_batches, repeats):
    plan = lw.make_plan(lengths, lw.Batching(cut=cut), world_size=ranks, micro_batches=micro_batches)
    assert (plan.batch_sizes == 1).all()
    assert plan.dropped().size == 0
    assert plan.repeated().size == repeats
    assert {lengths[number] for number in plan.repeated()} == {min(lengths)}
    assert (lw.loss_scales(plan) == 0).sum() == repeats


@pytest.mark.parametrize("order", [*menu.ORDERS.values(), lw.SemiSorted(0), menu.OF_PAIRS["edges"]], ids=repr)
def test_every_epoch_and_every_seed_has_batches_of_its_own(order):
    lengths = np.minimum(LENGTHS, 5_000)
    lengths = np.stack([lengths, lengths[::-1]], axis=1) if order is menu.OF_PAIRS["edges"] else lengths
    keys = [(0, 0), (0, 1), (1, 0), (2**64 - 1, 0), (0, 2**64 - 1)]  # `seed + epoch` would make two of them alike
    batching = lw.Batching(order=order, cut=lw.FixedSize(3))
    plans = [lw.make_plan(lengths, batching, seed=seed, epoch=epoch) for seed, epoch in keys]
    batches = {frozenset(frozenset(batch.tolist()) for batch in plan.batches()) for plan in plans}
    assert len(batches) == len(keys)


@pytest.mark.parametrize("order", [lw.Sorted(), lw.Sorted(descending=True), lw.SemiSorted(0)], ids=repr)
def test_equal_lengths_are_in_another_order_in_every_epoch_in_any_unit(order):
    batching = lw.Batching(order=order, cut=lw.FixedSize(3))
    for unit in (1, 2**24, 2**40):
        plans = [lw.make_plan(np.array([1, 2] * 30) * unit, batching, epoch=epoch) for epoch in (0, 1)]
        batches, others = ({frozenset(batch.tolist()) for batch in plan.batches()} for plan in plans)
        assert batches != others


def test_no_global_generator_is_read_or_written():
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), str(np.random.get_state())
    plan = lw.make_plan(LENGTHS, lw.Batching(budget=20_000))
    assert (random.getstate(), str(np.random.get_state())) == before
    random.seed(2)
    np.random.seed(2)
    assert lw.make_plan(LENGTHS, lw.Batching(budget=20_000)).fingerprint() == plan.fingerprint()


def powered(power):
    """A cost of the user's own. A batching knows only its name, which is the same for every power."""

    def cost(counts, padded_lengths):
        return counts * padded_lengths[:, 0] ** power

    return cost


PADDED = {"budget": 80_000, "order": lw.MaxEntropy(padding=0.1)}
TELL_APART = {  # plans of the same lengths that differ in one thing: choices, and other arguments of `make_plan`
    "groups": (PADDED, [{"groups": None}, {"groups": np.arange(300) % 3}, {"groups": np.arange(300) % 2}]),
    "ranks": (PADDED, [{"world_size": 1}, {"world_size": 16}, {"world_size": 40}]),
    "open choices": ({"budget": 160_000, "padding": 0.08}, [{"micro_batches": count} for count in (4, 2, 32)]),
    "costs": (PADDED | {"budget": 300_000}, [{"cost": powered(1.0)}, {"cost": powered(1.2)}]),
    "times": (PADDED, [{"times": None}, {"times": 0.5}, {"times": 1.5}, {"times": 0.5, "seed": 1}]),
}


@pytest.mark.parametrize(("choices", "cases"), TELL_APART.values(), ids=TELL_APART)
def test_no_plan_depends_on_the_plans_before_it(choices, cases):
    """Fits are remembered, each for its own case. Plans of other lengths make them forgotten."""

    def fingerprints(order):
        for number in range(20):
            lw.make_plan([5, 9 + number], lw.Batching(cut=lw.FixedSize(1)))
        for options in cases[::order]:
            own = {name: options[name] for name in {"cost"} & options.keys()}
            others = {name: options[name] for name in options.keys() - own}
            yield lw.make_plan(LENGTHS, lw.Batching(**choices, **own), **others).fingerprint()

    rising, falling = list(fingerprints(1)), list(fingerprints(-1))
    assert rising == falling[::-1]
    assert len(set(rising)) == len(cases)


UNITS = ("shuffled", "sorted", "falling", "semi_sorted", "alternated", "windowed", "bucketed", "optimal", "uniform")


@pytest.mark.parametrize("order", UNITS)
def test_the_unit_of_lengths_changes_no_plan(order):
    """In a unit 2**34 times as fine no length is below 2**31, and the frames of a batch are beyond 2**40."""
    lengths, unit = lw.example_lengths("speech", count=150), 2**34
    for name, (cut, fine_cut) in zip(
        ("RandomSteps_split", "portions", "Balanced_drop"),
        ((lw.Budget(3_000), lw.Budget(3_000 * unit)), 2 * (lw.FixedSize(3),), 2 * (lw.DynamicSize(2),)),
        strict=True,
    ):
        choices = {"order": menu.ORDERS[order], "deal": menu.DEALS[name]}
        small = lw.make_plan(lengths, lw.Batching(cut=cut, **choices), world_size=3, micro_batches=2)
        large = lw.make_plan(lengths * unit, lw.Batching(cut=fine_cut, **choices), world_size=3, micro_batches=2)
        for array in ("sequences", "offsets", "grid"):
            assert np.array_equal(getattr(small, array), getattr(large, array)), (cut, array)
        assert np.array_equal(small.padded_lengths * unit, large.padded_lengths)
        assert np.array_equal(small.costs * unit, large.costs)


@pytest.mark.parametrize("cut", menu.cuts(1_000.0, 250.0).values(), ids=repr)
def test_a_plan_without_a_batch_is_refused(cut):
    batching = lw.Batching(order=lw.Bucketed(edges=(20, 90), longer="drop"), cut=cut, deal=lw.Balanced())
    with pytest.raises(ValueError, match=r"^`steps` must be at least 1, but is 0\. No batch is left\. "):
        lw.make_plan([100, 200, 100], batching, world_size=2)

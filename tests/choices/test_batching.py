"""What a batching is made of: equal choices are the same, however their numbers were given."""

import copy
import pickle
from dataclasses import is_dataclass, replace

import numpy as np
import pytest

import lengthwise as lw
import menu
from lengthwise.choices import names as tags

LENGTHS = lw.example_lengths("long-tailed", count=3_000)


def test_numbers_of_numpy_are_those_of_python():
    ours = lw.Batching(
        cut=lw.Budget(np.float32(20_000), max_sequences=np.int64(64)),
        order=lw.Bucketed(buckets=np.int64(5)),
        arrange=lw.CostliestFirst(steps=np.int32(2)),
        cost=lw.Quadratic(linear=np.float64(1), quadratic=np.float32(0)),
        chunks=lw.Chunks(np.int64(400), step=np.int16(200)),
    )
    theirs = lw.Batching(
        cut=lw.Budget(20_000, max_sequences=64),
        order=lw.Bucketed(buckets=5),
        arrange=lw.CostliestFirst(steps=2),
        cost=lw.Quadratic(linear=1, quadratic=0),
        chunks=lw.Chunks(400, step=200),
    )
    assert ours == theirs
    assert ours.to_json() == theirs.to_json()
    assert lw.make_plan(LENGTHS, ours).fingerprint() == lw.make_plan(LENGTHS, theirs).fingerprint()


def test_portions_share_the_edges_of_their_buckets():
    batching = lw.Batching(cut=lw.FixedSize(8), order=lw.Bucketed(buckets=6, pad_to_edge=True), deal=lw.Portions())
    met = {
        int(length)
        for epoch in range(3)
        for length in lw.make_plan(LENGTHS, batching, epoch=epoch, world_size=4).padded_lengths[:, 0]
    }
    assert sorted(met) == lw.optimal_edges(LENGTHS, 6).tolist()


EVERY_CHOICE = [
    *({"cut": cut} for cut in menu.cuts(100.0, 50.0).values()),
    *({"order": order} for order in menu.ORDERS.values()),
    *({"deal": deal, "cut": lw.FixedSize(2)} for deal in menu.DEALS.values()),
    *({"arrange": arrangement} for arrangement in menu.ARRANGEMENTS.values()),
    *({"cost": cost} for cost in (menu.COSTS["padded"], menu.COSTS["quadratic"])),
    *({"chunks": chunks} for chunks in menu.CHUNKS.values()),
    {"budget": 20_000, "padding": 0.25},
]


@pytest.mark.parametrize("given", EVERY_CHOICE, ids=repr)
def test_a_batching_says_what_it_was_given_and_its_copies_are_the_same(given):
    batching = lw.Batching(**{"budget": 90.0, **given} if "cut" not in given else given)
    assert {name: getattr(batching, name) for name in given} == given
    copies = [pickle.loads(pickle.dumps(batching)), copy.deepcopy(batching), replace(batching)]
    copies += [eval(repr(batching), vars(lw)), lw.Batching.from_json(batching.to_json())]
    assert set(copies) == {batching}
    assert {each.to_json() for each in copies} == {batching.to_json()}


def test_a_budget_leaves_order_and_deal_to_the_lengths_and_the_ranks():
    short, long = lw.Batching(budget=20_000, padding=0.1), lw.Batching(cut=lw.Budget(20_000), padding=0.1)
    assert short == long
    assert (short.budget, short.padding, short.order, short.deal) == (20_000, 0.1, None, None)
    assert repr(short) == repr(long) == "Batching(budget=20000.0, padding=0.1)"
    assert lw.Batching(cut=lw.DynamicSize(4)).order is None


def test_a_padding_beside_other_choices_is_that_of_the_order():
    strata = lw.Batching(budget=20_000, order=lw.MaxEntropy(padding=0.2))
    assert strata == lw.Batching(budget=20_000, padding=0.2, deal=lw.Stratified())
    assert (strata.padding, strata.deal) == (None, lw.Stratified())
    by_size = lw.Batching(cut=lw.FixedSize(4), padding=0.2)
    assert (by_size.budget, by_size.padding) == (None, None)
    assert (by_size.order, by_size.deal) == (lw.MaxEntropy(padding=0.2), lw.Balanced())


def test_a_plan_names_what_was_decided():
    default = lw.Batching(budget=20_000)
    plan = lw.make_plan(LENGTHS, default)
    strata = lw.Batching(budget=20_000, order=lw.MaxEntropy(padding=0.05), deal=lw.Stratified())
    assert lw.Batching.from_json(plan.batching) == strata
    assert plan.fingerprint() == lw.make_plan(LENGTHS, strata).fingerprint()
    assert lw.measure(plan, LENGTHS).padding_share == pytest.approx(0.05, abs=0.02)
    # A rank pads less than a tenth with steps of 64 batches: they are random. Of two it would pad more.
    in_steps = lw.Batching(budget=20_000, order=lw.Shuffled(), deal=lw.RandomSteps())
    long = lw.example_lengths()
    for batching, micro_batches, decided in ((default, 64, in_steps), (default, 2, strata)):
        plan = lw.make_plan(long, batching, micro_batches=micro_batches)
        assert lw.Batching.from_json(plan.batching) == decided
    # The same steps pad more than a hundredth.
    plan = lw.make_plan(long, replace(default, padding=0.01), micro_batches=64)
    assert lw.Batching.from_json(plan.batching) == replace(strata, padding=0.01)


def test_the_default_order_is_for_pairs_and_for_chunks_too():
    target = lw.example_lengths("speech", count=len(LENGTHS))
    pairs = np.stack([LENGTHS, 1 + LENGTHS // 4], axis=1)  # alike: what fits one fits the other
    assert lw.measure(lw.make_plan(pairs, lw.Batching(budget=20_000)), pairs).padding_share < 0.13
    unlike = np.stack([LENGTHS, target], axis=1)
    plans = [lw.make_plan(unlike, lw.Batching(order=order, budget=20_000)) for order in (lw.Sorted(), lw.Shuffled())]
    least, most = (lw.measure(plan, unlike).padding_share for plan in plans)
    assert least <= lw.measure(lw.make_plan(unlike, lw.Batching(budget=20_000)), unlike).padding_share < most
    chunks = lw.make_plan(LENGTHS, lw.Batching(budget=5_000, chunks=lw.Chunks(100)))
    assert lw.measure(chunks, LENGTHS).padding_share < 0.12


def test_one_thing_is_replaced_and_the_rest_stays():
    batching = lw.Batching(cut=lw.Budget(20_000, oversize="alone"), padding=0.1, deal=lw.Mixed())
    assert replace(batching, budget=9_000) == lw.Batching(
        cut=lw.Budget(9_000, oversize="alone"), padding=0.1, deal=lw.Mixed()
    )
    assert replace(batching, padding=0.2).order == lw.MaxEntropy(padding=0.2)
    assert replace(batching, cut=lw.FixedSize(16)).budget is None
    assert replace(batching, order=lw.Sorted()).padding is None
    with pytest.raises(ValueError, match=r"^Batching takes one of `cut`, `budget`, but has"):
        replace(lw.Batching(cut=lw.FixedSize(16)), budget=9_000)
    with pytest.raises(ValueError, match=r"^Batching takes one of `order`, `padding`, but has"):
        replace(lw.Batching(budget=9, order=lw.Sorted()), padding=0.1)


def test_a_tag_is_the_verb_and_the_name_that_a_choice_had_first():
    tables = (menu.ARRANGEMENTS, menu.CHUNKS, menu.COSTS, menu.DEALS, menu.ORDERS, menu.cuts(900, 90))
    choices = [choice for table in tables for choice in table.values() if is_dataclass(choice)]
    assert {tags.tag_of(choice) for choice in choices} == set(tags.CLASSES)
    for tag, choice in tags.CLASSES.items():
        verb, name = tag.split(".")
        assert verb in ("order", "cut", "deal", "arrange", "cost", "chunk")
        assert choice is getattr(lw, name)

    class Mine(lw.MaxEntropy):
        pass

    assert tags.tag_of(Mine(padding=0.1)) is None  # what extends a choice has none

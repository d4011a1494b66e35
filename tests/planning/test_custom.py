"""Choices of the user: they are planned with as ours are, and what breaks a promise is one sentence."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

import lengthwise as lw
import menu
from lengthwise.choices.order import finds_noise

LENGTHS = np.array([5, 9, 2, 4, 7, 7, 3, 8])
FIXED = lw.FixedSize(2)


@dataclass(frozen=True)
class Wrapped:
    """A choice of ours as one of the user's: the same methods, another class."""

    choice: object

    def __call__(self, *given, **named):
        return self.choice(*given, **named)

    def __getattr__(self, name):
        if name == "choice" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.choice, name)


WRAPPED = {
    f"{stage}-{name}": {stage: choice}
    for stage, choices in (
        *(("order", menu.ORDERS), ("deal", menu.DEALS)),
        *(("arrange", menu.ARRANGEMENTS), ("cost", menu.COSTS)),
    )
    for name, choice in choices.items()
    if not (getattr(choice, "pad_to_edge", False) or isinstance(choice, lw.RandomSteps) or finds_noise(choice))
}


@pytest.mark.parametrize("choice", WRAPPED.values(), ids=WRAPPED)
def test_a_choice_of_the_users_plans_as_the_same_one_of_ours(choice):
    lengths, ((stage, ours),) = lw.example_lengths("speech", count=300), choice.items()
    for order in (lw.Bucketed(buckets=3), lw.MaxEntropy(scale=200.0)):
        choices = {"order": order, "cut": lw.Budget(30_000), "deal": lw.Balanced(tail="repeat"), **choice}
        world = {"seed": 3, "epoch": 2, "world_size": 2, "micro_batches": 2}
        batchings = [lw.Batching(**choices | {stage: each}) for each in (ours, Wrapped(ours))]
        plans = [lw.make_plan(lengths, batching, **world) for batching in batchings]
        for name in ("sequences", "offsets", "padded_lengths", "grid"):
            assert np.array_equal(*(getattr(plan, name) for plan in plans)), name


@pytest.mark.parametrize("cut", menu.cuts(6_000.0, 300.0).values(), ids=repr)
def test_a_cut_of_the_users_says_alone_which_batches_there_are(cut):
    lengths = np.unique(lw.example_lengths("speech", count=300))
    multiple = getattr(cut, "multiple_of", 1)
    needed = (-(-lengths // multiple) * multiple)[:, None]
    kept, offsets = cut(needed, np.empty(0, np.int64), cost=lw.Padded(), longest=needed.max(axis=0))
    batching = lw.Batching(order=lw.Sorted(), cut=Wrapped(cut), deal=lw.Balanced(tail="repeat"))
    plan = lw.make_plan(lengths, batching, world_size=2, micro_batches=2)
    assert plan.offsets.tolist() == offsets.tolist()
    assert plan.sequences.tolist() == (np.arange(len(lengths)) if kept is None else kept).tolist()


def always(value):
    return lambda *_, **__: value


class Gives:
    """A choice that gives the same whatever it is called with."""

    def __init__(self, value, **methods):
        self.value = value
        self.__dict__.update(methods)

    def __call__(self, *_, **__):
        return self.value


class GivesCuts(Gives):
    """A cut that gives the same cuts; of no budget, and with `batch_sizes` of 1."""

    max_cost = always(np.inf)
    batch_sizes = always(np.ones(3))


def plan_order(*given):
    return lw.make_plan(LENGTHS[:3], lw.Batching(order=Gives(lw.Ordered(*given)), cut=FIXED))


def plan_cut(given, order=None):
    return lw.make_plan(LENGTHS[:3], lw.Batching(order=order or lw.Sorted(), cut=GivesCuts(given)))


def plan_sized(sizes):
    cut = GivesCuts(lw.Cuts(np.arange(8), np.arange(9)), batch_sizes=always(sizes))
    return lw.make_plan(LENGTHS, lw.Batching(padding=0.1, cut=cut))


def plan_deal(portions=(range(8),), grid=(), tail="split"):
    deal = Gives(None, tail=tail, portions=always([np.array(each) for each in portions]), grid=always(np.array(grid)))
    return lw.make_plan(LENGTHS, lw.Batching(cut=FIXED, deal=deal), world_size=2)


def plan_arranged(given):
    return lw.make_plan(LENGTHS, lw.Batching(cut=FIXED, arrange=Gives(given)))


TWO_BUCKETS = lw.Bucketed(edges=(4, 9))  # 2 alone, then 5 and 9
FAULTS = {
    "lw.make_plan(LENGTHS, lw.Batching(order=Gives(3), cut=FIXED))": "`order` must be a choice that returns an",
    "plan_order([1, 1, 0])": "`sequences` must be different from each other, but is '1 in 2 places'. ",
    "plan_order([0, 1, 3])": "`sequences` must be numbers from 0 to 2, but is 3. ",
    "plan_order([0, 1, -1])": "`sequences` must be numbers from 0 to 2, but is -1. ",
    "plan_order([0.0, 1.0, 2.0])": "`sequences` must be an array of whole numbers, but is 'float64'. ",
    "plan_order([True, False, True])": "`sequences` must be an array of whole numbers, but is 'bool'. ",
    "plan_order([[0, 1, 2]])": "`sequences` must be an array of 1 dimension(s), but is (1, 3). ",
    "plan_order([0, 1, 2], [3])": "`boundaries` must be strictly rising within 1 to 2, but is [3]. ",
    "plan_order([0, 1, 2], [2, 1])": "`boundaries` must be strictly rising within 1 to 2, but is [2, 1]. ",
    "plan_order([0, 1, 2], [], [9, 9])": "`edges` must be of 3 sequences, but is 2. ",
    "plan_cut(([0], [0, 1]))": "`cut` must be a choice that returns Cuts, but is ([0], [0, 1]). ",
    "plan_cut(lw.Cuts([0, 1, 1], [0, 3]))": "`kept` must be different from each other, but is '1 in 2 places'. ",
    "plan_cut(lw.Cuts([0, 1, 2], [0, 2]))": "`offsets` must be from 0 to 3, but is [0, 2]. ",
    "plan_cut(lw.Cuts([0, 1, 2], [1, 3]))": "`offsets` must be from 0 to 3, but is [1, 3]. ",
    "plan_cut(lw.Cuts([0, 1, 2], [0, 1, 1, 3]))": "`offsets` must be strictly rising within 0 to 3, but",
    "plan_cut(lw.Cuts([0, 1, 2], []))": "`offsets` must be from 0 to 3, but is []. ",
    "plan_cut(lw.Cuts([0, 1, 2], [0, 3]), TWO_BUCKETS)": "`offsets` must be such that 1, where a bound",
    "plan_cut(lw.Cuts([2, 1, 0], [0, 1, 3]), TWO_BUCKETS)": "`kept` must be reordered only between boundaries, but",
    "plan_sized(np.zeros(1))": "`batch_sizes` must be 1 numbers of at least 1, but is array([0.]). ",
    "plan_deal(portions=[range(7)])": "`portions` must be of all 8 sequences, but is '7 of them'.",
    "plan_deal(portions=[[0], [1], [2]])": "`portions` must be a list of 1 or 2 arrays, but is [",
    "plan_deal(portions=[range(5), range(4, 8)])": "`portions` must be different from each other, but is '4 in 2 ",
    "plan_deal(grid=[[[0], [1]], [[2], [3]]])": "`grid` must be of shape (2, 1, 2), but is (2, 2, 1). ",
    "plan_deal(grid=[[[0, 1]], [[2, 2]]])": "`grid` must be an array that holds each batch as often as `numbers`",
    "plan_deal(tail='keep')": "`tail` must be one of split, repeat, drop, but is 'keep'. ",
    "plan_arranged([0, 1, 1, 2])": "`arrange` must be different from each other, but is '1 in 2 places'. ",
    "plan_arranged([0, 1, 3])": "`arrange` must be of all 4 steps, but is '3 of them'. ",
}


@pytest.mark.parametrize(("code", "sentence"), FAULTS.items(), ids=FAULTS)
def test_a_choice_that_breaks_its_promise_is_told_which(code, sentence):
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(sentence)}"):
        eval(code)


def test_whole_numbers_of_any_kind_will_do():
    mine = lw.Batching(order=Gives(lw.Ordered([2, 0, 1])), cut=lw.FixedSize(2), arrange=Gives(np.array([1, 0], "i2")))
    plan = lw.make_plan(LENGTHS[:3], mine)
    assert [batch.tolist() for batch in plan.batches()] == [[0, 1], [2]]
    assert plan.sequences.dtype == plan.offsets.dtype == plan.grid.dtype == np.int64


def test_an_arrangement_sees_the_costliest_batch_and_the_mean_length_of_each_step():
    def note(costs, lengths, _):
        seen.extend(zip(costs.tolist(), lengths.tolist(), strict=True))
        return np.arange(len(costs))

    seen = []
    lw.make_plan([5, 9, 2, 4], lw.Batching(cut=lw.FixedSize(1), arrange=note), world_size=2)
    assert sorted(seen) == [(4, 3), (9, 7)]


@pytest.mark.parametrize("deal", [lw.Mixed(), lw.RandomSteps()])
def test_what_an_order_gives_stays_its_own(deal):
    """Steps move the sequences within their array, and a plan keeps it and lets nobody write."""
    given = np.array([2, 0, 1, 7, 6, 5, 4, 3])
    batching = lw.Batching(order=Gives(lw.Ordered(given)), cut=FIXED, deal=deal)
    plan = lw.make_plan(LENGTHS, batching, world_size=2)
    before = plan.sequences.tolist()
    assert given.tolist() == [2, 0, 1, 7, 6, 5, 4, 3]
    given[:] = 0
    assert plan.sequences.tolist() == before


def test_a_cut_that_reorders_within_buckets_keeps_them_in_order():
    class Backwards:
        """The sequences of each bucket back to front, in batches of two."""

        def __call__(self, lengths, boundaries, **_):
            parts = np.split(np.arange(len(lengths)), boundaries)
            return lw.Cuts(np.concatenate([part[::-1] for part in parts]), np.arange(0, len(lengths) + 1, 2))

        max_cost = always(np.inf)
        batch_sizes = always(np.full(8, 2.0))

    lengths = np.arange(1, 41)
    order = lw.Bucketed(edges=(4, 30, 40))
    for epoch in range(2):
        plan = lw.make_plan(lengths, lw.Batching(order=order, cut=Backwards(), arrange=lw.ShortestFirst()), epoch=epoch)
        bucket = [np.searchsorted((4, 30), lengths[batch]).tolist() for batch in plan.batches()]
        assert bucket == [[0, 0]] * 2 + [[1, 1]] * 13 + [[2, 2]] * 5


def test_an_oversize_sequence_of_ones_own_cut_is_named():
    class Strict:
        def __call__(self, lengths, *_, **__):
            raise lw.OversizeError(5, 9.0, int(lengths[:, 0].argmax()))

        max_cost = always(5.0)
        batch_sizes = always(np.ones(8))

    with pytest.raises(lw.OversizeError, match=r"but is 5 at sequence 1\.") as told:
        lw.make_plan(LENGTHS, lw.Batching(order=lw.Sorted(), cut=Strict()))
    assert (told.value.sequence, told.value.position) == (1, 7)


def test_an_order_of_the_users_pads_each_length_of_pairs_to_an_edge():
    pairs = np.stack([lw.example_lengths(count=60), lw.example_lengths("speech", count=60)], axis=1)
    edges = -(-pairs // 10) * 10
    edges[:30] = 1  # too short: these are padded to their own length
    sequences = np.arange(60)
    batching = lw.Batching(order=Gives(lw.Ordered(sequences, edges=edges)), cut=lw.FixedSize(5))
    plan = lw.make_plan(pairs, batching, world_size=2)
    for number, padded in enumerate(plan.padded_lengths.tolist()):
        assert padded == np.maximum(pairs, edges)[plan.batch(number)].max(axis=0).tolist()
    batching = lw.Batching(order=Gives(lw.Ordered(sequences, edges=edges[:, 0])), cut=lw.FixedSize(5))
    with pytest.raises(ValueError, match=r"`edges` must be an array of 2 dimension\(s\), but is \(60,\)"):
        lw.make_plan(pairs, batching)

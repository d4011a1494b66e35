"""Choices of the user's own: they are planned with as ours are, and what breaks a promise is one sentence."""

from dataclasses import dataclass

import numpy as np
import pytest

import lengthwise as lw
import menu

LENGTHS = np.array([5, 9, 2, 4, 7, 7, 3, 8])
FIXED = lw.FixedSize(2)


@dataclass(frozen=True)
class Wrapped:
    """A choice of ours as a user's: the same methods, another class."""

    choice: object

    def __call__(self, *given, **named):
        return self.choice(*given, **named)

    def __getattr__(self, name):
        if name == "choice" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.choice, name)


def planned(batching, lengths=LENGTHS, **run):
    plan = lw.make_plan(lengths, batching, **run)
    return [plan.sequences.tolist(), plan.offsets.tolist(), plan.padded_lengths.tolist(), plan.grid.tolist()]


# Edges are for orders of this package; and only make_plan fits noise, by trials.
NOT_WRAPPED = {name for name, order in menu.ORDERS.items() if getattr(order, "pad_to_edge", False)}
NOT_WRAPPED |= {"entropy_padding", "entropy_mixing"}
CUTS = menu.cuts(6_000.0, 300.0)
WRAPPED = [
    *({"order": order} for name, order in menu.ORDERS.items() if name not in NOT_WRAPPED),
    *({"deal": deal} for deal in menu.DEALS.values() if not isinstance(deal, lw.RandomSteps)),
    *({"arrange": arrangement} for arrangement in menu.ARRANGEMENTS.values()),
    *({"cost": cost} for cost in menu.COSTS.values()),
]


def named(ours):
    return "".join(f"{verb}={getattr(choice, '__name__', choice)}" for verb, choice in ours.items())


@pytest.mark.parametrize("ours", WRAPPED, ids=named)
@pytest.mark.parametrize("order", [lw.Bucketed(buckets=3), lw.MaxEntropy(scale=200.0)], ids=["buckets", "entropy"])
def test_a_choice_of_the_users_plans_as_the_same_one_of_ours(ours, order):
    lengths = lw.example_lengths("speech", count=300)
    ((name, choice),) = ours.items()
    given = {"order": order, "cut": lw.Budget(30_000), "deal": lw.Balanced(tail="repeat"), **ours}
    given["order"] = menu.suit_order(given["order"], given["cut"])
    theirs = lw.Batching(**given | {name: Wrapped(choice)})
    run = {"seed": 3, "epoch": 2, "world_size": 2, "micro_batches": 2}
    assert planned(theirs, lengths, **run) == planned(lw.Batching(**given), lengths, **run)


@pytest.mark.parametrize("cut", CUTS.values(), ids=repr)
def test_a_cut_of_the_users_says_alone_which_batches_there_are(cut):
    lengths = np.unique(lw.example_lengths("speech", count=600))
    needed = menu.padded_to(lengths, cut)[:, None]
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


def order(*given):
    return lambda: lw.make_plan(LENGTHS[:3], lw.Batching(order=Gives(lw.Ordered(*given)), cut=FIXED))


def cut(given, *, order=None):
    mine = Gives(given, max_cost=always(np.inf), batch_sizes=always(np.ones(3)))
    return lambda: lw.make_plan(LENGTHS[:3], lw.Batching(order=order or lw.Sorted(), cut=mine))


def test_a_cut_that_keeps_all_as_they_come_need_not_list_them():
    plans = []
    for kept in (None, np.arange(8)):
        mine = Gives(lw.Cuts(kept, np.array([0, 3, 8])), max_cost=always(np.inf), batch_sizes=always(np.ones(3)))
        plans.append(lw.make_plan(LENGTHS, lw.Batching(order=lw.Sorted(), cut=mine)))
    assert plans[0].sequences.tolist() == plans[1].sequences.tolist()
    assert plans[0].offsets.tolist() == [0, 3, 8]


def sized(given):
    mine = Gives(lw.Cuts(np.arange(8), np.arange(9)), max_cost=always(np.inf), batch_sizes=always(given))
    return lambda: lw.make_plan(LENGTHS, lw.Batching(padding=0.1, cut=mine))


def deal(**given):
    methods = {"portions": [np.arange(8)], "grid": np.arange(4).reshape(2, 1, 2), "tail": "split", **given}
    called = {name: always(value) for name, value in methods.items() if name != "tail"}
    mine = Gives(None, tail=methods["tail"], **called)
    return lambda: lw.make_plan(LENGTHS, lw.Batching(cut=FIXED, deal=mine), world_size=2)


def arrange(given):
    return lambda: lw.make_plan(LENGTHS, lw.Batching(cut=FIXED, arrange=Gives(given)))


TWO_BUCKETS = lw.Bucketed(edges=(4, 9))  # 2 alone, then 5 and 9

FAULTS = {
    "a list for an order": (
        lambda: lw.make_plan(LENGTHS, lw.Batching(order=Gives([1, 0]), cut=FIXED)),
        "`order` must be a choice that returns an Ordered, but is [1, 0]. ",
    ),
    "a sequence twice": (order([1, 1, 0]), "`sequences` must be different from each other, but is '1, 2 times'. "),
    "no such sequence": (order([0, 1, 3]), "`sequences` must be numbers from 0 to 2, but is 3. "),
    "a sequence below 0": (order([0, 1, -1]), "`sequences` must be numbers from 0 to 2, but is -1. "),
    "fractions": (order([0.0, 1.0, 2.0]), "`sequences` must be an array of whole numbers, but is 'float64'. "),
    "a mask": (order([True, False, True]), "`sequences` must be an array of whole numbers, but is 'bool'. "),
    "rows": (order([[0, 1, 2]]), "`sequences` must be an array of 1 dimension(s), but is (1, 3). "),
    "a boundary at the end": (
        order([0, 1, 2], [3]),
        "`boundaries` must be strictly rising within 1 to 2, but is [3]. ",
    ),
    "boundaries that fall": (
        order([0, 1, 2], [2, 1]),
        "`boundaries` must be strictly rising within 1 to 2, but is [2, 1]. ",
    ),
    "too few edges": (order([0, 1, 2], [], [9, 9]), "`edges` must be of 3 sequences, but is 2. "),
    "a pair for cuts": (cut(([0], [0, 1])), "`cut` must be a choice that returns Cuts, but is ([0], [0, 1]). "),
    "a position twice": (
        cut(lw.Cuts([0, 1, 1], [0, 3])),
        "`kept` must be different from each other, but is '1, 2 times'. ",
    ),
    "offsets that stop early": (cut(lw.Cuts([0, 1, 2], [0, 2])), "`offsets` must be from 0 to 3, but is [0, 2]. "),
    "offsets that start late": (cut(lw.Cuts([0, 1, 2], [1, 3])), "`offsets` must be from 0 to 3, but is [1, 3]. "),
    "an empty batch": (
        cut(lw.Cuts([0, 1, 2], [0, 1, 1, 3])),
        "`offsets` must be strictly rising within 0 to 3, but",
    ),
    "no offsets": (cut(lw.Cuts([0, 1, 2], [])), "`offsets` must be from 0 to 3, but is []. "),
    "a boundary crossed": (
        cut(lw.Cuts([0, 1, 2], [0, 3]), order=TWO_BUCKETS),
        "`offsets` must be with 1, which no batch may cross, but is [0, 3]. Begin a batch at every boundary.",
    ),
    "reordered over a boundary": (
        cut(lw.Cuts([2, 1, 0], [0, 1, 3]), order=TWO_BUCKETS),
        "`kept` must be reordered between boundaries alone, but is [2, 1, 0]. "
        "Keep each sequence between its boundaries.",
    ),
    "batch sizes of 0": (sized(np.zeros(1)), "`batch_sizes` must be 1 numbers of at least 1, but is array([0.]). "),
    "a portion short": (
        deal(portions=[np.arange(7)]),
        "`portions` must be of all 8 sequences, but is '7 of them'.",
    ),
    "a portion too many": (
        deal(portions=[[0], [1], [2]]),
        "`portions` must be a list of 1 or 2, but is [[0], [1],",
    ),
    "portions that share": (
        deal(portions=[np.arange(5), np.arange(4, 8)]),
        "`portions` must be different from each other, but is '4, 2 times'. ",
    ),
    "a grid of another shape": (
        deal(grid=np.arange(4).reshape(2, 2, 1)),
        "`grid` must be of shape (2, 1, 2), but is (2, 2, 1). ",
    ),
    "a batch left out": (
        deal(grid=[[[0, 1]], [[2, 2]]]),
        "`grid` must be of every batch as often as it was given, but is [3]. ",
    ),
    "a step twice": (arrange([0, 1, 1, 2]), "`arrange` must be different from each other, but is '1, 2 times'. "),
    "a step left out": (arrange([0, 1, 3]), "`arrange` must be of all 4 steps, but is '3 of them'. "),
    "a tail that there is not": (
        deal(tail="keep"),
        "`tail` must be one of split, repeat, drop, but is 'keep'. ",
    ),
}


@pytest.mark.parametrize(("fault", "sentence"), FAULTS.values(), ids=FAULTS)
def test_a_choice_that_breaks_its_promise_is_told_which(fault, sentence):
    with pytest.raises((ValueError, TypeError)) as told:
        fault()
    assert str(told.value).startswith(sentence)


def test_whole_numbers_of_any_kind_will_do():
    mine = lw.Batching(order=Gives(lw.Ordered([2, 0, 1])), cut=lw.FixedSize(2), arrange=Gives(np.array([1, 0], "i2")))
    plan = lw.make_plan(LENGTHS[:3], mine)
    assert [batch.tolist() for batch in plan.batches()] == [[0, 1], [2]]
    assert plan.sequences.dtype == plan.offsets.dtype == plan.grid.dtype == np.int64


def test_a_cut_may_reorder_where_there_are_no_boundaries():
    class Pairs:
        """The longest with the shortest."""

        def __call__(self, lengths, *_, **__):
            count = len(lengths)
            ends = [place for pair in zip(range(count // 2), range(count - 1, 0, -1), strict=False) for place in pair]
            return lw.Cuts(np.array(ends), np.arange(0, count + 1, 2))

        max_cost = always(np.inf)
        batch_sizes = always(np.full(8, 2.0))

    plan = lw.make_plan(LENGTHS, lw.Batching(order=lw.Sorted(), cut=Pairs(), arrange=lw.InOrder()))
    assert sorted(plan.sequences.tolist()) == list(range(8))
    assert LENGTHS[plan.batch(0)].tolist() == [2, 9]


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
    for epoch in range(4):
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

"""Warnings: a padding that was asked for and is missed is said once, with what was had and why."""

import copy
import itertools
import pickle
import re
import warnings

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.planning.plan_warnings import tell_other_steps

MANY = lw.example_lengths("speech", count=4_000)
PAIRS = np.random.default_rng(0).integers(10, 200, (4_000, 2))
HEAVY = np.where(np.arange(4_000) % 1_000 == 0, 100_000, 10 + np.arange(4_000) % 30)
_fresh = itertools.count(3_900)  # the same lengths are told of once in a process


def lengths_of(lengths):
    """The beginning of `lengths`, another one each time."""
    return lengths[: next(_fresh)]


def told(lengths, batching, **run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan = lw.make_plan(lengths, batching, **run)
    return plan, caught


REASONS = {
    "less than sorting pads": (MANY, 0.001, lw.FixedSize(900), r"Sorting pads 0\.\d+ here: make the batches smaller"),
    "more than random batches pad": (MANY, 0.5, lw.FixedSize(16), r"Random batches pad 0\.\d+ here, and nothing pads"),
}


@pytest.mark.parametrize(("lengths", "asked", "cut", "why"), REASONS.values(), ids=REASONS)
def test_a_padding_that_is_missed_is_said_with_its_reason(lengths, asked, cut, why):
    lengths = lengths_of(lengths)
    plan, caught = told(lengths, lw.Batching(padding=asked, cut=cut))
    had = lw.measure(plan, lengths).padding_share
    assert [type(each.message) for each in caught] == [UserWarning]
    said = str(caught[0].message)
    said = re.match(rf"`padding` must be within 0.02 of the {asked} asked for, but is (0\.\d+)\. {why}", said)
    assert said is not None
    assert float(said[1]) == pytest.approx(had, abs=0.005)  # what plans pad on average, and what this one does
    assert caught[0].filename == __file__


def test_where_sorting_pads_more_than_was_asked_the_plan_is_sorted():
    lengths = np.minimum(np.random.default_rng(0).zipf(1.6, 20_000), 100_000)[:5_000]
    plan, caught = told(lengths, lw.Batching(padding=0.05, cut=lw.Budget(100_000)))
    assert "Sorting pads 0.173 here: make the batches smaller, or ask for more." in str(caught[0].message)
    assert lw.measure(plan, lengths).padding_share == pytest.approx(0.173, abs=5e-4)


class InOrder:
    """An order of the user's own, which calls something else its padding."""

    padding = 0.5

    def __call__(self, sizes, key):
        return lw.Sorted()(sizes, key)


SIZE, DROPPING = lw.FixedSize(16), lw.Budget(20_000, oversize="drop")
SILENT = {  # lengths, batching, ranks
    "had": (MANY, lw.Batching(padding=0.02, cut=SIZE), 1),
    "had by two lengths": (PAIRS, lw.Batching(padding=0.42, cut=lw.FixedSize(64)), 1),
    "alike": (np.full(4_000, 700), lw.Batching(padding=0.1, cut=SIZE), 1),
    "a giant that leaves": (np.append(10**6, MANY), lw.Batching(padding=0.1, cut=DROPPING), 1),
    "default": (MANY, lw.Batching(budget=20_000), 1),
    "default of pairs": (PAIRS, lw.Batching(cut=lw.DynamicSize(64)), 8),
    "default that misses": (HEAVY, lw.Batching(budget=200_000), 1),
    "pickled default": (HEAVY, pickle.loads(pickle.dumps(lw.Batching(budget=200_000))), 8),
    "copied default": (HEAVY, copy.deepcopy(lw.Batching(budget=200_000)), 2),
    "shuffled": (MANY, lw.Batching(order=lw.Shuffled(), cut=SIZE), 1),
    "scale": (MANY, lw.Batching(order=lw.MaxEntropy(scale=3.0), cut=SIZE), 1),
    "own order": (MANY, lw.Batching(order=InOrder(), cut=SIZE), 1),
    "random steps": (MANY, lw.Batching(cut=SIZE, deal=lw.RandomSteps()), 8),
}


@pytest.mark.parametrize(("lengths", "batching", "ranks"), SILENT.values(), ids=SILENT)
def test_nothing_is_said_where_nothing_was_asked_or_it_is_had(lengths, batching, ranks):
    assert not told(lengths_of(lengths), batching, world_size=ranks)[1]


TAIL, LARGE, STRATA, PORTIONS = lw.example_lengths(count=5_000), lw.Budget(20_000), lw.Stratified(), lw.Portions()
HAD = {  # lengths, batching, options, epochs: by the histogram of lengths alone, these padded up to twice as much
    "few batches": (MANY[:300], {"cut": SIZE}, {}, 20),
    "few of a budget": (MANY[:640], {"cut": lw.Budget(10_000)}, {}, 20),
    "one step": (TAIL[:400], {"cut": lw.FixedSize(64), "deal": STRATA}, {"world_size": 64}, 20),
    "one step of a budget": (MANY[:600], {"cut": LARGE, "deal": STRATA}, {"world_size": 40}, 20),
    "micro-batches": (MANY[:600], {"cut": LARGE, "deal": STRATA}, {"world_size": 8, "micro_batches": 8}, 20),
    "portions": (TAIL, {"cut": SIZE, "deal": PORTIONS}, {"world_size": 8}, 4),
    "portions of few": (MANY[:1_000], {"cut": LARGE, "deal": PORTIONS}, {"world_size": 8, "micro_batches": 2}, 4),
    "copies": (MANY[:3_000], {"cut": LARGE, "deal": STRATA}, {"times": np.repeat([0.4, 2.5], [2_400, 600])}, 4),
}


@pytest.mark.parametrize(("lengths", "choices", "options", "epochs"), HAD.values(), ids=HAD)
def test_epochs_pad_what_was_asked_on_average(lengths, choices, options, epochs):
    batching = lw.Batching(padding=0.1, **choices)
    plans = [told(lengths, batching, epoch=epoch, **options) for epoch in range(epochs)]
    padding = np.mean([lw.measure(plan, lengths).padding_share for plan, _ in plans])
    assert padding == pytest.approx(0.1, abs=0.012)
    assert not any(caught for _, caught in plans)


@pytest.mark.parametrize(
    ("chosen", "warnings"), [({"padding": 0.1}, 1), ({}, 0), ({"deal": lw.Mixed()}, 0)], ids=["asked", "size", "deal"]
)
def test_only_a_padding_that_was_asked_for_is_missed(chosen, warnings):
    lengths = lengths_of(HEAVY)  # each of the longest stands in a batch of 900 others
    assert len(told(lengths, lw.Batching(cut=lw.FixedSize(900), **chosen))[1]) == warnings


def test_few_steps_that_cannot_pad_what_was_asked_say_so():
    lengths = lw.example_lengths("speech", count=401)
    plan, caught = told(lengths, lw.Batching(padding=0.3, cut=lw.FixedSize(64), deal=lw.Mixed()), world_size=128)
    had, message = lw.measure(plan, lengths).padding_share, str(caught[0].message)
    assert had < 0.25
    said = re.match(r"`padding` must be .* 0\.3 asked for, but is (0\.\d+)\. Random batches pad", message)
    assert said is not None
    assert float(said[1]) == pytest.approx(had, abs=0.02)


@pytest.mark.parametrize("deal", [{}, {"deal": PORTIONS}], ids=["batches", "portions"])
def test_a_miss_is_said_for_every_number_of_ranks_and_once_for_each(deal):
    lengths, batching = lengths_of(MANY), lw.Batching(padding=0.9, cut=SIZE, **deal)
    for world in ({"world_size": 8}, {"world_size": 16}, {"world_size": 8, "micro_batches": 2}):
        (said,) = told(lengths, batching, **world)[1]
        assert str(said.message).startswith("`padding` must be within 0.02 ")
        assert not told(lengths, batching, epoch=1, **world)[1]


def test_an_epoch_that_cannot_have_the_steps_of_the_others_says_so():
    with pytest.warns(UserWarning, match=r"^Epoch 3 has 5 steps in place of 4\. It takes longer copies"):
        tell_other_steps(5, 4, 3)

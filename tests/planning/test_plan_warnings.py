"""A padding that is asked for is found by few trials; if it is missed, that is said once, with what was had and why."""

import copy
import itertools
import math
import pickle
import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.choices.deal import World
from lengthwise.planning.plan_warnings import FirstWarnings, tell_other_steps
from lengthwise.planning.trial import _seek

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


TAIL, HEAVIEST = lw.example_lengths(count=5_000), np.random.default_rng(0).zipf(1.6, 20_000)[:5_000].clip(max=100_000)
RANDOM = r"Random batches pad 0\.\d+ here, and nothing pads"
SORTED = r"Sorting pads 0\.\d+ here: make the batches smaller"
MISSED = {  # lengths, padding, choices, ranks, reason
    "less than sorting pads": (MANY, 0.001, {"cut": lw.FixedSize(900)}, 1, SORTED),
    "of a budget": (HEAVIEST, 0.05, {"budget": 100_000}, 1, SORTED),
    "of portions": (TAIL[:300], 0.01, {"cut": lw.FixedSize(8), "deal": lw.Portions()}, 4, SORTED),
    "more than random batches pad": (MANY, 0.5, {"cut": lw.FixedSize(16)}, 1, RANDOM),
    "of few batches": (MANY[:700], 0.4, {"cut": lw.FixedSize(8), "deal": lw.Mixed()}, 4, RANDOM),
    "of few steps": (MANY[:401], 0.3, {"cut": lw.FixedSize(64), "deal": lw.Mixed()}, 128, RANDOM),
}


@pytest.mark.parametrize(("lengths", "asked", "choices", "ranks", "why"), MISSED.values(), ids=MISSED)
def test_a_padding_that_is_missed_is_said_with_its_reason(lengths, asked, choices, ranks, why):
    lengths, batching = lengths_of(lengths), lw.Batching(padding=asked, **choices)
    plans, caught = zip(*(told(lengths, batching, epoch=epoch, world_size=ranks) for epoch in range(20)), strict=True)
    ((message,), *others) = caught
    assert not any(others)  # said once
    assert message.category is UserWarning
    assert message.filename == __file__
    said = re.match(
        rf"`padding` must be within 0.02 of the {asked} asked for, but is (0\.\d+)\. {why}", str(message.message)
    )
    assert said is not None
    assert float(said[1]) == pytest.approx(lw.measure(plans, lengths).padding_share, abs=0.0015)


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


LARGE, STRATA, PORTIONS = lw.Budget(20_000), lw.Stratified(), lw.Portions()
SPREAD = np.random.default_rng(0).lognormal(4.5, 0.5, 220_000).astype(np.int64).clip(20, 500)
OF_TEN = SPREAD[:400] + 10  # 40 of them are further apart than all 400, which need more noise to pad as much
WITH_A_GIANT = np.where(np.arange(220_000) == 41_320, 20_000, SPREAD)  # not in the sample of a trial, but added to it
FILLED_UP = lw.Budget(24 * float(MANY.mean()), count_multiple_of=8)  # rows that are filled up count as padding
HAD = {  # lengths, batching, options, epochs: by the histogram of lengths alone, these padded up to twice as much
    "few batches": (MANY[:300], {"cut": SIZE}, {}, 20),
    "few of a budget": (MANY[:640], {"cut": lw.Budget(10_000)}, {}, 20),
    "one step": (TAIL[:400], {"cut": lw.FixedSize(64), "deal": STRATA}, {"world_size": 64}, 20),
    "one step of a budget": (MANY[:600], {"cut": LARGE, "deal": STRATA}, {"world_size": 40}, 20),
    "micro-batches": (MANY[:600], {"cut": LARGE, "deal": STRATA}, {"world_size": 8, "micro_batches": 8}, 20),
    "portions": (TAIL, {"cut": SIZE, "deal": PORTIONS}, {"world_size": 8}, 4),
    "portions of few": (MANY[:1_000], {"cut": LARGE, "deal": PORTIONS}, {"world_size": 8, "micro_batches": 2}, 4),
    "ten groups": (OF_TEN, {"cut": lw.FixedSize(4), "deal": lw.Mixed()}, {"groups": np.arange(400) % 10}, 20),
    "rows filled up": (MANY, {"cut": FILLED_UP, "deal": STRATA}, {}, 4),
    "a capacity by the longest": (WITH_A_GIANT, {"cut": lw.DynamicSize(2), "deal": lw.Mixed()}, {}, 1),
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


@pytest.mark.parametrize("deal", [{}, {"deal": PORTIONS}], ids=["batches", "portions"])
def test_a_miss_is_said_for_every_number_of_ranks_and_once_for_each(deal):
    lengths, batching = lengths_of(MANY), lw.Batching(padding=0.9, cut=SIZE, **deal)
    for world in ({"world_size": 8}, {"world_size": 16}, {"world_size": 8, "micro_batches": 2}):
        (said,) = told(lengths, batching, **world)[1]
        assert str(said.message).startswith("`padding` must be within 0.02 ")
        assert not told(lengths, batching, epoch=1, **world)[1]


def test_of_many_plans_the_first_that_warns_is_heard_in_each_world():
    first = FirstWarnings()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for ranks, messages in ((1, ""), (1, "a"), (1, "b"), (2, "cd")):
            with first.give(World(ranks, 1)):
                [warnings.warn(message, stacklevel=1) for message in messages]
    assert [str(each.message) for each in caught] == ["a", "c", "d"]


def test_an_epoch_that_cannot_have_the_steps_of_the_others_says_so():
    with pytest.warns(UserWarning, match=r"^Epoch 3 has 5 steps in place of 4\. It takes longer copies"):
        tell_other_steps(5, 4, 3)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.floats(1e-3, 0.98), st.floats(-2.0, 2.0), st.floats(0.5, 3.0), st.floats(1e-3, 0.4), st.floats(0.5, 1.0))
def test_a_scale_is_found_by_few_trials(asked, shift, slope, least, most):
    """Whatever the first guess is, and however padding rises with the noise between sorted and random batches."""

    def measure(order):
        if not isinstance(order, lw.MaxEntropy):
            return most if isinstance(order, lw.Shuffled) else least
        odds = math.exp(shift) * order.scale**slope
        return least + (most - least) * odds / (1.0 + odds)

    tried = _seek(asked, 1e-3, lambda scale: lw.MaxEntropy(scale=scale), asked / (1.0 - asked), measure)
    nearest = min(max(asked, least), most)
    assert min(abs(achieved - nearest) for _, achieved in tried) < 0.004
    assert len(tried) <= 20

"""A padding that was asked for and cannot be had is said, once, with what was had and why."""

import copy
import itertools
import pickle
import re
import warnings

import numpy as np
import pytest

import lengthwise as lw

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
    "two lengths": (PAIRS, 0.01, lw.FixedSize(64), r"Sorting pads 0\.\d+ here: make"),
}


@pytest.mark.parametrize(("lengths", "asked", "cut", "why"), REASONS.values(), ids=REASONS)
def test_a_padding_that_is_missed_is_said_with_its_reason(lengths, asked, cut, why):
    lengths = lengths_of(lengths)
    plan, caught = told(lengths, lw.Batching(padding=asked, cut=cut))
    had = lw.measure(plan, lengths).padding_share
    assert [type(each.message) for each in caught] == [UserWarning]
    said = str(caught[0].message)
    said = re.match(rf"`padding` must be within 0.02 of what was asked, {asked}, but is (0\.\d+)\. {why}", said)
    assert said is not None
    assert float(said[1]) == pytest.approx(had, abs=0.005)  # what plans pad on average, and what this one does
    assert caught[0].filename == __file__


def test_it_is_said_once_for_the_same_lengths_and_batching():
    lengths, batching = lengths_of(MANY), lw.Batching(padding=0.5, cut=lw.FixedSize(16))
    tellings = [len(told(lengths, batching, seed=seed, epoch=epoch)[1]) for seed, epoch in ((0, 0), (0, 1), (1, 0))]
    assert tellings == [1, 0, 0]
    assert len(told(lengths, lw.Batching(padding=0.6, cut=lw.FixedSize(16)))[1]) == 1


@pytest.mark.parametrize("padding", [0.02, 0.1, 0.2])
def test_nothing_is_said_where_the_padding_is_had(padding):
    assert not told(lengths_of(MANY), lw.Batching(padding=padding, cut=lw.FixedSize(16)))[1]


def test_nothing_is_said_of_lengths_that_are_all_alike():
    assert not told(np.full(next(_fresh), 700), lw.Batching(padding=0.1, cut=lw.FixedSize(16)))[1]


def test_where_sorting_pads_more_than_was_asked_the_plan_is_sorted():
    lengths = np.minimum(np.random.default_rng(0).zipf(1.6, 20_000), 100_000)[:5_000]
    plan, caught = told(lengths, lw.Batching(padding=0.05, cut=lw.Budget(100_000)))
    assert "Sorting pads 0.173 here: make the batches smaller, or ask for more." in str(caught[0].message)
    assert lw.measure(plan, lengths).padding_share == pytest.approx(0.173, abs=5e-4)


@pytest.mark.parametrize("count", [300, 640, 2_000])
@pytest.mark.parametrize("cut", [lw.FixedSize(16), lw.Budget(10_000)], ids=repr)
def test_few_batches_pad_what_was_asked_where_sorting_pads_less(count, cut):
    """By the histogram of lengths alone they padded up to twice as much."""
    lengths = lw.example_lengths("speech", count=count)
    for padding in (0.06, 0.1, 0.2):
        plans, caught = [], []
        for epoch in range(30):
            plan, said = told(lengths, lw.Batching(padding=padding, cut=cut), epoch=epoch)
            plans.append(lw.measure(plan, lengths).padding_share)
            caught += said
        assert np.mean(plans) == pytest.approx(padding, abs=0.006)
        assert not caught


def test_of_two_lengths_the_padding_of_both_is_fitted():
    lengths = lengths_of(PAIRS)
    for padding in (0.42, 0.45):
        plan, caught = told(lengths, lw.Batching(padding=padding, cut=lw.FixedSize(64)))
        assert lw.measure(plan, lengths).padding_share == pytest.approx(padding, abs=0.01)
        assert not caught


@pytest.mark.parametrize("cut", [lw.Budget(20_000), lw.DynamicSize(64)], ids=repr)
@pytest.mark.parametrize("lengths", [MANY, PAIRS, HEAVY], ids=["many", "pairs", "heavy"])
def test_nothing_is_said_of_a_default_that_nobody_asked_for(lengths, cut):
    cut = lw.Budget(200_000) if lengths is HEAVY and cut == lw.Budget(20_000) else cut
    default = lw.Batching(cut=cut)
    for batching in (default, pickle.loads(pickle.dumps(default)), copy.deepcopy(default)):
        assert not told(lengths_of(lengths), batching)[1]
        assert not told(lengths_of(lengths), batching, world_size=8)[1]


@pytest.mark.parametrize("chosen", [{"padding": 0.1}, {}, {"deal": lw.Mixed()}], ids=["asked", "size", "deal"])
def test_the_padding_of_an_order_that_was_made_is_said(chosen):
    lengths = lengths_of(HEAVY)  # each of the longest stands in a batch of 900 others
    batching = lw.Batching(cut=lw.FixedSize(900), **chosen)
    assert batching.order == lw.MaxEntropy(padding=0.1)
    assert len(told(lengths, batching)[1]) == 1


def test_nothing_is_said_of_orders_that_promise_no_padding():
    for order in (lw.Shuffled(), lw.Sorted(), lw.SemiSorted(0.1), lw.MaxEntropy(scale=3.0)):
        assert not told(lengths_of(MANY), lw.Batching(order=order, cut=lw.FixedSize(16)))[1]


@pytest.mark.parametrize("padding", ["edge", 0.5, None])
def test_an_order_of_the_users_may_call_anything_its_padding(padding):
    class InOrder:
        def __init__(self):
            self.padding = padding

        def __call__(self, sizes, key):
            return lw.Sorted()(sizes, key)

    assert not told(lengths_of(MANY), lw.Batching(order=InOrder(), cut=lw.FixedSize(16)))[1]


def test_a_giant_that_leaves_is_no_reason():
    lengths = np.append(lengths_of(MANY), 10**6)
    for oversize in ("alone", "drop"):
        assert not told(lengths, lw.Batching(padding=0.1, cut=lw.Budget(20_000, oversize=oversize)))[1]


def test_portions_are_told_of_as_one_plan():
    _, caught = told(lengths_of(MANY), lw.Batching(padding=0.5, cut=lw.FixedSize(16), deal=lw.Portions()), world_size=4)
    assert len(caught) == 1


@pytest.mark.parametrize("cut", [lw.FixedSize(64), lw.Budget(20_000)], ids=repr)
@pytest.mark.parametrize("ranks", [32, 64, 128])
def test_few_steps_on_many_ranks_pad_what_was_asked(cut, ranks):
    """Their batches are made smaller to fill the last step, so fitted as if they were not they padded 0.9 %."""
    lengths = lw.example_lengths(count=400)
    batching = lw.Batching(padding=0.1, cut=cut, deal=lw.Stratified())
    plans, said = [], []
    for epoch in range(20):
        plan, caught = told(lengths, batching, world_size=ranks, epoch=epoch)
        plans.append(lw.measure(plan, lengths).padding_share)
        said += caught
    assert plan.steps == 1
    assert np.mean(plans) == pytest.approx(0.1, abs=0.01)
    assert not said


def test_few_steps_that_cannot_pad_what_was_asked_say_so():
    lengths = lw.example_lengths("speech", count=401)
    plan, caught = told(lengths, lw.Batching(padding=0.3, cut=lw.FixedSize(64), deal=lw.Mixed()), world_size=128)
    had = lw.measure(plan, lengths).padding_share
    assert had < 0.25
    said = re.match(r"`padding` must be .* 0\.3, but is (0\.\d+)\. Random batches pad", str(caught[0].message))
    assert said is not None
    assert float(said[1]) == pytest.approx(had, abs=0.02)


@pytest.mark.parametrize("ranks", [2, 8])
@pytest.mark.parametrize("micro_batches", [1, 4])
def test_portions_pad_what_was_asked(ranks, micro_batches):
    """By the histogram alone they padded 6.1 % where 5 % was asked on 8 ranks."""
    lengths = lw.example_lengths(count=10_480)
    for padding in (0.06, 0.1, 0.3):
        batching = lw.Batching(padding=padding, cut=lw.FixedSize(16), deal=lw.Portions())
        run = {"world_size": ranks, "micro_batches": micro_batches}
        plans = [lw.make_plan(lengths, batching, epoch=epoch, **run) for epoch in range(6)]
        found = np.mean([lw.measure(plan, lengths).padding_share for plan in plans])
        assert found == pytest.approx(padding, abs=0.006)


def test_few_sequences_are_planned_for_many_more_ranks():
    order = lw.MaxEntropy(padding=0.05)
    lengths = lw.example_lengths("long-tailed", count=1_000_000)[:64]
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(16), order=order), world_size=1_024)
    assert plan.steps == 1


LONG = lw.example_lengths("long-tailed")


@pytest.mark.parametrize(
    "batching",
    [
        lw.Batching(budget=20_000, padding=0.02),  # batches of a budget cost about the same
        lw.Batching(cut=lw.DynamicSize(4), padding=0.02),
        lw.Batching(cut=lw.FixedSize(16), deal=lw.RandomSteps()),
        lw.Batching(budget=20_000, deal=lw.RandomSteps()),
    ],
    ids=repr,
)
def test_nothing_is_said_of_steps_and_they_wait_for_little(batching):
    plan, caught = told(LONG, batching, world_size=8)
    assert not caught
    assert lw.measure(plan, LONG).straggler_waste < 0.1


def test_windows_say_it_once():
    batching = lw.Batching(cut=lw.FixedSize(16), padding=0.9)
    windows = lw.Windows(LONG, batching, window=2_048, block=64, world_size=4)
    for each in (windows, windows.share_out(8)):
        with pytest.warns(UserWarning, match="`padding` must be within 0.02 of what was asked, 0.9") as caught:
            each.plan(0, 0)
        assert len(caught) == 1


MISSES = {
    "padding": (lw.Batching(padding=0.9, cut=lw.FixedSize(16)), "`padding` must be within 0.02"),
    "mixing": (lw.Batching(order=lw.MaxEntropy(mixing=0.999), cut=lw.FixedSize(4)), "`mixing` must be within 0.02"),
}


@pytest.mark.parametrize(("batching", "sentence"), MISSES.values(), ids=MISSES)
def test_a_miss_is_said_for_every_number_of_ranks_and_once_for_each(batching, sentence):
    lengths = lengths_of(LONG)
    for world in ({"world_size": 8}, {"world_size": 16}, {"world_size": 8, "micro_batches": 2}):
        (said,) = told(lengths, batching, **world)[1]
        assert str(said.message).startswith(sentence)
        assert not told(lengths, batching, epoch=1, **world)[1]


def test_a_mixing_that_sorted_batches_exceed_is_said_too():
    lengths = np.repeat([10, 20], next(_fresh))  # sorted batches of two lengths mix 0.5, by the two bins that there are
    plan, (said,) = told(lengths, lw.Batching(cut=lw.FixedSize(16), order=lw.MaxEntropy(mixing=0.3)))
    sentence = (
        r"`mixing` must be within 0\.02 of what was asked, 0\.3, but is (0\.\d+)\. "
        r"No batches were found that mix less here: make them smaller, or ask for more\."
    )
    (achieved,) = re.fullmatch(sentence, str(said.message)).groups()
    assert float(achieved) == pytest.approx(lw.measure(plan, lengths).mixing, abs=0.01)
    assert float(achieved) > 0.4
    for mixing in (0.2, 0.5):
        batching = lw.Batching(cut=lw.FixedSize(16), order=lw.MaxEntropy(mixing=mixing))
        assert not told(lengths_of(LONG), batching)[1]

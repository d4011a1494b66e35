"""`Balanced(waiting=...)`: steps as mixed as a share of waiting allows, and never a longer wait."""

import warnings
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.choices.deal import order_by, order_within, waiting_of
from lengthwise.cli.strategies import parse_strategies, parse_strategy

SPEECH = lw.example_lengths("speech", count=6_000)
FIXED = lw.Batching(cut=lw.FixedSize(16), order=lw.MaxEntropy(padding=0.05))
ROUNDED = 1e-9


def within(waiting, **verbs):
    return replace(FIXED, deal=lw.Balanced(waiting=waiting), **verbs)


def told(lengths, batching, **run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan = lw.make_plan(lengths, batching, **run)
    return plan, [str(each.message) for each in caught]


def waste(plan):
    return lw.measure(plan, SPEECH).straggler_waste


def waits(costs, order, ranks):
    return waiting_of(costs[order].reshape(-1, ranks))


@given(st.lists(st.integers(0, 9), min_size=6, max_size=6), st.sampled_from([1, 2, 3, 6]))
@settings(max_examples=40, derandomize=True)
def test_no_steps_wait_less_than_those_by_cost(costs, slots):
    costs = np.array(costs, np.float64)
    least = min(waits(costs, np.array(order), slots) for order in permutations(range(6)))
    assert waits(costs, order_by(costs, lw.Key(stage="deal")), slots) == pytest.approx(least, abs=1e-12)


costs_of_batches = st.one_of(
    st.lists(st.integers(0, 50), min_size=24, max_size=24),
    st.lists(st.floats(0.0, 1e300), min_size=24, max_size=24),
    st.lists(st.sampled_from([1, 1_000_000]), min_size=24, max_size=24),
)


@given(costs_of_batches, st.sampled_from([1, 2, 4, 8, 24]), st.floats(0.0, 0.99), st.integers(0, 99))
@settings(max_examples=100, derandomize=True)
def test_ranks_wait_no_longer_than_was_asked_or_as_little_as_can_be(costs, slots, asked, seed):
    costs, key = np.array(costs, np.float64), lw.Key(seed=seed, stage="deal")
    scaled = costs / (costs.max() or 1.0)
    order = order_within(scaled, lambda order: waits(scaled, order, slots), asked, key)
    least = waits(scaled, order_by(scaled, key), slots)
    assert sorted(order.tolist()) == list(range(24))
    assert waits(scaled, order, slots) <= max(asked, least) + ROUNDED


@pytest.mark.parametrize("asked", [0.02, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("order", [lw.MaxEntropy(padding=0.05), lw.Sorted(), lw.Bucketed(buckets=8)], ids=repr)
def test_every_epoch_waits_as_long_as_allowed_and_no_longer(order, asked):
    for epoch in range(4):
        plan, said = told(SPEECH, within(asked, order=order), epoch=epoch, world_size=8)
        assert asked - 0.005 < waste(plan) <= asked + ROUNDED
        assert not said


def test_longer_waiting_mixes_more():
    def mix(deal):
        plans = [lw.make_plan(SPEECH, replace(FIXED, deal=deal), epoch=epoch, world_size=8) for epoch in range(8)]
        return lw.measure(plans, SPEECH).step_mixing

    deals = (lw.Balanced(), *(lw.Balanced(waiting=waiting) for waiting in (0.03, 0.06, 0.1, 0.2)), lw.Mixed())
    found = [mix(deal) for deal in deals]
    assert found == sorted(found)
    assert found[3] > 2 * found[0]


def test_the_ends_are_the_deals_that_have_no_knob():
    none, endless = (lw.make_plan(SPEECH, within(waiting), world_size=8) for waiting in (0.0, 0.9))
    for plan, deal in ((none, lw.Balanced()), (endless, lw.Mixed())):
        assert np.array_equal(plan.grid, lw.make_plan(SPEECH, replace(FIXED, deal=deal), world_size=8).grid)


def test_the_padding_stays_what_it_was():
    measured = [lw.measure(lw.make_plan(SPEECH, batching, world_size=8), SPEECH) for batching in (FIXED, within(0.05))]
    assert measured[0].padding_share == measured[1].padding_share
    assert measured[0].mixing == measured[1].mixing


def test_ranks_of_several_batches_wait_less_so_that_their_steps_are_more_mixed():
    mixed = []
    for ranks in (8, 4, 2, 1):
        run = {"world_size": ranks, "micro_batches": 8 // ranks}
        plans = [lw.make_plan(SPEECH, within(0.05), epoch=epoch, **run) for epoch in range(4)]
        assert max(waste(plan) for plan in plans) <= 0.05 + ROUNDED
        mixed.append(lw.measure(plans, SPEECH).step_mixing)
    assert mixed == sorted(mixed)
    assert mixed[-1] > 2 * mixed[0]


def test_a_rest_of_as_large_steps_keeps_the_steps():
    batching = within(0.05, arrange=lw.InOrder())
    first = lw.make_plan(SPEECH, batching, world_size=4, micro_batches=2)
    rest = lw.make_plan(SPEECH, batching, world_size=8, after=[(4, 2, 40)])  # 20 steps of 2 micro-batches
    assert first.steps == rest.steps + 20
    for before, after in zip(first.grid[20:], rest.grid, strict=True):
        members = [
            sorted(number for batch in step.reshape(-1) for number in plan.batch(batch).tolist())
            for plan, step in ((first, before), (rest, after))
        ]
        assert members[0] == members[1]


@pytest.mark.parametrize(("world_size", "micro_batches"), [(6, 1), (3, 5), (16, 1)])
def test_a_rest_that_is_dealt_anew_waits_no_longer_either(world_size, micro_batches):
    places = {"world_size": world_size, "micro_batches": micro_batches}
    rest = lw.make_plan(SPEECH, within(0.1), after=[(8, 1, 20)], **places)
    assert waste(rest) <= 0.1 + ROUNDED


def test_a_budget_whose_batches_cost_the_same_waits_less_than_is_allowed():
    batching = lw.Batching(budget=20_000, padding=0.05, deal=lw.Balanced(waiting=0.1))
    plan, said = told(SPEECH, batching, world_size=8)
    assert waste(plan) < 0.05
    assert not said
    assert np.array_equal(plan.grid, lw.make_plan(SPEECH, replace(batching, deal=lw.Mixed()), world_size=8).grid)


def test_a_waiting_that_cannot_be_had_is_said_once_with_its_reason():
    lengths = lw.example_lengths(count=3_000)
    plan, said = told(lengths, within(0.03), world_size=8)
    had = lw.measure(plan, lengths).straggler_waste
    assert had > 0.03
    assert said == [
        f"`waiting` must be at most what was asked, 0.03, but is {had:.3g}. "
        "Batches of similar cost share the steps already. Cut by a budget, or ask for more."
    ]
    assert not told(lengths, within(0.03), world_size=8, epoch=1)[1]
    assert np.array_equal(plan.grid, lw.make_plan(lengths, FIXED, world_size=8).grid)


def test_the_warning_names_the_line_that_asked():
    with pytest.warns(UserWarning, match="All batches make one step") as caught:
        lw.make_plan(SPEECH[:200], within(0.02), world_size=20)
    assert caught[0].filename == __file__


def test_ranks_of_several_batches_are_not_told_of_a_waiting_that_they_do_not_have():
    lengths = lw.example_lengths(count=3_001)
    assert told(lengths, within(0.03), world_size=1, micro_batches=8)[1] == []


def test_it_goes_through_json():
    for batching in (FIXED, within(0.05), within(0)):
        assert lw.Batching.from_json(batching.to_json()) == batching


def test_a_share_is_written_as_a_number_or_in_percent(run):
    cut = lw.FixedSize(16)
    batching = lw.Batching(cut=cut, order=lw.MaxEntropy(padding=0.05), deal=lw.Balanced(waiting=0.1, tail="drop"))
    expected = lw.make_plan(lw.example_lengths(), batching, world_size=4).fingerprint()
    words = ("--strategy", "max-entropy:5%,waiting=10%", "--tail", "drop", "--world-size", 4, "--json", "-")
    assert run("plan", *words).json["plan"]["fingerprint"] == expected
    named = parse_strategies("random,waiting=10%,max-entropy:0.05,waiting=0.1", cut=cut)
    assert [each.deal for each in named.values()] == [lw.Balanced(waiting=0.1)] * 2
    assert parse_strategy("mxnet:4,drop=true,waiting=0.1", cut=cut).deal == lw.Balanced(tail="drop", waiting=0.1)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--strategy", "random,waiting=5"), "`waiting` must be at least 0 and at most 0.99, but is 5. "),
        (("--strategy", "random-steps,waiting=5%"), "`waiting` must be left out here, but is 0.05 at random-steps"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(run, words, sentence):
    done = run("plan", "--subset", 100, *words)
    assert done.status == 2
    assert done.err.startswith(f"lengthwise plan: {sentence}")

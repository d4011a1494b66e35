"""What `advise` recommends: what a Batching takes by itself, priced by hand, beside what trainers ship."""

import re
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings

import length_sets
import lengthwise as lw
from lengthwise.advice import search
from lengthwise.advice.candidates import _edges_of_equal_total, first_budget, list_ours, list_shipped
from lengthwise.advice.search import epoch_price
from lengthwise.choices.batching import write_batching
from lengthwise.choices.deal import World
from lengthwise.cli.strategies import parse_strategy
from lengthwise.measures.metrics import epochs_to_pool, measure_epochs

FIXED, BUDGET = lw.FixedSize(16), lw.Budget(20_000)
WORLDS = {"one": {}, "many": {"world_size": 8, "micro_batches": 4}}
SHORT = lw.example_lengths("long-tailed", count=800)
ATTENTION = lw.Quadratic(quadratic=0.001)
SHAPES = np.repeat([1, 4, 16], 3), np.tile([50, 900, 2_000], 3)
STEP = lw.StepCost.of(*SHAPES, 0.01 + 2e-5 * np.prod(SHAPES, axis=0))

pytestmark = pytest.mark.usefixtures("few_epochs")


@cache
def advised(cut=FIXED, *, world_size=1, micro_batches=1, **options):
    """The advice for `SHORT`, which more than one test looks at."""
    return lw.advise(SHORT, cut, world_size=world_size, micro_batches=micro_batches, **options)


def plans_of(lengths, batching, **options):
    return [lw.make_plan(lengths, batching, epoch=epoch, **options) for epoch in range(epochs_to_pool(len(lengths)))]


@pytest.mark.parametrize(
    ("lengths", "size", "padding", "budget"),
    [
        ([80, 100], 16, 0.1, 1_600),  # 16 x 90 / 0.9
        ([80, 100], 16, 0.5, 2_880),
        ([80, 100, 9_000], 1, 0.1, 9_000),  # at least the longest
        ([[3, 5], [5, 5]], 9, 0.1, 90),  # the sum of several lengths
    ],
)
def test_the_first_budget_by_hand(lengths, size, padding, budget):
    assert first_budget(np.array(lengths), size, padding=padding) == budget
    multiples = first_budget(np.array(lengths), size, padding=padding, multiple_of=8)
    assert multiples == first_budget(-(-np.array(lengths) // 8) * 8, size, padding=padding)


@pytest.mark.parametrize("cut", [FIXED, BUDGET, lw.DynamicSize(4)], ids=str)
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_what_is_recommended_is_what_a_batching_takes_by_itself(cut, world):
    advice = advised(cut, **world)
    best = advice.best.batching
    assert best == lw.Batching(cut=lw.Budget(first_budget(SHORT)) if cut == FIXED else cut)
    resolved = lw.Batching.from_json(lw.make_plan(SHORT, best, **world).batching)
    assert (advice.best.label == "random-steps") == resolved.takes_random_steps
    # The rule of a Batching: random steps at a price of at most 1.11, else batches that pad at most 5 %.
    if not resolved.takes_random_steps:
        assert advice.best.label == f"max-entropy:{resolved.order.padding:g}"
        assert advice.best.measures.padding_share < 0.07
    assert advice.best.price < 1.13
    assert advice.best in advice.candidates
    assert advice.random.batching.cut == cut


@pytest.mark.parametrize("padding", [0.02, 0.3])
def test_padding_is_the_one_knob(padding):
    advice = advised(padding=padding)
    assert advice.best.label == f"max-entropy:{padding:g}"
    assert advice.best.measures.padding_share == pytest.approx(padding, abs=0.02)
    batching = lw.Batching(budget=first_budget(SHORT, padding=padding), padding=padding)
    assert advice.best.batching == batching
    assert write_batching(batching) in advice.code


def test_prices_by_hand():
    # Two ranks, a sequence each: the steps are (9, 9) and (5, 5), of 28 frames in 14 for each rank; none waits.
    plan = lw.make_plan([9, 5, 9, 5], lw.Batching(cut=lw.FixedSize(1), order=lw.Sorted()), world_size=2)
    assert epoch_price(plan, lw.Padded()) == 14
    # One step of (9, 9) and (5, 5): the second rank waits.
    plan = lw.make_plan([9, 5, 9, 5], lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted()), world_size=2)
    assert epoch_price(plan, lw.Padded()) == 18
    assert epoch_price(plan, lw.Quadratic(linear=0, quadratic=1, per_batch=3)) == 2 * 81 + 3
    # One batch of 3 sequences, whose rows are filled up to 4.
    plan = lw.make_plan([9, 5, 9], lw.Batching(cut=lw.Budget(36, count_multiple_of=2), order=lw.Sorted()))
    assert epoch_price(plan, lw.Padded()) == 36


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_prices_are_those_of_the_public_measures(world):
    advice = advised(lw.FixedSize(8), **world)
    assert [row.price for row in advice.candidates] == sorted(row.price for row in advice.candidates)
    for row in advice.candidates:
        found = measure_epochs(plans_of(SHORT, row.batching, **world), SHORT)
        assert row.price == pytest.approx(1 / (1 - found.padding_share) / (1 - found.straggler_waste), rel=1e-9)
        assert row.measures.randomness == found.randomness


def test_seconds_are_those_of_the_step_cost():
    advice = advised(lw.FixedSize(8), cost=STEP, world_size=2)
    plans = plans_of(SHORT, advice.best.batching, world_size=2)
    assert advice.unit == "seconds"
    assert advice.best.price == pytest.approx(np.mean([STEP.seconds_of(plan) for plan in plans]))


VERBS = {
    "frames": ({}, "", ""),
    "seconds": ({"cost": STEP}, "take", "seconds an epoch"),
    "cost": ({"cost": lw.Quadratic(linear=0.0, quadratic=1.0)}, "cost", "an epoch"),
}


@pytest.mark.parametrize("unit", VERBS)
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_lines_say_the_numbers_of_the_rows(unit, world):
    options, verb, measure = VERBS[unit]
    advice = advised(**options, **world)
    best, random = advice.best, advice.random
    assert (advice.unit, str(advice).partition("\n\n")[0]) == (unit, advice.sentence)
    many = len(advice.candidates)
    assert repr(advice) == f"Advice({best.label!r} of {many} candidates, measured on 800 of 800 sequences)"
    now, trainer, then, largest, count, code = advice.sentence.split("\n")
    (grouped,) = (row for row in advice.candidates if row.ships_in == "Trainer's group_by_length")
    waiting = ", waiting included" if world else ""

    def clause(row, s="", frames="", time=""):
        if unit != "frames":
            return f"{verb}{s} {row.price:,.3g}"
        padding, waiting = (
            f"{100 * share:.1f} %" for share in (row.measures.padding_share, row.measures.straggler_waste)
        )
        computed = f"compute{s} {1 / row.measures.fill:.2f}{frames}"
        parts = (f"pad{s} {padding}, {computed}, and wait{s} {waiting}{time}", f"pad{s} {padding} and {computed}")
        return parts[not world]

    first = clause(random, frames=" frames for each frame of data", time=" of the time")
    assert now == f"Random batches of 16 sequences {first}{f' {measure}{waiting}' if measure else ''}."
    assert trainer == f"The Trainer's group_by_length {clause(grouped, 's')}."
    assert then.endswith(f" {clause(best)}.")
    assert f"batches of at most {best.batching.budget:,.0f} padded frames" in then.lower()
    assert ("random samples" in then) == (best.label == "random-steps")
    kept = "as random as 5 % padding allows" if best.measures.padding_share < 0.07 else "too few to keep to 5 % of"
    assert (kept in then) == (best.label == "max-entropy:0.05")
    costs = [f"{row.measures.largest_cost:,.0f}" for row in (random, grouped, best)]
    steps = [f"{row.measures.steps // row.measures.epochs:,}" for row in (random, best)]
    assert largest == (
        f"The largest batch: {costs[0]} padded frames now, which fit; {costs[1]} by group_by_length, {costs[2]} then."
    )
    assert count == f"Steps of an epoch: {steps[0]} now, {steps[1]} then."
    assert code == f"The code, for lw.torch.BatchSampler or PlannedTrainer: {write_batching(best.batching)}"


@pytest.mark.parametrize("count", [1, 2, 500])
@pytest.mark.parametrize("cut", [lw.FixedSize(4), lw.Budget(100)], ids=str)
def test_where_nothing_is_to_be_gained_it_says_so(count, cut):
    advice = lw.advise([7] * count, cut, world_size=2)
    assert advice.sentence.endswith("\nYou have nothing to gain: no batches cost clearly less. Shuffle.")
    assert advice.best is advice.random
    assert isinstance(advice.best.batching.order, lw.Shuffled)


@pytest.mark.slow
@settings(max_examples=8)
@given(length_sets.flat | length_sets.pairs)
def test_any_lengths_have_an_advice(lengths):
    if not len(lengths):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advice = lw.advise(lengths, lw.FixedSize(4), world_size=2)
    assert len({row.label for row in advice.candidates}) == len(advice.candidates)
    assert all(row.price >= 0 and 0 <= row.measures.randomness <= 1 for row in advice.candidates)
    lw.make_plan(lengths, advice.best.batching, world_size=2)


def test_a_sample_stands_for_the_whole(monkeypatch):
    lengths = lw.example_lengths("long-tailed", count=4_000)
    whole = lw.advise(lengths, FIXED, cost=lw.Padded())
    monkeypatch.setattr(search, "_SAMPLE", 1_000)
    advice = lw.advise(lengths, FIXED, cost=lw.Padded())
    assert (advice.measured, advice.sequences, whole.measured) == (1_000, 4_000, 4_000)
    assert advice.best.batching == whole.best.batching  # the budget is of all lengths
    assert advice.best.price == pytest.approx(whole.best.price, rel=0.1)
    # 16 steps of 8 x 4 batches of 16 are 8,192: of 4,000, all are measured.
    assert lw.advise(lengths, FIXED, world_size=8, micro_batches=4).measured == 4_000


def test_the_same_inputs_give_the_same():
    first, second, other = (lw.advise(SHORT[:300], FIXED, world_size=2, seed=seed).as_dict() for seed in (3, 3, 4))
    assert first == second != other


def test_buckets_of_equal_total_hold_as_much_each_and_pairs_have_none():
    edges = _edges_of_equal_total(SHORT)
    held = np.bincount(np.searchsorted(edges, SHORT), SHORT)
    assert len(edges) == 30
    assert held.max() < 1.5 * SHORT.sum() / 30 + SHORT.max()
    pairs = np.stack([SHORT, SHORT[::-1]], axis=1)
    labels = {row.label for row in lw.advise(pairs, lw.FixedSize(8)).candidates}
    assert "dynamic-buckets" not in labels
    assert {"random", "sorted", "max-entropy:0.05"} <= labels


@pytest.mark.parametrize(
    ("cut", "slots", "labels"),
    [
        (FIXED, 1, []),
        (BUDGET, 2, ["random-steps"]),
        (lw.DynamicSize(16, rule="paper"), 4, []),  # which forms no steps
    ],
    ids=str,
)
def test_ours_are_at_half_the_padding_and_at_twice_it(cut, slots, labels):
    decided = lw.Batching(cut=cut, order=lw.MaxEntropy(padding=0.1))
    ours = list_ours(decided, 0.05, slots=slots)
    assert [each.label for each in ours] == ["max-entropy:0.05", "max-entropy:0.1", "max-entropy:0.2", *labels]
    high = list_ours(replace(decided, padding=0.6), 0.05, slots=1)
    assert [each.label for each in high] == ["max-entropy:0.3", "max-entropy:0.6"]
    ours += list_ours(replace(decided, deal=lw.Mixed()), 0.05, slots=slots)
    if labels:
        in_steps = list_ours(lw.Batching(cut=cut, deal=lw.RandomSteps()), 0.05, slots=slots)
        assert [each.label for each in in_steps][1::2] == ["max-entropy:0.05", *labels]
    for each in ours:
        assert each.batching == parse_strategy(each.label, cut=cut)


def work_of(plans):
    """The work that the ranks of each plan do, and what they could do in the same time."""
    ranks = [ATTENTION(plan.batch_sizes, plan.padded_lengths)[plan.grid].sum(axis=1) for plan in plans]
    return [each.sum() for each in ranks], [each.shape[1] * each.max(axis=1).sum() for each in ranks]


def test_with_a_balance_ranks_wait_and_pay_by_it():
    advice = advised(world_size=2, balance=ATTENTION)
    assert advice.unit == "work"
    assert "balance=lw.Quadratic(quadratic=0.001)" in advice.code
    assert "times the work of the data, waiting included." in advice.sentence
    assert " % padding allows and of similar cost in each step, compute " in advice.sentence
    alone = ATTENTION(np.ones(len(SHORT)), SHORT[:, None]).sum()
    for row in advice.candidates:
        done, paid = work_of(plans_of(SHORT, row.batching, world_size=2))
        assert row.price == pytest.approx(np.mean(paid) / alone)
        assert row.measures.straggler_waste == pytest.approx(1 - sum(done) / sum(paid))


def test_ranks_share_the_shape_of_measured_seconds():
    step = lw.StepCost.of(*SHAPES, 0.01 + 2e-5 * SHAPES[0] * (SHAPES[1] + 0.004 * SHAPES[1] ** 2))
    balance = lw.Quadratic(quadratic=0.004)
    assert advised(cost=step, world_size=2).best.batching.balance == balance
    assert advised(cost=step, world_size=2, balance=ATTENTION).best.batching.balance == ATTENTION
    assert advised(cost=step).best.batching.balance is None  # nobody waits
    assert advised(cost=STEP, world_size=2).best.batching.balance is None  # no term is squared


def test_several_ranks_read_how_long_attention_makes_them_wait():
    advice = advised(world_size=8)
    waits = []
    for balance in (None, ATTENTION):
        done, paid = work_of(plans_of(SHORT, replace(advice.best.batching, balance=balance), world_size=8))
        waits.append(1 - sum(done) / sum(paid))
    assert waits[0] > 2 * waits[1]
    assert str(advice) == f"{advice.sentence}\n\n{advice.attention}"
    assert re.findall(r"[\d.]+ %", advice.attention) == [f"{100 * share:.1f} %" for share in waits]
    for options in ({}, {"cost": lw.Padded(), "world_size": 8}, {"balance": ATTENTION, "world_size": 2}):
        assert advised(**options).attention == ""


def test_what_trainers_ship_has_the_cut_that_was_given():
    for cut, steps in ((FIXED, 1), (BUDGET, 0), (lw.FixedSize(16, drop_incomplete=True), 0)):
        shipped = list_shipped(cut, SHORT, World(8, 1), dims=1)
        assert [each.label for each in shipped][4:] == ["random-steps of 16"] * steps
        assert {each.batching.cut for each in shipped} == {cut}
        assert all(each.ships_in for each in shipped)
    # Twelve batches are a quarter of the epoch; `test_switch.py` has the Trainer's own.
    assert (shipped[1].label, shipped[1].ships_in) == ("windowed:192", "Trainer's group_by_length")


def test_packed_rows_are_measured_where_they_are_asked_for():
    cut = lw.Rows(int(SHORT.max()), rows=2)
    advice, usual = advised(cut, world_size=2), advised(world_size=2)
    (row,) = (row for row in advice.candidates if row not in usual.candidates)
    assert (row.label, row.batching) == (f"rows:{cut.capacity}", lw.Batching(cut=cut))
    assert row.measures == measure_epochs(plans_of(SHORT, row.batching, world_size=2), SHORT)
    assert (advice.best, advice.sentence) == (usual.best, usual.sentence)


REFUSED = [
    ({"cut": 16}, "`cut` must be a FixedSize, a Budget, a DynamicSize or Rows, but is 16. Give the cut"),
    ({"padding": -0.1}, "`padding` must be above 0 and at most 0.99, but is -0.1. "),
    ({"cost": lw.Quadratic}, "`cost` must be a cost, but is "),
    ({"balance": lw.Padded(dims="largest")}, "`balance` must be a Quadratic, but is Padded("),
    (
        {"cost": STEP, "lengths": [[3, 4]] * 9},
        "`cost` must be measured with 2 lengths a sequence, as `lengths` has, but is 1. ",
    ),
    ({"cut": lw.Budget(10)}, "`budget` must be at least the cost of the costliest "),
    ({"lengths": []}, "`lengths` must be of at least one sequence, but is 0. "),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_bad_input_is_refused_in_one_sentence(given, message):
    asked = {"lengths": [30, 20, 40], "cut": FIXED, **given}
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(message)}"):
        lw.advise(asked.pop("lengths"), asked.pop("cut"), **asked)

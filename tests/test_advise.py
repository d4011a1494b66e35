"""What `advise` recommends: the rule by brute force, prices by hand, and the papers' strategies beside it."""

import os
import re
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import length_sets
import lengthwise as lw
from lengthwise.advice import question as questions
from lengthwise.advice.answer import choose, epoch_price
from lengthwise.advice.contenders import _edges_of_equal_total, of_equal_memory, on_sample, ours, shipped, sort_alone
from lengthwise.advice.search import _most_mixed, epochs_to_plan
from lengthwise.advice.snippet import write_batching
from lengthwise.choices.deal import World
from lengthwise.cli.strategies import parse_strategy
from lengthwise.measures.metrics import measure_pooled

DATA = Path(os.environ.get("LENGTHWISE_DATA", Path(__file__).parents[2] / "shared" / "data"))
PAPERS = ("optimal:8", "alternated:58", "semi-sorted:0.1", "bucketed:1024")
FIXED, BUDGET = lw.FixedSize(16), lw.Budget(12_928)
WORLDS = {"one": {}, "eight": {"world_size": 8}, "accumulated": {"world_size": 8, "micro_batches": 4}}
CHANCE = 0.01  # of mixing
SHORT = lw.example_lengths("long-tailed", count=800)


@pytest.fixture(autouse=True)
def as_many_epochs_as_needed(request):
    """Two of each contender tell all but which strategy is the better one."""
    if "papers" not in request.node.name:
        request.getfixturevalue("few_epochs")


@cache
def advised(cut, *, world_size=1, micro_batches=1):
    """The advice for `SHORT`, which more than one test looks at."""
    return lw.advise(SHORT, cut, world_size=world_size, micro_batches=micro_batches)


def test_an_advice_is_shown_in_a_line():
    advice = advised(lw.FixedSize(16))
    many = len(advice.candidates)
    shown = f"Advice({advice.best.label!r} of {many} candidates, measured on 800 of 800 sequences)"
    assert repr(advice) == shown


def worth(lengths, batching, **world):
    """Price and mixing of a batching, by the public measures."""
    plans = [lw.make_plan(lengths, batching, epoch=epoch, **world) for epoch in range(epochs_to_plan(len(lengths)))]
    found = measure_pooled(plans, lengths)
    return 1 / (1 - found.padding_share) / (1 - found.straggler_waste), found.step_mixing, found.steps


def better_than_papers(lengths, cut, world):
    advice = lw.advise(lengths, cut, **world)
    best = advice.best
    assert best.label.startswith(("max-entropy:", "random-steps"))
    for label in PAPERS:
        price, mixing, _ = worth(lengths, parse_strategy(label, cut=cut), **world)
        # Whoever may be taken by the rule, or costs less than the best, mixes less.
        near = max(best.price, 1.05 * advice.candidates[0].price)
        assert price > near or mixing < best.mixing, label
        # At its own price ours mixes more.
        ours = [row for row in advice.candidates if row.label.startswith(("max-entropy:", "random", "sorted"))]
        across, height = zip(*((row.price, row.mixing) for row in advice.front if row in ours), strict=True)
        assert np.interp(price, across, height) > mixing, label


@pytest.mark.parametrize("cut", [FIXED, BUDGET], ids=["fixed", "budget"])
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_it_is_better_than_the_strategies_of_papers(cut, world):
    better_than_papers(lw.example_lengths("speech"), cut, world)


@pytest.mark.parametrize("cut", [FIXED, BUDGET], ids=["fixed", "budget"])
def test_it_is_better_than_the_strategies_of_papers_on_recordings(cut):
    better_than_papers(ljspeech(), cut, {})
    better_than_papers(ljspeech(), cut, WORLDS["accumulated"])


def sets():
    numbers = np.random.default_rng(0)
    speech = lw.example_lengths("speech", count=800)
    return {
        "long-tailed": SHORT,
        "Zipf": np.minimum(numbers.zipf(1.5, 800), 5_000),
        "Zipf, short": np.minimum(numbers.zipf(2.0, 800), 1_000),
        "one giant": np.where(np.arange(800) == 7, 5_000, speech),
        "short and long": np.where(numbers.random(800) < 0.5, speech // 100, speech),
        "three lengths": numbers.choice([10, 20, 500], 800),
        "pairs": np.stack([speech, 1 + speech * numbers.integers(50, 150, 800) // 100], axis=1),
        "pairs that differ": np.stack([speech, SHORT], axis=1),
    }


@pytest.mark.parametrize(
    ("cut", "world"), [(FIXED, {}), (lw.Budget(30_000), {"world_size": 8})], ids=["fixed", "budget, eight"]
)
@pytest.mark.parametrize("lengths", sets().values(), ids=sets())
def test_no_strategy_of_papers_costs_less_and_mixes_more_on_any_lengths(lengths, cut, world):
    advice = lw.advise(lengths, cut, **world)
    best = advice.best
    (random,) = [row for row in advice.candidates if row.label == "random"]
    assert len({row.label for row in advice.candidates}) == len(advice.candidates)
    for label in (*PAPERS, "semi-sorted:0.25", "optimal:24", "alternated:6", "bucketed:60"):
        if label.startswith("optimal") and lengths.ndim == 2:
            continue
        price, mixing, steps = worth(lengths, parse_strategy(label, cut=cut), **world)
        if steps <= 2 * random.measures.steps:  # far smaller batches train otherwise
            assert price > best.price or mixing <= best.mixing + CHANCE, label


def ljspeech():
    path = DATA / "ljspeech" / "ljspeech_lengths.csv"
    if not path.exists():
        pytest.skip(f"no {path}: set LENGTHWISE_DATA to the folder with the real lengths")
    return lw.read_lengths(path, column="frames_12p5ms")


CUTS = (lw.FixedSize(8), lw.Budget(50_000, max_sequences=64), lw.DynamicSize(4))


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_rule_by_brute_force(cut, world):
    advice = advised(cut, **world)
    least = min(row.price for row in advice.candidates)
    near, far = ([row for row in advice.candidates if row.price <= most * least] for most in (1.05, 1.15))
    # What mixes half of all there is more than these may cost 15 % more than the least.
    if advice.best.mixing >= max(row.mixing for row in near) + 0.5:
        near = far
    assert advice.best in near
    if advice.best.batching.cut == cut:  # another cut must mix a tenth more
        assert advice.best.mixing >= 0.9 * max(row.mixing for row in near) - 0.005
    else:
        assert advice.best.mixing == max(row.mixing for row in near)
    assert [row.price for row in advice.candidates] == sorted(row.price for row in advice.candidates)


def test_another_cut_whose_steps_are_far_larger_is_left_out():
    giant = np.where(np.arange(2_000) == 7, 50_000, 100 + np.arange(2_000) % 90)
    advice = lw.advise(giant, FIXED, world_size=4)
    assert {row.batching.cut for row in advice.candidates} == {FIXED}
    even = lw.advise(lw.example_lengths("speech", count=2_000), FIXED, world_size=4)
    steps = [row.measures.sequences / row.measures.steps for row in even.candidates]
    assert lw.Budget(16 * even_longest()) in {row.batching.cut for row in even.candidates}
    assert max(steps) <= 2 * 64


def test_batches_that_are_far_smaller_than_asked_are_not_recommended():
    lengths = 1 + np.arange(100) ** 2 % 397
    for world in ({}, {"world_size": 2}):
        advice = lw.advise(lengths, FIXED, **world)
        (random,) = [row for row in advice.candidates if row.label == "random"]
        for row in advice.candidates:
            assert row.ships_in or random.measures.steps >= row.measures.steps / 2
        assert advice.best.measures.steps <= 2 * random.measures.steps


def test_what_cannot_be_recommended_does_not_set_the_least():
    # One batch of 5 sequences; only buckets of one sequence each pad less.
    assert str(lw.advise([3, 9, 27, 50, 51], FIXED)).startswith(
        "You have nothing to gain: with steps as large, nothing computes less than random batches. Shuffle."
    )


def even_longest():
    return int(lw.example_lengths("speech", count=2_000).max())


def test_the_front_is_what_no_other_beats():
    advice = advised(lw.FixedSize(8), world_size=8)
    for row in advice.candidates:
        beaten = any(each.price <= row.price and each.mixing > row.mixing for each in advice.candidates)
        assert not (beaten and row.on_front)
    assert advice.front[0].price == advice.candidates[0].price
    assert max(row.mixing for row in advice.candidates) - advice.front[-1].mixing <= 0.005


def test_within_buys_mixing():
    less, more = (lw.advise(SHORT, FIXED, within=within).best for within in (0.01, 0.3))
    assert less.mixing < more.mixing
    assert less.price < more.price


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
    for row in (advice.best, *advice.shipped):
        price, mixing, _ = worth(SHORT, row.batching, **world)
        assert row.price == pytest.approx(price, rel=1e-9)
        assert row.mixing == mixing


def test_seconds_are_those_of_the_step_cost():
    counts, longest = np.repeat([1, 4, 16, 32], 4), np.tile([50, 200, 900, 2_000], 4)
    cost = lw.StepCost.of(counts, longest, 0.01 + 2e-5 * counts * longest)
    advice = lw.advise(SHORT, lw.FixedSize(8), cost=cost, world_size=2)
    epochs = [
        lw.make_plan(SHORT, advice.best.batching, epoch=epoch, world_size=2) for epoch in range(epochs_to_plan(800))
    ]
    assert advice.unit == "seconds"
    assert advice.best.price == pytest.approx(np.mean([cost.seconds_of(plan) for plan in epochs]))
    assert "take at most 5 % more than the cheapest" in advice.sentence


def test_another_cost_has_its_own_unit():
    advice = lw.advise(SHORT, lw.FixedSize(8), cost=lw.Quadratic(linear=0.0, quadratic=1.0))
    assert advice.unit == "cost"
    assert advice.sentence.count(" costs ") >= 1


@pytest.mark.parametrize("lengths", [[], [7], [7, 7], [7] * 500], ids=["none", "one", "two", "equal"])
@pytest.mark.parametrize("cut", [lw.FixedSize(4), lw.Budget(100)], ids=str)
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_where_nothing_is_to_be_gained_it_says_so(lengths, cut, world):
    advice = lw.advise(lengths, cut, **world)
    assert advice.sentence.startswith("You have nothing to gain")
    assert isinstance(advice.best.batching.order, lw.Shuffled)
    assert advice.best.of_random == 1


@settings(max_examples=12)
@given(length_sets.flat | length_sets.pairs)
def test_any_lengths_have_an_advice(lengths):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advice = lw.advise(lengths, lw.FixedSize(4), world_size=2)
    assert advice.best in advice.candidates
    assert all(row.price >= 0 and 0 <= row.mixing <= 1 for row in advice.candidates)
    lw.make_plan(lengths, advice.best.batching, world_size=2)


def more(one, other):
    """By how much one number is more than another, in the words of the sentence."""
    share = abs(one / other - 1)
    told = f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.1g} %"
    return "as much as" if share < 0.005 else f"{told} {'more' if one > other else 'less'} than"


STEP = lw.StepCost.of(*(np.repeat([1, 4, 16], 3), np.tile([50, 900, 2_000], 3)), np.arange(1.0, 10.0))
ASKED = {
    "fixed": (lw.FixedSize(8), {}),
    "steps": (lw.FixedSize(8), {"world_size": 3, "micro_batches": 2}),
    "budget": (lw.Budget(50_000, max_sequences=64), {}),
    "seconds": (lw.FixedSize(8), {"cost": STEP}),
    "another cost": (lw.FixedSize(8), {"cost": lw.Quadratic(quadratic=0.01)}),
    "more": (lw.FixedSize(8), {"within": 0.3, "seed": 3}),
}


@pytest.mark.parametrize(("cut", "asked"), ASKED.values(), ids=ASKED)
def test_the_sentence_says_the_numbers_of_the_rows(cut, asked):
    advice = lw.advise(SHORT, cut, **asked)
    best, said = advice.best, str(advice)
    rows = {row.label: row for row in advice.candidates}
    verb = {"frames": "computes", "seconds": "takes", "cost": "costs"}[advice.unit]
    world = {"world_size": asked.get("world_size", 1), "micro_batches": asked.get("micro_batches", 1)}
    several = world["world_size"] * world["micro_batches"] > 1
    assert (advice.world_size, advice.micro_batches) == tuple(world.values())
    assert said.startswith(f"Take {best.label.removesuffix(',cut=budget')}: ")
    assert f"{'its steps mix' if several else 'it mixes'} " in said
    assert f", {best.mixing:.2f}" in said or f" mix {best.mixing:.2f}" in said
    if best.label == "random":
        assert "That is what Lightning and the Trainer ship. " in said
    else:
        assert f"An epoch {verb} {more(best.price, rows['random'].price)} random batches (Lightning, Trainer)" in said
    # Beside what trainers ship, in their order, but for random batches.
    others = [row for row in advice.shipped if row.label != "random" and row is not best]
    beside = re.search(r"It \w+ (.* than .*|.* as much as .*), which mix (.*?)(?:\. |\.$)", said)
    for row in others:
        assert f"{more(best.price, row.price)} {row.ships_in.replace(', ', ' and ')}" in beside[1]
        assert f"{row.mixing:.2f}" in beside[2]
    numbers = re.findall(r"\d\.\d\d", beside[2])
    assert sorted(numbers) == sorted(f"{row.mixing:.2f}" for row in others)
    assert beside[0].startswith(f"It {verb} ")
    # What the order was asked for, in percent.
    order = best.batching.order
    if isinstance(order, lw.MaxEntropy):
        assert f"as random as {100 * order.padding:.2g} % padding allows" in said
    # The limit is that of the padding of the best.
    if several:
        assert advice.limit is None
    else:
        assert advice.limit == lw.mixing_limit(SHORT, best.measures.padding_share, bins=best.measures.mixing_bins)
        said_limit = f"({advice.limit:.2f} is the limit at its padding)" in said
        assert said_limit == (best.mixing < advice.limit < 1)
    # Prices are means over epochs of the seed that was given.
    cost = asked.get("cost")
    plans = [
        lw.make_plan(SHORT, best.batching, seed=asked.get("seed", 0), epoch=epoch, **world)
        for epoch in range(epochs_to_plan(len(SHORT)))
    ]
    price = np.mean([epoch_price(plan, getattr(cost, "seconds", cost) or lw.Padded()) for plan in plans])
    useful = 1.0 if cost is not None else SHORT.sum() / world["world_size"]
    assert best.price == pytest.approx(price / useful)
    if not isinstance(best.batching.order, lw.Shuffled):
        assert f"micro_batches={world['micro_batches']}" in advice.code or world["micro_batches"] == 1


def test_a_budget_beside_a_fixed_size_is_explained():
    lengths = lw.example_lengths("speech", count=800)
    advice = lw.advise(lengths, FIXED, world_size=4)
    best = advice.best
    assert best.batching.cut == lw.Budget(16 * int(lengths.max()))
    size = best.measures.sequences / best.measures.steps
    assert str(advice).startswith(f"Take {best.label.removesuffix(',cut=budget')}: ")
    assert (
        f"Cut it by a budget of {16 * int(lengths.max()):,} padded frames, the memory of your longest batch; "
        f"a step then holds {size:,.0f} sequences on average" in str(advice)
    )


@pytest.mark.parametrize(
    ("cut", "budget"),
    [
        (lw.FixedSize(4), lw.Budget(4 * (9 + 7))),
        (lw.FixedSize(4, multiple_of=8), lw.Budget(4 * (16 + 8), multiple_of=8)),
        (lw.FixedSize(4, drop_incomplete=True), None),
        (lw.Budget(100), None),
        (lw.DynamicSize(4), None),
    ],
)
def test_the_budget_of_equal_memory_holds_the_longest_batch(cut, budget):
    assert of_equal_memory(cut, np.array([[9, 2], [3, 7]])) == budget


@pytest.mark.parametrize(
    ("count", "micro_batches", "window"),
    [(100_000, 1, 50 * 16), (100_000, 4, 50 * 64), (6_400, 1, 50 * 16), (1_000, 1, 15 * 16), (40, 1, 16), (0, 1, 1)],
)
def test_the_trainer_sorts_fifty_batches_or_a_quarter_of_the_data(count, micro_batches, window):
    lengths = np.full(count, 10)
    cut = lw.FixedSize(16) if count else lw.FixedSize(1)
    found = {each.ships_in: each.batching for each in shipped(cut, lengths, lw.World(2, micro_batches), dims=1)}
    grouped = found["Trainer's group_by_length"]
    assert grouped == lw.Batching(cut=cut, order=lw.Windowed(window), deal=lw.InTurn(), arrange=lw.InOrder())
    assert found["Lightning, Trainer"] == lw.Batching(cut=cut, order=lw.Shuffled(), deal=lw.InTurn())
    assert found["fairseq"] == lw.Batching(cut=cut, order=lw.Sorted(), deal=lw.Mixed())


def test_the_same_question_has_the_same_answer():
    first, second = (lw.advise(SHORT[:300], FIXED, world_size=2, micro_batches=2, seed=3) for _ in range(2))
    assert first == second
    assert first.as_dict() == second.as_dict()


def test_two_lengths_a_sequence():
    pairs = np.stack([SHORT, SHORT[::-1]], axis=1)
    advice = lw.advise(pairs, lw.FixedSize(8))
    assert advice.limit is None
    assert advice.best.of_random < 0.95
    assert [row.ships_in for row in advice.shipped].count("NeMo, lhotse") == 0


def test_the_code_trains_with_the_best():
    torch = pytest.importorskip("torch")
    for cut in (lw.FixedSize(8), lw.Budget(20_000)):
        advice = lw.advise(SHORT[:400], cut, micro_batches=4)
        names = {
            "lw": lw,
            "lengths": SHORT[:400],
            "dataset": [torch.zeros(4)] * 400,
            "epochs": 2,
            "DataLoader": torch.utils.data.DataLoader,
        }
        exec(advice.code, names)
        assert names["sampler"].batching == advice.best.batching
        assert names["sampler"].micro_batches == 4
        assert names["sampler"].epoch == 1


@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_every_batching_is_written_as_code_that_makes_it(cut):
    advice = advised(cut, **WORLDS["eight"])
    for row in advice.candidates:
        assert eval(write_batching(row.batching), {"lw": lw}) == row.batching


def test_of_many_sequences_a_sample_is_measured(monkeypatch):
    lengths = lw.example_lengths("speech", count=6_000)
    monkeypatch.setattr(questions, "SAMPLE", 3_000)
    advice = lw.advise(lengths, FIXED, cost=lw.Padded())
    assert (advice.measured, advice.sequences) == (3_000, 6_000)
    assert advice.sentence.endswith("Measured on a random 3,000 of the 6,000 sequences.")
    monkeypatch.undo()
    whole = lw.advise(lengths, FIXED, cost=lw.Padded())
    prices = {row.label: row.price for row in whole.candidates}
    # The knobs that count sequences are scaled: as many buckets, each half as large.
    for label in ("optimal:8", "bucketed:750", "random", "sorted"):
        (own,) = [row.price for row in advice.candidates if row.label == label]
        assert own == pytest.approx(prices[label], rel=0.02)


def test_a_sample_holds_several_steps(monkeypatch):
    lengths = lw.example_lengths("speech", count=12_000)
    monkeypatch.setattr(questions, "SAMPLE", 500)  # about a step of 8 ranks with 4 batches of 16
    advice = lw.advise(lengths, FIXED, cost=lw.Padded(), world_size=8, micro_batches=4)
    assert advice.measured == 16 * 8 * 4 * FIXED.batch_size
    monkeypatch.undo()
    whole = lw.advise(lengths, FIXED, cost=lw.Padded(), world_size=8, micro_batches=4)
    assert whole.measured == 12_000
    for found in (advice, whole):
        mixing = {row.label: row.measures.step_mixing for row in found.candidates}
        assert mixing["random"] > 0.95
        assert mixing["sorted"] < 0.5  # of one step it would be 1


def test_knobs_that_count_sequences_are_scaled():
    buckets = lw.Batching(cut=FIXED, order=lw.Bucketed(size=100))
    bins = lw.Batching(cut=FIXED, order=lw.AlternatedSort(30))
    assert on_sample(buckets, 0.1).order == lw.Bucketed(size=10)
    assert on_sample(bins, 0.1).order == lw.AlternatedSort(3)
    other = lw.Batching(cut=FIXED)
    assert on_sample(other, 0.1) is other


def test_dynamic_buckets_hold_as_many_frames_each():
    edges = _edges_of_equal_total(SHORT)
    held = np.bincount(np.searchsorted(edges, SHORT), SHORT)
    assert len(edges) == 30
    assert held.max() < 1.5 * SHORT.sum() / 30 + SHORT.max()


def test_group_by_length_is_that_of_the_trainer():
    utilities = pytest.importorskip("transformers.trainer_pt_utils")
    torch = pytest.importorskip("torch")
    lengths = lw.example_lengths("long-tailed", count=4_000)
    generator = torch.Generator()
    generator.manual_seed(0)
    order = utilities.get_length_grouped_indices(lengths.tolist(), 16, generator=generator)
    theirs = lw.measure([order[start : start + 16] for start in range(0, 4_000, 16)], lengths)
    (ours,) = [row for row in lw.advise(lengths, FIXED).shipped if row.ships_in == "Trainer's group_by_length"]
    assert ours.measures.padding_share == pytest.approx(theirs.padding_share, abs=0.01)
    assert ours.measures.step_length_correlation == pytest.approx(theirs.step_length_correlation, abs=0.1)


REFUSED = {
    "a cut that packs": (
        {"cut": lw.Rows(4_096)},
        "`cut` must be a FixedSize, a Budget or a DynamicSize, but is Rows(",
    ),
    "a number as cut": ({"cut": 16}, "`cut` must be a FixedSize, a Budget or a DynamicSize, but is 16. Give the one"),
    "within below 0": ({"within": -0.1}, "`within` must be finite and at least 0, but is -0.1. "),
    "a class as cost": ({"cost": lw.Quadratic}, "`cost` must be a cost, but is "),
    "a step of other lengths": (
        {"cost": lw.StepCost.of([1, 1, 1, 4, 4, 4], [1, 2, 4] * 2, [1, 2, 3, 4, 5, 6]), "lengths": [[3, 4]] * 9},
        "`cost` must be measured with 2 lengths a sequence, as `lengths` has, but is 1. ",
    ),
    "a number as cost": ({"cost": 3}, "`cost` must be a cost, but is 3. "),
    "no rank": ({"world_size": 0}, "`world_size` must be at least 1, but is 0. "),
    "a sequence over the budget": ({"cut": lw.Budget(10)}, "`budget` must be at least the cost of the costliest "),
    "lengths of 0": ({"lengths": [3, 0]}, "`lengths` must be "),
    "a seed below 0": ({"seed": -1}, "`seed` must be "),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused_in_one_sentence(given, message):
    asked = {"lengths": [30, 20, 40], "cut": FIXED, **given}
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(message)}"):
        lw.advise(asked.pop("lengths"), asked.pop("cut"), **asked)


def test_small_buckets_that_would_be_dropped_whole_are_left_out():
    lengths = sets()["Zipf"][:300]
    advice = lw.advise(lengths, lw.FixedSize(16, drop_incomplete=True))
    (random,) = [row for row in advice.candidates if row.label == "random"]
    assert random.measures.dropped == 300 % 16 * epochs_to_plan(300)
    for row in advice.candidates:  # what is dropped costs nothing, and is no gain
        assert row.ships_in or row.measures.dropped <= random.measures.dropped + 0.01 * row.measures.sequences


@pytest.mark.parametrize("cut", [lw.FixedSize(16, drop_incomplete=True), lw.DynamicSize(16, rule="paper")])
def test_cuts_that_form_no_steps_are_advised_on_without_them(cut):
    labels = {row.label for row in lw.advise(sets()["Zipf"][:300], cut, world_size=4).candidates}
    assert "random-steps" not in labels
    assert "random" in labels


def test_more_steps_are_said():
    giant = np.where(np.arange(800) == 7, 50_000, 100 + np.arange(800) % 90)
    advice = lw.advise(giant, FIXED)
    (random,) = [row for row in advice.candidates if row.label == "random"]
    more = advice.best.measures.steps / random.measures.steps - 1
    assert advice.best.label.startswith("optimal:")
    assert f"An epoch has {100 * more:.0f} % more steps, because the last batch of each bucket is not full." in str(
        advice
    )


def test_what_mixes_far_more_for_somewhat_more_is_said_and_had():
    lengths, cut = lw.example_lengths("speech", count=2_000), lw.Budget(12_000)
    advice = lw.advise(lengths, cut, world_size=4)
    said = re.search(
        r"Within (\d+) % of the cheapest, (.+) mixes ([\d.]+) and computes (\d+) % more\.$",
        str(advice),
    )
    within, label, mixing, more = said.groups()
    wider = lw.advise(lengths, cut, world_size=4, within=int(within) / 100)
    assert wider.best.label == label == advice.more_mixed.label
    assert wider.more_mixed is None
    assert f"{wider.best.mixing:.2f}" == mixing
    assert wider.best.mixing > advice.best.mixing + 0.25
    assert f"{100 * (wider.best.price / advice.best.price - 1):.0f}" == more
    assert re.search(r"\. Within \d+ % of the cheapest, ", str(wider)) is None


@pytest.mark.parametrize(
    ("prices", "mixing", "random", "place"),
    [
        ([100.0, 105.0, 105.1], [0.1, 0.2, 0.3], None, 1),  # 5 % above the least is within it
        ([100.0, 105.0, 115.0], [0.0, 0.25, 0.75], None, 2),  # 15 % above it buys a leap, and 0.5 is one
        ([100.0, 105.0, 115.0], [0.0, 0.25, 0.74], None, 1),
        ([100.0, 105.0, 115.1], [0.0, 0.25, 1.0], None, 1),
        ([101.0, 100.0], [0.1, 0.2], 0, 0),  # random batches within 1 % of the least stay, whatever mixes more
        ([101.1, 100.0], [0.1, 0.2], 0, 1),
        ([102.0, 101.0, 100.0], [0.5, 0.5, 0.4], None, 1),  # of those that mix alike, the least price
    ],
)
def test_the_rule_at_its_limits(prices, mixing, random, place):
    assert choose([price / 100.0 for price in prices], mixing, random=random) == place
    # Shares know no unit: in another one, of a power of two, nothing is rounded otherwise.
    assert choose([2.0**20 * (price / 100.0) for price in prices], mixing, random=random) == place


def test_a_leap_in_mixing_is_worth_more_than_five_percent():
    lengths = lw.example_lengths("long-tailed", count=4_000)
    advice = lw.advise(lengths, FIXED, world_size=8)
    least = min(row.price for row in advice.candidates)
    near = [row.mixing for row in advice.candidates if row.price <= 1.05 * least]
    assert 1.05 < advice.best.price / least <= 1.15
    assert advice.best.mixing >= max(near) + 0.5
    more = f"{100 * (advice.best.price / least - 1):.0f}"
    assert (
        f"It computes {more} % more than the cheapest, and its steps mix {advice.best.mixing:.2f}, at least 0.5 "
        in str(advice)
    )
    # Who says how much may be spent for mixing has that, and no leap.
    assert lw.advise(lengths, FIXED, world_size=8, within=0.05).best.mixing == max(near)


def test_what_costs_less_but_cannot_be_recommended_is_told_beside_random_batches():
    advice = lw.advise([5, 9, 3, 12, 7], lw.FixedSize(16))
    assert advice.best.label == "random"
    assert min(row.price for row in advice.candidates) < advice.best.price
    assert advice.sentence == (
        "You have nothing to gain: with steps as large, nothing computes less than random batches. Shuffle. "
        "dynamic-buckets (NeMo, lhotse) computes 40 % less than they do, but its steps hold 1, and those of random "
        "batches 5 sequences on average."
    )


def test_random_batches_that_only_a_wide_within_affords_are_not_called_the_cheapest():
    advice = lw.advise(range(1, 2_000), FIXED, within=2.0)
    assert advice.best.label == "random"
    assert advice.best.price > 1.5 * advice.candidates[0].price
    assert advice.sentence.startswith(
        "Take random: random order. Of all that compute at most 200 % more than the cheapest, it mixes most, 0.9"
    )
    assert "nothing to gain" not in advice.sentence


@pytest.mark.parametrize(
    ("cut", "world", "random_steps"),
    [
        (lw.FixedSize(8), (1, 1), []),
        (lw.FixedSize(8), (2, 1), ["random-steps"]),
        (lw.FixedSize(8), (1, 4), ["random-steps"]),
        (lw.Budget(900), (2, 1), ["random-steps"]),
        (lw.Budget(900), (1, 1), []),
    ],
)
def test_what_is_tried_between_the_paddings_of_sorted_and_of_random_batches(cut, world, random_steps):
    """Random steps where a step has several batches."""
    found = ours(cut, World(*world), least=0.01, most=0.04)
    assert [each.label for each in found] == [*random_steps, "max-entropy:0.02", "max-entropy:0.03"]
    for each in found:
        assert each.batching == parse_strategy(each.label, cut=cut)


def test_what_costs_least_is_sorted():
    assert sort_alone(lw.FixedSize(8)).batching == lw.Batching(cut=lw.FixedSize(8), order=lw.Sorted())


@pytest.mark.parametrize(("mixing", "taken"), [(0.55, FIXED), (0.554, FIXED), (0.556, BUDGET)])
def test_another_cut_must_mix_a_tenth_more_and_by_more_than_chance(mixing, taken):
    """Beside 0.5: more than 0.55, and 0.005 beyond it."""
    row = advised(FIXED).best
    own = replace(row, measures=replace(row.measures, step_mixing=0.5))
    other = replace(row, batching=lw.Batching(cut=BUDGET), measures=replace(row.measures, step_mixing=mixing))
    options = {"cost": None, "share": None, "noise_scale": None, "within": None, "seed": 0}
    question = questions.read_question(SHORT, FIXED, world_size=1, micro_batches=1, **options)
    assert _most_mixed([own, other], question).batching.cut == taken

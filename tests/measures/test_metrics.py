"""Every measure, on tiny plans worked by hand and on random plans counted out in plain Python."""

import dataclasses
import random
import re

import numpy as np
import pytest

import lengthwise as lw
import menu


def laid_out(lengths, steps, *, padded=None):
    """A plan of the batches given: steps [steps][micro_batches][ranks] of sequence numbers, no planner asked."""
    batches = [batch for step in steps for micro in step for batch in micro]
    sizes = [len(batch) for batch in batches]
    longest = [max(lengths[number] for number in batch) for batch in batches] if padded is None else padded
    return lw.Plan(
        sequences=np.array([number for batch in batches for number in batch], np.int64),
        offsets=np.cumsum([0, *sizes]),
        padded_lengths=np.array(longest, np.int64).reshape(-1, 1),
        costs=np.array(sizes, np.float64) * longest,
        grid=np.arange(len(batches)).reshape(len(steps), len(steps[0]), len(steps[0][0])),
        spans=None,
        count=len(lengths),
        batching="{}",
        seed=0,
        epoch=0,
        lengths_fingerprint=lw.fingerprint(lengths),
        max_cost=6.0,
    )


def test_every_measure_of_a_tiny_plan():
    lengths = [1, 2, 3, 6, 9]
    plan = laid_out(lengths, [[[[0, 1], [2]]], [[[3], [4]]]])  # padded to 2, 3, 6, 9
    found = lw.measure(plan, lengths)
    assert (found.sequences, found.batches, found.steps) == (5, 4, 2)
    assert found.zero_padding_rate == (1 / 4 + 0 + 0 + 0) / 4
    assert found.weighted_zero_padding_rate == 2 * (1 / 4) / 5
    assert found.padding_share == pytest.approx(1 / 22)
    assert found.average_batch_length == (2 + 3 + 6 + 9) / 4
    assert found.weighted_average_batch_length == pytest.approx((2 * 2 + 3 + 6 + 9) / 5)
    assert (found.smallest_batch, found.mean_batch, found.largest_batch) == (1, 5 / 4, 2)
    assert found.largest_cost == 9
    # The ranks of step 0 compute 4 and 3, those of step 1 compute 6 and 9: of 2 x (4 + 9) a share of 4 is waited.
    assert found.straggler_waste == pytest.approx(4 / 26)
    assert (found.dropped, found.repeated, found.over_max_cost) == (0, 0, 1)
    assert found.step_length_correlation == 0.0, "two steps are too few"


@pytest.mark.parametrize(("low", "high", "waste"), [(0.0, 0.0, 0.0), (5e-324, 1e-323, 0.25), (5e307, 1e308, 0.25)])
def test_ranks_wait_the_same_share_whatever_a_frame_costs(low, high, waste):
    """A step of two micro-batches; two of 1e308 are together beyond all numbers."""
    plan = laid_out([1, 1, 1, 1], [[[[0], [1]], [[2], [3]]]])
    costs = np.array([high, low, high, low])
    assert lw.measure(dataclasses.replace(plan, costs=costs), [1, 1, 1, 1]).straggler_waste == waste


@pytest.mark.parametrize("long", [3, 977])
def test_steps_that_take_turns_are_correlated_by_minus_one_and_not_by_less(long):
    lengths = np.array([1, long] * 20) * 0.1 + 1
    found = lw.measure([[number] for number in range(40)], np.rint(10 * lengths).astype(int)).step_length_correlation
    assert -1.0 <= found < -0.999999


def counted_out(plan, items):
    """The measures that need no logarithm, batch by batch in plain Python."""
    batches = [plan.sequences[a:b].tolist() for a, b in zip(plan.offsets[:-1], plan.offsets[1:], strict=True)]
    longest, sequences = plan.padded_lengths.sum(axis=1).tolist(), sum(map(len, batches))
    used = [sum(items[number] for number in batch) for batch in batches]
    computed = [len(batch) * each for batch, each in zip(batches, longest, strict=True)]
    rates = [1 - a / b for a, b in zip(used, computed, strict=True)]
    ranks = [[sum(plan.costs[number] for number in column) for column in step.T] for step in plan.grid]
    return {
        "sequences": len(items),
        "batches": len(batches),
        "steps": len(plan.grid),
        "zero_padding_rate": sum(rates) / len(rates),
        "weighted_zero_padding_rate": sum(len(b) * r for b, r in zip(batches, rates, strict=True)) / sequences,
        "padding_share": 1 - sum(used) / sum(computed),
        "average_batch_length": sum(longest) / len(longest),
        "weighted_average_batch_length": sum(computed) / sequences,
        "smallest_batch": min(map(len, batches)),
        "mean_batch": sequences / len(batches),
        "largest_batch": max(map(len, batches)),
        "largest_cost": max(plan.costs),
        "straggler_waste": 1 - sum(sum(step) / len(step) for step in ranks) / sum(max(step) for step in ranks),
        "step_length_correlation": lag_one([step_mean(step, batches, items) for step in plan.grid]),
        "step_length_variance": step_variance(plan, batches, items),
    }


def step_mean(step, batches, items):
    members = [items[number] for batch in step.reshape(-1) for number in batches[batch]]
    return sum(members) / len(members)


def step_variance(plan, batches, items):
    """The squares of how far the means of steps lie off, each over its expectation in a random sample."""
    lengths = [items[number] for number in plan.sequences]
    mean, n, ratios = sum(lengths) / len(lengths), len(lengths), []
    variance = sum((length - mean) ** 2 for length in lengths) / n
    for step in plan.grid:
        taken = sum(len(batches[batch]) for batch in step.reshape(-1))
        if taken < n and variance:
            expected = variance / taken * (n - taken) / (n - 1)
            ratios.append((step_mean(step, batches, items) - mean) ** 2 / expected)
    return sum(ratios) / len(ratios) if ratios else 1.0


def lag_one(series):
    if len(series) < 3 or len(set(series[1:])) == 1 or len(set(series[:-1])) == 1:
        return 0.0
    return float(np.corrcoef(series[:-1], series[1:])[0, 1])


@pytest.mark.parametrize("order", menu.ORDERS)
def test_measures_of_random_plans_are_those_counted_out(order):
    chance = random.Random(order)
    for dims in (1, 1, 2):
        one_length = menu.OF_PAIRS.get(order) is not menu.ORDERS[order]
        shape = (chance.randint(5, 60), 1 if one_length else dims)
        lengths = np.array([[chance.randint(1, 390) for _ in range(shape[1])] for _ in range(shape[0])])
        lengths = lengths[:, 0] if shape[1] == 1 else lengths
        cut = lw.DynamicSize(2)
        deal = menu.suit(menu.DEALS[chance.choice(list(menu.DEALS))], cut, lw.Padded(), menu.ORDERS[order])
        batching = lw.Batching(order=menu.ORDERS[order], cut=cut, deal=deal)
        world = {"world_size": chance.randint(1, 2), "micro_batches": chance.randint(1, 2)}
        plan = lw.make_plan(lengths, batching, **world)
        items = lengths.reshape(len(lengths), -1).sum(axis=1).tolist()
        found = lw.measure(plan, lengths).as_dict()
        for name, expected in counted_out(plan, items).items():
            assert found[name] == pytest.approx(expected, abs=1e-9), name


@pytest.mark.parametrize("dims", [1, 2])
def test_anybodys_batches_measure_as_the_plan_that_they_are(dims):
    lengths = lw.example_lengths(count=300)
    lengths = lengths if dims == 1 else np.stack([lengths, lengths[::-1]], axis=1)
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(8)), world_size=2, micro_batches=2)
    own = lw.measure(plan, lengths)
    batches = [plan.batch(number).tolist() for number in plan.grid.reshape(-1)]  # step by step, rank after rank
    arrays = (np.array(batch, np.int32) for batch in batches)
    for theirs in (batches, tuple(map(tuple, batches)), arrays):
        found = lw.measure(theirs, lengths, world_size=2, micro_batches=2)
        assert found.as_dict() == pytest.approx(own.as_dict())
    alone = lw.measure(batches, lengths)  # without a world a batch is a step
    assert (alone.steps, alone.batches, alone.straggler_waste) == (own.batches, own.batches, 0.0)


def test_what_is_missing_and_what_is_repeated_shows():
    found = lw.measure([[0, 1], [1, 1], [3]], [4, 2, 9, 9, 9])
    assert (found.sequences, found.dropped, found.repeated, found.over_max_cost) == (5, 2, 1, 0)
    assert found.padding_share == 1 - (4 + 2 + 2 + 2 + 9) / (8 + 4 + 9)
    dropping = list(range(0, 300 - 300 % 16))  # as a loader with drop_last
    batches = [dropping[start : start + 16] for start in range(0, len(dropping), 16)]
    assert lw.measure(batches, lw.example_lengths(count=300)).dropped == 300 % 16


def test_epochs_are_measured_as_one_long_one():
    lengths = lw.example_lengths(count=500)
    batching = lw.Batching(cut=lw.Budget(9_000), deal=lw.InTurn(tail="drop"))  # some, other ones each epoch
    plans = [lw.make_plan(lengths, batching, epoch=epoch, world_size=2) for epoch in range(5)]
    each = [lw.measure(plan, lengths) for plan in plans]
    together = lw.measure(plans, lengths)
    assert together.epochs == 5
    assert together.dropped > 0
    for count in ("sequences", "batches", "steps", "dropped", "repeated", "over_max_cost"):
        assert getattr(together, count) == sum(getattr(one, count) for one in each)
    assert together.smallest_batch == min(one.smallest_batch for one in each)
    assert together.largest_cost == max(one.largest_cost for one in each)
    rates = [one.zero_padding_rate * one.batches for one in each]
    assert together.zero_padding_rate == pytest.approx(sum(rates) / together.batches)


def test_the_correlation_of_steps_does_not_span_epochs():
    rising = laid_out([1, 2, 3, 4], [[[[number]]] for number in range(4)])
    assert lw.measure([rising, rising], [1, 2, 3, 4]).step_length_correlation == pytest.approx(1.0)


WRONG = {
    "a number too large": ([[0, 1], [2, 4]], "`batches` must be of sequence numbers from 0 to 3, but is 4 at batch 1."),
    "below 0": ([[0, 1], [-1]], "`batches` must be of sequence numbers from 0 to 3, but is -1 at batch 1. "),
    "an empty batch": ([[0, 1], []], "`batches` must be of at least one sequence each, but is [] at batch 1. Leave"),
    "no batches": ([], "`plans` must be one plan or more, or batches, but is []. "),
    "numbers": ([0, 1, 2], "`batches[0]` must be a list of whole numbers, but is 0. Give batches. From single numbers"),
    "fractions": ([[0.5]], "`batches[0]` must be a list of whole numbers, but is [0.5]. "),
    "masks": ([[True, False]], "`batches[0]` must be a list of whole numbers, but is [True, False]. "),
    "words": ("batches", "`plans` must be a Plan or batches, but is 'batches'. "),
    "words in a list": (["ab", "cd"], "`batches[0]` must be a list of whole numbers, but is 'ab'. "),
    "chunks": ([[[0, 0, 5], [1, 0, 5]]], "`batches[0]` must be a list of whole numbers, but is [["),
}


@pytest.mark.parametrize(("batches", "message"), WRONG.values(), ids=WRONG)
def test_batches_that_cannot_be_are_refused_in_one_sentence(batches, message):
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(message)}"):
        lw.measure(batches, [1, 2, 3, 4])


def test_a_world_that_does_not_go_with_batches_is_refused():
    for batches, ranks, message in (
        ([[0], [1], [2]], 2, r"`batches` must be a multiple of world_size x micro_batches, 2, but is 3\. Leave out "),
        ([[0]], 0, r"`world_size` must be at least 1, but is 0\. "),
        (laid_out([1, 2, 3, 4], [[[[0, 1, 2, 3]]]]), 2, "`world_size` must be left out with a plan, but is 2"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            lw.measure(batches, [1, 2, 3, 4], world_size=ranks)


def test_how_much_steps_vary_does_not_change_with_the_unit():
    """Squares of long lengths are more than 64 bits hold."""
    lengths, unit = np.array([5, 9, 2, 4, 7, 7]), 10**9
    found, scaled = (lw.measure([[0, 1], [2, 3], [4, 5]], each) for each in (lengths, unit * lengths))
    # Of V = 5.22: steps of two vary by 5.22 / 2 x 4 / 5, and are 4/3, 8/3 and 4/3 from the mean of 17/3.
    assert found.step_length_variance == pytest.approx((16 + 64 + 16) / 9 / 3 / (47 / 9 / 2 * 4 / 5))
    assert scaled.step_length_variance == pytest.approx(found.step_length_variance)


def test_print_says_in_words_what_most_people_need():
    told = str(lw.measure([[0, 1], [2, 2]], [5, 9, 2, 4]))  # padded to 9 and 2: 4 of 22 frames
    first, padding, computed, randomness, last = told.splitlines()
    assert first == "4 sequences in 2 batches of 2, 2 steps"
    assert padding == "padding   18.2 %  of the computed frames"
    assert randomness.startswith("random ")
    assert computed == "computed  1.22    frames for each frame of data"
    assert last == "dropped: 1, repeated: 1, batches over the budget: 0"


def test_print_speaks_of_waiting_where_a_step_has_several_batches():
    told = str(lw.measure([[0, 1], [2], [3], [4, 5]], [5, 9, 2, 4, 1, 1], world_size=2))  # costs 18 and 2, 4 and 2
    assert told.startswith("6 sequences in 4 batches of 1 to 2, 2 steps\n")
    assert "\nwaiting   40.9 %  of the time of all ranks\n" in told  # 1 - (10 + 3) / (18 + 4)
    # 26 frames for 22, in 22 / 13 of the time that all ranks would need.
    assert "\nprice     2.00    the frames computed, divided by the share of time without waiting\n" in told

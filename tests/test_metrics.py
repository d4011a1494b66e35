"""Every measure, on tiny plans worked by hand and on random plans counted out in plain Python."""

import dataclasses
import json
import math
import random

import numpy as np
import pytest

import choices
import lengthwise as lw


def laid_out(lengths, steps, *, padded=None):
    """A plan of the batches given: steps [steps][micro_batches][ranks] of sequence numbers, no planner asked."""
    batches = [batch for step in steps for micro in step for batch in micro]
    sizes = [len(batch) for batch in batches]
    longest = padded or [max(lengths[number] for number in batch) for batch in batches]
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
        limit=6.0,
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
    assert (found.dropped, found.repeated, found.over_limit) == (0, 0, 1)
    assert found.step_length_correlation == 0.0, "two steps are too few"
    assert found.mixing_bins == 2


def test_measures_are_json_ready():
    found = lw.measure(laid_out([1, 2], [[[[0, 1]]]]), [1, 2]).as_dict()
    assert json.loads(json.dumps(found)) == found
    assert list(found)[:3] == ["sequences", "batches", "steps"]


@pytest.mark.parametrize(("low", "high", "waste"), [(0.0, 0.0, 0.0), (5e-324, 1e-323, 0.25), (5e307, 1e308, 0.25)])
def test_ranks_wait_the_same_share_whatever_a_frame_costs(low, high, waste):
    """A step of two micro-batches; two of 1e308 are together beyond all numbers."""
    plan = laid_out([1, 1, 1, 1], [[[[0], [1]], [[2], [3]]]])
    costs = np.array([high, low, high, low])
    assert lw.straggler_waste(dataclasses.replace(plan, costs=costs)) == waste


def test_micro_batches_of_a_rank_add_up_before_ranks_are_compared():
    lengths = [4, 1, 2, 3]
    plan = laid_out(lengths, [[[[0], [3]], [[1], [2]]]])  # rank 0 computes 4 + 1, rank 1 3 + 2
    assert lw.straggler_waste(plan) == 0.0


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([1, 2, 3, 4], 1.0),
        ([1, 3, 1, 3, 1], -1.0),
        ([2, 2, 2, 2], 0.0),
        # 1, 2, 4 and 2, 4, 1, less their mean 7/3, times 3: (-4, -1, 5) and (-1, 5, -4), whose product is -21 to 42.
        ([1, 2, 4, 1], -0.5),
    ],
)
def test_the_correlation_of_successive_steps(steps, expected):
    plan = laid_out(steps, [[[[number]]] for number in range(len(steps))])
    assert lw.measure(plan, steps).step_length_correlation == pytest.approx(expected)


def test_mixing_of_batches_that_tell_all_half_or_nothing():
    lengths = [1] * 600 + [2] * 600
    short, long = range(600), range(600, 1_200)
    pure = [[[[a, a + 1]]] for a in range(0, 1_200, 2)]
    assert lw.mixing(laid_out(lengths, pure), lengths, bins=2) == pytest.approx(
        math.exp(-1 / 2_400) / 2
    )  # less the bias
    mixed = [[[[a, b]]] for a, b in zip(short, long, strict=True)]
    assert lw.mixing(laid_out(lengths, mixed), lengths, bins=2) == 1.0
    # A third of the short ones in batches of their own: of the rest, 400 short and 600 long, all padded to 2.
    some = [[[[a, a + 1]]] for a in range(0, 200, 2)] + [[[list(range(200, 1_200))]]]
    entropy = -(0.4 * math.log(0.4) + 0.6 * math.log(0.6))
    information = math.log(2) - 1_000 / 1_200 * entropy
    bias = (3 - 2 - 2 + 1) / (2 * 1_200)
    assert lw.mixing(laid_out(lengths, some), lengths, bins=2) == pytest.approx(math.exp(-information + bias))


def test_mixing_of_k_kinds_kept_apart_is_one_in_k():
    lengths = list(np.repeat(np.arange(1, 11), 100))
    apart = [[[list(range(a, a + 10))]] for a in range(0, 1_000, 10)]
    assert lw.mixing(laid_out(lengths, apart), lengths, bins=10) == pytest.approx(1 / 10, rel=0.01)


def test_steps_mix_what_batches_do_not():
    lengths = [1] * 400 + [9] * 400
    apart = [[[[a, a + 1], [b, b + 1]]] for a, b in zip(range(0, 400, 2), range(400, 800, 2), strict=True)]
    plan = laid_out(lengths, apart)
    assert lw.mixing(plan, lengths, bins=2) == pytest.approx(1 / 2, rel=1e-3)
    assert lw.step_mixing(plan, lengths, bins=2) == 1.0
    alone = [[[[a, a + 1]]] for a in range(0, 800, 2)]
    assert lw.step_mixing(laid_out(lengths, alone), lengths) == lw.mixing(laid_out(lengths, alone), lengths)


def test_epochs_are_pooled():
    lengths = lw.example_lengths(count=2_000)
    batching = lw.Batching(cut=lw.FixedSize(8), padding=0.1)
    plans = [lw.make_plan(lengths, batching, epoch=epoch) for epoch in range(6)]
    pooled = lw.mixing(plans, lengths, bins=32)
    assert pooled == pytest.approx(np.mean([lw.mixing(plan, lengths, bins=32) for plan in plans]), abs=0.03)
    assert lw.mixing(plans[:1], lengths) == lw.mixing(plans[0], lengths)
    assert 0 < lw.step_mixing(plans, lengths) <= 1


def test_lengths_of_another_plan_are_refused():
    plan = laid_out([1, 2], [[[[0, 1]]]])
    for asked in (lw.measure, lw.mixing, lw.step_mixing):
        with pytest.raises(ValueError, match=r"^`lengths` must be those of the plan"):
            asked(plan, [2, 1])


def counted_out(plan, items):
    """The measures that need no logarithm, batch by batch in plain Python."""
    batches = [plan.sequences[a:b].tolist() for a, b in zip(plan.offsets[:-1], plan.offsets[1:], strict=True)]
    longest = plan.padded_lengths.sum(axis=1).tolist()
    used = [sum(items[number] for number in batch) for batch in batches]
    computed = [len(batch) * each for batch, each in zip(batches, longest, strict=True)]
    rates = [1 - a / b for a, b in zip(used, computed, strict=True)]
    ranks = [[sum(plan.costs[number] for number in column) for column in step.T] for step in plan.grid]
    return {
        "sequences": len(items),
        "batches": len(batches),
        "steps": len(plan.grid),
        "zero_padding_rate": sum(rates) / len(rates),
        "weighted_zero_padding_rate": sum(len(b) * r for b, r in zip(batches, rates, strict=True))
        / sum(map(len, batches)),
        "padding_share": 1 - sum(used) / sum(computed),
        "average_batch_length": sum(longest) / len(longest),
        "weighted_average_batch_length": sum(computed) / sum(map(len, batches)),
        "smallest_batch": min(map(len, batches)),
        "mean_batch": sum(map(len, batches)) / len(batches),
        "largest_batch": max(map(len, batches)),
        "largest_cost": max(plan.costs),
        "straggler_waste": 1 - sum(sum(step) / len(step) for step in ranks) / sum(max(step) for step in ranks),
        "step_length_correlation": lag_one([step_mean(step, batches, items) for step in plan.grid]),
    }


def step_mean(step, batches, items):
    members = [items[number] for batch in step.reshape(-1) for number in batches[batch]]
    return sum(members) / len(members)


def lag_one(series):
    if len(series) < 3 or len(set(series[1:])) == 1 or len(set(series[:-1])) == 1:
        return 0.0
    return float(np.corrcoef(series[:-1], series[1:])[0, 1])


def steps_padded(plan):
    """Of each sequence, the mean padded length of the sequences of the step that takes it first."""
    longest, sizes = plan.padded_lengths.sum(axis=1).tolist(), plan.batch_sizes.tolist()
    mean_of = {}
    for step in plan.grid.reshape(plan.steps, -1).tolist():
        mean = sum(longest[batch] * sizes[batch] for batch in step) / sum(sizes[batch] for batch in step)
        mean_of = dict.fromkeys(step, mean) | mean_of
    return [mean_of[batch] for batch in range(len(sizes)) for _ in range(sizes[batch])]


def mixing_counted_out(sizes, padded, bins):
    """exp(-I) by the definition, in plain Python; the bin of a value is that of the middle of its ranks."""

    def binned(values):
        middle = {v: sum(w < v for w in values) + sum(w == v for w in values) / 2 for v in set(values)}
        return [min(bins - 1, int(middle[v] * bins / len(values))) for v in values]

    pairs = list(zip(binned(sizes), binned(padded), strict=True))
    count = len(pairs)
    xs, ts = [x for x, _ in pairs], [t for _, t in pairs]
    information = sum(
        pairs.count(pair) / count * math.log(pairs.count(pair) * count / xs.count(pair[0]) / ts.count(pair[1]))
        for pair in set(pairs)
    )
    bias = (len(set(pairs)) - len(set(xs)) - len(set(ts)) + 1) / (2 * count)
    return math.exp(-max(0.0, information - bias))


@pytest.mark.parametrize("order", choices.ORDERS)
def test_measures_of_random_plans_are_those_counted_out(order):
    chance = random.Random(order)
    for dims in (1, 1, 2):
        one_length = choices.needs_one_length(choices.ORDERS[order], None)
        shape = (chance.randint(5, 60), 1 if one_length else dims)
        lengths = np.array([[chance.randint(1, 390) for _ in range(shape[1])] for _ in range(shape[0])])
        lengths = lengths[:, 0] if shape[1] == 1 else lengths
        deal = choices.DEALS[chance.choice(list(choices.DEALS))]
        batching = lw.Batching(order=choices.ORDERS[order], cut=lw.DynamicSize(2), deal=deal)
        world = {"world_size": chance.randint(1, 2), "micro_batches": chance.randint(1, 2)}
        plan = lw.make_plan(lengths, batching, **world)
        items = lengths.reshape(len(lengths), -1).sum(axis=1).tolist()
        found = lw.measure(plan, lengths).as_dict()
        for name, expected in counted_out(plan, items).items():
            assert found[name] == pytest.approx(expected, abs=1e-9), name
        sizes = [items[number] for number in plan.sequences]
        padded = np.repeat(plan.padded_lengths.sum(axis=1), plan.batch_sizes).tolist()
        bins = found["mixing_bins"]
        assert found["mixing"] == pytest.approx(mixing_counted_out(sizes, padded, bins))
        assert found["step_mixing"] == pytest.approx(mixing_counted_out(sizes, steps_padded(plan), bins))
        assert lw.mixing(plan, lengths, bins=5) == pytest.approx(mixing_counted_out(sizes, padded, 5))

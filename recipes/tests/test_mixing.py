"""Mixing of batches and of steps, counted out in plain Python."""

import math
import random

import numpy as np
import pytest

import lengthwise as lw
import menu
from lengthwise_recipes.mixing import default_bins, measure_mixing


def padded_by_step(plan):
    """Of each sequence, the mean padded length of the sequences of the step that takes it first."""
    longest, sizes = plan.padded_lengths.sum(axis=1).tolist(), plan.batch_sizes.tolist()
    mean_of = {}
    for step in plan.grid.reshape(plan.steps, -1).tolist():
        mean = sum(longest[batch] * sizes[batch] for batch in step) / sum(sizes[batch] for batch in step)
        mean_of = dict.fromkeys(step, mean) | mean_of
    return [mean_of[batch] for batch in range(len(sizes)) for _ in range(sizes[batch])]


def grassberger(values):
    """The entropy by equation 30 of Grassberger 2003, with G by its recursion, value by value."""

    def of(count):
        if count == 1:
            return -0.5772156649015329 - math.log(2)
        return of(1) + 2 if count == 2 else of(count - 1) if count % 2 else of(count - 2) + 2 / (count - 1)

    return math.log(len(values)) - sum(of(values.count(value)) for value in values) / len(values)


def mixing_counted_out(sizes, padded, bins):
    """exp(-I) by the definition, in plain Python; the bin of a value is that of the middle of its ranks."""

    def binned(values):
        middle = {v: sum(w < v for w in values) + sum(w == v for w in values) / 2 for v in set(values)}
        return [min(bins - 1, int(middle[v] * bins / len(values))) for v in values]

    xs, ts = binned(sizes), binned(padded)
    information = grassberger(xs) + grassberger(ts) - grassberger(list(zip(xs, ts, strict=True)))
    return math.exp(-max(0.0, information))


@pytest.mark.parametrize("order", menu.ORDERS)
def test_mixing_of_random_plans_is_that_counted_out(order):
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
        sizes = [items[number] for number in plan.sequences]
        padded = np.repeat(plan.padded_lengths.sum(axis=1), plan.batch_sizes).tolist()
        for bins in (2, 5):
            assert measure_mixing(plan, lengths, bins=bins) == pytest.approx(mixing_counted_out(sizes, padded, bins))
            expected = mixing_counted_out(sizes, padded_by_step(plan), bins)
            assert measure_mixing(plan, lengths, bins=bins, steps=True) == pytest.approx(expected)


def test_epochs_of_chunks_and_of_whole_sequences_are_pooled():
    lengths = lw.example_lengths(count=400)
    whole = lw.Batching(cut=lw.FixedSize(8))
    chunked = lw.Batching(cut=lw.FixedSize(8), chunks=lw.Chunks(300, step=200))
    plans = [lw.make_plan(lengths, batching, epoch=epoch) for epoch in (0, 1) for batching in (chunked, whole)]
    items = [lengths if plan.spans is None else np.ptp(plan.spans[:, 1:], 1) for plan in plans]
    sizes = np.concatenate([own[plan.sequences] for own, plan in zip(items, plans, strict=True)])
    padded = np.concatenate([np.repeat(plan.padded_lengths[:, 0], plan.batch_sizes) for plan in plans])
    for bins in (6, None):
        expected = mixing_counted_out(sizes.tolist(), padded.tolist(), bins or default_bins(len(sizes)))
        assert measure_mixing(plans, lengths, bins=bins) == pytest.approx(expected)


def test_a_step_of_one_batch_mixes_as_the_batch_does_and_an_empty_plan_as_a_random_one():
    lengths = lw.example_lengths(count=300)
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(8)))
    assert measure_mixing(plan, lengths, steps=True) == measure_mixing(plan, lengths)
    nothing = lw.make_plan([], lw.Batching(cut=lw.FixedSize(8)))
    assert measure_mixing(nothing, []) == measure_mixing(nothing, [], steps=True) == 1.0


def test_other_lengths_and_no_bins_are_refused():
    plan = lw.make_plan([1, 2, 3, 4], lw.Batching(cut=lw.FixedSize(2)))
    with pytest.raises(ValueError, match=r"^`bins` must be at least 1, but is 0\."):
        measure_mixing(plan, [1, 2, 3, 4], bins=0)
    with pytest.raises(ValueError, match=r"^`lengths` must be those of the plan, of fingerprint 8837b98d3b15e73c, but"):
        measure_mixing(plan, [1, 2, 3, 5])

"""Measures of packed rows: how full they are, and how randomly sequences meet in them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import length_sets
import lengthwise as lw
import menu
from lengthwise import _kernels


@pytest.mark.parametrize("most", [2, 4, 16])
def test_each_member_meets_all_others_of_a_small_group_and_as_many_of_a_large_one(most):
    sizes = np.array([1, 2, 3, 5, 8, 16, 17, 18, 40])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    joint = np.zeros((sizes.sum(), sizes.sum()))
    paired, squares = _kernels.count_pairs(np.arange(sizes.sum()), offsets, most, joint)
    assert joint.max() <= 1.0
    both = joint + joint.T
    for start, size in zip(offsets, sizes, strict=False):
        own = both[start : start + size, start : start + size]
        met = min(most, size - 1)
        assert np.diag(own).tolist() == [0.0] * size
        assert (own > 0).sum(axis=1).tolist() == [met] * size
        assert own[own > 0] == pytest.approx(1 / met if met else 0.0)
    assert paired == sizes[1:].sum() == pytest.approx(both.sum())
    assert squares == pytest.approx((both**2).sum())


@pytest.mark.parametrize(("mean", "least_fill", "least_randomness"), [(500, 0.998, 0.99), (1_400, 0.995, 0.8)])
def test_rows_are_full_and_random_by_default(mean, least_fill, least_randomness):
    lengths = length_sets.spread_out(mean, 50_000)
    measures = lw.measure(lw.make_plan(lengths, lw.Batching(cut=lw.Rows(4_096))), lengths)
    assert measures.fill == pytest.approx(lengths.sum() / (measures.rows * 4_096))
    assert measures.fill >= least_fill
    assert measures.randomness >= least_randomness
    sorted_rows = lw.Batching(cut=lw.Rows(4_096, by="best-fit"))
    packed = lw.measure(lw.make_plan(lengths, sorted_rows), lengths)
    assert packed.fill > measures.fill
    assert packed.randomness < 0.1


def test_measures_of_rows_by_hand():
    # Rows of 10 in batches of at most two: [9 1], then [4 5] and [6].
    batching = lw.Batching(cut=lw.Rows(10, rows=2, pool=1), order=menu.InGivenOrder(), arrange=lw.InOrder())
    lengths = [9, 1, 4, 5, 6]
    plan = lw.make_plan(lengths, batching)
    assert [[row.tolist() for row in plan.rows(batch)] for batch in plan.grid.reshape(-1)] == [[[0, 1]], [[2, 3], [4]]]
    measures = lw.measure(plan, lengths)
    assert measures.rows == 3
    assert measures.fill == pytest.approx(25 / 30)
    assert measures.padding_share == pytest.approx(5 / 30)
    assert measures.zero_padding_rate == pytest.approx((0 / 10 + 5 / 20) / 2)
    assert measures.cost_spread == pytest.approx(np.std([10, 15]) / 12.5)
    assert measures.average_batch_length == 10


@settings(max_examples=30, derandomize=True)
@given(length_sets.flat, st.integers(1, 3), st.integers(1, 3))
def test_randomness_is_that_of_all_pairs_counted_one_by_one(lengths, ranks, epochs):
    if not len(lengths):
        return
    batching = lw.Batching(cut=lw.Rows(6_000, rows=2))
    plans = [lw.make_plan(lengths, batching, epoch=epoch, world_size=ranks) for epoch in range(epochs)]
    bins = int(np.clip(1 + np.sqrt(epochs * len(lengths) / 10), 2, 64))
    _, value, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    bin_of = ((np.cumsum(counts) - counts / 2) * bins / len(lengths)).astype(int).clip(0, bins - 1)[value]
    joint, squares = np.zeros((bins, bins)), 0.0
    steps = [(plan, number) for plan in plans for number in range(plan.steps)]
    for plan, step_number in steps:
        batches = plan.grid[step_number][plan.first_taken[step_number]]
        step = [number for batch in batches for number in plan.batch(batch).tolist()]
        if len(step) > 17:
            return
        for one, other in itertools.permutations(step, 2):
            joint[bin_of[one], bin_of[other]] += 1 / (len(step) - 1)
            squares += 1 / (len(step) - 1) ** 2
    total = joint.sum()
    if not total:
        assert lw.measure(plans, lengths).randomness == 1.0
        return
    share, each = joint / total, joint.sum(axis=1) / total
    seen = share > 0
    information = (share[seen] * np.log(share[seen] / np.outer(each, each)[seen])).sum()
    bias = (seen.sum() - 2 * (each > 0).sum() + 1) / (2 * total**2 / squares)
    assert lw.measure(plans, lengths).randomness == pytest.approx(np.exp(-max(0.0, information - bias)))


def test_randomness_of_random_rows_is_one_and_of_twins_a_bin():
    lengths = length_sets.spread_out(500, 50_000)
    random = lw.Batching(cut=lw.Rows(4_096, pool=1))
    assert lw.measure(lw.make_plan(lengths, random), lengths).randomness > 0.99
    twins = np.argsort(lengths, kind="stable").reshape(-1, 2)
    assert lw.measure(twins.tolist(), lengths).randomness == pytest.approx(1 / 64, rel=0.02)

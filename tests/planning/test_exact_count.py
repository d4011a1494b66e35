"""The cutter: exactly so many batches, each within the budget, the costliest as cheap as can be; by brute force."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
import menu
from lengthwise.choices.greedy import Limits, cut_greedily
from lengthwise.planning.exact_count import cut_by_count, cut_into

NONE = np.empty(0, np.int64)


def ways(count, batches, boundaries):
    """The offsets of every way to cut so many things in a row into so many parts that cross no boundary."""
    for inner in itertools.combinations(range(1, count), batches - 1):
        if set(boundaries) <= set(inner):
            yield [0, *inner, count]


def costs_of(needed, offsets, limits, cost=None):
    parts = [needed[start:stop] for start, stop in itertools.pairwise(offsets)]
    sizes = np.array(list(map(len, parts)))
    rows = np.where(sizes < limits.count_multiple, sizes, -(-sizes // limits.count_multiple) * limits.count_multiple)
    return (cost or limits.cost)(rows, np.array([part.max(axis=0) for part in parts]))


@settings(max_examples=120, derandomize=True)
@given(st.data())
def test_the_costliest_batch_is_as_cheap_as_brute_force_finds(data):
    dims = data.draw(st.integers(1, 2))
    rows = data.draw(st.lists(st.tuples(*[st.integers(1, 12)] * dims), min_size=1, max_size=9))
    needed = np.array(rows, np.int64).reshape(-1, dims)
    boundaries = np.array(sorted(data.draw(st.sets(st.integers(1, 8), max_size=2))), np.int64)
    boundaries = boundaries[boundaries < len(needed)]
    cost = data.draw(st.sampled_from([lw.Padded(), menu.COSTS["per_length"]]))
    most = data.draw(st.sampled_from([2**62, 2, 3]))
    multiple = data.draw(st.sampled_from([1, 1, 2])) if most == 2**62 else 1
    dearest = float(cost(np.ones(len(needed), np.int64), needed).max())
    balance = data.draw(st.sampled_from([cost, lw.Quadratic(quadratic=0.2)]))
    budget = dearest * data.draw(st.sampled_from([1.0, 1.5, 3.0, 50.0]))
    limits = Limits(cost, budget, most, multiple, balance=balance)
    fewest = len(cut_greedily(needed, boundaries, limits)) - 1
    batches = data.draw(st.integers(fewest, len(needed)))
    offsets = cut_into(needed, boundaries, batches, limits)
    assert offsets.tolist() == sorted(set(offsets.tolist()))
    assert [offsets[0], offsets[-1], len(offsets) - 1] == [0, len(needed), batches]
    assert set(boundaries.tolist()) <= set(offsets.tolist())
    assert np.diff(offsets).max() <= most
    allowed = (way for way in ways(len(needed), batches, boundaries.tolist()) if np.diff(way).max() <= most)
    within = (way for way in allowed if costs_of(needed, way, limits).max() <= budget)
    best = min(costs_of(needed, way, limits, balance).max() for way in within)
    assert costs_of(needed, offsets, limits).max() <= budget
    assert costs_of(needed, offsets, limits, balance).max() == best


@settings(max_examples=80, derandomize=True)
@given(st.integers(1, 40), st.sets(st.integers(1, 39), max_size=4), st.integers(0, 40))
def test_batches_of_a_fixed_size_differ_as_little_as_boundaries_allow(count, inner, more):
    boundaries = np.array(sorted(place for place in inner if place < count), np.int64)
    batches = min(count, len(boundaries) + 1 + more)
    offsets = cut_by_count(count, boundaries, batches)
    assert [offsets[0], offsets[-1], len(offsets) - 1] == [0, count, batches]
    assert (np.diff(offsets) > 0).all()
    assert set(boundaries.tolist()) <= set(offsets.tolist())
    widths = np.diff([0, *boundaries, count])
    least = next(size for size in range(1, count + 1) if (-(-widths // size)).sum() <= batches)
    assert np.diff(offsets).max() == least
    for start, stop in itertools.pairwise([0, *boundaries.tolist(), count]):  # within a bucket they differ by one
        sizes = np.diff(offsets[(offsets >= start) & (offsets <= stop)])
        assert sizes.max() - sizes.min() <= 1


def test_ten_sequences_in_batches_of_four_by_hand():
    batching = lw.Batching(cut=lw.FixedSize(4), order=lw.Sorted(), arrange=lw.InOrder())
    assert lw.make_plan(range(1, 11), batching).batch_sizes.tolist() == [3, 3, 4]
    assert lw.make_plan(range(1, 11), batching, world_size=4).batch_sizes.tolist() == [2, 3, 2, 3]


def test_a_batch_of_one_is_not_cut_for_a_place_that_is_left():
    """Buckets of 1, 1, 3 and 3 in batches of 2 make six: one of the buckets of 3 makes the seventh."""
    batching = lw.Batching(cut=lw.FixedSize(3), order=lw.Bucketed(edges=(1, 2, 3, 4)))
    plan = lw.make_plan([1, 2, 3, 3, 3, 4, 4, 4], batching, world_size=7)
    assert sorted(plan.batch_sizes.tolist()) == [1, 1, 1, 1, 1, 1, 2]


def test_many_batches_are_level_within_half_a_per_cent():
    lengths = np.sort(np.random.default_rng(0).lognormal(5, 0.6, 20_000).astype(np.int64) + 1)[:, None]
    limits = Limits(lw.Padded(), 20_000.0)
    fewest = len(cut_greedily(lengths, NONE, limits)) - 1
    for batches in (fewest, fewest + 30):
        offsets = cut_into(lengths, NONE, batches, limits)
        costs = costs_of(lengths, offsets, limits)
        assert len(costs) == batches
        assert costs.max() <= 20_000
        assert costs.max() <= 1.02 * costs.mean()


def test_a_cost_of_the_users_own_fills_batches_and_halves_the_largest():
    needed = np.full((10, 1), 4)
    limits = Limits(lambda counts, lengths: counts * lengths[:, 0] * 1.0, 16.0)
    assert cut_into(needed, NONE, 3, limits).tolist() == [0, 4, 8, 10]
    assert cut_into(needed, NONE, 4, limits).tolist() == [0, 2, 4, 8, 10]

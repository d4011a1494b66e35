"""Chains of boxes: the best of all of them on small sets, and what random steps pad to."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.choices.chains import nest, optimal_chain, tight_boxes

rows = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=12)


def test_random_steps_pad_to_the_better_of_two_chains():
    """That of the other edges, or the one that is sought by itself: none of the two is always the better one."""
    chance = np.random.default_rng(0)
    for buckets in (2, 3, 4):
        items = chance.integers(1, 60, (40, 2))
        order = lw.Bucketed(buckets=buckets, pad_to_edge=True)
        batching = lw.Batching(order=order, cut=lw.FixedSize(1), deal=lw.RandomSteps())
        plan = lw.make_plan(items, batching)
        found = plan.padded_lengths.sum()
        assert found <= lw.padded_frames(items, optimal_chain(items, buckets, lw.optimal_edges))
        assert found <= lw.padded_frames(items, nest(lw.optimal_edges(items, buckets)))


@settings(max_examples=50, derandomize=True)
@given(rows)
def test_tight_boxes_are_filled_by_what_is_in_them(lengths):
    array = np.array(lengths)
    boxes = tight_boxes(array, lw.optimal_edges, 4_096)
    found = dict(zip(map(tuple, boxes.edges.tolist()), boxes.inside.tolist(), strict=True))
    for box in itertools.product(range(1, 6), repeat=2):
        held = array[(array <= box).all(axis=1)]
        tight = len(held) > 0 and tuple(held.max(axis=0)) == box
        assert found.get(box) == (len(held) if tight else None)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(rows, st.integers(1, 3))
def test_the_chain_pads_least_of_all(lengths, buckets):
    boxes = sorted(itertools.product(range(1, 6), repeat=2))
    longest = tuple(np.max(lengths, axis=0).tolist())
    chains = (
        (*inner, longest)
        for count in range(buckets)
        for inner in itertools.combinations([box for box in boxes if box != longest], count)
        if all((np.diff([*inner, longest], axis=0) >= 0).all(axis=1))
    )
    least = min(lw.padded_frames(lengths, chain) for chain in chains)
    chain = optimal_chain(np.array(lengths), buckets, lw.optimal_edges)
    assert len(chain) <= buckets
    assert (np.diff(chain, axis=0) >= 0).all()
    assert lw.padded_frames(lengths, chain) == least


@settings(max_examples=50, derandomize=True)
@given(st.lists(st.tuples(*[st.integers(1, 9)] * 3), min_size=1, max_size=9))
def test_nested_boxes_hold_the_same_and_are_no_more(edges):
    chain = nest(np.array(edges))
    assert len(chain) <= len(set(edges))
    assert (np.diff(chain, axis=0) >= 0).all()
    assert all((chain >= np.array(box)).all(axis=1).any() for box in edges)


@pytest.mark.parametrize("by", ["optimal", "quantile"])
@pytest.mark.parametrize("dims", [2, 3])
def test_random_steps_meet_at_most_k_shapes(by, dims):
    chance = np.random.default_rng(dims)
    lengths = np.rint(np.exp(chance.multivariate_normal([3] * dims, 0.2 * np.eye(dims) + 0.1, 900))).astype(int) + 1
    order = lw.Bucketed(buckets=6, by=by, pad_to_edge=True)
    cut = lw.Budget(6_000, count_multiple_of=4)
    batching = lw.Batching(cut=cut, order=order, deal=lw.RandomSteps())
    shapes = {tuple(edges): most for most, *edges in lw.batch_shapes(lengths, batching).tolist()}
    assert len(shapes) <= 6
    for epoch, ranks in itertools.product(range(3), (1, 8)):
        plan = lw.make_plan(lengths, batching, epoch=epoch, world_size=ranks)
        for size, padded in zip(plan.batch_sizes.tolist(), plan.padded_lengths.tolist(), strict=True):
            assert size <= shapes[tuple(padded)]
        assert plan.costs.max() <= 6_000
        assert sorted(plan.sequences.tolist()) == list(range(900))


def test_a_sequence_is_padded_to_the_first_of_the_chain_that_holds_it():
    order = lw.Bucketed(edges=((9, 4), (5, 9), (12, 12)), pad_to_edge=True)
    batching = lw.Batching(cut=lw.FixedSize(1), order=order, deal=lw.RandomSteps())
    plan = lw.make_plan([[5, 4], [4, 9], [9, 9], [10, 1]], batching, world_size=2)
    padded = {plan.batch(number).item(): plan.padded_lengths[number].tolist() for number in range(4)}
    # (5, 9) is widened to (9, 9), which then holds the third too; by itself it did not.
    assert padded == {0: [9, 4], 1: [9, 9], 2: [9, 9], 3: [12, 12]}

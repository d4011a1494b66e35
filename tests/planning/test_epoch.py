"""Batches: ranks wait little for each other, and batches of a last step are cut within their limits."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategies

RANKS = 8
LENGTHS = lw.example_lengths("long-tailed")
STRATEGIES = parse_strategies(
    "random,sorted,semi-sorted:0.1,alternated:64,windowed:1024,bucketed:1024,optimal:16,mxnet:10,max-entropy:0.05",
    cut=lw.FixedSize(16),
)
CUTS = {"budget": (lw.Budget(20_000), 0.02), "dynamic": (lw.DynamicSize(4), 0.02), "size": (lw.FixedSize(16), 0.1)}
COSTS = st.lists(st.integers(1, 1_000), min_size=6, max_size=6).map(lambda costs: np.array(costs, float))


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("label", STRATEGIES)
def test_ranks_wait_little_within_a_step_and_within_a_micro_batch(label, cut):
    """Batches of one size differ in cost: the longest of 82 steps have none of their like to share a step with."""
    choice, most = CUTS[cut]
    for micro_batches in (1, 4):
        batching = replace(STRATEGIES[label], cut=choice)
        plan = lw.make_plan(LENGTHS, batching, world_size=RANKS, micro_batches=micro_batches)
        assert lw.measure(plan, LENGTHS).straggler_waste < most
        costs = plan.costs[plan.grid]
        assert 1 - costs.mean(axis=2).sum() / costs.max(axis=2).sum() < most


def partitions(items, size):
    """Every way to part `items` into sets of `size`."""
    if not items:
        yield []
        return
    first, *rest = items
    for others in combinations(rest, size - 1):
        for parts in partitions([item for item in rest if item not in others], size):
            yield [[first, *others], *parts]


@pytest.mark.parametrize("ranks", [2, 3, 6])
@settings(max_examples=15)
@given(costs=COSTS)
def test_with_one_batch_a_step_no_deal_waits_less_than_balanced(costs, ranks):
    batching = lw.Batching(cut=lw.FixedSize(1))
    plan = lw.make_plan(costs.astype(int), batching, world_size=ranks)
    least = min(sum(costs[step].max() for step in steps) for steps in partitions(list(range(6)), ranks))
    assert plan.costs[plan.grid].max(axis=2).sum() == least


def counts_of(lengths, batching, ranks):
    """Returns the sizes of the batches, rising, where one step takes them all."""
    plan = lw.make_plan(np.array(lengths), batching, world_size=ranks)
    assert plan.steps == 1
    return sorted(np.diff(plan.offsets).tolist())


def test_batches_that_are_cut_smaller_hold_no_more_sequences_than_asked():
    """Without their limit, sequences of 1 frame would stand 20 in a batch of 100 frames that is cut smaller."""
    batching = lw.Batching(cut=lw.Budget(100, max_sequences=5), order=lw.Sorted(), deal=lw.Balanced())
    assert counts_of([50] * 10 + [1] * 50, batching, 20) == [1] * 10 + [5] * 10


def test_batches_of_two_lengths_are_cut_as_small_as_one_sequence_allows():
    """No sequence costs more than 11 alone, though one of the longest of both lengths would cost 20."""
    batching = lw.Batching(budget=40, order=lw.Sorted(), deal=lw.Balanced())
    assert counts_of([[1, 1]] * 60 + [[10, 1], [1, 10]], batching, 14) == [1, 1] + [5] * 12

"""Two limits: the budget bounds one cost, and ranks share another evenly."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import length_sets
import lengthwise as lw

ATTENTION = lw.Quadratic(quadratic=0.001)
LONG = lw.example_lengths("long-tailed", count=3_000)


def price(plan, lengths, cost=ATTENTION):
    """The cost that the ranks compute and wait for, for each of the data's."""
    of_ranks = cost(plan.batch_sizes, plan.padded_lengths)[plan.grid].sum(axis=1)
    return of_ranks.max(axis=-1).sum() * plan.world_size / cost(np.ones(len(lengths)), lengths[:, None]).sum()


DEALS = {
    "random steps": {"deal": lw.RandomSteps()},
    "balanced": {"padding": 0.05, "deal": lw.Balanced()},
    "strata": {"padding": 0.05, "deal": lw.Stratified()},
    "portions": {"order": lw.Sorted(), "deal": lw.Portions()},
}


@pytest.mark.parametrize("choices", DEALS.values(), ids=DEALS)
@settings(max_examples=40, derandomize=True, deadline=None)
@given(length_sets.flat, st.integers(1, 4), st.integers(1, 3), st.floats(1.0, 4.0))
def test_no_batch_is_over_the_budget_whatever_is_balanced(choices, lengths, ranks, micro_batches, room):
    budget = room * lengths.max(initial=1)
    batching = lw.Batching(budget=budget, balance=ATTENTION, **choices)
    plan = lw.make_plan(lengths, batching, world_size=ranks, micro_batches=micro_batches)
    assert (plan.batch_sizes * plan.padded_lengths[:, 0] <= budget).all()
    assert plan.balances.tolist() == ATTENTION(plan.batch_sizes, plan.padded_lengths).tolist()
    assert sorted(plan.sequences.tolist()) == list(range(len(lengths)))


def test_ranks_wait_less_by_the_cost_that_is_balanced():
    plain = lw.Batching(budget=20_000, deal=lw.RandomSteps())
    balanced = replace(plain, balance=ATTENTION)
    plans = [lw.make_plan(LONG, batching, world_size=8, micro_batches=4) for batching in (plain, balanced)]
    before, after = (price(plan, LONG) for plan in plans)
    assert after < 0.85 * before
    assert plans[1].steps <= 1.4 * plans[0].steps
    # What is measured is the waiting by this cost.
    of_ranks = plans[1].balances[plans[1].grid].sum(axis=1)
    waiting = 1 - of_ranks.mean(axis=-1).sum() / of_ranks.max(axis=-1).sum()
    assert lw.measure(plans[1], LONG).straggler_waste == pytest.approx(waiting)


def test_a_cost_of_the_users_own_may_be_balanced_by_dealing_alone():
    own = lw.Batching(budget=20_000, padding=0.05, deal=lw.Balanced(), balance=lambda *batch: ATTENTION(*batch))
    plans = [lw.make_plan(LONG, replace(own, balance=cost), world_size=8) for cost in (None, own.balance, ATTENTION)]
    unbalanced, dealt, cut = (price(plan, LONG) for plan in plans)
    assert cut <= dealt < unbalanced
    with pytest.raises(ValueError, match=r"^`balance` must be Padded\(\) or a Quadratic beside RandomSteps, but is <"):
        replace(own, order=None, padding=None, deal=lw.RandomSteps())


PADDED, ROWS = {"budget": 20_000, "padding": 0.05}, {"cut": lw.Rows(6_144)}
LARGE, NO_NUMBERS = lw.Quadratic(quadratic=1e305), lambda counts, _: np.full(len(counts), np.nan)
PRICES = [*itertools.product((LARGE, NO_NUMBERS), (PADDED, ROWS)), (LARGE, {**ROWS, "deal": lw.RandomSteps()})]


@pytest.mark.parametrize(("balance", "choices"), PRICES)
def test_an_error_of_its_prices_has_its_name(balance, choices):
    with pytest.raises(ValueError, match=r"^`balance` must be finite, but is (inf|nan)\."):
        lw.make_plan(LONG, lw.Batching(balance=balance, **choices), world_size=8)


@pytest.mark.parametrize(("lengths", "groups"), [([10, 7, 7, 7], None), ([10, 7, 7, 7, 1], "aaaab")])
def test_batches_of_a_fixed_size_share_a_step_by_it(lengths, groups):
    """By padded frames, (10 7) and (7 7) cost 20 at most, and (10) and (7 7 7) 21; by their squares 200 and 147."""
    balance = lw.Quadratic(linear=0.0, quadratic=1.0)
    batching = lw.Batching(cut=lw.FixedSize(3), deal=lw.RandomSteps(), balance=balance)
    groups = None if groups is None else list(groups)
    plan = lw.make_plan(lengths, batching, world_size=len(lengths) - 2, groups=groups)
    assert sorted(plan.balances.tolist()) == [1, 100, 147][-plan.world_size :]


def test_packed_rows_are_shared_out_by_it():
    plain = lw.Batching(cut=lw.Rows(6_144, rows=8), deal=lw.RandomSteps())
    plans = [lw.make_plan(LONG, replace(plain, balance=cost), world_size=4) for cost in (None, ATTENTION)]
    assert plans[1].costs.max() <= 8 * 6_144
    costs = [ATTENTION(np.ones(len(plan.sequences)), LONG[plan.sequences, None]) for plan in plans]
    batches = [np.add.reduceat(some, plan.offsets[:-1]) for some, plan in zip(costs, plans, strict=True)]
    waits = [np.ptp(some[plan.grid].sum(axis=1), axis=-1).sum() for some, plan in zip(batches, plans, strict=True)]
    assert waits[1] < 0.5 * waits[0]


def test_the_rest_of_an_epoch_is_balanced_by_it_too():
    batching = lw.Batching(budget=20_000, deal=lw.RandomSteps(), balance=ATTENTION)
    whole = lw.make_plan(LONG, batching, world_size=4, micro_batches=2)
    rest = lw.make_plan(LONG, batching, world_size=2, micro_batches=4, after=[(4, 2, 4)])
    taken, expected = (
        [sorted(np.concatenate([plan.batch(number) for number in step.reshape(-1)])) for step in plan.grid]
        for plan in (rest, whole)
    )
    assert taken == expected[2:]
    assert rest.balances.tolist() == ATTENTION(rest.batch_sizes, rest.padded_lengths).tolist()
    assert lw.measure(rest, LONG).straggler_waste < 0.015


def test_evaluations_are_balanced_by_it():
    plans = [lw.evaluation_plan(LONG, lw.Budget(20_000), balance=cost, world_size=8) for cost in (None, ATTENTION)]
    assert price(plans[1], LONG) < price(plans[0], LONG)
    sampler = lw.torch.EvaluationSampler(LONG, lw.Budget(20_000), balance=ATTENTION, rank=0, world_size=8)
    assert sampler.plan.fingerprint() == plans[1].fingerprint()


def test_the_default_deals_evenly_where_a_cost_is_balanced():
    plan = lw.make_plan(LONG, lw.Batching(budget=20_000, balance=ATTENTION), world_size=8)
    assert lw.Batching.from_json(plan.batching).deal == lw.Balanced()
    assert lw.measure(plan, LONG).straggler_waste < 0.05


def test_a_balance_that_is_the_cost_changes_nothing():
    plain = lw.Batching(budget=20_000, deal=lw.RandomSteps())
    plans = [lw.make_plan(LONG, replace(plain, balance=cost), world_size=8) for cost in (None, lw.Padded())]
    assert [batch.tolist() for batch in plans[0].batches()] == [batch.tolist() for batch in plans[1].batches()]

"""Means of a few runs and their intervals, by hand and by the tables of Student's t."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise_recipes.intervals import interval

# Two-sided 95 %, and the noncentrality of 80 % power: from printed tables, the latter of the paired t-test.
T_TABLE = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 10: 2.262, 11: 2.228, 30: 2.045, 121: 1.980}


@pytest.mark.parametrize("runs", T_TABLE)
def test_an_interval_reaches_as_far_as_the_tables_say(runs):
    values = np.zeros(runs)
    values[0] = runs  # mean 1, variance n
    found = interval(values)
    assert found.high - found.mean == pytest.approx(T_TABLE[runs], abs=6e-4)


@pytest.mark.parametrize("runs", [3, 8])
def test_the_smallest_difference_is_told_apart_in_four_of_five_tries(runs):
    generator = np.random.default_rng(runs)
    of_spread_one = np.array([-1.0, 1.0] * (runs // 2) + [0.0] * (runs % 2))
    smallest = interval(of_spread_one / of_spread_one.std(ddof=1)).smallest_difference
    draws = generator.normal(smallest, 1.0, (4000, runs))
    assert np.mean([interval(each).excludes_zero for each in draws]) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(("runs", "effect"), [(15, 0.8), (34, 0.5), (199, 0.2)])
def test_as_many_runs_as_the_tables_of_power_print_are_just_enough(runs, effect):
    """Pairs that a two-sided paired test at 5 % needs for 80 % power, by printed tables: d = 0.2, 0.5 and 0.8."""
    smallest = [_of_spread_one(count).smallest_difference for count in (runs - 1, runs)]
    assert smallest[1] <= effect < smallest[0]


def _of_spread_one(runs):
    values = np.arange(runs, dtype=float)
    return interval((values - values.mean()) / values.std(ddof=1))


def test_one_run_could_tell_nothing_apart_and_equal_runs_everything():
    assert interval([2.0]).smallest_difference == math.inf
    assert interval([2.0, 2.0]).smallest_difference == 0.0
    assert math.isnan(interval([2.0, math.nan]).smallest_difference)


def test_an_interval_by_hand():
    found = interval([4.0, 6.0, 8.0, 6.0, 6.0])  # s = sqrt(8 / 4), t of 4 = 2.7764
    assert found.mean == 6.0
    assert found.high - found.mean == pytest.approx(2.7764 * math.sqrt(2.0 / 5), abs=1e-4)
    assert found.mean - found.low == found.high - found.mean
    assert found.excludes_zero
    assert not interval([-1.0, 1.0]).excludes_zero
    assert interval([-2.0, -2.0, -2.0]).excludes_zero


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8), st.floats(-1e6, 1e6))
def test_an_interval_holds_its_mean_and_moves_with_the_runs(values, shift):
    found, moved = interval(values), interval(np.array(values) + shift)
    assert found.low <= found.mean <= found.high
    assert found.runs == len(values)
    assert moved.mean == pytest.approx(found.mean + shift, abs=1e-5)
    assert moved.high - moved.low == pytest.approx(found.high - found.low, abs=1e-4)


def test_nineteen_of_twenty_intervals_hold_the_truth():
    draws = np.random.default_rng(0).normal(3.0, 2.0, (4000, 5))
    held = [(found := interval(runs)).low <= 3.0 <= found.high for runs in draws]
    assert np.mean(held) == pytest.approx(0.95, abs=0.012)


def test_one_run_and_a_run_that_diverged_say_nothing():
    alone, diverged = interval([2.0]), interval([2.0, math.nan, 1.0])
    assert (alone.mean, alone.low, alone.high) == (2.0, -math.inf, math.inf)
    assert alone.unknown
    assert math.isnan(diverged.mean)
    assert diverged.unknown
    assert not alone.excludes_zero
    assert not diverged.excludes_zero

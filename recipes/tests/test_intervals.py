"""Means of a few runs and their intervals, by hand and by the tables of Student's t."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthwise_recipes.quality.intervals import Interval, interval, read_interval, t_quantile

# Two-sided 95 % and 99 %, from printed tables.
TABLE = {1: (12.706, 63.657), 2: (4.303, 9.925), 3: (3.182, 5.841), 4: (2.776, 4.604), 9: (2.262, 3.250)}
TABLE |= {10: (2.228, 3.169), 29: (2.045, 2.756), 120: (1.980, 2.617)}


@pytest.mark.parametrize("degrees", TABLE)
def test_the_quantiles_are_those_of_the_tables(degrees):
    found = (t_quantile(degrees), t_quantile(degrees, 0.99))
    assert found == pytest.approx(TABLE[degrees], abs=6e-4)


@pytest.fixture(scope="module")
def stats():
    return pytest.importorskip("scipy.stats")


@given(degrees=st.integers(1, 200), confidence=st.floats(0.01, 0.999))
def test_the_quantiles_are_those_of_scipy(stats, degrees, confidence):
    assert t_quantile(degrees, confidence) == pytest.approx(stats.t.ppf((1 + confidence) / 2, degrees), rel=1e-9)


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


def test_an_interval_survives_json_with_null_for_what_is_not_known():
    text = json.dumps({"mean": 2.0, "low": None, "high": None, "runs": 1})
    assert read_interval(json.loads(text)).unknown
    known = {"mean": 2.0, "low": 1.0, "high": 3.0, "runs": 4}
    assert read_interval(known) == Interval(**known)


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]]])
def test_no_runs_are_refused(values):
    with pytest.raises(ValueError, match=r"`values` must be of shape \[runs\]"):
        interval(values)


@pytest.mark.parametrize(("degrees", "confidence"), [(0, 0.95), (3, 0.0), (3, 1.0)])
def test_what_is_no_quantile_is_refused(degrees, confidence):
    with pytest.raises(ValueError, match="must be"):
        t_quantile(degrees, confidence)

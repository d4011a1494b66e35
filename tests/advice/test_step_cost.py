"""The cost of a step: fitted, shown, kept in a file, and read off plans."""

import dataclasses
import json
import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruler import LENGTHS, PAIRS, RULE, Ruler, measured

import lengthwise as lw

OF_PAIRS = lw.Quadratic(linear=(1e-6, 8e-6), quadratic=(2e-9, 0.0), per_length=(0.0, 3e-5), per_batch=0.01)


@pytest.mark.parametrize(("lengths", "rule"), [(LENGTHS, RULE), (PAIRS, OF_PAIRS)], ids=["one", "two"])
def test_a_step_that_follows_a_rule_is_measured_as_that_rule(lengths, rule):
    cost = measured(lengths, meter=Ruler(rule))
    shapes = np.array([[1, 50, 9], [16, 700, 40], [300, 20, 500], [2, 6_000, 1]])[:, : 1 + cost.padded_lengths.shape[1]]
    assert cost.seconds(shapes[:, 0], shapes[:, 1:]) == pytest.approx(rule(shapes[:, 0], shapes[:, 1:]), rel=1e-6)
    assert cost.seconds_error < 1e-6
    assert cost.device == "a ruler"


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_no_coefficients_of_at_least_zero_fit_better(seed):
    chance = np.random.default_rng(seed)
    counts, longest = chance.integers(1, 40, 9), chance.integers(5, 900, 9)
    seconds = RULE(counts, longest[:, None]) * np.exp(chance.normal(0, 1, 9))
    fitted = lw.StepCost.of(counts, longest, seconds).seconds(counts, longest[:, None])
    factors = np.column_stack([np.ones(9), counts * longest, counts * longest**2, longest])
    shares, least = factors / seconds[:, None], np.inf
    for kept in (list(kept) for size in range(1, 5) for kept in combinations(range(4), size)):
        coefficients = np.linalg.lstsq(shares[:, kept], np.ones(9), rcond=1e-20)[0]
        if (coefficients >= 0).all():
            least = min(least, np.square(shares[:, kept] @ coefficients - 1).sum())
    assert np.square(fitted / seconds - 1).sum() == pytest.approx(least)


def test_the_error_is_that_of_points_left_out():
    counts, longest = np.array([1, 1, 1, 4, 4, 4, 9, 9, 9]), np.array([10, 20, 40] * 3)
    seconds = RULE(counts, longest[:, None])
    assert lw.StepCost.of(counts, longest, seconds).seconds_error < 1e-9
    seconds[4] *= 2  # one point of nine is twice what the others say: they predict half of it
    cost = lw.StepCost.of(counts, longest, seconds)
    assert cost.seconds_error > 0.5 / 9
    for array in (counts, longest, seconds):  # what was given is copied
        array[0] += 1
    assert (cost.counts[0], cost.padded_lengths[0, 0]) == (1, 10)
    assert cost.measured_seconds[0] == RULE(np.array([1]), np.array([[10]]))[0]


def test_an_epoch_takes_as_long_as_the_slowest_rank_of_each_step():
    cost = measured()
    batching = lw.Batching(cost=cost.seconds, budget=0.2, deal=lw.RandomSteps())
    plan = lw.make_plan(LENGTHS, batching, world_size=3, micro_batches=2)
    expected = plan.costs[plan.grid].sum(axis=1).max(axis=1).sum()
    assert cost.seconds_of(plan) == pytest.approx(expected)
    other = lw.make_plan(LENGTHS, lw.Batching(budget=20_000))  # priced in frames, and predicted in seconds
    assert cost.seconds_of(other) == pytest.approx(RULE(other.batch_sizes, other.padded_lengths).sum(), rel=1e-6)
    rows = lw.make_plan(LENGTHS, lw.Batching(cut=lw.Rows(6_500, rows=4)))
    expected = RULE(rows.row_counts, np.full((len(rows.costs), 1), 6_500)).sum()
    assert cost.seconds_of(rows) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match=r"^`plan` must be of 1 length a sequence, as measured, but is 2\. "):
        cost.seconds_of(lw.make_plan(PAIRS, lw.Batching(budget=20_000)))
    with pytest.raises(TypeError, match=r"^`plan` must be a Plan, but is 7\."):
        cost.seconds_of(7)


@pytest.mark.parametrize("lengths", [LENGTHS, PAIRS], ids=["one", "two"])
def test_a_step_cost_is_kept_in_a_file(tmp_path, lengths):
    cost = measured(lengths)
    cost.save(tmp_path / "step.json")
    again = lw.StepCost.load(tmp_path / "step.json")
    assert (again.seconds, str(again)) == (cost.seconds, str(cost))
    for name in ("counts", "padded_lengths", "measured_seconds"):
        assert np.array_equal(getattr(again, name), getattr(cost, name))
    with pytest.raises(OSError, match="a pipe or a device: '/dev/null'"):
        lw.StepCost.load("/dev/null")


def test_a_file_that_is_no_step_cost_is_refused(tmp_path):
    path = tmp_path / "step.json"
    measured().save(path)
    stored = json.loads(path.read_text())
    changes = ({"more": 1}, {"format": "lengthwise.StepCost 2"}, {"seconds": {"linear": -1}}, {"seconds": {"cubic": 1}})
    for text in ("", "[]", "null", "{}", "[" * 200_000, *(json.dumps(stored | change) for change in changes)):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"^`path` must be a step cost that StepCost.save wrote, but is "):
            lw.StepCost.load(path)


def test_a_step_cost_in_place_of_its_seconds_is_told():
    seconds = r"^`cost` must be .*\. Give its seconds: cost=step_cost\.seconds, and a budget"
    with pytest.raises(TypeError, match=seconds):
        lw.Batching(cost=measured(), budget=0.2)
    unit = r" costs 0\.00174, and .* about 0\.0278\. Is the budget in .* or of `cost`\? "
    with pytest.raises(lw.OversizeError, match=unit):
        lw.make_plan(LENGTHS, lw.Batching(cost=lw.Quadratic(linear=1e-5 / 3), budget=0.0001))


def test_the_points_show_by_how_much_the_fit_misses_them():
    counts, longest = np.array([1, 1, 1, 4, 4, 4]), np.array([[10], [20], [1_000]] * 2)
    seconds = 2.0 + counts * longest[:, 0]
    cost = lw.StepCost.of(counts, longest, seconds, device="a ruler")
    lines = str(dataclasses.replace(cost, measured_seconds=seconds / 2, seconds_error=0.1)).splitlines()
    assert lines[:2] == ["seconds = 2 + 1 n L, error 10.0%", "measured on: a ruler"]
    assert lines[2].split() == ["sequences", "padded", "to", "seconds", "fit"]
    assert lines[-1].split() == ["4", "1,000", "2e+03", "+100.0%"]


POINTS = [
    ([1, 2], [3], [1, 1], "`padded_lengths` must be 2 finite numbers above 0, one for each batch, but is [3]."),
    ([1, 2], [3, 4], [1, np.nan], "`seconds` must be 2 finite numbers above 0, one for each batch, but is [1, nan]."),
    ([0, 2], [3, 4], [1, 1], "`counts` must be 2 finite numbers above 0, one for each batch, but is [0, 2]."),
    ([1, 2, 1, 2], [9] * 4, [1] * 4, "`shapes` must be of two counts and three lengths at least"),
]


@pytest.mark.parametrize(("counts", "lengths", "seconds", "message"), POINTS)
def test_points_that_do_not_go_together_are_refused(counts, lengths, seconds, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        lw.StepCost.of(counts, lengths, seconds)

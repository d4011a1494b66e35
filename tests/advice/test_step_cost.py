"""The cost of a step: fitted, shown, kept in a file, and read off plans."""

import json
import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruler import HELD, LENGTHS, PAIRS, RULE, Ruler, measured

import lengthwise as lw
from lengthwise.advice.step_cost import fit_quadratic

pytest.importorskip("scipy")

COEFFICIENT = st.sampled_from([0.0, 1e-9, 1e-4, 0.3, 2.0])


def test_a_step_that_follows_a_rule_is_measured_as_that_rule():
    cost = measured()
    shapes = np.array([[1, 50], [16, 700], [300, 20], [2, 6_000]])
    for fitted, rule in ((cost.seconds, RULE), (cost.bytes, HELD)):
        assert fitted(shapes[:, 0], shapes[:, 1:]) == pytest.approx(rule(shapes[:, 0], shapes[:, 1:]), rel=1e-6)
    assert max(cost.seconds_error, cost.bytes_error) < 1e-6
    assert cost.device == "a ruler"


def test_each_of_several_lengths_has_its_own_coefficients():
    rule = lw.Quadratic(linear=(1e-6, 8e-6), quadratic=(2e-9, 0.0), per_length=(0.0, 3e-5), per_batch=0.01)
    cost = measured(PAIRS, meter=Ruler(rule, None))
    assert cost.bytes is None
    assert cost.seconds.linear == pytest.approx((1e-6, 8e-6), rel=1e-4)
    assert cost.seconds.per_length == pytest.approx((0.0, 3e-5), rel=1e-4, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.lists(COEFFICIENT, min_size=5, max_size=5).filter(any), st.integers(0, 2**32))
def test_a_fit_finds_any_rule_that_is_one(coefficients, seed):
    names = ("per_batch", "per_length", "per_sequence", "linear", "quadratic")
    rule = lw.Quadratic(**dict(zip(names, coefficients, strict=True)))
    chance = np.random.default_rng(seed)
    counts, longest = chance.integers(1, 40, 20), chance.integers(5, 900, (20, 1))
    fitted, error = fit_quadratic(counts, longest, rule(counts, longest))
    assert fitted(counts, longest) == pytest.approx(rule(counts, longest), rel=1e-6)
    assert error < 1e-4


def test_the_error_is_that_of_points_left_out_and_each_fit_has_its_own():
    counts, longest = np.array([1, 1, 1, 4, 4, 4, 9, 9, 9]), np.array([10, 20, 40] * 3)
    seconds = RULE(counts, longest[:, None])
    held = seconds.copy()
    held[4] *= 2  # one point of nine is twice what the others say: they predict half of it
    cost = lw.StepCost.of(counts, longest, seconds, bytes=held)
    assert cost.seconds_error < 1e-9
    assert cost.bytes_error > 0.5 / 9
    for array in (counts, longest, seconds, held):  # what was given stays writable, and is copied
        array[0] += 1
    assert (cost.counts[0], cost.padded_lengths[0, 0]) == (1, 10)
    assert cost.measured_seconds[0] == cost.measured_bytes[0] == RULE(np.array([1]), np.array([[10]]))[0]


def test_an_epoch_takes_as_long_as_the_slowest_rank_of_each_step():
    cost = measured()
    plan = lw.make_plan(LENGTHS, lw.Batching(cost=cost.seconds, budget=0.2), world_size=3, micro_batches=2)
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


@pytest.mark.parametrize("held", [HELD, None])
@pytest.mark.parametrize("lengths", [LENGTHS, PAIRS], ids=["one", "two"])
def test_a_step_cost_is_kept_in_a_file(tmp_path, held, lengths):
    cost = measured(lengths, meter=Ruler(held=held))
    cost.save(tmp_path / "step.json")
    again = lw.StepCost.load(tmp_path / "step.json")
    assert (again.seconds, again.bytes, str(again)) == (cost.seconds, cost.bytes, str(cost))
    for name in ("counts", "padded_lengths", "measured_seconds", "measured_bytes"):
        assert np.array_equal(getattr(again, name), getattr(cost, name))
    for array in (again.counts, cost.measured_seconds):
        assert not array.flags.writeable
    with pytest.raises(OSError, match="a pipe or a device: '/dev/null'"):
        lw.StepCost.load("/dev/null")


CHANGES = [
    lambda stored: stored.pop("seconds"),
    lambda stored: stored.update(more=1),
    lambda stored: stored.update(format="lengthwise.StepCost 2"),
    lambda stored: stored["seconds"].update(linear=-1),
    lambda stored: stored["seconds"].update(cubic=1),
    lambda stored: stored["seconds"].update(linear=[1.0, 2.0]),
    lambda stored: stored.update(counts=[1, 2]),
    lambda stored: stored.update(measured_seconds="soon"),
    lambda stored: stored.update(seconds_error=None),
    lambda stored: stored.update(seconds_error=float("nan")),
    lambda stored: stored.update(seconds_error=-0.1),
    lambda stored: stored.update(bytes=None),
    lambda stored: stored.update(bytes_error=None),
    lambda stored: stored.update(measured_bytes=None),
]


def test_a_file_that_is_no_step_cost_is_refused(tmp_path):
    path = tmp_path / "step.json"
    measured().save(path)
    whole, texts = path.read_text(), ["", "[]", "7", '"x"', "null", "[" * 200_000]
    for change in CHANGES:
        stored = json.loads(whole)
        change(stored)
        texts.append(json.dumps(stored))
    for text in texts:
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
    # Seconds n L, measured as 2 and 8; bytes 4 n L, measured as 2 and 32.
    facts = {
        **{"seconds": lw.Quadratic(), "bytes": lw.Quadratic(linear=4.0), "seconds_error": 0.1, "bytes_error": 0.2},
        **{"device": "a ruler", "counts": np.array([1, 2]), "padded_lengths": np.array([[1], [2]])},
        **{"measured_seconds": np.array([2.0, 8.0]), "measured_bytes": np.array([2.0, 32.0])},
    }
    cost = lw.StepCost(**facts)
    lines = [line.split() for line in str(cost).splitlines()]
    assert [" ".join(line) for line in lines[:3]] == [
        "seconds = 1 n L, error 10.0%",
        "bytes = 4 n L, error 20.0%",
        "measured on: a ruler",
    ]
    assert lines[4:] == [["1", "1", "2", "-50.0%", "2", "+100.0%"], ["2", "2", "8", "-50.0%", "32", "-50.0%"]]
    assert repr(cost).endswith(" seconds, error 10.0%, measured with 2 shapes on a ruler)")
    assert repr(lw.StepCost(**facts | {"device": ""})).endswith(" seconds, error 10.0%, measured with 2 shapes)")


POINTS = [
    ([1, 2], [3], [1, 1], "`padded_lengths` must be whole numbers of shape [2] or [2, dims], but is [3]."),
    ([1.5, 2], [3, 4], [1, 1], "`counts` must be whole numbers of shape [points], but is [1.5, 2]."),
    ([1, 2], [3, 4], [[1], [1]], "`seconds` must be of shape (2,), but is (2, 1)."),
    ([1, 2], [3, 4], [1, np.nan], "`seconds` must be finite and above 0, but is nan."),
    ([1, 2], [3, 4], [0.0, 1], "`seconds` must be finite and above 0, but is 0.0. Leave the point out."),
    ([1, 2], [3, 4], ["soon", "late"], "`seconds` must be numbers, but is ['soon', 'late']. Give one number for"),
    ([0, 2], [3, 4], [1, 1], "`counts` must be from 1 to 2**40, but is 0. "),
    ([1, 2], [3, 2**41], [1, 1], f"`padded_lengths` must be from 1 to 2**40, but is {2**41}. "),
    ([1, 1, 1], [1, 2, 3], [1, 1, 1], "`shapes` must be of two counts and three lengths at least"),
    ([1, 2, 1, 2], [9, 9, 8, 8], [1] * 4, "`shapes` must be of two counts and three lengths at least"),
    ([1, 2, 3], [10, 20, 30], [1, 1, 1], "`shapes` must be of two counts and three lengths at least"),
]


@pytest.mark.parametrize(("counts", "lengths", "seconds", "message"), POINTS)
def test_points_that_do_not_go_together_are_refused(counts, lengths, seconds, message):
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(message)}"):
        lw.StepCost.of(counts, lengths, seconds)


def test_without_scipy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(ImportError, match=r'^a fit needs SciPy: pip install "lengthwise\[advice\]"$'):
        measured()

"""What a step costs: measured on a clock that follows a known rule, fitted, kept, and read off plans."""

import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.advice.step_cost import fit_quadratic
from lengthwise.advice.step_timing import ran_out, trial_lengths, trial_shapes

pytest.importorskip("scipy")

RULE = lw.Quadratic(per_batch=0.004, per_length=2e-5, per_sequence=3e-4, linear=1e-6, quadratic=2e-9)
HELD = lw.Quadratic(per_batch=1e9, linear=4e3)
LENGTHS = lw.example_lengths("long-tailed", count=400)
PAIRS = np.column_stack([LENGTHS, 1 + LENGTHS[::-1] // 7])
COEFFICIENT = st.sampled_from([0.0, 1e-9, 1e-4, 0.3, 2.0])


class Ruler:
    """A meter whose clock and memory follow a rule, so that what is measured is known."""

    device = "a ruler"

    def __init__(self, seconds=RULE, held=HELD):
        self.rules = seconds, held
        self.taken = []

    def start(self):
        self.taken.append(None)

    def stop(self, returned):
        self.taken[-1] = shape = np.array(returned)
        seconds, held = (None if rule is None else float(rule(shape[:1], shape[None, 1:])[0]) for rule in self.rules)
        return seconds, held


def echo(batch):
    return batch


def shape_alone(*shape):
    return shape


def measured(lengths=LENGTHS, **asked):
    return lw.measure_step(echo, shape_alone, lengths, **{"meter": Ruler(), "repeats": 2, **asked})


def test_a_step_that_follows_a_rule_is_measured_as_that_rule():
    cost = measured()
    shapes = np.array([[1, 50], [16, 700], [300, 20], [2, 6_000]])
    for fitted, rule in ((cost.seconds, RULE), (cost.bytes, HELD)):
        assert fitted(shapes[:, 0], shapes[:, 1:]) == pytest.approx(rule(shapes[:, 0], shapes[:, 1:]), rel=1e-6)
    assert cost.seconds.per_length == pytest.approx(2e-5, rel=1e-4)
    assert max(cost.seconds_error, cost.bytes_error) < 1e-6
    assert cost.device == "a ruler"


def test_each_of_several_lengths_has_its_own_coefficients():
    rule = lw.Quadratic(linear=(1e-6, 8e-6), quadratic=(2e-9, 0.0), per_length=(0.0, 3e-5), per_batch=0.01)
    cost = measured(PAIRS, meter=Ruler(rule, None))
    assert cost.bytes is None
    assert cost.seconds.linear == pytest.approx((1e-6, 8e-6), rel=1e-4)
    assert cost.seconds.per_length == pytest.approx((0.0, 3e-5), rel=1e-4, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.lists(COEFFICIENT, min_size=5, max_size=5).filter(any), st.integers(0, 2**32))
def test_a_fit_finds_any_rule_that_is_one(coefficients, seed):
    names = ("per_batch", "per_length", "per_sequence", "linear", "quadratic")
    rule = lw.Quadratic(**dict(zip(names, coefficients, strict=True)))
    chance = np.random.default_rng(seed)
    counts, longest = chance.integers(1, 40, 20), chance.integers(5, 900, (20, 1))
    fitted, error = fit_quadratic(counts, longest, rule(counts, longest))
    assert fitted(counts, longest) == pytest.approx(rule(counts, longest), rel=1e-6)
    assert error < 1e-4


def test_the_error_is_that_of_points_left_out():
    counts, longest = [1, 1, 1, 4, 4, 4, 9, 9, 9], [10, 20, 40] * 3
    exact = RULE(np.array(counts), np.array(longest)[:, None])
    wrong = exact.copy()
    wrong[4] *= 2
    assert lw.StepCost.of(counts, longest, exact).seconds_error < 1e-9
    # One point of nine is twice what the others say: they predict half of it.
    assert lw.StepCost.of(counts, longest, wrong).seconds_error > 0.5 / 9


def test_a_round_runs_every_shape_twice_in_an_order_of_its_own():
    meter = Ruler()
    cost = measured(meter=meter, repeats=3)
    taken = [tuple(shape.tolist()) for shape in meter.taken]
    assert taken[::2] == taken[1::2]
    count = len(cost.counts)
    rounds = [tuple(taken[at : at + 2 * count : 2]) for at in range(0, len(taken), 2 * count)]
    assert len(set(rounds)) == len(rounds) == 3
    assert {frozenset(each) for each in rounds} == {frozenset(rounds[0])}


def test_the_second_run_of_a_shape_counts():
    class Cold(Ruler):
        def stop(self, returned):
            seconds, held = super().stop(returned)
            second = len(self.taken) > 1 and (self.taken[-1] == self.taken[-2]).all()
            return seconds * (1 if second else 5), held

    cost = measured(meter=Cold())
    assert cost.measured_seconds == pytest.approx(RULE(cost.counts, cost.padded_lengths))


def test_the_median_of_the_repeats_counts_and_the_most_memory():
    class Slow(Ruler):
        def stop(self, returned):
            seconds, held = super().stop(returned)
            number = len(self.taken)
            return (seconds * (9 if number > 30 and number % 7 == 0 else 1)), held + (number == 40) * 1e9

    cost = measured(meter=Slow(), repeats=9)
    expected = RULE(cost.counts, cost.padded_lengths)
    assert cost.measured_seconds == pytest.approx(expected)
    assert (cost.measured_bytes > HELD(cost.counts, cost.padded_lengths) + 1e6).sum() == 1


@pytest.mark.parametrize("lengths", [LENGTHS, PAIRS, [7] * 40, np.full((9, 3), 64)], ids=["long", "pairs", "even", "3"])
@pytest.mark.parametrize("budget", [None, 5_000])
def test_trials_span_the_lengths_within_the_budget(lengths, budget):
    shapes, rows = trial_shapes(lengths, budget), np.asarray(lengths).reshape(len(lengths), -1)
    assert len(np.unique(shapes, axis=0)) == len(shapes)
    assert (shapes[:, 1:].max(axis=0) == rows.max(axis=0)).all()
    assert (shapes[:, 1:].min(axis=0) * 3 <= rows.max(axis=0)).all()
    frames = shapes[:, 0] * shapes[:, 1:].sum(axis=1)
    if budget is not None:
        assert (frames[shapes[:, 0] > 1] <= budget).all()
    lw.StepCost.of(shapes[:, 0], shapes[:, 1:], np.ones(len(shapes)))  # they tell all coefficients


def test_trials_that_need_no_coefficients_lie_on_one_line():
    assert trial_lengths([[10, 2], [40, 8]], levels=3, aside=False).tolist() == [[10, 2], [20, 4], [40, 8]]
    aside = trial_lengths([[10, 2], [40, 8]], levels=3).tolist()
    assert sorted(aside) == [[10, 2], [10, 4], [20, 2], [20, 4], [20, 8], [40, 4], [40, 8]]


def test_an_epoch_takes_as_long_as_the_slowest_rank_of_each_step():
    cost = measured()
    plan = lw.make_plan(LENGTHS, lw.Batching(cost=cost.seconds, budget=0.2), world_size=3, micro_batches=2)
    expected = sum(
        max(sum(plan.costs[plan.grid[step, micro, rank]] for micro in range(2)) for rank in range(3))
        for step in range(plan.steps)
    )
    assert cost.seconds_of(plan) == pytest.approx(expected)
    other = lw.make_plan(LENGTHS, lw.Batching(budget=20_000))  # priced in frames, and predicted in seconds
    priced = RULE(other.batch_sizes, other.padded_lengths)
    assert cost.seconds_of(other) == pytest.approx(priced.sum(), rel=1e-6)


def test_packed_rows_count_as_rows_of_the_capacity():
    cost = measured()
    plan = lw.make_plan(LENGTHS, lw.Batching(cut=lw.Rows(6_500, rows=4)))
    expected = RULE(plan.row_counts, np.full((len(plan.costs), 1), 6_500)).sum()
    assert cost.seconds_of(plan) == pytest.approx(expected, rel=1e-6)


def test_a_plan_of_other_dimensions_is_refused():
    plan = lw.make_plan(PAIRS, lw.Batching(budget=20_000))
    with pytest.raises(ValueError, match=r"^`plan` must be of 1 length a sequence, as measured, but is 2\. "):
        measured().seconds_of(plan)


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


@pytest.mark.parametrize(
    "change",
    [
        lambda stored: stored.pop("seconds"),
        lambda stored: stored.update(more=1),
        lambda stored: stored.update(format="lengthwise.StepCost 2"),
        lambda stored: stored["seconds"].update(linear=-1),
        lambda stored: stored["seconds"].update(cubic=1),
        lambda stored: stored.update(counts=[1, 2]),
        lambda stored: stored.update(measured_seconds="soon"),
        lambda stored: stored.update(seconds_error=None),
        lambda stored: stored.update(seconds_error=float("nan")),
        lambda stored: stored.update(seconds_error=-0.1),
        lambda stored: stored.update(bytes=None),
        lambda stored: stored.update(bytes_error=None),
        lambda stored: stored.update(measured_bytes=None),
        lambda stored: stored["seconds"].update(linear=[1.0, 2.0]),
    ],
)
def test_a_file_that_is_no_step_cost_is_refused(tmp_path, change):
    path = tmp_path / "step.json"
    measured().save(path)
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))
    with pytest.raises(ValueError, match=r"^`path` must be a step cost that StepCost.save wrote, but is "):
        lw.StepCost.load(path)
    for nothing in ("", "[]", "7", '"x"', "null", "[" * 200_000):
        path.write_text(nothing)
        with pytest.raises(ValueError, match=r"^`path` must be a step cost that StepCost.save wrote, but is "):
            lw.StepCost.load(path)


def test_a_batching_keeps_a_fit_in_json():
    batching = lw.Batching(cost=measured(PAIRS).seconds, budget=0.2)
    assert lw.Batching.from_json(batching.to_json()) == batching
    assert '"per_length": 0.5' in lw.Batching(budget=9, cost=lw.Quadratic(per_length=0.5)).to_json()


def test_a_step_cost_in_place_of_its_seconds_is_told():
    with pytest.raises(
        TypeError, match=r"^`cost` must be .*\. Give its seconds: cost=step_cost\.seconds, and a budget"
    ):
        lw.Batching(cost=measured(), budget=0.2)
    with pytest.raises(
        lw.OversizeError, match=r" costs 0\.00174, and .* about 0\.0278\. Is the budget in .* or of `cost`\? "
    ):
        lw.make_plan(LENGTHS, lw.Batching(cost=lw.Quadratic(linear=1e-5 / 3), budget=0.0001))


def test_a_printed_step_cost_shows_the_fit_and_its_points():
    cost = lw.StepCost.of([1, 1, 1, 4, 4, 4], [100, 200, 400] * 2, [0.012, 0.014, 0.018, 0.018, 0.026, 0.042])
    lines = str(cost).splitlines()
    assert lines[0] == "seconds = 0.01 + 2e-05 n L, error 0.0%"
    assert lines[1].split() == ["sequences", "padded", "to", "seconds", "fit"]
    assert lines[2].split() in (["1", "100", "0.012", "+0.0%"], ["1", "100", "0.012", "-0.0%"])
    assert repr(cost).startswith("StepCost(Quadratic(")
    assert len(repr(cost)) < 300
    assert "bytes = 1e+09 + 4e+03 n L, error 0.0%" in str(measured())


def by_hand(**changed):
    """Seconds n L, measured as 2 and 8; bytes 4 n L, measured as 2 and 32."""
    facts = {
        **{"seconds": lw.Quadratic(), "bytes": lw.Quadratic(linear=4.0), "seconds_error": 0.1, "bytes_error": 0.2},
        **{"device": "a ruler", "counts": np.array([1, 2]), "padded_lengths": np.array([[1], [2]])},
        **{"measured_seconds": np.array([2.0, 8.0]), "measured_bytes": np.array([2.0, 32.0])},
    }
    return lw.StepCost(**(facts | changed))


def test_the_points_show_by_how_much_the_fit_misses_them():
    lines = [line.split() for line in str(by_hand()).splitlines()]
    assert [" ".join(line) for line in lines[:3]] == [
        "seconds = 1 n L, error 10.0%",
        "bytes = 4 n L, error 20.0%",
        "measured on: a ruler",
    ]
    assert lines[4:] == [["1", "1", "2", "-50.0%", "2", "+100.0%"], ["2", "2", "8", "-50.0%", "32", "-50.0%"]]
    assert repr(by_hand()).endswith(" seconds, error 10.0%, measured with 2 shapes on a ruler)")
    assert repr(by_hand(device="")).endswith(" seconds, error 10.0%, measured with 2 shapes)")


def test_all_that_is_known_is_kept_in_a_file(tmp_path):
    by_hand().save(tmp_path / "step.json")
    assert str(lw.StepCost.load(tmp_path / "step.json")) == str(by_hand())
    with pytest.raises(OSError, match="a pipe or a device: '/dev/null'"):
        lw.StepCost.load("/dev/null")


def test_each_fit_has_an_error_of_its_own_and_what_was_given_stays_writable():
    given = {name: np.array(each) for name, each in (("counts", [1] * 3 + [4] * 3), ("lengths", [1, 2, 4] * 2))}
    seconds = (given["counts"] * given["lengths"]).astype(float)
    held = seconds * [1, 1, 3, 1, 1, 1]
    cost = lw.StepCost.of(given["counts"], given["lengths"], seconds, bytes=held)
    assert cost.seconds_error < 1e-9 < 0.1 < cost.bytes_error
    for array in (*given.values(), seconds, held):
        array[0] += 1
    assert (cost.counts[0], cost.padded_lengths[0, 0], cost.measured_seconds[0], cost.measured_bytes[0]) == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("counts", "lengths", "seconds", "told"),
    [
        ([1, 2], [3], [1, 1], "`padded_lengths` must be whole numbers of shape [2] or [2, dims], but is [3]."),
        ([1.5, 2], [3, 4], [1, 1], "`counts` must be whole numbers of shape [points], but is [1.5, 2]."),
        ([1, 2], [3, 4], [[1], [1]], "`seconds` must be of shape (2,), but is (2, 1)."),
        ([1, 2], [3, 4], [1, np.nan], "`seconds` must be finite and above 0, but is nan."),
        ([1, 2], [3, 4], [np.inf, 1], "`seconds` must be finite and above 0, but is inf."),
    ],
)
def test_points_that_do_not_go_together_are_refused(counts, lengths, seconds, told):
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        lw.StepCost.of(counts, lengths, seconds)


def test_what_is_no_plan_is_refused():
    with pytest.raises(TypeError, match=r"^`plan` must be a Plan, but is 7\."):
        by_hand().seconds_of(7)


def test_without_a_meter_the_clock_of_the_process_counts(monkeypatch):
    now = [5.0]

    def step(shape):
        now[0] += float(RULE(np.array(shape[:1]), np.array([shape[1:]]))[0])

    def make_batch(*shape):
        now[0] += 100.0  # is not timed
        return shape

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    cost = lw.measure_step(step, make_batch, LENGTHS, repeats=1)
    assert cost.measured_seconds == pytest.approx(RULE(cost.counts, cost.padded_lengths))
    assert cost.device.startswith("CPU, ")


def test_a_step_on_a_gpu_tells_to_take_the_meter_of_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: True)))
    with pytest.raises(ValueError, match=r"^`meter` must be one that waits .* Take lengthwise\.torch\.measure_step, "):
        lw.measure_step(echo, shape_alone, LENGTHS)


def test_memory_that_is_not_always_known_is_not_told():
    class Sometimes(Ruler):
        def stop(self, returned):
            seconds, held = super().stop(returned)
            return seconds, None if len(self.taken) == 10 else held  # of a run that counts

    assert measured(meter=Sometimes()).bytes is None


def test_a_small_batch_may_take_no_time():
    cost = measured(meter=Ruler(lw.Quadratic(linear=1e-10), None))
    assert cost.measured_seconds.min() < 1e-6 < cost.measured_seconds.max()
    assert cost.seconds.linear == pytest.approx(1e-10)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"repeats": 0}, "`repeats` must be at least 1, but is 0."),
        ({"budget": 0}, "`budget` must be finite and above 0, but is 0."),
        ({"budget": np.nan}, "`budget` must be finite and above 0, but is nan."),
    ],
)
def test_a_round_or_a_budget_that_cannot_be_is_refused(asked, told):
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        measured(**asked)


def test_the_budget_that_was_too_much_is_named():
    with pytest.raises(ValueError, match="Give a budget of fewer padded frames than") as told:
        lw.measure_step(failing(MemoryError(), at=60), shape_alone, LENGTHS, meter=Ruler())
    count, length, most = re.search(r"make_batch\((\d+), (\d+)\).* than ([\d,]+)\.$", str(told.value)).groups()
    assert int(count) * int(length) == int(most.replace(",", ""))


def failing(error, at=1):
    def step(batch):
        if batch[0] >= at:
            raise error
        return batch

    return step


def alone_no_memory(batch):
    if batch[0] == 1:
        raise MemoryError
    return batch


async def wait(batch):
    return batch


async def wait_often(batch):
    yield batch


def large_out_of_memory(count, length):
    if count * length > 1_000:
        raise RuntimeError("CUDA out of memory")
    return count, length


def in_parts(first, second):
    return first, second


class Trainer:
    def train_step(self, batch):
        return batch


TRAINS = "`step` must be a function that trains on what make_batch returns, but is "
RETURNS = "`make_batch` must be a function that returns a batch of so many sequences, padded to such a length, but is "
BAD = {
    "raises": (
        failing(KeyError("loss")),
        shape_alone,
        rf"{TRAINS}KeyError\('loss'\) at make_batch\(\d+, \d+\)\. Try step\(make_batch\(\d+, \d+\)\) by itself\.$",
    ),
    "no memory": (
        failing(MemoryError(), at=60),
        shape_alone,
        rf"{TRAINS}MemoryError\(\) at .*\. Give a budget of fewer padded frames than [\d,]+\.$",
    ),
    "no batch": (echo, lambda *_: None, rf"{RETURNS}None at make_batch\(.*\)\. Return the batch\.$"),
    "no memory for one": (
        alone_no_memory,
        shape_alone,
        rf"{TRAINS}MemoryError\(\) at make_batch\(1, \d+\)\. Make the model smaller, or cut sequences into chunks\.$",
    ),
    "raises in make_batch": (
        echo,
        lambda *_: 1 / 0,
        rf"{RETURNS}ZeroDivisionError.*\. Try make_batch\(.*\) by itself\.$",
    ),
    "a coroutine": (
        wait,
        shape_alone,
        rf"{TRAINS}'a coroutine, which has not run' at .* Give `lambda batch: asyncio\.",
    ),
    "a generator": (
        lambda batch: (each for each in batch),
        shape_alone,
        rf"{TRAINS}'a generator, which has not run' at",
    ),
    "an asynchronous generator": (wait_often, shape_alone, rf"{TRAINS}'a async_generator, which has not run' at"),
    "no memory for a batch": (
        echo,
        large_out_of_memory,
        rf"{TRAINS}RuntimeError.*\. Give a budget of fewer padded frames",
    ),
    "one count": (echo, lambda *_: np.ones((4, 4)), rf"{RETURNS}'16 numbers, whatever the count' at make_batch\(\d+, "),
    "one length": (
        echo,
        lambda count, _: {"x": np.ones((count, 4)), "y": [np.ones(count)]},
        rf"{RETURNS}'\d+ numbers, whatever the length' at make_batch\(\d+, \d+\)\. Pad its sequences to `length`\.$",
    ),
    "no time": (
        echo,
        shape_alone,
        r"`step` must be a function that takes time, but is .*\. Give the whole training step",
    ),
}


@pytest.mark.parametrize(("step", "make_batch", "message"), BAD.values(), ids=BAD)
def test_a_bad_step_is_named(step, make_batch, message):
    still = Ruler(lw.Quadratic(linear=0.0, per_batch=1e-9), None)
    with pytest.raises(ValueError, match=f"^{message}"):
        lw.measure_step(step, make_batch, LENGTHS, meter=still, repeats=1)


@pytest.mark.parametrize(
    ("step", "make_batch", "lengths", "message"),
    [
        (
            in_parts,
            in_parts,
            LENGTHS,
            r"`step` must be .* one argument.*'in_parts\(first, second\)'.* `train\(\*\*batch\)`",
        ),
        (lambda: None, echo, LENGTHS, r"`step` must be .* one argument.*. `train\(\*\*batch\)` for a batch by name\.$"),
        (Trainer, shape_alone, LENGTHS, r"`step` must .*'Trainer\(\)'\. Give the method of an object"),
        (
            Trainer.train_step,
            shape_alone,
            LENGTHS,
            r"`step` .*'train_step\(self, batch\)'\. Give the method of an object",
        ),
        (in_parts, echo, LENGTHS, r"`step` must .* Give step, make_batch, lengths, in this order\.$"),
        (
            echo,
            echo,
            LENGTHS,
            r"`make_batch` must be a function of 2 arguments, a count and a length, but is 'echo\(batch\)",
        ),
        (
            echo,
            in_parts,
            [[9, 9]],
            r"`make_batch` .* of 3 arguments, a count and 2 lengths, as .* make_batch\(count, length, a",
        ),
    ],
    ids=["two arguments", "no argument", "a class", "no object", "swapped", "no length", "one length of two"],
)
def test_functions_that_take_other_arguments_are_refused_before_they_run(step, make_batch, lengths, message):
    with pytest.raises(TypeError, match=f"^{message}"):
        lw.measure_step(step, make_batch, lengths)


class Unsigned:
    __signature__ = "tells none"

    def __call__(self, *shape):
        return shape


def test_methods_and_functions_of_c_are_measured():
    assert lw.measure_step(echo, Unsigned(), LENGTHS, meter=Ruler(), repeats=1).seconds_error < 1e-6
    for step in (Trainer().train_step, np.asarray, np.array):
        cost = lw.measure_step(step, shape_alone, LENGTHS, meter=Ruler(), repeats=1)
        assert cost.seconds_error < 1e-6


def test_batches_that_hold_other_things_than_arrays_are_let_through():
    meter = Ledger(None)

    def make_batch(*shape):
        meter.shape = shape
        return np.ones((4, 4)), "texts"

    assert lw.measure_step(lambda _: meter.step(meter.shape), make_batch, LENGTHS, meter=meter, repeats=1).device


class Ledger(Ruler):
    """A ruler of steps that return their loss: it reads the shape from what the step wrote down."""

    def __init__(self, loss):
        super().__init__()
        self.loss = loss

    def step(self, batch):
        self.batch = batch
        return self.loss

    def stop(self, returned):
        assert returned is self.loss
        return super().stop(self.batch)


@pytest.mark.parametrize("loss", [float("nan"), np.array(np.inf), np.float32("nan")], ids=["float", "array", "scalar"])
def test_a_loss_that_is_no_number_warns(loss):
    meter = Ledger(loss)
    with pytest.warns(
        UserWarning, match=r"^`step` must be a function that keeps its loss and .* finite, but is "
    ) as told:
        lw.measure_step(meter.step, shape_alone, LENGTHS, meter=meter, repeats=1)
    assert [each.filename for each in told] == [__file__]


@pytest.mark.parametrize("loss", [0.5, np.array(3.0), np.float32(2), None, "nan", np.full(3, np.nan), 7])
def test_another_loss_does_not(loss):
    meter = Ledger(loss)
    lw.measure_step(meter.step, shape_alone, LENGTHS, meter=meter, repeats=1)


def test_what_leaves_a_coefficient_open_is_refused_before_the_first_step():
    for asked, message in (
        (
            {"lengths": LENGTHS, "budget": 3},
            rf"`budget` must be at least {2 * max(LENGTHS):,}, two sequences of the longest",
        ),
        ({"lengths": [2, 2]}, r"`lengths` must be of 3 frames or more at the longest, .* but is \[2\]"),
        ({"lengths": []}, r"`lengths` must be of at least one sequence, but is 0"),
        ({"lengths": np.ones((0, 2), int)}, r"`lengths` must be of at least one sequence, but is 0"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            lw.measure_step(failing(KeyError()), shape_alone, **asked)


def test_the_first_loss_that_is_no_number_is_told():
    meter = Ledger(None)

    def step(batch):
        meter.loss = float("inf") if len(meter.taken) == 1 else float("nan")
        return meter.step(batch)

    with pytest.warns(UserWarning, match=r" finite, but is inf\. "):
        lw.measure_step(step, shape_alone, LENGTHS, meter=meter, repeats=1)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match=r"^`step` must be a function, but is 7\. "):
        lw.measure_step(7, shape_alone, LENGTHS)
    with pytest.raises(TypeError, match=r"^`make_batch` must be a function, but is 7\. "):
        lw.measure_step(echo, 7, LENGTHS)


def test_points_that_leave_a_coefficient_open_are_refused():
    for counts, lengths in (([1, 1, 1], [1, 2, 3]), ([1, 2, 1, 2], [9, 9, 8, 8]), ([1, 2, 3], [10, 20, 30])):
        with pytest.raises(ValueError, match=r"^`shapes` must be of two counts and three lengths at least"):
            lw.StepCost.of(counts, lengths, np.ones(len(counts)))
    with pytest.raises(
        ValueError, match=r"^`seconds` must be finite and above 0, but is 0\.0\. Leave the point out\.$"
    ):
        lw.StepCost.of([1, 2], [3, 4], [0.0, 1.0])
    with pytest.raises(
        TypeError, match=r"^`seconds` must be numbers, but is \['soon', 'later'\]\. Give one number for"
    ):
        lw.StepCost.of([1, 2], [3, 4], ["soon", "later"])
    with pytest.raises(ValueError, match=r"^`counts` must be from 1 to 2\*\*40, but is 0\. "):
        lw.StepCost.of([0, 2], [3, 4], [1.0, 1.0])
    with pytest.raises(ValueError, match=rf"^`padded_lengths` must be from 1 to 2\*\*40, but is {2**41}\. "):
        lw.StepCost.of([1, 2], [3, 2**41], [1.0, 1.0])


def test_an_array_of_jax_tells_to_take_its_meter():
    class Pending:
        def block_until_ready(self):
            return self

    for returned in (Pending(), (0.5, Pending()), (0.5, {"weights": [Pending()]})):
        with pytest.raises(
            ValueError, match=r"^`meter` must be one that waits .* Take lengthwise\.jax\.measure_step, "
        ):
            lw.measure_step(lambda _, given=returned: given, shape_alone, LENGTHS)


@pytest.mark.parametrize(
    ("error", "ran"),
    [
        (MemoryError(), True),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"), True),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
        (KeyError("out of memory"), False),
    ],
)
def test_what_says_that_memory_ran_out(error, ran):
    assert ran_out(error) is ran


def test_without_scipy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(ImportError, match=r'^a fit needs SciPy: pip install "lengthwise\[advice\]"$'):
        measured()

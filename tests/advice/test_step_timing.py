"""Steps are measured on a clock that follows a known rule, and steps that cannot be measured are refused."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from ruler import HELD, LENGTHS, PAIRS, RULE, Ruler, echo, measured, shape_alone

import lengthwise as lw
from lengthwise.advice.step_timing import ran_out, trial_lengths, trial_shapes

pytest.importorskip("scipy")


def test_a_round_runs_every_shape_twice_in_an_order_of_its_own():
    meter = Ruler()
    cost = measured(meter=meter, repeats=3)
    taken = [tuple(shape.tolist()) for shape in meter.taken]
    assert taken[::2] == taken[1::2]
    count = len(cost.counts)
    rounds = [tuple(taken[at : at + 2 * count : 2]) for at in range(0, len(taken), 2 * count)]
    assert len(set(rounds)) == len(rounds) == 3
    assert {frozenset(each) for each in rounds} == {frozenset(rounds[0])}


def test_the_second_run_of_a_shape_counts_then_the_median_of_the_repeats_and_the_most_memory():
    class Uneven(Ruler):
        def stop(self, returned):
            seconds, held = super().stop(returned)
            number = len(self.taken)
            slow = number % 2 == 1 or (number > 30 and number % 7 == 0)  # each first run, and some others
            return seconds * (9 if slow else 1), held + (number == 40) * 1e9

    cost = measured(meter=Uneven(), repeats=9)
    assert cost.measured_seconds == pytest.approx(RULE(cost.counts, cost.padded_lengths))
    assert (cost.measured_bytes > HELD(cost.counts, cost.padded_lengths) + 1e6).sum() == 1


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


class Pending:
    def block_until_ready(self):
        return self


@pytest.mark.parametrize("returned", [Pending(), (0.5, {"weights": [Pending()]})])
def test_an_array_of_jax_tells_to_take_its_meter(returned):
    with pytest.raises(ValueError, match=r"^`meter` must be a meter that .* Call lengthwise\.jax\.measure_step, "):
        lw.measure_step(lambda _: returned, shape_alone, LENGTHS)


def test_a_step_on_a_gpu_tells_to_take_the_meter_of_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: True)))
    with pytest.raises(ValueError, match=r"^`meter` must be a meter that .* Call lengthwise\.torch\.measure_step, "):
        lw.measure_step(echo, shape_alone, LENGTHS)


def failing(error, at=1):
    def step(batch):
        if batch[0] >= at:
            raise error
        return batch

    return step


def failing_alone(batch):
    if batch[0] == 1:
        raise MemoryError
    return batch


async def wait(batch):
    return batch


def in_parts(first, second):
    return first, second


class Trainer:
    def train_step(self, batch):
        return batch


TRAINS = "`step` must be a function that trains on the batches of make_batch, but is "
RETURNS = "`make_batch` must be a function that returns a batch of `count` sequences, padded to `length`, but is "
BAD = {
    "raises": (
        failing(KeyError("loss")),
        shape_alone,
        rf"{TRAINS}KeyError\('loss'\) at make_batch\(\d+, \d+\)\. Try step\(make_batch\(\d+, \d+\)\) by itself\.$",
    ),
    "no memory for one": (
        failing_alone,
        shape_alone,
        rf"{TRAINS}MemoryError\(\) at make_batch\(1, \d+\)\. Make the model smaller, or cut sequences into chunks\.$",
    ),
    "raises in make_batch": (echo, lambda *_: 1 / 0, rf"{RETURNS}ZeroDivisionError.*\. Try make_batch\(.*\) by itself"),
    "no batch": (echo, lambda *_: None, rf"{RETURNS}None at make_batch\(.*\)\. Return the batch\.$"),
    "a coroutine": (wait, shape_alone, rf"{TRAINS}'a coroutine, which has not run' at .* Give `lambda batch: asyncio"),
    "a generator": (lambda batch: (one for one in batch), shape_alone, rf"{TRAINS}'a generator, which has not run' at"),
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


@pytest.mark.parametrize("fails", ["step", "make_batch"])
def test_the_budget_that_was_too_much_is_named(fails):
    failing_batch = failing(RuntimeError("CUDA out of memory"), at=60)
    functions = {"step": echo, "make_batch": shape_alone}
    functions |= {fails: failing_batch if fails == "step" else lambda *shape: failing_batch(shape)}
    with pytest.raises(ValueError, match=f"^{TRAINS}RuntimeError.*Give a budget of fewer padded frames than") as told:
        lw.measure_step(**functions, lengths=LENGTHS, meter=Ruler())
    count, length, most = re.search(r"make_batch\((\d+), (\d+)\).* than ([\d,]+)\.$", str(told.value)).groups()
    assert int(count) * int(length) == int(most.replace(",", ""))


ARGUMENTS = [
    (in_parts, in_parts, r"`step` must be .* one argument.*'in_parts\(first, second\)'.* `train\(\*\*batch\)`"),
    (lambda: None, echo, r"`step` must be .* one argument.*. `train\(\*\*batch\)` for a batch that is a dict\.$"),
    (Trainer, shape_alone, r"`step` must .*'Trainer\(\)'\. Give the method of an object"),
    (Trainer.train_step, shape_alone, r"`step` .*'train_step\(self, batch\)'\. Give the method of an object"),
    (in_parts, echo, r"`step` must .* Give step, make_batch, lengths, in this order\.$"),
    (echo, echo, r"`make_batch` must be a function of 2 arguments, a count and a length, but is 'echo\(batch\)"),
    (7, shape_alone, r"`step` must be a function, but is 7\. "),
    (echo, 7, r"`make_batch` must be a function, but is 7\. "),
]


@pytest.mark.parametrize(("step", "make_batch", "message"), ARGUMENTS)
def test_functions_that_take_other_arguments_are_refused_before_they_run(step, make_batch, message):
    with pytest.raises(TypeError, match=f"^{message}"):
        lw.measure_step(step, make_batch, LENGTHS)


def test_a_batch_of_two_lengths_needs_a_function_of_three_arguments():
    message = r"^`make_batch` .* of 3 arguments, a count and 2 lengths, as .* make_batch\(count, length, a"
    with pytest.raises(TypeError, match=message):
        lw.measure_step(echo, in_parts, [[9, 9]])


class Unsigned:
    __signature__ = "tells none"

    def __call__(self, *shape):
        return shape


def test_methods_and_functions_of_c_are_measured():
    for step, make_batch in ((echo, Unsigned()), (Trainer().train_step, shape_alone), (np.asarray, shape_alone)):
        assert lw.measure_step(step, make_batch, LENGTHS, meter=Ruler(), repeats=1).seconds_error < 1e-6


class Ledger(Ruler):
    """A ruler of steps that return their loss: it reads the shape from what make_batch wrote down."""

    def __init__(self, *losses):
        super().__init__()
        self.losses = losses  # of the first step, and so on; the last of them of all others

    def make_batch(self, *shape):
        self.shape = shape
        return np.ones((4, 4)), "texts"  # which hold other things than arrays, and are let through

    def step(self, _):
        return self.losses[min(len(self.taken), len(self.losses)) - 1]

    def stop(self, _):
        return super().stop(self.shape)


@pytest.mark.parametrize("losses", [(float("nan"),), (np.array(np.inf), np.nan), (np.float32("nan"),)], ids=str)
def test_the_first_loss_that_is_no_number_warns(losses):
    meter = Ledger(*losses)
    message = rf"^`step` must be a function that keeps its loss and .* finite, but is .*{losses[0]}.*\. "
    with pytest.warns(UserWarning, match=message) as told:
        lw.measure_step(meter.step, meter.make_batch, LENGTHS, meter=meter, repeats=1)
    assert [each.filename for each in told] == [__file__]


@pytest.mark.parametrize("loss", [0.5, np.array(3.0), None, "nan", np.full(3, np.nan), 7])
def test_another_loss_does_not_warn(loss):
    meter = Ledger(loss)
    lw.measure_step(meter.step, meter.make_batch, LENGTHS, meter=meter, repeats=1)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"repeats": 0}, "`repeats` must be at least 1, but is 0."),
        ({"budget": 0}, "`budget` must be finite and above 0, but is 0."),
        ({"budget": 3}, f"`budget` must be at least {2 * max(LENGTHS):,}, two sequences of the longest"),
        ({"lengths": [2, 2]}, "`lengths` must be of at least 3 frames for the longest sequence, "),
        ({"lengths": []}, "`lengths` must be of at least one sequence, but is 0"),
    ],
)
def test_what_leaves_a_coefficient_open_is_refused_before_the_first_step(asked, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        lw.measure_step(failing(KeyError()), shape_alone, **{"lengths": LENGTHS, **asked})


@pytest.mark.parametrize(
    ("error", "ran"),
    [
        (MemoryError(), True),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"), True),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_what_says_that_memory_ran_out(error, ran):
    assert ran_out(error) is ran

"""Steps are measured on a clock that follows a known rule, and steps that cannot be measured are refused."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from ruler import LENGTHS, PAIRS, RULE, Ruler, echo, measured, shape_alone

import lengthwise as lw
from lengthwise.advice.step_timing import ran_out, trial_shapes


def test_a_round_runs_every_shape_twice_in_an_order_of_its_own():
    meter = Ruler()
    cost = measured(meter=meter, repeats=3)
    assert meter.taken[::2] == meter.taken[1::2]
    count = len(cost.counts)
    rounds = [tuple(meter.taken[at : at + 2 * count : 2]) for at in range(0, len(meter.taken), 2 * count)]
    assert len(set(rounds)) == len(rounds) == 3
    assert {frozenset(each) for each in rounds} == {frozenset(rounds[0])}


def test_the_second_run_of_a_shape_counts_then_the_median_of_the_repeats():
    class Uneven(Ruler):
        def __call__(self, step, batch):
            seconds, number = super().__call__(step, batch), len(self.taken)
            return seconds * (9 if number % 2 or number > 150 else 1)  # each first run is slow, and later ones too

    cost = measured(meter=Uneven(), repeats=9)
    assert cost.measured_seconds == pytest.approx(RULE(cost.counts, cost.padded_lengths))


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
    # What JAX computes later is waited for.
    wait = SimpleNamespace(block_until_ready=lambda shape: step(shape))
    monkeypatch.setitem(sys.modules, "jax", wait)
    later = lw.measure_step(echo, make_batch, LENGTHS, repeats=1)
    assert later.measured_seconds == pytest.approx(cost.measured_seconds)


def test_a_step_on_a_gpu_tells_to_take_the_meter_of_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: True)))
    with pytest.raises(ValueError, match=r"^This clock does not wait for the GPU\. Call lengthwise\.torch\.measure_s"):
        lw.measure_step(echo, shape_alone, LENGTHS)


def failing(error, least=1):
    def step(batch):
        if batch[0] >= least:
            raise error
        return batch

    return step


TRAINS = "`step` must be a function that trains on the batches of make_batch, but is "
RETURNS = "`make_batch` must be a function that returns a batch of `count` sequences, padded to `length`, but is "
BAD = {
    "raises": (failing(KeyError("loss")), shape_alone, rf"{TRAINS}KeyError\('loss'\) at make_batch\(\d+, \d+\)\. Try "),
    "takes two": (lambda x, y: (x, y), shape_alone, rf"{TRAINS}TypeError\(.* at make_batch\(\d+, \d+\)\. Try "),
    "no memory": (failing(MemoryError()), shape_alone, rf"{TRAINS}MemoryError\(\) at .*\. (Make the model|Give a bud)"),
    "raises in make_batch": (echo, lambda *_: 1 / 0, rf"{RETURNS}ZeroDivisionError.* at make_batch\(.*\. Try this"),
}


@pytest.mark.parametrize(("step", "make_batch", "message"), BAD.values(), ids=BAD)
def test_a_bad_step_is_named(step, make_batch, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        lw.measure_step(step, make_batch, LENGTHS, meter=Ruler(), repeats=1)


def test_the_budget_that_was_too_much_is_named():
    step = failing(RuntimeError("CUDA out of memory"), least=20)
    with pytest.raises(ValueError, match=f"^{TRAINS}RuntimeError.*Give a budget of fewer padded frames than") as told:
        lw.measure_step(step, shape_alone, LENGTHS, meter=Ruler())
    count, length, most = re.search(r"make_batch\((\d+), (\d+)\).* than ([\d,]+)\.$", str(told.value)).groups()
    assert int(count) * int(length) == int(most.replace(",", ""))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"repeats": 0}, "`repeats` must be at least 1, but is 0."),
        ({"budget": 263}, "`budget` must be finite and at least 264, but is 263. Give the largest"),
        ({"lengths": []}, "`lengths` must be of at least one sequence, but is 0"),
        ({"step": 7}, "`step` must be a function, but is 7. Give step, make_batch, lengths, in this order."),
    ],
)
def test_what_cannot_be_measured_is_refused_before_the_first_step(asked, message):
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(message)}"):
        lw.measure_step(**{"step": failing(KeyError()), "make_batch": shape_alone, "lengths": LENGTHS, **asked})


@pytest.mark.parametrize(
    ("error", "ran"),
    [
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA"), True),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"), True),
        (RuntimeError("RESOURCE_EXHAUSTED: 9 bytes"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_what_says_that_memory_ran_out(error, ran):
    assert ran_out(error) is ran

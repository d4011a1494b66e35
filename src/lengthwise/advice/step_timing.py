"""measure_step: times the user's training step on batches of a few shapes, and fits a cost.

shapes   [shapes, 1 + dims]   the number of sequences of a trial batch, and their padded length
"""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.advice.step_cost import StepCost
from lengthwise.choices.cut import BUDGET_REMEDY
from lengthwise.lengths import as_lengths

Step = Callable[[Any], Any]
MakeBatch = Callable[..., Any]
Meter = Callable[[Step, Any], float]

CPU = f"CPU, {platform.machine()}, {os.cpu_count()} cores"
_BATCH = 16  # sequences in a usual batch; by default the budget of a trial is two such batches of mean length
_SHORT = 0.05  # the quantile of the lengths for the shortest trial
_SPAN = 4  # the least ratio of the longest to the shortest trial
_LEVELS = 5  # padded lengths from short to the longest
_FEW = 8  # the largest batch of each length has 8 times the sequences of the other
_TRAINS = "a function that trains on the batches of make_batch"
RETURNS = "a function that returns a batch of `count` sequences, padded to `length`"
_WORDS = r"out of memory|not enough memory|can't allocate memory|resource_exhausted|alloc_failed|bad_alloc"


def _run_by_clock(step: Step, batch: Any) -> float:
    """Runs a step that is done when it returns, or when its arrays of JAX are there; returns its seconds."""
    started = time.perf_counter()
    returned = step(batch)
    if (jax := sys.modules.get("jax")) is not None:
        jax.block_until_ready(returned)
    seconds = time.perf_counter() - started
    if (torch := sys.modules.get("torch")) is not None and torch.cuda.is_initialized():
        raise checks.state_error("This clock does not wait for the GPU", "Call lengthwise.torch.measure_step.")
    return seconds


def measure_step(
    step: Step,
    make_batch: MakeBatch,
    lengths: ArrayLike,
    *,
    budget: float | None = None,
    repeats: int = 5,
    meter: Meter = _run_by_clock,
    device: str = CPU,
) -> StepCost:
    """Measures the cost of your training step, on batches of about ten shapes, and fits a formula.

    There are `repeats` rounds. Each round runs all shapes in a new random order, so that other load on the machine
    affects all shapes alike. In a round, each shape runs twice, and the second run is timed, because in an epoch too a
    step follows one of about the same size. The time of a shape is the median over the rounds. The step really trains:
    give it a copy of the model, or load the old weights afterwards.

    The fit is valid for the measured range of shapes. On a CPU, for example, a frame costs more once a batch does not
    fit into the caches. So give the `budget` of your training.

    The clock waits for all arrays of JAX that the step returns: the loss, and the new weights. With PyTorch call
    `lengthwise.torch.measure_step`, which waits for the GPU. Moving a batch to the device is counted only if the step
    does it. So let `make_batch` return the same as your loader.

    Args:
        step: Your training step: forward, backward, and the update of the weights. It is called with a batch.
        make_batch: `make_batch(count, length)` returns a batch of `count` sequences padded to `length` frames; for
            lengths of several dimensions, `make_batch(count, length, another)`. It is not timed.
        lengths: [n] or [n, dims], the lengths of your data. The trials range from short to the longest.
        budget: The largest batch of a trial in padded frames; by default 32 times the mean length, or
            twice the longest if that is more. A trial of a single sequence may exceed the budget.
        repeats: The number of times that each shape is timed.
        meter: A function of the step and a batch. It runs the step, waits until the device is done, and returns the
            seconds. By default a clock.
        device: The measured device, in words.

    Returns:
        The cost of a step in seconds. `print` shows the points and their errors.

    Raises:
        TypeError: The step or `make_batch` is not a function.
        ValueError: The step cannot be measured:

            - The step or `make_batch` raises, or memory runs out. The error names the shape.
            - The budget does not hold two short sequences, as if it had another unit than the lengths.

    >>> frames = lambda count, length: np.ones((count, length, 64))
    >>> cost = measure_step(lambda batch: batch @ batch[0].T, frames, [100, 200, 400], repeats=1)
    >>> cost.counts.max(), cost.padded_lengths.max()
    (np.int64(74), np.int64(400))
    """
    checks.check_whole("repeats", repeats, minimum=1, remedy="Give the number of times that each shape is timed.")
    check_functions(step, make_batch)
    shapes = trial_shapes(lengths, budget)
    measured = np.empty((repeats, len(shapes)))
    for number in range(repeats):
        for index in Key(epoch=number, stage="order").permutation(len(shapes)).tolist():
            measured[number, index] = _run_twice(step, make_batch, shapes[index], meter)
    return StepCost.of(shapes[:, 0], shapes[:, 1:], np.median(measured, axis=0), device=device)


def trial_shapes(lengths: ArrayLike, budget: float | None) -> NDArray[np.int64]:
    """Returns the shapes of the trials: at most `budget` padded frames, or a single sequence.

    >>> trial_shapes([100] * 10 + [1_600], budget=6_400)[:6].tolist()
    [[1, 800], [1, 1600], [2, 400], [4, 200], [4, 1600], [8, 100]]
    """
    rows = as_lengths(lengths)
    steps = trial_lengths(rows, levels=_LEVELS)
    middle, dims = steps[len(steps) // 2], steps.shape[1]
    # To separate the costs of the dimensions, one alone is short or long:
    # (10, 2), (20, 4), (40, 8) add (10, 4), (40, 4), (20, 2) and (20, 8).
    aside = [np.where(np.arange(dims) == dim, end, middle) for dim in range(dims) for end in steps[[0, -1]]]
    padded = np.unique(np.vstack([steps, *aside]), axis=0)
    frames = padded.sum(axis=1)
    # By default, the budget holds two of the longest.
    most = max(2 * _BATCH * dims * float(rows.mean()), 2.0 * int(frames.max()))
    if budget is not None:
        most = checks.check_number("budget", budget, minimum=2.0 * frames.min(), remedy=BUDGET_REMEDY)
    largest = np.maximum(1, most // frames).astype(np.int64)
    counts = np.concatenate([largest, np.maximum(1, largest // _FEW)])
    return np.unique(np.column_stack([counts, np.tile(padded, (2, 1))]), axis=0)


def trial_lengths(lengths: ArrayLike, *, levels: int) -> NDArray[np.int64]:
    """Returns padded lengths from short to the longest, in equal ratios: [levels or fewer, dims].

    >>> trial_lengths([100] * 10 + [1_600], levels=5).tolist()
    [[100], [200], [400], [800], [1600]]
    """
    rows = as_lengths(lengths)
    if not len(rows):
        raise checks.value_error("lengths", "of at least one sequence", 0, "Give the lengths of your data.")
    rows = rows.reshape(len(rows), -1)
    longest = rows.max(axis=0)
    shortest = np.minimum(np.quantile(rows, _SHORT, axis=0), longest / _SPAN).clip(1, None)
    shares = np.linspace(0.0, 1.0, levels)[:, None]
    return np.unique(np.rint(shortest ** (1 - shares) * longest**shares).astype(np.int64), axis=0)


def _run_twice(step: Step, make_batch: MakeBatch, shape: NDArray[np.int64], meter: Meter) -> float:
    """Runs two steps of `shape` [1 + dims], and returns the seconds of the second."""
    try:
        try_once(step, make_batch, shape, meter)  # compiles, allocates, and fills the caches
        return try_once(step, make_batch, shape, meter)
    except (MemoryError, RuntimeError) as error:  # `try_once` raises these if memory ran out
        remedy = f"Give a budget of fewer padded frames than {int(shape[0] * shape[1:].sum()):,}."
        if shape[0] == 1:  # under a smaller budget, this sequence is tried too
            remedy = "Make the model smaller, or cut sequences into chunks."
        raise checks.value_error("step", _TRAINS, error, remedy, at=place_of(shape)) from error


def try_once(step: Step, make_batch: MakeBatch, shape: NDArray[np.int64], meter: Meter) -> float:
    """Runs one step on a new batch of `shape` [1 + dims], and returns its seconds.

    Raises:
        ValueError: `make_batch` or the step raises. If memory ran out, the error is the original one.
    """
    batch = call("make_batch", RETURNS, shape, make_batch, *shape.tolist())
    return meter(partial(call, "step", _TRAINS, shape, step), batch)


def call(name: str, rule: str, shape: NDArray[np.int64], function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function of the user, and names the shape of the batch in its error."""
    try:
        return function(*arguments)
    except Exception as error:
        if ran_out(error):
            raise
        raise checks.value_error(name, rule, error, "Try this call by itself.", at=place_of(shape)) from error


def place_of(shape: NDArray[np.int64]) -> str:
    """Returns the call that makes a batch of `shape` [1 + dims]."""
    return f"make_batch({', '.join(map(str, shape.tolist()))})"


def ran_out(error: BaseException) -> bool:
    """Tells if memory ran out, by the class or the words of an error."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    # PyTorch on a CPU, cuBLAS, cuDNN and XLA raise a RuntimeError, which is also used for other errors.
    return isinstance(error, RuntimeError) and re.search(_WORDS, str(error), re.IGNORECASE) is not None


def check_functions(step: Step, make_batch: MakeBatch) -> None:
    """Refuses arguments that cannot be called."""
    for name, function in (("step", step), ("make_batch", make_batch)):
        if not callable(function):
            raise checks.type_error(name, "a function", function, "Give step, make_batch, lengths, in this order.")

"""measure_step: times the user's training step on batches of a few shapes, and fits a cost."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.advice.step_checks import (
    RETURNS,
    TRAINS,
    MakeBatch,
    Step,
    check_arguments,
    check_batches,
    check_functions,
    check_ran,
    note_loss,
    place_of,
    tell_infinite,
)
from lengthwise.advice.step_cost import StepCost, check_shapes, import_solver
from lengthwise.choices.cut import BUDGET_REMEDY
from lengthwise.lengths import as_lengths

_SHORT = 0.05  # the quantile of the lengths for the shortest trial
_SPAN = 4  # the least ratio of the longest to the shortest trial
_COUNTS = (1 / 8, 1 / 2, 1.0)  # numbers of sequences at each length, as shares of those that the budget holds
BATCH = 16  # sequences in a usual batch; by default the budget of a trial is two such batches of mean length
_LEAST_SECONDS = 1e-6  # calling an empty function and reading the clock take less
_WORDS = (
    "out of memory",
    "not enough memory",
    "can't allocate memory",
    "resource_exhausted",
    "alloc_failed",
    "bad_alloc",
)


class Meter(Protocol):
    """A meter of a step: a clock that waits for the device, and optionally measures its memory.

    Attributes:
        device: The device of the step, in words.
    """

    @property
    def device(self) -> str: ...

    def start(self) -> None:
        """Waits for the device, and starts the clock. Called before a step, after its batch is made."""
        ...

    def stop(self, returned: Any) -> tuple[float, float | None]:
        """Waits until the device is done, and stops the clock. Called after a step.

        Args:
            returned: The return value of the step.

        Returns:
            The seconds since `start`, and the peak bytes since then, or None.
        """
        ...


class _Clock:
    """A clock for steps that are done when they return."""

    def __init__(self) -> None:
        self.device: str = f"CPU, {platform.machine()}, {os.cpu_count()} cores"
        self._started = 0.0

    def start(self) -> None:
        self._started = time.perf_counter()

    def stop(self, returned: Any) -> tuple[float, float | None]:
        seconds = time.perf_counter() - self._started
        remedy = None
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            remedy = "lengthwise.torch.measure_step"
        elif _is_pending(returned):
            remedy = "lengthwise.jax.measure_step"
        if remedy is not None:
            rule = "a meter that waits for the device"
            raise checks.value_error("meter", rule, None, f"Call {remedy}, which has such a meter.")
        return seconds, None


def _is_pending(returned: Any) -> bool:
    """Tells if the return value has JAX arrays, which may still be computed: (loss, {"w": weights})."""
    if isinstance(returned, tuple | list):
        return any(map(_is_pending, returned))
    if isinstance(returned, dict):
        return any(map(_is_pending, returned.values()))
    return hasattr(returned, "block_until_ready")


def measure_step(
    step: Step,
    make_batch: MakeBatch,
    lengths: ArrayLike,
    *,
    budget: float | None = None,
    repeats: int = 5,
    meter: Meter | None = None,
) -> StepCost:
    """Measures the cost of your training step, on batches of about fifteen shapes, and fits a formula.

    There are `repeats` rounds. Each round runs all shapes in a new random order, so that other load on the machine
    affects all shapes alike. In a round, each shape runs twice, and the second run is timed, because in an epoch too a
    step follows one of about the same size. The time of a shape is the median over the rounds. The step really trains:
    give it a copy of the model, or load the old weights afterwards.

    The fit is valid for the measured range of shapes. On a CPU, for example, a frame costs more once a batch does not
    fit into the caches. So give the `budget` of your training.

    On a GPU call `lengthwise.torch.measure_step` or `lengthwise.jax.measure_step`: they wait until the device is done.
    Moving a batch to the device is counted only if the step does it. So let `make_batch` return the same as your
    loader.

    Args:
        step: Your training step: forward, backward, and the update of the weights. It is called with a batch.
        make_batch: `make_batch(count, length)` returns a batch of `count` sequences padded to `length` frames; for
            lengths of several dimensions, `make_batch(count, length, another)`. It is not timed.
        lengths: [n] or [n, dims], the lengths of your data. The trials range from short to the longest.
        budget: The largest batch of a trial in padded frames; by default 32 times the mean length, or
            twice the longest if that is more. A trial of a single sequence may exceed the budget.
        repeats: The number of times that each shape is timed.
        meter: The meter; by default a clock, without memory.

    Returns:
        The cost of a step in seconds, and in bytes if the meter measures memory. `print` shows the points and their
        errors.

    Raises:
        TypeError: The step or `make_batch` cannot be called with such arguments.
        ValueError: The step cannot be measured:

            - The step or `make_batch` raises. The error names the shape.
            - The step is a coroutine or a generator, or takes no time.
            - `make_batch` ignores the count or the length.
            - The budget is too small to fit all coefficients. Room for two of the longest sequences is enough.
            - The longest sequence is shorter than 3 frames.
        ImportError: SciPy is not installed.

    >>> frames = lambda count, length: np.ones((count, length, 64))
    >>> cost = measure_step(lambda batch: batch @ batch[0].T, frames, [100, 200, 400], repeats=1)
    >>> cost.counts.max(), cost.padded_lengths.max()
    (np.int64(74), np.int64(400))
    """
    checks.check_whole("repeats", repeats, minimum=1, remedy="Give the number of times that each shape is timed.")
    if budget is not None:
        budget = checks.check_number("budget", budget, above=True, remedy=BUDGET_REMEDY)
    check_functions(step, make_batch)
    import_solver()  # before the steps, which may take minutes
    shapes = _choose_shapes(lengths, budget)
    check_arguments(step, make_batch, shapes.shape[1] - 1)
    check_batches(lambda shape: make_once(make_batch, shape), _ends(shapes))
    clock = _Clock() if meter is None else meter
    losses: list[float] = []
    rounds = [_measure_round(step, make_batch, shapes, clock, number, losses) for number in range(repeats)]
    tell_infinite(losses)
    seconds = np.median([[took for took, _ in one_round] for one_round in rounds], axis=0)
    _check_times(seconds)
    round_bytes = [[most for _, most in one_round] for one_round in rounds]
    has_bytes = not any(most is None for one_round in round_bytes for most in one_round)
    return StepCost.of(
        shapes[:, 0],
        shapes[:, 1:],
        seconds,
        bytes=np.max(np.array(round_bytes, np.float64), axis=0) if has_bytes else None,
        device=clock.device,
    )


def _choose_shapes(lengths: ArrayLike, budget: float | None) -> NDArray[np.int64]:
    """Returns the shapes of the trials; refuses shapes that cannot determine all coefficients."""
    shapes = trial_shapes(lengths, budget)
    try:
        check_shapes(shapes[:, 0], shapes[:, 1:])
    except ValueError as error:
        longest = shapes[:, 1:].max(axis=0)
        if budget is not None and budget < 2 * longest.sum():
            rule = f"at least {2 * longest.sum():,}, two sequences of the longest"
            raise checks.value_error("budget", rule, budget, BUDGET_REMEDY) from error
        rule = "of at least 3 frames for the longest sequence, to try three padded lengths"
        remedy = "Give them in the unit of the model: frames, samples, tokens."
        raise checks.value_error("lengths", rule, longest.tolist(), remedy) from error
    return shapes


def _ends(shapes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns three shapes: the fewest and the most sequences of the shortest length, and the fewest of the longest."""
    short, long = (shapes[(shapes[:, 1:] == end).all(axis=1)] for end in (shapes[0, 1:], shapes[-1, 1:]))
    return np.stack([short[0], short[-1], long[0]])


def _run_once(
    step: Step, make_batch: MakeBatch, shape: NDArray[np.int64], meter: Meter, losses: list[float]
) -> tuple[float, float | None]:
    """Runs one step on a new batch of `shape` [1 + dims]; returns its seconds, and its peak bytes or None.

    Raises:
        ValueError: As `try_once`, or memory ran out.
    """
    try:
        return try_once(step, make_batch, shape, meter, losses)
    except (MemoryError, RuntimeError) as error:  # `try_once` raises these if memory ran out
        remedy = f"Give a budget of fewer padded frames than {int(shape[0] * shape[1:].sum()):,}."
        if shape[0] == 1:  # under a smaller budget, this sequence is tried too
            remedy = "Make the model smaller, or cut sequences into chunks."
        raise checks.value_error("step", TRAINS, error, remedy, at=place_of(shape)) from error


def try_once(
    step: Step, make_batch: MakeBatch, shape: NDArray[np.int64], meter: Meter, losses: list[float]
) -> tuple[float, float | None]:
    """Runs one step on a new batch of `shape`, and raises the original error if memory runs out.

    A loss that is NaN or infinite is added to `losses`.

    Raises:
        ValueError: `make_batch` or the step raises another error, or `make_batch` returns nothing.
    """
    place = place_of(shape)
    batch = make_once(make_batch, shape)
    meter.start()
    returned = _call("step", lambda: step(batch), TRAINS, f"Try step({place}) by itself.", place)
    check_ran(returned, shape)
    measured = meter.stop(returned)
    note_loss(returned, losses)
    return measured


def make_once(make_batch: MakeBatch, shape: NDArray[np.int64]) -> Any:
    """Makes a new batch of `shape` [1 + dims], and raises the original error if memory runs out.

    Raises:
        ValueError: `make_batch` raises another error, or returns nothing.
    """
    place = place_of(shape)
    batch = _call("make_batch", lambda: make_batch(*shape.tolist()), RETURNS, f"Try {place} by itself.", place)
    if batch is None:
        raise checks.value_error("make_batch", RETURNS, None, "Return the batch.", at=place)
    return batch


def _call(name: str, function: Callable[[], Any], rule: str, remedy: str, place: str) -> Any:
    try:
        return function()
    except Exception as error:
        if ran_out(error):
            raise
        raise checks.value_error(name, rule, error, remedy, at=place) from error


def ran_out(error: BaseException) -> bool:
    """Tells if memory ran out, by the class or the words of an error."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    # PyTorch on a CPU, cuBLAS, cuDNN and XLA raise a RuntimeError, which is also used for other errors.
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in _WORDS)


def _measure_round(
    step: Step, make_batch: MakeBatch, shapes: NDArray[np.int64], meter: Meter, number: int, losses: list[float]
) -> list[tuple[float, float | None]]:
    """Runs every shape, in a random order; returns seconds and bytes in the order of `shapes`."""
    measured = {}
    for index in Key(epoch=number, stage="order").permutation(len(shapes)).tolist():
        _run_once(step, make_batch, shapes[index], meter, losses)  # compiles, allocates, and fills the caches
        measured[index] = _run_once(step, make_batch, shapes[index], meter, losses)
    return [measured[index] for index in range(len(shapes))]


def _check_times(seconds: NDArray[np.float64]) -> None:
    if seconds.max() < _LEAST_SECONDS:
        remedy = "Give the whole training step: forward, backward and update."
        raise checks.value_error("step", "a function that takes time", float(seconds.max()), remedy)


def trial_lengths(lengths: ArrayLike, *, levels: int, aside: bool = True) -> NDArray[np.int64]:
    """Returns padded lengths from short to the longest, in equal ratios: [k, dims].

    Args:
        lengths: [n] or [n, dims].
        levels: The number of lengths from short to long, if all dimensions grow together.
        aside: If True and dims > 1, adds lengths in which one dimension alone is short or long, to separate the costs
            of the dimensions.

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
    steps = np.rint(shortest ** (1 - shares) * longest**shares).astype(np.int64)
    if not aside or rows.shape[1] == 1:
        return np.unique(steps, axis=0)
    # Steps (10, 2), (20, 4), (40, 8) add (10, 4), (40, 4), (20, 2) and (20, 8).
    middle = steps[levels // 2]
    extras = [
        np.where(np.arange(len(middle)) == dim, end, middle) for dim in range(len(middle)) for end in steps[[0, -1]]
    ]
    return np.unique(np.vstack([steps, *extras]), axis=0)


def trial_shapes(lengths: ArrayLike, budget: float | None) -> NDArray[np.int64]:
    """Returns the shapes of the trials: at most `budget` padded frames, or a single sequence.

    >>> trial_shapes([100] * 10 + [1_600], budget=6_400)[:6].tolist()
    [[8, 100], [32, 100], [64, 100], [4, 200], [16, 200], [32, 200]]
    """
    padded = trial_lengths(lengths, levels=5)
    rows = np.asarray(lengths)
    frames = padded.sum(axis=1)
    mean = float(rows.reshape(len(rows), -1).sum(axis=1).mean())
    # By default, the budget holds two of the longest: the cost of a sequence follows from two counts.
    budget = max(2 * BATCH * mean, 2.0 * int(frames.max())) if budget is None else budget
    most = np.maximum(1, budget // frames)
    counts = np.maximum(1, np.rint(most[:, None] * np.array(_COUNTS)).astype(np.int64))
    shapes = np.hstack([counts.reshape(-1, 1), np.repeat(padded, len(_COUNTS), axis=0)])
    # In the order of the lengths, without repeats: [1, 1, 2] sequences of a length are two shapes.
    return np.unique(shapes[:, [*range(1, shapes.shape[1]), 0]], axis=0)[:, [-1, *range(shapes.shape[1] - 1)]]

"""measure_step: runs the user's training step on made batches of a few shapes, and fits what it costs."""

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

_SHORT = 0.05  # the quantile of the lengths that the shortest trial is of
_SPAN = 4  # times: the least by which the longest trial is longer than the shortest
_COUNTS = (1 / 8, 1 / 2, 1.0)  # of the most sequences that are tried at a length
BATCH = 16  # sequences of the mean length make the usual batch; a trial holds twice as many frames at most
_LEAST_SECONDS = 1e-6  # what calling an empty function and reading the clock may take
_WORDS = (
    "out of memory",
    "not enough memory",
    "can't allocate memory",
    "resource_exhausted",
    "alloc_failed",
    "bad_alloc",
)


class Meter(Protocol):
    """Measures a step: a clock that waits for the device, and perhaps its memory.

    Attributes:
        device: What the step runs on, in words.
    """

    @property
    def device(self) -> str: ...

    def start(self) -> None:
        """Called before a step, when its batch is made: waits for the device, and starts the clock."""
        ...

    def stop(self, returned: Any) -> tuple[float, float | None]:
        """Called after the step: waits until the device is done.

        Args:
            returned: What the step returned.

        Returns:
            The seconds since `start`, and the most bytes that were held meanwhile; None where that is not known.
        """
        ...


class _Clock:
    """The clock of the process, for steps that are done when they return."""

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
            rule = "one that waits for the device"
            raise checks.value_error("meter", rule, None, f"Take {remedy}, which does.")
        return seconds, None


def _is_pending(returned: Any) -> bool:
    """Finds arrays of JAX in what the step returned, which may still be computed: (loss, {"w": weights})."""
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
    """Measures what your training step costs, on made batches of about fifteen shapes, and fits a cost to it.

    There are `repeats` rounds. A round goes through all shapes in an order of its own, so that what else the machine
    does falls on all shapes alike. It runs each shape twice, and times the second run: the steps of an epoch are
    nearly as large as each other, and the first run follows one of another size. The median of a shape counts. The
    step really trains: give it a copy of the model, or load the weights afterwards.

    The fit holds for the shapes it was measured with. On a processor, for one, a frame costs more once a batch no
    longer fits its caches. So give the `budget` that you mean to train with.

    On a GPU call `lengthwise.torch.measure_step` or `lengthwise.jax.measure_step`: they wait until the device is done.
    What goes wrong in use: a step that moves its batch to the device is measured with that, and one that gets it there
    already is not. Let `make_batch` return what your loader gives.

    Args:
        step: Called with what `make_batch` returns: forward, backward, and the update of the weights.
        make_batch: `make_batch(count, length)` returns a batch of `count` sequences padded to `length` frames; of
            several lengths `make_batch(count, length, another)`. It is not timed.
        lengths: [n] or [n, dims], those of your data. The trials span them, from short to the longest.
        budget: The most padded frames of a trial; by default those of 32 sequences of the mean length, or two of the
            longest. A single sequence of each length is tried in any case.
        repeats: Rounds: how often each shape is timed.
        meter: What to measure with; by default the clock of the process, and no memory.

    Returns:
        What a step costs in seconds, and in bytes where the meter tells. `print` it for the points and their errors.

    Raises:
        TypeError: The step or `make_batch` cannot be called with such arguments.
        ValueError: One of these:

            - the step or `make_batch` raises, which is named with the shape;
            - the step is a coroutine or a generator, or takes no time;
            - batches are the same whatever count or length is asked for;
            - the budget holds no two of the longest;
            - all lengths are so short that no three can be told apart.
        ImportError: SciPy is not installed.

    >>> frames = lambda count, length: np.ones((count, length, 64))
    >>> cost = measure_step(lambda batch: batch @ batch[0].T, frames, [100, 200, 400], repeats=1)
    >>> cost.counts.max(), cost.padded_lengths.max()
    (np.int64(74), np.int64(400))
    """
    checks.check_whole("repeats", repeats, minimum=1, remedy="Give how often each shape is timed.")
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
    has_bytes = not any(most is None for each in round_bytes for most in each)
    return StepCost.of(
        shapes[:, 0],
        shapes[:, 1:],
        seconds,
        bytes=np.max(np.array(round_bytes, np.float64), axis=0) if has_bytes else None,
        device=clock.device,
    )


def _choose_shapes(lengths: ArrayLike, budget: float | None) -> NDArray[np.int64]:
    """The trials, refused before they run where they would leave a coefficient open."""
    shapes = trial_shapes(lengths, budget)
    try:
        check_shapes(shapes[:, 0], shapes[:, 1:])
    except ValueError as error:
        longest = shapes[:, 1:].max(axis=0)
        if budget is not None and budget < 2 * longest.sum():
            rule = f"at least {2 * longest.sum():,}, two sequences of the longest"
            raise checks.value_error("budget", rule, budget, BUDGET_REMEDY) from error
        rule = "of 3 frames or more at the longest, to try three padded lengths"
        remedy = "Give them in the unit of the model: frames, samples, tokens."
        raise checks.value_error("lengths", rule, longest.tolist(), remedy) from error
    return shapes


def _ends(shapes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The fewest and the most sequences of the shortest length, and the fewest of the longest: [3, 1 + dims]."""
    short, long = (shapes[(shapes[:, 1:] == end).all(axis=1)] for end in (shapes[0, 1:], shapes[-1, 1:]))
    return np.stack([short[0], short[-1], long[0]])


def _run_once(
    step: Step, make_batch: MakeBatch, shape: NDArray[np.int64], meter: Meter, losses: list[float]
) -> tuple[float, float | None]:
    """One step on a fresh batch of `shape` [1 + dims]: its seconds, and the most bytes it held or None.

    Raises:
        ValueError: As `try_once` does, or memory runs out.
    """
    try:
        return try_once(step, make_batch, shape, meter, losses)
    except (MemoryError, RuntimeError) as error:  # what `try_once` lets through
        remedy = f"Give a budget of fewer padded frames than {int(shape[0] * shape[1:].sum()):,}."
        if shape[0] == 1:  # a sequence of each length is tried under every budget
            remedy = "Make the model smaller, or cut sequences into chunks."
        raise checks.value_error("step", TRAINS, error, remedy, at=place_of(shape)) from error


def try_once(
    step: Step, make_batch: MakeBatch, shape: NDArray[np.int64], meter: Meter, losses: list[float]
) -> tuple[float, float | None]:
    """The same, where memory may run out: what then is raised goes through as it is.

    A loss that is no number is added to `losses`.

    Raises:
        ValueError: `make_batch` or the step raises something else, or `make_batch` returns nothing.
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
    """A fresh batch of `shape` [1 + dims]; what is raised where memory runs out goes through as it is.

    Raises:
        ValueError: `make_batch` raises something else, or returns nothing.
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
    """Recognises an error that says that memory ran out, in the words of the frameworks."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    # PyTorch on a CPU, cuBLAS, cuDNN and XLA raise a RuntimeError, which may mean anything else too.
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in _WORDS)


def _measure_round(
    step: Step, make_batch: MakeBatch, shapes: NDArray[np.int64], meter: Meter, number: int, losses: list[float]
) -> list[tuple[float, float | None]]:
    """Every shape, in an order of the round's own: what each took and held, in the order of `shapes`."""
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
    """Padded lengths from short to the longest, evenly by their ratios: [k, dims].

    Args:
        lengths: [n] or [n, dims].
        levels: How many from short to long, all dimensions together.
        aside: Of several dimensions, add shapes in which one alone is short or long, to tell what each of them costs.

    >>> trial_lengths([100] * 10 + [1_600], levels=5).tolist()
    [[100], [200], [400], [800], [1600]]
    """
    rows = as_lengths(lengths)
    if not len(rows):
        raise checks.value_error("lengths", "of at least one sequence", 0, "Give those of your data.")
    rows = rows.reshape(len(rows), -1)
    longest = rows.max(axis=0)
    shortest = np.minimum(np.quantile(rows, _SHORT, axis=0), longest / _SPAN).clip(1, None)
    shares = np.linspace(0.0, 1.0, levels)[:, None]
    steps = np.rint(shortest ** (1 - shares) * longest**shares).astype(np.int64)
    if not aside or rows.shape[1] == 1:
        return np.unique(steps, axis=0)
    # Steps (10, 2), (20, 4), (40, 8) also bring (10, 4), (40, 4), (20, 2) and (20, 8).
    middle = steps[levels // 2]
    others = [
        np.where(np.arange(len(middle)) == dim, end, middle) for dim in range(len(middle)) for end in steps[[0, -1]]
    ]
    return np.unique(np.vstack([steps, *others]), axis=0)


def trial_shapes(lengths: ArrayLike, budget: float | None) -> NDArray[np.int64]:
    """The shapes that a step is measured with, at most `budget` padded frames each, but for single sequences.

    >>> trial_shapes([100] * 10 + [1_600], budget=6_400)[:6].tolist()
    [[8, 100], [32, 100], [64, 100], [4, 200], [16, 200], [32, 200]]
    """
    padded = trial_lengths(lengths, levels=5)
    rows = np.asarray(lengths)
    frames = padded.sum(axis=1)
    mean = float(rows.reshape(len(rows), -1).sum(axis=1).mean())
    # Two of the longest at least: one count alone would not tell what a sequence costs.
    budget = max(2 * BATCH * mean, 2.0 * int(frames.max())) if budget is None else budget
    most = np.maximum(1, budget // frames)
    counts = np.maximum(1, np.rint(most[:, None] * np.array(_COUNTS)).astype(np.int64))
    shapes = np.hstack([counts.reshape(-1, 1), np.repeat(padded, len(_COUNTS), axis=0)])
    # In the order of the lengths, and each shape once: [1, 1, 2] sequences of a length are two shapes.
    return np.unique(shapes[:, [*range(1, shapes.shape[1]), 0]], axis=0)[:, [-1, *range(shapes.shape[1] - 1)]]

"""Checks of a training step and of its batches, before and after it runs."""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks

Step = Callable[[Any], Any]
MakeBatch = Callable[..., Any]

TRAINS = "a function that trains on the batches of make_batch"
RETURNS = "a function that returns a batch of `count` sequences, padded to `length`"
_NOT_RUN = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)
_FINITE = "a function that keeps its loss and the parameters finite"


def check_functions(step: Step, make_batch: MakeBatch) -> None:
    """Refuses arguments that cannot be called."""
    for name, function in (("step", step), ("make_batch", make_batch)):
        if not callable(function):
            raise checks.type_error(name, "a function", function, "Give step, make_batch, lengths, in this order.")


def check_arguments(step: Step, make_batch: MakeBatch, dims: int) -> None:
    """Refuses a `step` that cannot take a batch, and a `make_batch` that cannot take a count and `dims` lengths."""
    batch, shape = (None,), (None,) * (1 + dims)
    if not _takes(step, batch):
        remedy = "Give `lambda batch: train(*batch)`, for example, or `train(**batch)` for a batch that is a dict."
        if isinstance(step, type) or _write_signature(step).split("(")[1].startswith("self"):
            remedy = "Give the method of an object: trainer.train_step, for example."
        elif _takes(make_batch, batch) and _takes(step, shape):
            remedy = "Give step, make_batch, lengths, in this order."
        raise checks.type_error("step", "a function of one argument, the batch", _write_signature(step), remedy)
    if not _takes(make_batch, shape):
        arguments = "a length" if dims == 1 else f"{dims} lengths, as `lengths` has"
        remedy = f"Write make_batch(count, {', '.join(['length', 'another', 'third'][:dims])})."
        rule = f"a function of {1 + dims} arguments, a count and {arguments}"
        raise checks.type_error("make_batch", rule, _write_signature(make_batch), remedy)


def _takes(function: Any, arguments: tuple[None, ...]) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions written in C, such as torch.empty, have no signature
        return True
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


def _write_signature(function: Any) -> str:
    return f"{getattr(function, '__name__', type(function).__name__)}{inspect.signature(function)}"


def check_batches(make: Callable[[NDArray[np.int64]], Any], shapes: NDArray[np.int64]) -> None:
    """Refuses a `make_batch` that ignores the count or the length, such as one that returns a loader's next batch.

    Batches that hold anything but arrays are not checked.

    Args:
        make: A function of a shape [1 + dims] that returns a batch.
        shapes: [3, 1 + dims]: few short sequences, more sequences of the same length, and longer sequences.

    Raises:
        ValueError: The size of a batch does not depend on the count, or not on the length.
    """
    try:
        small, wide, long = (_numbers(make(shape)) for shape in shapes)
    except (MemoryError, RuntimeError):  # memory ran out: the trials will name the shape
        return
    if not small or not wide or not long:
        return
    counts = shapes[:, 0].tolist()
    if small == wide and counts[0] != counts[1]:
        value, remedy = f"{wide:,} numbers, whatever the count", "Put `count` sequences into the batch."
        raise checks.value_error("make_batch", RETURNS, value, remedy, at=place_of(shapes[1]))
    # 2 sequences of 5 frames have 10 numbers, 3 of 9 have 27. If they had 10 and 15, all sequences would have 5.
    if small * counts[2] == long * counts[0] and (shapes[0, 1:] != shapes[2, 1:]).all():
        value, remedy = f"{long:,} numbers, whatever the length", "Pad its sequences to `length`."
        raise checks.value_error("make_batch", RETURNS, value, remedy, at=place_of(shapes[2]))


def _numbers(batch: Any) -> int | None:
    """Counts the numbers in the arrays of a nested batch; returns None if it has other parts."""
    shape = getattr(batch, "shape", None)
    if isinstance(shape, tuple):
        return math.prod(shape)
    parts = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, tuple | list) else (None,)
    counts = [None if part is batch else _numbers(part) for part in parts]
    return None if None in counts else sum(count or 0 for count in counts)


def check_ran(returned: Any, shape: NDArray[np.int64]) -> None:
    """Refuses a step that returns before it has run. This check is timed too, so it only reads the type.

    Raises:
        ValueError: The step returned a coroutine or a generator.
    """
    if isinstance(returned, _NOT_RUN):
        remedy = "Give `lambda batch: list(step(batch))`, or return in place of yield."
        if isinstance(returned, types.CoroutineType):
            remedy = "Give `lambda batch: asyncio.run(step(batch))`."
            returned.close()  # else Python warns that it was never awaited
        value = f"a {type(returned).__name__}, which has not run"
        raise checks.value_error("step", TRAINS, value, remedy, at=place_of(shape))


def note_loss(returned: Any, losses: list[float]) -> None:
    """Adds a returned loss to `losses` if it is NaN or infinite."""
    item = getattr(returned, "item", None) if getattr(returned, "shape", None) == () else None
    loss = item() if callable(item) else returned
    if isinstance(loss, float) and not math.isfinite(loss):
        losses.append(loss)


def tell_infinite(values: list[float]) -> None:
    """Warns of a step whose loss is NaN or infinite: it may take more or less time than real training."""
    if values:
        remedy = "Lower the learning rate, or make batches more like your data: steps on NaN have other durations."
        checks.warn(checks.sentence("step", _FINITE, values[0], remedy))


def place_of(shape: NDArray[np.int64]) -> str:
    """Returns the call that makes a batch of `shape` [1 + dims]."""
    return f"make_batch({', '.join(map(str, shape.tolist()))})"

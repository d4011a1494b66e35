"""measure_step for JAX: the seconds of a step."""

from __future__ import annotations

import time
from typing import Any

import jax
from numpy.typing import ArrayLike

from lengthwise import checks
from lengthwise.advice import step_timing
from lengthwise.advice.step_cost import StepCost


def _run(step: step_timing.Step, batch: Any) -> tuple[float, None]:
    """Runs a step, and waits for its arrays; JAX cannot reset its peak of memory."""
    started = time.perf_counter()
    returned = jax.block_until_ready(step(batch))
    seconds = time.perf_counter() - started
    if not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(returned)):
        remedy = "Return the loss and the new weights, so that the clock can wait for them."
        raise checks.value_error("step", "a function that returns arrays of JAX", returned, remedy)
    return seconds, None


def measure_step(
    step: step_timing.Step,
    make_batch: step_timing.MakeBatch,
    lengths: ArrayLike,
    *,
    budget: float | None = None,
    repeats: int = 5,
) -> StepCost:
    """Measures steps as `lengthwise.measure_step`, but waits for all arrays that the step returns.

    The first step of each shape compiles, and is not counted. Memory is not measured.

    Args:
        step: Your training step. It is called with a batch, and returns the loss and the new weights, or a pytree of
            them.
        make_batch: As in `lengthwise.measure_step`.
        lengths: [n] or [n, dims], the lengths of your data.
        budget: The largest batch of a trial in padded frames.
        repeats: The number of times that each shape is timed.

    Raises:
        ValueError: As `lengthwise.measure_step`, or the step returns no array of JAX.
    """
    device = jax.devices()[0]
    words = f"{device.platform}, {device.device_kind}"
    return step_timing.measure_step(step, make_batch, lengths, budget=budget, repeats=repeats, meter=_run, device=words)

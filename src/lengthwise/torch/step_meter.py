"""measure_step for PyTorch: the time that a device takes."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import nn

from lengthwise import checks
from lengthwise.advice import step_timing
from lengthwise.advice.step_cost import StepCost


def run_on(device: torch.device, step: step_timing.Step, batch: Any) -> float:
    """Runs a step, waits for the device, and returns the seconds."""
    module = getattr(torch, device.type)
    # The function of MPS takes no device.
    wait = module.synchronize if device.type == "mps" else partial(module.synchronize, device)
    wait()
    started = time.perf_counter()
    step(batch)
    wait()
    return time.perf_counter() - started


def measure_step(
    step: step_timing.Step,
    make_batch: step_timing.MakeBatch,
    lengths: ArrayLike,
    *,
    model: nn.Module | None = None,
    device: torch.device | str | None = None,
    budget: float | None = None,
    repeats: int = 5,
) -> StepCost:
    """Measures steps as `lengthwise.measure_step`, but waits for the device.

    Args:
        step: As in `lengthwise.measure_step`, with any return value.
        make_batch: As in `lengthwise.measure_step`.
        lengths: [n] or [n, dims], the lengths of your data.
        model: The model that the step trains. If no step changes its parameters, this is an error.
        device: The device of the step; by default the device of the model, else CUDA if PyTorch finds it, else the CPU.
        budget: The largest batch of a trial in padded frames.
        repeats: The number of times that each shape is timed.

    Raises:
        ValueError: As `lengthwise.measure_step`, or the step trains nothing of `model`.

    >>> model = nn.Linear(8, 8)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> def step(batch):
    ...     optimizer.zero_grad()
    ...     model(batch).square().mean().backward()
    ...     optimizer.step()
    >>> make_batch = lambda count, length: torch.ones(count, length, 8)
    >>> cost = measure_step(step, make_batch, [50, 100, 200], model=model, repeats=1)
    >>> cost.device[:3]
    'CPU'
    """
    marks = mark(model)
    chosen = choose_device(model, device)
    meter, name = partial(run_on, chosen), _name(chosen)
    cost = step_timing.measure_step(step, make_batch, lengths, budget=budget, repeats=repeats, meter=meter, device=name)
    check_trained(model, marks)
    return cost


def choose_device(model: nn.Module | None, device: torch.device | str | None) -> torch.device:
    """Returns the given device, or that of the model, or CUDA if PyTorch finds it, or the CPU."""
    if device is not None:
        try:
            return torch.empty(0, device=device).device
        except (RuntimeError, AssertionError, TypeError) as error:  # for a device that PyTorch was built without
            remedy = 'Give "cuda" or "cpu", for example, or leave it out.'
            raise checks.value_error("device", "one that PyTorch finds here", device, remedy) from error
    parameter = None if model is None else next(model.parameters(), None)
    if parameter is not None:
        return parameter.device
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def mark(model: nn.Module | None) -> list[tuple[int, float]]:
    """Returns the write count and the sum of each parameter: fused optimisers write without counting."""
    parameters = [] if model is None else [parameter.detach() for parameter in model.parameters()]
    return [(parameter._version, parameter.sum(dtype=torch.float64).item()) for parameter in parameters]


def check_trained(model: nn.Module | None, marks: list[tuple[int, float]]) -> None:
    """Refuses steps that changed no parameter of the model.

    Raises:
        ValueError: No parameter changed.
    """
    if model is not None and mark(model) == marks:
        rule = "a function that changes the parameters of `model`"
        remedy = "Call backward and the optimizer's step in it, on this model."
        raise checks.value_error("step", rule, "one that changes none", remedy)


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return f"CUDA, {torch.cuda.get_device_name(device)}"
    return f"{step_timing.CPU}, {torch.get_num_threads()} threads" if device.type == "cpu" else str(device)

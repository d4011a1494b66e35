"""measure_step for PyTorch: the time and the peak memory of a device."""

from __future__ import annotations

import math
import os
import platform
import time
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import nn

from lengthwise import checks
from lengthwise.advice import step_timing
from lengthwise.advice.step_checks import tell_infinite
from lengthwise.advice.step_cost import StepCost


class DeviceMeter:
    """A meter of one device: its seconds, by events on CUDA and by a clock elsewhere, and its memory."""

    def __init__(self, device: torch.device) -> None:
        self._on, self._module = device, getattr(torch, device.type, None)
        self.device: str = _name(device)
        self._started = 0.0
        self._first: torch.cuda.Event | None = None

    def start(self) -> None:
        if (reset := getattr(self._module, "reset_peak_memory_stats", None)) is not None:
            reset(self._on)
        self._wait()
        self._first = self._record_event()
        self._started = time.perf_counter()

    def stop(self, returned: Any) -> tuple[float, float | None]:
        last = self._record_event()
        self._wait()
        seconds = time.perf_counter() - self._started
        if self._first is not None and last is not None:  # excludes the time until the host notices the end
            seconds = self._first.elapsed_time(last) / 1_000
        peak = getattr(self._module, "max_memory_allocated", None)
        return seconds, None if peak is None else float(peak(self._on))

    def empty_cache(self) -> None:
        """Frees the memory that PyTorch caches."""
        if (empty := getattr(self._module, "empty_cache", None)) is not None:
            empty()

    def _record_event(self) -> torch.cuda.Event | None:
        """Records an event in the device's queue of work; returns None if the device is not CUDA."""
        if self._on.type != "cuda":
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._on))
        return event

    def _wait(self) -> None:
        if self._on.type == "mps":  # its `synchronize` takes no device
            torch.mps.synchronize()
        elif self._on.type != "cpu":
            getattr(torch, self._on.type).synchronize(self._on)


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
    """Measures steps as `lengthwise.measure_step`, but waits for the device, and on CUDA measures memory too.

    On CUDA the seconds are between two events in the current stream; work in other streams is not counted. Elsewhere
    the seconds are those of a clock.

    The bytes are the peak that PyTorch allocates, including weights and the optimiser's state. The caching allocator
    needs some more: leave a tenth free if you compute a budget from these bytes.

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
    >>> cost.device[:3], cost.bytes
    ('CPU', None)
    """
    marks = mark(model)
    chosen = choose_device(model, device)
    meter = DeviceMeter(chosen)
    cost = step_timing.measure_step(step, make_batch, lengths, budget=budget, repeats=repeats, meter=meter)
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
    if model is None:
        return []
    if not isinstance(model, nn.Module):
        raise checks.type_error("model", "a torch.nn.Module", model, "Give the model that is trained.")
    parameters = [parameter.detach() for parameter in model.parameters()]
    return [(parameter._version, parameter.sum(dtype=torch.float64).item()) for parameter in parameters]


def check_trained(model: nn.Module | None, marks: list[tuple[int, float]]) -> None:
    """Refuses steps that changed no parameter of the model; warns of parameters that are NaN and of a model in eval().

    Raises:
        ValueError: No parameter changed.
    """
    if model is None:
        return
    marks_after = mark(model)
    if marks_after == marks:
        rule = "a function that changes the parameters of `model`"
        remedy = "Call backward and the optimizer's step in it, on this model."
        raise checks.value_error("step", rule, "one that changes none", remedy)
    tell_infinite([total for _, total in marks_after if not math.isfinite(total)])
    if not model.training:
        rule, remedy = "in training mode after a step", "Call model.train(), before or in the step: dropout costs time."
        checks.warn(checks.sentence("model", rule, "in evaluation mode", remedy))


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return f"CUDA, {torch.cuda.get_device_name(device)}"
    if device.type == "cpu":
        return f"CPU, {platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"
    return str(device)

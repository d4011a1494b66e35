"""measure_step for PyTorch: times the device, and reads the peak of its memory."""

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
    """Times one device: by events on CUDA, elsewhere by a clock that waits; where PyTorch counts it, memory too."""

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
        del returned
        last = self._record_event()
        self._wait()
        seconds = time.perf_counter() - self._started
        if self._first is not None and last is not None:  # without the time that the host takes to notice the end
            seconds = self._first.elapsed_time(last) / 1_000
        peak = getattr(self._module, "max_memory_allocated", None)
        return seconds, None if peak is None else float(peak(self._on))

    def empty_cache(self) -> None:
        """Gives back the memory that PyTorch keeps for later."""
        if (empty := getattr(self._module, "empty_cache", None)) is not None:
            empty()

    def _record_event(self) -> torch.cuda.Event | None:
        """A moment in the device's own queue of work, which tells how long all before it took."""
        if self._on.type != "cuda":
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._on))
        return event

    def _wait(self) -> None:
        if self._on.type == "mps":  # the one that takes no device
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
    """`lengthwise.measure_step` for PyTorch: it waits for the device, and on CUDA measures memory too.

    On CUDA the seconds are those between two events in the stream that is current when the step is called; what a
    step leaves running in other streams is not counted. Elsewhere they are those of a clock.

    The bytes are those that PyTorch hands out at most, weights and the optimiser's state included. The caching
    allocator holds some more: leave a tenth free where you take them for a budget.

    Args:
        step: As in `lengthwise.measure_step`. It may return anything.
        make_batch: As in `lengthwise.measure_step`.
        lengths: [n] or [n, dims], those of your data.
        model: What the step trains. If no step changes its parameters, this is an error.
        device: What the step runs on; by default that of the model, else CUDA where there is one, else the CPU.
        budget: The most padded frames of a trial.
        repeats: How often each shape is timed.

    Raises:
        ValueError: As there; the step trains nothing of `model`.

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
    before = mark(model)
    chosen = choose_device(model, device)
    meter = DeviceMeter(chosen)
    cost = step_timing.measure_step(step, make_batch, lengths, budget=budget, repeats=repeats, meter=meter)
    check_trained(model, before)
    return cost


def choose_device(model: nn.Module | None, device: torch.device | str | None) -> torch.device:
    """The device that was given, or that of the model, or CUDA where there is one."""
    if device is not None:
        try:
            return torch.empty(0, device=device).device
        except (RuntimeError, AssertionError, TypeError) as error:  # as PyTorch refuses what it was built without
            remedy = 'Give "cuda" or "cpu", for example, or leave it out.'
            raise checks.value_error("device", "one that PyTorch finds here", device, remedy) from error
    parameter = None if model is None else next(model.parameters(), None)
    if parameter is not None:
        return parameter.device
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def mark(model: nn.Module | None) -> list[tuple[int, float]]:
    """Of each parameter how often it was written to, and its sum: fused optimisers write without being counted."""
    if model is None:
        return []
    if not isinstance(model, nn.Module):
        raise checks.type_error("model", "a torch.nn.Module", model, "Give the model that is trained.")
    own = [parameter.detach() for parameter in model.parameters()]
    return [(each._version, each.sum(dtype=torch.float64).item()) for each in own]


def check_trained(model: nn.Module | None, before: list[tuple[int, float]]) -> None:
    """Refuses steps that changed no parameter of the model; warns of parameters that are NaN, and of a model in eval().

    Raises:
        ValueError: No parameter changed.
    """
    if model is None:
        return
    after = mark(model)
    if after == before:
        rule = "a function that changes the parameters of `model`"
        remedy = "Call backward and the optimizer's step in it, on this model."
        raise checks.value_error("step", rule, "one that changes none", remedy)
    tell_infinite([total for _, total in after if not math.isfinite(total)])
    if not model.training:
        rule, remedy = "in training mode after a step", "Call model.train(), before or in the step: dropout costs time."
        checks.warn(checks.sentence("model", rule, "in evaluation mode", remedy))


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return f"CUDA, {torch.cuda.get_device_name(device)}"
    if device.type == "cpu":
        return f"CPU, {platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"
    return str(device)

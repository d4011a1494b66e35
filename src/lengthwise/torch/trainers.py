"""Code that the modules for trainers share: checks of settings, the loss scales of a pass, the speed of a run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.measures.metrics import sum_frames
from lengthwise.planning.window_epoch import EpochPlan, WindowEpoch
from lengthwise.report import words
from lengthwise.torch.sampler import BatchSampler

_ROOM = 0.6  # the share of the memory below which a larger budget is suggested


def check_sampler(name: str, sampler: object) -> None:
    """Refuses anything but a `BatchSampler`."""
    if not isinstance(sampler, BatchSampler):
        remedy = "Make one of the lengths and a batching."
        raise checks.type_error(name, "a lengthwise.torch.BatchSampler", sampler, remedy)


def check_settings(
    sampler: BatchSampler, settings: object, needed: Mapping[str, Any], *, ranks: int, remedy: str
) -> None:
    """Refuses settings of a trainer that contradict the sampler.

    Args:
        sampler: The sampler of the training batches.
        settings: An object with the settings as attributes. A setting that it lacks is not checked.
        needed: The required values by name.
        ranks: The number of ranks over which the trainer shares out the data.
        remedy: The advice of the error.
    """
    if sampler.world_size != ranks:
        advice = "Make the sampler without rank and world_size, or with those of data parallelism."
        raise checks.value_error("world_size", f"the Trainer's, {ranks}", sampler.world_size, advice)
    for name, value in needed.items():
        if (setting := getattr(settings, name, value)) != value:
            raise checks.value_error(name, repr(value), setting, remedy)


class PassScales:
    """The loss scales of a sampler's passes, computed once for each plan."""

    def __init__(self, sampler: BatchSampler) -> None:
        self._sampler = sampler
        self._plan: EpochPlan | None = None
        self._scales = np.empty(0)

    def now(self, weights: ArrayLike | None, **choices: Any) -> NDArray[np.float64]:
        """Returns the scales of the current pass. The arguments must stay the same within an epoch."""
        plan = self._sampler.plan
        if plan is not self._plan:
            self._plan, self._scales = plan, self._sampler.loss_scales(weights, **choices)
        return self._scales


class Trained(NamedTuple):
    """Counts of trained steps: the steps, their frames without and with padding on all ranks, and their seconds."""

    steps: int = 0
    data: int = 0
    computed: int = 0
    seconds: float = 0.0

    def since(self, start: Trained) -> Trained:
        """Returns the counts since `start`."""
        steps, data, computed = (now - then for now, then in zip(self[:3], start[:3], strict=True))
        return Trained(steps, data, computed, self.seconds - start.seconds)

    def as_log(self) -> dict[str, float]:
        """Returns the share of padding, and the frames of data a second; an empty dict without a step.

        >>> Trained(steps=2, data=90, computed=120, seconds=3.0).as_log()
        {'padding': 0.25, 'frames_per_second': 30}
        """
        if not self.data or not self.seconds:
            return {}
        return {"padding": 1.0 - self.data / self.computed, "frames_per_second": round(self.data / self.seconds)}

    def describe(self, epoch: int) -> str:
        """Returns the counts as a sentence.

        >>> Trained(steps=2, data=90, computed=120, seconds=3.0).describe(0)
        'Epoch 0 took 2 steps in 3 s: 30 frames of data a second, 40 with padding.'
        """
        data, computed = (f"{round(frames / self.seconds):,}" for frames in (self.data, self.computed))
        took = f"{words.count(self.steps, 'step')} in {words.number(self.seconds)} s"
        return f"Epoch {epoch} took {took}: {data} frames of data a second, {computed} with padding."


class Speed:
    """A counter of the steps and seconds of a trainer. Frames are summed when they are read.

    A step costs one reading of the clock.
    """

    def __init__(self) -> None:
        # Counts of the run, now and when the epoch and the log began.
        self._total = self._epoch = self._logged = Trained()
        self._last = time.perf_counter()
        self._plan: EpochPlan | None = None
        self._lengths: NDArray[Any] = np.empty(0, np.int64)
        self._done = self._counted = 0  # steps taken, and steps whose frames were summed
        # [steps + 1, 2]: the frames before each step, without and with padding. The first row is that of step `_first`.
        self._first, self._frames = 0, np.zeros((1, 2), np.int64)
        self._is_told = False

    def begin_epoch(self, sampler: BatchSampler) -> None:
        """Begins the current epoch: its time and its steps count from here on."""
        self._epoch = self._sum_up()
        self._plan, self._lengths = sampler.plan, sampler.lengths
        self._done = self._counted = sampler.remainder.taken // sampler.micro_batches
        self._first, self._frames = 0, np.zeros((1, 2), np.int64)
        self.skip()

    def skip(self) -> None:
        """Leaves out the time since the last step, such as that of an evaluation."""
        self._last = time.perf_counter()

    def note(self, steps: int = 1) -> None:
        """Counts finished steps, and the time since the last one."""
        now = time.perf_counter()
        self._total = self._total._replace(seconds=self._total.seconds + now - self._last)
        self._last = now
        self._done += steps

    def epoch(self) -> Trained:
        """Returns the counts since the epoch began."""
        return self._sum_up().since(self._epoch)

    def take_log(self) -> Trained:
        """Returns the counts since the last call."""
        self.note(0)
        start, self._logged = self._logged, self._sum_up()
        return self._logged.since(start)

    def describe_first(self, epoch: int, device: torch.device) -> str:
        """Describes the first epoch and its memory; returns an empty text for later epochs, and without a step."""
        trained = self.epoch()
        if self._is_told or not trained.as_log():
            return ""
        self._is_told = True
        return "\n".join(filter(None, (trained.describe(epoch), describe_memory(device))))

    def _sum_up(self) -> Trained:
        """Adds up the frames of the steps since the last call."""
        while self._plan is not None and self._counted < self._done:
            if not self._first <= self._counted < self._first + len(self._frames) - 1:
                self._first, self._frames = _frames_at(self._plan, self._lengths, self._counted)
            stop = min(self._done, self._first + len(self._frames) - 1)
            data, computed = (self._frames[stop - self._first] - self._frames[self._counted - self._first]).tolist()
            steps, *frames, seconds = self._total
            self._total = Trained(steps + stop - self._counted, frames[0] + data, frames[1] + computed, seconds)
            self._counted = stop
        return self._total


def _frames_at(plan: EpochPlan, lengths: NDArray[Any], step: int) -> tuple[int, NDArray[np.int64]]:
    """Returns the first step of the plan, or of the window of `step`, and the frames before each step from there on."""
    first = 0
    if isinstance(plan, WindowEpoch):
        number, batch = plan.find(step * plan.micro_batches)
        first = step - batch // plan.micro_batches
        window = plan.window(number)
        plan, lengths = window.plan, np.asarray(lengths)[window.numbers]  # reads only these from a mapped file
    frames = np.stack(sum_frames(plan, lengths), axis=1)[plan.grid].sum(axis=(1, 2))
    return first, np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(frames, axis=0)])


def describe_memory(device: torch.device) -> str:
    """Returns the peak memory of a GPU as a sentence; an empty text on other devices."""
    if device.type != "cuda":
        return ""
    peak, total = torch.cuda.max_memory_allocated(device), torch.cuda.get_device_properties(device).total_memory
    advice = "\nA larger budget fits: lw.torch.find_budget finds the largest." if peak < _ROOM * total else ""
    return f"Training took at most {peak / 2**30:.1f} of the {total / 2**30:.1f} GiB of the GPU.{advice}"

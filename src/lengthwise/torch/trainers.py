"""Code of the modules for trainers that needs no trainer: checks of settings, loss scales, the speed of a run."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
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


def check_settings(
    sampler: BatchSampler,
    settings: object,
    needed: Mapping[str, Any],
    *,
    ranks: int,
    remedy: str,
    accumulation: str | None,
    give: str = "Give",
) -> None:
    """Refuses settings of a trainer that contradict the sampler.

    Args:
        sampler: The sampler of the training batches.
        settings: An object with the settings as attributes. A setting that it lacks is not checked.
        needed: The required values by name.
        ranks: The number of ranks over which the trainer shares out the data.
        remedy: The advice of the error.
        accumulation: The setting with the batches of each rank in one step, which is the sampler's `micro_batches`.
        give: The beginning of the advice on that setting.
    """
    if sampler.world_size != ranks:
        advice = "Make the sampler without rank and world_size, or with those of data parallelism."
        raise checks.value_error("world_size", f"the Trainer's, {ranks}", sampler.world_size, advice)
    for name, value in needed.items():
        if (setting := getattr(settings, name, value)) != value:
            raise checks.value_error(name, repr(value), setting, remedy)
    if accumulation and (count := getattr(settings, accumulation)) != sampler.micro_batches:
        rule = f"the Trainer's {accumulation}, {count}"
        advice = f"{give} micro_batches={count} to the sampler: another {accumulation} changes the batch of a step."
        raise checks.value_error("micro_batches", rule, sampler.micro_batches, advice)


class PassScales:
    """The loss scales of a sampler's passes, computed once for each plan."""

    def __init__(self, sampler: BatchSampler) -> None:
        self._sampler = sampler
        self._plan: EpochPlan | None = None
        self._scales = np.empty(0)

    def now(self, weights: ArrayLike | None, **choices: Any) -> NDArray[np.float64]:
        """Returns the scales of the current pass. The arguments must stay the same within an epoch."""
        if self._plan is not self._sampler.plan:
            self._plan, self._scales = self._sampler.plan, self._sampler.loss_scales(weights, **choices)
        return self._scales


def count_once(counts: Sequence[int | None], planned_scales: Sequence[float]) -> list[int]:
    """Returns the labels of each batch; 0 for a batch that is taken again, only to keep the ranks in step.

    Args:
        counts: The labels of each batch of a step on this rank.
        planned_scales: The scale of each batch by its sequences. A batch that is taken again has 0.

    >>> count_once([6, 2, 6], [0.5, 0.5, 0.0])
    [6, 2, 0]
    """
    return [count or 0 if scale > 0 else 0 for count, scale in zip(counts, planned_scales, strict=True)]


def scale_by_labels(
    counts: Sequence[int | None], planned_scales: Sequence[float], total: Any, *, reduction: str, ranks: int
) -> list[Any]:
    """Returns the loss scales by which the gradient of a step is that of the mean over all its labels.

    The scale of a batch with `count` labels is

        ranks * count / total   for a loss that is the mean over the labels of the batch
        ranks / total           for a loss that is their sum

    and 0 for a batch that is taken again.

    Args:
        counts: As in `count_once`.
        planned_scales: As in `count_once`.
        total: The labels of the step on all ranks: a number, or a tensor, which is not read.
        reduction: The loss of a batch: "mean" or "sum".
        ranks: The number of ranks over which gradients are averaged.

    >>> scale_by_labels([6, 2], [0.5, 0.5], 16, reduction="mean", ranks=2)
    [0.75, 0.25]
    """
    is_sum = reduction == "sum"
    shares = [scale > 0 for scale in planned_scales] if is_sum else count_once(counts, planned_scales)
    divisor = total + (total == 0)  # 1 if the step has no labels
    return [share * ranks / divisor for share in shares]


@dataclass
class Step:
    """The batches of one optimiser step on this rank, and a cursor.

    Attributes:
        batches: The batches in the order of training.
        counts: The labels of each batch; None without a tensor of labels.
        scales: The factor for the loss of each batch.
        cursor: The number of the current batch, counted from 1; 0 before the first.
        last_read: The number of the batch whose scale was read last.

    >>> step = Step(["long batch", "short batch"], [6, 2], [0.75, 0.25])
    >>> for _ in step.batches:
    ...     step.begin()
    ...     step.read()
    (6, 0.75)
    (2, 0.25)
    """

    batches: Sequence[Any]
    counts: Sequence[int | None]
    scales: Sequence[Any]
    cursor: int = 0
    last_read: int = 0

    def begin(self) -> None:
        """Begins the next batch."""
        if self.cursor == len(self.batches):
            remedy = "Call super().training_step once for each batch."
            raise checks.state_error(f"All {self.cursor} batches of this step were trained on", remedy)
        self.cursor += 1

    def read(self) -> tuple[int | None, Any]:
        """Returns the count and the scale of the current batch."""
        self.last_read = self.cursor
        return self.counts[self.cursor - 1], self.scales[self.cursor - 1]

    def check_scaled(self, name: str) -> None:
        """Raises if the scale of the current batch was not read, because the method `name` computed the loss."""
        if self.last_read < self.cursor:
            remedy = "Let it call super().compute_loss, or put PlannedTrainer before the Trainer that has it."
            raise checks.state_error(f"`{name}` does not scale the loss by the share of the batch in its step", remedy)


class Trained(NamedTuple):
    """Counts of trained steps: the steps, their frames without and with padding on all ranks, and their seconds."""

    steps: int = 0
    data: int = 0
    computed: int = 0
    seconds: float = 0.0

    def since(self, start: Trained) -> Trained:
        """Returns the counts since `start`."""
        return Trained._make(map(operator.sub, self, start))

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

    Frames of data are those of the plan, of all ranks. Padding is that of the batches that the loader of this rank has
    read, by their masks, or that of the plan if they have none. A step costs one reading of the clock.
    """

    def __init__(self) -> None:
        # Counts of the run, now and when the epoch and the log began.
        self._total = self._epoch = self._logged = Trained()
        self._last = time.perf_counter()
        self._frames: Iterator[NDArray[np.int64]] = iter(())  # of the steps that are not summed yet
        self._unsummed = 0  # the steps taken of them
        # The frames of all batches that were read, as the loader counts them, and when they were last summed.
        self._arrived = self._summed = np.zeros(2, np.int64)
        self._is_told = False

    def begin_epoch(self, sampler: BatchSampler) -> None:
        """Begins the current epoch: its time and its steps count from here on."""
        self._epoch = self.total()
        taken_steps = sampler.remainder.plan_start // sampler.micro_batches
        self._frames = _frames_from(sampler.plan, sampler.lengths, taken_steps)
        self._arrived, self._summed = sampler.arrived, sampler.arrived.copy()
        self.skip()

    def skip(self) -> None:
        """Leaves out the time since the last step, such as that of an evaluation."""
        self._last = time.perf_counter()

    def note(self, steps: int = 1) -> None:
        """Counts finished steps, and the time since the last one."""
        now = time.perf_counter()
        self._total = self._total._replace(seconds=self._total.seconds + now - self._last)
        self._last, self._unsummed = now, self._unsummed + steps

    def epoch(self) -> Trained:
        """Returns the counts since the epoch began."""
        return self.total().since(self._epoch)

    def take_log(self) -> Trained:
        """Returns the counts since the last call."""
        self.note(0)
        start, self._logged = self._logged, self.total()
        return self._logged.since(start)

    def describe_first(self, epoch: int, device: torch.device) -> str:
        """Describes the first epoch and its memory; returns an empty text for later epochs, and without a step."""
        trained = self.epoch()
        if self._is_told or not trained.as_log():
            return ""
        self._is_told = True
        return "\n".join(filter(None, (trained.describe(epoch), describe_memory(device))))

    def total(self) -> Trained:
        """Returns the counts of the run. The frames of the steps since the last call are added up now."""
        if planned := list(islice(self._frames, self._unsummed)):
            data, computed = np.sum(planned, axis=0).tolist()
            arrived_data, arrived = (self._arrived - self._summed).tolist()
            if arrived_data:
                computed = round(data * arrived / arrived_data)
            self._summed = self._arrived.copy()
            self._total = Trained._make(map(operator.add, self._total, (len(planned), data, computed, 0.0)))
        self._unsummed = 0
        return self._total


def _frames_from(plan: EpochPlan, lengths: NDArray[Any], step: int) -> Iterator[NDArray[np.int64]]:
    """Yields the frames of each step from `step` on: [2], without and with padding."""
    if isinstance(plan, WindowEpoch):
        while step < plan.steps:
            number, batch = plan.find(step * plan.micro_batches)
            window, taken_steps = plan.window(number), batch // plan.micro_batches
            # Reads only the lengths of the window from a mapped file.
            yield from _frames_from(window.plan, np.asarray(lengths)[window.numbers], taken_steps)
            step += window.plan.steps - taken_steps
    else:
        yield from np.stack(sum_frames(plan, lengths), axis=1)[plan.grid].sum(axis=(1, 2))[step:]


def describe_memory(device: torch.device) -> str:
    """Returns the peak memory of a GPU as a sentence; an empty text on other devices."""
    if device.type != "cuda":
        return ""
    peak, total = torch.cuda.max_memory_allocated(device), torch.cuda.get_device_properties(device).total_memory
    advice = "\nA larger budget fits: lw.torch.find_budget finds the largest." if peak < _ROOM * total else ""
    return f"Training took at most {peak / 2**30:.1f} of the {total / 2**30:.1f} GiB of the GPU.{advice}"

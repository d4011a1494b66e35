"""How fast a run trains, for the log of its trainer: frames by the plan, seconds by a clock."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.measures.metrics import sum_frames
from lengthwise.planning.plan import Plan
from lengthwise.planning.window_epoch import EpochPlan
from lengthwise.report import words
from lengthwise.torch.sampler import BatchSampler


class Trained(NamedTuple):
    """What was trained on, by all ranks: steps, frames of data, frames with padding, and the seconds it took."""

    steps: int = 0
    data: int = 0
    computed: int = 0
    seconds: float = 0.0

    def since(self, before: Trained) -> Trained:
        """What was trained on after `before`."""
        steps, data, computed = (now - then for now, then in zip(self[:3], before[:3], strict=True))
        return Trained(steps, data, computed, self.seconds - before.seconds)

    def as_log(self) -> dict[str, float]:
        """The share that is padding, and the frames of data a second; nothing without a step.

        >>> Trained(steps=2, data=90, computed=120, seconds=3.0).as_log()
        {'padding': 0.25, 'frames_per_second': 30}
        """
        if not self.data or not self.seconds:
            return {}
        return {"padding": 1.0 - self.data / self.computed, "frames_per_second": round(self.data / self.seconds)}

    def tell(self, epoch: int) -> str:
        """The same in a sentence; empty without a step.

        >>> Trained(steps=2, data=90, computed=120, seconds=3.0).tell(0)
        'Epoch 0 took 2 steps in 3 s: 30 frames of data a second, 40 with padding.'
        """
        if not self.data or not self.seconds:
            return ""
        data, computed = (f"{round(frames / self.seconds):,}" for frames in (self.data, self.computed))
        took = f"{words.count(self.steps, 'step')} in {words.number(self.seconds)} s"
        return f"Epoch {epoch} took {took}: {data} frames of data a second, {computed} with padding."


class Speed:
    """Counts what a sampler's trainer has trained on.

    Attributes:
        total: All that was trained on.
    """

    def __init__(self) -> None:
        self.total: Trained = Trained()
        self._epoch, self._logged = Trained(), Trained()  # the total where each began
        self._last = time.perf_counter()
        self._plan: EpochPlan | None = None
        self._part = _Part(0, np.zeros((1, 2), np.int64))
        self._place = 0  # steps of the plan that are counted

    def skip(self) -> None:
        """Leaves out the time since the last step, such as that of an evaluation."""
        self._last = time.perf_counter()

    def begin_epoch(self) -> None:
        """Begins an epoch: its time and its steps count from here on."""
        self.skip()
        self._epoch, self._plan = self.total, None

    def note_time(self) -> None:
        """Counts the time since the last step."""
        now = time.perf_counter()
        self.total = self.total._replace(seconds=self.total.seconds + now - self._last)
        self._last = now

    def note(self, sampler: BatchSampler, delivered: int) -> None:
        """Counts the steps that are done once a rank has trained on `delivered` batches of the epoch."""
        self.note_time()
        plan: EpochPlan = sampler.plan
        # The plan may be of what earlier runs left: 24 batches of the epoch, of which the plan has the last 10.
        earlier = len(sampler) - plan.steps * plan.micro_batches
        if plan is not self._plan:
            self._plan, self._part = plan, _Part(0, np.zeros((1, 2), np.int64))
            self._place = (sampler.start - earlier) // plan.micro_batches
        stop = max((delivered - earlier) // plan.micro_batches, self._place)
        while self._place < stop:
            if not self._part.has(self._place):
                self._part = _part_at(plan, sampler.lengths, self._place)
            place, frames = min(stop, self._part.stop), self._part.frames
            data, computed = (frames[place - self._part.first] - frames[self._place - self._part.first]).tolist()
            steps, *before, seconds = self.total
            self.total = Trained(steps + place - self._place, before[0] + data, before[1] + computed, seconds)
            self._place = place

    def epoch(self) -> Trained:
        """What was trained on since the epoch began."""
        return self.total.since(self._epoch)

    def take_log(self) -> Trained:
        """What was trained on since this was last called."""
        self.note_time()
        found, self._logged = self.total.since(self._logged), self.total
        return found


class _Part(NamedTuple):
    """Steps in a row, from the step `first` on.

    Attributes:
        first: Counted from the beginning of the plan.
        frames: [steps + 1, 2], the frames of data, and with padding, of the first k steps, of all ranks.
    """

    first: int
    frames: NDArray[np.int64]

    @property
    def stop(self) -> int:
        return self.first + len(self.frames) - 1

    def has(self, step: int) -> bool:
        """Whether `step` is one of them."""
        return self.first <= step < self.stop


def _part_at(plan: EpochPlan, lengths: NDArray[Any], step: int) -> _Part:
    """The part that has `step`: the whole plan, or the window that the pass has planned for it."""
    if isinstance(plan, Plan):
        return _Part(0, _frames_of_steps(plan, lengths))
    number, batch = plan.find(step * plan.micro_batches)
    window = plan.window(number)
    own = np.asarray(lengths)[window.numbers]  # of a mapped file, only these are read
    return _Part(step - batch // plan.micro_batches, _frames_of_steps(window.plan, own))


def _frames_of_steps(plan: Plan, lengths: ArrayLike) -> NDArray[np.int64]:
    """The frames of data, and with padding, of the first k steps of all ranks: [steps + 1, 2]."""
    frames = np.stack(sum_frames(plan, lengths), axis=1)[plan.grid].sum(axis=(1, 2))
    return np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(frames, axis=0)])

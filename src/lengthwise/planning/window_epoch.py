"""An epoch of windows, or the rest of one: its batches in a row, and the window of each batch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.batching import spell_out
from lengthwise.planning.loss import check_some_weight, check_weights, scale_losses, sum_by_batch
from lengthwise.planning.plan import Plan
from lengthwise.planning.resume import read_runs
from lengthwise.planning.windows import Window, Windows

_ONE_WEIGHT = "Give one weight for each sequence."


class WindowEpoch:
    """The batches of one epoch, window after window; a plan is made when its window is reached.

    The steps of all windows are known, so that batch k is found by planning its own window alone.

    Args:
        windows: Made for the ranks that take the epoch.
        epoch: Counted from 0.
        after: Runs that took the beginning of the epoch, as in `make_plan`. The rest of the window in which they
            stopped is planned by `make_plan(after=...)`; later windows are planned whole, for the ranks of this run.

    Attributes:
        windows: As given.
        epoch: As given.
        seed: The seed of the run.
        world_size: The number of ranks.
        micro_batches: The number of batches that each rank takes in one step.
        lengths_fingerprint: The fingerprint of the number of lengths, and of a sample of them.
        batching: The batching and the windows, as JSON.
        first: The window in which the epoch begins.
        after: The runs that took the beginning of that window.

    Raises:
        ValueError: As `make_plan`.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2))
    >>> windows = lw.Windows([5, 9, 2, 4, 7, 7, 1, 3], batching, window=4, block=2)
    >>> epoch = WindowEpoch(windows, 0)
    >>> len(epoch), epoch.find(3)
    (4, (1, 1))
    >>> sum(map(len, epoch.batches(start=3)))
    2
    """

    def __init__(self, windows: Windows, epoch: int, *, after: Sequence[Sequence[int]] = ()) -> None:
        if not isinstance(windows, Windows):
            raise checks.type_error("windows", "a lengthwise.Windows", windows, "Make one of the lengths.")
        self.windows: Windows = windows
        self.seed: int = windows.seed
        self.world_size, self.micro_batches = windows.world
        self.lengths_fingerprint: str = windows.lengths_fingerprint
        shape = {"window": windows.window, "block": windows.block}
        self.batching: str = json.dumps(json.loads(windows.batching.to_json()) | {"windows": shape})
        self.epoch: int = windows.check_epoch(epoch)
        self.first: int = 0
        self.after: list[tuple[int, int, int]] = []
        for run in read_runs(after):
            borders = self._find_borders(windows.share_out(*run.world)) if run.batches else np.zeros(1, np.int64)
            if run.batches > borders[-1]:
                rule, remedy = "within the batches of the epoch", "Give what the checkpoint says."
                raise checks.value_error("after", rule, run.batches, remedy)
            # 8 ranks took 120 batches each of windows of 50: windows 0 and 1 are done, and 20 batches of window 2.
            behind, left = _find_place(borders, run.batches)
            self.first, self.after = self.first + behind, [] if behind else self.after
            self.after += [run._replace(batches=left).numbers] if left else []

    def _find_borders(self, windows: Windows) -> NDArray[np.int64]:
        """Returns the batches of each rank before each window, from the first one on, and all of them."""
        steps = windows.window_steps(self.epoch)[self.first :]
        if self.after:
            rest = windows.plan(self.epoch, self.first, after=self.after).plan.steps
            steps = np.concatenate([[rest], steps[1:]])
        return np.concatenate([[0], np.cumsum(steps * windows.world.micro_batches)])

    @cached_property
    def _borders(self) -> NDArray[np.int64]:
        return self._find_borders(self.windows)

    @property
    def steps(self) -> int:
        """The number of optimiser steps, the same on every rank."""
        return len(self) // self.micro_batches

    def __len__(self) -> int:
        """The number of batches that one rank takes."""
        return int(self._borders[-1])

    def __repr__(self) -> str:
        return (
            f"WindowEpoch(steps={self.steps}, micro_batches={self.micro_batches}, world_size={self.world_size}, "
            f"windows={self.first}..{len(self.windows) - 1}, seed={self.seed}, epoch={self.epoch})"
        )

    def window(self, number: int) -> Window:
        """Plans the window `number` of the epoch; of the first one, the batches that earlier runs left."""
        return self.windows.plan(self.epoch, number, after=self.after if number == self.first else ())

    def find(self, number: int) -> tuple[int, int]:
        """Returns the window of each rank's batch `number`, and the number of the batch in that window."""
        remedy = "Give the number of a batch of this epoch."
        number = checks.check_whole("number", number, minimum=0, maximum=len(self) - 1, remedy=remedy)
        behind, place = _find_place(self._borders, number)
        return self.first + behind, place

    def batches(self, rank: int = 0, start: int = 0) -> Iterator[NDArray[np.int64]]:
        """Iterates over the batches of `rank`, from its batch number `start` on; see `Window.batches`.

        Raises:
            ValueError: `rank` is not one of the ranks, or `start` lies beyond the epoch.
        """
        self._check_place(rank, start)
        return (batch for window, begin in self._windows_from(start) for batch in window.batches(rank, begin))

    def loss_scales(
        self,
        weights: ArrayLike | None = None,
        *,
        rank: int = 0,
        start: int = 0,
        reduction: str = "mean",
        ranks_averaged: bool = True,
        micro_batches_averaged: bool = False,
    ) -> Iterator[float]:
        """Yields the factor for the loss of each batch of `batches(rank, start)`; see `lengthwise.loss_scales`.

        Args:
            weights: [n], one for each of all sequences; 1 each by default. Leave them out if there are chunks.
            rank: As in `batches`.
            start: As in `batches`.
            reduction: As in `lengthwise.loss_scales`.
            ranks_averaged: As in `lengthwise.loss_scales`.
            micro_batches_averaged: As in `lengthwise.loss_scales`.

        Raises:
            ValueError: As `lengthwise.loss_scales` and `batches`, when the first factor is asked for.
        """
        self._check_place(rank, start)
        all_weights = None if weights is None else self._check_weights(np.asanyarray(weights))
        for window, begin in self._windows_from(start):
            plan = window.plan
            of_window = None if all_weights is None else np.asarray(all_weights)[window.numbers]
            checked = check_weights(of_window, plan.count, _ONE_WEIGHT, name=window.name_sequence)
            sums = sum_by_batch(plan, checked)  # a window may weigh nothing
            scales = scale_losses(plan, sums, reduction, ranks_averaged, micro_batches_averaged)
            yield from scales[:, :, rank].reshape(-1)[begin:].tolist()

    def fingerprint(self) -> str:
        """Returns 16 hex digits that name the epoch: the plan of its first window, its length, and its facts."""
        batching = json.dumps(spell_out(json.loads(self.batching)))
        facts = [batching, self.seed, self.epoch, self.lengths_fingerprint, self.world_size, self.micro_batches]
        planned = self.window(self.first).plan.fingerprint() if len(self) else ""
        content = json.dumps([facts, self.first, self.after, len(self), planned])
        return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()

    def _check_place(self, rank: int, start: int) -> None:
        remedy = "Give windows for the world_size of the run."
        checks.check_whole("rank", rank, minimum=0, maximum=self.world_size - 1, remedy=remedy)
        checks.check_whole("start", start, minimum=0, maximum=len(self), remedy="Start the next epoch instead.")

    def _windows_from(self, start: int) -> Iterator[tuple[Window, int]]:
        """Yields each window, from that of the batch `start` on, and the number of the first batch to take from it."""
        if start >= len(self):
            return
        number, begin = self.find(start)
        while number < len(self.windows):
            window = self.window(number)
            yield window, begin
            number, begin = number + 1, 0

    def _check_weights(self, weights: NDArray[np.generic]) -> NDArray[np.generic]:
        if self.windows.batching.chunks is not None:
            rule, remedy = "None where there are chunks", "Let each chunk count the same."
            raise checks.value_error("weights", rule, f"of shape {weights.shape}", remedy)
        if weights.shape != (count := len(self.windows.lengths),):
            raise checks.value_error("weights", f"of shape [{count}]", weights.shape, _ONE_WEIGHT)
        check_some_weight(weights)
        return weights


def _find_place(borders: NDArray[np.int64], number: int) -> tuple[int, int]:
    """Returns the window of a batch, and its place there, by the batches before each window.

    >>> _find_place(np.array([0, 50, 50, 90]), 55)  # the second window is empty
    (2, 5)
    """
    window = int(np.searchsorted(borders, number, side="right")) - 1
    return window, number - int(borders[window])


# The plan that a sampler takes. Use only what both classes have, or check which one it is.
EpochPlan = Plan | WindowEpoch

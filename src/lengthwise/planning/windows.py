"""Windows: an epoch of too many lengths to plan at once is cut into windows, and each window is a plan.

    1,000,000,000 lengths on disk
    488,282 blocks of 2,048 neighbours                  `block`, which a disk reads at once
    a new random order of the blocks in every epoch     `Key.places`, which stores no table
    954 windows of up to 512 blocks                     `window`, the most sequences that are in memory
    each window an ordinary plan                        `make_plan`, with all its promises

The window w of epoch e is planned by the key (seed, e * 2**32 + w). So no two windows share random numbers, in the same
epoch or in different ones, and two seeds share none either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.arrange import arrange_of
from lengthwise.choices.batching import Batching, check_batching
from lengthwise.choices.cut import OversizeError
from lengthwise.choices.deal import World, check_world, has_equal_epochs
from lengthwise.lengths import as_lengths, fingerprint
from lengthwise.lengths.arrays import keep_mapped, map_file, name_sample
from lengthwise.lengths.rules import check_dims, whole_lengths
from lengthwise.planning.items import Items, read_source, renumber_oversize, take_items
from lengthwise.planning.make import NoStepError, plan_epoch, settle_and_plan, take_epoch
from lengthwise.planning.plan import Plan
from lengthwise.planning.plan_warnings import FirstWarnings
from lengthwise.planning.portion import Settled
from lengthwise.planning.resume import EarlierRun, read_runs
from lengthwise.planning.settle import Recent, round_steps, settle, settle_window
from lengthwise.planning.trial import try_epoch

_MOST = 2**32  # epochs, and windows of an epoch: the numbers of both share 64 bits of a key
_PLANS_KEPT = 2  # the window in use, and one that somebody looks at
_FITTED_LENGTHS = 2**17  # about how many lengths an order is fitted to; one window at least
_FITTED_WINDOWS = 32  # the most windows in that sample
_COUNTED_WINDOWS = 16  # windows whose steps are counted
_DEVIATIONS = 6.0  # standard deviations of these steps: no epoch has so many windows that one needs more


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The plan of one window, and the numbers of its sequences.

    Attributes:
        plan: The plan of the sequences 0..k-1 of the window.
        numbers: [k] int64, rising: the number of each sequence among all lengths.
    """

    plan: Plan
    numbers: NDArray[np.int64]

    def __len__(self) -> int:
        """The number of batches that one rank takes in the window."""
        return len(self.plan)

    def batches(self, rank: int = 0, start: int = 0) -> Iterator[NDArray[np.int64]]:
        """Iterates over the batches of `rank`, from batch `start` of the window on, with the numbers of all lengths.

        Returns:
            Fresh arrays: [k] sequence numbers; or [k, 3] if the plan has chunks: sequence, start and stop.
        """
        return (self._among_all(batch) for batch in self.plan.batches(rank, start))

    def name_sequence(self, place: int) -> str:
        """Names the sequence at a place of the window, by its number among all lengths."""
        return f"sequence {self.numbers[place]}"

    def _among_all(self, batch: NDArray[np.int64]) -> NDArray[np.int64]:
        if batch.ndim == 1:
            return self.numbers[batch]
        return np.column_stack([self.numbers[batch[:, 0]], batch[:, 1:]])


class Windows:
    """Epochs of too many lengths to plan at once, window by window.

    An epoch takes blocks of neighbours in a random order, and plans the blocks of each window together, as `make_plan`
    does. Sequences of one block therefore always share a window. The usual mistake: lengths are sorted on disk. All
    lengths of a block are then nearly equal, so a window has few different lengths. Shuffle such a file once, or give a
    smaller block.

    If there are several windows, the noise of `padding=` is fitted once, to the first window of epoch 0, or to several
    if windows are small. The number of steps is counted in 16 windows. These windows are read before any is planned.
    Every window has its own edges of `Bucketed(buckets=4)`; for few shapes in all windows, give `Bucketed(edges=...)`.
    An arrangement orders the steps within each window.

    Args:
        lengths: [n] or [n, dims] whole numbers; or the path of a `.npy` file, which is mapped into memory. An array of
            any integer type is not copied or converted as a whole, and only read when a window needs it. If a
            mapped file is pickled for another process, only its path is sent.
        batching: The choices.
        window: The most sequences of a window, a multiple of `block`. The windows of an epoch are of equal size, give
            or take two blocks. Larger windows pad less and take more memory.
        block: The number of neighbours that are read together.
        seed: The seed of the run.
        world_size: The number of ranks.
        micro_batches: The number of batches of each rank in one step.

    Raises:
        ValueError: `window` is not a multiple of `block`, the file holds no lengths, or the cut cannot give all windows
            the same number of steps.
        TypeError: `lengths` are not whole numbers, or `batching` is not a Batching.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted())
    >>> windows = Windows([5, 9, 2, 4, 7, 7, 1, 3], batching, window=4, block=2)
    >>> len(windows), windows.steps
    (2, 2)
    >>> windows.numbers(epoch=0, number=0), windows.numbers(epoch=0, number=1)
    (array([0, 1, 2, 3]), array([4, 5, 6, 7]))
    >>> sorted(batch.tolist() for batch in windows.plan(epoch=0, number=1).batches())
    [[5, 4], [6, 7]]
    """

    def __init__(
        self,
        lengths: ArrayLike | str | os.PathLike[str],
        batching: Batching,
        *,
        window: int = 2**20,
        block: int = 2048,
        seed: int = 0,
        world_size: int = 1,
        micro_batches: int = 1,
    ) -> None:
        check_batching(batching)
        if not has_equal_epochs(batching.cut):
            rule, remedy = "one that gives all windows the same number of steps", "Take Budget, FixedSize or Rows."
            raise checks.value_error("cut", rule, batching.cut, remedy)
        self.batching: Batching = batching
        self.world: World = check_world(world_size, micro_batches)
        self.seed: int = int(Key(seed=seed).seed)
        self.block: int = checks.check_whole(
            "block", block, minimum=1, remedy="Give how many neighbours to read, such as 2048."
        )
        remedy = "Give how many sequences to plan at once, such as 2**20, and a block that divides this number."
        self.window: int = checks.check_whole("window", window, minimum=1, remedy=remedy)
        if self.window % self.block:
            raise checks.value_error("window", f"a multiple of the block of {self.block}", self.window, remedy)
        self.lengths: NDArray[Any] = _open(lengths)
        self.lengths_fingerprint: str = name_sample(self.lengths)
        self._blocks = -(-len(self.lengths) // self.block)
        if len(self) > _MOST:
            raise checks.value_error(
                "window", f"so large that an epoch has at most {_MOST} windows", self.window, "Give larger windows."
            )
        self._warnings = FirstWarnings()
        self._settled: dict[World, Settled] = {}
        self._plans: Recent[Window] = Recent(_PLANS_KEPT)

    def __len__(self) -> int:
        """The number of windows, the same in every epoch. Without lengths, there is one empty window."""
        return max(1, -(-self._blocks // (self.window // self.block)))

    def __repr__(self) -> str:
        return f"Windows({len(self)} windows of up to {self.window} of {len(self.lengths)} sequences, seed {self.seed})"

    def __getstate__(self) -> dict[str, Any]:
        # Another process gets no plans and no fits, and makes those that it needs.
        return self.__dict__ | {"_plans": Recent(_PLANS_KEPT), "_settled": {}}

    def share_out(self, world_size: int = 1, micro_batches: int = 1) -> Windows:
        """Returns the same windows for another number of ranks or micro-batches."""
        windows = Windows.__new__(Windows)
        windows.__dict__.update(self.__dict__)  # with the fits for other ranks
        windows.world = check_world(world_size, micro_batches)
        return windows

    @property
    def steps(self) -> int:
        """The number of optimiser steps in a window, the same in every window.

        Raises:
            ValueError: As in `plan`.
        """
        if not len(self.lengths):
            return 0
        settled = self._settle(self.world)
        steps = self.plan(0, 0).plan.steps if settled is None else settled.steps
        if not steps:
            remedy = "No window fills a step. Give larger windows, smaller batches, or tail='split'."
            raise NoStepError(checks.sentence("steps", "at least 1", 0, remedy))
        return steps

    def numbers(self, epoch: int, number: int) -> NDArray[np.int64]:
        """Returns the sequences of the window `number` of `epoch`, rising: [k] int64."""
        key = Key(seed=self.seed, epoch=self.check_epoch(epoch), stage="windows")
        number = self._check_number(number)
        # 7 blocks in 3 windows of at most 3 are shared out as 2, 2 and 3, so that no window is much smaller.
        first, last = (self._blocks * end // len(self) for end in (number, number + 1))
        # Sort the blocks, so that the disk is read in one direction. The plan has a random order of its own.
        blocks = np.sort(key.places(first, last, self._blocks))
        numbers = (blocks[:, None] * self.block + np.arange(self.block)).reshape(-1)
        # The last block may be short.
        return numbers[: np.searchsorted(numbers, len(self.lengths))]

    def plan(self, epoch: int, number: int, *, after: Sequence[Sequence[int]] = ()) -> Window:
        """Plans the window `number` of `epoch`, as `make_plan` does.

        Args:
            epoch: Counted from 0.
            number: Counted from 0, in the order in which the epoch takes its windows.
            after: The earlier runs over this window, as in `make_plan`.

        Returns:
            The window.

        Raises:
            ValueError: As `make_plan`; a sequence is named by its number among all lengths. Or the window has more or
                fewer steps than the others.
        """
        epoch, number = self.check_epoch(epoch), self._check_number(number)
        name = (epoch, number, self.world, tuple(map(tuple, after)))
        return self._plans.get(name, lambda: self._plan_anew(epoch, number, after))

    def _plan_anew(self, epoch: int, number: int, after: Sequence[Sequence[int]]) -> Window:
        numbers, runs = self.numbers(epoch, number), read_runs(after)
        source, key = read_source(self._read(numbers)), Key(seed=self.seed, epoch=epoch * _MOST + number)
        arrange = arrange_of(self.batching.arrange, epoch)
        batching = replace(self.batching, arrange=arrange)
        # After earlier runs, the choices are settled for the ranks and micro-batches of the first run.
        first = runs[0].world if runs else self.world
        settled = self._settle(first)
        with self._naming_sequences(numbers), self._warnings.give(self.world):
            if settled is None:
                return Window(settle_and_plan(source, batching, key, self.world, runs), numbers)
            items = take_epoch(source, batching, epoch)
            own = settle_window(items, source.name, settled, first)
            own = own._replace(batching=replace(own.batching, arrange=arrange))
            plan = plan_epoch(source, items, batching, own, key, self.world, runs)
            if not runs and plan.steps != settled.steps:
                rule = f"large enough that no window fills more steps than {settled.steps}"
                at, remedy = (
                    f"window {number} of epoch {epoch}, which fills {plan.steps}",
                    "Give larger windows, or a smaller block.",
                )
                raise checks.value_error("window", rule, len(numbers), remedy, at=at)
            return Window(plan, numbers)

    def _settle(self, world: World) -> Settled | None:
        """Settles the choices by the first windows, and counts the steps of some; None if one window is the epoch."""
        if len(self) == 1:
            return None
        if world not in self._settled:
            # By the same windows, whichever is planned. So each can be planned alone, the same on every rank.
            most = min(len(self), _FITTED_WINDOWS, max(1, _FITTED_LENGTHS // self.window))
            parts = [take_items(self._read(self.numbers(0, number)), self.batching).lengths for number in range(most)]
            lengths, window_of = np.concatenate(parts), np.repeat(np.arange(most), [len(part) for part in parts])
            name = f"{fingerprint(lengths)} in {most} windows"
            settled = settle(Items(lengths, windows=window_of), name, self.batching, world)
            trial_steps = [
                self._try_window(*divmod(number, len(self)), settled, world) for number in range(_COUNTED_WINDOWS)
            ]
            self._settled[world] = settled._replace(
                steps=round_steps(trial_steps, settled.batching, margin=_DEVIATIONS * float(np.std(trial_steps)))
            )
        return self._settled[world]

    def _try_window(self, epoch: int, number: int, settled: Settled, world: World) -> float:
        """Returns the steps that a window would fill if it were as large as the largest window of its epoch."""
        numbers = self.numbers(epoch, number)
        items = take_items(self._read(numbers), self.batching)
        with self._naming_sequences(numbers):
            own = settle_window(items, fingerprint(items.lengths), settled, world)
            steps = try_epoch(items, own, world, epoch * len(self) + number)
        largest = min(self.block * -(-self._blocks // len(self)), len(self.lengths))
        return steps * (largest / len(numbers))

    @contextmanager
    def _naming_sequences(self, numbers: NDArray[np.int64]) -> Iterator[None]:
        """Gives an `OversizeError` the number that its sequence has among all lengths."""
        try:
            yield
        except OversizeError as error:
            raise renumber_oversize(error, numbers) from None

    def _read(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Reads and checks the lengths of the sequences `numbers`."""
        # Only the pages of a mapped file that hold these lengths are read.
        raw = np.asarray(self.lengths)[numbers]
        dims = raw[:1].size or 1
        checked = whole_lengths(
            raw.reshape(-1),
            name="lengths",
            place=lambda at: f"sequence {numbers[at // dims]}",
            remedy="Drop the sequence or repair its length.",
        )
        return checked.reshape(raw.shape)

    def check_epoch(self, epoch: int) -> int:
        """Returns the epoch as an int of Python: one of NumPy would overflow when multiplied by 2**32."""
        remedy = "Give a whole number from 0 to 2**32 - 1."
        return checks.check_whole("epoch", epoch, minimum=0, maximum=_MOST - 1, remedy=remedy)

    def _check_number(self, number: int) -> int:
        remedy = f"Windows count from 0 to {len(self) - 1}."
        return checks.check_whole("number", number, minimum=0, maximum=len(self) - 1, remedy=remedy)


def locate(windows: Windows, epoch: int, runs: Sequence[EarlierRun]) -> tuple[int, list[EarlierRun]]:
    """Finds the window in which `runs` stopped, and the batches that each of them took of it.

    If 8 ranks took 120 batches each, and windows have 50 for each rank, windows 0 and 1 are done. The run stopped in
    window 2, after (8, 1, 20): 20 batches of each rank. If it stopped at the end of a window, the next one is found.
    """
    number, in_window = 0, list[EarlierRun]()
    for run in runs:
        shared = windows.share_out(*run.world)
        left = run.batches
        while left and number < len(windows):
            after = [earlier.numbers for earlier in in_window]
            steps = shared.plan(epoch, number, after=after).plan.steps if after else shared.steps
            if left < (batches := steps * run.world.micro_batches):
                break
            left, number, in_window = left - batches, number + 1, []
        if left and number == len(windows):
            raise checks.value_error(
                "after", "within the batches of the epoch", run.batches, "Give what the checkpoint says."
            )
        in_window += [run._replace(batches=left)] if left else []
    return number, in_window


def _open(lengths: ArrayLike | str | os.PathLike[str]) -> NDArray[Any]:
    """Returns arrays and files of whole numbers without a copy, and others converted; a file of fractions raises."""
    if isinstance(lengths, str | os.PathLike):
        lengths = map_file(lengths)
        if lengths.dtype.kind not in "iu":  # converting them would read the whole file
            remedy = "Write them as whole numbers once: numpy.save(path, lengths.astype(numpy.uint32))."
            raise checks.type_error("lengths", "a file of whole numbers", lengths.dtype.name, remedy)
    if not isinstance(lengths, np.ndarray) or lengths.dtype.kind not in "iu" or lengths.ndim not in (1, 2):
        return as_lengths(lengths)
    if lengths.shape[1:] == (0,):  # `as_lengths` raises the error for [n, 0]
        return as_lengths(lengths)
    check_dims(1 if lengths.ndim == 1 else lengths.shape[1])
    return keep_mapped(lengths)

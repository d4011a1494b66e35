"""Windows: an epoch of too many lengths to plan at once is cut into windows, and each window is a plan.

    1,000,000,000 lengths on disk
    488,282 blocks of 2,048 neighbours                  `block`, which a disk reads at once
    a new random order of the blocks in every epoch     `Key.places`, which stores no table
    954 windows of up to 512 blocks                     `window`, the most sequences that are in memory
    each window an ordinary plan                        `make_plan`, with all its promises
    as many steps as its sequences fill                 `window_steps`, which add up to the same `steps` in every epoch

The window w of epoch e is planned by the key (seed, e * 2**32 + w). So no two windows share random numbers, in the same
epoch or in different ones, and two seeds share none either.
"""

from __future__ import annotations

import os
import warnings
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
from lengthwise.choices.cut import DynamicSize, OversizeError
from lengthwise.choices.deal import World, check_world, has_equal_epochs
from lengthwise.lengths import as_lengths, fingerprint
from lengthwise.lengths.arrays import keep_mapped, map_file, name_sample
from lengthwise.lengths.rules import check_dims, whole_lengths
from lengthwise.planning.items import Items, read_source, renumber_oversize, take_items
from lengthwise.planning.make import plan_epoch, settle_and_plan, take_epoch
from lengthwise.planning.plan import Plan
from lengthwise.planning.portion import Settled
from lengthwise.planning.resume import EarlierRun, read_runs
from lengthwise.planning.settle import Recent, settle, settle_window
from lengthwise.planning.trial import try_epoch
from lengthwise.planning.window_steps import StepLine, fill_fewest_steps, fit_line, shares_of_batch

_MOST = 2**32  # epochs, and windows of an epoch: the numbers of both share 64 bits of a key
_PLANS_KEPT = 2  # the window in use, and one that somebody looks at
_RESULTS_KEPT = 16  # the batches of blocks, the line of steps for each World, the steps of windows for each epoch
_PIECE = 2**17  # about how many lengths are read at a time to count their batches
_TRIALS = 16  # windows, to fit the line of steps
_EPOCHS_ADDED = 8  # epochs whose steps are added up


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
        return (
            self.numbers[batch] if batch.ndim == 1 else np.column_stack([self.numbers[batch[:, 0]], batch[:, 1:]])
            for batch in self.plan.batches(rank, start)
        )

    def name_sequence(self, place: int) -> str:
        """Names the sequence at a place of the window, by its number among all lengths."""
        return f"sequence {self.numbers[place]}"


class Windows:
    """Epochs of too many lengths to plan at once, window by window.

    An epoch takes blocks of neighbours in a random order, and plans the blocks of each window together, as `make_plan`
    does. Sequences of one block therefore always share a window. The usual mistake: lengths are sorted on disk. All
    lengths of a block are then nearly equal, so a window has few different lengths. Shuffle such a file once, or give a
    smaller block.

    If there are several windows, all lengths are read once, piece by piece, before the first is planned. A window with
    blocks of longer sequences has more steps, and every epoch has the same number of steps. The noise of `padding=` is
    fitted once, to one window. Every window has its own edges of `Bucketed(buckets=4)`; for few shapes in all windows,
    give `Bucketed(edges=...)`. An arrangement orders the steps within each window.

    Args:
        lengths: [n] or [n, dims] whole numbers; or the path of a `.npy` file, which is mapped into memory. An array of
            any integer type is not copied or converted as a whole. If a mapped file is pickled for another process,
            only its path is sent.
        batching: The choices.
        window: The most sequences of a window, a multiple of `block`. The windows of an epoch are of equal size, give
            or take two blocks. Larger windows pad less and take more memory.
        block: The number of neighbours that are read together.
        seed: The seed of the run.
        world_size: The number of ranks.
        micro_batches: The number of batches of each rank in one step.

    Raises:
        ValueError: `window` is not a multiple of `block`, the file holds no lengths, or the cut is another than
            `Budget`, `FixedSize` and `Rows`.
        TypeError: `lengths` are not whole numbers, or `batching` is not a Batching.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted())
    >>> windows = Windows([5, 9, 2, 4, 7, 7, 1, 3], batching, window=4, block=2)
    >>> len(windows), windows.steps
    (2, 4)
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
        if not has_equal_epochs(batching.cut) or isinstance(batching.cut, DynamicSize):
            # Where capacity follows from the longest sequence, each window would have another.
            rule, remedy = "Budget, FixedSize or Rows", "For DynamicSize(16), give Budget(16 * lengths.max())."
            raise checks.value_error("cut", rule, batching.cut, remedy)
        self.batching: Batching = batching
        self.world: World = check_world(world_size, micro_batches)
        self.seed: int = int(Key(seed=seed).seed)
        remedy = "Give how many neighbours to read, such as 2048."
        self.block: int = checks.check_whole("block", block, minimum=1, remedy=remedy)
        remedy = "Give how many sequences to plan at once, such as 2**20, and a block that divides this number."
        self.window: int = checks.check_whole("window", window, minimum=1, remedy=remedy)
        if self.window % self.block:
            raise checks.value_error("window", f"a multiple of the block of {self.block}", self.window, remedy)
        self.lengths: NDArray[Any] = _open(lengths)
        self.lengths_fingerprint: str = name_sample(self.lengths)
        self._blocks = -(-len(self.lengths) // self.block)
        if len(self) > _MOST:
            rule = f"so large that an epoch has at most {_MOST} windows"
            raise checks.value_error("window", rule, self.window, "Give larger windows.")
        self._results: Recent[Any] = Recent(_RESULTS_KEPT)
        self._plans: Recent[Window] = Recent(_PLANS_KEPT)

    def __len__(self) -> int:
        """The number of windows, the same in every epoch. Without lengths, there is one empty window."""
        return max(1, -(-self._blocks // (self.window // self.block)))

    def __repr__(self) -> str:
        return f"Windows({len(self)} windows of up to {self.window} of {len(self.lengths)} sequences, seed {self.seed})"

    def __getstate__(self) -> dict[str, Any]:
        # Another process makes the plans and results that it needs.
        return self.__dict__ | {"_plans": Recent(_PLANS_KEPT), "_results": Recent(_RESULTS_KEPT)}

    def share_out(self, world_size: int = 1, micro_batches: int = 1) -> Windows:
        """Returns the same windows for another number of ranks or micro-batches."""
        windows = Windows.__new__(Windows)
        windows.__dict__.update(self.__dict__)  # with the results for other ranks
        windows.world = check_world(world_size, micro_batches)
        return windows

    @property
    def steps(self) -> int:
        """The number of optimiser steps of an epoch, the same in every epoch.

        Raises:
            ValueError: As in `plan`. Or a sequence of any window is over the budget.
        """
        return int(self.window_steps(0).sum())

    def window_steps(self, epoch: int) -> NDArray[np.int64]:
        """Returns the optimiser steps of each window of `epoch`, [windows]. Together they are `steps`.

        Raises:
            ValueError: As in `steps`.
        """
        epoch = self.check_epoch(epoch)
        if len(self) == 1:
            return np.array([self.plan(epoch, 0).plan.steps])
        return self._results.get((self.world, epoch), lambda: self._line.share_steps(self._sum_windows(epoch)))

    def numbers(self, epoch: int, number: int) -> NDArray[np.int64]:
        """Returns the sequences of the window `number` of `epoch`, rising: [k] int64."""
        number = self._check_number(number)
        # 7 blocks in 3 windows of at most 3 are shared out as 2, 2 and 3, so that no window is much smaller.
        first, last = (self._blocks * end // len(self) for end in (number, number + 1))
        # Sort the blocks, so that the disk is read in one direction. The plan has a random order of its own.
        key = Key(seed=self.seed, epoch=self.check_epoch(epoch), stage="windows")
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
            ValueError: As `make_plan`; a sequence is named by its number among all lengths. Or even sorted batches of
                the window fill more steps than it has.
        """
        epoch, number = self.check_epoch(epoch), self._check_number(number)
        name = (epoch, number, self.world, tuple(map(tuple, after)))
        return self._plans.get(name, lambda: self._plan_anew(epoch, number, read_runs(after)))

    def _plan_anew(self, epoch: int, number: int, runs: Sequence[EarlierRun]) -> Window:
        numbers, key = self.numbers(epoch, number), Key(seed=self.seed, epoch=epoch * _MOST + number)
        source, arrange = read_source(self._read(numbers)), arrange_of(self.batching.arrange, epoch)
        # All windows have one name, so that a warning is given once.
        source, batching = source._replace(name=self.lengths_fingerprint), replace(self.batching, arrange=arrange)
        if len(self) == 1:
            with self._naming_sequences(numbers):
                return Window(settle_and_plan(source, batching, key, self.world, runs), numbers)
        # After earlier runs, the choices and the steps are those of the first run.
        first = self.share_out(*runs[0].world) if runs else self
        steps = int(first.window_steps(epoch)[number])
        with self._naming_sequences(numbers), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Epoch ")  # of other steps: the window is planned again
            items = take_epoch(source, batching, epoch)
            settled = settle_window(items, source.fingerprint, first._line.settled, first.world)
            settled = settled._replace(batching=replace(settled.batching, arrange=arrange), steps=steps)
            for choices in (settled, fill_fewest_steps(settled)):
                plan = plan_epoch(source, items, batching, choices, key, first.world)
                if plan.steps == steps:
                    plan = plan_epoch(source, items, batching, choices, key, self.world, runs) if runs else plan
                    return Window(plan, numbers)
        rule, at = f"so large that no window fills more steps than {steps}", f"window {number} of epoch {epoch}"
        remedy = "Give larger windows, or a smaller block."
        raise checks.value_error("window", rule, len(numbers), remedy, at=f"{at}, which fills {plan.steps}")

    @property
    def _line(self) -> StepLine:
        """The choices of all windows, and the steps of a window by its batches; fitted once for each World."""
        return self._results.get(self.world, self._fit_line)

    def _fit_line(self) -> StepLine:
        # The trial windows are the same on every rank, and whichever window is planned.
        epochs = [self._sum_windows(epoch) for epoch in range(max(_EPOCHS_ADDED, -(-_TRIALS // len(self))))]
        rising = np.argsort(np.concatenate(epochs[: -(-_TRIALS // len(self))]), kind="stable")
        windows = rising[np.arange(_TRIALS) * (len(rising) - 1) // (_TRIALS - 1)].tolist()
        middle = self._take(self.numbers(*divmod(windows[_TRIALS // 2], len(self))))
        settled = settle(middle, fingerprint(middle.lengths), self.batching, self.world)
        trials = np.array([self._try_window(window, settled) for window in windows])
        return fit_line(trials[:, 0], trials[:, 1], epochs, settled)

    def _try_window(self, number: int, settled: Settled) -> tuple[float, float]:
        """Returns the steps that a window would fill without padding, and those that it fills."""
        numbers = self.numbers(*divmod(number, len(self)))
        items = self._take(numbers)
        with self._naming_sequences(numbers):
            settled = settle_window(items, fingerprint(items.lengths), settled, self.world)
            filled = try_epoch(items, settled, self.world, number)
        return float(shares_of_batch(items.lengths, self.batching).sum()) / self.world.slots, filled

    def _sum_windows(self, epoch: int) -> NDArray[np.float64]:
        """Returns the steps that the windows of an epoch would fill without padding, [windows]."""
        blocks = Key(seed=self.seed, epoch=epoch, stage="windows").places(0, self._blocks, self._blocks)
        sums = np.concatenate([[0.0], np.cumsum(self._results.get("batches", self._count_batches)[blocks])])
        ends = self._blocks * np.arange(len(self) + 1) // len(self)
        return np.round(np.diff(sums[ends]), 6) / self.world.slots

    def _count_batches(self) -> NDArray[np.float64]:
        """Reads all lengths, and returns the batches that each block would fill without padding, [blocks]."""
        batches, piece = [], max(1, _PIECE // self.block) * self.block
        for start in range(0, len(self.lengths), piece):
            numbers = np.arange(start, min(start + piece, len(self.lengths)))
            items = self._take(numbers)
            shares = shares_of_batch(items.lengths, self.batching)
            if np.isinf(shares).any():  # the trial raises the error of a sequence over the budget
                settled = settle(items, fingerprint(items.lengths), self.batching, self.world)
                with self._naming_sequences(numbers):
                    try_epoch(items, settled, self.world, 0)
            sequences = numbers - start if items.spans is None else items.spans[:, 0]
            batches.append(np.bincount(sequences // self.block, shares))
        # A short last block counts as a whole one, so that the steps do not depend on the window that has it.
        batches[-1][-1] *= self.block / (len(self.lengths) - (self._blocks - 1) * self.block)
        return np.concatenate(batches)

    def _take(self, numbers: NDArray[np.int64]) -> Items:
        return take_items(self._read(numbers), self.batching)

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
            raw.reshape(-1), name="lengths", place=lambda at: f"sequence {numbers[at // dims]}", remedy="Round it."
        )
        return checked.reshape(raw.shape)

    def check_epoch(self, epoch: int) -> int:
        """Returns the epoch as an int of Python: one of NumPy would overflow when multiplied by 2**32."""
        remedy = "Give a whole number from 0 to 2**32 - 1."
        return checks.check_whole("epoch", epoch, minimum=0, maximum=_MOST - 1, remedy=remedy)

    def _check_number(self, number: int) -> int:
        remedy = f"Windows count from 0 to {len(self) - 1}."
        return checks.check_whole("number", number, minimum=0, maximum=len(self) - 1, remedy=remedy)


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

"""find_budget: the budget that fits into memory, found by real steps that may run out of it."""

from __future__ import annotations

import gc
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from lengthwise import checks
from lengthwise.advice.step_cost import show_shapes
from lengthwise.advice.step_timing import (
    RETURNS,
    MakeBatch,
    Step,
    call,
    check_functions,
    place_of,
    ran_out,
    trial_lengths,
    try_once,
)
from lengthwise.choices.arithmetic import round_up
from lengthwise.choices.batching import Batching, check_batching
from lengthwise.choices.cost import Cost, cost_of_one
from lengthwise.choices.cut import Budget
from lengthwise.choices.names import write_choice
from lengthwise.lengths import as_lengths
from lengthwise.planning.items import take_items
from lengthwise.torch.step_meter import check_trained, choose_device, mark, run_on

_LEVELS = 4  # padded lengths to try, from short to the longest
_EXACT = 32  # up to 32 sequences, the bisection is exact; beyond, it is exact to one in 32
_FEW = 16  # sequences of a trial batch, to check that `make_batch` follows the count
_SKIPPED = 32  # the most steps at the beginning that may train nothing


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FoundBudget:
    """The largest budget that fits into memory. `print` shows the largest batches that fitted.

    Attributes:
        budget: The most that a batch may cost, in the unit of the batching's cost: by default padded frames.
        batching: The batching with this budget, for samplers and plans.
        counts: [k], the sequences of the largest batches that fitted, before the margin is taken off.
        padded_lengths: [k, dims], the padded lengths of the largest batches, in rising order.
        ran_out: True if larger batches ran out of memory. If False, `max_sequences` ended the search.

    >>> found = find_budget(lambda batch: None, torch.empty, [100, 100, 200], max_sequences=3)
    >>> found.budget, found.counts.tolist(), found.ran_out
    (600.0, [3, 3, 3, 3], False)
    """

    budget: float
    batching: Batching
    counts: NDArray[np.int64]
    padded_lengths: NDArray[np.int64]
    ran_out: bool

    def __repr__(self) -> str:
        return f"FoundBudget(budget={self.budget:.16g}, tried {len(self.counts)} lengths)"

    def __str__(self) -> str:
        """The budget, and a table of the largest batches that fitted."""
        beyond = "larger batches ran out of memory" if self.ran_out else "larger batches were not tried"
        if self.batching.balance is not None:
            beyond += f"; balance={write_choice(self.batching.balance)}"
        table = show_shapes(self.counts, self.padded_lengths)
        return "\n".join([f"budget {self.budget:,.16g}; {beyond}", *table])


def find_budget(
    step: Step,
    make_batch: MakeBatch,
    lengths: ArrayLike,
    *,
    model: nn.Module | None = None,
    batching: Batching | None = None,
    margin: float = 0.1,
    max_sequences: int = 4_096,
    device: torch.device | str | None = None,
) -> FoundBudget:
    """Finds the largest budget under which your training step does not run out of memory, by running it.

    To try a budget, the step runs the largest batches that the budget allows at up to four padded lengths, from short
    to the longest. The budget is doubled until memory runs out, and then bisected; the search counts budgets in
    sequences of the longest length. At the end the batches of the largest budget run once more, and the margin is taken
    off it. Before the search, short steps create the optimiser's state. Another process may take memory for a moment,
    so a batch that ran out of memory is tried twice.

    The step really trains, and may stop in the middle when memory runs out: load the weights again afterwards. On a
    CPU, the system swaps or kills the process before PyTorch reports that memory is full: set a limit
    (`resource.setrlimit`), or give `max_sequences`. Under data parallelism, run the search in one process, with a step
    that takes as much memory as in training.

    Args:
        step: Your training step: forward, backward, and the update of the weights. It is called with a batch.
        make_batch: `make_batch(count, length)` returns a batch of `count` sequences padded to `length` frames; for
            lengths of several dimensions, `make_batch(count, length, another)`.
        lengths: [n] or [n, dims], the lengths of your data.
        model: The model that the step trains. Its gradients are dropped when memory runs out. If the first 32 steps
            change none of its parameters, this is an error: gradients and the optimiser's state would not be counted.
        batching: The batching whose budget is found. It is cut by a `Budget`, whose number does not matter; by default
            `Batching(budget=...)`. If it has chunks, batches of chunks are tried. All other choices stay, such as a
            `balance`: it shares the time of the ranks, and needs no memory.
        margin: The share of the budget to leave unused, because memory gets fragmented in a long run.
        max_sequences: The most sequences to try. If one of the largest batches has that many, the cut gets this limit.
        device: The device of the step; by default the device of the model, else CUDA if PyTorch finds it, else the CPU.

    Raises:
        TypeError: The step or `make_batch` is not a function.
        ValueError: The search cannot find a budget:

            - The step or `make_batch` raises an error that is not about memory.
            - One sequence of the longest does not fit.
            - The step trains nothing of `model`, or takes more memory with every batch.
            - `make_batch` ignores the count or the length.
            - The batching is not cut by a budget, or its cost does not grow with the number of sequences.
            - The budget of one long sequence allows more short ones than fit.

    >>> def step(batch):  # like a GPU that holds 10,000 frames
    ...     if batch.numel() > 10_000:
    ...         raise torch.OutOfMemoryError
    >>> found = find_budget(step, torch.empty, [100] * 50 + [200, 400], margin=0.0)
    >>> found.budget, found.counts.tolist()
    (10000.0, [100, 62, 39, 25])
    """
    check_functions(step, make_batch)
    marks = mark(model)
    batching, cut = _check_batching(batching)
    remedy = "Give the share of the budget to leave free, such as 0.1."
    share = checks.check_number("margin", margin, maximum=0.9, remedy=remedy)
    remedy = "Give the most sequences to try in a batch."
    most = checks.check_whole("max_sequences", max_sequences, minimum=1, remedy=remedy)
    bounded = replace(cut, max_sequences=min(most, cut.max_sequences or most))
    array = as_lengths(lengths)
    # As plans pad: with multiple_of=64 a sequence of 400 frames takes 448, and those of 5 and 20 take 64.
    levels = trial_lengths(take_items(array, batching)[0], levels=_LEVELS)
    padded = np.unique(round_up(levels, cut.multiple_of), axis=0)
    search = _Search(step, make_batch, model, choose_device(model, device), batching.cost, bounded, padded)
    search.take_first(marks)
    count = search.find_count()
    budget, counts = search.leave_free(count, share), search.counts_of(count)
    # If every batch has fewer than `max_sequences`, the cut needs no such limit.
    cut = bounded if counts.max() == search.most else cut
    return FoundBudget(
        budget=budget,
        batching=replace(batching, cut=replace(cut, budget=budget)),
        counts=counts,
        padded_lengths=padded,
        ran_out=count < search.most,
    )


@dataclass
class _Search:
    """A search for the largest number of longest sequences whose budget fits into memory.

    A budget of 3 sequences of 400 frames allows 12 of 100: both batches must fit.

    Attributes:
        cut: The cut, with the most sequences to try.
        padded: [k, dims], the padded lengths to try, rising.
    """

    step: Step
    make_batch: MakeBatch
    model: nn.Module | None
    device: torch.device
    cost: Cost
    cut: Budget
    padded: NDArray[np.int64]

    @property
    def most(self) -> int:
        """The most sequences to try."""
        return self.cut.max_sequences or 1

    def counts_of(self, count: int) -> NDArray[np.int64]:
        """Returns [k], the sequences of each padded length that the budget of `count` longest sequences allows."""
        cut = replace(self.cut, budget=self._budget_of(count))
        return cut.batch_sizes(self.padded, cost=self.cost, longest=self.padded[-1]).astype(np.int64)

    def leave_free(self, count: int, share: float) -> float:
        """Returns the budget of `count` longest sequences, less the free share; at least the budget of one."""
        budget, least = self._budget_of(count), self._budget_of(1)
        if count == self.most or not share:  # memory did not run out, or the margin is 0
            return budget
        if budget * (1 - share) >= least:
            return budget * (1 - share)
        rule = f"at most {1 - least / budget:.3g}, because one sequence of the longest needs the rest"
        checks.warn(checks.sentence("margin", rule, share, "Cut sequences into chunks, or make the model smaller."))
        return least

    def take_first(self, marks: list[tuple[int, float]]) -> None:
        """Runs steps of one short sequence: the first creates the optimiser's state, the second starts with it.

        Runs two steps, or more if the first ones train nothing: a `GradScaler` skips steps until its scale fits.
        """
        if not 0.0 < self._budget_of(1) < self._budget_of(2):
            rule, remedy = "one that grows with the number of sequences", "Price the padded frames, as Padded() does."
            raise checks.value_error("cost", rule, self._budget_of(2), remedy, at="2 sequences")
        _check_batches(self.make_batch, self.padded, count=min(_FEW, self.most))
        for number in range(_SKIPPED):
            if not self._fits(1, self.padded[0]):
                raise _no_room(self.padded[0])
            if number and (self.model is None or mark(self.model) != marks):
                break
        check_trained(self.model, marks)

    def find_count(self) -> int:
        """Finds the largest number of longest sequences, at most `most`, whose budget fits.

        Raises:
            ValueError: Not even the budget of one fits.
        """
        fits, fails = 0, self.most + 1
        while fits < self.most < fails:
            count = min(max(1, 2 * fits), self.most)
            fits, fails = (count, fails) if self._holds(count) else (fits, count)
        while fails - fits > max(1, fits // _EXACT):
            count = (fits + fails) // 2
            fits, fails = (count, fails) if self._holds(count) else (fits, count)
        # Try once more at the end: a run meets all shapes, and memory gets fragmented.
        while fits and not self._holds(fits):
            fits -= max(1, fits // _EXACT)
        if not fits:
            raise self._explain()
        return fits

    def _budget_of(self, count: int) -> float:
        return cost_of_one(self.cost, count, self.padded[-1])

    def _holds(self, count: int) -> bool:
        """Tells if the largest batches under the budget of `count` sequences of the longest fit into memory."""
        return all(map(self._fits, self.counts_of(count).tolist(), self.padded))

    def _explain(self) -> ValueError:
        """Returns the error for a search in which not even the budget of one long sequence fits."""
        if not self._fits(1, self.padded[0]):  # each step takes more memory than the one before
            remedy = "Keep numbers, such as loss.item(), and no tensors."
            at = f"{_place(self.padded[0])}, which fitted at first"
            return checks.value_error("step", "a function that keeps no batch", "out of memory", remedy, at=at)
        if not self._fits(1, self.padded[-1]):
            return _no_room(self.padded[-1])
        rule = f"small enough for the {self.counts_of(1)[0]} short sequences that the budget of a long sequence allows"
        remedy = "Give a smaller max_sequences, or a cost that counts sequences: Quadratic(per_sequence=100, linear=1)."
        return checks.value_error("step", rule, "out of memory", remedy, at=_place(self.padded[0]))

    def _fits(self, count: int, padded: NDArray[np.int64]) -> bool:
        """Tells if a batch fits in one of two tries: the first may run out of memory by chance."""
        return self._runs(count, padded) or self._runs(count, padded)

    def _runs(self, count: int, padded: NDArray[np.int64]) -> bool:
        try:
            try_once(self.step, self.make_batch, np.array([count, *padded]), partial(run_on, self.device))
        except (MemoryError, RuntimeError) as error:
            if not ran_out(error):
                raise
        else:
            return True
        # After the `except` block, no error keeps the tensors of the step alive.
        if self.model is not None:
            self.model.zero_grad()
        gc.collect()
        getattr(getattr(torch, self.device.type), "empty_cache", bool)()  # a CPU has none
        return False


def _no_room(padded: NDArray[np.int64]) -> ValueError:
    remedy = "Make the model smaller, or cut sequences into chunks."
    return checks.value_error("step", "within memory for one sequence", "out of memory", remedy, at=_place(padded))


def _place(padded: NDArray[np.int64]) -> str:
    return f"length {' x '.join(map(str, padded.tolist()))}"


def _check_batching(batching: Batching | None) -> tuple[Batching, Budget]:
    batching = Batching(budget=1.0) if batching is None else batching
    check_batching(batching)
    if type(batching.cut) is not Budget:
        remedy = "Give Batching(budget=1), for example: find_budget finds the number."
        raise checks.value_error("batching", "cut by a budget", batching.cut, remedy)
    return batching, batching.cut


def _check_batches(make_batch: MakeBatch, padded: NDArray[np.int64], *, count: int) -> None:
    """Refuses a `make_batch` that ignores the count or the length, such as one that returns a loader's next batch.

    Batches that hold anything but arrays are not checked.

    Args:
        make_batch: A function of a count and the padded lengths.
        padded: [k, dims], the padded lengths to try, rising.
        count: The sequences of the larger batch.

    Raises:
        ValueError: The size of a batch does not depend on the count, or not on the length.
    """
    shapes = np.column_stack([[1, count, 1], padded[[0, 0, -1]]])
    with suppress(MemoryError, RuntimeError):  # memory ran out: the search will tell
        sizes = [_count_numbers(call("make_batch", RETURNS, shape, make_batch, *shape.tolist())) for shape in shapes]
        for shape, size, name in zip(shapes[1:], sizes[1:], ("count", "length"), strict=True):
            if size == sizes[0] and (shape != shapes[0]).any():
                value, remedy = f"{size:,} numbers, whatever the {name}", f"Make a batch of this {name}."
                raise checks.value_error("make_batch", RETURNS, value, remedy, at=place_of(shape))


def _count_numbers(batch: Any) -> float:
    """Counts the numbers in the arrays of a nested batch; returns NaN if it has other parts."""
    if isinstance(shape := getattr(batch, "shape", None), tuple):
        return math.prod(shape)
    parts = batch.values() if isinstance(batch, Mapping) else batch
    return sum(map(_count_numbers, parts)) if isinstance(batch, Mapping | tuple | list) else math.nan

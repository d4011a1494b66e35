"""find_budget: the budget that fits into memory, found by real steps that may run out of it."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn

from lengthwise import checks
from lengthwise.advice.step_checks import (
    MakeBatch,
    Step,
    check_arguments,
    check_batches,
    check_functions,
    tell_infinite,
)
from lengthwise.advice.step_cost import show_table
from lengthwise.advice.step_timing import make_once, ran_out, trial_lengths, try_once
from lengthwise.choices.arithmetic import round_up
from lengthwise.choices.batching import Batching, check_batching
from lengthwise.choices.cost import Cost, cost_of_one
from lengthwise.choices.cut import Budget
from lengthwise.lengths import as_lengths
from lengthwise.planning.items import take_items
from lengthwise.torch.step_meter import DeviceMeter, check_trained, choose_device, mark

_LEVELS = 4  # padded lengths to try, from short to the longest
_EXACT = 32  # up to so many sequences the bisection goes on to the last one; beyond it is exact to one in 32
_FEW = 16  # sequences of a batch that is made before, to see that it grows with the number
_SKIPPED = 32  # steps that may train nothing at first
_UNLIKE = 2  # times the sequences of the longest, from which a budget is said not to suit the memory


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FoundBudget:
    """The budget that fits, and the batching that has it. `print` shows the largest batches that fitted.

    Attributes:
        budget: What a batch may cost, in the unit of the batching's cost: padded frames, unless it has another.
        batching: The batching with this budget, for samplers and plans.
        counts: [k], the sequences of the largest batches that fitted, before the margin is left free.
        padded_lengths: [k, dims], what these are padded to, from short to the longest.
        ran_out: Whether larger batches ran out of memory. If not, `max_sequences` ended the search.
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
        table = show_table(["sequences", "padded to"], [self.counts, self.padded_lengths])
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

    A budget is tried by the largest batches that it allows at four padded lengths, from short to the longest. It is
    doubled until memory runs out, and then bisected, in steps of one sequence of the longest. In the end its batches
    are run once more, and the margin is taken off. The first step is a real one, so that the optimiser's state is
    counted. Another process may take memory for a moment: so a batch that ran out of memory is run again.

    The step really trains, and one that runs out of memory may end in the middle: load the weights afterwards. What
    goes wrong in use: on a CPU, memory has no end before the system begins to swap or kills the process. Set a limit
    (`resource.setrlimit`), or give `max_sequences`. Under data parallelism, run it on one process whose step
    keeps what it keeps there.

    Args:
        step: Called with what `make_batch` returns: forward, backward, and the update of the weights.
        make_batch: `make_batch(count, length)` returns a batch of `count` sequences padded to `length` frames; of
            several lengths `make_batch(count, length, another)`.
        lengths: [n] or [n, dims], those of your data.
        model: What the step trains. Its gradients are dropped after memory ran out. If the first 32 steps change none
            of its parameters, this is an error: gradients and the optimizer's state would not be counted.
        batching: To find the budget of, in the unit of its cost; cut by a `Budget`, the number in which does not
            matter. By default `Batching(budget=...)`. Where it has chunks, these are what is tried.
        margin: The share of the budget to leave free, because memory gets fragmented in a long run.
        max_sequences: The most sequences to try. If a tried batch has that many, the cut gets this bound too.
        device: What the step runs on; by default that of the model, else CUDA where there is one, else the CPU.

    Raises:
        TypeError: The step or `make_batch` cannot be called with such arguments.
        ValueError: One of these:

            - the step or `make_batch` raises something else;
            - one sequence of the longest does not fit;
            - the step trains nothing of `model`, or holds on to more memory with every batch;
            - batches are the same whatever count or length is asked for;
            - the batching is not cut by a budget, or its cost does not grow with the number of sequences;
            - memory goes with the number of sequences, and so few fit that no budget holds for short and long ones. If
              more fit, that warns.

    >>> def step(batch):  # as a GPU that holds 10,000 frames
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
    check_arguments(step, make_batch, array[:1].size)
    # As plans pad: with multiple_of=64 a sequence of 400 frames takes 448, and those of 5 and 20 take 64 alike.
    levels = trial_lengths(take_items(array, batching)[0], levels=_LEVELS, aside=False)
    padded = np.unique(round_up(levels, cut.multiple_of), axis=0)
    meter = DeviceMeter(choose_device(model, device))
    search = _Search(step, make_batch, model, meter, batching.cost, bounded, padded)
    search.take_first(marks)
    count = search.find_count()
    tell_infinite(search.losses)
    budget, counts = search.leave_free(count, share), search.counts_of(count)
    # If no batch has as many sequences as were tried, their number is no bound.
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
    """The search for the most sequences of the longest whose budget fits into memory.

    A budget of 3 sequences of 400 frames allows 12 of 100: both batches must fit.

    Attributes:
        cut: With the most sequences to try.
        padded: [k, dims], the padded lengths to try, rising.
        losses: Losses of the step that are no numbers.
    """

    step: Step
    make_batch: MakeBatch
    model: nn.Module | None
    meter: DeviceMeter
    cost: Cost
    cut: Budget
    padded: NDArray[np.int64]
    losses: list[float] = field(default_factory=list[float])

    @property
    def most(self) -> int:
        """The most sequences to try."""
        return self.cut.max_sequences or 1

    def counts_of(self, count: int) -> NDArray[np.int64]:
        """Returns how many sequences of each length the budget of `count` of the longest allows: [k]."""
        cut = replace(self.cut, budget=self._budget_of(count))
        return cut.batch_sizes(self.padded, cost=self.cost, longest=self.padded[-1]).astype(np.int64)

    def leave_free(self, count: int, share: float) -> float:
        """Returns the budget of `count` of the longest without the share to leave free, but at least that of one."""
        budget, least = self._budget_of(count), self._budget_of(1)
        if count == self.most or not share:  # memory did not end, or all of it may be taken
            return budget
        if budget * (1 - share) >= least:
            return budget * (1 - share)
        rule = f"at most {1 - least / budget:.3g}, because one sequence of the longest needs the rest"
        checks.warn(checks.sentence("margin", rule, share, "Cut sequences into chunks, or make the model smaller."))
        return least

    def take_first(self, marks: list[tuple[int, float]]) -> None:
        """Steps of one short sequence: the first makes the optimiser's state, which the next holds from its start.

        Two of them, and more where the first ones train nothing: a `GradScaler` skips some until its scale fits.
        """
        if not 0.0 < self._budget_of(1) < self._budget_of(2):
            rule, remedy = "one that grows with the number of sequences", "Price the padded frames, as Padded() does."
            raise checks.value_error("cost", rule, self._budget_of(2), remedy, at="2 sequences")
        ends = np.column_stack([[1, min(_FEW, self.most), 1], self.padded[[0, 0, -1]]])
        check_batches(lambda shape: make_once(self.make_batch, shape), ends)
        for number in range(_SKIPPED):
            if not self._fits(1, self.padded[0]):
                raise _no_room(self.padded[0])
            if number and (self.model is None or mark(self.model) != marks):
                break
        check_trained(self.model, marks)

    def find_count(self) -> int:
        """Finds the most sequences of the longest, at most `most`, whose budget fits.

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
        # Once more at the end: a run meets all shapes, and memory gets fragmented.
        while fits and not self._holds(fits):
            fits -= max(1, fits // _EXACT)
        mismatch = self._find_mismatch(fits)
        if not fits:
            raise self._explain(mismatch)
        if mismatch:
            checks.warn(mismatch)
        return fits

    def _budget_of(self, count: int) -> float:
        return cost_of_one(self.cost, count, self.padded[-1])

    def _holds(self, count: int) -> bool:
        """Tells if the largest batches fit that the budget of `count` sequences of the longest allows."""
        return all(map(self._fits, self.counts_of(count).tolist(), self.padded))

    def _find_mismatch(self, count: int) -> str:
        """Says that a budget for short sequences leaves most memory free at long ones; an empty text if it does not."""
        # 100 sequences fit, at length 10 and at 400: the budget of 2 of the long ones allows 80 of the short ones.
        more = max(1, _UNLIKE * count)
        if more > self.most or not self._fits(more, self.padded[-1]):
            return ""
        few = int(self.counts_of(max(1, count))[0])
        while few > 1 and not self._fits(few, self.padded[0]):
            few //= 2
        value = f"of {few} sequences at {_place(self.padded[0])} and of {more} or more at {_place(self.padded[-1])}"
        remedy = (
            f"Memory goes more with the number of sequences than the cost does: give max_sequences={few}, or a cost"
            " with a part for each, such as Quadratic(per_sequence=100, linear=1)."
        )
        return checks.sentence("budget", "about the same at every length", value, remedy)

    def _explain(self, mismatch: str) -> ValueError:
        """Returns the error of a budget that does not fit."""
        if self._fits(1, self.padded[0]):  # else every step takes more memory
            return ValueError(mismatch) if mismatch else _no_room(self.padded[-1])
        rule, remedy = "a function that lets go of every batch", "Keep numbers, such as loss.item(), and no tensors."
        at = f"{_place(self.padded[0])}, which fitted at first"
        return checks.value_error("step", rule, "out of memory", remedy, at=at)

    def _fits(self, count: int, padded: NDArray[np.int64]) -> bool:
        """Tells if a batch fits at the first try or, where that ran out of memory by chance, at the second."""
        return self._runs(count, padded) or self._runs(count, padded)

    def _runs(self, count: int, padded: NDArray[np.int64]) -> bool:
        try:
            try_once(self.step, self.make_batch, np.array([count, *padded]), self.meter, self.losses)
        except (MemoryError, RuntimeError) as error:
            if not ran_out(error):
                raise
        else:
            return True
        # Here the error is gone, and with it the frames that hold the tensors of the step.
        if self.model is not None:
            self.model.zero_grad()
        gc.collect()
        self.meter.empty_cache()
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
        remedy = "Give Batching(budget=1), for example: the number is found."
        raise checks.value_error("batching", "cut by a budget", batching.cut, remedy)
    return batching, batching.cut

"""find_budget: the budget that fits into memory, found by real steps that may run out of it."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

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
from lengthwise.choices.cost import cost_of_one, costs_of
from lengthwise.choices.cut import Budget
from lengthwise.lengths import as_lengths
from lengthwise.planning.draft import take_items
from lengthwise.planning.make import make_plan
from lengthwise.torch.step_meter import DeviceMeter, check_trained, choose_device, mark

_LEVELS = 4  # padded lengths to try, from short to the longest
_EXACT = 32  # up to so many sequences the bisection goes on to the last one; beyond it is exact to one in 32
_FEW = 16  # sequences of a batch that is made before, to see that it grows with the number
_SKIPPED = 32  # steps that may train nothing at first
_UNLIKE = 2  # times the least cost that fits at the longest, from which a budget is said not to suit the memory
_CHECKED = 4  # batches of a plan that are run, from the costliest
_TIMES = 20  # the check lowers the budget before it gives up


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FoundBudget:
    """The budget that fits, and the batching that has it. `print` shows what was tried.

    Attributes:
        budget: What a batch may cost, in the unit of the batching's cost: padded frames, unless it has another.
        batching: The batching with this budget, for samplers and plans.
        counts: [k], the most sequences that fitted at each of the tried lengths.
        padded_lengths: [k, dims], these lengths, from short to the longest.
        costs: [k], what these batches cost.
        full: [k], whether more sequences ran out of memory; if not, `max_sequences` was reached.
    """

    budget: float
    batching: Batching
    counts: NDArray[np.int64]
    padded_lengths: NDArray[np.int64]
    costs: NDArray[np.float64]
    full: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"FoundBudget(budget={self.budget:.16g}, tried {len(self.counts)} lengths)"

    def __str__(self) -> str:
        """The budget, and a table of the largest batches that fitted."""
        table = show_table(["most sequences", "padded to", "cost"], [self.counts, self.padded_lengths, self.costs])
        ends = ["  ran out beyond", *("" if full else "  more were not tried" for full in self.full)]
        return "\n".join([f"budget {self.budget:,.16g}", *(line + end for line, end in zip(table, ends, strict=True))])


def find_budget(
    step: Step,
    make_batch: MakeBatch,
    lengths: ArrayLike,
    *,
    model: nn.Module | None = None,
    batching: Batching | None = None,
    margin: float = 0.1,
    max_sequences: int = 4_096,
    release: Callable[[], object] | None = None,
    device: torch.device | str | None = None,
) -> FoundBudget:
    """Finds the largest budget under which your training step does not run out of memory, by running it.

    At four padded lengths, from short to the longest, the number of sequences is doubled until memory runs out, and
    then bisected. The batch that costs the least of the four says the budget, less a margin. A plan under it is made,
    and its costliest batches are run; if one runs out of memory, the budget is lowered. The first step is a real one,
    so that the optimiser's state is counted. Another process may take memory for a moment: so a batch that ran out of
    memory is run again before it bounds the budget.

    The step really trains, and one that runs out of memory may end in the middle: load the weights afterwards. What
    goes wrong in use: on a CPU, memory has no end before the system begins to swap or kills the process. Set a limit
    (`resource.setrlimit`), or give `max_sequences`. Under data parallelism, run it on one process whose step
    keeps what it keeps there.

    Args:
        step: Called with what `make_batch` returns: forward, backward, and the update of the weights.
        make_batch: `make_batch(count, length)` returns a batch of `count` sequences padded to `length` frames; of
            several lengths `make_batch(count, length, another)`.
        lengths: [n] or [n, dims], those of your data.
        model: What the step trains. If the first 32 steps change none of its parameters, this is an error: gradients
            and the optimizer's state would not be counted.
        batching: To find the budget of, in the unit of its cost; cut by a `Budget`, the number in which does not
            matter. By default `Batching(budget=...)`. Where it has chunks, these are what is tried.
        margin: The share of the budget to leave free, because memory gets fragmented in a long run.
        max_sequences: The most sequences to try. Where that many fit, the cut gets this bound too.
        release: Called after memory ran out, to let go of what the step left; by default `model.zero_grad`.
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
    (9828.0, [100, 62, 39, 25])
    """
    check_functions(step, make_batch)
    before = mark(model)
    chosen, cut = _check(batching, max_sequences, release)
    remedy = "Give the share of the budget to leave free, such as 0.1."
    share = checks.check_number("margin", margin, maximum=0.9, remedy=remedy)
    own = as_lengths(lengths)
    if not len(own):
        raise checks.value_error("lengths", "of at least one sequence", 0, "Give those of your data.")
    check_arguments(step, make_batch, own[:1].size)
    # As plans pad: with multiple_of=64 a sequence of 400 frames takes 448, and those of 5 and 20 take 64 alike.
    tried = trial_lengths(take_items(own, chosen)[0], levels=_LEVELS, aside=False)
    padded = np.unique(round_up(tried, cut.multiple_of), axis=0)
    most = min(max_sequences, cut.max_sequences or max_sequences)
    trials = _Trials(step, make_batch, release or getattr(model, "zero_grad", None), choose_device(model, device))
    trials.take_first(padded, most, trained=lambda: model is None or mark(model) != before)
    check_trained(model, before)
    _load(own, chosen, cut, padded[-1])
    counts = trials.find_counts(padded, most)
    costs, full = costs_of(chosen.cost, counts, padded), counts < most
    alone = costs_of(chosen.cost, np.ones_like(counts), padded)
    _check_grows(costs, alone, counts)
    least = float(alone[-1])
    mismatch = _find_mismatch(costs[full], counts[full], padded[full])
    if mismatch and costs[full].min() < least:
        raise trials.explain(padded[-1], ValueError(mismatch))
    # Where memory did not end, the number of sequences is the bound.
    free = _leave_free(float(costs[full].min()), share, least) if full.any() else float(costs.max())
    bounded = replace(cut, budget=free, max_sequences=cut.max_sequences if full.all() else most)
    tell_infinite(trials.losses)
    checked = trials.check(own, replace(chosen, cut=bounded), bounded, least, max(share, 0.05))
    if mismatch:
        checks.warn(mismatch)
    return FoundBudget(
        budget=checked.budget,
        batching=replace(chosen, cut=checked),
        counts=counts,
        padded_lengths=padded,
        costs=costs,
        full=full,
    )


def _leave_free(limit: float, share: float, least: float) -> float:
    """The budget without the share to leave free, but enough for `least`, what the longest sequence costs."""
    if limit * (1 - share) >= least:
        return limit * (1 - share)
    if not share:
        return least
    # The least of four costs may be below that of one sequence of the longest, where another length takes more memory.
    rule = f"at most {max(0.0, 1 - least / limit):.3g}, because one sequence of the longest needs the rest"
    remedy = "Cut sequences into chunks, or make the model smaller."
    checks.warn(checks.sentence("margin", rule, share, remedy))
    return least


class _Trials:
    """Steps that may run out of memory."""

    def __init__(
        self, step: Step, make_batch: MakeBatch, release: Callable[[], object] | None, device: torch.device
    ) -> None:
        self._step, self._make_batch, self._release, self._meter = step, make_batch, release, DeviceMeter(device)
        self._first = np.ones(1, np.int64)  # the padded lengths of the first step
        self.losses: list[float] = []  # those that are no numbers

    def take_first(self, padded: NDArray[np.int64], most: int, *, trained: Callable[[], bool]) -> None:
        """Steps of one short sequence: the first makes the optimiser's state, which the next holds from its start.

        Two of them, and more where the first ones train nothing: a `GradScaler` skips some until its scale fits.
        """
        ends = np.column_stack([[1, min(_FEW, most), 1], padded[[0, 0, -1]]])
        check_batches(lambda shape: make_once(self._make_batch, shape), ends)
        for number in range(_SKIPPED):
            if not self._fits_again(1, padded[0]):
                raise _no_room(padded[0])
            if number and trained():
                break
        self._first = padded[0]

    def find_counts(self, padded: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """The most sequences that fit at each of `padded` [k, dims], rising: [k], at most `most`."""
        counts = np.empty(len(padded), np.int64)
        fits = 0
        # From the longest: what fits there fits into every shorter one.
        for index in range(len(padded) - 1, -1, -1):
            fits = counts[index] = self._find_count(padded[index], fits, most)
            if not fits:
                raise self.explain(padded[index])
        return counts

    def check(self, lengths: NDArray[np.int64], batching: Batching, cut: Budget, least: float, share: float) -> Budget:
        """Runs the costliest batches of a plan, and lowers the budget until all of them fit.

        Raises:
            ValueError: They do not fit under the least budget either.
        """
        for _ in range(_TIMES):
            plan = make_plan(lengths, replace(batching, cut=cut))
            # The batch of most rows comes between: a run meets all shapes, and memory gets fragmented.
            widest = int(plan.row_counts.argmax())
            numbers = [each for number in plan.costliest(_CHECKED).tolist() for each in (number, widest)]
            # With as many rows as the budget allows: batches of other epochs may be fuller than those of this one.
            padded = plan.padded_lengths[numbers]
            rows = cut.batch_sizes(padded, cost=batching.cost, longest=padded.max(axis=0, initial=1))
            most = np.maximum(plan.row_counts[numbers], np.minimum(rows, plan.count)).astype(np.int64)
            shapes = list(zip(most.tolist(), padded, strict=True))
            # All of them again, not the one that failed: alone it would not meet the memory that the others fragment.
            if any(all(self._fits(*shape) for shape in shapes) for _ in range(2)):
                return cut
            cut = replace(cut, budget=max(least, cut.budget * (1 - share)))
        raise self.explain(lengths.reshape(len(lengths), -1).max(axis=0))

    def _find_count(self, padded: NDArray[np.int64], fits: int, most: int) -> int:
        """The most sequences padded to `padded` [dims] that fit, given that `fits` do."""
        while True:
            fits, fails = self._bisect(padded, fits, most)
            # What bounds the number must fail twice. Once the 12 that failed do fit, more than 12 are searched.
            if fails > most or not self._fits(fails, padded):
                return fits
            fits = fails

    def _bisect(self, padded: NDArray[np.int64], fits: int, most: int) -> tuple[int, int]:
        """Doubling, then bisection: the most that fitted, and the fewest that failed, `most` + 1 where none did."""
        fails = most + 1
        reach = max(1, min(2 * fits, most))
        while fits < reach < fails:
            if self._fits(reach, padded):
                fits, reach = reach, min(2 * reach, most)
            else:
                fails = reach
        while fails - fits > max(1, fits // _EXACT) and fails <= most:
            middle = (fits + fails) // 2
            if self._fits(middle, padded):
                fits = middle
            else:
                fails = middle
        return fits, fails

    def _fits_again(self, count: int, padded: NDArray[np.int64]) -> bool:
        """Whether it fits at the first try or, where that ran out of memory by chance, at the second."""
        return self._fits(count, padded) or self._fits(count, padded)

    def explain(self, padded: NDArray[np.int64], error: ValueError | None = None) -> ValueError:
        """The error of one sequence of `padded` that does not fit, unless another is given.

        If the shortest no longer fits either, the step fills memory.
        """
        if self._fits_again(1, self._first):
            return error or _no_room(padded)
        rule, remedy = "a function that lets go of every batch", "Keep numbers, such as loss.item(), and no tensors."
        at = f"{_place(self._first)}, which fitted at first"
        return checks.value_error("step", rule, "out of memory", remedy, at=at)

    def _fits(self, count: int, padded: NDArray[np.int64]) -> bool:
        try:
            try_once(self._step, self._make_batch, np.array([count, *padded]), self._meter, self.losses)
        except (MemoryError, RuntimeError) as error:
            if not ran_out(error):
                raise
        else:
            return True
        # Here the error is gone, and with it the frames that hold the tensors of the step.
        if self._release is not None:
            self._release()
        gc.collect()
        self._meter.empty_cache()
        return False


def _load(lengths: NDArray[np.int64], batching: Batching, cut: Budget, longest: NDArray[np.int64]) -> None:
    """Makes the plan once, so that its machine code is loaded before the trials leave no memory for it."""
    alone = cost_of_one(batching.cost, 1, longest)
    with warnings.catch_warnings():  # those of the plan that is checked count
        warnings.simplefilter("ignore")
        make_plan(lengths, replace(batching, cut=replace(cut, budget=_FEW * alone or 1.0)))


def _no_room(padded: NDArray[np.int64]) -> ValueError:
    remedy = "Make the model smaller, or cut sequences into chunks."
    return checks.value_error("step", "within memory for one sequence", "out of memory", remedy, at=_place(padded))


def _place(padded: NDArray[np.int64]) -> str:
    return f"length {' x '.join(map(str, padded.tolist()))}"


def _check_grows(costs: NDArray[np.float64], alone: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
    """Refuses a cost by which no budget could bound a batch: that of zero, or of one sequence as of many."""
    rule = "one that grows with the number of sequences"
    remedy = "Price the padded frames, as Padded() and Quadratic(linear=1) do."
    for index in range(len(costs)):
        if not costs[index] or (counts[index] > 1 and costs[index] <= alone[index]):
            at = f"{counts[index]} sequences"
            raise checks.value_error("cost", rule, float(costs[index]), remedy, at=at)


def _find_mismatch(costs: NDArray[np.float64], counts: NDArray[np.int64], padded: NDArray[np.int64]) -> str:
    """Says that a budget for short sequences leaves most memory free at long ones; an empty text where it does not."""
    # 100 sequences fit, at length 10 and at 400: a budget of 1,000 frames would put 2 of the long ones into a batch.
    worst = int(costs.argmin()) if len(costs) else 0
    if not len(costs) or costs[-1] < _UNLIKE * costs[worst]:
        return ""
    rule = "about the same at every length"
    value = f"{costs[worst]:.16g} at {_place(padded[worst])} and {costs[-1]:.16g} at {_place(padded[-1])}"
    remedy = (
        f"Memory goes more with the number of sequences than the cost does: give max_sequences={counts.min()}, or a"
        " cost with a part for each, such as Quadratic(per_sequence=100, linear=1)."
    )
    return checks.sentence("budget", rule, value, remedy)


def _check(
    batching: Batching | None, max_sequences: int, release: Callable[[], object] | None
) -> tuple[Batching, Budget]:
    """The batching, and its cut with the most sequences that it may have."""
    chosen = Batching(budget=1.0) if batching is None else batching
    check_batching(chosen)
    if type(chosen.cut) is not Budget:
        rule = "cut by a budget"
        raise checks.value_error(
            "batching", rule, chosen.cut, "Give Batching(budget=1), for example: the number is found."
        )
    remedy = "Give the most sequences to try in a batch."
    checks.check_whole("max_sequences", max_sequences, minimum=1, remedy=remedy)
    if release is not None and not callable(release):
        raise checks.type_error("release", "a function", release, "Give optimizer.zero_grad, or leave it out.")
    return chosen, chosen.cut

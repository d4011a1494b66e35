"""advise: measures the batches of this package and of trainers on the user's lengths."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.advice.answer import ATTENTION, Advice, AdviceRow, saves, write_attention, write_sentence
from lengthwise.advice.candidates import (
    Candidate,
    SizedCut,
    count_in_batch,
    describe_longest,
    first_budget,
    list_ours,
    list_shipped,
)
from lengthwise.advice.code import write_loop
from lengthwise.advice.step_cost import StepCost, shape_of
from lengthwise.choices.batching import DEFAULT_PADDING, Batching
from lengthwise.choices.cost import Cost, costs_alone, costs_of, has_coefficients
from lengthwise.choices.cut import Budget, Cut, DynamicSize, FixedSize
from lengthwise.choices.deal import World, check_world
from lengthwise.choices.rows import Rows
from lengthwise.lengths import as_lengths
from lengthwise.measures.metrics import epochs_to_pool, measure_epochs, wait_under
from lengthwise.planning.make import make_plan
from lengthwise.planning.plan import Plan

_SAMPLE = 262_144  # the most sequences to measure, unless `_STEPS` need more: 10 million would take minutes
_STEPS = 16  # the fewest steps to measure: in a single step, sorted batches would look as mixed as random ones
_USUAL = FixedSize(16)


def advise(
    lengths: ArrayLike,
    cut: Cut = _USUAL,
    *,
    padding: float | None = None,
    cost: Cost | StepCost | None = None,
    balance: Cost | None = None,
    world_size: int = 1,
    micro_batches: int = 1,
    seed: int = 0,
) -> Advice:
    """Recommends the batches to train with, and returns their savings and code.

    It recommends the default, `Batching(budget=...)`, which takes random steps, or batches as random as a padding
    allows; `lengthwise.Batching` has the rule. Its budget holds about as many sequences as your batches: batch size x
    mean length / (1 - padding), or the longest length if that is more. `advise` measures this default, and the
    batchings of trainers with your cut. If the default saves less than 5 %, the advice is to shuffle.

    Without a `cost`, a price is the computed frames for each frame of data, divided by the share of the time in which
    ranks do not wait. Of more than 262,144 sequences, a random sample is measured: 262,144 sequences, or more if 16
    steps need more.

    Args:
        lengths: [n] or [n, dims].
        cut: The cut that you train with now: a `FixedSize`, `Budget` or `DynamicSize`. The default keeps a `Budget` or
            a `DynamicSize`, and replaces a `FixedSize` by a budget. With `Rows`, packed rows are measured beside
            batches of 16 sequences.
        padding: The share of the computed frames that may be padding. By default it is chosen as `Batching` does, and
            the budget leaves room for 0.05.
        cost: A `StepCost`, for prices in seconds; or any other cost, for prices in its unit.
        balance: The cost that ranks share evenly, for the recommended batching: a `Quadratic`. Waiting is then measured
            under it, and prices, too, without a `cost`. By default, several ranks with a `StepCost` share the shape of
            its seconds, if these rise with the square of the length.
        world_size: The ranks of the run.
        micro_batches: The batches of a rank in a step.
        seed: The seed of the measured plans and of the sample.

    Returns:
        The advice. Equal arguments give equal advice.

    Raises:
        TypeError: `cut` is not one of these four, or `cost` is not a cost.
        ValueError: A number is out of range, there is no sequence, or a sequence is over the budget.

    >>> import lengthwise as lw
    >>> print(lw.advise([7, 7, 7, 7], lw.FixedSize(2)))
    Random batches of 2 sequences pad 0.0 % and compute 1.00 frames for each frame of data.
    You have nothing to gain: no batches cost clearly less. Shuffle.
    """
    array = as_lengths(lengths)
    rows_of_cut = [Candidate(f"rows:{cut.capacity}", Batching(cut=cut))] if isinstance(cut, Rows) else []
    cut = _USUAL if rows_of_cut else cut
    if not isinstance(cut, FixedSize | Budget | DynamicSize):
        remedy = "Give the cut that you train with: lw.FixedSize(16), for example."
        raise checks.type_error("cut", "a FixedSize, a Budget, a DynamicSize or Rows", cut, remedy)
    if not len(array):
        raise checks.value_error("lengths", "of at least one sequence", 0, "Give the lengths of your data.")
    world, dims = check_world(world_size, micro_batches), array[0].size
    _check_costs(cost, balance, dims=dims)
    if balance is None and isinstance(cost, StepCost) and world.world_size > 1:
        balance = shape_of(cost.seconds)
    # `padding=None` gives no warning if the default padding is out of reach.
    share = DEFAULT_PADDING if padding is None else padding
    default = Batching(cut=_choose_cut(array, cut, share), padding=padding, balance=balance)
    sizes = array.reshape(len(array), -1).sum(axis=1)
    sample = draw_sample(array, max(_SAMPLE, _STEPS * world.slots * count_in_batch(cut, sizes)), seed)
    run = _Run(sample, world, seed, len(array) / len(sample))
    with warnings.catch_warnings():  # the user did not choose the paddings of the candidates
        warnings.filterwarnings("ignore", message="`padding` must be")
        decided = Batching.from_json(run.plan(default, 0).batching)
        ours = list_ours(decided, share, slots=world.slots)
        candidates = [*list_shipped(cut, sizes, world, dims=dims), *rows_of_cut, *ours]
        rows = [_measure(candidate, run, cost, balance) for candidate in candidates]
        place = max(place for place, row in enumerate(rows) if row.batching == decided)
        # `default` makes the same plans, and shorter code.
        rows[place] = replace(rows[place], batching=default)
        best = rows[place] if saves(rows[place], rows[0]) else rows[0]
        attention = ""
        if cost is None and balance is None and world.world_size > 1 and best is not rows[0]:
            both = (default, replace(default, balance=ATTENTION))
            attention = write_attention(*(wait_under(run.plans(each), sample, ATTENTION) for each in both))
    unit = "frames" if balance is None else "work"
    if cost is not None:
        unit = "seconds" if isinstance(cost, StepCost) else "cost"
    return Advice(
        candidates=tuple(sorted(rows, key=lambda row: row.price)),
        best=best,
        random=rows[0],
        sentence=write_sentence(
            rows[0], rows[1], best, decided=decided, unit=unit, slots=world.slots, sampled=len(sample) / len(array)
        ),
        attention=attention,
        longest=describe_longest(array, cut.batch_size) if isinstance(cut, FixedSize) and best is not rows[0] else "",
        code=write_loop(best.batching, world),
        unit=unit,
        sequences=len(array),
        measured=len(sample),
        **world._asdict(),
    )


class _Run(NamedTuple):
    """The sampled lengths, the world and the seed of all measured plans; the data set has `times` as many sequences."""

    lengths: NDArray[np.int64]
    world: World
    seed: int
    times: float

    def plan(self, batching: Batching, epoch: int) -> Plan:
        return make_plan(self.lengths, batching, seed=self.seed, epoch=epoch, **self.world._asdict())

    def plans(self, batching: Batching) -> list[Plan]:
        """Returns the plans of as many epochs as measures need."""
        return [self.plan(batching, epoch) for epoch in range(epochs_to_pool(len(self.lengths)))]


def _check_costs(cost: Any, balance: Any, *, dims: int) -> None:
    if balance is not None and not has_coefficients(balance):
        remedy = "Give lw.Quadratic(quadratic=0.001), for example."
        raise checks.type_error("balance", "a Quadratic", balance, remedy)
    if isinstance(cost, StepCost):
        if cost.padded_lengths.shape[1] != dims:
            rule = f"measured with {dims} length{'s' * (dims > 1)} a sequence, as `lengths` has"
            raise checks.value_error("cost", rule, cost.padded_lengths.shape[1], "Measure the step with these lengths.")
    elif cost is not None and (isinstance(cost, type) or not callable(cost)):
        remedy = "Give a StepCost, a Quadratic, or a function from counts and padded lengths."
        raise checks.type_error("cost", "a cost", cost, remedy)


def _choose_cut(lengths: NDArray[np.int64], cut: SizedCut, padding: float) -> SizedCut:
    """Returns the cut of our batches: for a fixed size, a budget of about as many sequences; else the cut itself."""
    remedy = "Give the share of the computed frames that may be padding: 0.1."
    checks.check_number("padding", padding, maximum=0.99, above=True, remedy=remedy)
    if not isinstance(cut, FixedSize):
        return cut
    budget = first_budget(lengths, cut.batch_size, padding=padding, multiple_of=cut.multiple_of)
    return Budget(budget, multiple_of=cut.multiple_of)


def draw_sample(lengths: NDArray[np.int64], most: int, seed: int) -> NDArray[np.int64]:
    if len(lengths) <= most:
        return lengths
    # The sample keeps the order of the data, in which neighbours may be similar.
    return lengths[np.sort(Key(seed=seed, stage="subset").permutation(len(lengths))[:most])]


def _measure(candidate: Candidate, run: _Run, cost: Cost | StepCost | None, balance: Cost | None) -> AdviceRow:
    plans = run.plans(candidate.batching)
    measures = measure_epochs(plans, run.lengths)
    if balance is not None:  # the batchings of trainers do not balance it, but their ranks wait under it too
        measures = replace(measures, straggler_waste=wait_under(plans, run.lengths, balance))
    if cost is not None:
        prices = [epoch_price(plan, cost.seconds if isinstance(cost, StepCost) else cost) for plan in plans]
        price = float(np.mean(prices)) * run.times
    elif balance is not None:
        price = float(np.mean([_price_work(plan, run, balance) for plan in plans]))
    else:
        price = measures.price
    return AdviceRow(**candidate._asdict(), measures=measures, price=price)


def _price_work(plan: Plan, run: _Run, balance: Cost) -> float:
    """Returns the work of an epoch, waiting included, for each unit that its sequences need without padding."""
    needed = costs_alone(balance, run.lengths.reshape(len(run.lengths), -1)[plan.numbers]).sum()
    return epoch_price(plan, balance) * run.world.world_size / float(needed)


def epoch_price(plan: Plan, cost: Cost) -> float:
    """Returns the cost of an epoch: the cost of the costliest rank of each step, summed over the steps."""
    prices = costs_of(cost, plan.row_counts, plan.padded_lengths)
    # Ranks of [3, 1] and [2, 4] in two steps: the epoch costs 3 + 4, because each step waits for its slowest rank.
    return float(prices[plan.grid].sum(axis=1).max(axis=1, initial=0.0).sum())

"""advise: measures the batches of this package and of trainers on the user's lengths."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.advice.answer import Advice, AdviceRow, saves, write_sentence
from lengthwise.advice.candidates import (
    Candidate,
    SizedCut,
    count_in_batch,
    first_budget,
    list_ours,
    list_shipped,
)
from lengthwise.advice.code import write_loop
from lengthwise.advice.step_cost import StepCost
from lengthwise.choices.batching import DEFAULT_PADDING, Batching
from lengthwise.choices.cost import Cost, costs_of
from lengthwise.choices.cut import Budget, Cut, DynamicSize, FixedSize
from lengthwise.choices.deal import World, check_world
from lengthwise.lengths import as_lengths
from lengthwise.measures.metrics import epochs_to_pool, measure_epochs
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
    world_size: int = 1,
    micro_batches: int = 1,
    seed: int = 0,
) -> Advice:
    """Recommends the batches to train with, and returns their savings and code.

    It recommends the default, `Batching(budget=...)`: random steps if these pad at most 10 %, and otherwise batches as
    random as 10 % padding allows. Its budget holds about as many sequences as your batches: batch size x mean length /
    (1 - padding), or the longest length if that is more. `advise` measures this default, and the batchings of trainers
    with your cut. If the default saves less than 5 %, the advice is to shuffle.

    Without a `cost`, a price is the computed frames for each frame of data, divided by the share of the time in which
    ranks do not wait. Of more than 262,144 sequences, a random sample is measured: 262,144 sequences, or more if 16
    steps need more.

    Args:
        lengths: [n] or [n, dims].
        cut: The cut that you train with now: a `FixedSize`, `Budget` or `DynamicSize`. The default keeps a `Budget` or
            a `DynamicSize`, and replaces a `FixedSize` by a budget.
        padding: The share of the computed frames that may be padding; 0.1 by default.
        cost: A `StepCost`, for prices in seconds; or any other cost, for prices in its unit.
        world_size: The ranks of the run.
        micro_batches: The batches of a rank in a step.
        seed: The seed of the measured plans and of the sample.

    Returns:
        The advice. Equal arguments give equal advice.

    Raises:
        TypeError: `cut` is not one of these three, or `cost` is not a cost.
        ValueError: A number is out of range, there is no sequence, or a sequence is over the budget.

    >>> import lengthwise as lw
    >>> print(lw.advise([7, 7, 7, 7], lw.FixedSize(2)))
    Random batches of 2 sequences compute 1.00 frames for each frame of data.
    You have nothing to gain: no batches cost clearly less. Shuffle.
    """
    array = as_lengths(lengths)
    if not isinstance(cut, FixedSize | Budget | DynamicSize):
        remedy = "Give the cut that you train with: lw.FixedSize(16), for example."
        raise checks.type_error("cut", "a FixedSize, a Budget or a DynamicSize", cut, remedy)
    if not len(array):
        raise checks.value_error("lengths", "of at least one sequence", 0, "Give the lengths of your data.")
    world, dims = check_world(world_size, micro_batches), array[0].size
    _check_cost(cost, dims=dims)
    # `padding=None` gives no warning if the default padding is out of reach.
    share = DEFAULT_PADDING if padding is None else padding
    default = Batching(cut=_choose_cut(array, cut, share), padding=padding)
    sizes = array.reshape(len(array), -1).sum(axis=1)
    sample = _draw_sample(array, max(_SAMPLE, _STEPS * world.slots * count_in_batch(cut, sizes)), seed)
    candidates = [
        *list_shipped(cut, sizes, world, dims=dims),
        *list_ours(default.cut, share, slots=world.slots),
    ]
    with warnings.catch_warnings():  # the user did not choose the paddings of the candidates
        warnings.filterwarnings("ignore", message="`padding` must be")
        rows = [_measure(candidate, array, sample, cost, world, seed) for candidate in candidates]
        resolved = Batching.from_json(make_plan(sample, default, seed=seed, **world._asdict()).batching)
    place = max(place for place, row in enumerate(rows) if row.batching == resolved)
    # `default` makes the same plans, and shorter code.
    rows[place] = replace(rows[place], batching=default)
    best = rows[place] if saves(rows[place], rows[0]) else rows[0]
    unit = "frames" if cost is None else "seconds" if isinstance(cost, StepCost) else "cost"
    return Advice(
        candidates=tuple(sorted(rows, key=lambda row: row.price)),
        best=best,
        random=rows[0],
        sentence=write_sentence(
            best, rows[0], padding=share, unit=unit, slots=world.slots, sampled=len(sample) / len(array)
        ),
        code=write_loop(best.batching, micro_batches=world.micro_batches),
        unit=unit,
        sequences=len(array),
        measured=len(sample),
        **world._asdict(),
    )


def _check_cost(cost: Any, *, dims: int) -> None:
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


def _draw_sample(lengths: NDArray[np.int64], most: int, seed: int) -> NDArray[np.int64]:
    if len(lengths) <= most:
        return lengths
    # The sample keeps the order of the data, in which neighbours may be similar.
    return lengths[np.sort(Key(seed=seed, stage="subset").permutation(len(lengths))[:most])]


def _measure(
    candidate: Candidate,
    lengths: NDArray[np.int64],
    sample: NDArray[np.int64],
    cost: Cost | StepCost | None,
    world: World,
    seed: int,
) -> AdviceRow:
    plans = [
        make_plan(sample, candidate.batching, seed=seed, epoch=epoch, **world._asdict())
        for epoch in range(epochs_to_pool(len(sample)))
    ]
    measures = measure_epochs(plans, sample)
    if cost is None:
        price = 1.0 / measures.fill / (1.0 - measures.straggler_waste)
    else:
        prices = [epoch_price(plan, cost.seconds if isinstance(cost, StepCost) else cost) for plan in plans]
        price = float(np.mean(prices)) * len(lengths) / len(sample)
    return AdviceRow(
        label=candidate.label,
        batching=candidate.batching,
        ships_in=candidate.ships_in,
        measures=measures,
        price=price,
    )


def epoch_price(plan: Plan, cost: Cost) -> float:
    """Returns the cost of an epoch: the cost of the costliest rank of each step, summed over the steps."""
    prices = costs_of(cost, plan.row_counts, plan.padded_lengths)
    # Ranks of [3, 1] and [2, 4] in two steps: the epoch costs 3 + 4, because each step waits for its slowest rank.
    return float(prices[plan.grid].sum(axis=1).max(axis=1, initial=0.0).sum())

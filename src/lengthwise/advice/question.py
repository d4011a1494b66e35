"""Question: what `advise` is asked, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.advice.answer import FURTHER, WITHIN
from lengthwise.advice.contenders import SizedCut, batch_size
from lengthwise.advice.step_cost import StepCost
from lengthwise.choices.cost import Cost, Padded
from lengthwise.choices.cut import Budget, DynamicSize, FixedSize
from lengthwise.choices.deal import World, check_world
from lengthwise.lengths import as_lengths

SAMPLE = 262_144  # sequences to measure at most, 10 million would take minutes; but as many as make `STEPS`
STEPS = 16  # of a sample that is a single step, sorted batches would look as mixed as random ones


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What to advise on.

    Attributes:
        lengths: [n] or [n, dims], all.
        sample: [m] or [m, dims], those that are measured.
        within: How much more than the least may be spent for mixing, as a share of the least.
        further: The same, where it buys a leap in mixing.
    """

    lengths: NDArray[np.int64]
    sample: NDArray[np.int64]
    cut: SizedCut
    cost: Cost | StepCost | None
    within: float
    further: float
    world: World
    seed: int

    @property
    def dims(self) -> int:
        return 1 if self.lengths.ndim == 1 else self.lengths.shape[1]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """[n], of all sequences, summed over the dimensions."""
        return _sum_dims(self.lengths)

    @property
    def unit(self) -> str:
        """What prices are in: "frames", "seconds", or "cost", the unit of another cost."""
        return "frames" if self.cost is None else "seconds" if isinstance(self.cost, StepCost) else "cost"

    @property
    def price(self) -> Cost:
        """What a batch costs in that unit."""
        return Padded() if self.cost is None else self.cost.seconds if isinstance(self.cost, StepCost) else self.cost

    @property
    def scale(self) -> float:
        """What turns the cost of an epoch of the sample into the price of a row."""
        if self.cost is not None:
            return len(self.lengths) / max(1, len(self.sample))
        # Each rank's share of the useful frames is the price 1.
        return self.world.world_size / max(1.0, float(self.sample.sum(dtype=np.float64)))


def _sum_dims(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """[n], the lengths summed over the dimensions."""
    return lengths if lengths.ndim == 1 else lengths.sum(axis=1)


def read_question(lengths: ArrayLike, cut: Any, *, world_size: int, micro_batches: int, **options: Any) -> Question:
    """Checks what `advise` was given, and draws the sample."""
    array = as_lengths(lengths)
    if not isinstance(cut, FixedSize | Budget | DynamicSize):
        remedy = "Give the one that you train with: lw.FixedSize(16), for example."
        raise checks.type_error("cut", "a FixedSize, a Budget or a DynamicSize", cut, remedy)
    world = check_world(world_size, micro_batches)
    seed = options["seed"]
    sample = array
    size = max(SAMPLE, STEPS * world.world_size * world.micro_batches * batch_size(cut, _sum_dims(array)))
    if len(array) > size:
        # In the order of the data, in which neighbours may be alike.
        chosen = np.sort(Key(seed=seed, stage="subset").permutation(len(array))[:size])
        sample = array[chosen]
    within = WITHIN
    if options["within"] is not None:
        within = checks.check_number("within", options["within"], remedy="Give a share of the least, such as 0.05.")
    return Question(
        lengths=array,
        sample=sample,
        cut=cut,
        cost=_check_cost(options["cost"], dims=1 if array.ndim == 1 else array.shape[1]),
        within=within,
        further=FURTHER if options["within"] is None else within,
        world=world,
        seed=seed,
    )


def _check_cost(cost: Any, *, dims: int) -> Any:
    if isinstance(cost, StepCost) and cost.padded_lengths.shape[1] != dims:
        rule = f"measured with {dims} length{'s' * (dims > 1)} a sequence, as `lengths` has"
        raise checks.value_error("cost", rule, cost.padded_lengths.shape[1], "Measure the step with these lengths.")
    if cost is None or isinstance(cost, StepCost):
        return cost
    if isinstance(cost, type) or not callable(cost):
        remedy = "Give a StepCost, a Quadratic, or a function from counts and padded lengths."
        raise checks.type_error("cost", "a cost", cost, remedy)
    return cost

"""Question: what `advise` is asked, checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.advice.contenders import SizedCut, batch_size
from lengthwise.advice.rule import FURTHER, WITHIN
from lengthwise.advice.step_cost import StepCost
from lengthwise.choices.cost import Cost, Padded
from lengthwise.choices.cut import Budget, DynamicSize, FixedSize
from lengthwise.choices.world import World, check_world
from lengthwise.lengths import as_lengths, fingerprint
from lengthwise.measures.length_share import LengthShare

SAMPLE = 262_144  # sequences to measure at most, 10 million would take minutes; but as many as make `STEPS`
STEPS = 16  # of a sample that is a single step, sorted batches would look as mixed as random ones
_WITHIN_WORK = 0.01  # of the least work: the share may grow, and so may what mixing is worth


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What to advise on.

    Attributes:
        lengths: [n] or [n, dims], all.
        sample: [m] or [m, dims], those that are measured; the share is of these.
        within: How much more than the least may be spent for mixing, as a share of the least.
        further: The same, where it buys a leap in mixing.
    """

    lengths: NDArray[np.int64]
    sample: NDArray[np.int64]
    cut: SizedCut
    cost: Cost | StepCost | None
    share: float | LengthShare | None
    noise_scale: float
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
    share, noise_scale = _check_share(options["share"], options["noise_scale"], array)
    world = check_world(world_size, micro_batches)
    seed = options["seed"]
    sample = array
    size = max(SAMPLE, STEPS * world.world_size * world.micro_batches * batch_size(cut, _sum_dims(array)))
    if len(array) > size:
        # In the order of the data, in which neighbours may be alike.
        chosen = np.sort(Key(seed=seed, stage="subset").permutation(len(array))[:size])
        sample = array[chosen]
        share = _share_of_sample(share, chosen, sample)
    within = _check_within(options["within"], share)
    return Question(
        lengths=array,
        sample=sample,
        cut=cut,
        cost=_check_cost(options["cost"], dims=1 if array.ndim == 1 else array.shape[1]),
        share=share,
        noise_scale=noise_scale,
        within=within,
        further=FURTHER if options["within"] is None and share is None else within,
        world=world,
        seed=seed,
    )


def _check_share(share: Any, noise_scale: Any, lengths: NDArray[np.int64]) -> tuple[float | LengthShare | None, float]:
    if isinstance(share, LengthShare):
        if noise_scale is not None:
            raise checks.value_error("noise_scale", "left out beside a LengthShare", noise_scale, "It knows its own.")
        if share.lengths_fingerprint != fingerprint(lengths):
            rule = f"of these lengths, of fingerprint {fingerprint(lengths)}"
            raise checks.value_error("share", rule, share.lengths_fingerprint, "Measure it for these lengths.")
        return share, share.noise_scale
    if share is None:
        if noise_scale is not None:
            raise checks.value_error(
                "noise_scale", "given with a share", noise_scale, "Give share=0.1 too, for example."
            )
        return None, np.inf
    remedy = "Give the share that lw.torch.length_share measures, such as 0.1."
    checked = checks.check_number("share", share, maximum=1.0, remedy=remedy)
    if noise_scale is None:
        return checked, np.inf
    remedy = "Give the sequences of a step from which on more of them gain little, or leave it out."
    return checked, checks.check_number("noise_scale", noise_scale, remedy=remedy)


def _share_of_sample(share: Any, chosen: NDArray[np.int64], sample: NDArray[np.int64]) -> Any:
    """The same share of fewer sequences: its noise is that of bins of lengths, which stay."""
    if not isinstance(share, LengthShare):
        return share
    own = {"bins": share.bins[chosen], "weights": share.weights[chosen], "lengths_fingerprint": fingerprint(sample)}
    return replace(share, **own)


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


def _check_within(within: Any, share: Any) -> float:
    if within is None:
        return WITHIN if share is None else _WITHIN_WORK
    return checks.check_number("within", within, remedy="Give a share of the least, such as 0.05.")

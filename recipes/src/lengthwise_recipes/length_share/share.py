"""LengthShare: how much of the noise of a gradient goes with length, and what that makes of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import Key, Plan, as_lengths, checks, fingerprint
from lengthwise_recipes.length_share.noise import LEAST_IN_BIN, Noise, bin_lengths, estimate, leave_out

LEAST_SAMPLE = 4 * LEAST_IN_BIN
_MOST_BINS = 16
_PARTS = 20  # of the sample: each is left out once, for the standard errors
_STEPS = 2_000  # random steps to compare with, at least
_ROUNDING = 1e-12  # of a gradient's square: a variance below it is that of equal gradients, rounded

_Counts = tuple[NDArray[np.int64], NDArray[np.float64]]  # [S, Q] sequences of each bin, [S] weights


class StepNoise(NamedTuple):
    """What the steps of a plan are worth beside random steps of as many sequences.

    Attributes:
        variance_ratio: The variance of a step's gradient, over that of random steps: 1 where the plan is as good as
            random, 16 where a step says no more than a random one of a sixteenth of its sequences.
        standard_error: Of `variance_ratio`, from the sample of gradients.
        effective_size: How many sequences a random step needs for the same variance.
        extra_steps: How many more steps the same progress takes than with random steps: 0.1 is a tenth more.
        needed_steps: How many steps of the plan get as far as one along the gradient of all sequences; what
            `extra_steps` compares. Infinite where the sample cannot tell that gradient from 0.
    """

    variance_ratio: float
    standard_error: float
    effective_size: float
    extra_steps: float
    needed_steps: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LengthShare:
    """How much of the variance of single gradients goes with length, at the weights where it was measured.

    `length_share` measures it on a model. Where the gradients come from elsewhere, `of` takes them.

    Let g be the gradient of one sequence, w its weight in the loss, G the gradient of all of them. The residual
    r = w (g - G) has a mean for every length. The share is the variance of these means over the whole variance:

        share = E|E[r | length]|^2 / E|r|^2

    0: a sorted step is as good as a random one, and mixing buys nothing. Where a step holds B sequences of one length,
    the variance of its gradient is 1 + (B - 1) share times that of a random step.

    Attributes:
        share: From 0 to 1; the estimate has no bias, so it may fall a little below 0.
        standard_error: Of the share.
        noise_scale: E|r|^2 / |G|^2, in sequences: steps of fewer gain from every sequence more, steps of many times as
            many gain nothing. Infinite where the sample cannot tell G from 0.
        sampled: How many gradients it was measured on.
        bins: [n], the bin of lengths that each sequence falls into: gradients of a bin count as of one length.
        weights: [n], of the sequences, 1 on average.
        lengths_fingerprint: Of the lengths that it was measured for.

    References:
        McCandlish et al. 2018, "An empirical model of large-batch training", appendix A: the noise scale, and the
        progress of a step, 1 / (1 + noise scale / B), for plain gradient descent at the best learning rate. The share
        is the intraclass correlation of survey sampling, and 1 + (B - 1) share its design effect (Kish 1965, "Survey
        sampling", 5.4). Deviation: gradients vary in both of them over bins of like length in place of single lengths.
    """

    share: float
    standard_error: float
    noise_scale: float
    sampled: int
    bins: NDArray[np.int64]
    weights: NDArray[np.float64]
    lengths_fingerprint: str
    _noise: Noise
    _others: tuple[Noise, ...]

    def __repr__(self) -> str:
        return (
            f"LengthShare({self.share:.1%} ± {self.standard_error:.1%}, noise scale {self.noise_scale:.3g} sequences, "
            f"measured on {self.sampled} of {len(self.bins)} sequences)"
        )

    @classmethod
    def of(
        cls, gradients: ArrayLike, sampled: ArrayLike, lengths: ArrayLike, *, weights: ArrayLike | None = None
    ) -> LengthShare:
        """Makes it of gradients that somebody else computed, for example by JAX.

        Args:
            gradients: [m, parameters], of the loss of single sequences at the same weights; finite. A random projection
                that keeps inner products does as well.
            sampled: [m], which sequences these are: each drawn at random, none twice, 32 at least.
            lengths: [n] or [n, dims], of all sequences.
            weights: [n], what each sequence counts for in the loss, as in `loss_scales`; 1 each where not given.

        Raises:
            ValueError: Shapes that do not go together, numbers that are not finite, no weight above 0, or all
                gradients alike.

        >>> import lengthwise as lw
        >>> lengths = np.repeat([10, 20], 50)
        >>> told = LengthShare.of(np.where(lengths == 10, -1.0, 1.0)[:, None], np.arange(100), lengths)
        >>> round(told.share, 6)  # the length tells the gradient
        1.0
        """
        array = as_lengths(lengths)
        numbers = _check_sampled(sampled, len(array))
        rows = _check_gradients(gradients, len(numbers))
        counts = scale_weights(weights, len(array))
        return cls._of_gram(rows @ rows.T, numbers, array, counts)

    @classmethod
    def _of_gram(
        cls,
        gram: NDArray[np.float64],
        sampled: NDArray[np.int64],
        lengths: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> LengthShare:
        bins, own = bin_lengths(lengths.reshape(len(lengths), -1), sampled, _MOST_BINS)
        members = np.bincount(bins)
        masses = members / len(bins)
        mean_weights = np.bincount(bins, weights) / members
        gram = gram * np.outer(weights[sampled], weights[sampled])

        def of(kept: Any) -> Noise:
            return estimate(gram[np.ix_(kept, kept)], own[kept], masses, weights[sampled[kept]], mean_weights)

        noise = of(np.arange(len(sampled)))
        variance = float(masses @ noise.alone)
        if not variance > _ROUNDING * float(np.diag(gram).mean()):
            remedy = "Measure at weights where the loss of some sequence can fall."
            raise checks.value_error("gradients", "different from each other", "the same", remedy)
        kept = leave_out(own, _PARTS, Key(stage="subset").permutation(len(sampled)))
        others = tuple(of(np.flatnonzero(each)) for each in kept)
        # Where one sequence alone has a gradient or a weight, nothing is left of the sample without it.
        if not all(float(masses @ each.alone) > _ROUNDING * variance for each in others):
            remedy = "Sample more sequences, with weights above 0 and a loss that can fall."
            raise checks.value_error("gradients", "above 0 for more of the sample", "0 for nearly all", remedy)
        return cls(
            share=_share(noise, masses),
            standard_error=_jackknife([_share(each, masses) for each in others]),
            noise_scale=variance / noise.signal if noise.signal > 0 else np.inf,
            sampled=len(sampled),
            bins=bins,
            weights=weights,
            lengths_fingerprint=fingerprint(lengths),
            _noise=noise,
            _others=others,
        )

    def measure(self, plans: Plan | Sequence[Plan]) -> StepNoise:
        """What the steps of a plan, or of the plans of several epochs, are worth where the share was measured.

        A step is all batches of all ranks that one update of the weights takes, and its gradient their weighted mean:
        plan with the `world_size` and `micro_batches` of the run. Sequences that are taken a second time do not count.

        Raises:
            ValueError: A plan of other lengths, of chunks, or without a step.
        """
        several = [plans] if isinstance(plans, Plan) else list(plans)
        if not several:
            raise checks.value_error("plans", "one plan or more", several, "Give a plan.")
        for plan in several:
            if not isinstance(plan, Plan):
                raise checks.type_error("plan", "a Plan", plan, "Make one, such as make_plan(lengths, batching).")
            self._check_lengths(plan)
        taken = [_members(plan) for plan in several]
        sizes = np.concatenate([np.bincount(steps) for _, steps in taken])
        own = _join([self._count(*each) for each in taken])
        chance = self._count_random(sizes)
        variance, of_chance = self._noise.of_steps(*own), self._noise.of_steps(*chance)
        ratio = variance / of_chance
        return StepNoise(
            variance_ratio=ratio,
            standard_error=_jackknife([each.of_steps(*own) / each.of_steps(*chance) for each in self._others]),
            effective_size=float(sizes[sizes > 0].mean()) / ratio if ratio > 0 else np.inf,
            # Where the sample cannot tell G from 0, all is noise: the steps needed grow as the variance itself.
            extra_steps=(max(self._noise.signal, 0) + variance) / (max(self._noise.signal, 0) + of_chance) - 1,
            needed_steps=1 + variance / self._noise.signal if self._noise.signal > 0 else np.inf,
        )

    def _check_lengths(self, plan: Plan) -> None:
        if plan.spans is not None:
            remedy = "Measure the share, and plan, without chunks."
            raise checks.value_error("plan", "of whole sequences", "chunks", remedy)
        if plan.times is not None:  # the gradient of all copies is not that of all sequences, which is measured
            remedy = "Measure the share, and plan, without times."
            raise checks.value_error("plan", "of each sequence once", "of copies", remedy)
        if plan.lengths_fingerprint != self.lengths_fingerprint:
            rule = f"for the lengths of the share, of fingerprint {self.lengths_fingerprint}"
            raise checks.value_error("plan", rule, plan.lengths_fingerprint, "Plan for the same lengths.")
        if not plan.steps:
            raise checks.value_error("plan", "of one step or more", plan, "Plan a whole epoch.")

    def _count(self, members: NDArray[np.int64], steps: NDArray[np.int64]) -> _Counts:
        """Sequences of each bin in each step, and the weight of each step; a step without weight is left out."""
        count, bins = int(steps.max()) + 1, int(self.bins.max()) + 1
        counts = np.bincount(steps * bins + self.bins[members], minlength=count * bins).reshape(count, bins)
        weights = np.bincount(steps, self.weights[members]).astype(np.float64)
        return counts[weights > 0], weights[weights > 0]

    def _count_random(self, sizes: NDArray[np.int64]) -> _Counts:
        """The same for random steps of the same sizes: drawn, because a weighted mean of few has no simple variance."""
        steps = np.repeat(np.arange(len(sizes)), sizes)
        drawn = []
        for epoch in range(max(1, _STEPS // len(sizes))):
            members = self._draw(len(steps), epoch)
            drawn.append(self._count(members, steps))
        return _join(drawn)

    def _draw(self, count: int, epoch: int) -> NDArray[np.int64]:
        """`count` sequences in random order, none again before all were drawn."""
        rounds = -(-count // len(self.bins))  # several, where the plans are of several epochs
        keys = [Key(epoch=epoch, stage="subset", lane=lane) for lane in range(rounds)]
        return np.concatenate([key.permutation(len(self.bins)) for key in keys])[:count]


def _join(parts: Sequence[_Counts]) -> _Counts:
    return np.concatenate([counts for counts, _ in parts]), np.concatenate([weights for _, weights in parts])


def _members(plan: Plan) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The sequences that the steps of a plan take, each once, and the step of each."""
    step_of_batch = np.full(len(plan.costs), -1)
    first = plan.first_taken
    step_of_batch[plan.grid[first]] = np.nonzero(first)[0]
    steps = step_of_batch[plan.batch_numbers]
    return plan.sequences[steps >= 0], steps[steps >= 0]


def _share(noise: Noise, masses: NDArray[np.float64]) -> float:
    return float(masses @ np.diag(noise.pairs)) / float(masses @ noise.alone)


def _jackknife(values: Sequence[float]) -> float:
    """The standard error of an estimate, from what it is without each part of its sample (Tukey 1958)."""
    spread = np.var(values) * (len(values) - 1)
    return float(np.sqrt(spread))


def _check_sampled(sampled: ArrayLike, count: int) -> NDArray[np.int64]:
    numbers = np.asarray(sampled)
    remedy = "Give the number of the sequence of each gradient."
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise checks.type_error("sampled", "a list of whole numbers", sampled, remedy)
    if len(numbers) < LEAST_SAMPLE:
        rule = f"at least {LEAST_SAMPLE} sequences"
        raise checks.value_error("sampled", rule, len(numbers), "Measure more gradients; 512 tell a share of 1 %.")
    if numbers.min() < 0 or numbers.max() >= count:
        wrong = int(numbers[(numbers < 0) | (numbers >= count)][0])
        raise checks.value_error("sampled", f"of sequence numbers from 0 to {count - 1}", wrong, remedy)
    if len(np.unique(numbers)) < len(numbers):
        values, times = np.unique(numbers, return_counts=True)
        twice = int(values[times > 1][0])
        raise checks.value_error("sampled", "different sequences", twice, "Give each sequence once.")
    return numbers.astype(np.int64)


def _check_gradients(gradients: ArrayLike, count: int) -> NDArray[np.float64]:
    rows = np.asarray(gradients, np.float64)
    if rows.ndim != 2 or len(rows) != count:
        rule = f"of shape [{count}, parameters]"
        raise checks.value_error("gradients", rule, rows.shape, "Give one row for each sequence of `sampled`.")
    good = np.isfinite(rows).all(axis=1)
    if not good.all():
        at = int(np.argmin(good))
        wrong = float(rows[at][~np.isfinite(rows[at])][0])
        raise checks.value_error("gradients", "finite", wrong, "Leave this sequence out.", at=f"row {at}")
    # By a power of two, which rounds nothing: squares of 1e200 and of 1e-200 would be infinite and 0.
    return np.ldexp(rows, -int(np.frexp(np.abs(rows).max(initial=0.0))[1]))


def scale_weights(weights: ArrayLike | None, count: int) -> NDArray[np.float64]:
    """The weights of all sequences, 1 on average."""
    if weights is None:
        return np.ones(count)
    checked = np.asarray(weights, np.float64)
    if checked.shape != (count,):
        raise checks.value_error("weights", f"of shape [{count}]", checked.shape, "Give one weight for each sequence.")
    good = np.isfinite(checked) & (checked >= 0)
    if not good.all():
        at = int(np.argmin(good))
        remedy = "Give 0 to leave a sequence out of the loss."
        raise checks.value_error("weights", "finite and at least 0", float(checked[at]), remedy, at=f"sequence {at}")
    if not checked.any():
        remedy = "Leave them out to count each sequence as 1."
        raise checks.value_error("weights", "above 0 for some sequence", 0.0, remedy)
    return checked / checked.mean()

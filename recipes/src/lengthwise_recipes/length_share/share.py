"""LengthShare: the part of the gradient noise that length explains, and its effect on a plan."""

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
_PARTS = 20  # of the sample; the standard errors leave out one part at a time
_STEPS = 2_000  # random steps to compare with, at least
_ROUNDING = 1e-12  # of a gradient's square: a smaller variance is rounding of equal gradients

_Counts = tuple[NDArray[np.int64], NDArray[np.float64]]  # [S, Q] sequences of each bin, [S] weights


class StepNoise(NamedTuple):
    """The gradient noise of the steps of a plan, compared with random steps of equally many sequences.

    Attributes:
        variance_ratio: The variance of a step's gradient, over that of random steps. At 1 the plan is as good as
            random; at 16 a step is worth a random step with a sixteenth of its sequences.
        standard_error: Of `variance_ratio`, from the sample of gradients.
        effective_size: Sequences that a random step needs for the same variance.
        extra_steps: The share of steps, beyond random ones, that the progress of one step along the gradient of all
            sequences takes: 0.1 is a tenth more.
    """

    variance_ratio: float
    standard_error: float
    effective_size: float
    extra_steps: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LengthShare:
    """The part of the variance of single gradients that length explains, at the weights where it was measured.

    `length_share` measures it on a model. If you compute the gradients yourself, give them to `of`.

    Let g be the gradient of one sequence, w its weight in the loss, G the gradient of all of them. The residual
    r = w (g - G) has a mean for every length. The share is the variance of these means over the total variance:

        share = E|E[r | length]|^2 / E|r|^2.

    At 0 a sorted step is as good as a random one, and mixing gains nothing. The gradient of a step of B sequences of
    one length has 1 + (B - 1) share times the variance of a random step.

    Attributes:
        share: From 0 to 1; the estimate has no bias, so it may fall a little below 0.
        standard_error: Of the share.
        noise_scale: E|r|^2 / |G|^2, in sequences. Steps of fewer sequences gain from each further one, steps of many
            more gain nothing. Infinite if the sample cannot distinguish G from 0.
        sampled: Number of measured gradients.
        bins: [n], the length bin of each sequence: the gradients of a bin count as gradients of one length.
        weights: [n], of the sequences, 1 on average.
        lengths_fingerprint: Of the lengths it was measured for.

    References:
        McCandlish et al. 2018, "An empirical model of large-batch training", appendix A: the noise scale. With plain
        gradient descent at the best learning rate, a step makes the progress 1 / (1 + noise scale / B). The share
        is the intraclass correlation of survey sampling, and 1 + (B - 1) share its design effect (Kish 1965, "Survey
        sampling", 5.4). Deviation: both use bins of similar length in place of single lengths.
    """

    share: float
    standard_error: float
    noise_scale: float
    sampled: int
    bins: NDArray[np.int64]
    weights: NDArray[np.float64]
    lengths_fingerprint: str
    _noise: Noise
    _partial_noises: tuple[Noise, ...]

    def __repr__(self) -> str:
        return (
            f"LengthShare({self.share:.1%} ± {self.standard_error:.1%}, noise scale {self.noise_scale:.3g} sequences, "
            f"measured on {self.sampled} of {len(self.bins)} sequences)"
        )

    @classmethod
    def of(
        cls, gradients: ArrayLike, sampled: ArrayLike, lengths: ArrayLike, *, weights: ArrayLike | None = None
    ) -> LengthShare:
        """Estimates the share from gradients that you computed, for example with JAX.

        Args:
            gradients: [m, parameters], of the loss of single sequences at the same weights; finite. A random projection
                that keeps inner products does as well.
            sampled: [m], the sequence number of each gradient: drawn at random, no number twice, at least 32.
            lengths: [n] or [n, dims], of all sequences.
            weights: [n], the weight of each sequence in the loss, as in `loss_scales`; 1 each by default.

        Raises:
            ValueError: Shapes that do not match, numbers that are not finite, no weight above 0, or all gradients
                equal.

        >>> import lengthwise as lw
        >>> lengths = np.repeat([10, 20], 50)
        >>> share = LengthShare.of(np.where(lengths == 10, -1.0, 1.0)[:, None], np.arange(100), lengths)
        >>> round(share.share, 6)  # the length determines the gradient
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
        bins, sampled_bins = bin_lengths(lengths.reshape(len(lengths), -1), sampled, _MOST_BINS)
        members = np.bincount(bins)
        masses = members / len(bins)
        mean_weights = np.bincount(bins, weights) / members
        gram = gram * np.outer(weights[sampled], weights[sampled])

        def estimate_rows(rows: Any) -> Noise:
            return estimate(gram[np.ix_(rows, rows)], sampled_bins[rows], masses, weights[sampled[rows]], mean_weights)

        noise = estimate_rows(np.arange(len(sampled)))
        variance = float(masses @ noise.alone)
        if not variance > _ROUNDING * float(np.diag(gram).mean()):
            remedy = "Measure at weights where the loss of some sequence can fall."
            raise checks.value_error("gradients", "different from each other", "the same", remedy)
        masks = leave_out(sampled_bins, _PARTS, Key(stage="subset").permutation(len(sampled)))
        partial_noises = tuple(estimate_rows(np.flatnonzero(mask)) for mask in masks)
        # If only one sequence has a gradient or a weight, the sample without it has no variance.
        if not all(float(masses @ partial.alone) > _ROUNDING * variance for partial in partial_noises):
            remedy = "Sample more sequences, with weights above 0 and a loss that can fall."
            raise checks.value_error("gradients", "above 0 for more of the sample", "0 for nearly all", remedy)
        return cls(
            share=_share(noise, masses),
            standard_error=_jackknife([_share(partial, masses) for partial in partial_noises]),
            noise_scale=variance / noise.signal if noise.signal > 0 else np.inf,
            sampled=len(sampled),
            bins=bins,
            weights=weights,
            lengths_fingerprint=fingerprint(lengths),
            _noise=noise,
            _partial_noises=partial_noises,
        )

    def measure(self, plans: Plan | Sequence[Plan]) -> StepNoise:
        """Returns the gradient noise of the steps of a plan, or of the plans of several epochs.

        A step is all batches of all ranks for one update of the weights; its gradient is their weighted mean. So plan
        with the `world_size` and `micro_batches` of the run. A sequence counts only the first time it occurs.

        Raises:
            ValueError: The plan is of other lengths, has chunks or `times`, or has no step.
        """
        several = [plans] if isinstance(plans, Plan) else list(plans)
        if not several:
            raise checks.value_error("plans", "one plan or more", several, "Give a plan.")
        for plan in several:
            if not isinstance(plan, Plan):
                raise checks.type_error("plan", "a Plan", plan, "Make one, such as make_plan(lengths, batching).")
            self._check_lengths(plan)
        return self._compare([_members(plan) for plan in several])

    def measure_steps(self, steps: Sequence[ArrayLike]) -> StepNoise:
        """Returns the gradient noise of steps, each given by the numbers of its sequences, as from another sampler."""
        members = [np.asarray(step, np.int64) for step in steps]
        return self._compare([(np.concatenate(members), np.repeat(np.arange(len(members)), [*map(len, members)]))])

    def _compare(self, members: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> StepNoise:
        sizes = np.concatenate([np.bincount(steps) for _, steps in members])
        plan_counts = _join([self._count(*pair) for pair in members])
        random_counts = self._count_random(sizes)
        variance, random_variance = self._noise.of_steps(*plan_counts), self._noise.of_steps(*random_counts)
        ratio = variance / random_variance
        noises = self._partial_noises
        ratios = [noise.of_steps(*plan_counts) / noise.of_steps(*random_counts) for noise in noises]
        return StepNoise(
            variance_ratio=ratio,
            standard_error=_jackknife(ratios),
            effective_size=float(sizes[sizes > 0].mean()) / ratio if ratio > 0 else np.inf,
            # If the sample cannot distinguish G from 0, all is noise: the steps grow as the variance.
            extra_steps=(max(self._noise.signal, 0) + variance) / (max(self._noise.signal, 0) + random_variance) - 1,
        )

    def _check_lengths(self, plan: Plan) -> None:
        if plan.spans is not None:
            remedy = "Measure the share, and plan, without chunks."
            raise checks.value_error("plan", "of whole sequences", "chunks", remedy)
        if plan.times is not None:  # the mean gradient of the copies is not the measured one, of the sequences
            remedy = "Measure the share, and plan, without times."
            raise checks.value_error("plan", "of each sequence once", "of copies", remedy)
        if plan.lengths_fingerprint != self.lengths_fingerprint:
            rule = f"for the lengths of the share, of fingerprint {self.lengths_fingerprint}"
            raise checks.value_error("plan", rule, plan.lengths_fingerprint, "Plan for the same lengths.")
        if not plan.steps:
            raise checks.value_error("plan", "of one step or more", plan, "Plan a whole epoch.")

    def _count(self, members: NDArray[np.int64], steps: NDArray[np.int64]) -> _Counts:
        """Counts the sequences of each bin in each step, and sums their weights; leaves out steps without weight."""
        count, bins = int(steps.max()) + 1, int(self.bins.max()) + 1
        counts = np.bincount(steps * bins + self.bins[members], minlength=count * bins).reshape(count, bins)
        weights = np.bincount(steps, self.weights[members]).astype(np.float64)
        return counts[weights > 0], weights[weights > 0]

    def _count_random(self, sizes: NDArray[np.int64]) -> _Counts:
        """Counts drawn random steps of these sizes: the variance of a weighted mean of few sequences has no formula."""
        steps = np.repeat(np.arange(len(sizes)), sizes)
        counts = []
        for epoch in range(max(1, _STEPS // len(sizes))):
            members = self._draw(len(steps), epoch)
            counts.append(self._count(members, steps))
        return _join(counts)

    def _draw(self, count: int, epoch: int) -> NDArray[np.int64]:
        """Returns `count` sequences in random order, no sequence twice before all occurred once."""
        rounds = -(-count // len(self.bins))  # several if there are plans of several epochs
        keys = [Key(epoch=epoch, stage="subset", lane=lane) for lane in range(rounds)]
        return np.concatenate([key.permutation(len(self.bins)) for key in keys])[:count]


def _join(parts: Sequence[_Counts]) -> _Counts:
    return np.concatenate([counts for counts, _ in parts]), np.concatenate([weights for _, weights in parts])


def _members(plan: Plan) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the sequences of the steps of a plan, each once, and the step of each."""
    step_of_batch = np.full(len(plan.costs), -1)
    first = plan.first_taken
    step_of_batch[plan.grid[first]] = np.nonzero(first)[0]
    steps = step_of_batch[plan.batch_numbers]
    return plan.sequences[steps >= 0], steps[steps >= 0]


def _share(noise: Noise, masses: NDArray[np.float64]) -> float:
    return float(masses @ np.diag(noise.pairs)) / float(masses @ noise.alone)


def _jackknife(values: Sequence[float]) -> float:
    """Returns the standard error of an estimate, from its values without each part of the sample (Tukey 1958)."""
    spread = np.var(values) * (len(values) - 1)
    return float(np.sqrt(spread))


def _check_sampled(sampled: ArrayLike, count: int) -> NDArray[np.int64]:
    numbers = np.asarray(sampled)
    remedy = "Give the number of the sequence of each gradient."
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise checks.type_error("sampled", "a list of whole numbers", sampled, remedy)
    if len(numbers) < LEAST_SAMPLE:
        rule = f"at least {LEAST_SAMPLE} sequences"
        raise checks.value_error("sampled", rule, len(numbers), "Measure more gradients: 512 show a share of 1 %.")
    if numbers.min() < 0 or numbers.max() >= count:
        wrong = int(numbers[(numbers < 0) | (numbers >= count)][0])
        raise checks.value_error("sampled", f"of sequence numbers from 0 to {count - 1}", wrong, remedy)
    if len(np.unique(numbers)) < len(numbers):
        values, times = np.unique(numbers, return_counts=True)
        twice = int(values[times > 1][0])
        raise checks.value_error("sampled", "different sequences", f"{twice} twice", "Give each sequence once.")
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
    # Scaled by a power of two, without rounding: squares of 1e200 and 1e-200 would be infinite and 0.
    return np.ldexp(rows, -int(np.frexp(np.abs(rows).max(initial=0.0))[1]))


def scale_weights(weights: ArrayLike | None, count: int) -> NDArray[np.float64]:
    """Checks the weights of all sequences and scales them to a mean of 1."""
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

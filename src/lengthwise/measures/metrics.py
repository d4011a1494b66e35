"""What a plan is worth: padding, mixing, waiting and accounting. Reads plans, makes none.

lengths   [n] or [n, dims]   as the plan was made for; several dimensions count by their sum
X, T                         the length of a sequence, and the length its batch is padded to
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.lengths import as_lengths, fingerprint
from lengthwise.planning.plan import Plan

_MOST_BINS = 4096  # on each axis: their histogram takes 128 MiB


@dataclass(frozen=True, kw_only=True, slots=True)
class Measures:
    """The measures of one plan; shares are 0..1, lengths in the unit of the lengths.

    Attributes:
        sequences: Sequences (or chunks) that were to be planned.
        batches: Batches, each counted once.
        steps: Optimiser steps.
        zero_padding_rate: ZPR, Ge et al. 2021, equation 1: the plain mean over batches of 1 - mean length / padded
            length.
        weighted_zero_padding_rate: The same, batches weighted by their size (section 4, for dynamic batch sizes).
        padding_share: Padded frames that are padding, over all padded frames. What the hardware pays.
        average_batch_length: ABL, the plain mean over batches of the padded length.
        weighted_average_batch_length: The same, batches weighted by their size.
        smallest_batch, mean_batch, largest_batch: Sequences in a batch.
        largest_cost: What the costliest batch costs.
        mixing: exp(-I(X; T)) for batches: 1 where a batch tells nothing of the lengths in it, near 0 where all.
        step_mixing: The same for steps, T being the mean padded length over the sequences of the step.
        mixing_bins: The equal-mass bins that both were estimated with: never below about 1 / bins.
        step_length_correlation: Of the mean lengths of successive steps (lag 1); 0 where there are under three.
        straggler_waste: The share of rank time spent waiting for the costliest rank of each step.
        dropped, repeated: Sequences in no batch; sequences that stand twice (`loss_scales` gives the second time 0).
        over_limit: Batches that cost more than the cut's limit.
    """

    sequences: int
    batches: int
    steps: int
    zero_padding_rate: float
    weighted_zero_padding_rate: float
    padding_share: float
    average_batch_length: float
    weighted_average_batch_length: float
    smallest_batch: int
    mean_batch: float
    largest_batch: int
    largest_cost: float
    mixing: float
    step_mixing: float
    mixing_bins: int
    step_length_correlation: float
    straggler_waste: float
    dropped: int
    repeated: int
    over_limit: int

    def as_dict(self) -> dict[str, Any]:
        """The measures by name, JSON-ready."""
        return asdict(self)


@checks.show_call("measure(plan, lengths)")
def measure(plan: Plan, lengths: ArrayLike) -> Measures:
    """Measures a plan.

    Args:
        lengths: What the plan was made for.

    Raises:
        ValueError: `lengths` are not those of the plan.

    References:
        Ge et al. 2021, equation 1 and section 4. Mixing: the data-processing inequality; see `mixing_limit`.
    """
    _check_plan("plan", plan)
    items = _items(plan, lengths)
    sizes, padded = plan.batch_sizes, plan.padded_lengths.sum(axis=1).astype(np.float64)
    used = np.add.reduceat(items[plan.sequences], plan.offsets[:-1]) if len(sizes) else np.empty(0)
    rates = 1.0 - used / (sizes * padded)
    return Measures(
        sequences=plan.count,
        batches=len(sizes),
        steps=plan.steps,
        zero_padding_rate=_mean(rates),
        weighted_zero_padding_rate=_mean(rates, sizes),
        padding_share=1.0 - float(used.sum() / (sizes @ padded)) if len(sizes) else 0.0,
        average_batch_length=_mean(padded),
        weighted_average_batch_length=_mean(padded, sizes),
        smallest_batch=int(sizes.min(initial=np.iinfo(np.int64).max)) if len(sizes) else 0,
        mean_batch=_mean(sizes),
        largest_batch=int(sizes.max(initial=0)),
        largest_cost=float(plan.costs.max(initial=0.0)),
        mixing=mixing(plan, lengths),
        step_mixing=step_mixing(plan, lengths),
        mixing_bins=mixing_bins(len(plan.sequences)),
        step_length_correlation=_lag_one(_step_means(plan, used, sizes)),
        straggler_waste=straggler_waste(plan),
        dropped=len(plan.dropped()),
        repeated=len(plan.repeated()),
        over_limit=len(plan.over_limit()),
    )


@checks.show_call("mixing(plan, lengths)")
def mixing(plans: Plan | Sequence[Plan], lengths: ArrayLike, *, bins: int | None = None) -> float:
    """exp(-I(X; T)): how little the padded length of a batch tells of the lengths in it, from 0 to 1.

    Estimated on the joint histogram of the two in equal-mass bins, with the Miller-Madow correction for its bias.
    Several plans (epochs) of the same lengths are pooled, which allows finer bins.

    Args:
        plans: One plan or several.
        bins: Bins on each axis; from 2 to 128 by the number of sequences where not given. Mixing below about 1 / bins
            cannot be told from 0.
    """
    plans = _several(plans)
    sizes = [_items(plan, lengths)[plan.sequences] for plan in plans]
    padded = [np.repeat(plan.padded_lengths.sum(axis=1), plan.batch_sizes) for plan in plans]
    return _mixing(np.concatenate(sizes), np.concatenate(padded), bins)


@checks.show_call("step_mixing(plan, lengths)")
def step_mixing(plans: Plan | Sequence[Plan], lengths: ArrayLike, *, bins: int | None = None) -> float:
    """`mixing` of whole optimiser steps: T is the mean padded length over the sequences of the step.

    Where a step is one batch this is `mixing`.
    """
    plans = _several(plans)
    sizes, padded = [], []
    for plan in plans:
        items = _items(plan, lengths)[plan.sequences]
        batch_sizes = plan.batch_sizes
        means = _step_means(plan, plan.padded_lengths.sum(axis=1) * batch_sizes, batch_sizes)
        step_of = np.zeros(len(batch_sizes), np.int64)
        # A batch that is repeated belongs to the step that takes it first.
        flat = plan.grid.reshape(-1, plan.micro_batches * plan.world_size)
        step_of[flat[::-1]] = np.arange(plan.steps)[::-1, None]
        sizes.append(items)
        padded.append(np.repeat(means[step_of] if len(means) else means, batch_sizes))
    return _mixing(np.concatenate(sizes), np.concatenate(padded), bins)


def straggler_waste(plan: Plan) -> float:
    """The share of rank time spent waiting: 1 - mean over ranks / costliest rank, over all steps."""
    _check_plan("plan", plan)
    largest = plan.costs.max(initial=0.0)
    if not largest:  # no steps, or batches that cost nothing: nobody waits
        return 0.0
    # In units of about the largest cost, a power of two, so that no sum overflows and no quotient is rounded.
    ranks = np.ldexp(plan.costs, -np.frexp(largest)[1])[plan.grid].sum(axis=1)
    return 1.0 - float(ranks.mean(axis=1).sum() / ranks.max(axis=1).sum())


def _several(plans: Plan | Sequence[Plan]) -> list[Plan]:
    several: list[Any] = list(plans) if isinstance(plans, Iterable) else [plans]
    if not several:
        raise checks.value_error("plans", "one plan or more", several, "Give at least one plan.")
    for plan in several:
        _check_plan("plans", plan)
    return several


def _check_plan(name: str, plan: object) -> None:
    if not isinstance(plan, Plan):
        raise checks.type_error(name, "a Plan", plan, "Make one: make_plan(lengths, batching), say.")


def _items(plan: Plan, lengths: ArrayLike) -> NDArray[np.int64]:
    """The size of each item the plan numbers: [plan.count]."""
    array = as_lengths(lengths)
    if fingerprint(array) != plan.lengths_fingerprint:
        rule = f"those of the plan, of fingerprint {plan.lengths_fingerprint}"
        raise checks.value_error("lengths", rule, fingerprint(array), "Plan again for these lengths.")
    if plan.spans is not None:
        return plan.spans[:, 2] - plan.spans[:, 1]
    return array if array.ndim == 1 else array.sum(axis=1)


def mixing_bins(count: int) -> int:
    """How many bins of mixing `count` sequences fill, from 2 to 128.

    As many as keep the bias of the plain estimate, (bins - 1)^2 / 2n nats, under a twentieth.
    """
    return int(np.clip(1 + np.sqrt(count / 10), 2, 128))


def _mixing(sizes: NDArray[np.int64], padded: NDArray[np.float64], bins: int | None) -> float:
    count = len(sizes)
    remedy = "Give the number of equal-mass bins, 64 say."
    if bins is None:
        bins = mixing_bins(count)
    bins = checks.check_whole("bins", bins, minimum=1, maximum=_MOST_BINS, remedy=remedy)
    if not count:
        return 1.0
    joint = np.zeros((bins, bins))
    np.add.at(joint, (_equal_mass(sizes, bins), _equal_mass(padded, bins)), 1.0)
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    seen = joint > 0
    information = np.sum(joint[seen] * np.log(joint[seen] * count / np.outer(rows, columns)[seen])) / count
    bias = (seen.sum() - (rows > 0).sum() - (columns > 0).sum() + 1) / (2 * count)
    return float(np.exp(-max(0.0, information - bias)))


def _equal_mass(values: NDArray[Any], bins: int) -> NDArray[np.int64]:
    """The bin of each value, by its rank; equal values share a bin.

    >>> _equal_mass(np.array([5, 1, 5, 9]), 2)
    array([1, 0, 1, 1])
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    return (middle * bins / len(values)).astype(np.int64).clip(0, bins - 1)[inverse.reshape(-1)]


def _step_means(plan: Plan, totals: NDArray[Any], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Per step, what `totals` [batches] come to for each sequence: [steps]."""
    flat = plan.grid.reshape(-1, plan.micro_batches * plan.world_size)
    return totals[flat].sum(axis=1) / sizes[flat].sum(axis=1)


def _lag_one(series: NDArray[np.float64]) -> float:
    if len(series) < 3:
        return 0.0
    early, late = series[:-1] - series[:-1].mean(), series[1:] - series[1:].mean()
    norm = float(np.sqrt((early @ early) * (late @ late)))
    return float(early @ late) / norm if norm else 0.0


def _mean(values: NDArray[Any], weights: NDArray[Any] | None = None) -> float:
    return float(np.average(values, weights=weights)) if len(values) else 0.0

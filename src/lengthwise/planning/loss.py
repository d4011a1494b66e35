"""Loss scales: factors for the losses of batches. With them a step has the gradient of its mean loss.

    scales   [steps, micro_batches, ranks]   one for every place of the plan's grid
    weights  [n]                             weight of each sequence in the loss: 1, its tokens, its supervised tokens

Every rank knows the scales before the step, without communication: the plan holds the whole step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.planning.plan import Plan

REDUCTIONS = ("mean", "sum")
_REMEDY = "Give one weight for each sequence, or for each chunk of a plan of chunks."


def loss_scales(
    plan: Plan,
    weights: ArrayLike | None = None,
    *,
    reduction: str = "mean",
    ranks_averaged: bool = True,
    micro_batches_averaged: bool = False,
) -> NDArray[np.float64]:
    """Returns a factor for the loss of each batch, so that a step has the gradient of its weighted mean loss.

    W_b is the sum of the weights of batch b, and W that of its step. The factor is

        W_b / W   for a loss that is the weighted mean of the batch
        1 / W     for a loss that is the weighted sum

    times the number of ranks if gradients are averaged over ranks (DDP, FSDP), and times the micro-batches of a step
    if the trainer divides by them. A batch that is taken a second time, to keep the ranks in step, is scaled by 0.

    Two things go wrong in use. The trainer divides the loss by its accumulation steps, and `micro_batches_averaged` is
    left False: gradients are too small. Or all weights of a batch are 0: its mean is 0/0, and NaN under any factor.
    Then use `reduction="sum"`.

    Args:
        plan: The plan that is trained on.
        weights: [n], at least 0. 1 each (the default) for a mean over sequences, the lengths for a mean over tokens,
            or the supervised tokens of each sequence. For a plan of chunks, one for each chunk of `plan.spans`.
        reduction: The loss of a batch: its weighted "mean" or its weighted "sum".
        ranks_averaged: True if gradients are averaged over the ranks, False if they are summed.
        micro_batches_averaged: True if the trainer divides each loss by the number of micro-batches in a step.

    Returns:
        [steps, micro_batches, ranks] float64. All are 0 in a step whose sequences weigh nothing: its gradient is 0.

    Raises:
        ValueError: `weights` are not [n], negative, not finite, or 0 for all sequences that the epoch takes.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder())
    >>> plan = lw.make_plan([3, 4, 5], batching, world_size=2)
    >>> [batch.tolist() for rank in (0, 1) for batch in plan.batches(rank)]
    [[1, 2], [0]]
    >>> loss_scales(plan)  # means over 2 and 1 of 3 sequences, averaged over 2 ranks
    array([[[1.33333333, 0.66666667]]])
    """
    sums = batch_weights(plan, weights)
    return scale_losses(plan, sums, reduction, ranks_averaged, micro_batches_averaged)


def scale_losses(
    plan: Plan, sums: NDArray[np.float64], reduction: str, ranks_averaged: bool, micro_batches_averaged: bool
) -> NDArray[np.float64]:
    """Returns `loss_scales` by the `sums` of weights of batches, which may all be 0: [steps, micro_batches, ranks]."""
    checks.check_choice("reduction", reduction, REDUCTIONS)
    checks.check_flag("ranks_averaged", ranks_averaged)
    checks.check_flag("micro_batches_averaged", micro_batches_averaged)
    totals = sums.sum(axis=(1, 2), keepdims=True)  # W of each step
    # A sum is scaled by 1 / W, whatever the batch weighs. A batch that is taken a second time is scaled by 0.
    shares = sums if reduction == "mean" else plan.first_taken.astype(np.float64)
    scales = np.divide(shares, totals, out=np.zeros_like(shares), where=totals > 0)
    # The trainer divides by the ranks and the micro-batches afterwards: multiplied here, the two cancel out.
    scales *= plan.world_size if ranks_averaged else 1
    return scales * (plan.micro_batches if micro_batches_averaged else 1)


def batch_weights(plan: Plan, weights: ArrayLike | None) -> NDArray[np.float64]:
    """Sums the weights of each batch, 0 where it is taken again: [steps, micro_batches, ranks]."""
    checked = check_weights(weights, plan.population, _REMEDY)
    check_some_weight(checked)
    sums = sum_by_batch(plan, checked)
    # The rest of an epoch may weigh nothing. A whole epoch that weighs nothing is a mistake.
    if plan.delivered is None and sums.size and not sums.any():
        remedy = "The plan leaves out all sequences that weigh something: check `times` and `plan.dropped()`."
        raise checks.value_error("weights", "above 0 for some sequence of the plan", 0.0, remedy)
    return sums


def sum_by_batch(plan: Plan, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums checked weights, which may all be 0, as `batch_weights` does."""
    with np.errstate(over="ignore"):
        sums = np.bincount(plan.batch_numbers, weights[plan.numbers], minlength=len(plan.costs))
    _check_sum(np.asarray(sums, np.float64))  # every copy of a sequence counts
    return np.where(plan.first_taken, sums[plan.grid], 0.0)


def check_some_weight(weights: NDArray[np.generic]) -> None:
    """Refuses weights that are all 0: every scale would be 0."""
    if len(weights) and not weights.any():
        remedy = "Leave them out to count each sequence as 1."
        raise checks.value_error("weights", "above 0 for some sequence", 0.0, remedy)


def check_weights(
    weights: ArrayLike | None, count: int, remedy: str, *, name: Callable[[int], str] = "sequence {}".format
) -> NDArray[np.float64]:
    """Checks the weights of `count` sequences, finite and at least 0: [count]; 1 each by default.

    `name` names the sequence at a place of `weights` for an error.
    """
    if weights is None:
        return np.ones(count)
    checks.refuse_masked("weights", weights)
    checked = np.asarray(weights, np.float64)
    if checked.shape != (count,):
        raise checks.value_error("weights", f"of shape [{count}]", checked.shape, remedy)
    good = np.isfinite(checked) & (checked >= 0)
    if not good.all():
        at = int(np.argmin(good))
        remedy = "Give 0 to leave a sequence out of the loss."
        raise checks.value_error("weights", "finite and at least 0", float(checked[at]), remedy, at=name(at))
    _check_sum(checked)
    return checked


def _check_sum(weights: NDArray[np.float64]) -> None:
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not np.isfinite(total):
        raise checks.value_error("weights", "of a finite sum", total, "Give smaller weights: only ratios count.")

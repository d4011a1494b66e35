"""Mixing: how little the padded length of a batch, or of a step, tells about the lengths in it.

X, T   the length of a sequence, and the length its batch is padded to
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _kernels, checks
from lengthwise.measures.epochs import Batches, Epochs, read_epochs
from lengthwise.planning.joint import bin_equally, mixing_bins, mixing_of_counts
from lengthwise.planning.plan import Plan

_MOST_BINS = 4096  # on each axis: their histogram takes 128 MiB


@checks.show_call("mixing(plan, lengths)")
def mixing(
    plans: Plan | Batches | Sequence[Plan] | Sequence[Batches], lengths: ArrayLike, *, bins: int | None = None
) -> float:
    """exp(-I(X; T)): how little the padded length of a batch tells about the lengths in it, from 0 to 1.

    Estimated on the joint histogram of the two in equal-mass bins. Several plans (epochs) of the same lengths are
    pooled, which allows finer bins. Two errors remain, and neither is chance alone:

    - Bins hide what is finer than they are, so the estimate is too high: by 1 to 2 / bins on laws whose mixing is known
      (0.01 to 0.8). Mixing below about 1 / bins cannot be told from 0.
    - Few sequences leave bins empty, so the estimate is too low. With 10 bins^2 sequences or more the first-order
      correction of Miller and Madow leaves under 1 %. With fewer the estimate is Grassberger's, which was within 1 %
      with 2.5 bins^2 sequences, and up to 13 % too low with 0.6 bins^2 (the same laws, and random batches of 16).

    In small batches mixing falls further with finer bins: a batch of 16 tells one of its 16 lengths exactly.

    Args:
        plans: One plan or several, or the batches of any sampler, as `measure` takes them.
        lengths: [n] or [n, dims], those that the plans were made for.
        bins: Bins on each axis, up to 4,096; by default 2 to 128, by the number of sequences.

    >>> mixing([[0, 1], [2, 3]] * 50, [10, 10, 20, 20], bins=2) < 0.51  # a batch tells which half its lengths are of
    True

    References:
        Miller 1955, "Note on the bias of information estimates". Grassberger 2003, "Entropy estimates from
        insufficient samplings", equation 30, for each of the entropies in I = H(X) + H(T) - H(X, T).
    """
    epochs = read_epochs(plans, lengths)
    return mixings(epochs, [batch_lengths(plan) for plan in epochs.plans], bins)


@checks.show_call("step_mixing(plan, lengths)")
def step_mixing(
    plans: Plan | Batches | Sequence[Plan] | Sequence[Batches],
    lengths: ArrayLike,
    *,
    bins: int | None = None,
    world_size: int | None = None,
    micro_batches: int | None = None,
) -> float:
    """`mixing` of whole optimiser steps: T is the mean padded length over the sequences of the step.

    Where a step is one batch this is `mixing`.

    Args:
        plans: As in `measure`.
        lengths: As in `mixing`.
        bins: As in `mixing`.
        world_size: As in `measure`.
        micro_batches: As in `measure`.
    """
    epochs = read_epochs(plans, lengths, world_size=world_size, micro_batches=micro_batches)
    return mixings(epochs, [step_lengths(plan) for plan in epochs.plans], bins)


def mixings(
    epochs: Epochs, padded: Sequence[NDArray[Any]], bins: int | None, rows: NDArray[np.uint16] | None = None
) -> float:
    """exp(-I(X; T)), with T of each batch in `padded`: one array [batches] for each plan.

    `rows` are `bins_of_items`, where they are known already.
    """
    counts = [plan.batch_sizes for plan in epochs.plans]
    count = sum(len(plan.sequences) for plan in epochs.plans)
    bins = check_bins(bins, count)
    if not count:
        return 1.0
    rows = bins_of_items(epochs, bins) if rows is None else rows
    sizes = join(counts)
    columns = bin_equally(join(padded), sizes, bins)
    joint = np.zeros((bins, bins), np.int64)
    _kernels.count_cells(rows, columns, np.concatenate([[0], np.cumsum(sizes)]), joint)
    return mixing_of_counts(joint.astype(np.float64), count)


def check_bins(bins: int | None, count: int) -> int:
    """The number of bins asked for, or as many as `count` sequences fill."""
    remedy = "Give the number of equal-mass bins, such as 64."
    bins = mixing_bins(count) if bins is None else bins
    return checks.check_whole("bins", bins, minimum=1, maximum=_MOST_BINS, remedy=remedy)


def fine_bins(count: int) -> int:
    """How many bins `count` sequences fill well enough to compare plans, from 2 to 1,024: about sqrt(count / 2.5)."""
    return int(np.clip(np.sqrt(count / 2.5), 2, 1024))


def batch_lengths(plan: Plan) -> NDArray[np.int64]:
    """What each batch is padded to, summed over the dimensions: [batches]."""
    return plan.padded_lengths.sum(axis=1)


def step_lengths(plan: Plan) -> NDArray[np.float64]:
    """The mean padded length over the sequences of the step that takes each batch first: [batches]."""
    sizes = plan.batch_sizes
    means = step_means(plan, batch_lengths(plan) * sizes)
    flat = plan.grid.reshape(-1, plan.micro_batches * plan.world_size)
    # Of each batch the first place in the grid: written from the last place to the first, so that the first one stays.
    first = np.zeros(len(plan.costs), np.int64)
    first[flat.reshape(-1)[::-1]] = np.arange(flat.size)[::-1]
    # Steps of 4 places: a batch that stands first at place 9 of the grid is of step 2.
    return means[first // flat.shape[1]]


def step_means(plan: Plan, totals: NDArray[Any]) -> NDArray[np.float64]:
    """The sum of `totals` [batches] over each step, divided by its sequences: [steps]."""
    flat = plan.grid.reshape(-1, plan.micro_batches * plan.world_size)
    return totals[flat].sum(axis=1) / plan.batch_sizes[flat].sum(axis=1)


def bins_of_items(epochs: Epochs, bins: int) -> NDArray[np.uint16]:
    """The equal-mass bin of each item that is taken, plan after plan."""
    return bin_equally(join(epochs.taken), None, bins)


def join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All parts in one array; one alone as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)

"""Mixing: how little the padded length of a batch, or of a step, tells about the lengths in it.

X, T   the length of a sequence, and the length its batch is padded to
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _kernels, checks
from lengthwise.measures.epochs import Batches, Epochs, join, read_epochs
from lengthwise.planning.joint import bin_equally, mixing_bins, mixing_of_counts
from lengthwise.planning.plan import Plan

_MOST_BINS = 4096  # on each axis: their histogram takes 128 MiB


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

    >>> batches = [[0, 1], [2, 3]] * 50  # each tells which half its lengths are of
    >>> mixing(batches, [10, 10, 20, 20], bins=2) < 0.51
    True

    References:
        Miller 1955, "Note on the bias of information estimates". Grassberger 2003, "Entropy estimates from
        insufficient samplings", equation 30, for each of the entropies in I = H(X) + H(T) - H(X, T).
    """
    epochs = read_epochs(plans, lengths)
    bins = check_bins(bins, epochs.places)
    return mixing_of_bins(epochs, bin_items(epochs, bins), bin_batches(epochs, bins), bins)


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
    bins = check_bins(bins, epochs.places)
    return mixing_of_bins(epochs, bin_items(epochs, bins), bin_steps(epochs, bins), bins)


def mixing_of_bins(epochs: Epochs, rows: NDArray[np.int64], columns: NDArray[np.int64], bins: int) -> float:
    """exp(-I(X; T)) from the bin of X of each item, `rows` [m], and that of T of each batch, `columns` [batches]."""
    if not epochs.places:
        return 1.0
    joint = np.zeros((bins, bins), np.int64)
    _kernels.count_cells(rows, columns, np.concatenate([[0], np.cumsum(epochs.sizes)]), joint)
    return mixing_of_counts(joint.astype(np.float64), epochs.places)


def check_bins(bins: int | None, count: int) -> int:
    """The number of bins asked for, or as many as `count` sequences fill."""
    remedy = "Give the number of equal-mass bins, such as 64."
    bins = mixing_bins(count) if bins is None else bins
    return checks.check_whole("bins", bins, minimum=1, maximum=_MOST_BINS, remedy=remedy)


def fine_bins(count: int) -> int:
    """How many bins `count` sequences fill well enough to compare plans, from 2 to 1,024: about sqrt(count / 2.5)."""
    return int(np.clip(np.sqrt(count / 2.5), 2, 1024))


def bin_items(epochs: Epochs, bins: int) -> NDArray[np.int64]:
    """The equal-mass bin of the length of each item, plan after plan: [m]."""
    return bin_equally(join(epochs.taken), None, bins)


def bin_batches(epochs: Epochs, bins: int) -> NDArray[np.int64]:
    """The equal-mass bin of what each batch is padded to, each weighted by its items, plan after plan: [batches]."""
    return bin_equally(epochs.padded, epochs.sizes, bins)


def bin_steps(epochs: Epochs, bins: int) -> NDArray[np.int64]:
    """The same of the mean padded length over the items of the step that takes each batch first: [batches]."""
    means = epochs.add_steps(epochs.padded * epochs.sizes) / epochs.step_sizes
    # Plans of 3 and 2 steps: the first step of the second plan is number 3.
    before = np.cumsum([0, *(plan.steps for plan in epochs.plans)])
    step = join([_first_steps(plan) + start for plan, start in zip(epochs.plans, before[:-1], strict=True)])
    items = np.bincount(step, epochs.sizes, minlength=len(means))
    return bin_equally(means, items, bins)[step]


def _first_steps(plan: Plan) -> NDArray[np.int64]:
    """The step that takes each batch first: [batches]."""
    places = plan.grid.reshape(-1)
    # Written from the last place to the first, so that the first one stays.
    first = np.zeros(len(plan.costs), np.int64)
    first[places[::-1]] = np.arange(len(places))[::-1]
    # Steps of 4 places: a batch that stands first at place 9 of the grid is of step 2.
    return first // (plan.micro_batches * plan.world_size)

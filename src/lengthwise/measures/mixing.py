"""Randomness and mixing: the independence of the lengths in a step or a batch.

X is the length of a sequence, T the padded length of its batch, and exp(-I(X; T)) the mixing of batches. Mixing is
estimated on the joint histogram of X and T, in equal-mass bins. Several epochs of the same lengths are pooled, for
finer bins. Two biases remain:

- Bins lose detail, so the estimate is too high: by 1 / bins to 2 / bins if the true mixing is 0.01 to 0.8.
- Few sequences leave bins empty, so the estimate is too low. With 10 bins^2 sequences or more, the first-order
  correction of Miller and Madow leaves an error under 1 %. With fewer, Grassberger's estimate is used. It is within 1 %
  with 2.5 bins^2 sequences, and up to 13 % too low with 0.6 bins^2.

References:
    Miller 1955, "Note on the bias of information estimates". Grassberger 2003, "Entropy estimates from insufficient
    samplings", equation 30, for each of the entropies in I = H(X) + H(T) - H(X, T).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels, _random, checks
from lengthwise._random import Key
from lengthwise.measures.epochs import Epochs, join
from lengthwise.planning.plan import Plan

_MOST_BINS = 4096  # on each axis: their histogram takes 128 MiB
_MOST_PAIR_BINS = 64
_MET = 16  # the most partners of a sequence: in larger groups, 16 at even distances are enough
_LEAST_MET = 2  # the fewest partners, for millions of sequences
_MEETINGS = 2**21  # about so many pairs of sequences are counted


def check_bins(bins: int | None, count: int) -> int:
    """Checks the number of bins; by default the number that `count` sequences fill."""
    remedy = "Give the number of equal-mass bins, such as 64."
    bins = mixing_bins(count) if bins is None else bins
    return checks.check_whole("bins", bins, minimum=1, maximum=_MOST_BINS, remedy=remedy)


def fine_bins(count: int) -> int:
    """Returns the bins that `count` sequences fill well enough to compare plans: sqrt(count / 2.5), from 2 to 1,024."""
    return int(np.clip(np.sqrt(count / 2.5), 2, 1024))


def mix_batches(epochs: Epochs, bins: int) -> float:
    """Returns exp(-I(X; T)), with T the padded length of a batch."""
    return _mix(epochs, _bin_equally(epochs.padded_lengths, epochs.sizes, bins), bins)


def mix_steps(epochs: Epochs, bins: int) -> float:
    """Returns exp(-I(X; T)), with T the mean padded length of the first step that takes a batch."""
    means = epochs.add_steps(epochs.padded_lengths * epochs.sizes) / epochs.step_sizes
    # Plans of 3 and 2 steps: the first step of the second plan is number 3.
    starts = np.cumsum([0, *(plan.steps for plan in epochs.plans)])
    step = join([_first_steps(plan) + start for plan, start in zip(epochs.plans, starts[:-1], strict=True)])
    items = np.bincount(step, epochs.sizes, minlength=len(means))
    return _mix(epochs, _bin_equally(means, items, bins)[step], bins)


def _mix(epochs: Epochs, columns: NDArray[np.int64], bins: int) -> float:
    """Returns exp(-I(X; T)) from the bin of T of each batch, `columns` [batches]."""
    if not epochs.item_count:
        return 1.0
    cells = _bin_items(epochs, bins) * bins + np.repeat(columns, epochs.sizes)
    joint = np.bincount(cells, minlength=bins * bins).reshape(bins, bins)
    return _mixing_of_counts(joint.astype(np.float64), epochs.item_count)


def _bin_items(epochs: Epochs, bins: int) -> NDArray[np.int64]:
    """Returns the equal-mass bin of the length of each item, plan after plan: [m]."""
    return _bin_equally(join(epochs.lengths), None, bins)


def _first_steps(plan: Plan) -> NDArray[np.int64]:
    """Returns the first step that takes each batch: [batches]."""
    places = plan.grid.reshape(-1)
    # Write from the last place to the first: the first one stays.
    first = np.zeros(len(plan.costs), np.int64)
    first[places[::-1]] = np.arange(len(places))[::-1]
    # Steps of 4 places: a batch that stands first at place 9 of the grid is of step 2.
    return first // (plan.micro_batches * plan.world_size)


def mix_pairs(epochs: Epochs) -> float:
    """Returns exp(-I) of the lengths of two sequences of a step.

    The estimate is made on the joint histogram of pairs. More sequences have more equal-mass bins, from 2 to 64. All
    sequences have the same weight, but those alone in a step do not count. The correction of Miller and Madow uses the
    effective number of pairs, (sum of weights)^2 / (sum of squared weights).
    """
    count = epochs.item_count
    if not count:
        return 1.0
    bins = min(_MOST_PAIR_BINS, mixing_bins(count))
    joint = np.zeros((bins, bins))
    paired, squares = 0, 0.0
    partners = int(np.clip(_MEETINGS // count // 2 * 2, _LEAST_MET, _MET))
    ends = np.cumsum([len(plan.sequences) for plan in epochs.plans])
    for plan, items in zip(epochs.plans, np.split(_bin_items(epochs, bins), ends[:-1]), strict=True):
        steps = np.repeat(_first_steps(plan), plan.batch_sizes)
        # Shuffled within each step: in sorted batches, partners at fixed distances would be too similar.
        shuffled = _random.argsort(Key().permutation(int(plan.sequences.max(initial=-1)) + 1)[plan.sequences])
        order = _random.sort_by(shuffled, steps)
        groups = np.append(0, np.cumsum(np.bincount(steps)))
        members, squared = _kernels.count_pairs(items[order], groups, partners, joint)
        paired, squares = paired + members, squares + squared
    return _mixing_of_pairs(joint + joint.T, paired, paired**2 / squares) if paired else 1.0


def _mixing_of_pairs(joint: NDArray[np.float64], paired: int, effective: float) -> float:
    """Returns exp(-I) of a symmetric histogram with the sum `paired`, from `effective` pairs."""
    sums = joint.sum(axis=1)
    seen = joint > 0
    information = np.sum(joint[seen] * np.log(joint[seen] * paired / np.outer(sums, sums)[seen])) / paired
    # Miller-Madow: (filled cells - 1) / 2n for the joint entropy, and for the entropy of each of the two lengths.
    bias = (seen.sum() - 2 * (sums > 0).sum() + 1) / (2 * effective)
    return float(np.exp(-max(0.0, information - bias)))


def mixing_bins(count: int) -> int:
    """Returns the number of bins of mixing that `count` sequences fill, from 2 to 128.

    The bias of the plain estimate, (bins - 1)^2 / 2n nats, then stays under a twentieth.
    """
    return int(np.clip(1 + np.sqrt(count / 10), 2, 128))


def _bin_equally(values: NDArray[Any], weights: NDArray[Any] | None, bins: int) -> NDArray[np.int64]:
    """Puts values into bins of equal total weight, by rank. Equal values share a bin. By default each weighs 1.

    >>> _bin_equally(np.array([5, 1, 9]), np.array([2, 1, 1]), 2)
    array([1, 0, 1])
    """
    if not len(values):
        return np.empty(0, np.int64)
    low = values.min()
    if values.dtype.kind in "iu" and values.max() - low <= 4 * len(values):  # counting is faster than sorting here
        keys = values if 0 <= low <= len(values) else values - low
    else:
        keys = np.unique(values, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(keys, weights)
    # A value stands at the middle of its own ranks: with counts [1, 2, 1], at [0.5, 2, 3.5] of 4.
    middle = np.cumsum(counts) - counts / 2
    return (middle * bins / counts.sum()).clip(0, bins - 1).astype(np.int64)[keys]


def _mixing_of_counts(joint: NDArray[np.float64], count: int) -> float:
    """Returns exp(-I) of a joint histogram [bins, bins] of `count` sequences, its bias corrected as above."""
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    # Below 10 sequences for each cell the first-order correction is no longer enough.
    if len(joint) > 2 and count < 10 * (len(joint) - 1) * (len(joint) - 1):
        information = _entropy(rows, count) + _entropy(columns, count) - _entropy(joint, count)
        return float(np.exp(-max(0.0, information)))
    seen = joint > 0
    information = float(joint[seen] @ np.log(joint[seen] * count / np.outer(rows, columns)[seen])) / count
    # Miller-Madow: an entropy from counts is too small by (filled cells - 1) / 2n, so the information is too large.
    bias = (seen.sum() - (rows > 0).sum() - (columns > 0).sum() + 1) / (2 * count)
    return float(np.exp(-max(0.0, information - bias)))


def _entropy(counts: NDArray[np.float64], count: int) -> float:
    """Returns Grassberger's estimate, in nats: log n - mean of G(m), with m the count of each sequence's cell."""
    sharing = counts[counts > 0].astype(np.int64)
    return float(np.log(count) - sharing @ _grassberger(int(sharing.max()))[sharing] / count)


def _grassberger(most: int) -> NDArray[np.float64]:
    """Returns G(0) .. G(most) of Grassberger's estimate. G(m) comes near log m for large m.

    G(1) = -gamma - log 2, and G(2k) = G(2k + 1) = G(1) + 2 / 1 + 2 / 3 + ... + 2 / (2k - 1).
    """
    halves = np.cumsum(2.0 / np.arange(1, most + 2, 2))
    pairs = np.concatenate([[0.0], np.repeat(halves, 2)])  # of 1, then of 2 and 3, of 4 and 5, ...
    return np.concatenate([[0.0], pairs[:most] - np.euler_gamma - np.log(2.0)])

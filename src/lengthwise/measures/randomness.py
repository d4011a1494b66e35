"""Randomness: the independence of the lengths of two sequences of a step, exp(-I).

It is estimated on the joint histogram of pairs, in equal-mass bins. Several epochs of the same lengths are pooled, for
finer bins. Bins lose detail, so the estimate is too high if steps hold nearly equal lengths: at least about 1 / bins.

References:
    Miller 1955, "Note on the bias of information estimates".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels, _random
from lengthwise._random import Key
from lengthwise.measures.epochs import Epochs, join
from lengthwise.planning.plan import Plan

_MOST_BINS = 64
_MET = 16  # the most partners of a sequence: in larger groups, 16 at even distances are enough
_LEAST_MET = 2  # the fewest partners, for millions of sequences
_MEETINGS = 2**21  # about so many pairs of sequences are counted


def measure_randomness(epochs: Epochs) -> float:
    """Returns exp(-I) of the lengths of two sequences of a step.

    More sequences have more bins, from 2 to 64. All sequences have the same weight, but those alone in a step do not
    count. The correction of Miller and Madow uses the effective number of pairs, (sum of weights)^2 / (sum of squared
    weights).
    """
    lengths = join(epochs.lengths)
    count = len(lengths)
    if not count:
        return 1.0
    # With 10 sequences for each cell, the bias of the plain estimate, (bins - 1)^2 / 2n nats, is under a twentieth.
    bins = int(np.clip(1 + np.sqrt(count / 10), 2, _MOST_BINS))
    joint = np.zeros((bins, bins))
    paired, squares = 0, 0.0
    partners = int(np.clip(_MEETINGS // count // 2 * 2, _LEAST_MET, _MET))
    ends = np.cumsum([len(plan.sequences) for plan in epochs.plans])
    for plan, items in zip(epochs.plans, np.split(_bin_equally(lengths, bins), ends[:-1]), strict=True):
        steps = np.repeat(_first_steps(plan), plan.batch_sizes)
        # Shuffled within each step: in sorted batches, partners at fixed distances would be too similar.
        shuffled = _random.argsort(Key().permutation(int(plan.sequences.max(initial=-1)) + 1)[plan.sequences])
        order = _random.sort_by(shuffled, steps)
        groups = np.append(0, np.cumsum(np.bincount(steps)))
        members, squared = _kernels.count_pairs(items[order], groups, partners, joint)
        paired, squares = paired + members, squares + squared
    return _randomness_of(joint + joint.T, paired, paired**2 / squares) if paired else 1.0


def _first_steps(plan: Plan) -> NDArray[np.int64]:
    """Returns the first step that takes each batch: [batches]."""
    places = plan.grid.reshape(-1)
    # Write from the last place to the first: the first one stays.
    first = np.zeros(len(plan.costs), np.int64)
    first[places[::-1]] = np.arange(len(places))[::-1]
    # Steps of 4 places: a batch that stands first at place 9 of the grid is of step 2.
    return first // (plan.micro_batches * plan.world_size)


def _randomness_of(joint: NDArray[np.float64], paired: int, effective: float) -> float:
    """Returns exp(-I) of a symmetric histogram with the sum `paired`, from `effective` pairs."""
    sums = joint.sum(axis=1)
    seen = joint > 0
    information = np.sum(joint[seen] * np.log(joint[seen] * paired / np.outer(sums, sums)[seen])) / paired
    # Miller-Madow: (filled cells - 1) / 2n for the joint entropy, and for the entropy of each of the two lengths.
    bias = (seen.sum() - 2 * (sums > 0).sum() + 1) / (2 * effective)
    return float(np.exp(-max(0.0, information - bias)))


def _bin_equally(values: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """Puts values into bins of equal count, by rank. Equal values share a bin.

    >>> _bin_equally(np.array([5, 5, 1, 9]), 2)
    array([1, 1, 0, 1])
    """
    apart = np.ptp(values) > 4 * len(values)  # if not, counting is faster than sorting
    keys = np.unique(values, return_inverse=True)[1] if apart else values - values.min()
    counts = np.bincount(keys)
    # A value stands at the middle of its own ranks: with counts [1, 2, 1], at [0.5, 2, 3.5] of 4.
    middle = np.cumsum(counts) - counts / 2
    return (middle * bins / len(values)).clip(0, bins - 1).astype(np.int64)[keys]

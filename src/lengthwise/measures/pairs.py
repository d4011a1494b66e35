"""Pair mixing: how little the length of a sequence tells about that of another in the same row, or batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import _kernels
from lengthwise.measures.epochs import Batches, Epochs, read_epochs
from lengthwise.measures.mixing import bin_items, mixing_bins
from lengthwise.planning.plan import Plan

_MOST_BINS = 64
_MET = 16  # others that each sequence meets: in larger groups, as many at even distances say the same
_LEAST_MET = 2  # of millions of sequences, fewer others each say the same
_MEETINGS = 2**21
_SAMPLED = 2**18  # sequences: the rows of as many say the same as those of more
_LEAST_GROUPS = 2**13  # of an epoch, in the sample


def pair_mixing(plans: Plan | Batches | Sequence[Plan] | Sequence[Batches], lengths: ArrayLike) -> float:
    """exp(-I) of the lengths of two sequences that share a row: 1 where one tells nothing of the other, else less.

    For packed rows, whose padded length says nothing. Where rows are not packed, the two share a batch. Sequences that
    are alone there do not count.

    Estimated on the joint histogram of pairs in 2 to 64 equal-mass bins, by the number of sequences, each sequence
    weighted alike. Of more than half a million sequences, a sample of the rows counts: of a million, a third. The
    first-order correction of Miller and Madow counts the pairs by their effective number, (sum of weights)^2 / (sum of
    squared weights).

    Args:
        plans: One plan or several, or the batches of any sampler, as `measure` takes them.
        lengths: [n] or [n, dims], those that the plans were made for.

    >>> batches = [[0, 1], [2, 3]] * 50  # each sequence tells which half the other is of
    >>> round(pair_mixing(batches, [10, 10, 20, 20]), 2)
    0.5
    """
    return pair_mixings(read_epochs(plans, lengths))


def pair_mixings(epochs: Epochs, known: NDArray[np.int64] | None = None, known_bins: int = 0) -> float:
    """The same of epochs that are read; 1 where no two sequences share anything.

    `known` are `bin_items` for as many bins.
    """
    count = epochs.places
    if not count:
        return 1.0
    bins = min(_MOST_BINS, mixing_bins(count))
    joint = np.zeros((bins, bins))
    paired, squares = 0, 0.0
    met = int(np.clip(_MEETINGS // count // 2 * 2, _LEAST_MET, _MET))
    if known is not None and known_bins in (bins, 2 * bins):
        found = known >> (known_bins // bins - 1)  # of twice as many bins, two are one
    else:
        found = bin_items(epochs, bins)
    ends = np.cumsum([len(plan.sequences) for plan in epochs.plans])
    for plan, own in zip(epochs.plans, np.split(found, ends[:-1]), strict=True):
        groups = plan.offsets if plan.row_offsets is None else plan.row_offsets
        sample = _sample(len(groups) - 1, count // _SAMPLED)
        members, squared = _kernels.count_pairs(own, groups, sample, met, joint)
        paired, squares = paired + members, squares + squared
    return _mixing_of_pairs(joint + joint.T, paired, paired**2 / squares) if paired else 1.0


def _sample(groups: int, every: int) -> NDArray[np.int64]:
    """Some of the numbers below `groups`, rising: one of the first `every`, one of the next `every`, and so on.

    The golden ratio says which one. Batches of three lengths may come in turn: each third number would then be of one
    length.
    """
    every = max(1, min(every, groups // _LEAST_GROUPS))
    turn = np.arange(groups // every)
    # 40,503 of 65,536 are the golden ratio: of every 9, the numbers 0, 5, 2, 7, 4, 0, 6, ... are taken.
    return turn * every + (turn * 40_503 % 65_536 * every >> 16)


def _mixing_of_pairs(joint: NDArray[np.float64], paired: int, effective: float) -> float:
    """exp(-I) of a symmetric histogram whose cells sum to `paired`, and stand for `effective` pairs."""
    each = joint.sum(axis=1)
    seen = joint > 0
    information = np.sum(joint[seen] * np.log(joint[seen] * paired / np.outer(each, each)[seen])) / paired
    # Miller-Madow, as in `mixing`: (filled cells - 1) / 2n for the joint entropy, and for each of the two alone.
    bias = (seen.sum() - 2 * (each > 0).sum() + 1) / (2 * effective)
    return float(np.exp(-max(0.0, information - bias)))

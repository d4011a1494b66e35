"""Mixing: how little the padded length of a batch, or the mean one of a step, tells about a length in it.

X is the length of a sequence, T the padded length of its batch, and exp(-I(X; T)) the mixing. It is estimated on the
joint histogram of X and T, each in bins of equal count. `Measures.randomness` is another quantity: it compares the
lengths of two sequences of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import lengthwise as lw
from lengthwise import checks


def measure_mixing(
    plans: lw.Plan | Sequence[lw.Plan], lengths: ArrayLike, *, bins: int | None = None, steps: bool = False
) -> float:
    """Returns the mixing of the batches, or of the steps, of a plan or of several epochs together: exp(-I(X; T)).

    It is 1 if X and T are independent, and near 0 if T determines X. Random batches of few sequences have less than 1,
    because the longest sequence has the padded length. Packed rows have 1, because all have the same padded length. Two
    biases remain:

    - Bins lose detail, so the estimate is too high: by 1 / bins to 2 / bins if the true mixing is 0.01 to 0.8. Compare
      numbers, and `mixing_limit`, at the same bins.
    - Few sequences leave bins empty. The estimate is within 1 % with 2.5 bins^2 sequences, and up to 13 % too low with
      0.6 bins^2. Several epochs fill more bins than one.

    Args:
        plans: A plan, or plans of the same lengths, one for each epoch.
        lengths: [n] or [n, dims]; several dimensions count by their sum.
        bins: The bins on each axis; by default 2 to 128, by the number of sequences.
        steps: Measures steps: T is the mean padded length over the sequences of the first step that takes a batch.

    >>> lengths = np.arange(1, 2_001)
    >>> plan = lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(1_000), order=lw.Sorted()))
    >>> round(measure_mixing(plan, lengths, bins=2), 3)  # T says in which half X lies: exp(-log 2)
    0.5

    References:
        Grassberger 2003, "Entropy estimates from insufficient samplings", equation 30, for each of the entropies in
        I = H(X) + H(T) - H(X, T).
    """
    several = [plans] if isinstance(plans, lw.Plan) else list(plans)
    array, fingerprint = lw.as_lengths(lengths), lw.fingerprint(lengths)
    for plan in several:
        if plan.lengths_fingerprint != fingerprint:
            rule = f"those of the plan, of fingerprint {plan.lengths_fingerprint}"
            raise checks.value_error("lengths", rule, fingerprint, "Plan again for these lengths.")
    sums = np.atleast_2d(array.T).sum(axis=0)
    items = [sums if plan.spans is None else plan.spans[:, 2] - plan.spans[:, 1] for plan in several]
    sizes = np.concatenate([own[plan.numbers] for own, plan in zip(items, several, strict=True)])
    padded = np.concatenate([np.repeat(_padded(plan, steps), plan.batch_sizes) for plan in several])
    bins = default_bins(len(sizes)) if bins is None else bins
    checks.check_whole("bins", bins, minimum=1, remedy="Give the number of equal-count bins, such as 128.")
    return mixing_of(_bin_equally(sizes, bins), _bin_equally(padded, bins)) if len(sizes) else 1.0


def default_bins(count: int) -> int:
    """Returns the number of bins that `count` sequences fill, about 10 for each cell of the histogram: 2 to 128."""
    return int(np.clip(1 + np.sqrt(count / 10), 2, 128))


def mixing_of(sizes: NDArray[np.int64], padded: NDArray[np.int64]) -> float:
    """Returns exp(-I) of two numbers from 0 of each sequence, such as the bins of its length and padded length."""
    both = sizes * (padded.max() + 1) + padded
    return float(np.exp(min(0.0, _entropy(both) - _entropy(sizes) - _entropy(padded))))


def _padded(plan: lw.Plan, steps: bool) -> NDArray[Any]:
    """Returns the padded length of each batch, or the mean one of the first step that takes it: [batches]."""
    padded, counts = plan.padded_lengths.sum(axis=1), plan.batch_sizes
    if not steps:
        return padded
    means = (padded * counts)[plan.grid].sum(axis=(1, 2)) / counts[plan.grid].sum(axis=(1, 2))
    batches, places = np.unique(plan.grid, return_index=True)
    padded = np.zeros(len(counts))
    # In steps of 4 places, a batch that stands first at place 9 is of step 2.
    padded[batches] = means[places // (plan.micro_batches * plan.world_size)]
    return padded


def _bin_equally(values: NDArray[Any], bins: int) -> NDArray[np.int64]:
    """Puts values into bins of equal count, by rank. Equal values share a bin.

    >>> _bin_equally(np.array([5, 1, 9, 5]), 2).tolist()
    [1, 0, 1, 1]
    """
    _, ranks, counts = np.unique(values, return_inverse=True, return_counts=True)
    # A value stands at the middle of its own ranks: with counts [1, 2, 1], at [0.5, 2, 3.5] of 4.
    middle = np.cumsum(counts) - counts / 2
    return (middle * bins / len(values)).astype(np.int64)[ranks]


def _entropy(cells: NDArray[np.int64]) -> float:
    """Returns Grassberger's estimate, in nats: log n - mean of G(m), with m the count of each value's cell.

    G(1) = -gamma - log 2, and G(2k) = G(2k + 1) = G(1) + 2 / 1 + 2 / 3 + ... + 2 / (2k - 1). It comes near log m.
    """
    counts = np.unique(cells, return_counts=True)[1]
    sums = np.append(0.0, np.cumsum(2.0 / np.arange(1, counts.max(), 2)))
    nearly_logs = sums[counts // 2] - np.euler_gamma - np.log(2.0)
    return float(np.log(len(cells)) - counts @ nearly_logs / len(cells))

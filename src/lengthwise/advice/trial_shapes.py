"""Which made batches a step is tried with: a few counts and padded lengths that span those of the data.

shapes   [k, 1 + dims]   how many sequences, and what each dimension is padded to
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.lengths import as_lengths

_SHORT = 0.05  # the quantile of the lengths that the shortest trial is of
_SPAN = 4  # times: the least by which the longest trial is longer than the shortest
_COUNTS = (1 / 8, 1 / 2, 1.0)  # of the most sequences that are tried at a length
BATCH = 16  # sequences of the mean length make the usual batch; a trial holds twice as many frames at most


def trial_lengths(lengths: ArrayLike, *, levels: int, aside: bool = True) -> NDArray[np.int64]:
    """Padded lengths from short to the longest, evenly by their ratios: [k, dims].

    Args:
        lengths: [n] or [n, dims].
        levels: How many from short to long, all dimensions together.
        aside: Of several dimensions, add shapes in which one alone is short or long, to tell what each of them costs.

    >>> trial_lengths([100] * 10 + [1_600], levels=5).tolist()
    [[100], [200], [400], [800], [1600]]
    """
    rows = as_lengths(lengths)
    if not len(rows):
        raise checks.value_error("lengths", "of at least one sequence", 0, "Give those of your data.")
    rows = rows.reshape(len(rows), -1)
    longest = rows.max(axis=0)
    shortest = np.minimum(np.quantile(rows, _SHORT, axis=0), longest / _SPAN).clip(1, None)
    shares = np.linspace(0.0, 1.0, levels)[:, None]
    steps = np.rint(shortest ** (1 - shares) * longest**shares).astype(np.int64)
    if not aside or rows.shape[1] == 1:
        return np.unique(steps, axis=0)
    # Steps (10, 2), (20, 4), (40, 8) also bring (10, 4), (40, 4), (20, 2) and (20, 8).
    middle = steps[levels // 2]
    others = [
        np.where(np.arange(len(middle)) == dim, end, middle) for dim in range(len(middle)) for end in steps[[0, -1]]
    ]
    return np.unique(np.vstack([steps, *others]), axis=0)


def trial_shapes(lengths: ArrayLike, budget: float | None) -> NDArray[np.int64]:
    """The shapes that a step is measured with, at most `budget` padded frames each, but for single sequences.

    >>> trial_shapes([100] * 10 + [1_600], budget=6_400)[:6].tolist()
    [[8, 100], [32, 100], [64, 100], [4, 200], [16, 200], [32, 200]]
    """
    padded = trial_lengths(lengths, levels=5)
    rows = np.asarray(lengths)
    frames = padded.sum(axis=1)
    mean = float(rows.reshape(len(rows), -1).sum(axis=1).mean())
    # Two of the longest at least: one count alone would not tell what a sequence costs.
    budget = max(2 * BATCH * mean, 2.0 * int(frames.max())) if budget is None else budget
    most = np.maximum(1, budget // frames)
    counts = np.maximum(1, np.rint(most[:, None] * np.array(_COUNTS)).astype(np.int64))
    shapes = np.hstack([counts.reshape(-1, 1), np.repeat(padded, len(_COUNTS), axis=0)])
    # In the order of the lengths, and each shape once: [1, 1, 2] sequences of a length are two shapes.
    return np.unique(shapes[:, [*range(1, shapes.shape[1]), 0]], axis=0)[:, [-1, *range(shapes.shape[1] - 1)]]

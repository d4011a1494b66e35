"""Exact count: cuts an order into exactly M batches within the budget, the costliest as cheap as possible.

lengths     4 4 4 4 4 4 4 4 4 4       a budget of 16, so 3 batches at least; a step takes 4
greedy      (4 4 4 4) (4 4 4 4) (4 4)
cut into 4  (4 4 4) (4 4 4) (4 4) (4 4)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise.choices.cost import Cost
from lengthwise.choices.cut import Cut, FixedSize, is_hard, limits_by_cost
from lengthwise.choices.greedy import Limits, cut_greedily, number_parts

_PER_MISSING = 256  # for each 256 batches one may be missing, to shorten the search; then the widest are halved
_LEVEL_TOLERANCE = 2.0**-11  # the share of a level by which the search may miss it, if batches may be missing
_HALVINGS = 60  # of the range of batch sizes: as fine as floats are


def exact_limits(cut: Cut, cost: Cost, longest: NDArray[np.int64], balance: Cost | None = None) -> Limits | None:
    """Returns the limits of a batch, where `longest` [dims] is the longest of the data set.

    Batches are as cheap as can be by `balance`, or else by the cost. The limits are None if only the cut itself can
    find its batches: `Rows`, `DynamicSize(rule="paper")`, or a cut of the user.
    """
    if type(cut) is FixedSize:
        return Limits(cost, batch_size=cut.batch_size, balance=balance)
    return limits_by_cost(cut, cost, longest)._replace(balance=balance) if is_hard(cut) else None


def cut_into(
    needed: NDArray[np.int64], boundaries: NDArray[np.int64], batches: int, limits: Limits
) -> NDArray[np.int64]:
    """Cuts sequences in order into exactly `batches`; if sequences are fewer, into one batch for each.

    Batches of a fixed size have nearly equal counts. Under a budget the costliest batch is as cheap as possible:
    exactly for few batches, within half a per cent for many. A cost that the user wrote is too slow for this search:
    batches are filled, and those with the most sequences are halved.

    Args:
        needed: [m, dims], the length that each sequence must be padded to.
        boundaries: Rising positions in 1..m-1 that no batch may cross.
        batches: The number of batches, enough to keep the limits.
        limits: The limits of a batch. A sequence that alone is over the budget gets a batch of its own.

    Returns:
        The offsets, [batches + 1].

    References:
        Ours. Partition of a line such that the largest part is least: bisection over a greedy pass.
    """
    if limits.batch_size is not None:
        return cut_by_count(len(needed), boundaries, batches)
    kernel_lengths, bounds = limits.for_kernels(needed)
    if bounds is None:
        return split_largest(cut_greedily(needed, boundaries, limits), batches)
    count = len(needed)
    whole = np.arange(count), number_parts(boundaries, count), bounds, np.array([count])
    return cut_steps(kernel_lengths, *whole, batches, falling=False, tolerance=batches // _PER_MISSING)


def cut_steps(
    needed: NDArray[np.int64],
    order: NDArray[np.int64],
    groups: NDArray[np.int64],
    bounds: _kernels.Bounds,
    counts: NDArray[np.int64],
    slots: int,
    *,
    falling: bool,
    tolerance: int = 0,
) -> NDArray[np.int64]:
    """Cuts each step of `counts` sequences into `slots` batches, the costliest as cheap as possible.

    A step of fewer sequences is cut into single ones. If at most `tolerance` batches are missing, the search ends: the
    widest are halved.

    Args:
        needed: [n, dims], the length that each sequence must be padded to.
        order: [m], the positions of sequences, step by step.
        groups, bounds, falling: As in `_kernels.cut_batches`.

    Returns:
        The offsets in the order, step by step.
    """
    if slots == 1:
        return np.append(0, np.cumsum(counts[counts > 0]))
    ends, batches, tried = (np.empty(shape, np.int64) for shape in ((len(counts), slots), len(counts), slots))
    search = (tolerance, _LEVEL_TOLERANCE) if tolerance else (-1, 0.0)  # or exact
    _kernels.cut_steps(needed, order, groups, bounds, counts, falling, *search, tried, ends, batches)
    if (batches < np.minimum(counts, slots)).any():
        _kernels.split_widest(ends, batches)
    return np.concatenate([[0], ends[np.arange(slots) < batches[:, None]]])


def cut_by_count(count: int, boundaries: NDArray[np.int64], batches: int) -> NDArray[np.int64]:
    """Returns the offsets of `batches` batches of nearly equal counts; if sequences are fewer, of one batch for each.

    >>> cut_by_count(10, np.array([8]), 4)
    array([ 0,  2,  5,  8, 10])
    """
    widths = np.diff(np.concatenate([[0], boundaries, [count]]).astype(np.int64))
    widths = widths[widths > 0]
    batches = min(batches, count)
    # Finds the least batch size that gives at most `batches` batches: 8/3 cuts buckets of 8 and 2 into 3 + 1.
    low, high = 0.0, float(widths.max(initial=0))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if middle > 0.0 and np.ceil(widths / middle).sum() <= batches:
            high = middle
        else:
            low = middle
    parts = np.ceil(widths / high).astype(np.int64) if count else widths
    # Equally wide buckets gain a part at the same size, so that some batches may still be missing.
    parts[np.flatnonzero(parts < widths)[: batches - parts.sum()]] += 1
    return split_evenly(widths, parts)


def split_evenly(widths: NDArray[np.int64], parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Divides each width into its number of parts, as equal as possible, and returns the offsets.

    >>> split_evenly(np.array([3, 2]), np.array([2, 2]))
    array([0, 1, 3, 4, 5])
    """
    place = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)  # [0, 1, 0, 1]
    starts = place * np.repeat(widths, parts) // np.repeat(parts, parts)
    return np.append(np.repeat(np.cumsum(widths) - widths, parts) + starts, widths.sum())


def split_largest(offsets: NDArray[np.int64], batches: int) -> NDArray[np.int64]:
    """Halves the batches with the most sequences until there are `batches`, or until every batch is one sequence.

    >>> split_largest(np.array([0, 2, 6, 7]), 4)
    array([0, 2, 4, 6, 7])
    """
    ends, counts = np.empty((1, max(batches, len(offsets) - 1)), np.int64), np.array([len(offsets) - 1])
    ends[0, : len(offsets) - 1] = offsets[1:]
    _kernels.split_widest(ends, counts)
    return np.concatenate([[0], ends[0, : counts[0]]])

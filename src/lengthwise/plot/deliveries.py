"""An epoch as it is delivered: what the pictures of batches draw.

delivered   [m]            the length of each sequence, in the order in which they are delivered
sizes       [batches]      sequences in each batch delivered
padded      [batches]      what each batch delivered is padded to
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import value_error
from lengthwise.lengths import as_lengths
from lengthwise.planning.plan import Plan

_USUAL = 0.95  # the share of the sequences whose padded length is on the axis for certain


class Delivery(NamedTuple):
    """One epoch as it is delivered, see the top of this file."""

    delivered: NDArray[np.int64]
    sizes: NDArray[np.int64]
    padded: NDArray[np.int64]

    @property
    def offsets(self) -> NDArray[np.int64]:
        return np.append(0, np.cumsum(self.sizes))

    def of(self, batches: range) -> Delivery:
        """Some batches in a row of this epoch."""
        start, stop = self.offsets[[batches.start, batches.stop]]
        near = slice(batches.start, batches.stop)
        return Delivery(self.delivered[start:stop], self.sizes[near], self.padded[near])


def check_plans(plans: object) -> None:
    """Refuses all but a mapping from labels to plans, such as a plan alone."""
    if not isinstance(plans, Mapping) or not plans:
        raise value_error("plans", "at least one plan by its label", plans, 'Give {"random": plan}, for example.')


def deliveries(plans: Mapping[str, Plan], lengths: ArrayLike) -> dict[str, Delivery]:
    """The epoch of every plan, by its label."""
    return {label: delivery(plan, lengths) for label, plan in plans.items()}


def delivery(plan: Plan, lengths: ArrayLike, numbers: NDArray[np.int64] | None = None) -> Delivery:
    """Batches of these numbers, one after the other; by default all, step by step as the ranks take them.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.ShortestFirst(reverse=True))
    >>> delivery(lw.make_plan([5, 9, 2, 4], batching), [5, 9, 2, 4])
    Delivery(delivered=array([5, 9, 2, 4]), sizes=array([2, 2]), padded=array([9, 4]))
    """
    if numbers is None:  # within a step micro-batch by micro-batch over all ranks
        numbers = plan.grid.reshape(-1)
    array = as_lengths(lengths)
    whole = array if array.ndim == 1 else array.sum(axis=1)
    items = whole if plan.spans is None else plan.spans[:, 2] - plan.spans[:, 1]
    held, first = items[plan.numbers], plan.offsets
    if plan.row_offsets is not None:  # a row is drawn as one sequence, as long as those that it holds
        held, first = np.add.reduceat(held, plan.row_offsets[:-1]), np.searchsorted(plan.row_offsets, plan.offsets)
    sizes = plan.row_counts[numbers]
    # Batches of 2 and 3 that start at 7 and 0 hold the places 7, 8, 0, 1, 2.
    places = np.arange(sizes.sum()) + np.repeat(first[numbers] - np.cumsum(sizes) + sizes, sizes)
    return Delivery(held[places], sizes, plan.padded_lengths.sum(axis=1)[numbers])


def middle_batches(each: Delivery, window: int) -> range:
    """The batches around the middle of the epoch that hold `window` sequences, the last of them perhaps in part.

    >>> middle_batches(Delivery(np.arange(12), np.full(6, 2), np.full(6, 9)), 4)
    range(2, 4)
    """
    offsets = each.offsets
    start = int(np.searchsorted(offsets, max(0, (offsets[-1] - window) // 2)))
    # Of one batch larger than the window, the search ends behind it.
    start = min(start, max(0, len(each.sizes) - 1))
    return range(start, int(np.searchsorted(offsets[:-1], offsets[start] + window)))


def largest_mean(found: Mapping[str, Delivery]) -> float:
    """The mean size of the batches of the epoch in which it is largest."""
    return max((float(each.sizes.mean()) for each in found.values() if len(each.sizes)), default=0.0)


def top_of(found: Mapping[str, Delivery]) -> float:
    """The end of the axis of lengths: beyond the longest; where few are that long, beyond what most are padded to."""
    longest = max(int(each.padded.max(initial=0)) for each in found.values())
    usual = [np.quantile(np.repeat(each.padded, each.sizes), _USUAL) for each in found.values() if len(each.sizes)]
    # One sequence of 8,000 among others of 500 would make all the others flat.
    return float(min(1.05 * longest, 1.4 * max(usual, default=0.0)))


def unit_of(lengths: ArrayLike, unit: str) -> str:
    """The unit of what is drawn: several lengths a sequence count by their sum.

    >>> unit_of([3, 4], "frames"), unit_of([[3, 4]], "tokens")
    ('frames', 'tokens, the sum of 2 lengths')
    """
    array = as_lengths(lengths)
    return unit if array.ndim == 1 else f"{unit}, the sum of {array.shape[1]} lengths"


def item_of(plans: Mapping[str, Plan]) -> str:
    """What a bar or a dot is: a sequence, a chunk of one, or a packed row."""
    if any(plan.row_offsets is not None for plan in plans.values()):
        return "rows"
    return "chunks" if any(plan.spans is not None for plan in plans.values()) else "sequences"


def beyond(found: Mapping[str, Delivery], top: float, unit: str) -> str:
    """What a label must say where the axis of lengths ends at `top`, below the longest."""
    longest = max(int(each.delivered.max(initial=0)) for each in found.values())
    return f"; the longest, {longest:,} {unit}, lies beyond the axis" if longest > top else ""

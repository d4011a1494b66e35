"""Batches before they become a plan: members, padded lengths and costs; whole steps of them, dealt to the ranks.

batches   14 of them, for steps of 4
split     in the rest of an epoch, the 2 batches with the most sequences are halved: 16 batches
repeat    the 2 cheapest are taken twice: 16 places
drop      2 batches, drawn at random, are left out: 12 places
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise._random import Key
from lengthwise.choices.arithmetic import count_multiple, fill_up, sum_rows
from lengthwise.choices.batching import Batching, is_custom
from lengthwise.choices.cost import Cost, costs_of, costs_of_rows
from lengthwise.choices.cut import Cut
from lengthwise.choices.deal import World
from lengthwise.choices.rows import Rows
from lengthwise.planning.custom import check_arrangement, check_grid
from lengthwise.planning.cutter import split_largest


class Batches(NamedTuple):
    """Batch b is members[offsets[b]:offsets[b + 1]].

    Attributes:
        needed: [m, dims], the length that each member must be padded to; [0, dims] once no batch will be split or
            packed.
        padded_lengths: [batches, dims], the longest that the members of each batch need.
        costs: [batches].
        bucket_lengths: [batches], the longest length of each batch's bucket; None where there are no buckets.
    """

    members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    needed: NDArray[np.int64]
    padded_lengths: NDArray[np.int64]
    costs: NDArray[np.float64]
    bucket_lengths: NDArray[np.float64] | None

    @property
    def lengths(self) -> NDArray[np.float64]:
        """The lengths that put steps in order, [batches]: of each batch's bucket, or without buckets of the batch."""
        if self.bucket_lengths is not None:
            return self.bucket_lengths
        return sum_rows(self.padded_lengths).astype(np.float64)


def pad(
    members: NDArray[np.int64], offsets: NDArray[np.int64], needed: NDArray[np.int64], cut: Cut, cost: Cost
) -> Batches:
    """Pads and prices the batches that `offsets` cut `members` into."""
    if len(offsets) == 1:  # no batches: `reduceat` wants at least one start
        return Batches(members, offsets, needed, np.empty((0, needed.shape[1]), np.int64), np.empty(0), None)
    if isinstance(cut, Rows):
        lengths = np.full((len(offsets) - 1, 1), cut.capacity)
        costs = costs_of_rows(cost, needed, offsets, cut.capacity)
        return Batches(members, offsets, needed, lengths, costs, None)
    # Members that need [5, 9, 2, 4], cut at [0, 2, 4], are padded to [9, 4].
    lengths = np.maximum.reduceat(needed, offsets[:-1], axis=0)
    costs = costs_of(cost, fill_up(np.diff(offsets), count_multiple(cut)), lengths)
    return Batches(members, offsets, needed, lengths, costs, None)


def join(parts: Sequence[Batches]) -> Batches:
    """Joins the batches of all parts, part after part."""
    if len(parts) == 1:
        return parts[0]
    # Parts of 3 and 4 members have the ends [0, 3, 7]: the offsets of the second part rise by 3.
    ends = np.cumsum([0] + [len(part.members) for part in parts])
    starts = [part.offsets[:-1] + end for part, end in zip(parts, ends[:-1], strict=True)]
    return Batches(
        np.concatenate([part.members for part in parts]),
        np.concatenate([*starts, ends[-1:]]),
        np.concatenate([part.needed for part in parts]),
        np.concatenate([part.padded_lengths for part in parts]),
        np.concatenate([part.costs for part in parts]),
        None if parts[0].bucket_lengths is None else np.concatenate([part.lengths for part in parts]),
    )


def select(batches: Batches, chosen: NDArray[np.bool_]) -> Batches:
    """Selects the batches marked in `chosen` [batches]."""
    sizes = np.diff(batches.offsets)
    # The first and last of batches of [2, 1, 2] members: [1, 1, 0, 1, 1].
    mask = np.repeat(chosen, sizes)
    return Batches(
        batches.members[mask],
        np.concatenate([[0], np.cumsum(sizes[chosen])]),
        batches.needed[mask] if len(batches.needed) else batches.needed,
        batches.padded_lengths[chosen],
        batches.costs[chosen],
        None if batches.bucket_lengths is None else batches.bucket_lengths[chosen],
    )


def complete_steps(
    portions: list[Batches], places: int, steps: int, *, keys: Sequence[Key]
) -> tuple[Batches, NDArray[np.int64]]:
    """Brings all portions to the same number of batches: leaves some out at random, or repeats the cheapest.

    Args:
        portions: The batches of each portion; too many only if the tail drops.
        places: Batches of each portion in a step.
        steps: The steps to fill.
        keys: One for each portion, to draw the batches that are dropped.

    Returns:
        All batches, and the numbers of those in use, [portions, steps x places]; some may stand twice.
    """
    # Single sequences cannot be split: a portion may have too few batches.
    batches = join(portions)
    wanted = steps * places if len(batches.costs) else 0  # an epoch may take nothing
    borders = np.cumsum([0] + [len(portion.costs) for portion in portions])
    numbers = [
        _fill(np.arange(start, stop), batches.costs, wanted, key)
        for start, stop, key in zip(borders[:-1], borders[1:], keys, strict=True)
    ]
    return batches, np.stack(numbers)


def count_wanted(batches: Sequence[int], places: int, tail: str) -> int:
    """Counts the batches that each portion must have for whole steps: rounded down if the tail drops, else up.

    Args:
        batches: The number that each portion has.
        places: Batches of each portion in a step.
        tail: The policy for a last step that is not full.
    """
    most = max(batches)
    # 14 batches in steps of 4: 12 where the tail drops, else 16.
    return most // places * places if tail == "drop" else -(-most // places) * places


def split_batches(batches: Batches, places: int, batching: Batching) -> Batches:
    """Halves the batches with the most sequences until all steps are full; the halves keep their batch's bucket."""
    wanted = count_wanted([len(batches.costs)], places, batching.deal.tail)
    if wanted <= len(batches.costs) or batching.deal.tail != "split":
        return batches
    offsets = split_largest(batches.offsets, wanted)
    # Offsets [0, 2, 6] split to [0, 2, 4, 6] come from the batches [0, 1, 1].
    origins = np.searchsorted(batches.offsets, offsets[:-1], side="right") - 1
    padded = pad(batches.members, offsets, batches.needed, batching.cut, batching.cost)
    lengths = batches.bucket_lengths
    return padded._replace(bucket_lengths=None if lengths is None else lengths[origins])


def _fill(numbers: NDArray[np.int64], costs: NDArray[np.float64], wanted: int, key: Key) -> NDArray[np.int64]:
    """Brings `numbers` to `wanted` batch numbers: leaves some out at random, or repeats the cheapest.

    A portion without batches takes the cheapest of all portions, to keep its rank in step.
    """
    if wanted == len(numbers):
        return numbers
    if wanted < len(numbers):
        return numbers[np.sort(key.permutation(len(numbers))[:wanted])]
    candidates = numbers if len(numbers) else np.arange(len(costs))
    cheapest = candidates[np.argsort(costs[candidates], kind="stable")]
    # Batches [7, 8, 9] brought to five, where 8 and 7 are the cheapest: [7, 8, 9, 8, 7].
    return np.concatenate([numbers, np.resize(cheapest, wanted - len(numbers))])


def deal_and_arrange(
    batches: Batches, numbers: NDArray[np.int64], world: World, batching: Batching, *, deal: Key, arrange: Key
) -> NDArray[np.int64]:
    """Deals the batches `numbers` and arranges the steps: returns the grid, [steps, micro_batches, ranks].

    Args:
        deal: The key of the deal.
        arrange: The key of the order of the steps.
    """
    grid = batching.deal.grid(numbers, batches.costs, world, deal)
    if is_custom(batching.deal):
        grid = check_grid(grid, numbers, world)
    steps = grid.reshape(len(grid), world.slots)
    # An arrangement sees the costliest batch of each step, which must fit into memory, and the step's mean length.
    costliest = batches.costs[steps].max(axis=1, initial=0.0)
    order = batching.arrange(costliest, batches.lengths[steps].sum(axis=1) / world.slots, arrange)
    return grid[check_arrangement(order, len(grid)) if is_custom(batching.arrange) else order]


def in_grid(batches: Batches, grid: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Marks the batches that stand in the grid: [batches]."""
    used = np.zeros(len(batches.costs), bool)
    used[grid.reshape(-1)] = True
    return used

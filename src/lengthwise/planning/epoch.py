"""Epoch: draws the portions of an epoch until their batches fill the steps that every epoch has, and deals them.

steps of every epoch    45
first attempt           46 steps   drawn again, by the next key, the same on every rank
second attempt          44 steps   cut again, into the batches of 45 steps

In the end, 14 batches for steps of 4 become:

split     16 batches, cut again; in the rest of an epoch, the 2 with the most sequences are halved
repeat    16 places: the 2 cheapest are taken twice
drop      12 batches: 2, drawn at random, are left out
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.arithmetic import length_multiple
from lengthwise.choices.batching import Batching
from lengthwise.choices.deal import Deal, Portions, World
from lengthwise.choices.names import is_custom
from lengthwise.choices.rows import Rows
from lengthwise.planning.custom import check_arrangement, check_grid, check_portions
from lengthwise.planning.exact_count import split_largest
from lengthwise.planning.items import Items, Kinds
from lengthwise.planning.portion import (
    Portion,
    Settled,
    add_buckets,
    add_costs,
    cut_again,
    cut_portion,
    join,
    put_alone,
)

_ATTEMPTS = 64  # at an epoch: one in nine has too many batches when it is first drawn; in the worst case, one in two


def draw_epoch(items: Items, kinds: Kinds, settled: Settled, world: World, key: Key) -> tuple[list[Portion], int]:
    """Draws an epoch until its batches fit into the steps that every epoch has.

    If copies have very different lengths, an epoch may never fit. The epoch then has the steps that it needs.

    Args:
        items: The items of the epoch.
        kinds: The items that stand alone, and those that are left out.
        settled: The choices and the steps of the run.
        world: The ranks and micro-batches of a step.
        key: The key of the epoch.

    Returns:
        The priced portions, and the steps of the epoch.
    """
    batching, steps = settled.batching, settled.steps
    portions, attempt = None, 0
    while portions is None:
        steps = None if attempt == _ATTEMPTS else steps
        portions = cut_portions(items, kinds, settled, world, key, steps=steps, attempt=attempt)
        attempt += 1
    if steps is None:
        steps = count_steps(portions, batching.deal, world)
    portions = cut_to_steps(portions, batching, world, steps)
    portions = [put_alone(portion, items.lengths, multiple=length_multiple(batching.cut)) for portion in portions]
    portions = [add_costs(portion, batching.cut, batching.cost, batching.balance) for portion in portions]
    return [add_buckets(portion, batching) for portion in portions], steps


def cut_portions(
    items: Items, kinds: Kinds, settled: Settled, world: World, key: Key, *, steps: int | None = None, attempt: int = 0
) -> list[Portion] | None:
    """Orders and cuts every portion. Returns None if they need more than `steps`, or fill fewer and the tail drops.

    Args:
        items: The items of the epoch.
        kinds: The items that stand alone, and those that are left out.
        settled: The choices.
        world: The ranks and micro-batches of a step.
        key: The key of the epoch.
        steps: The steps to fill; None for the fewest.
        attempt: The number of earlier attempts at this epoch.
    """
    deal = settled.batching.deal
    parts = _deal_items(len(items.lengths), deal, world, key.at("portions", lane=attempt))
    alone = [_select(numbers, kinds.alone) if kinds.giant_count else np.empty(0, np.int64) for numbers in parts]
    members = [_select(numbers, kinds.ordered) if kinds.giant_count else numbers for numbers in parts]
    del parts  # kept during the sort, these numbers would be a third of the memory
    portions: list[Portion] = []
    for number in range(len(members)):
        portion_key = key.at("order", lane=attempt * len(members) + number)
        portion = cut_portion(items, members[number], settled, portion_key, slots=world.slots, steps=steps)
        if portion is None:
            return None
        portions.append(portion._replace(alone=alone[number]))
    too_many = steps is not None and deal.tail != "drop" and count_steps(portions, deal, world) > steps
    return None if too_many else portions


def count_steps(portions: Sequence[Portion], deal: Deal, world: World) -> int:
    """Counts the steps that the batches of the largest portion fill, by `count_whole_steps`."""
    most = max(portion.batch_count for portion in portions)
    return count_whole_steps(most, world.slots // len(portions), deal.tail)


def cut_to_steps(portions: Sequence[Portion], batching: Batching, world: World, steps: int) -> list[Portion]:
    """Cuts the portions again, into as many batches as fill `steps`. Random steps are whole already, and stay."""
    if batching.takes_random_steps:
        return list(portions)
    tail, places = batching.deal.tail, world.slots // len(portions)
    if tail != "split" and getattr(batching.cut, "drop_incomplete", False):  # all batches are full, and stay so
        return list(portions)
    # A tail that repeats fills the last step itself, as long as that has one batch.
    least = steps * places - (places - 1 if tail == "repeat" else 0)

    def cut(portion: Portion) -> Portion:
        exact = portion.limits is not None or type(batching.cut) is Rows
        # As many are cut again too, so that they cost about the same.
        must_cut = portion.batch_count < least or (exact and tail != "repeat" and portion.batch_count == least)
        return cut_again(portion, batching, least - len(portion.alone)) if must_cut else portion

    return [cut(portion) for portion in portions]


def count_portions(deal: Deal, count: int, world: World) -> int:
    """Counts the portions that a deal makes of `count` items."""
    if isinstance(deal, Portions):
        return world.world_size
    return len(_deal_items(count, deal, world, Key(stage="portions")))


def _deal_items(count: int, deal: Deal, world: World, key: Key) -> list[NDArray[np.int64] | None]:
    """Returns the numbers of the items of each portion; None for all items in order, so that no list is needed."""
    if not is_custom(deal) and not isinstance(deal, Portions):  # no other deal of this package has more than one
        return [None]
    portions = deal.portions(count, world, key)
    if is_custom(deal):
        portions = check_portions(portions, count, world)
    return [None if len(numbers) == count and (numbers[1:] > numbers[:-1]).all() else numbers for numbers in portions]


def _select(numbers: NDArray[np.int64] | None, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns the `numbers` of those items that the `mask` [n] marks; None stands for all items."""
    return np.flatnonzero(mask) if numbers is None else numbers[mask[numbers]]


def complete_steps(
    portions: Sequence[Portion], places: int, steps: int, *, tail: str, keys: Sequence[Key]
) -> tuple[Portion, NDArray[np.int64]]:
    """Brings all portions to the same number of batches: leaves some out at random, or repeats the cheapest.

    Args:
        portions: The batches of each portion; too many only if the tail drops.
        places: The batches of each portion in a step.
        steps: The steps to fill.
        tail: The policy for a last step that is not full.
        keys: One for each portion, to draw the batches that are dropped.

    Returns:
        All batches, and the numbers of those in use, [portions, steps x places]; some may stand twice.

    Raises:
        ValueError: There are too many batches, and the tail does not drop: a fault of this package.
    """
    # Single sequences cannot be split: a portion may have too few batches.
    batches = join(portions)
    wanted = steps * places if len(batches.costs) else 0  # an epoch may take nothing
    if tail != "drop" and (most := max(len(portion.costs) for portion in portions)) > wanted:
        remedy = "No sequence may be lost: please report this batching with its lengths."
        raise checks.state_error(f"The plan has {most} batches for {wanted} places", remedy)
    borders = np.cumsum([0] + [len(portion.costs) for portion in portions])
    numbers = [
        _complete(np.arange(start, stop), batches.balances, wanted, key)
        for start, stop, key in zip(borders[:-1], borders[1:], keys, strict=True)
    ]
    return batches, np.stack(numbers)


def count_whole_steps(batches: int, places: int, tail: str) -> int:
    """Counts the steps of `places` batches each; a last one that is not full counts unless the tail drops."""
    return batches // places if tail == "drop" else -(-batches // places)


def split_batches(batches: Portion, slots: int, batching: Batching) -> Portion:
    """Halves the batches with the most sequences until all steps are full; the halves keep their batch's bucket."""
    wanted = slots * count_whole_steps(len(batches.costs), slots, batching.deal.tail)
    if wanted <= len(batches.costs) or batching.deal.tail != "split":
        return batches
    offsets = split_largest(batches.offsets, wanted)
    # Offsets [0, 2, 6] split to [0, 2, 4, 6] come from the batches [0, 1, 1].
    origins = np.searchsorted(batches.offsets, offsets[:-1], side="right") - 1
    lengths = None if batches.bucket_lengths is None else batches.bucket_lengths[origins]
    return add_costs(
        batches._replace(offsets=offsets, bucket_lengths=lengths), batching.cut, batching.cost, batching.balance
    )


def _complete(numbers: NDArray[np.int64], costs: NDArray[np.float64], wanted: int, key: Key) -> NDArray[np.int64]:
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
    batches: Portion, numbers: NDArray[np.int64], world: World, batching: Batching, *, deal: Key, arrange: Key
) -> NDArray[np.int64]:
    """Deals the batches `numbers` and arranges the steps: returns the grid, [steps, micro_batches, ranks].

    Args:
        deal: The key of the deal.
        arrange: The key of the order of the steps.
    """
    grid = batching.deal.grid(numbers, batches.balances, world, deal)
    if is_custom(batching.deal):
        grid = check_grid(grid, numbers, world)
    steps = grid.reshape(len(grid), world.slots)
    # An arrangement sees the costliest batch of each step, which must fit into memory, and the step's mean length.
    costliest = batches.costs[steps].max(axis=1, initial=0.0)
    order = batching.arrange(costliest, batches.lengths[steps].sum(axis=1) / world.slots, arrange)
    return grid[check_arrangement(order, len(grid)) if is_custom(batching.arrange) else order]


def in_grid(batches: Portion, grid: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Marks the batches that stand in the grid: [batches]."""
    used = np.zeros(len(batches.costs), bool)
    used[grid.reshape(-1)] = True
    return used

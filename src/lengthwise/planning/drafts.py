"""Drafts: orders all items, or each rank's portion, and cuts them into enough batches to fill whole steps.

A giant is an item that alone costs more than the budget. It would widen the noise, stretch the buckets, and leave a
short batch on either side. So the order is fitted without giants. They are dropped or stand alone, but for two cases
that `sort_out` names.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise._random import Key
from lengthwise.choices.arithmetic import distinct, length_multiple, longest_of, round_up
from lengthwise.choices.batching import Batching, is_custom
from lengthwise.choices.cost import costs_alone
from lengthwise.choices.cut import oversize_of
from lengthwise.choices.deal import Deal, Portions, World
from lengthwise.choices.order import pads_to_edge
from lengthwise.choices.rows import Rows
from lengthwise.planning.batches import count_wanted
from lengthwise.planning.custom import check_portions
from lengthwise.planning.draft import Draft, Fitted, cut_again, draft
from lengthwise.planning.items import Items


class Kinds(NamedTuple):
    """Masks [n] of the items, by their cost. Items that are neither ordered nor alone are dropped.

    Attributes:
        ordered: Put in order.
        alone: In a batch of their own.
        fitted: Ordered, and no giants: the order is fitted to these.
        over: The number of giants. If there are none, all items are ordered and fitted.
    """

    ordered: NDArray[np.bool_]
    alone: NDArray[np.bool_]
    fitted: NDArray[np.bool_]
    over: int


def sort_out(lengths: NDArray[np.int64], batching: Batching) -> Kinds:
    """Divides items into kinds, by their lengths [n, dims] and by the `oversize` policy of the cut.

    With "alone", a giant stays among the ordered in two cases. If batches are padded to the edges of buckets, the last
    bucket is for giants. In random steps a giant fills one batch of a step.
    """
    # Each mask is one byte, broadcast to all items: most plans need no more.
    everything, nothing = (np.broadcast_to(np.array(value), len(lengths)) for value in (True, False))
    policy = oversize_of(batching.cut)
    # A user's cut may have policies that only the cut knows.
    if policy not in ("alone", "drop") or not len(lengths):
        return Kinds(everything, nothing, everything, 0)
    if isinstance(batching.cut, Rows):
        over = lengths.max(axis=1) > batching.cut.capacity
    else:
        needed = round_up(lengths, length_multiple(batching.cut))
        over = costs_alone(batching.cost, needed) > batching.cut.max_cost(batching.cost, longest_of(lengths))
    if policy == "alone" and (pads_to_edge(batching.order) or batching.takes_random_steps):
        return Kinds(everything, nothing, ~over, int(over.sum()))
    return Kinds(~over, over if policy == "alone" else nothing, ~over, int(over.sum()))


class Portion(NamedTuple):
    """A portion of the items: those in order and cut, and those that stand alone, [k]."""

    draft: Draft
    alone: NDArray[np.int64]

    @property
    def batches(self) -> int:
        return len(self.draft.offsets) - 1 + len(self.alone)


def put_alone(portion: Portion, lengths: NDArray[np.int64], *, multiple: int) -> Draft:
    """Puts each item that stands alone in a batch of its own, next to the batch with the longest other item.

    So sorted batches stay sorted: the new ones come last if lengths rise, and first if they fall. Each item is padded
    to the next `multiple`.
    """
    ordered, alone = portion
    if not len(alone):
        return ordered
    rising = alone[np.argsort(lengths[alone].sum(axis=1), kind="stable")]
    batches = len(ordered.offsets) - 1
    place = batches
    if batches:
        longest = int(ordered.needed.sum(axis=1).argmax())
        # Offsets [0, 3, 5], the longest at position 4: it is in batch 1, and the giants go to place 2.
        place = int(np.searchsorted(ordered.offsets, longest, side="right"))
        # The longest is in the first of several batches: lengths fall, and giants stand in front.
        if place == 1 and batches > 1:
            place, rising = 0, rising[::-1]
    at = ordered.offsets[place]
    # Two items put in at place 1 of the offsets [0, 3, 5]: [0, 3, 4, 5, 7].
    offsets = np.concatenate(
        [ordered.offsets[:place], at + np.arange(len(alone)), ordered.offsets[place:] + len(alone)]
    )
    return ordered._replace(
        members=np.insert(ordered.members, at, rising),
        offsets=offsets,
        boundaries=_boundaries_around(ordered.boundaries, int(at), len(alone), int(offsets[-1])),
        needed=np.insert(ordered.needed, at, round_up(lengths[rising], multiple), axis=0),
    )


def _boundaries_around(boundaries: NDArray[np.int64], at: int, alone: int, members: int) -> NDArray[np.int64]:
    """Adds `alone` buckets of one item each before position `at`, and moves the borders of later buckets.

    >>> _boundaries_around(np.array([4, 8]), 8, 2, 12)  # two of them where the third bucket began
    array([ 4,  8,  9, 10])
    """
    if not len(boundaries):
        return boundaries
    around = np.concatenate(
        [boundaries[boundaries <= at], at + np.arange(alone + 1), boundaries[boundaries > at] + alone]
    )
    return distinct(around[(around > 0) & (around < members)])


def draft_portions(
    items: Items,
    kinds: Kinds,
    fitted: Fitted,
    world: World,
    key: Key,
    *,
    steps: int | None = None,
    draw: int = 0,
) -> list[Portion] | None:
    """Orders and cuts every portion. Returns None if they need more than `steps`, or fill fewer and the tail drops.

    Args:
        items: The items of the epoch.
        kinds: The items that stand alone, and those that are left out.
        fitted: The choices.
        world: The ranks and micro-batches of a step.
        key: The key of the epoch.
        steps: The steps to fill; None for the fewest.
        draw: The number of earlier draws of this epoch.
    """
    deal, count = fitted.batching.deal, len(items.lengths)
    portions = _deal_portions(count, deal, world, key.at("portions", lane=draw))
    alone = [_choose(portion, kinds.alone) if kinds.over else np.empty(0, np.int64) for portion in portions]
    members = [_choose(portion, kinds.ordered) if kinds.over else portion for portion in portions]
    del portions  # kept during the sort, these numbers would be a third of the memory
    drafted: list[Portion] = []
    for number, (portion, giants) in enumerate(zip(members, alone, strict=True)):
        lane = key.at("order", lane=draw * len(members) + number)
        cut = draft(items, portion, fitted, lane, slots=world.slots, steps=steps)
        if cut is None:
            return None
        drafted.append(Portion(cut, giants))
    too_many = steps is not None and deal.tail != "drop" and count_steps(drafted, deal, world) > steps
    return None if too_many else drafted


def count_steps(portions: list[Portion], deal: Deal, world: World) -> int:
    """Counts the steps that the portions' batches fill; a last step that is not full counts unless the tail drops."""
    places = world.slots // len(portions)
    return count_wanted([portion.batches for portion in portions], places, deal.tail) // places


def fill_steps(portions: list[Portion], batching: Batching, world: World, *, steps: int | None = None) -> list[Portion]:
    """Cuts the portions into as many batches as fill `steps`; by default the steps that `count_steps` counts.

    Random steps are whole already, and stay.
    """
    if batching.takes_random_steps:
        return portions
    tail, places = batching.deal.tail, world.slots // len(portions)
    steps = count_steps(portions, batching.deal, world) if steps is None else steps
    # A tail that repeats fills the last step itself, as long as that has one batch.
    least = steps * places - (places - 1 if tail == "repeat" else 0)

    def fill(portion: Portion) -> Portion:
        exact = portion.draft.limits is not None or type(batching.cut) is Rows
        must_cut = portion.batches < least or (exact and tail != "repeat" and portion.batches == least)
        if not must_cut:
            return portion
        return portion._replace(draft=cut_again(portion.draft, batching, least - len(portion.alone)))

    return [fill(portion) for portion in portions]


def count_portions(deal: Deal, count: int, world: World) -> int:
    """Counts the portions that a deal makes of `count` items."""
    if isinstance(deal, Portions):
        return world.world_size
    return len(_deal_portions(count, deal, world, Key(stage="portions")))


def _deal_portions(count: int, deal: Deal, world: World, key: Key) -> list[NDArray[np.int64] | None]:
    """Returns the items of each portion; None stands for all items in order, so that no list is needed."""
    if not is_custom(deal) and not isinstance(deal, Portions):  # no other deal of this package has more than one
        return [None]
    portions = deal.portions(count, world, key)
    if is_custom(deal):
        portions = check_portions(portions, count, world)
    return [None if _is_all(portion, count) else portion for portion in portions]


def _is_all(portion: NDArray[np.int64], count: int) -> bool:
    return len(portion) == count and bool((portion[1:] > portion[:-1]).all())


def _choose(portion: NDArray[np.int64] | None, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns the items of a portion that are `chosen` [n]."""
    return np.flatnonzero(chosen) if portion is None else portion[chosen[portion]]

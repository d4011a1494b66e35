"""Drafts: all sequences, or each rank's own, in order and cut, with as many batches as fill whole steps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise._random import Key
from lengthwise.choices.batching import Batching
from lengthwise.choices.deal import Deal, Portions
from lengthwise.choices.multiples import length_multiple
from lengthwise.choices.order import Order
from lengthwise.choices.rows import Rows
from lengthwise.choices.world import World
from lengthwise.planning.custom import check_portions, is_custom
from lengthwise.planning.draft import Draft, cut_again, draft
from lengthwise.planning.oversize import Kinds, put_alone
from lengthwise.planning.tail import count_wanted


class Portion(NamedTuple):
    """A portion of the sequences: those in order and cut, and those that each stand in a batch of their own."""

    draft: Draft
    alone: NDArray[np.int64]

    @property
    def batches(self) -> int:
        return len(self.draft.offsets) - 1 + len(self.alone)


def draft_portions(
    items: NDArray[np.int64],
    kinds: Kinds,
    batching: Batching,
    order: Order,
    world: World,
    key: Key,
    *,
    bands: tuple[int, ...],
    steps: int | None = None,
    draw: int = 0,
    groups: NDArray[np.int64] | None = None,
) -> list[Portion] | None:
    """Every portion in order, and cut; None if they are more than `steps` hold, or fewer than they drop from.

    Args:
        items: [n, dims].
        kinds: Which of them stand alone, and which are left out.
        batching: The choices, all of them made.
        order: Fitted.
        world: What a step is shared out to.
        key: Of the epoch.
        bands: As `draft` takes them.
        steps: How many there are to be; None for as many as the sequences fill.
        draw: Which of several draws of the same epoch.
        groups: [n], of which no batch mixes two; None for one group.
    """
    portions = _deal_portions(len(items), batching.deal, world, key.at("portions", lane=draw))
    alone = [_choose(portion, kinds.alone) if kinds.over else np.empty(0, np.int64) for portion in portions]
    members = [_choose(portion, kinds.ordered) if kinds.over else portion for portion in portions]
    del portions  # the numbers of all sequences, while these are sorted, would be a third of the memory
    made: list[Portion] = []
    for number, (own, giants) in enumerate(zip(members, alone, strict=True)):
        lane = key.at("order", lane=draw * len(members) + number)
        options: dict[str, Any] = {"slots": world.slots, "bands": bands, "steps": steps, "groups": groups}
        drafted = draft(items, own, batching, order, lane, **options)
        if drafted is None:
            return None
        made.append(Portion(drafted, giants))
    too_many = steps is not None and batching.deal.tail != "drop" and count_steps(made, batching, world) > steps
    return None if too_many else made


def count_steps(portions: list[Portion], batching: Batching, world: World) -> int:
    """How many steps the batches of the portions fill; where the tail drops, without the last if it is not full."""
    places = world.slots // len(portions)
    return count_wanted([portion.batches for portion in portions], places, batching.deal.tail) // places


def fill_steps(
    portions: list[Portion], items: NDArray[np.int64], batching: Batching, world: World, *, steps: int | None = None
) -> list[Draft]:
    """The drafts, with as many batches as fill whole steps, and what stands alone in batches of its own.

    Random steps are whole already.
    """
    multiple, tail = length_multiple(batching.cut), batching.deal.tail
    wanted = (steps or count_steps(portions, batching, world)) * (world.slots // len(portions))

    # Where the tail repeats, those that are taken again fill no more than one step.
    least = wanted - (world.slots // len(portions)) + 1 if tail == "repeat" else wanted

    def fill(portion: Portion) -> Draft:
        own, exact = portion.draft, portion.draft.limits is not None or type(batching.cut) is Rows
        if portion.batches < least or (exact and tail != "repeat" and portion.batches == wanted):
            own = cut_again(own, batching, least - len(portion.alone))
        return put_alone(own, portion.alone, items, multiple=multiple)

    if batching.takes_random_steps:
        return [put_alone(own, alone, items, multiple=multiple) for own, alone in portions]
    return [fill(portion) for portion in portions]


def count_portions(deal: Deal, count: int, world: World) -> int:
    """In how many portions a deal wants so many sequences."""
    if isinstance(deal, Portions):
        return world.world_size
    return len(_deal_portions(count, deal, world, Key(stage="portions")))


def _deal_portions(count: int, deal: Deal, world: World, key: Key) -> list[NDArray[np.int64] | None]:
    """The sequences of each portion; None for all, as they are numbered: none is looked up then."""
    if not is_custom(deal) and not isinstance(deal, Portions):  # no other deal of this package has more than one
        return [None]
    portions = deal.portions(count, world, key)
    if is_custom(deal):
        portions = check_portions(portions, count, world)
    return [None if len(each) == count and bool((each[1:] > each[:-1]).all()) else each for each in portions]


def _choose(portion: NDArray[np.int64] | None, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The sequences of a portion that are `chosen` [n]."""
    return np.flatnonzero(chosen) if portion is None else portion[chosen[portion]]

"""Drafts: all sequences, or each rank's own, in order and cut, with as many batches as fill whole steps.

Sequences that are over the budget by themselves leave before the order is fitted to the others. A giant would widen the
noise, stretch the buckets, and leave a short batch on either side of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise._random import Key
from lengthwise.choices.arithmetic import distinct, length_multiple, longest_of, round_up
from lengthwise.choices.batching import Batching, is_custom
from lengthwise.choices.cost import costs_alone
from lengthwise.choices.cut import OversizeError, oversize_of, row_capacity
from lengthwise.choices.deal import Deal, Portions, World
from lengthwise.choices.order import Order, pads_to_edge
from lengthwise.choices.rows import Rows
from lengthwise.planning.batches import count_wanted
from lengthwise.planning.custom import check_portions
from lengthwise.planning.draft import Draft, cut_again, draft


class Kinds(NamedTuple):
    """Which of the sequences are `ordered`, and which stand `alone`, [n] each; those that are neither are dropped.

    The order is `fitted` to some of the `ordered`: to all that are within the budget by themselves. `over` of them are
    not; where that is 0, all are ordered and fitted.
    """

    ordered: NDArray[np.bool_]
    alone: NDArray[np.bool_]
    fitted: NDArray[np.bool_]
    over: int


def sort_out(items: NDArray[np.int64], batching: Batching) -> Kinds:
    """Sorts out the sequences that a cut with `oversize` "alone" or "drop" will not share a batch with others.

    Where batches are padded to the edges of buckets, one that stands alone is padded to an edge too. So there it stays
    with the others; the last edge is for such sequences alone, and the others are fitted without them. So it does
    where whole steps are taken: there it fills one of the batches of a step.
    """
    # Each is one byte for all of them: most plans want no more.
    everything, nothing = (np.broadcast_to(np.array(each), len(items)) for each in (True, False))
    policy = oversize_of(batching.cut)
    # A cut of the user's may have other policies, and keeps them to itself.
    if policy not in ("alone", "drop") or not len(items):
        return Kinds(everything, nothing, everything, 0)
    if (capacity := row_capacity(batching.cut)) is not None:
        over = items.max(axis=1) > capacity
    else:
        needed = round_up(items, length_multiple(batching.cut))
        over = costs_alone(batching.cost, needed) > batching.cut.max_cost(batching.cost, longest_of(items))
    if policy == "alone" and (pads_to_edge(batching.order) or batching.takes_random_steps):
        return Kinds(everything, nothing, ~over, int(over.sum()))
    return Kinds(~over, over if policy == "alone" else nothing, ~over, int(over.sum()))


def put_alone(ordered: Draft, alone: NDArray[np.int64], items: NDArray[np.int64], *, multiple: int = 1) -> Draft:
    """The draft with each sequence of `alone` in a batch of its own, beside the batch of the longest of the others.

    In sorted order the batches stay sorted so: behind the last batch where lengths rise, before the first where they
    fall. In any other order the longest is anywhere, and so are they. Each is padded to the next `multiple`.
    """
    if not len(alone):
        return ordered
    rising = alone[np.argsort(items[alone].sum(axis=1), kind="stable")]
    batches = len(ordered.offsets) - 1
    place = batches
    if batches:
        longest = int(ordered.needed.sum(axis=1).argmax())
        # Offsets [0, 3, 5], the longest at position 4: it is in batch 1, and what stands alone goes to place 2.
        place = int(np.searchsorted(ordered.offsets, longest, side="right"))
        # The longest in the first of several batches: lengths fall, so what is longer still goes before it.
        if place == 1 and batches > 1:
            place, rising = 0, rising[::-1]
    at = ordered.offsets[place]
    # Two sequences put in at place 1 of the offsets [0, 3, 5]: [0, 3, 4, 5, 7].
    offsets = np.concatenate(
        [ordered.offsets[:place], at + np.arange(len(alone)), ordered.offsets[place:] + len(alone)]
    )
    return ordered._replace(
        members=np.insert(ordered.members, at, rising),
        offsets=offsets,
        boundaries=_boundaries_around(ordered.boundaries, int(at), len(alone), int(offsets[-1])),
        needed=np.insert(ordered.needed, at, round_up(items[rising], multiple), axis=0),
    )


def name_sequence(error: OversizeError, numbers: NDArray[np.int64]) -> OversizeError:
    """The error with the number that the user knows: sequence k of what was planned has `numbers[k]`.

    `numbers` [n] are those of sequences, or [n, 3] the spans of chunks: (sequence, start, stop).
    """
    # Only what says something: a cut of the user's may raise an error of its own class.
    known: dict[str, Any] = {} if error.mean_cost is None else {"mean_cost": error.mean_cost}
    if error.span is not None:
        known["span"] = error.span
    if error.sequence is not None:
        sequence, *span = np.atleast_1d(numbers[error.sequence]).tolist()
        known |= {"sequence": sequence} | ({"span": tuple(span)} if span else {})
    return type(error)(error.budget, error.cost, error.position, **known)


def _boundaries_around(boundaries: NDArray[np.int64], at: int, alone: int, members: int) -> NDArray[np.int64]:
    """The borders of the buckets, with `alone` buckets of one sequence each put in before position `at`.

    >>> _boundaries_around(np.array([4, 8]), 8, 2, 12)  # two of them where the third bucket began
    array([ 4,  8,  9, 10])
    """
    if not len(boundaries):
        return boundaries
    around = np.concatenate(
        [boundaries[boundaries <= at], at + np.arange(alone + 1), boundaries[boundaries > at] + alone]
    )
    return distinct(around[(around > 0) & (around < members)])


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

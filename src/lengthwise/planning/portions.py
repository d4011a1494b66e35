"""Portions: all sequences, or each rank's own, drafted by an order that is fitted once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lengthwise._random import Key
from lengthwise.choices.batching import Batching
from lengthwise.choices.deal import Deal, Portions
from lengthwise.choices.multiples import length_multiple
from lengthwise.choices.order import Order
from lengthwise.choices.world import World
from lengthwise.planning.custom import check_portions, is_custom
from lengthwise.planning.draft import Draft, draft
from lengthwise.planning.fit import Fit, choose_bands, fit_order
from lengthwise.planning.level import level
from lengthwise.planning.missed import tell_doubted_budget, tell_missed_request
from lengthwise.planning.oversize import Kinds, put_alone, sort_out
from lengthwise.planning.shared_fit import Fitted
from lengthwise.planning.trial import Data, fill_steps


def draft_portions(
    items: NDArray[np.int64], batching: Batching, world: World, key: Key, *, data: Data, fitted: Fitted | None
) -> list[Draft]:
    """One draft for each portion: its sequences in order, and cut; what is over the budget alone, or left out.

    `data` is what the order is fitted to: the items; or, where epochs take other copies, the same for all of them.
    `fitted` is what was fitted before, to a sample of windows.
    """
    kinds = sort_out(items, batching)
    tell_doubted_budget(kinds.over, items, batching, name=data.name)
    portions = _deal_portions(len(items), batching.deal, world, key)
    alone = [_choose(portion, kinds.alone) if kinds.over else np.empty(0, np.int64) for portion in portions]
    members = [_choose(portion, kinds.ordered) if kinds.over else portion for portion in portions]
    del portions  # the numbers of all sequences, while these are sorted, would be a third of the memory
    keys = [key.at("order", lane=lane) for lane in range(len(members))]
    to_fit = kinds if data.items is items else sort_out(data.items, batching)
    fit, bands = _fit(data, to_fit, batching, world, len(members), fitted)

    def draft_by(order: Order) -> list[Draft]:
        return [
            draft(items, own, batching, order, lane, slots=world.slots, bands=bands)
            for own, lane in zip(members, keys, strict=True)
        ]

    def fill_by(order: Order) -> list[Draft]:
        return fill_steps(draft_by(order), batching, world.slots // len(members), alone=sum(map(len, alone)))

    drafts = draft_by(fit.order)
    tell_missed_request(fit.achieved, items, batching, fill_by, name=data.name, world=world)
    # Portions differ in their number of batches: cutting one of them smaller would only give all ranks more steps.
    if len(drafts) == 1:
        drafts = [level(drafts[0], batching, world.slots, beside=len(alone[0]))]
    multiple = length_multiple(batching.cut)
    return [put_alone(one, giants, items, multiple=multiple) for one, giants in zip(drafts, alone, strict=True)]


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


def _fit(
    data: Data, kinds: Kinds, batching: Batching, world: World, portions: int, fitted: Fitted | None
) -> tuple[Fit, tuple[int, ...]]:
    """The fitted order and the bands; what a sample of windows has settled is taken."""
    if fitted is None:
        bands = choose_bands(data, kinds, batching, portions=portions, slots=world.slots)
    else:
        bands = fitted.bands
    if fitted is not None and fitted.fit is not None:
        return fitted.fit, bands
    return fit_order(data, kinds, batching, portions=portions, bands=bands, places=world.slots // portions), bands

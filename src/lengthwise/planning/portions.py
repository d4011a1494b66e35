"""Portions: all sequences, or each rank's own, drafted by an order that is fitted once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lengthwise._random import Key
from lengthwise.choices.batching import Batching
from lengthwise.choices.order import Bucketed, Order
from lengthwise.choices.world import World
from lengthwise.planning.draft import Draft, draft
from lengthwise.planning.missed import tell_missed_padding
from lengthwise.planning.oversize import Kinds, put_alone, sort_out
from lengthwise.planning.own import check_batch_sizes, check_portions, is_own


def draft_portions(items: NDArray[np.int64], batching: Batching, world: World, key: Key) -> list[Draft]:
    """One draft for each portion: its sequences in order, and cut; what is over the budget alone, or left out."""
    portions = batching.deal.portions(len(items), world, key)
    if is_own(batching.deal):
        portions = check_portions(portions, len(items), world)
    kinds = sort_out(items, batching)
    members = [portion[kinds.ordered[portion]] for portion in portions]
    keys = [key.at("order", lane=lane) for lane in range(len(portions))]

    def draft_by(order: Order) -> list[Draft]:
        return [draft(items, own, batching, order, world.slots, lane) for own, lane in zip(members, keys, strict=True)]

    drafts = draft_by(_fit_order(items, kinds, batching, len(portions)))
    tell_missed_padding(drafts, items, batching, draft_by)
    alone = [portion[kinds.alone[portion]] for portion in portions]
    return [put_alone(one, giants, items) for one, giants in zip(drafts, alone, strict=True)]


def _fit_order(items: NDArray[np.int64], kinds: Kinds, batching: Batching, portions: int) -> Order:
    """The order, fitted once; of several buckets to pad to, the last is kept for what is over the budget by itself.

    Three uniform buckets over 10, 20 and a giant of 900 would be padded to 306, 603 and 900; so they are 15, 20, 900.
    """
    giants, order = kinds.ordered & ~kinds.fitted, batching.order
    if not (giants.any() and kinds.fitted.any() and isinstance(order, Bucketed) and (order.buckets or 1) > 1):
        return _fit(items[kinds.ordered], batching, portions)
    fewer = replace(order, buckets=(order.buckets or 1) - 1)
    fitted = _fit(items[kinds.fitted], replace(batching, order=fewer), portions)
    edges = {*(getattr(fitted, "edges", None) or ()), int(items[giants].sum(axis=1).max())}
    return Bucketed(edges=tuple(sorted(edges)), pad_to_edge=order.pad_to_edge)


def _fit(items: NDArray[np.int64], batching: Batching, portions: int) -> Order:
    """The order, fitted to `items` where it has something to fit."""
    fit = getattr(batching.order, "fit", None)
    if fit is None or not len(items):
        return batching.order
    longest = items.max(axis=0)
    shares = items.sum(axis=0) / items.sum()  # of each dimension in the size of a sequence

    def batch_sizes(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        lengths = np.ceil(np.outer(sizes, shares)).astype(np.int64)
        found = batching.cut.batch_sizes(lengths, cost=batching.cost, longest=longest)
        return check_batch_sizes(found, len(lengths)) if is_own(batching.cut) else found

    return fit(items.sum(axis=1).astype(np.float64), batch_sizes, portions=portions)

"""Drafts: the members of each portion in order, and cut; not yet padded, not yet dealt."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _checks
from lengthwise._random import Key
from lengthwise.batching import Batching
from lengthwise.cut import OversizeError
from lengthwise.deal import batches_wanted, fill, split_largest
from lengthwise.lengths import fingerprint
from lengthwise.order import Order, Shuffled, Sorted
from lengthwise.planning.batches import Batches, joined, padded
from lengthwise.planning.missed import Had, is_first, is_missed, tell_missed
from lengthwise.planning.oversize import Kinds, sort_out


class Draft(NamedTuple):
    """Members in order, cut; `needed` [k, dims] is what each must be padded to, `walls` the borders of buckets."""

    members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    walls: NDArray[np.int64]
    needed: NDArray[np.int64]


def drafts(items: NDArray[np.int64], batching: Batching, world_size: int, key: Key) -> list[Draft]:
    """One draft for each portion of the sequences, all of them by an order that was fitted once."""
    portions = batching.deal.portions(len(items), world_size, key)
    parts = [(portion, key.at("order", lane=lane)) for lane, portion in enumerate(portions)]
    kinds = sort_out(items, batching)
    order = _fitted(items[kinds.ordered], batching, len(portions))
    ordered = [draft(items, portion[kinds.ordered[portion]], batching, order, lane) for portion, lane in parts]
    _tell_missed_padding(ordered, items, batching, parts, kinds)
    return [
        _with_alone(one, portion[kinds.alone[portion]], items) for one, (portion, _) in zip(ordered, parts, strict=True)
    ]


def _fitted(items: NDArray[np.int64], batching: Batching, portions: int) -> Order:
    """The order, fitted to all sequences of the plan where it has something to fit."""
    fit = getattr(batching.order, "fit", None)
    if fit is None or not len(items):
        return batching.order
    longest = items.max(axis=0)
    shares = items.sum(axis=0) / items.sum()  # of each dimension in the size of a sequence

    def batch_sizes(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
        lengths = np.ceil(np.outer(sizes, shares)).astype(np.int64)
        return batching.cut.batch_sizes(lengths, cost=batching.cost, longest=longest)

    return fit(items.sum(axis=1).astype(np.float64), batch_sizes, portions=portions)


def _tell_missed_padding(
    ordered: list[Draft],
    items: NDArray[np.int64],
    batching: Batching,
    parts: list[tuple[NDArray[np.int64], Key]],
    kinds: Kinds,
) -> None:
    """Warns where the order was to spend a padding that these sequences do not allow."""
    asked = getattr(batching.order, "padding", None)
    if asked is None or not is_missed(asked, had := _had(ordered, items)):
        return
    if not is_first((batching.to_json(), fingerprint(items))):
        return
    members = [(portion[kinds.ordered[portion]], key) for portion, key in parts]
    least, most = (
        _had([draft(items, own, batching, order, key) for own, key in members], items).padding
        for order in (Sorted(), Shuffled())
    )
    tell_missed(asked, had, least=least, most=most)


def _had(drafts: list[Draft], items: NDArray[np.int64]) -> Had:
    """What the drafts pad."""
    useful = sum(int(items[draft.members].sum()) for draft in drafts)
    longest = [np.maximum.reduceat(draft.needed, draft.offsets[:-1]) for draft in drafts if len(draft.members)]
    sizes = [np.diff(draft.offsets) for draft in drafts if len(draft.members)]
    computed = sum(int(counts @ lengths.sum(axis=1)) for counts, lengths in zip(sizes, longest, strict=True))
    padding = 1.0 - useful / computed if computed else 0.0
    return Had(padding, sum(map(len, sizes)), items.shape[1])


def draft(items: NDArray[np.int64], members: NDArray[np.int64], batching: Batching, order: Order, key: Key) -> Draft:
    """The sequences `members`, ordered and cut."""
    if not len(members):
        none = np.empty(0, np.int64)
        return Draft(members, np.zeros(1, np.int64), none, items[members])
    own = items[members]
    sequences, walls, edges = order(own.sum(axis=1).astype(np.float64), key)
    needed = own[sequences] if edges is None else np.maximum(one_length(own)[sequences], edges)[:, None]
    # An edge may be longer than any sequence.
    longest = np.maximum(items.max(axis=0), needed.max(axis=0, initial=0))
    try:
        kept, offsets = batching.cut(needed, walls, cost=batching.cost, longest=longest)
    except OversizeError as error:
        sequence = int(members[sequences[error.position]])
        raise OversizeError(error.budget, error.cost, error.position, sequence=sequence) from None
    return Draft(members[sequences[kept]], offsets, np.searchsorted(kept, walls), needed[kept])


def _with_alone(ordered: Draft, alone: NDArray[np.int64], items: NDArray[np.int64]) -> Draft:
    """The draft with each sequence of `alone` in a batch of its own, beside the batch of the longest of the others.

    In sorted order the batches stay sorted so: behind the last batch where lengths rise, before the first where they
    fall. In any other order the longest is anywhere, and so are they.
    """
    if not len(alone):
        return ordered
    rising = alone[np.argsort(items[alone].sum(axis=1), kind="stable")]
    batches = len(ordered.offsets) - 1
    place = batches
    if batches:
        longest = int(ordered.needed.sum(axis=1).argmax())
        place = int(np.searchsorted(ordered.offsets, longest, side="right"))
        if place == 1 and batches > 1:
            place, rising = 0, rising[::-1]
    at = ordered.offsets[place]
    offsets = np.concatenate(
        [ordered.offsets[:place], at + np.arange(len(alone)), ordered.offsets[place:] + len(alone)]
    )
    return Draft(
        np.insert(ordered.members, at, rising),
        offsets,
        _walls_around(ordered.walls, int(at), len(alone), int(offsets[-1])),
        np.insert(ordered.needed, at, items[rising], axis=0),
    )


def _walls_around(walls: NDArray[np.int64], at: int, alone: int, members: int) -> NDArray[np.int64]:
    """The borders of the buckets, with `alone` buckets of one sequence each put in before position `at`.

    >>> _walls_around(np.array([4, 8]), 8, 2, 12)  # two of them where the third bucket began
    array([ 4,  8,  9, 10])
    """
    if not len(walls):
        return walls
    around = np.concatenate([walls[walls <= at], at + np.arange(alone + 1), walls[walls > at] + alone])
    return np.unique(around[(around > 0) & (around < members)])


def longest_needed(items: NDArray[np.int64], drafts: list[Draft]) -> NDArray[np.int64]:
    """The longest that anything is padded to, or would be if it were not dropped: [dims]."""
    return np.max([items.max(axis=0), *(draft.needed.max(axis=0, initial=0) for draft in drafts)], axis=0)


def merged(drafts: list[Draft], batching: Batching, slots: int, key: Key) -> tuple[Batches, NDArray[np.int64]]:
    """Brings the portions to equal numbers of batches: all batches, and which take part, [portions, each]."""
    tail, places = batching.deal.tail, slots // len(drafts)
    wanted = batches_wanted([len(draft.offsets) - 1 for draft in drafts], places, tail=tail)
    if tail == "split":
        drafts = [draft._replace(offsets=split_largest(draft.offsets, wanted)) for draft in drafts]
        wanted = batches_wanted([len(draft.offsets) - 1 for draft in drafts], places, tail=tail)
    parts = [_padded(draft, batching) for draft in drafts]
    batches = joined(parts)
    borders = np.cumsum([0] + [len(part.costs) for part in parts])
    numbers = [
        fill(np.arange(borders[lane], borders[lane + 1]), batches.costs, wanted, key=key.at("tail", lane=lane))
        for lane in range(len(parts))
    ]
    return batches, np.stack(numbers)


def _padded(draft: Draft, batching: Batching) -> Batches:
    """The batches of the draft; those between two walls share the level of their longest."""
    batches = padded(draft.members, draft.offsets, draft.needed, batching)
    if not len(draft.walls):
        return batches
    bucket = np.searchsorted(draft.walls, draft.offsets[:-1], side="right")
    longest = np.zeros(len(draft.walls) + 1)
    np.maximum.at(longest, bucket, batches.levels)
    return batches._replace(levels=longest[bucket])


def one_length(array: NDArray[np.int64]) -> NDArray[np.int64]:
    flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if flat.ndim != 1:
        remedy = (
            "Give one length each, lengths[:, 0] say (on the command line: FILE:0), for chunks and padding to edges."
        )
        raise _checks.value_error("lengths", "of shape [n]", array.shape, remedy)
    return flat

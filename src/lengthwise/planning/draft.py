"""Draft: sequences in order, and cut into batches; not yet padded, not yet dealt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise._random import Key, argsort
from lengthwise.choices.arithmetic import count_multiple, fill_up, length_multiple, longest_of, round_up, sum_rows
from lengthwise.choices.bands import line_up
from lengthwise.choices.batching import Batching, is_custom
from lengthwise.choices.cost import Cost, costs_alone
from lengthwise.choices.cut import Cut, OversizeError, max_in_row, row_capacity
from lengthwise.choices.order import Bucketed, Order, Ordered
from lengthwise.choices.rows import Rows, one_of_each, row_offsets
from lengthwise.planning.batches import Batches, pad
from lengthwise.planning.custom import check_cuts, check_ordered, check_rows
from lengthwise.planning.cutter import Limits, cut_by_count, cut_into, limits_of, split_largest
from lengthwise.planning.random_rows import form_row_steps
from lengthwise.planning.random_steps import form_steps
from lengthwise.planning.times import copies_of


class Draft(NamedTuple):
    """Members in order, cut; `needed` [k, dims] is what each must be padded to, `boundaries` the borders of buckets.

    `limits` are those of a batch; None where the cut alone says which batches there are.
    """

    members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    boundaries: NDArray[np.int64]
    needed: NDArray[np.int64]
    limits: Limits | None = None


class _Line(NamedTuple):
    """Sequences in order, [k]; what each must be padded to, [k, dims]; and positions that no batch may cross.

    Where whole steps are taken, `groups` [k] are those of which no batch mixes two; else boundaries part them.
    """

    sequences: NDArray[np.int64]
    needed: NDArray[np.int64]
    boundaries: NDArray[np.int64]
    groups: NDArray[np.int64] | None = None


def draft(
    items: NDArray[np.int64],
    members: NDArray[np.int64] | None,
    batching: Batching,
    order: Order,
    key: Key,
    *,
    slots: int,
    bands: tuple[int, ...],
    steps: int | None = None,
    groups: NDArray[np.int64] | None = None,
) -> Draft | None:
    """The sequences `members`, or all, ordered and cut; None if the deal takes whole steps, and not so many do.

    Args:
        slots: Batches of a step, where the deal takes whole steps.
        steps: How many steps there are to be, where the deal takes whole steps; None for as many as sequences fill.
        groups: [n], of all items: no batch mixes two of them. None for one group.
        bands: By how many bands sequences of several lengths are sorted: by the order, or, where the deal takes whole
            steps, inside of each step. None for by their sum.
    """
    own = items if members is None else items[members]
    if not len(own):
        none = np.empty(0, np.int64)
        return Draft(none, np.zeros(1, np.int64), none, own)
    own_groups = groups if groups is None or members is None else groups[members]
    line = _put_in_line(own, batching, order, key, bands, own_groups)
    # An edge may be longer than any sequence.
    longest = np.maximum(longest_of(items), longest_of(line.needed))
    try:
        cut = _cut(line, batching, longest=longest, slots=slots, bands=bands, steps=steps)
    except OversizeError as error:
        # The cut knows positions in the order alone. The user knows the numbers of the data set.
        position = line.sequences[error.position]
        sequence = int(position if members is None else members[position])
        # Only where it says something: a cut of the user's may raise an error of its own class.
        mean = mean_cost(items, batching.cost)
        doubt: dict[str, Any] = {"mean_cost": mean} if mean > error.budget else {}
        raise type(error)(error.budget, error.cost, error.position, sequence=sequence, **doubt) from None
    if cut is None:
        return None
    (sequences, needed, boundaries, _), offsets = cut
    limits = limits_of(batching.cut, batching.cost, longest)
    return Draft(sequences if members is None else members[sequences], offsets, boundaries, needed, limits)


def cut_again(draft: Draft, batching: Batching, batches: int) -> Draft:
    """The draft with exactly so many batches, at least as many as it has; or as many as it has sequences."""
    cut, offsets, limits = batching.cut, draft.offsets, draft.limits
    if not len(draft.members) or batches < 1:
        return draft
    if type(cut) is Rows:
        # Rows go to batches in equal numbers; a batch of members in order fills no more rows than it was given.
        rows = row_offsets(one_of_each(draft.needed), offsets, cut.capacity, cut.max_in_row)
        rows = split_largest(rows, batches)
        offsets = rows[cut_by_count(len(rows) - 1, np.searchsorted(rows, draft.boundaries), batches)]
    elif limits is not None:
        offsets = cut_into(draft.needed, draft.boundaries, batches, limits)
    else:
        offsets = split_largest(offsets, batches)
    return draft._replace(offsets=offsets)


def _put_in_line(
    items: NDArray[np.int64],
    batching: Batching,
    order: Order,
    key: Key,
    bands: tuple[int, ...],
    groups: NDArray[np.int64] | None,
) -> _Line:
    """All of `items` in order."""
    ordered = _order(items, batching, order, key, bands)
    if ordered.edges is not None and row_capacity(batching.cut) is not None:
        rule = "one that pads to no edges beside a cut that packs rows"
        raise checks.value_error("order", rule, batching.order, "Take Shuffled().")
    if groups is not None and not batching.takes_random_steps:
        ordered = _group(ordered, groups)
    sequences, boundaries, _ = ordered
    needed = round_up(_pad_to_edges(items, ordered, batching), length_multiple(batching.cut))
    if batching.takes_random_steps and len(boundaries):
        # A step takes sequences of all buckets, which then say no more than what each is padded to.
        mixed = key.at("steps", lane=key.lane).permutation(len(sequences))
        sequences, needed, boundaries = sequences[mixed], needed[mixed], np.empty(0, np.int64)
    in_steps = groups is not None and batching.takes_random_steps
    return _Line(sequences, needed, boundaries, groups[sequences] if in_steps and groups is not None else None)


def _group(ordered: Ordered, groups: NDArray[np.int64]) -> Ordered:
    """The order group by group, with a boundary wherever another group or another bucket begins.

    >>> _group(Ordered(np.array([3, 0, 2, 1])), np.array([1, 0, 1, 0]))[:2]
    (array([3, 1, 0, 2]), array([2]))
    """
    sequences, boundaries, edges = ordered
    own = groups[sequences]
    by_group = argsort(own)
    bucket = np.searchsorted(boundaries, np.arange(len(sequences)), side="right")[by_group]
    own = own[by_group]
    borders = 1 + np.flatnonzero((own[1:] != own[:-1]) | (bucket[1:] != bucket[:-1]))
    return Ordered(sequences[by_group], borders, None if edges is None else edges[by_group])


def _order(items: NDArray[np.int64], batching: Batching, order: Order, key: Key, bands: tuple[int, ...]) -> Ordered:
    """What the order gives; checked, where it is the user's own."""
    # Most orders sort by one number: the length, the sum of several, or the place in a line of bands.
    in_bands = bands and not batching.takes_random_steps
    sizes: Any = line_up(items, bands) if in_bands else _whole_sizes(items, batching, order)
    ordered = order(sizes, key)
    return check_ordered(ordered, *items.shape) if is_custom(batching.order) else ordered


def _pad_to_edges(items: NDArray[np.int64], ordered: Ordered, batching: Batching) -> NDArray[np.int64]:
    """What each sequence must be padded to, by the edges of the order if there are any: [k, dims]."""
    sequences, _, edges = ordered
    if edges is not None and not is_custom(batching.order):
        return edges.reshape(-1, items.shape[1])  # an edge of ours holds what is padded to it
    needed = items[sequences]
    if edges is None:
        return needed
    # An order of the user's may give an edge that is too short: the sequence is then padded to its own length.
    return np.maximum(needed, edges.reshape(needed.shape), out=needed)


def _cut(
    line: _Line,
    batching: Batching,
    *,
    longest: NDArray[np.int64],
    slots: int,
    bands: tuple[int, ...],
    steps: int | None,
) -> tuple[_Line, NDArray[np.int64]] | None:
    """What the cut keeps of the line, batch after batch, and the offsets of the batches."""
    cut, cost, deal = batching.cut, batching.cost, batching.deal
    sequences, needed, boundaries, groups = line
    if batching.takes_random_steps and (limits := limits_of(cut, cost, longest)) is not None:
        formed = form_steps(sequences, needed, cut, deal, limits, slots=slots, bands=bands, steps=steps, groups=groups)
        return formed and (_Line(*formed[:2], boundaries), formed[2])
    if batching.takes_random_steps and isinstance(cut, Rows):
        cuts = form_row_steps(needed, cut, deal, slots, cost=cost, steps=steps)
        if cuts is None:
            return None
    else:
        cuts = cut(needed, boundaries, cost=cost, longest=longest)
    kept, offsets = check_cuts(cuts, len(needed), boundaries) if is_custom(cut) else cuts
    if kept is None:
        return line, offsets
    if is_custom(cut) and (capacity := row_capacity(cut)) is not None:
        check_rows(one_of_each(needed)[kept], capacity, max_in_row(cut))
    # Boundaries count what stays: if the positions [0, 2, 3] do, the boundary 2 becomes 1. A packer reorders between
    # boundaries, so that `kept` need not rise; but all that is below a boundary stands before all that is not.
    return _Line(sequences.take(kept), needed[kept], np.searchsorted(kept, boundaries)), offsets


def _whole_sizes(items: NDArray[np.int64], batching: Batching, order: Order) -> NDArray[Any]:
    """As `sizes_of`, but in whole numbers, for an order of this package; it only reads them."""
    if is_custom(batching.order):
        return sizes_of(items, order)
    return items if _has_rows_of_edges(items, order) else sum_rows(items)


def mean_cost(items: NDArray[np.int64], cost: Cost) -> float:
    """What a sequence of the mean length costs in a batch of its own."""
    return float(costs_alone(cost, np.rint(items.mean(axis=0, keepdims=True)).astype(np.int64))[0])


def sizes_of(items: NDArray[np.int64], order: Order) -> NDArray[np.float64]:
    """What an order is given of `items` [n, dims]: their sum; all their lengths, if it has edges for each."""
    return (items if _has_rows_of_edges(items, order) else sum_rows(items)).astype(np.float64)


def _has_rows_of_edges(items: NDArray[np.int64], order: Order) -> bool:
    """Whether the order has an edge for each of several lengths."""
    return isinstance(order, Bucketed) and order.size is None and items.shape[1] > 1


def price(draft: Draft, batching: Batching) -> Batches:
    """The batches of the draft, padded and priced; batches of one bucket count as long as its longest."""
    capacity, multiple = row_capacity(batching.cut), count_multiple(batching.cut)
    rows = draft.members, draft.offsets, draft.needed
    batches = pad(*rows, batching.cost, capacity=capacity, multiple=multiple)
    if not len(draft.boundaries):
        return batches
    # Packed rows are all padded to the capacity, which says nothing of their bucket.
    own = batches.lengths if capacity is None else np.maximum.reduceat(draft.needed[:, 0], draft.offsets[:-1])
    # Batches that begin at [0, 3, 5], with a boundary at 3: the first bucket has one of them, the second two.
    ends = np.concatenate([[0], np.searchsorted(draft.offsets[:-1], draft.boundaries), [len(own)]])
    counts = np.diff(ends)
    longest = np.maximum.reduceat(own, ends[:-1][counts > 0]).astype(np.float64, copy=False)
    return batches._replace(bucket_lengths=np.repeat(longest, counts[counts > 0]))


def padding_of(drafts: Sequence[Draft], items: NDArray[np.int64], cut: Cut) -> float:
    """The share of the frames computed under `drafts` of `items` that is padding; 0 where they hold nothing."""
    return share_of_padding(*count_frames(drafts, items, cut))


def share_of_padding(useful: int, computed: int) -> float:
    """The share of `computed` frames that are not `useful`; 0 where nothing is computed."""
    return 1.0 - useful / computed if computed else 0.0


def count_frames(drafts: Sequence[Draft], items: NDArray[np.int64], cut: Cut) -> tuple[int, int]:
    """Returns the frames that `drafts` of `items` hold, and those that are computed under them, filled rows too."""
    computed = useful = 0
    for draft in drafts:
        if len(draft.members):
            rows = fill_up(np.diff(draft.offsets), count_multiple(cut))
            computed += int((rows * longest_in_batches(draft).sum(axis=1)).sum())
            useful += int(items[draft.members].sum())
    return useful, computed


def longest_in_batches(draft: Draft) -> NDArray[np.int64]:
    """What each batch of a draft that has some is padded to: [batches, dims]."""
    return np.maximum.reduceat(draft.needed, draft.offsets[:-1])


def take_items(
    array: NDArray[np.int64], batching: Batching, times: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """What is batched, [n, dims]: whole sequences, and None; or chunks, and which span of which sequence each is.

    Each sequence once, or as many copies of it as `times` [n] say.
    """
    copies = None if times is None else copies_of(times)
    array = array if copies is None else array[copies]
    if batching.chunks is None:
        return (array if array.ndim == 2 else array[:, None]), None
    spans = batching.chunks(_one_length(array))
    if copies is not None:
        spans[:, 0] = copies[spans[:, 0]]
    return (spans[:, 2] - spans[:, 1])[:, None], spans


def take_groups(
    groups: NDArray[np.int64] | None, spans: NDArray[np.int64] | None, times: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """The group of each item, by the groups [n] of the sequences; `spans` and `times` as of `take_items`."""
    if groups is None or spans is not None:
        return None if groups is None or spans is None else groups[spans[:, 0]]
    return groups if times is None else groups[copies_of(times)]


def _one_length(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """Lengths [n] or [n, 1] as [n]; several lengths cannot be cut into chunks, and are refused."""
    flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if flat.ndim != 1:
        remedy = "Give one length each, such as lengths[:, 0] (on the command line: FILE:0), for chunks."
        raise checks.value_error("lengths", "of shape [n]", array.shape, remedy)
    return flat

"""Portion: items that are batched together. They are put in order, cut into batches, and get their costs.

members         9 4 4 | 2 2 1           the items of a portion, batch by batch; here each is named by its length
offsets         0 3 6
padded_lengths  9 2
costs           27 6
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise._random import Key, argsort
from lengthwise.choices.arithmetic import (
    count_multiple,
    distinct,
    length_multiple,
    longest_of,
    raise_counts,
    round_up,
    sum_rows,
)
from lengthwise.choices.bands import line_up
from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import Cost, costs_alone, costs_of, costs_of_rows
from lengthwise.choices.cut import Cut, OversizeError
from lengthwise.choices.greedy import Limits
from lengthwise.choices.names import is_custom
from lengthwise.choices.order import Bucketed, Order, Ordered
from lengthwise.choices.rows import Rows
from lengthwise.planning.custom import check_cuts, check_ordered
from lengthwise.planning.exact_count import cut_by_count, cut_into, exact_limits, split_largest
from lengthwise.planning.items import Items
from lengthwise.planning.steps import form_steps

_NONE = np.empty(0, np.int64)


class Settled(NamedTuple):
    """The choices and the steps that all epochs of a run share.

    Attributes:
        batching: The batching, with all choices made.
        fitted_order: The order of the batching, fitted to the lengths.
        bands: The numbers of bands by which sequences of several lengths are sorted: by the order, or inside each
            random step. Empty if the sum of the lengths sorts them.
        trial_padding: The mean padding of trials by the order, 0..1; None without trials.
        steps: The steps of every epoch; None if epochs may differ.
    """

    batching: Batching
    fitted_order: Order
    bands: tuple[int, ...] = ()
    trial_padding: float | None = None
    steps: int | None = None


class Portion(NamedTuple):
    """Items that are batched together: all, or those of one rank. Without batches until it is cut.

    Attributes:
        members: [k], the items in order; once it is cut, batch by batch.
        needed: [k, dims], the length that each member must be padded to; [0, dims] once no batch will be split or
            packed.
        boundaries: Positions in `members` that no batch may cross.
        groups: [k], in random steps, which keep groups apart without boundaries; else None.
        alone: The giants that stand alone, until `put_alone` makes their batches.
        limits: The limits of a batch; None if only the cut itself can find its batches.
        offsets: [batches + 1]; batch b is members[offsets[b]:offsets[b + 1]].
        padded_lengths: [batches, dims], the longest that the members of each batch need.
        costs: [batches], which the budget bounds.
        balances: [batches], the costs that ranks share evenly: by `balance`, or the same as `costs`.
        bucket_lengths: [batches], the longest length of each batch's bucket; None where there are no buckets.
    """

    members: NDArray[np.int64]
    needed: NDArray[np.int64]
    boundaries: NDArray[np.int64] = _NONE
    groups: NDArray[np.int64] | None = None
    alone: NDArray[np.int64] = _NONE
    limits: Limits | None = None
    offsets: NDArray[np.int64] = np.zeros(1, np.int64)
    padded_lengths: NDArray[np.int64] = _NONE
    costs: NDArray[np.float64] = np.empty(0)
    balances: NDArray[np.float64] = np.empty(0)
    bucket_lengths: NDArray[np.float64] | None = None

    @property
    def batch_count(self) -> int:
        """The number of batches, those of one giant included."""
        return len(self.offsets) - 1 + len(self.alone)

    @property
    def lengths(self) -> NDArray[np.float64]:
        """The lengths that put steps in order, [batches]: of each batch's bucket, or without buckets of the batch."""
        if self.bucket_lengths is not None:
            return self.bucket_lengths
        return sum_rows(self.padded_lengths).astype(np.float64)


def cut_portion(
    items: Items, members: NDArray[np.int64] | None, settled: Settled, key: Key, *, slots: int, steps: int | None = None
) -> Portion | None:
    """Orders and cuts the items `members`, or all. Returns None if they cannot fill exactly `steps` random steps.

    Args:
        items: The items of the epoch.
        members: [m] numbers of items; None for all.
        settled: The choices.
        key: The key of all random numbers.
        slots: Batches of a step.
        steps: The random steps to fill; None for the fewest. Other deals ignore it.
    """
    batching = settled.batching
    if not len(items.lengths if members is None else members):
        return Portion(_NONE, items.lengths[:0])
    portion = _order_portion(items, members, settled, key)
    # An edge may be longer than any sequence.
    longest = np.maximum(longest_of(items.lengths), longest_of(portion.needed))
    limits = exact_limits(batching.cut, batching.cost, longest, batching.balance)
    try:
        if batching.takes_random_steps:
            options: dict[str, Any] = {"slots": slots, "bands": settled.bands, "steps": steps}
            cuts = form_steps(portion.needed, portion.groups, batching, limits, **options)
            if cuts is None:
                return None
        else:
            cuts = batching.cut(portion.needed, portion.boundaries, cost=batching.cost, longest=longest)
    except OversizeError as error:
        # The cut names a position in the order. The user knows the numbers of the data set.
        raise explain_oversize(error, int(portion.members[error.position]), items.lengths, batching.cost) from None
    if is_custom(batching.cut):
        cuts = check_cuts(cuts, len(portion.members), portion.boundaries)
    kept, offsets = cuts
    portion = portion._replace(groups=None, limits=limits, offsets=offsets)
    if kept is None:
        return portion
    # Boundaries count only the members that stay: if positions [0, 2, 3] stay, the boundary 2 becomes 1. A packer
    # reorders positions between boundaries only, so all positions below a boundary still come before it.
    boundaries = np.searchsorted(kept, portion.boundaries)
    return portion._replace(members=portion.members[kept], needed=portion.needed[kept], boundaries=boundaries)


def cut_again(portion: Portion, batching: Batching, batches: int) -> Portion:
    """Cuts into exactly `batches`, no fewer than there are. Too few sequences get a batch each."""
    cut, offsets, boundaries = batching.cut, portion.offsets, portion.boundaries
    if not len(portion.members) or batches < 1:
        return portion
    if type(cut) is Rows:
        # Each batch gets about the same number of rows. Packed again in order, its members need no more rows.
        rows = split_largest(cut.find_rows(portion.needed, offsets), batches)
        offsets = rows[cut_by_count(len(rows) - 1, np.searchsorted(rows, boundaries), batches)]
    elif portion.limits is not None:
        offsets = cut_into(portion.needed, boundaries, batches, portion.limits)
    else:
        offsets = split_largest(offsets, batches)
    return portion._replace(offsets=offsets)


def add_costs(portion: Portion, cut: Cut, cost: Cost, balance: Cost | None = None) -> Portion:
    """Adds the padded lengths and the costs of all batches."""
    needed, offsets = portion.needed, portion.offsets
    if len(offsets) == 1:  # no batches: `reduceat` wants at least one start
        return portion._replace(padded_lengths=np.empty((0, needed.shape[1]), np.int64))
    if isinstance(cut, Rows):
        lengths, capacity = np.full((len(offsets) - 1, 1), cut.capacity), cut.capacity
        costs = costs_of_rows(cost, needed, offsets, capacity)
        balances = costs if balance is None else costs_of_rows(balance, needed, offsets, capacity, name="balance")
        return portion._replace(padded_lengths=lengths, costs=costs, balances=balances)
    # Members that need [5, 9, 2, 4], cut at [0, 2, 4], are padded to [9, 4].
    lengths = np.maximum.reduceat(needed, offsets[:-1], axis=0)
    rows = raise_counts(np.diff(offsets), count_multiple(cut))
    costs = costs_of(cost, rows, lengths)
    balances = costs if balance is None else costs_of(balance, rows, lengths, name="balance")
    return portion._replace(padded_lengths=lengths, costs=costs, balances=balances)


def add_buckets(portion: Portion, batching: Batching) -> Portion:
    """Adds the longest length of its bucket to each priced batch."""
    offsets, boundaries = portion.offsets, portion.boundaries
    if not len(boundaries):
        return portion
    # Packed rows are all padded to the capacity, which says nothing of their bucket.
    packs, lengths = isinstance(batching.cut, Rows), portion.lengths
    lengths = np.maximum.reduceat(portion.needed[:, 0], offsets[:-1]) if packs else lengths
    # Batches that begin at [0, 3, 5], with a boundary at 3: the first bucket has one of them, the second two.
    ends = np.concatenate([[0], np.searchsorted(offsets[:-1], boundaries), [len(lengths)]])
    counts = np.diff(ends)
    longest = np.maximum.reduceat(lengths, ends[:-1][counts > 0]).astype(np.float64, copy=False)
    return portion._replace(bucket_lengths=np.repeat(longest, counts[counts > 0]))


def join(portions: Sequence[Portion]) -> Portion:
    """Joins the batches of all portions, portion after portion."""
    if len(portions) == 1:
        return portions[0]
    # Portions of 3 and 4 members have the ends [0, 3, 7]: the offsets of the second rise by 3.
    ends = np.cumsum([0] + [len(portion.members) for portion in portions])
    starts = [portion.offsets[:-1] + end for portion, end in zip(portions, ends[:-1], strict=True)]
    names = ("members", "needed", "padded_lengths", "costs", "balances")
    joined: Any = {name: np.concatenate([getattr(portion, name) for portion in portions]) for name in names}
    if portions[0].bucket_lengths is not None:
        joined["bucket_lengths"] = np.concatenate([portion.lengths for portion in portions])
    return Portion(**joined, offsets=np.concatenate([*starts, ends[-1:]]))


def select(batches: Portion, chosen: NDArray[np.bool_]) -> Portion:
    """Selects the batches marked in `chosen` [batches]."""
    sizes = np.diff(batches.offsets)
    # The first and last of batches of [2, 1, 2] members: [1, 1, 0, 1, 1].
    mask = np.repeat(chosen, sizes)
    return Portion(
        members=batches.members[mask],
        needed=batches.needed[mask] if len(batches.needed) else batches.needed,
        offsets=np.concatenate([[0], np.cumsum(sizes[chosen])]),
        padded_lengths=batches.padded_lengths[chosen],
        costs=batches.costs[chosen],
        balances=batches.balances[chosen],
        bucket_lengths=None if batches.bucket_lengths is None else batches.bucket_lengths[chosen],
    )


def put_alone(portion: Portion, lengths: NDArray[np.int64], *, multiple: int) -> Portion:
    """Puts each giant that stands alone in a batch of its own, next to the batch with the longest other member.

    So sorted batches stay sorted: the new ones come last if lengths rise, and first if they fall. Each giant is padded
    to the next `multiple` of a length.
    """
    giants, offsets = portion.alone, portion.offsets
    if not len(giants):
        return portion
    rising = giants[np.argsort(lengths[giants].sum(axis=1), kind="stable")]
    place = batches = len(offsets) - 1
    if batches:
        longest = int(portion.needed.sum(axis=1).argmax())
        # Offsets [0, 3, 5], the longest at position 4: it is in batch 1, and the giants go to place 2.
        place = int(np.searchsorted(offsets, longest, side="right"))
        # The longest is in the first of several batches: lengths fall, and giants stand in front.
        if place == 1 and batches > 1:
            place, rising = 0, rising[::-1]
    at = offsets[place]
    # Two giants put in at place 1 of the offsets [0, 3, 5]: [0, 3, 4, 5, 7].
    offsets = np.concatenate([offsets[:place], at + np.arange(len(giants)), offsets[place:] + len(giants)])
    return portion._replace(
        members=np.insert(portion.members, at, rising),
        needed=np.insert(portion.needed, at, round_up(lengths[rising], multiple), axis=0),
        boundaries=_boundaries_around(portion.boundaries, int(at), len(giants), int(offsets[-1])),
        alone=_NONE,
        offsets=offsets,
    )


def _boundaries_around(boundaries: NDArray[np.int64], at: int, buckets: int, members: int) -> NDArray[np.int64]:
    """Adds `buckets` of one item each before position `at`, and moves the borders of later buckets.

    >>> _boundaries_around(np.array([4, 8]), 8, 2, 12)  # two of them where the third bucket began
    array([ 4,  8,  9, 10])
    """
    if not len(boundaries):
        return boundaries
    around = np.concatenate(
        [boundaries[boundaries <= at], at + np.arange(buckets + 1), boundaries[boundaries > at] + buckets]
    )
    return distinct(around[(around > 0) & (around < members)])


def _order_portion(items: Items, members: NDArray[np.int64] | None, settled: Settled, key: Key) -> Portion:
    """Puts the items `members`, or all, in order."""
    batching, in_steps = settled.batching, settled.batching.takes_random_steps
    items = items if members is None else items.select(members)
    lengths, groups = items.lengths, items.groups
    ordered = _call_order(lengths, settled, key)
    if ordered.edges is not None and isinstance(batching.cut, Rows):
        rule = "one that pads to no edges beside a cut that packs rows"
        raise checks.value_error("order", rule, batching.order, "Take Shuffled().")
    if in_steps and is_custom(batching.order) and len(ordered.boundaries):
        remedy = "Give `groups=` to keep batches apart, or take another deal, such as Mixed()."
        raise checks.state_error("Random steps cross the boundaries that your order gives", remedy)
    if groups is not None and not in_steps:
        ordered, groups = _sort_by_group(ordered, groups), None
    sequences, boundaries, _ = ordered
    needed = round_up(_pad_to_edges(lengths, ordered, batching), length_multiple(batching.cut))
    if in_steps and len(boundaries):
        # A step takes sequences of all buckets. Edges then only tell the length that each sequence is padded to.
        mixed = key.at("steps", lane=key.lane).permutation(len(sequences))
        sequences, needed, boundaries = sequences[mixed], needed[mixed], _NONE
    groups = None if groups is None else groups[sequences]
    return Portion(sequences if members is None else members[sequences], needed, boundaries, groups)


def _sort_by_group(ordered: Ordered, groups: NDArray[np.int64]) -> Ordered:
    """Sorts the order by group, with a boundary wherever another group or another bucket begins.

    >>> _sort_by_group(Ordered(np.array([3, 0, 2, 1])), np.array([1, 0, 1, 0]))[:2]
    (array([3, 1, 0, 2]), array([2]))
    """
    sequences, boundaries, edges = ordered
    by_group = argsort(groups[sequences])
    bucket = np.searchsorted(boundaries, np.arange(len(sequences)), side="right")[by_group]
    group = groups[sequences[by_group]]
    starts = 1 + np.flatnonzero((group[1:] != group[:-1]) | (bucket[1:] != bucket[:-1]))
    return Ordered(sequences[by_group], starts, None if edges is None else edges[by_group])


def _call_order(lengths: NDArray[np.int64], settled: Settled, key: Key) -> Ordered:
    """Calls the order; checks its answer if the user wrote the order."""
    # Most orders sort by one number: the length, the sum of several, or the place in a line of bands.
    if settled.bands and not settled.batching.takes_random_steps:
        sizes = line_up(lengths, settled.bands)
    elif is_custom(settled.batching.order):
        sizes = sizes_of(lengths, settled.fitted_order)
    else:
        sizes = lengths if _has_rows_of_edges(lengths, settled.fitted_order) else sum_rows(lengths)
    # Orders of this package read whole numbers, too.
    ordered = settled.fitted_order(sizes, key)  # pyrefly: ignore[bad-argument-type]
    return check_ordered(ordered, *lengths.shape) if is_custom(settled.batching.order) else ordered


def _pad_to_edges(lengths: NDArray[np.int64], ordered: Ordered, batching: Batching) -> NDArray[np.int64]:
    """Returns the length that each sequence must be padded to, by the edges of the order if it has some: [k, dims]."""
    sequences, _, edges = ordered
    if edges is not None and not is_custom(batching.order):
        return edges.reshape(-1, lengths.shape[1])  # our own edges are never too short
    needed = lengths[sequences]
    if edges is None:
        return needed
    # A user's order may give an edge that is too short: the sequence is then padded to its own length.
    return np.maximum(needed, edges.reshape(needed.shape), out=needed)


def explain_oversize(error: OversizeError, sequence: int, lengths: NDArray[np.int64], cost: Cost) -> OversizeError:
    """Returns the error with the number of the sequence, and with the mean cost if that is over the budget too."""
    mean = mean_cost(lengths, cost)
    # A user's cut may raise an error of its own class that takes fewer arguments.
    doubt: dict[str, Any] = {"mean_cost": mean} if mean > error.budget else {}
    return type(error)(error.budget, error.cost, error.position, sequence=sequence, **doubt)


def mean_cost(lengths: NDArray[np.int64], cost: Cost) -> float:
    """Returns the cost of a batch of one sequence of the mean length."""
    return float(costs_alone(cost, np.rint(lengths.mean(axis=0, keepdims=True)).astype(np.int64))[0])


def sizes_of(lengths: NDArray[np.int64], order: Order) -> NDArray[np.float64]:
    """Returns the sizes by which an order sorts `lengths` [n, dims]: their sum, or all of them for rows of edges."""
    return (lengths if _has_rows_of_edges(lengths, order) else sum_rows(lengths)).astype(np.float64)


def _has_rows_of_edges(lengths: NDArray[np.int64], order: Order) -> bool:
    return isinstance(order, Bucketed) and order.size is None and lengths.shape[1] > 1

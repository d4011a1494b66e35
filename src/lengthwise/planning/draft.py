"""Draft: orders one portion of the items and cuts it into batches, which are padded and dealt later."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise._random import Key, argsort
from lengthwise.choices.arithmetic import length_multiple, longest_of, round_up, sum_rows
from lengthwise.choices.bands import line_up
from lengthwise.choices.batching import Batching, is_custom
from lengthwise.choices.cost import Cost, costs_alone
from lengthwise.choices.cut import OversizeError
from lengthwise.choices.order import Bucketed, Order, Ordered
from lengthwise.choices.rows import Rows
from lengthwise.planning.batches import Batches, pad
from lengthwise.planning.custom import check_cuts, check_ordered
from lengthwise.planning.cutter import Limits, cut_by_count, cut_into, limits_of, split_largest
from lengthwise.planning.items import Items
from lengthwise.planning.random_rows import form_row_steps
from lengthwise.planning.random_steps import form_steps


class Fitted(NamedTuple):
    """The choices and the steps that all epochs of a run share.

    Attributes:
        batching: The batching, with all choices made.
        order: The order of the batching, fitted to the lengths.
        bands: The numbers of bands by which sequences of several lengths are sorted: by the order, or inside each
            random step. Empty if the sum of the lengths sorts them.
        achieved: The mean padding of trials by the order, 0..1; None without trials.
        steps: The steps of every epoch; None if epochs may differ.
    """

    batching: Batching
    order: Order
    bands: tuple[int, ...] = ()
    achieved: float | None = None
    steps: int | None = None


class Draft(NamedTuple):
    """Items in order, cut into batches.

    Attributes:
        members: [k], batch by batch.
        offsets: [batches + 1].
        boundaries: The borders of buckets, as positions in `members`.
        needed: [k, dims], the length that each must be padded to.
        limits: The limits of a batch; None if only the cut itself can find its batches.
    """

    members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    boundaries: NDArray[np.int64]
    needed: NDArray[np.int64]
    limits: Limits | None = None


class _Line(NamedTuple):
    """Sequences in order, [k]; the length each must be padded to, [k, dims]; positions that no batch may cross.

    In random steps `groups` [k] keep batches apart; elsewhere boundaries do.
    """

    sequences: NDArray[np.int64]
    needed: NDArray[np.int64]
    boundaries: NDArray[np.int64]
    groups: NDArray[np.int64] | None = None


def draft(
    items: Items,
    members: NDArray[np.int64] | None,
    fitted: Fitted,
    key: Key,
    *,
    slots: int,
    steps: int | None = None,
) -> Draft | None:
    """Orders and cuts the items `members`, or all. Returns None if they cannot fill exactly `steps` random steps.

    Args:
        items: The items of the epoch.
        members: [m] numbers of items; None for all.
        fitted: The choices.
        key: The key of all random numbers.
        slots: Batches of a step.
        steps: The random steps to fill; None for the fewest. Other deals ignore it.
    """
    batching = fitted.batching
    lengths = items.lengths if members is None else items.lengths[members]
    if not len(lengths):
        none = np.empty(0, np.int64)
        return Draft(none, np.zeros(1, np.int64), none, lengths)
    groups = items.groups if items.groups is None or members is None else items.groups[members]
    line = _put_in_line(lengths, groups, fitted, key)
    # An edge may be longer than any sequence.
    longest = np.maximum(longest_of(items.lengths), longest_of(line.needed))
    try:
        cut = _cut(line, fitted, longest=longest, slots=slots, steps=steps)
    except OversizeError as error:
        # The cut names a position in the order. The user knows the numbers of the data set.
        position = line.sequences[error.position]
        sequence = int(position if members is None else members[position])
        raise explain_oversize(error, sequence, items.lengths, batching.cost) from None
    if cut is None:
        return None
    (sequences, needed, boundaries, _), offsets = cut
    limits = limits_of(batching.cut, batching.cost, longest)
    return Draft(sequences if members is None else members[sequences], offsets, boundaries, needed, limits)


def cut_again(draft: Draft, batching: Batching, batches: int) -> Draft:
    """Cuts the draft into exactly `batches` batches, no fewer than it has. Too few sequences get a batch each."""
    cut, offsets, limits = batching.cut, draft.offsets, draft.limits
    if not len(draft.members) or batches < 1:
        return draft
    if type(cut) is Rows:
        # Each batch gets about the same number of rows. Packed again in order, its members need no more rows.
        rows = split_largest(cut.find_rows(draft.needed, offsets), batches)
        offsets = rows[cut_by_count(len(rows) - 1, np.searchsorted(rows, draft.boundaries), batches)]
    elif limits is not None:
        offsets = cut_into(draft.needed, draft.boundaries, batches, limits)
    else:
        offsets = split_largest(offsets, batches)
    return draft._replace(offsets=offsets)


def _put_in_line(lengths: NDArray[np.int64], groups: NDArray[np.int64] | None, fitted: Fitted, key: Key) -> _Line:
    """Puts items in order, by their `lengths` [n, dims] and `groups` [n]."""
    batching, in_steps = fitted.batching, fitted.batching.takes_random_steps
    ordered = _order(lengths, fitted, key)
    if ordered.edges is not None and isinstance(batching.cut, Rows):
        rule = "one that pads to no edges beside a cut that packs rows"
        raise checks.value_error("order", rule, batching.order, "Take Shuffled().")
    if in_steps and is_custom(batching.order) and len(ordered.boundaries):
        remedy = "Give `groups=` to keep batches apart, or take another deal, such as Mixed()."
        raise checks.value_error("boundaries", "left out in random steps", ordered.boundaries.tolist(), remedy)
    if groups is not None and not in_steps:
        ordered, groups = _group(ordered, groups), None
    sequences, boundaries, _ = ordered
    needed = round_up(_pad_to_edges(lengths, ordered, batching), length_multiple(batching.cut))
    if in_steps and len(boundaries):
        # A step takes sequences of all buckets. Edges then only tell the length that each sequence is padded to.
        mixed = key.at("steps", lane=key.lane).permutation(len(sequences))
        sequences, needed, boundaries = sequences[mixed], needed[mixed], np.empty(0, np.int64)
    return _Line(sequences, needed, boundaries, None if groups is None else groups[sequences])


def _group(ordered: Ordered, groups: NDArray[np.int64]) -> Ordered:
    """Sorts the order by group, with a boundary wherever another group or another bucket begins.

    >>> _group(Ordered(np.array([3, 0, 2, 1])), np.array([1, 0, 1, 0]))[:2]
    (array([3, 1, 0, 2]), array([2]))
    """
    sequences, boundaries, edges = ordered
    by_group = argsort(groups[sequences])
    bucket = np.searchsorted(boundaries, np.arange(len(sequences)), side="right")[by_group]
    group = groups[sequences[by_group]]
    borders = 1 + np.flatnonzero((group[1:] != group[:-1]) | (bucket[1:] != bucket[:-1]))
    return Ordered(sequences[by_group], borders, None if edges is None else edges[by_group])


def _order(lengths: NDArray[np.int64], fitted: Fitted, key: Key) -> Ordered:
    """Calls the order; checks its answer if the user wrote the order."""
    # Most orders sort by one number: the length, the sum of several, or the place in a line of bands.
    if fitted.bands and not fitted.batching.takes_random_steps:
        sizes = line_up(lengths, fitted.bands)
    elif is_custom(fitted.batching.order):
        sizes = sizes_of(lengths, fitted.order)
    else:
        sizes = lengths if _has_rows_of_edges(lengths, fitted.order) else sum_rows(lengths)
    # Orders of this package read whole numbers, too.
    ordered = fitted.order(sizes, key)  # pyrefly: ignore[bad-argument-type]
    return check_ordered(ordered, *lengths.shape) if is_custom(fitted.batching.order) else ordered


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


def _cut(
    line: _Line, fitted: Fitted, *, longest: NDArray[np.int64], slots: int, steps: int | None
) -> tuple[_Line, NDArray[np.int64]] | None:
    """Cuts the line: returns the sequences that stay, batch after batch, and the offsets of the batches."""
    cut, cost, deal = fitted.batching.cut, fitted.batching.cost, fitted.batching.deal
    sequences, needed, boundaries, groups = line
    if fitted.batching.takes_random_steps and (limits := limits_of(cut, cost, longest)) is not None:
        options: dict[str, Any] = {"slots": slots, "bands": fitted.bands, "steps": steps, "groups": groups}
        formed = form_steps(sequences, needed, cut, deal, limits, **options)
        return formed and (_Line(*formed[:2], boundaries), formed[2])
    if fitted.batching.takes_random_steps and isinstance(cut, Rows):
        cuts = form_row_steps(needed, cut, deal, slots, cost=cost, steps=steps)
        if cuts is None:
            return None
    else:
        cuts = cut(needed, boundaries, cost=cost, longest=longest)
    positions, offsets = check_cuts(cuts, len(needed), boundaries) if is_custom(cut) else cuts
    if positions is None:
        return line, offsets
    # Boundaries count only the sequences that stay: if positions [0, 2, 3] stay, the boundary 2 becomes 1. A packer
    # reorders positions between boundaries only, so all positions below a boundary still come before it.
    return _Line(sequences.take(positions), needed[positions], np.searchsorted(positions, boundaries)), offsets


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


def price(draft: Draft, batching: Batching) -> Batches:
    """Pads and prices the batches of the draft, and notes for each the longest length of its bucket."""
    batches = pad(draft.members, draft.offsets, draft.needed, batching.cut, batching.cost)
    if not len(draft.boundaries):
        return batches
    # Packed rows are all padded to the capacity, which says nothing of their bucket.
    packs, lengths = isinstance(batching.cut, Rows), batches.lengths
    lengths = np.maximum.reduceat(draft.needed[:, 0], draft.offsets[:-1]) if packs else lengths
    # Batches that begin at [0, 3, 5], with a boundary at 3: the first bucket has one of them, the second two.
    ends = np.concatenate([[0], np.searchsorted(draft.offsets[:-1], draft.boundaries), [len(lengths)]])
    counts = np.diff(ends)
    longest = np.maximum.reduceat(lengths, ends[:-1][counts > 0]).astype(np.float64, copy=False)
    return batches._replace(bucket_lengths=np.repeat(longest, counts[counts > 0]))

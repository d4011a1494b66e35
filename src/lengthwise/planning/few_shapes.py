"""Few shapes: at most k padded lengths, each with its number of rows, under which an epoch costs least.

    lengths   1 1 1 1 2 9 9        a budget of 18, two shapes
    shapes    5 x 2 and 2 x 9      the five up to 2 make one batch, the two long ones another: 28 frames

All sequences up to the first padded length share its batches, those up to the second the next, and so on. A batch costs
as much as its shape, full or not: what is compiled for the shape computes all of its rows. Of several lengths, padded
lengths are boxes, each within the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.batching import Batching, check_choice
from lengthwise.choices.boxes import find_boxes, sort_rows
from lengthwise.choices.buckets import optimal_edges
from lengthwise.choices.chains import MOST_BOXES, Boxes, best_chain, best_costs, tight_boxes
from lengthwise.choices.cost import Cost, Padded, check_finite, cost_of_one, costs_alone, costs_of
from lengthwise.choices.cut import BUDGET_REMEDY, Cut, OversizeError
from lengthwise.choices.multiples import count_multiple, fill_up, length_multiple, round_up
from lengthwise.choices.rows import row_capacity
from lengthwise.lengths import as_lengths
from lengthwise.planning.draft import mean_cost
from lengthwise.planning.make import check_countable
from lengthwise.planning.missed import tell_doubted_budget

_MOST_SHAPES = 2**20  # more is a mistake


class _Candidates(NamedTuple):
    """Boxes that shapes may be padded to, the most rows of each, [v], and what batches of them cost.

    `multiple` is that of the counts.
    """

    boxes: Boxes
    rows: NDArray[np.int64]
    multiple: int
    cost: Cost

    def rows_of(self, box: int, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of a shape of this box for so many sequences: no more than there are."""
        return np.minimum(self.rows[box], fill_up(counts, self.multiple))

    def price(self, box: int, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """What the batches of one shape cost that hold so many sequences, [k]."""
        rows = self.rows_of(box, counts)
        lengths = np.broadcast_to(self.boxes.edges[box], (len(counts), self.boxes.edges.shape[1]))
        # 61 sequences in rows of 24 are three batches, and 72 rows are computed.
        with np.errstate(over="ignore"):
            costs = -(-counts // rows) * costs_of(self.cost, rows, lengths)
        check_finite(costs)
        return costs


def optimal_shapes(lengths: ArrayLike, shapes: int, cut: Cut, *, cost: Cost | None = None) -> NDArray[np.int64]:
    """At most so many shapes (rows, padded length) under which the batches of an epoch cost least.

    Minimises the sum over shapes of batches x what a full batch of the shape costs. So it counts the rows that stay
    empty in the last batch of each shape, which `optimal_edges` does not. The rows of a shape are as many as the cut
    allows at its padded length, and no more than there are sequences.

    Give the padded lengths to the order: `Bucketed(edges=tuple(shapes[:, 1]), pad_to_edge=True)` with the same cut.
    Then `batch_shapes` gives these shapes, and one rank computes what was minimised. With several ranks, a tail that
    splits batches to fill the last step, and `Portions`, leave more rows empty.

    With several lengths a shape has a padded length for each, and the order is given
    `edges=tuple(map(tuple, shapes[:, 1:]))`. Of all chains, in which each shape holds the one before it in every
    length, the cheapest is found. So the shapes suit `RandomSteps` too. Where
    lengths have nothing to do with each other, the boxes of `optimal_edges`, which need not be a chain, may be cheaper.

    Args:
        lengths: [n] or [n, dims], at least 1 each.
        shapes: How many at most.
        cut: What a batch holds: `Budget(20_000, multiple_of=8, count_multiple_of=8)`, `FixedSize(16)`.
        cost: What a batch costs; padded frames where none is given.

    Returns:
        [k, 1 + dims] int64: rows, and what they are padded to; padded lengths rise by their sum. With one length, the
        least of all choices of padded lengths that sequences have, rounded up to the multiple of the cut. If there are
        more than 4,096 different ones, the 4,096 that pad least by themselves are tried; with two lengths, 64 of each.

    Raises:
        ValueError: `shapes` below 1, no lengths, a cut that packs rows, or a sequence over the budget that the cut
            neither drops nor lets stand alone. With several lengths also if the longest of each together are over it.

    >>> import lengthwise as lw
    >>> optimal_shapes([1, 1, 1, 1, 2, 9, 9], 2, lw.Budget(18))
    array([[5, 2],
           [2, 9]])

    References:
        Ours. Dynamic programming over the padded lengths as in Khomenko et al. 2016, section III.A, with another price
        of a bucket. Time grows with the square of the different lengths; 4,096 take about two seconds. The same
        programme finds the cheapest chain of several lengths, because how many sequences a box adds to the one before
        it does not depend on the others.
    """
    candidates, shapes = _read_candidates(lengths, cut, cost), _check_shapes(shapes)
    best = best_costs(candidates.boxes, candidates.price, shapes)
    chain = best_chain(candidates.boxes, candidates.price, best, shapes)
    rows = [candidates.rows_of(box, np.array([count])) for box, count in chain]
    return np.column_stack([np.concatenate(rows), candidates.boxes.edges[[box for box, _ in chain]]])


def shape_costs(lengths: ArrayLike, shapes: int, cut: Cut, *, cost: Cost | None = None) -> NDArray[np.float64]:
    """What the batches of an epoch cost by the best 1, 2, ... `shapes` shapes: how many are worth compiling.

    Args and errors as of `optimal_shapes`, which gives the shapes themselves. All are found in one pass.

    Returns:
        [shapes] float64, never rising: entry k - 1 is the least cost with at most k shapes.

    >>> import lengthwise as lw
    >>> shape_costs([1, 1, 1, 1, 2, 9, 9], 3, lw.Budget(18))
    array([72., 28., 24.])
    """
    candidates, shapes = _read_candidates(lengths, cut, cost), _check_shapes(shapes)
    best = best_costs(candidates.boxes, candidates.price, shapes)
    costs = np.minimum.accumulate(best[-1, 1:])
    return np.append(costs, np.full(shapes - len(costs), costs[-1]))


def cost_of_edges(lengths: ArrayLike, edges: ArrayLike, cut: Cut, *, cost: Cost | None = None) -> float:
    """What the batches of an epoch cost by shapes of these padded lengths, [k] or [k, dims], each as its full shape.

    >>> import lengthwise as lw
    >>> cost_of_edges([1, 1, 1, 1, 2, 9, 9], [2, 9], lw.Budget(18))
    28.0
    """
    array = _as_rows(lengths)
    padded = sort_rows(round_up(np.asarray(edges, np.int64).reshape(-1, array.shape[1]), length_multiple(cut)))
    needed = padded[find_boxes(round_up(array, length_multiple(cut)), padded)]
    needed = needed[_is_kept(needed, cut, cost or Padded())]
    boxes = Boxes(*np.unique(needed, axis=0, return_counts=True))
    candidates = _candidates_of(boxes, cut, cost or Padded())
    return float(sum(candidates.price(box, boxes.inside[box : box + 1])[0] for box in range(len(boxes.inside))))


def _read_candidates(lengths: ArrayLike, cut: Cut, cost: Cost | None) -> _Candidates:
    array, cost = _as_rows(lengths), Padded() if cost is None else cost
    check_choice("cut", cut)
    check_choice("cost", cost)
    if row_capacity(cut) is not None:
        raise checks.value_error("cut", "one that pads", cut, "Rows of a capacity have one shape.")
    check_countable(array)
    padded = round_up(array, length_multiple(cut))
    check_countable(padded)
    tell_doubted_budget(_count_over(padded, cut, cost), padded, Batching(cut=cut, cost=cost))
    padded = padded[_is_kept(padded, cut, cost)]
    longest, budget = padded.max(axis=0), cut.max_cost(cost, padded.max(axis=0))
    alone = cost_of_one(cost, 1, longest)
    if alone > budget and getattr(cut, "oversize", "error") != "alone":
        # Each sequence is within it, (9, 2) and (2, 9) for example; but the last shape holds all of them.
        rule = f"at least the cost of one sequence of the longest of each length, {alone:.16g}"
        raise checks.value_error("budget", rule, budget, "Raise it, or take the boxes of optimal_edges.")
    return _candidates_of(tight_boxes(padded, optimal_edges, MOST_BOXES), cut, cost)


def _candidates_of(boxes: Boxes, cut: Cut, cost: Cost) -> _Candidates:
    longest = boxes.edges.max(axis=0)
    rows = cut.batch_sizes(boxes.edges, cost=cost, longest=longest)
    return _Candidates(boxes, np.clip(rows, 1, 2**40).astype(np.int64), count_multiple(cut), cost)


def _as_rows(lengths: ArrayLike) -> NDArray[np.int64]:
    """[n, dims] of at least one sequence."""
    array = as_lengths(lengths)
    if not len(array):
        remedy = "Give the lengths of one sequence at least."
        raise checks.value_error("lengths", "of at least one sequence", array.shape, remedy)
    return array.reshape(len(array), -1)


def sequences_of(
    lengths: NDArray[np.int64], shapes: NDArray[np.int64], cut: Cut
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns how many sequences each shape holds, by padded frames, and their frames of data: [k] each."""
    rows, edges = _as_rows(lengths), shapes[:, 1:]
    padded = round_up(rows, length_multiple(cut))
    kept = _is_kept(padded, cut, Padded())
    box = find_boxes(padded[kept], edges)
    counts = np.bincount(box, minlength=len(edges))
    used = np.bincount(box, weights=rows[kept].sum(axis=1), minlength=len(edges)).astype(np.int64)
    return counts, used


def useful_frames(lengths: NDArray[np.int64], cut: Cut) -> int:
    """The frames of the sequences that the cut keeps, which is all but what it drops."""
    rows = lengths.reshape(len(lengths), -1)
    return int(rows[_is_kept(round_up(rows, length_multiple(cut)), cut, Padded())].sum())


def _is_kept(padded: NDArray[np.int64], cut: Cut, cost: Cost) -> NDArray[np.bool_]:
    """Which of the padded lengths [n, dims] stay: all, or those within the budget where the cut drops the others."""
    policy, budget = getattr(cut, "oversize", "error"), cut.max_cost(cost, padded.max(axis=0))
    costs = costs_alone(cost, padded)
    over = costs > budget
    if policy == "error" and over.any():
        at = int(costs.argmax())
        mean = mean_cost(padded, cost)
        raise OversizeError(budget, float(costs[at]), at, sequence=at, mean_cost=mean if mean > budget else None)
    if policy == "drop" and over.all():
        rule = f"at least the cost of the cheapest sequence, {float(costs.min()):.16g}"
        raise checks.value_error("budget", rule, budget, BUDGET_REMEDY)
    return ~over if policy == "drop" else np.ones(len(padded), bool)


def _count_over(padded: NDArray[np.int64], cut: Cut, cost: Cost) -> int:
    """How many of the padded lengths [n, dims] are over the budget by themselves, where the cut lets them."""
    if getattr(cut, "oversize", "error") == "error":
        return 0
    return int((costs_alone(cost, padded) > cut.max_cost(cost, padded.max(axis=0))).sum())


def _check_shapes(shapes: int) -> int:
    return checks.check_whole("shapes", shapes, minimum=1, maximum=_MOST_SHAPES, remedy="Give their number, such as 8.")

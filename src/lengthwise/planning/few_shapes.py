"""Few shapes: at most k padded lengths, each with its number of rows, under which an epoch costs least.

    lengths   1 1 1 1 2 9 9        a budget of 18, two shapes
    shapes    5 x 2 and 2 x 9      the five up to 2 make one batch, the two long ones another: 28 frames

Sequences up to the first padded length make batches of the first shape, longer ones up to the second padded length make
batches of the second shape, and so on. A batch costs as much as its shape, full or not: a program compiled for the
shape computes all of its rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.arithmetic import count_multiple, distinct, length_multiple, one_length, raise_counts, round_up
from lengthwise.choices.batching import Batching
from lengthwise.choices.buckets import optimal_edges, some_lengths
from lengthwise.choices.cost import Cost, Padded, check_finite, costs_of
from lengthwise.choices.cut import BUDGET_REMEDY, Cut, OversizeError, find_kept, oversize_of
from lengthwise.choices.rows import Rows
from lengthwise.planning.items import check_countable, kinds_of
from lengthwise.planning.plan_warnings import tell_doubted_budget
from lengthwise.planning.portion import explain_oversize

_MOST_LENGTHS = 4_096  # padded lengths that are tried: the time grows with their square
_MOST_SHAPES = 1_024  # more is a mistake


class _Candidates(NamedTuple):
    """The padded lengths that shapes may have.

    Attributes:
        lengths: [v], rising.
        reached: [v], the number of sequences up to each length.
        rows: [v], the most rows of a shape of each length.
        count_multiple: The multiple that rows are filled up to.
        cost: The cost of a batch.
    """

    lengths: NDArray[np.int64]
    reached: NDArray[np.int64]
    rows: NDArray[np.int64]
    count_multiple: int
    cost: Cost

    def rows_of(self, place: int, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the rows of a shape of this length: the most, or fewer if its `counts` sequences fill fewer."""
        return np.minimum(self.rows[place], raise_counts(counts, self.count_multiple))

    def costs_at(self, place: int, below: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the costs of one shape: [k]. Of the sequences up to its length, `below` [k] are in other shapes."""
        counts = self.reached[place] - below
        rows = self.rows_of(place, counts)
        lengths = np.full((len(counts), 1), self.lengths[place])
        # 61 sequences in batches of 24 rows are three batches: 72 rows are computed.
        with np.errstate(over="ignore"):
            costs = -(-counts // rows) * costs_of(self.cost, rows, lengths)
        check_finite(costs)
        return costs


def optimal_shapes(lengths: ArrayLike, shapes: int, cut: Cut, *, cost: Cost | None = None) -> NDArray[np.int64]:
    """Finds the shapes (rows, padded length) under which the batches of an epoch cost least.

    Minimises the sum over shapes of (batches x cost of a full batch). So it counts the rows that stay empty in the last
    batch of each shape; `optimal_edges` does not. A shape has the rows that the cut allows at its padded length, and no
    more than its sequences fill.

    Give the padded lengths to the order: `Bucketed(edges=tuple(shapes[:, 1]), pad_to_edge=True)` with the same cut.
    Then `batch_shapes` returns these shapes, and an epoch on one rank has the cost that was minimised. With several
    ranks, `Portions` and tails that split batches leave more rows empty.

    Args:
        lengths: [n], at least 1 each.
        shapes: The most shapes.
        cut: The cut into batches: `Budget(20_000, multiple_of=8, count_multiple_of=8)`, `FixedSize(16)`.
        cost: The cost of a batch; by default padded frames.

    Returns:
        [k, 2] int64: rows and padded length, rising. Padded lengths are chosen among those of the sequences, rounded up
        to the multiple of the cut, and no other choice costs less. If there are more than 4,096 different lengths, only
        the 4,096 that pad least as edges of buckets are tried.

    Raises:
        ValueError: `shapes` is below 1, there are no lengths, a sequence has several, or the cut packs rows. Or a
            sequence is over the budget, and the cut neither drops it nor gives it a batch of its own.

    >>> import lengthwise as lw
    >>> optimal_shapes([1, 1, 1, 1, 2, 9, 9], 2, lw.Budget(18))
    array([[5, 2],
           [2, 9]])

    References:
        Ours. Dynamic programming over the padded lengths as in Khomenko et al. 2016, section III.A. But here a bucket
        costs as much as its batches, all counted as full. Time grows with the square of the number of different
        lengths; 4,096 take about two seconds.
    """
    candidates, shapes = _read_candidates(lengths, cut, cost), _check_shapes(shapes)
    best, chosen = _best_costs(candidates, shapes), list[tuple[int, int]]()
    end, left = len(candidates.lengths), int(best[-1].argmin())  # the fewest shapes of the least cost
    while left:
        below = np.append(0, candidates.reached[: end - 1])
        begin = int((best[:end, left - 1] + candidates.costs_at(end - 1, below)).argmin())
        rows = candidates.rows_of(end - 1, candidates.reached[end - 1] - below[begin])
        chosen.append((int(rows), int(candidates.lengths[end - 1])))
        end, left = begin, left - 1
    return np.array(chosen[::-1])


def shape_costs(lengths: ArrayLike, shapes: int, cut: Cut, *, cost: Cost | None = None) -> NDArray[np.float64]:
    """Prices an epoch by the best 1, 2, ... `shapes` shapes, to show how many are worth compiling.

    Arguments and errors are those of `optimal_shapes`, which returns the shapes themselves.

    Returns:
        [shapes] float64, never rising: entry k - 1 is the least cost with at most k shapes.

    >>> import lengthwise as lw
    >>> shape_costs([1, 1, 1, 1, 2, 9, 9], 3, lw.Budget(18))
    array([72., 28., 24.])
    """
    candidates, shapes = _read_candidates(lengths, cut, cost), _check_shapes(shapes)
    costs = np.minimum.accumulate(_best_costs(candidates, shapes)[-1, 1:])
    return np.append(costs, np.full(shapes - len(costs), costs[-1]))


def _best_costs(candidates: _Candidates, most: int) -> NDArray[np.float64]:
    """Returns best[i, k], the least cost of all sequences up to the i-th length in k shapes, the last of this length.

    The cost is infinite if there are no such shapes. best[0] stands for no sequences.
    """
    count = len(candidates.lengths)
    best = np.full((count + 1, min(most, count) + 1), np.inf)
    best[0, 0] = 0.0
    for place in range(count):
        costs = candidates.costs_at(place, np.append(0, candidates.reached[:place]))
        best[place + 1, 1:] = (best[: place + 1, :-1] + costs[:, None]).min(axis=0)
    return best


def _read_candidates(lengths: ArrayLike, cut: Cut, cost: Cost | None) -> _Candidates:
    array, cost = some_lengths(lengths), Padded() if cost is None else cost
    batching = Batching(cut=cut, cost=cost)
    if isinstance(cut, Rows):
        raise checks.value_error("cut", "one that pads", cut, "Packed rows all have one shape.")
    check_countable(array[:, None], length_multiple(cut))
    padded = round_up(array, length_multiple(cut))
    tell_doubted_budget(kinds_of(padded[:, None], batching).giant_count, padded[:, None], batching)
    padded = padded[_choose_kept(padded, cut, cost)]
    values = distinct(padded)
    if len(values) > _MOST_LENGTHS:
        values = optimal_edges(padded, _MOST_LENGTHS)
    reached = np.searchsorted(np.sort(padded), values, side="right")
    rows = cut.batch_sizes(values[:, None], cost=cost, longest=values[-1:])
    return _Candidates(values, reached, np.clip(rows, 1, 2**40).astype(np.int64), count_multiple(cut), cost)


def count_in_shapes(
    lengths: NDArray[np.int64], shapes: NDArray[np.int64], cut: Cut
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the number of sequences in each shape, and their frames of data: [k] each."""
    padded = round_up(lengths, length_multiple(cut))
    kept = _choose_kept(padded, cut, Padded())
    shape_of = np.searchsorted(shapes[:, 1], padded[kept])
    counts = np.bincount(shape_of, minlength=len(shapes))
    return counts, np.bincount(shape_of, weights=lengths[kept], minlength=len(shapes)).astype(np.int64)


def useful_frames(lengths: NDArray[np.int64], cut: Cut) -> int:
    """Counts the frames of data in the sequences that the cut does not drop."""
    lengths = one_length(lengths)
    return int(lengths[_choose_kept(round_up(lengths, length_multiple(cut)), cut, Padded())].sum())


def _choose_kept(padded: NDArray[np.int64], cut: Cut, cost: Cost) -> NDArray[np.int64] | slice:
    """Chooses the padded lengths [n] that stay: all, or those within the budget if the cut drops the others."""
    rows, longest = padded[:, None], padded.max(keepdims=True)
    budget = cut.max_cost(cost, longest)
    try:
        places = find_kept(rows, longest, cost=cost, budget=budget, oversize=oversize_of(cut))
    except OversizeError as error:
        raise explain_oversize(error, error.position, rows, cost) from None
    if places is not None and not len(places):
        raise checks.value_error("budget", "enough for some sequence", budget, BUDGET_REMEDY)
    return slice(None) if places is None else places


def _check_shapes(shapes: int) -> int:
    return checks.check_whole("shapes", shapes, minimum=1, maximum=_MOST_SHAPES, remedy="Give their number, such as 8.")

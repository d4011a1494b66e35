"""Cut: sequences in order become batches. A cutter knows nothing but the cost of (count, padded lengths).

lengths      [m, dims]     what each sequence must be padded to at least, in the order's order
boundaries                 rising positions in 1..m-1 that no batch may cross
kept         [k]           positions that stay; what a policy drops is not among them
offsets      [batches+1]   batch b is kept[offsets[b]:offsets[b+1]]; strictly rising
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels, checks
from lengthwise.choices.cost import Cost, costs_alone, costs_of, prices_of

_SIZE_REMEDY = "Give the number of sequences in a batch, 16 say."

_ASKED = 2**14  # costs that one call of a user's own cost is asked for: enough that the call itself hardly counts
_LEAST_AHEAD = 8  # sequences that a batch is first tried with; doubled until batches close
_BEYOND = 2**62  # the size of a batch that did not close: larger than any, also when a position is added
_MOST_COUNTED = 2**40  # sequences: no batch is larger


class Cuts(NamedTuple):
    """What a cut gives: batch b is kept[offsets[b]:offsets[b + 1]].

    Attributes:
        kept: [k] int64, positions 0..m-1 in the order, each at most once; what a policy drops is not among them. A cut
            may reorder, but only between two boundaries.
        offsets: [batches + 1] int64, strictly rising from 0 to k.
    """

    kept: NDArray[np.int64]
    offsets: NDArray[np.int64]


class OversizeError(ValueError):
    """A sequence costs more than the budget by itself.

    A cut raises it with the position; `make_plan` then says which sequence it is.

    Attributes:
        budget: What a batch may cost.
        cost: What the sequence costs alone, in the unit of the budget.
        position: Where it stands in the order, from 0.
        sequence: Its number in the lengths, from 0; None where it is not known yet.
        mean_cost: What a sequence of the mean length costs, if that is over the budget too; else None.
    """

    def __init__(
        self,
        budget: float,
        cost: float,
        position: int,
        *,
        sequence: int | None = None,
        mean_cost: float | None = None,
    ) -> None:
        self.budget: float = budget
        self.cost: float = cost
        self.position: int = position
        self.sequence: int | None = sequence
        self.mean_cost: float | None = mean_cost
        at = f"sequence {sequence}" if sequence is not None else f"position {position}"
        super().__init__(self._sentence(at))

    def _sentence(self, at: str) -> str:
        remedy = (
            "Raise it, or choose oversize='alone' or oversize='drop' "
            "(on the command line: --cut budget:COST,oversize=alone)."
        )
        if self.mean_cost is not None:
            remedy = (
                f"A sequence of the mean length costs {self.mean_cost:.16g}, and is over it too; 16 of them cost about "
                f"{16 * self.mean_cost:.16g}: give it in the unit of the lengths, samples or frames. {remedy}"
            )
        rule = f"at least the cost of the costliest sequence, {self.cost:.16g}"
        return checks.sentence("budget", rule, self.budget, remedy, at=at)

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is made again from its `args`, the sentence here. One that cannot be hangs a pool of processes.
        remade = partial(type(self), sequence=self.sequence, mean_cost=self.mean_cost)
        return remade, (self.budget, self.cost, self.position), self.__dict__


class Cut(Protocol):
    """What every cut does. `longest` [dims] int64 is the longest of the whole data set, in each dimension.

    A cut with an attribute `row_capacity` packs: each batch fills rows of so many frames with whole sequences, in the
    order of `kept`, and a row ends before the first sequence that does not fit.
    """

    def __call__(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]
    ) -> Cuts:
        """Cuts sequences into batches.

        Args:
            lengths: [m, dims] int64, what each sequence must be padded to at least, in the order's order; m may be 0
                where all sequences were dropped.
            boundaries: [b] int64, rising positions in 1..m-1 that no batch may cross.
            cost: What a batch costs.

        Raises:
            OversizeError: A sequence costs more than the budget by itself, and no policy says what becomes of it.
        """
        ...

    def max_cost(self, cost: Cost, longest: NDArray[np.int64]) -> float:
        """What a batch may cost, in the unit of the cost; infinite where there is no bound."""
        ...

    def batch_sizes(self, lengths: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]) -> NDArray[np.float64]:
        """About how many sequences a batch holds that is padded to each of `lengths` [k, dims]: [k], at least 1."""
        ...


@checks.show_call("FixedSize(16)")
@dataclass(frozen=True, slots=True)
class FixedSize:
    """Batches of the same number of sequences. The last before a boundary, and the last of all, may be smaller.

    Args:
        batch_size: Sequences in a batch.
        drop_incomplete: Leave out batches that are not full, as MXNet's iterator does. The plan lists what was dropped.
            A deal with `tail="split"` may still halve full batches to fill the last step: choose "drop" there too.
    """

    batch_size: int
    _: KW_ONLY
    drop_incomplete: bool = False

    def __post_init__(self) -> None:
        checks.keep(self, batch_size=checks.check_whole("batch_size", self.batch_size, minimum=1, remedy=_SIZE_REMEDY))
        checks.check_flag("drop_incomplete", self.drop_incomplete)

    def __call__(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]
    ) -> Cuts:
        del cost, longest
        count = len(lengths)
        borders = np.unique(np.concatenate([[0], boundaries, [count]])).astype(np.int64)
        widths = np.diff(borders)
        # Below, 7 sequences with a boundary at 3 are cut by 2: the borders are [0, 3, 7], the widths [3, 4].
        if self.drop_incomplete:
            # [2, 4] sequences stay: positions 0, 1 and 3 to 6. Position 2 does not fill a batch.
            full = widths // self.batch_size * self.batch_size
            kept = np.arange(count) - np.repeat(borders[:-1], widths) < np.repeat(full, widths)
            return Cuts(np.flatnonzero(kept), np.arange(0, full.sum() + 1, self.batch_size))
        batches = -(-widths // self.batch_size)  # [2, 2], which start at [0, 2] and at [3, 5]
        first = np.cumsum(batches) - batches
        within = np.arange(batches.sum()) - np.repeat(first, batches)
        starts = np.repeat(borders[:-1], batches) + within * self.batch_size
        return Cuts(np.arange(count), np.append(starts, count))

    def max_cost(self, cost: Cost, longest: NDArray[np.int64]) -> float:
        del cost, longest
        return np.inf

    def batch_sizes(self, lengths: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]) -> NDArray[np.float64]:
        del cost, longest
        return np.full(len(lengths), float(self.batch_size))


@checks.show_call("Budget(20_000)")
@dataclass(frozen=True, slots=True)
class Budget:
    """Batches of at most `budget` in cost, hard: padded frames, unless the batching says another cost.

    Sequences are taken in order until the next would bring the batch over the budget (Doetsch, Golik, Ney 2017,
    section 6: 5,000 frames).

    Args:
        budget: What a batch may cost.
        oversize: What becomes of a sequence that costs more than the budget by itself: "error", "alone" in a batch
            (listed in the plan's report), or "drop" (listed too).
        max_sequences: The most sequences in a batch.
    """

    budget: float
    _: KW_ONLY
    oversize: str = "error"
    max_sequences: int | None = None

    def __post_init__(self) -> None:
        remedy = "Give the padded frames that fit in memory."
        checks.keep(self, budget=checks.check_number("budget", self.budget, above=True, remedy=remedy))
        checks.check_choice("oversize", self.oversize, ("error", "alone", "drop"))
        if self.max_sequences is not None:
            most = checks.check_whole("max_sequences", self.max_sequences, minimum=1, remedy=_SIZE_REMEDY)
            checks.keep(self, max_sequences=most)

    def __call__(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]
    ) -> Cuts:
        # A cost of this package does not fall as lengths rise. If the longest is within the budget, all are.
        known = prices_of(cost, lengths.shape[1]) is not None
        if known and costs_alone(cost, longest[None, :])[0] <= self.budget:
            offsets = self._offsets(lengths, boundaries, cost)  # first, for it takes more room than it gives back
            return Cuts(np.arange(len(lengths)), offsets)
        kept = np.arange(len(lengths))
        costs = costs_alone(cost, lengths)
        over = costs > self.budget
        if self.oversize == "error" and over.any():
            costliest = int(costs.argmax())
            raise OversizeError(self.budget, float(costs[costliest]), costliest)
        if self.oversize == "drop":
            kept = np.flatnonzero(~over)
            # Counted among those that stay: where position 1 of 5 is dropped, the boundary 3 becomes 2.
            boundaries = np.searchsorted(kept, boundaries)
        return Cuts(kept, self._offsets(lengths[kept], boundaries, cost))

    def _offsets(self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], cost: Cost) -> NDArray[np.int64]:
        return cut_greedily(lengths, boundaries, cost=cost, budget=self.budget, most=self.max_sequences)

    def max_cost(self, cost: Cost, longest: NDArray[np.int64]) -> float:
        del cost, longest
        return float(self.budget)

    def batch_sizes(self, lengths: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]) -> NDArray[np.float64]:
        del longest
        sizes = _sizes_within(lengths, cost, self.budget)
        return np.minimum(sizes, self.max_sequences or np.inf)


@checks.show_call("DynamicSize(16)")
@dataclass(frozen=True, slots=True)
class DynamicSize:
    """Batch sizes that grow as batches get shorter, from a base size for the longest (Ge et al. 2021, section 4).

    The capacity is B0 x Lmax: the cost of `batch_size` sequences of the longest length.

    Args:
        batch_size: B0, the size of the batch that holds the longest sequences.
        rule: "hard" is the rule as printed, B_i L_i <= B0 Lmax < B_{i+1} L_{i+1}: no batch costs more than the
            capacity. "paper" closes a batch once it has reached the capacity, so nearly every batch OVERSHOOTS it: by
            up to one sequence, and by more where a longer sequence comes last. `plan.over_max_cost()` lists these
            batches. "paper" comes within 2 % of the numbers of batches in the paper (606, 449 and 419).
    """

    batch_size: int
    _: KW_ONLY
    rule: str = "hard"

    def __post_init__(self) -> None:
        checks.keep(self, batch_size=checks.check_whole("batch_size", self.batch_size, minimum=1, remedy=_SIZE_REMEDY))
        checks.check_choice("rule", self.rule, ("hard", "paper"))

    def __call__(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]
    ) -> Cuts:
        budget = self.max_cost(cost, longest)
        offsets = cut_greedily(lengths, boundaries, cost=cost, budget=budget, overshoot=self.rule == "paper")
        return Cuts(np.arange(len(lengths)), offsets)

    def max_cost(self, cost: Cost, longest: NDArray[np.int64]) -> float:
        return float(costs_of(cost, np.array([self.batch_size]), longest[None, :])[0])

    def batch_sizes(self, lengths: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]) -> NDArray[np.float64]:
        return _sizes_within(lengths, cost, self.max_cost(cost, longest))


def cut_greedily(
    lengths: NDArray[np.int64],
    boundaries: NDArray[np.int64],
    *,
    cost: Cost,
    budget: float,
    most: int | None = None,
    overshoot: bool = False,
) -> NDArray[np.int64]:
    """The offsets of batches filled in order up to `budget`, or, where `overshoot`, until they reach it.

    A sequence over the budget by itself stands alone. The costs of this package run compiled. Any other cost, and any
    class that extends one of them, is called for some thousand (count, padded lengths) at a time.
    """
    most = most or len(lengths) + 1
    prices = prices_of(cost, lengths.shape[1])
    if prices is None:
        return _cut_by_calls(lengths, boundaries, cost, budget, most, overshoot)
    offsets = np.empty(len(lengths) + 1, np.int64)
    batches = _kernels.greedy_cut(lengths, boundaries, prices, float(budget), most, overshoot, offsets)
    return offsets[: batches + 1].copy()


def _cut_by_calls(
    lengths: NDArray[np.int64], boundaries: NDArray[np.int64], cost: Cost, budget: float, most: int, overshoot: bool
) -> NDArray[np.int64]:
    """The same by any callable, with few calls that each price many batches.

    A batch starts where the one before it ends, which is not known ahead. So one call prices the batches that would
    start at each position of a stretch. If batches from the positions 0..4 would hold [2, 3, 1, 2, 2] sequences, the
    batches are 0-1, 2 and 3-4.
    """
    count = len(lengths)
    borders = np.append(boundaries, count)
    room = borders[np.searchsorted(borders, np.arange(count), side="right")] - np.arange(count)
    room = np.minimum(room, most)  # the most sequences of a batch, by the position where it starts
    offsets = [0]
    ahead = _LEAST_AHEAD  # how many sequences a batch is tried with
    while (start := offsets[-1]) < count:
        stop = min(count, start + max(1, _ASKED // ahead))
        ahead = min(ahead, int(room[start:stop].max()))
        # A batch also ends at a boundary, and at `most` sequences, before the budget is reached.
        sizes = np.minimum(_sizes_from(lengths, start, stop, ahead, cost, budget, overshoot), room[start:stop])
        ends = np.where(sizes <= ahead, np.arange(start, stop) + sizes, -1).tolist()
        known = len(offsets)
        while offsets[-1] < stop and (end := ends[offsets[-1] - start]) > 0:
            offsets.append(end)
        # Where the stretch ended early, batches are longer than `ahead`: try twice as many. Else twice the largest.
        grown = int(np.diff(offsets[known - 1 :]).max(initial=1))
        ahead = 2 * ahead if offsets[-1] < stop else max(_LEAST_AHEAD, 2 * grown)
    return np.array(offsets, np.int64)


def _sizes_from(
    lengths: NDArray[np.int64], start: int, stop: int, ahead: int, cost: Cost, budget: float, overshoot: bool
) -> NDArray[np.int64]:
    """How many sequences a batch takes from each of the positions start..stop-1, at least one: [stop - start].

    `_BEYOND` where the next `ahead` sequences do not close it.
    """
    rows = np.zeros((stop - start + ahead - 1, lengths.shape[1]), np.int64)
    reached = lengths[start : stop + ahead - 1]
    rows[: len(reached)] = reached
    # For lengths [5, 9, 2, 4] and ahead = 2, the longest of each batch are [[5, 9], [9, 9], [2, 4]] from 0, 1 and 2.
    windows = np.lib.stride_tricks.sliding_window_view(rows, ahead, axis=0)
    longest = np.maximum.accumulate(windows, axis=2).transpose(0, 2, 1).reshape(-1, lengths.shape[1])
    costs = costs_of(cost, np.tile(np.arange(1, ahead + 1), stop - start), longest).reshape(-1, ahead)
    closed = costs >= budget if overshoot else costs > budget
    # The sequence that closes a batch is in it only where it may overshoot.
    sizes = np.where(closed.any(axis=1), closed.argmax(axis=1) + overshoot, _BEYOND)
    return np.maximum(sizes, 1)


def _sizes_within(lengths: NDArray[np.int64], cost: Cost, budget: float) -> NDArray[np.float64]:
    """The largest count, from 1 to 2**40 - 1, whose cost at each of `lengths` [k, dims] is within the budget: [k]."""
    low, high = _bounds_within(lengths, cost, budget)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        fits = costs_of(cost, middle, lengths) <= budget
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low.astype(np.float64)


def _bounds_within(
    lengths: NDArray[np.int64], cost: Cost, budget: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A count that is within the budget, or 1, and a larger one that is not, or 2**40, at each of `lengths`."""
    if (prices := prices_of(cost, lengths.shape[1])) is not None:
        linear, quadratic, per_length = np.split(prices[2:], 3)
        each = prices[1] + lengths @ linear + (lengths * lengths.astype(np.float64)) @ quadratic
        left = budget - prices[0] - lengths @ per_length
        count = np.divide(left, each, out=np.full(len(lengths), float(_MOST_COUNTED)), where=each > 0)
        near = count.clip(2, _MOST_COUNTED - 1).astype(np.int64)
        low, high = near - 1, np.minimum(near + 2, _MOST_COUNTED)  # one to either side for what was rounded
        fits, open_ended = low == 1, high == _MOST_COUNTED
        fits |= costs_of(cost, low, lengths) <= budget
        if fits.all() and (open_ended | (costs_of(cost, high, lengths) > budget)).all():
            return low, high
    # Doubles the count until it no longer fits.
    low, high = np.ones(len(lengths), np.int64), np.full(len(lengths), 2)
    while np.any(growing := (costs_of(cost, high, lengths) <= budget) & (high < _MOST_COUNTED)):
        low = np.where(growing, high, low)
        high = np.where(growing, high * 2, high)
    return low, high

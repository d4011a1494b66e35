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

from lengthwise import checks
from lengthwise.choices.arithmetic import check_multiple, distinct, most_sequences, round_counts, round_up
from lengthwise.choices.cost import Cost, cost_of_one, costs_alone, prices_of
from lengthwise.choices.greedy import cut_greedily, sizes_within

# Said wherever a budget is asked for: nobody knows the padded frames of a batch by heart.
BUDGET_REMEDY = "Give the most padded frames of a batch: 16 sequences have about 16 times their mean length."
_SIZE_REMEDY = "Give the number of sequences in a batch, such as 16."


class Cuts(NamedTuple):
    """What a cut gives: batch b is kept[offsets[b]:offsets[b + 1]].

    Attributes:
        kept: [k] int64, positions 0..m-1 in the order, each at most once; what a policy drops is not among them. A cut
            may reorder, but only between two boundaries. None for all as they come.
        offsets: [batches + 1] int64, strictly rising from 0 to k.
    """

    kept: NDArray[np.int64] | None
    offsets: NDArray[np.int64]


class OversizeError(ValueError):
    """A sequence costs more than the budget by itself.

    A cut raises it with the position; `make_plan` then says which sequence it is.

    Attributes:
        budget: What a batch may cost.
        cost: What the sequence costs alone, in the unit of the budget.
        position: Where it stands in the order, from 0.
        sequence: Its number in the lengths, from 0; None where it is not known yet.
        span: If it is a chunk, from which frame of the sequence to which, (start, stop); else None.
        mean_cost: What a sequence of the mean length costs, if that is over the budget too; else None.
    """

    def __init__(
        self,
        budget: float,
        cost: float,
        position: int,
        *,
        sequence: int | None = None,
        span: tuple[int, int] | None = None,
        mean_cost: float | None = None,
    ) -> None:
        self.budget: float = budget
        self.cost: float = cost
        self.position: int = position
        self.sequence: int | None = sequence
        self.span: tuple[int, int] | None = span
        self.mean_cost: float | None = mean_cost
        at = f"sequence {sequence}" if sequence is not None else f"position {position}"
        if span is not None:
            at += f", frames {span[0]} to {span[1]}"
        super().__init__(self._sentence(at))

    def _sentence(self, at: str) -> str:
        remedy = (
            f"Raise it, {'give shorter chunks, ' if self.span else ''}or choose oversize='alone' or oversize='drop' "
            "(on the command line: --cut budget:COST,oversize=alone)."
        )
        if self.mean_cost is not None:
            remedy = (
                f"A sequence of the mean length is over it too: it costs {_about(self.mean_cost)}, and 16 of them cost "
                f"about {_about(16 * self.mean_cost)}. Is the budget in the unit of the lengths, or of `cost`? {remedy}"
            )
        rule = f"at least the cost of the costliest sequence, {self.cost:.16g}"
        return checks.sentence("budget", rule, self.budget, remedy, at=at)

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is made again from its `args`, the sentence here. One that cannot be hangs a pool of processes.
        remade = partial(type(self), sequence=self.sequence, span=self.span, mean_cost=self.mean_cost)
        return remade, (self.budget, self.cost, self.position), self.__dict__


def _about(cost: float) -> str:
    """A cost for a sentence: frames as they are, seconds in three digits."""
    return f"{cost:.0f}" if cost >= 100 else f"{cost:.3g}"


class Cut(Protocol):
    """What every cut does. `longest` [dims] int64 is the longest of the whole data set, in each dimension.

    A cut with an attribute `row_capacity` packs: each batch fills rows of that length with whole sequences, in the
    order of `kept`, and a row ends before the first sequence that does not fit. With `max_in_row` beside it, a row also
    ends once it holds so many. With an attribute `multiple_of`, each batch is padded to a multiple of it, and the
    lengths that the cut is given are rounded up to it.
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


def row_capacity(cut: object) -> int | None:
    """How many frames a row holds by a cut that packs, ours or the user's: its `row_capacity`; None by any other."""
    return getattr(cut, "row_capacity", None)


def oversize_of(cut: object) -> str:
    """Returns what becomes of a sequence over the budget by a cut: its `oversize`, or "error"."""
    return getattr(cut, "oversize", "error")


def max_in_row(cut: object) -> int | None:
    """How many sequences a row holds at most by a cut that packs: its `max_in_row`; None where nothing limits them."""
    return getattr(cut, "max_in_row", None)


@dataclass(frozen=True, slots=True)
class FixedSize:
    """Batches of the same number of sequences, or a few less, so that they fill whole steps.

    Args:
        batch_size: Sequences in a batch.
        drop_incomplete: Leave out batches that are not full, as MXNet's iterator does. The plan lists what was dropped.
            A deal with `tail="split"` may still cut full batches smaller to fill a step: choose "drop" there too.
        multiple_of: Each batch is padded to a multiple of this length.
    """

    batch_size: int
    _: KW_ONLY
    drop_incomplete: bool = False
    multiple_of: int = 1

    def __post_init__(self) -> None:
        checks.keep(self, batch_size=checks.check_whole("batch_size", self.batch_size, minimum=1, remedy=_SIZE_REMEDY))
        checks.check_flag("drop_incomplete", self.drop_incomplete)
        checks.keep(self, multiple_of=check_multiple("multiple_of", self.multiple_of))

    def __call__(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]
    ) -> Cuts:
        del cost, longest
        count = len(lengths)
        borders = distinct(np.concatenate([[0], boundaries, [count]])).astype(np.int64)
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
        return Cuts(None, np.append(starts, count))

    def max_cost(self, cost: Cost, longest: NDArray[np.int64]) -> float:
        del cost, longest
        return np.inf

    def batch_sizes(self, lengths: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]) -> NDArray[np.float64]:
        del cost, longest
        return np.full(len(lengths), float(self.batch_size))


@dataclass(frozen=True, slots=True)
class Budget:
    """Batches of at most `budget` in cost, hard: padded frames, unless the batching says another cost.

    Sequences are taken in order until the next would bring the batch over the budget (Doetsch, Golik, Ney 2017,
    section 6: 5,000 frames). That makes the fewest batches.

    Args:
        budget: What a batch may cost. 16 sequences have about 16 times their mean length in padded frames;
            `lengthwise.torch.find_budget` finds what fits into memory.
        oversize: What becomes of a sequence that costs more than the budget by itself: "error", "alone" in a batch
            (listed in the plan's report), or "drop" (listed too).
        max_sequences: The most sequences in a batch.
        multiple_of: Each batch is padded to a multiple of this length; the budget counts the padded frames.
        count_multiple_of: The collate function fills the rows of each batch up to a multiple of this, and the budget
            counts the filled rows: 13 sequences cost as much as 16. A batch of fewer sequences than the multiple is not
            filled up.

    References:
        `--required-batch-size-multiple` of fairseq rounds batches down to a multiple instead, and fills up none.
    """

    budget: float
    _: KW_ONLY
    oversize: str = "error"
    max_sequences: int | None = None
    multiple_of: int = 1
    count_multiple_of: int = 1

    def __post_init__(self) -> None:
        checks.keep(self, budget=checks.check_number("budget", self.budget, above=True, remedy=BUDGET_REMEDY))
        checks.check_choice("oversize", self.oversize, ("error", "alone", "drop"))
        if self.max_sequences is not None:
            most = checks.check_whole("max_sequences", self.max_sequences, minimum=1, remedy=_SIZE_REMEDY)
            checks.keep(self, max_sequences=most)
        checks.keep(self, **_check_multiples(self.multiple_of, self.count_multiple_of))

    def __call__(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]
    ) -> Cuts:
        kept = keep_within(lengths, longest, cost=cost, budget=self.budget, oversize=self.oversize)
        if kept is None:
            return Cuts(None, self.find_offsets(lengths, boundaries, cost=cost))
        # Counted among those that stay: where position 1 of 5 is dropped, the boundary 3 becomes 2.
        return Cuts(kept, self.find_offsets(lengths[kept], np.searchsorted(kept, boundaries), cost=cost))

    def find_offsets(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost
    ) -> NDArray[np.int64]:
        """Where batches begin, and the end, if all sequences are kept; what is over the budget stands alone."""
        limits = {"budget": self.budget, "most": most_sequences(self), "multiple": self.count_multiple_of}
        return cut_greedily(lengths, boundaries, cost=cost, **limits)

    def max_cost(self, cost: Cost, longest: NDArray[np.int64]) -> float:
        del cost, longest
        return float(self.budget)

    def batch_sizes(self, lengths: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]) -> NDArray[np.float64]:
        del longest
        sizes = sizes_within(round_up(lengths, self.multiple_of), cost, self.budget)
        sizes = np.minimum(sizes, self.max_sequences or np.inf)
        return round_counts(sizes.astype(np.int64), self.count_multiple_of).astype(np.float64)


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
        multiple_of: As of `Budget`. Lmax is rounded up too.
        count_multiple_of: As of `Budget`; by the rule "hard" alone.
    """

    batch_size: int
    _: KW_ONLY
    rule: str = "hard"
    multiple_of: int = 1
    count_multiple_of: int = 1

    def __post_init__(self) -> None:
        checks.keep(self, batch_size=checks.check_whole("batch_size", self.batch_size, minimum=1, remedy=_SIZE_REMEDY))
        checks.check_choice("rule", self.rule, ("hard", "paper"))
        checks.keep(self, **_check_multiples(self.multiple_of, self.count_multiple_of))
        if self.rule == "paper" and self.count_multiple_of > 1:
            rule = "left out by the rule of the paper"
            raise checks.value_error("count_multiple_of", rule, self.count_multiple_of, "Choose rule='hard'.")

    def __call__(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]
    ) -> Cuts:
        budget = self.max_cost(cost, longest)
        overshoot, multiple = self.rule == "paper", self.count_multiple_of
        offsets = cut_greedily(lengths, boundaries, cost=cost, budget=budget, overshoot=overshoot, multiple=multiple)
        return Cuts(None, offsets)

    def max_cost(self, cost: Cost, longest: NDArray[np.int64]) -> float:
        return cost_of_one(cost, self.batch_size, round_up(longest, self.multiple_of))

    def batch_sizes(self, lengths: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]) -> NDArray[np.float64]:
        rounded, budget = round_up(lengths, self.multiple_of), self.max_cost(cost, longest)
        sizes = sizes_within(rounded, cost, budget).astype(np.int64)
        return round_counts(sizes, self.count_multiple_of).astype(np.float64)


def keep_within(
    lengths: NDArray[np.int64], longest: NDArray[np.int64], *, cost: Cost, budget: float, oversize: str
) -> NDArray[np.int64] | None:
    """The positions of what stays under a budget; None for all.

    Args:
        lengths: [m, dims].
        longest: [dims], of these or of more.
        cost: What a batch costs.
        budget: What a batch may cost.
        oversize: What becomes of a sequence that costs more by itself. One that is to be "alone" stays: whoever cuts
            lets it stand alone.

    Raises:
        OversizeError: By "error", if there is one.
    """
    if oversize == "alone":
        return None
    # A cost of this package does not fall as lengths rise. If the longest is within the budget, all are.
    if prices_of(cost, len(longest)) is not None and cost_of_one(cost, 1, longest) <= budget:
        return None
    costs = costs_alone(cost, lengths)
    if oversize == "drop":
        return np.flatnonzero(costs <= budget)
    if costs.max(initial=0.0) > budget:
        costliest = int(costs.argmax())
        raise OversizeError(budget, float(costs[costliest]), costliest)
    return None


def _check_multiples(multiple_of: int, count_multiple_of: int) -> dict[str, int]:
    return {
        "multiple_of": check_multiple("multiple_of", multiple_of),
        "count_multiple_of": check_multiple("count_multiple_of", count_multiple_of),
    }

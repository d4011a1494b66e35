"""Cut: cuts sequences in order into batches, knowing nothing but the cost of (count, padded lengths).

lengths      [m, dims]     the lengths that each sequence is padded to at least, in order
boundaries                 rising positions in 1..m-1 that no batch may cross
kept         [k]           positions that a policy does not drop
offsets      [batches+1]   batch b is kept[offsets[b]:offsets[b+1]]; strictly rising
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.choices.arithmetic import distinct, keep_multiples, lower_counts, round_up
from lengthwise.choices.cost import Cost, coefficients_of, cost_of_one, costs_alone
from lengthwise.choices.greedy import Limits, cut_greedily, sizes_within

# The advice of every error about a missing budget, because users do not know the padded frames of a batch.
BUDGET_REMEDY = "Give the largest batch in padded frames: 16 sequences have about 16 times their mean length."
_SIZE_REMEDY = "Give the number of sequences in a batch, such as 16."


class Cuts(NamedTuple):
    """The result of a cut: batch b is kept[offsets[b]:offsets[b + 1]].

    Attributes:
        kept: [k] int64, positions 0..m-1 in the order, each at most once, without those that a policy drops. A cut may
            reorder, but only between two boundaries. None for all positions in their order.
        offsets: [batches + 1] int64, strictly rising from 0 to k.

    >>> Cuts(None, np.array([0, 3, 5])).offsets  # batches of 3 and of 2 sequences
    array([0, 3, 5])
    """

    kept: NDArray[np.int64] | None
    offsets: NDArray[np.int64]


class OversizeError(ValueError):
    """A sequence alone costs more than the budget.

    A cut raises it with the position; `make_plan` then names the sequence.

    Attributes:
        budget: The most that a batch may cost.
        cost: The cost of the sequence alone, in the unit of the budget.
        position: The position of the sequence in the order, from 0.
        sequence: The number of the sequence in the lengths, from 0; None until it is known.
        span: The frames of a chunk, (start, stop); None for a whole sequence.
        mean_cost: The cost of a sequence of the mean length, if that is over the budget too; else None.

    >>> import lengthwise as lw
    >>> try:
    ...     lw.make_plan([5, 90], lw.Batching(budget=50))
    ... except OversizeError as error:
    ...     print(error.sequence, error.cost)
    1 90.0
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
            f"Raise it, {'give shorter chunks' if self.span else 'crop the sequence and its length'}, or give "
            f"cut=lw.Budget({self.budget:.16g}, oversize='alone'), or oversize='drop' (on the command line: "
            "--cut budget:COST,oversize=alone)."
        )
        if self.mean_cost is not None:
            remedy = (
                f"A sequence of the mean length is over the budget too: it costs {_about(self.mean_cost)}, and 16 of "
                f"them cost about {_about(16 * self.mean_cost)}. Is the budget in the unit of the lengths, or of "
                f"`cost`? {remedy}"
            )
        rule = f"at least the cost of the costliest sequence, {self.cost:.16g}"
        return checks.sentence("budget", rule, self.budget, remedy, at=at)

    def __reduce__(self) -> tuple[Any, ...]:
        # By default, unpickling calls the class with `args`, here the sentence. That would fail, and hang a pool of
        # processes.
        remade = partial(type(self), sequence=self.sequence, span=self.span, mean_cost=self.mean_cost)
        return remade, (self.budget, self.cost, self.position), self.__dict__


def _about(cost: float) -> str:
    """Writes a cost for a sentence: from 100 on as a whole number, below in three digits."""
    return f"{cost:.0f}" if cost >= 100 else f"{cost:.3g}"


class Cut(Protocol):
    """The form of every cut.

    `longest` [dims] int64 is, in each dimension, the greatest length that an item of the plan has, or that the order
    pads one to. A cut may have an attribute `multiple_of`: each batch is padded to a multiple of it. The cut gets
    lengths that are rounded up to such multiples.

    >>> import lengthwise as lw
    >>> class Pairs:
    ...     def __call__(self, lengths, boundaries, *, cost, longest):
    ...         return Cuts(None, np.array([*range(0, len(lengths), 2), len(lengths)]))
    ...     def max_cost(self, cost, longest):
    ...         return np.inf
    ...     def batch_sizes(self, lengths, *, cost, longest):
    ...         return np.full(len(lengths), 2.0)
    >>> lw.make_plan([5, 9, 2], lw.Batching(cut=Pairs(), order=lw.Shuffled())).batch_sizes
    array([2, 1])
    """

    def __call__(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]
    ) -> Cuts:
        """Cuts sequences into batches.

        Args:
            lengths: [m, dims] int64, the lengths that each sequence is padded to at least, in order; m is 0 if all
                sequences were dropped.
            boundaries: [b] int64, rising positions in 1..m-1 that no batch may cross.
            cost: The cost of batches.

        Raises:
            OversizeError: A sequence alone costs more than the budget, and there is no policy for it.
        """
        ...

    def max_cost(self, cost: Cost, longest: NDArray[np.int64]) -> float:
        """Returns the most that a batch may cost, in the unit of the cost; infinite for no bound."""
        ...

    def batch_sizes(self, lengths: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]) -> NDArray[np.float64]:
        """Estimates the sequences in a batch that is padded to each of `lengths` [k, dims]: [k], at least 1."""
        ...


def is_hard(cut: object) -> TypeGuard[Budget | DynamicSize]:
    """Returns True for a cut of this package in which no batch of several sequences exceeds the budget."""
    return type(cut) is Budget or (type(cut) is DynamicSize and cut.rule == "hard")


def oversize_of(cut: object) -> str:
    """Returns the policy of a cut for a sequence over the budget: its `oversize`, or "error"."""
    return getattr(cut, "oversize", "error")


@dataclass(frozen=True, slots=True)
class FixedSize:
    """Batches of the same number of sequences; or of nearly equal, smaller numbers, if these fill whole steps.

    The deal `RandomSteps` shares out the sequences of a step by their cost instead, unless `even=False`.

    Args:
        batch_size: The number of sequences in a batch.
        drop_incomplete: Leave out batches that are not full, as MXNet's iterator does. The plan lists their sequences.
            A deal with `tail="split"` may still cut full batches smaller to fill a step: choose "drop" there too.
        multiple_of: Each batch is padded to a multiple of this length.

    >>> import lengthwise as lw
    >>> lw.make_plan([5, 9, 2, 4, 7], lw.Batching(cut=FixedSize(2), order=lw.Sorted())).batch_sizes
    array([1, 2, 2])
    """

    batch_size: int
    _: KW_ONLY
    drop_incomplete: bool = False
    multiple_of: int = 1

    def __post_init__(self) -> None:
        checks.keep_whole(self, "batch_size", remedy=_SIZE_REMEDY)
        checks.check_flag("drop_incomplete", self.drop_incomplete)
        keep_multiples(self, "multiple_of")

    def __call__(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]
    ) -> Cuts:
        count = len(lengths)
        borders = distinct(np.concatenate([[0], boundaries, [count]])).astype(np.int64)
        widths = np.diff(borders)
        # For example, 7 sequences with a boundary at 3, in batches of 2: the borders are [0, 3, 7], the widths [3, 4].
        if self.drop_incomplete:
            # [2, 4] sequences stay: positions 0, 1 and 3 to 6. Position 2 does not fill a batch.
            full = widths // self.batch_size * self.batch_size
            in_full = np.arange(count) - np.repeat(borders[:-1], widths) < np.repeat(full, widths)
            return Cuts(np.flatnonzero(in_full), np.arange(0, full.sum() + 1, self.batch_size))
        batches = -(-widths // self.batch_size)  # [2, 2], which start at [0, 2] and at [3, 5]
        first = np.cumsum(batches) - batches
        batch_in_part = np.arange(batches.sum()) - np.repeat(first, batches)
        starts = np.repeat(borders[:-1], batches) + batch_in_part * self.batch_size
        return Cuts(None, np.append(starts, count))

    def max_cost(self, cost: Cost, longest: NDArray[np.int64]) -> float:
        return np.inf

    def batch_sizes(self, lengths: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full(len(lengths), float(self.batch_size))


@dataclass(frozen=True, slots=True)
class Budget:
    """Batches that cost at most `budget`: padded frames, unless the batching has another cost.

    Sequences are taken in order until the next would bring the batch over the budget (Doetsch, Golik, Ney 2017,
    section 6: 5,000 frames). No other cut of this order has fewer batches.

    Args:
        budget: The most that a batch may cost. 16 sequences have about 16 times their mean length in padded frames;
            `lengthwise.torch.find_budget` finds the largest that fits into memory.
        oversize: The policy for a sequence that alone costs more than the budget: "error"; "alone" in a batch, which
            `plan.over_max_cost()` lists; or "drop", and `plan.dropped()` lists the sequence.
        max_sequences: The most sequences in a batch. Above `count_multiple_of`, the next multiple below counts.
        multiple_of: Each batch is padded to a multiple of this length; the budget counts the padded frames.
        count_multiple_of: The collate function fills the rows of each batch up to a multiple of this, and the budget
            counts the filled rows: with 8, 13 sequences cost as much as 16. A batch of fewer sequences than the
            multiple is not filled up.

    References:
        `--required-batch-size-multiple` of fairseq rounds batches down to a multiple instead, and fills up none.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=Budget(10), order=lw.Sorted())
    >>> lw.make_plan([5, 9, 2, 4, 2], batching).batch_sizes  # 2 2, then 4 5, then 9
    array([2, 2, 1])
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
        checks.keep_whole(self, "max_sequences", remedy=_SIZE_REMEDY, optional=True)
        keep_multiples(self, "multiple_of", "count_multiple_of")

    def __call__(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]
    ) -> Cuts:
        places = find_kept(lengths, longest, cost=cost, budget=self.budget, oversize=self.oversize)
        limits = limits_by_cost(self, cost, longest)
        if places is None:
            return Cuts(None, cut_greedily(lengths, boundaries, limits))
        # Boundaries count the kept positions: if position 1 of 5 is dropped, the boundary 3 becomes 2.
        return Cuts(places, cut_greedily(lengths[places], np.searchsorted(places, boundaries), limits))

    def max_cost(self, cost: Cost, longest: NDArray[np.int64]) -> float:
        return float(self.budget)

    def batch_sizes(self, lengths: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]) -> NDArray[np.float64]:
        sizes = sizes_within(round_up(lengths, self.multiple_of), cost, self.budget)
        sizes = sizes if self.max_sequences is None else np.minimum(sizes, self.max_sequences)
        return lower_counts(sizes, self.count_multiple_of).astype(np.float64)


@dataclass(frozen=True, slots=True)
class DynamicSize:
    """Batch sizes that grow as batches get shorter, from a base size for the longest batch (Ge et al. 2021, section 4).

    The capacity is B0 x Lmax: the cost of `batch_size` sequences of the longest length.

    Args:
        batch_size: B0, the size of the batch that holds the longest sequences.
        rule: "hard" closes a batch before the sequence that would bring it over the capacity. This is the rule that the
            paper prints, B_i L_i <= B0 Lmax < B_{i+1} L_{i+1}. "paper" closes a batch once it has reached the capacity,
            so nearly every batch OVERSHOOTS it: by up to one sequence, and by more if a longer sequence comes last.
            `plan.over_max_cost()` lists these batches. "paper" comes within 2 % of the numbers of batches in the paper
            (606, 449 and 419).
        multiple_of: As in `Budget`. Lmax is rounded up too.
        count_multiple_of: As in `Budget`; only with the rule "hard".

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=DynamicSize(2), order=lw.Sorted())  # at most 2 x 9 frames
    >>> lw.make_plan([5, 9, 2, 4, 9], batching).batch_sizes  # 2 4 5, then 9 9
    array([3, 2])
    """

    batch_size: int
    _: KW_ONLY
    rule: str = "hard"
    multiple_of: int = 1
    count_multiple_of: int = 1

    def __post_init__(self) -> None:
        checks.keep_whole(self, "batch_size", remedy=_SIZE_REMEDY)
        checks.check_choice("rule", self.rule, ("hard", "paper"))
        keep_multiples(self, "multiple_of", "count_multiple_of")
        if self.rule == "paper" and self.count_multiple_of > 1:
            rule = "left out by the rule of the paper"
            raise checks.value_error("count_multiple_of", rule, self.count_multiple_of, "Choose rule='hard'.")

    def __call__(
        self, lengths: NDArray[np.int64], boundaries: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]
    ) -> Cuts:
        limits = limits_by_cost(self, cost, longest)
        return Cuts(None, cut_greedily(lengths, boundaries, limits, overshoot=self.rule == "paper"))

    def max_cost(self, cost: Cost, longest: NDArray[np.int64]) -> float:
        return cost_of_one(cost, self.batch_size, round_up(longest, self.multiple_of))

    def batch_sizes(self, lengths: NDArray[np.int64], *, cost: Cost, longest: NDArray[np.int64]) -> NDArray[np.float64]:
        rounded, budget = round_up(lengths, self.multiple_of), self.max_cost(cost, longest)
        return lower_counts(sizes_within(rounded, cost, budget), self.count_multiple_of).astype(np.float64)


def limits_by_cost(cut: Budget | DynamicSize, cost: Cost, longest: NDArray[np.int64]) -> Limits:
    """Returns the limits of the batches of a cut by cost, where `longest` [dims] is the longest of the data set."""
    limits = Limits(cost, cut.max_cost(cost, longest), count_multiple=cut.count_multiple_of)
    if not isinstance(cut, Budget) or cut.max_sequences is None:
        return limits
    # Rounded down, so that rows that are filled up do not exceed it.
    return limits._replace(max_sequences=int(lower_counts(np.array([cut.max_sequences]), limits.count_multiple)[0]))


def find_kept(
    lengths: NDArray[np.int64], longest: NDArray[np.int64], *, cost: Cost, budget: float, oversize: str
) -> NDArray[np.int64] | None:
    """Returns the positions that the policy `oversize` keeps; None for all. "alone" keeps all.

    Args:
        lengths: [m, dims].
        longest: [dims], at least as long as any of `lengths`, in each dimension.

    Raises:
        OversizeError: The policy is "error", and a sequence alone costs more than the budget.
    """
    if oversize == "alone":
        return None
    # A cost of this package does not fall as lengths rise. If a sequence of `longest` is within the budget, all are.
    if coefficients_of(cost, len(longest)) is not None and cost_of_one(cost, 1, longest) <= budget:
        return None
    costs = costs_alone(cost, lengths)
    if oversize == "drop":
        return np.flatnonzero(costs <= budget)
    if costs.max(initial=0.0) > budget:
        costliest = int(costs.argmax())
        raise OversizeError(budget, float(costs[costliest]), costliest)
    return None

"""Step batches: the sequences of a given step, cut into batches and dealt to the ranks in the fastest way.

    part       [k]   positions of sequences in the step, rising: from the longest
    batches    [m]   the part that each batch takes
    part_of    [m]   the number of the part that each batch is cut from

Padded batches are cut from the sorted part. Packed ones fill rows, where short sequences stand beside a long one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise.choices.arithmetic import longest_of
from lengthwise.choices.batching import Batching
from lengthwise.choices.deal import World
from lengthwise.planning.exact_count import cut_into, split_largest
from lengthwise.planning.portion import Portion, add_costs
from lengthwise.planning.steps import form_steps

Numbers: TypeAlias = NDArray[np.int64]
Costs: TypeAlias = NDArray[np.float64]
Dealt: TypeAlias = tuple[Portion, Numbers]  # priced batches, and their grid [1, micro_batches, ranks]

_NO_BOUNDARIES = np.empty(0, np.int64)
_UNLIMITED = 2**62  # sequences
_NEAR = 1.001  # of the least time that any deal takes: once a deal is so near, no other is tried
_ROUNDED = 1.0 + 2.0**-32  # more than sums of costs are rounded by
_TURNS = 2**12  # sequences x turns in which the meetings of giants are filled; at least 3 turns
_PAIRS = 2**29  # sequences x batches: up to so many, each sequence looks for the cheapest batch


@dataclass(frozen=True)
class Step:
    """The sequences of a given step, from the longest, and the limits of its batches.

    Attributes:
        batching: The choices.
        cut: The cut of the batching; one that packs rows does so by best fit.
        portion: The sequences, [n], with the limits of a batch; without limits, rows are packed.
        costs_alone: [n], the cost of each in a batch of its own, which ranks share evenly.
        sizes: [n], the room that each takes of a batch at least.
        room: The room of a batch.
        groups: [n], the group of each, from 0; sequences of a group share a rank.
        parts: The sequences of each rank, if they cannot move; else None.
    """

    batching: Batching
    cut: Any
    portion: Portion
    costs_alone: Costs
    sizes: Costs
    room: float
    groups: Numbers
    parts: list[Numbers] | None

    @property
    def is_free(self) -> bool:
        """True if each sequence may go to any rank."""
        return self.parts is None and int(self.groups.max()) + 1 == len(self.groups)

    def pad(self, batches: list[Numbers]) -> Portion:
        """Pads the batches, and adds their costs."""
        positions, offsets = np.concatenate(batches), np.cumsum([0, *map(len, batches)])
        unpriced = Portion(self.portion.members[positions], self.portion.needed[positions], offsets=offsets)
        return add_costs(unpriced, self.cut, self.batching.cost, self.batching.balance)

    def fewest(self, part: Numbers) -> int:
        """Returns the fewest batches that hold a part; packed, the fewest that best fit finds."""
        needed, cost = self.portion.needed, self.batching.cost
        return len(self.cut(needed[part], _NO_BOUNDARIES, cost=cost, longest=longest_of(needed)).offsets) - 1

    def cut_evenly(self, part: Numbers, batches: int) -> list[Numbers] | None:
        """Cuts a part into `batches` of about the same cost, or into one for each sequence. None if these are too few.

        Rows: each sequence, from the longest, goes to the cheapest row that has room; or if that fails, by best fit.
        """
        needed = self.portion.needed[part]
        if self.portion.limits is not None:
            fits = self.fewest(part) <= batches
            return _slice(part, cut_into(needed, _NO_BOUNDARIES, batches, self.portion.limits)) if fits else None
        if self.cut.rows == 1 and len(part) * batches <= _PAIRS:
            bin_of, fits = self._fill_rows(part, batches)
            if fits:
                return _split(part, bin_of, batches)
        cuts = form_steps(needed, None, self.batching, None, slots=batches, bands=(), steps=1)
        return None if cuts is None else self.swap(_slice(part[cuts.kept], cuts.offsets), np.arange(batches))

    def fill(self, part: Numbers, batches: int, level: float) -> list[Numbers]:
        """Fills batches from the longest sequences, up to a cost of `level`; none if the cost has no coefficients.

        A batch takes a sequence at least. The last sequences of the part may be left over.
        """
        if self.portion.limits is None:
            part = part if self.cut.rows == 1 else part[:0]
            bin_of, _ = self._fill_rows(part, batches, level)
            return _split(part[bin_of >= 0], bin_of[bin_of >= 0], batches)
        lengths, bounds = self.portion.limits.for_kernels(self.portion.needed[part])
        if bounds is None:
            return []
        offsets, order = np.zeros(batches + 1, np.int64), (np.arange(len(part)), 0, len(part), _NO_BOUNDARIES)
        count, *_ = _kernels.cut_batches(lengths, *order, bounds, level, False, offsets[1:])
        return _slice(part, split_largest(offsets[: min(count, batches) + 1], batches))

    def _fill_rows(self, part: Numbers, rows: int, level: float = np.inf) -> tuple[Numbers, bool]:
        bin_limits = self.room, self.cut.max_in_row or _UNLIMITED, 1
        return _fill_bins(self.costs_alone[part], self.sizes[part], rows, bin_limits, level)

    def share_out(self, world: World) -> list[Numbers] | None:
        """Gives groups of sequences to ranks of about equal cost: the part of each rank. None if some find no room."""
        costs, sizes = (np.bincount(self.groups, each).astype(np.float64) for each in (self.costs_alone, self.sizes))
        falling, rank_of = np.argsort(-costs, kind="stable"), np.empty(len(costs), np.int64)
        room = world.micro_batches * self.room * _ROUNDED  # the cut of each batch keeps the limit to the last bit
        bin_limits = room, _UNLIMITED, world.micro_batches if self.is_free else 1
        rank_of[falling], fits = _fill_bins(costs[falling], sizes[falling], world.world_size, bin_limits)
        parts = [np.flatnonzero(rank_of[self.groups] == rank) for rank in range(world.world_size)]
        return sorted(parts, key=lambda part: not len(part)) if fits else None

    def swap(self, batches: list[Numbers], owners: Numbers) -> list[Numbers]:
        """Swaps sequences of batches of one row each, so that the `owners` of batches, from 0, cost about the same."""
        if self.portion.limits is not None or self.cut.rows > 1 or not batches:
            return batches
        part, batch_of = np.concatenate(batches), np.repeat(np.arange(len(batches)), [*map(len, batches)])
        totals = np.empty(int(owners.max()) + 1)
        _kernels.even_out(self.costs_alone[part], self.sizes[part], self.room, batch_of, owners, totals)
        return _split(part, batch_of, len(batches))


def deal_fastest(step: Step, world: World, meet: str) -> Dealt | None:
    """Deals in several ways, and returns the fastest. None if so many batches cannot keep the limits.

    The time is the cost of the costliest rank, or the sum of the costliest batches of all meetings.
    """
    best, least = None, np.inf
    # No deal is faster than the costliest sequence alone, or than ranks that all cost the mean.
    enough = _NEAR * max(math.fsum(step.costs_alone) / world.world_size, float(step.costs_alone.max()))
    for batches, grid in _deal_in_turn(step, world, meet):
        costs = batches.balances[grid[0]]
        time = float(costs.sum(axis=0).max()) if meet == "step" else math.fsum(costs.max(axis=1))
        if time < least:
            best, least = (batches, grid), time
        if least <= enough:
            break
    return best


def _deal_in_turn(step: Step, world: World, meet: str) -> Iterator[Dealt]:
    """Deals batches that are made of the sequences of each rank; then, if these may move, of all sequences."""
    everything = [np.arange(len(step.costs_alone))]
    for parts in (step.parts or step.share_out(world), everything if step.is_free else None):
        width, turns = (world.world_size if parts is everything else 1), max(3, _TURNS // len(step.costs_alone))
        turns = 1 if step.is_free and width == 1 else turns
        for batches, part_of in () if parts is None else _cut_in_turn(step, parts, width, world, turns):
            priced = step.pad(batches)
            grid = _make_grid(priced.balances, None if parts is everything else part_of, world, meet)
            yield priced, grid
            if parts is everything and meet == "step" and len(batches) == world.slots:
                part_of[grid[0]] = np.arange(world.world_size)
                priced = step.pad(step.swap(batches, part_of))
                yield priced, _make_grid(priced.balances, part_of, world, meet)


def _cut_in_turn(
    step: Step, parts: list[Numbers], width: int, world: World, turns: int
) -> Iterator[tuple[list[Numbers], Numbers]]:
    """Cuts each part into `width` batches for each micro-batch. Yields the batches, and the part of each.

    First all batches of a part cost about the same. If one sequence alone costs more, its meeting is filled: `width`
    batches of each part, up to its cost. Only then the others are cut evenly, and so on.

        9 3 3 2 2 1     two ranks, two micro-batches, no limit
        evenly          (9) (3 1) | (2 2) (3)        9, then 4
        in turn         (9) (3 3 2) | (2) (1)        9, then 2
    """
    done: list[list[Numbers]] = [[] for _ in parts]
    is_left = np.ones(len(step.costs_alone), bool)
    for turn in range(min(world.micro_batches, turns)):
        rest = (world.micro_batches - turn) * width
        attempts: Iterator[Any] = (step.cut_evenly(part[is_left[part]], rest) for part in parts)
        cuts = list(takewhile(lambda cut: cut is not None, attempts))
        if len(cuts) < len(parts):
            return
        new = [batch for cut in cuts for batch in cut]
        together = [[*before, *cut] for before, cut in zip(done, cuts, strict=True)]
        part_of = np.repeat(np.arange(len(parts)), [*map(len, together)])
        yield [batch for batches in together for batch in batches], part_of
        costliest = new[int(step.pad(new).balances.argmax())]
        if len(costliest) > 1:
            return
        for part, before in zip(parts, done, strict=True):  # each later batch needs a sequence
            left = part[is_left[part]]
            before += step.fill(left[: max(0, len(left) - rest + width)], width, float(step.costs_alone[costliest[0]]))
            is_left[np.concatenate([part[:0], *before])] = False
        if is_left[costliest[0]]:
            return


def _make_grid(costs: Costs, rank_of: Numbers | None, world: World, meet: str) -> NDArray[np.int64]:
    """Deals batches to their ranks, or to any. Those of like cost meet; if they meet once, ranks cost the same in sum.

    Each rank begins with its cheapest. If it has too few, it takes these again; if it has none, the cheapest of all,
    which another rank takes before it: a rank without batches is among the last.
    """
    numbers = np.argsort(costs, kind="stable")
    if rank_of is None:
        numbers = np.append(numbers, np.resize(numbers, world.slots - len(numbers)))
        numbers = numbers[np.argsort(costs[numbers], kind="stable")]
        if meet == "batch":
            return numbers.reshape(1, *world[::-1])
        bin_limits = np.inf, world.micro_batches, 1
        ranks, _ = _fill_bins(costs[numbers[::-1]], np.zeros(world.slots), world.world_size, bin_limits)
        ranks = ranks[::-1]
    else:
        ranks = rank_of[numbers]
    for rank in np.flatnonzero(np.bincount(ranks, minlength=world.world_size) < world.micro_batches):
        own = numbers[ranks == rank]
        repeats = np.resize(own if len(own) else numbers[:1], world.micro_batches - len(own))
        numbers, ranks = np.append(numbers, repeats), np.append(ranks, np.full(len(repeats), rank))
    order = np.lexsort((costs[numbers], ranks))
    return numbers[order].reshape(world).T[None]


def _fill_bins(
    costs: Costs, sizes: Costs, bins: int, bin_limits: tuple[float, int, int], level: float = np.inf
) -> tuple[Numbers, bool]:
    """Puts items into bins of about the same cost, by a kernel; without a finite level, items are then swapped.

    Returns:
        The bin of each item, -1 if none has room; and True if all have one.
    """
    bin_of, totals = np.empty(len(costs), np.int64), np.empty(bins)
    _kernels.fill_bins(costs, sizes, bin_limits, level, bin_of, totals)
    fits = bool((bin_of >= 0).all())
    if fits and level == np.inf:
        _kernels.even_out(costs, sizes, bin_limits[0], bin_of, np.arange(bins), totals)
    return bin_of, fits


def _split(part: Numbers, bin_of: Numbers, bins: int) -> list[Numbers]:
    """Returns the members of each bin that has some."""
    offsets = np.cumsum([0, *np.bincount(bin_of, minlength=bins)])
    return [members for members in _slice(part[np.argsort(bin_of, kind="stable")], offsets) if len(members)]


def _slice(part: Numbers, offsets: Numbers) -> list[Numbers]:
    return [part[start:stop] for start, stop in pairwise(offsets.tolist())]

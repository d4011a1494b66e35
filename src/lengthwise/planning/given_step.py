"""Given step: sequences that are a step already, cut into micro-batches for every rank.

    lengths   9 7 5 4 3 2             two ranks, rows of 10 tokens: two batches for each are the fewest
    grid      (4 2) (9) | (7) (5 3)   by rank

Here arguments are read, and the fewest micro-batches are found. `step_batches` cuts and deals the batches.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.arithmetic import length_multiple
from lengthwise.choices.batching import Batching, check_batching
from lengthwise.choices.cost import costs_alone
from lengthwise.choices.cut import FixedSize
from lengthwise.choices.deal import Balanced, World, check_world
from lengthwise.choices.greedy import Limits
from lengthwise.choices.order import Sorted
from lengthwise.choices.rows import Rows
from lengthwise.lengths.arrays import name_checked, view_lengths
from lengthwise.planning.items import check_countable, kinds_of, read_groups, take_items
from lengthwise.planning.make import NoStepError, find_max_cost
from lengthwise.planning.plan import Plan
from lengthwise.planning.portion import Portion, Settled, add_costs, cut_portion
from lengthwise.planning.settle import choose_bands
from lengthwise.planning.step_batches import Dealt, Step, deal_fastest
from lengthwise.planning.steps import COUNTED


def plan_step(
    lengths: ArrayLike,
    batching: Batching,
    *,
    world_size: int,
    micro_batches: int | None = None,
    multiple_of: int = 1,
    groups: ArrayLike | None = None,
    ranks: ArrayLike | None = None,
    meet: str = "step",
) -> Plan:
    """Plans one step that is given, such as rollouts or a global batch: micro-batches for every rank.

    Args:
        lengths: [n], or [n, dims] if a sequence has several.
        batching: The cut, the cost and the balance. The cut is a hard limit of every batch: of padded frames
            (`Budget`), of packed tokens (`Rows`), of sequences (`FixedSize`). Ranks share the balance evenly, or else
            the cost. Leave out order and deal.
        world_size: The number of ranks.
        micro_batches: The batches of each rank; by default the fewest that keep the limit, the same on every rank.
        multiple_of: The batches of each rank are a multiple of this, as some pipelines need.
        groups: [n] whole numbers or names: sequences that must share a rank, such as the answers to one prompt. They
            may be in several batches. A pair that must stay in one batch is one sequence, of the sum of its lengths.
        ranks: [n], the rank of each sequence, if sequences cannot move. Only the micro-batches are then found.
        meet: The time when ranks wait for each other: once a "step" (DDP with `no_sync`), or after each micro-"batch"
            (FSDP, pipelines).

    Returns:
        A plan of one step that takes every sequence once, except those that the cut drops. Each rank takes its batches
        from the cheapest. With fewer sequences than micro-batches it takes some again, which `loss_scales` scales by 0.
        Without sequences, the plan has no step. The search for the fewest is exact for padded batches of one length. In
        rows, with groups, and with several lengths it rarely takes one more than the best division.

    Raises:
        OversizeError: A sequence alone is over the limit, and the cut has no policy for it.
        ValueError: `micro_batches` are too few to keep the limit, or a rank of `ranks` has no sequence.

    >>> import lengthwise as lw
    >>> lengths = np.array([2, 9, 4, 7, 3, 5])
    >>> plan = plan_step(lengths, lw.Batching(cut=lw.Rows(10)), world_size=2)
    >>> [[lengths[batch].tolist() for batch in plan.batches(rank)] for rank in (0, 1)]
    [[[4, 2], [9]], [[7], [5, 3]]]

    References:
        Longest processing time first: Graham 1969, "Bounds on multiprocessing timing anomalies". Here bins have limits.
        Rows by best-fit decreasing: Johnson 1973, "Near-optimal bin packing algorithms".
    """
    _check_choices(batching)
    checks.check_choice("meet", meet, ("step", "batch"))
    multiple = checks.check_whole("multiple_of", multiple_of, minimum=1, remedy="Give a whole number, such as 4.")
    if groups is not None and ranks is not None:
        raise checks.state_error("`groups` and `ranks` are both given", "Leave out `groups`: the ranks say it all.")
    if micro_batches is not None and multiple > 1:
        raise checks.state_error("`micro_batches` and `multiple_of` are both given", "Choose one of them.")
    world = check_world(world_size, multiple if micro_batches is None else micro_batches)
    array = view_lengths(lengths)
    if not len(array):
        nothing = Portion(np.arange(0), needed := take_items(array, batching).lengths, padded_lengths=needed)
        return _make_plan((nothing, np.empty((0, *world[::-1]), np.int64)), batching, array)
    step = _read_step(array, batching, world, groups, ranks)
    dealt = _deal_fewest(step, world, meet) if micro_batches is None else deal_fastest(step, world, meet)
    if dealt is None:
        least = _deal_fewest(step, World(world.world_size, 1), meet)[1].shape[1]
        rule, remedy = f"at least {least} to keep the limit", "Leave them out to have the fewest."
        raise checks.value_error("micro_batches", rule, micro_batches, remedy)
    return _make_plan(dealt, batching, array)


def _deal_fewest(step: Step, world: World, meet: str) -> Dealt:
    """Deals the fewest batches that keep the limit; on each rank a multiple of the micro-batches of `world`."""
    parts, places = ([np.arange(len(step.costs_alone))], world.world_size) if step.parts is None else (step.parts, 1)
    number, dealt = max(-(-step.fewest(part) // places) for part in parts), None
    while dealt is None:  # groups may need more than their sequences
        number = -(-number // world.micro_batches) * world.micro_batches
        dealt = deal_fastest(step, check_world(world.world_size, number, remedy="Raise the limit of a batch."), meet)
        number += 1
    return dealt


def _check_choices(batching: Batching) -> None:
    """Refuses the choices that a given step leaves no room for."""
    check_batching(batching)
    if batching != Batching(cut=batching.cut, cost=batching.cost, balance=batching.balance):
        rule = "a cut, a cost and a balance alone, because the step is given"
        raise checks.value_error("batching", rule, batching, "Leave out order, deal, arrange, chunks and padding.")
    if getattr(batching.cut, "drop_incomplete", False):
        raise checks.value_error("drop_incomplete", "False for a step that is given", True, "Leave it out.")


def _read_step(
    array: NDArray[np.int64], batching: Batching, world: World, groups: ArrayLike | None, ranks: ArrayLike | None
) -> Step:
    """Returns the sequences that the cut keeps, of `array` [n] or [n, dims]."""
    items, cut = take_items(array, batching), batching.cut
    check_countable(items.lengths, length_multiple(cut))
    cut = replace(cut, by="best-fit", pool=None) if isinstance(cut, Rows) else cut
    batching = replace(batching, cut=cut, order=Sorted(descending=True), deal=Balanced())
    bands = choose_bands(items, kinds_of(items.lengths, batching), batching, world)
    portion: Any = cut_portion(items, None, Settled(batching, batching.order, bands), Key(), slots=1)
    members, needed, limits = portion.members, portion.needed, portion.limits
    if not len(members):
        raise NoStepError("No sequence is left: the cut drops all, because each is over the limit. Raise the limit.")
    if isinstance(cut, Rows):  # the portion is packed row by row
        order = np.argsort(-needed[:, 0], kind="stable")
        members, needed = members[order], needed[order]
        sizes, room = needed[:, 0].astype(np.float64), float(cut.capacity * cut.rows)
    else:
        if isinstance(cut, FixedSize):  # as a budget, where each sequence costs 1
            limits = Limits(COUNTED, float(cut.batch_size), balance=batching.balance or batching.cost)
        elif limits is None:
            rule = 'a FixedSize, a Budget, a Rows, or a DynamicSize of rule "hard" for a step that is given'
            raise checks.value_error("cut", rule, cut, "Take one of them.")
        room, sizes = limits.budget, np.minimum(limits.budget, costs_alone(limits.cost, needed))
    portion = Portion(members, needed, offsets=np.arange(len(members) + 1), limits=limits)
    each = add_costs(portion, cut, batching.cost, batching.balance).balances
    numbers = np.arange(len(array)) if groups is None else read_groups(groups, len(array))
    numbers = np.unique(numbers[members], return_inverse=True)[1]
    parts = None if ranks is None else _read_ranks(ranks, len(array), members, world.world_size)
    return Step(batching, cut, portion, each, sizes, room, numbers, parts)


def _read_ranks(ranks: ArrayLike, count: int, members: NDArray[np.int64], world_size: int) -> list[NDArray[np.int64]]:
    """Returns the positions of each rank's sequences among the `members`."""
    array = np.asarray(ranks)
    rule, remedy = f"{count} whole numbers from 0 to {world_size - 1}", "Give the rank of each sequence."
    if array.shape != (count,) or array.dtype.kind not in "iu" or ((array < 0) | (array >= world_size)).any():
        raise checks.value_error("ranks", rule, ranks, remedy)
    parts = [np.flatnonzero(array[members] == rank) for rank in range(world_size)]
    if empty := [rank for rank, part in enumerate(parts) if not len(part)]:
        remedy = "Give it one of weight 0, or leave out `ranks` if sequences may move. Did the cut drop its own?"
        raise checks.state_error(f"Rank {empty[0]} has no sequence", remedy)
    return parts


def _make_plan(dealt: Dealt, batching: Batching, array: NDArray[np.int64]) -> Plan:
    (batches, grid), cut, choices = dealt, batching.cut, json.loads(batching.to_json())
    return Plan(
        sequences=batches.members,
        offsets=batches.offsets,
        padded_lengths=batches.padded_lengths,
        costs=batches.costs,
        balances=None if batching.balance is None else batches.balances,
        grid=np.ascontiguousarray(grid),
        row_offsets=cut.find_rows(batches.needed, batches.offsets) if isinstance(cut, Rows) else None,
        spans=None,
        count=len(array),
        batching=json.dumps({name: choices[name] for name in choices if name not in ("order", "deal")}),
        seed=0,
        epoch=0,
        lengths_fingerprint=name_checked(array),
        max_cost=find_max_cost(take_items(array, batching).lengths, [batches], batching),
    )

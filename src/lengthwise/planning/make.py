"""`make_plan`: the stages in a row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.arithmetic import distinct, length_multiple, longest_of, round_up
from lengthwise.choices.batching import Batching, check_batching
from lengthwise.choices.cut import OversizeError, max_in_row, row_capacity
from lengthwise.choices.deal import World, check_world
from lengthwise.choices.rows import row_offsets
from lengthwise.lengths import fingerprint
from lengthwise.lengths.arrays import name_checked, view_lengths
from lengthwise.planning.batches import Batches, complete_steps, deal_and_arrange, in_grid, select
from lengthwise.planning.draft import Draft, price, take_groups, take_items
from lengthwise.planning.drafts import Kinds, count_steps, draft_portions, fill_steps, name_sequence, sort_out
from lengthwise.planning.fit import Fitted, fit_epochs, fit_window, stand_for_epochs, take_grouped
from lengthwise.planning.missed import tell_doubted_budget, tell_missed_request
from lengthwise.planning.plan import Plan
from lengthwise.planning.rest import read_runs, take_runs
from lengthwise.planning.times import Draw, copies_of, draw_times, read_times
from lengthwise.planning.trial import Data

_DRAWS = 64  # of an epoch: one in nine draws has too many batches, or in the worst of cases every second
REMEDY = "Choose tail='split', smaller batches, or a policy that drops less."


class NoStepError(ValueError):
    """The choices drop every batch, though there are sequences."""

    @classmethod
    def of(cls, batches: int, world: World) -> NoStepError:
        """The error of a plan that has so many batches."""
        found = f"there is {batches}" if batches == 1 else f"there are {batches}"
        why = f"A step takes {world.slots} batches, but {found}." if batches else "No batch is left."
        return cls(checks.sentence("steps", "at least 1", 0, f"{why} {REMEDY}"))


def make_plan(
    lengths: ArrayLike,
    batching: Batching,
    *,
    seed: int = 0,
    epoch: int = 0,
    world_size: int = 1,
    micro_batches: int = 1,
    after: Sequence[Sequence[int]] = (),
    times: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Plan:
    """Plans one epoch for every rank. Same inputs, same plan, on every platform and in every process.

    Args:
        lengths: [n], or [n, dims] if a sequence has several, such as source and target.
        batching: The choices.
        seed: Names the run: no two seeds draw the same.
        epoch: Each epoch is planned afresh, and needs no other.
        world_size: How many ranks share out the batches of a step.
        micro_batches: How many batches each rank takes in one step (gradient accumulation).
        after: Runs that took the beginning of the epoch, in turn: (world_size, micro_batches, batches that each rank
            took). What they left is planned. If a step has as many batches as before and whole steps were taken, the
            same steps follow; otherwise the batches that no rank took are dealt anew. What a tail that drops left out
            of the first run's plan stays left out.
        times: [n] numbers, at least 0, or one for all: how often epochs take each sequence. By default once. 2.5 is
            twice or three times in an epoch, and five times in two of them. Sequences of equal `times` are taken
            together as often as asked in every epoch, rounded up or down. Two copies may meet in one batch by chance.
        groups: [n] whole numbers or names, such as the task or the source of each sequence: no batch mixes two groups.
            Steps do. Random steps need at least as many batches as there are groups; where the deal is left to the
            plan, they are taken for four batches a group or more.

    Returns:
        A plan with the same number of steps on every rank, and every sequence in it exactly once, or every copy. There
        are two exceptions: a choice was asked to drop or repeat; or a step has more places than sequences are left to
        fill, and some are taken again, with a weight of 0 in `loss_scales`. `plan.dropped()`, `plan.repeated()` and
        `plan.over_max_cost()` list those. The plan has no steps if the runs of `after` took everything.

    Raises:
        ValueError: A length is not positive, a choice does not suit the lengths, or all are to be dropped; `times` are
            not [n], negative, not finite, or all 0.
        TypeError: `times` are no numbers.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder())
    >>> [batch.tolist() for batch in make_plan([5, 9, 2, 4], batching).batches()]
    [[2, 3], [0, 1]]
    >>> [batch.tolist() for batch in make_plan([5, 9, 2, 4], batching, after=[(1, 1, 1)]).batches()]
    [[0, 1]]
    >>> [batch.tolist() for batch in make_plan([5, 9, 2, 4], batching, times=[1, 0, 2, 1]).batches()]
    [[2, 2], [3, 0]]
    """
    which: dict[str, Any] = {"seed": seed, "epoch": epoch, "world_size": world_size, "micro_batches": micro_batches}
    drawn = None
    if times is not None:
        lengths = view_lengths(lengths)
        drawn = draw_times(read_times(times, len(lengths)), lengths, Key(seed=seed).seed)
    return make_fitted(lengths, batching, None, **which, after=after, times=drawn, groups=groups)


def make_fitted(
    lengths: ArrayLike,
    batching: Batching,
    fitted: Fitted | None,
    *,
    seed: int,
    epoch: int,
    world_size: int,
    micro_batches: int,
    after: Sequence[Sequence[int]],
    times: Draw | None = None,
    groups: ArrayLike | None = None,
    alone: bool = False,
) -> Plan:
    """Plans as `make_plan` does, with what was `fitted` to a sample of windows for as many ranks.

    The draw of `times` is that of the same seed, and serves all epochs. A plan `alone` has as many steps as its batches
    fill, whatever other epochs have.
    """
    check_batching(batching)
    world = check_world(world_size, micro_batches)
    runs = read_runs(after) if after else ()
    key = Key(seed=seed, epoch=epoch)
    # Runs on 8 and 6 ranks, now 4: planned for 8, then what those left for 6, then what those left for 4.
    first = runs[0].world if runs else world
    # Order and cut, into as many batches as fill whole steps.
    portions, made = _make_batches(lengths, batching, fitted, key, first, times, groups, alone)
    batching, capacity = made.batching, row_capacity(made.batching.cut)
    keys = [key.at("tail", lane=lane) for lane in range(len(portions))]
    batches, numbers = complete_steps(portions, first.slots // len(portions), made.steps, keys=keys)
    if made.items and not numbers.size:
        raise NoStepError.of(len(batches.costs), first)
    if not runs and capacity is None:  # nobody splits or packs these batches from here on
        batches = batches._replace(needed=batches.needed[:0].copy())

    # Deal and arrange; then what earlier runs took is taken, each from what the one before it left.
    grid = deal_and_arrange(batches, numbers, first, batching, deal=key.at("deal"), arrange=key.at("arrange"))
    taken = np.empty(0, np.int64)
    if runs:
        batches, grid, taken = take_runs(batches, grid, runs, world, batching, key)

    # Batches that no rank takes, for a tail that drops or a run that took them, leave.
    held = in_grid(batches, grid)
    if not held.all():
        batches, grid = select(batches, held), (np.cumsum(held) - 1)[grid]
    starts = None
    if capacity is not None:
        starts = row_offsets(batches.needed[:, 0], batches.offsets, capacity, max_in_row(batching.cut))
    return Plan(
        sequences=batches.members,
        offsets=batches.offsets,
        padded_lengths=batches.padded_lengths,
        costs=batches.costs,
        grid=np.ascontiguousarray(grid),
        row_offsets=starts,
        spans=made.spans,
        delivered=distinct(taken) if runs else None,
        times=made.times,
        count=made.items,
        batching=batching.to_json(),
        seed=int(seed),
        epoch=int(epoch),
        lengths_fingerprint=made.name,
        max_cost=made.max_cost,
    )


class _Made(NamedTuple):
    """What batches were made of, and by what.

    spans       [items, 3]   which chunk of which sequence each item is, or None
    times       [n]          how often the epoch takes each sequence, or None
    name                     the fingerprint of the lengths
    batching                 all choices made
    steps                    how many there are
    """

    spans: NDArray[np.int64] | None
    times: NDArray[np.int64] | None
    items: int
    name: str
    max_cost: float
    batching: Batching
    steps: int


def _make_batches(
    lengths: ArrayLike,
    batching: Batching,
    fitted: Fitted | None,
    key: Key,
    world: World,
    times: Draw | None,
    groups: ArrayLike | None,
    alone: bool,
) -> tuple[list[Batches], _Made]:
    """Lengths ordered, cut, padded and priced: the batches of each portion."""
    array = view_lengths(lengths)
    # Each sequence once, or as often as the epoch takes it; whole, or in chunks.
    taken_times = None if times is None else times.take(key.epoch)
    check_countable(array if array.ndim == 2 else array[:, None])
    items, spans = take_items(array, batching, taken_times)
    check_countable(round_up(items, length_multiple(batching.cut)))
    name, of_groups = name_checked(array), None if groups is None else read_groups(groups, len(array))
    own = take_groups(of_groups, spans, taken_times)
    data_name = name if of_groups is None else f"{name} in groups {fingerprint(of_groups + 1)}"
    data = Data(items, data_name, groups=own)
    if times is not None:
        data = stand_for_epochs(array, of_groups, batching, times, data_name)
    try:
        of_run = fitted is None
        if fitted is None:
            items_of = None if alone else partial(_items_of, (items, own), array, of_groups, batching, times)
            fitted = fit_epochs(data, batching, world, items_of, vary=times is not None)
        else:  # what a sample of windows has settled is taken; the edges of buckets are each window's own
            fitted = fit_window(fitted, data, world)
        kinds = sort_out(items, fitted.batching)
        if kinds.over:
            tell_doubted_budget(kinds.over, items, batching, name=data.name)
        if fitted.fit.achieved is not None and (batching.order or batching.padding):  # of the default nothing is said
            tell_missed_request(fitted, batching, name=data.name, world=world)
        batching = fitted.batching
        drafts, steps = _draw_epoch(items, own, kinds, fitted, world, key)
        if of_run and steps != (fitted.steps or steps):
            rule = f"{fitted.steps} as in the other epochs"
            checks.warn(checks.sentence("steps", rule, steps, "Its copies are longer.", at=f"epoch {key.epoch}"))
    except OversizeError as error:
        # The draft knows the numbers of chunks and of copies; the user those of the data set.
        if spans is not None:
            raise name_sequence(error, spans) from None
        if taken_times is not None:
            raise name_sequence(error, copies_of(taken_times)) from None
        raise
    most = _max_cost(items, drafts, batching)
    made = _Made(spans, taken_times, len(items), name, most, batching, steps)
    del array, items, data  # the drafts have what they need of these, and batches take the room
    return [price(draft, batching) for draft in drafts], made


_Grouped = tuple[NDArray[np.int64], NDArray[np.int64] | None]


def _items_of(
    same: _Grouped,
    array: NDArray[np.int64],
    groups: NDArray[np.int64] | None,
    batching: Batching,
    drawn: Draw | None,
    epoch: int,
) -> _Grouped:
    """The items of an epoch and their groups, where all have the `same` or each takes what is drawn for it."""
    return same if drawn is None else take_grouped(array, groups, batching, drawn.take(epoch))


def read_groups(groups: ArrayLike, count: int) -> NDArray[np.int64]:
    """Numbers the groups of `count` sequences from 0 on: [count].

    Raises:
        TypeError: Neither whole numbers nor names.
        ValueError: Not [count].

    >>> read_groups(["b", "a", "b"], 3)
    array([1, 0, 1])
    """
    given = np.asarray(groups)
    if given.dtype == object and all(isinstance(name, str) for name in given.flat):  # a column of a table
        given = given.astype(str)
    remedy = "Give the task or the source of each sequence."
    if given.size and given.dtype.kind not in "iubUS":
        raise checks.type_error("groups", "a list of whole numbers or names", groups, remedy)
    if given.shape != (count,):
        raise checks.value_error("groups", f"of shape [{count}]", given.shape, remedy)
    return np.unique(given, return_inverse=True)[1].reshape(-1)


def _draw_epoch(
    items: NDArray[np.int64],
    groups: NDArray[np.int64] | None,
    kinds: Kinds,
    fitted: Fitted,
    world: World,
    key: Key,
) -> tuple[list[Draft], int]:
    """The drafts of an epoch, drawn until they fit into the steps that every epoch has, and how many steps these are.

    Copies of very different lengths may fit in no draw. Such an epoch has the steps that it needs.
    """
    batching, portions, steps, draws = fitted.batching, None, fitted.steps, 0
    while portions is None:
        if draws == _DRAWS:
            steps = None
        options: dict[str, Any] = {"bands": fitted.bands, "steps": steps, "draw": draws, "groups": groups}
        portions = draft_portions(items, kinds, batching, fitted.fit.order, world, key, **options)
        draws += 1
    needed = count_steps(portions, batching, world) if steps is None else steps
    return fill_steps(portions, items, batching, world, steps=needed), needed


def _max_cost(items: NDArray[np.int64], drafts: list[Draft], batching: Batching) -> float:
    """The cost that no batch may exceed, given the longest that anything is padded to, or would be if not dropped."""
    if not len(items):
        return np.inf
    longest = np.max([longest_of(items), *(longest_of(draft.needed) for draft in drafts)], axis=0)
    return batching.cut.max_cost(batching.cost, longest)


def check_countable(items: NDArray[np.int64]) -> None:
    """Refuses what could be padded to 2**53 frames or more: beyond, sums and costs are no longer exact."""
    frames = len(items) * float(longest_of(items).astype(np.float64).sum())
    if frames >= 2.0**53:
        rule = "few and short enough to be padded to less than 2**53 frames"
        remedy = "Check their unit; plan fewer sequences at a time."
        raise checks.value_error("lengths", rule, frames, remedy)

"""`make_plan`: the stages in a row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.arithmetic import distinct, length_multiple, longest_of
from lengthwise.choices.batching import Batching, check_batching
from lengthwise.choices.cut import OversizeError
from lengthwise.choices.deal import World, check_world
from lengthwise.choices.rows import Rows
from lengthwise.lengths import fingerprint
from lengthwise.lengths.arrays import name_checked, view_lengths
from lengthwise.planning.batches import Batches, complete_steps, deal_and_arrange, in_grid, select
from lengthwise.planning.draft import Draft, Fitted, price
from lengthwise.planning.drafts import Kinds, count_steps, draft_portions, fill_steps, put_alone, sort_out
from lengthwise.planning.fit import fit_epochs, fit_window, stand_for_epochs
from lengthwise.planning.items import Items, check_countable, read_groups, take_items
from lengthwise.planning.plan import Plan
from lengthwise.planning.plan_warnings import tell_doubted_budget, tell_missed_request
from lengthwise.planning.resume import read_runs, take_runs
from lengthwise.planning.times import Draw, draw_times, read_times
from lengthwise.planning.trial import Data

_DRAWS = 64  # the most draws of an epoch: one draw in nine has too many batches; in the worst case, one in two
REMEDY = "Choose tail='split', smaller batches, or a policy that drops less."


class NoStepError(ValueError):
    """Error: the plan has no step, though there are sequences."""

    @classmethod
    def of(cls, batches: int, world: World) -> NoStepError:
        """Makes the error of a plan whose `batches` fill no step."""
        count = f"there is {batches}" if batches == 1 else f"there are {batches}"
        why = f"A step takes {world.slots} batches, but {count}." if batches else "No batch is left."
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
        seed: The seed of the run: no two seeds share random numbers.
        epoch: The number of the epoch. Its plan needs no plan of another epoch.
        world_size: The number of ranks.
        micro_batches: The number of batches of each rank in one step (gradient accumulation).
        after: Runs that took the beginning of the epoch, first to last: (world_size, micro_batches, batches that each
            rank took). The other batches are planned. If a step has the same number of batches and whole steps were
            taken, the same steps follow. Otherwise the batches that no rank took are dealt again. Batches that the tail
            dropped from the first run's plan stay out.
        times: [n] numbers, at least 0, or one for all: how often epochs take each sequence; once by default. With 2.5,
            one epoch takes a sequence two or three times, and any two epochs in a row take it five times. Sequences of
            equal `times` together have as many copies in an epoch as their `times` add up to, rounded up or down. Two
            copies may meet in one batch by chance.
        groups: [n] whole numbers or names, such as the task or the source of each sequence. No batch mixes two groups,
            but steps do. A random step needs a batch for each group. If the batching leaves the deal open, the plan
            takes random steps only with four batches a group.

    Returns:
        A plan with the same number of steps on every rank, which takes every sequence, or every copy, exactly once.
        There are two exceptions. You may choose to drop or repeat some. Or sequences are too few for the places of a
        step: some are then taken again, with a weight of 0 in `loss_scales`. `plan.dropped()` and `plan.repeated()`
        list the exceptions, and `plan.over_max_cost()` the batches over the bound. The plan has no steps if the runs of
        `after` took everything.

    Raises:
        ValueError: A length is not positive, a choice does not suit the lengths, or all sequences would be dropped. Or
            `times` are not [n], negative, not finite, or all 0.
        TypeError: `times` are not numbers.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder())
    >>> [batch.tolist() for batch in make_plan([5, 9, 2, 4], batching).batches()]
    [[2, 3], [0, 1]]
    >>> [batch.tolist() for batch in make_plan([5, 9, 2, 4], batching, after=[(1, 1, 1)]).batches()]
    [[0, 1]]
    >>> [batch.tolist() for batch in make_plan([5, 9, 2, 4], batching, times=[1, 0, 2, 1]).batches()]
    [[2, 2], [3, 0]]
    """
    draw = None
    if times is not None:
        lengths = view_lengths(lengths)
        draw = draw_times(read_times(times, len(lengths)), lengths, Key(seed=seed).seed)
    run: dict[str, Any] = {"seed": seed, "epoch": epoch, "world_size": world_size, "micro_batches": micro_batches}
    return make_fitted(lengths, batching, None, **run, after=after, times=draw, groups=groups)


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
    """Plans as `make_plan` does. For a window, `fitted` comes from a sample of windows, for the same ranks.

    `times` are the copies of all epochs, drawn by the same seed. If `alone`, the plan has as many steps as its batches
    fill, whatever other epochs have.
    """
    check_batching(batching)
    world = check_world(world_size, micro_batches)
    runs = read_runs(after) if after else ()
    key = Key(seed=seed, epoch=epoch)
    # If runs on 8 and 6 ranks came before one on 4: plan for 8 ranks, deal the rest to 6, and what is left then to 4.
    first = runs[0].world if runs else world
    # Order and cut, into as many batches as fill whole steps.
    source = _read_source(lengths, batching, times, groups, key)
    portions, batching, steps, max_cost = _make_batches(source, batching, fitted, key, first, alone)
    cut, count = batching.cut, len(source.items.lengths)
    keys = [key.at("tail", lane=lane) for lane in range(len(portions))]
    batches, numbers = complete_steps(portions, first.slots // len(portions), steps, keys=keys)
    if count and not numbers.size:
        raise NoStepError.of(len(batches.costs), first)
    if not runs and not isinstance(cut, Rows):  # nobody splits or packs these batches from here on
        batches = batches._replace(needed=batches.needed[:0].copy())

    # Deal and arrange; then each earlier run takes its batches, and the rest is dealt to the next.
    grid = deal_and_arrange(batches, numbers, first, batching, deal=key.at("deal"), arrange=key.at("arrange"))
    delivered = None
    if runs:
        batches, grid, members = take_runs(batches, grid, runs, world, batching, key)
        delivered = distinct(members)

    # Leave out the batches that no rank takes: the tail dropped them, or an earlier run took them.
    used = in_grid(batches, grid)
    if not used.all():
        batches, grid = select(batches, used), (np.cumsum(used) - 1)[grid]
    return Plan(
        sequences=batches.members,
        offsets=batches.offsets,
        padded_lengths=batches.padded_lengths,
        costs=batches.costs,
        grid=np.ascontiguousarray(grid),
        row_offsets=cut.find_rows(batches.needed, batches.offsets) if isinstance(cut, Rows) else None,
        spans=source.items.spans,
        delivered=delivered,
        times=source.items.times,
        count=count,
        batching=batching.to_json(),
        seed=int(seed),
        epoch=int(epoch),
        lengths_fingerprint=source.fingerprint,
        max_cost=max_cost,
    )


class _Source(NamedTuple):
    """The data set, and the items that the epoch takes of it.

    Attributes:
        array: The lengths of the data set, [n] or [n, dims].
        groups: [n], or None.
        draw: The copies of all epochs; None if each takes every sequence once.
        items: The items of this epoch.
        fingerprint: The fingerprint of the lengths.
        name: The name by which fits to these lengths and groups are remembered.
    """

    array: NDArray[np.int64]
    groups: NDArray[np.int64] | None
    draw: Draw | None
    items: Items
    fingerprint: str
    name: str

    def items_of(self, batching: Batching, epoch: int) -> Items:
        """Returns the items of another epoch."""
        if self.draw is None:
            return self.items
        return take_items(self.array, batching, self.draw.take(epoch), self.groups)


def _read_source(
    lengths: ArrayLike, batching: Batching, times: Draw | None, groups: ArrayLike | None, key: Key
) -> _Source:
    array = view_lengths(lengths)
    numbers = None if groups is None else read_groups(groups, len(array))
    items = take_items(array, batching, None if times is None else times.take(key.epoch), numbers)
    check_countable(items.lengths, length_multiple(batching.cut))
    name = name_checked(array)
    full_name = name if numbers is None else f"{name} in groups {fingerprint(numbers + 1)}"
    return _Source(array, numbers, times, items, name, full_name)


def _make_batches(
    source: _Source, batching: Batching, fitted: Fitted | None, key: Key, world: World, alone: bool
) -> tuple[list[Batches], Batching, int, float]:
    """Orders and cuts the items, pads and prices the batches.

    Returns:
        The batches of each portion; all choices made; the steps of the epoch; the bound of a batch's cost.
    """
    items, is_window = source.items, fitted is not None
    data = Data(items.lengths, source.name, groups=items.groups)
    if source.draw is not None:
        data = stand_for_epochs(source.array, source.groups, batching, source.draw, source.name)
    try:
        if fitted is None:
            items_of = None if alone else partial(source.items_of, batching)
            fitted = fit_epochs(data, batching, world, items_of, vary=source.draw is not None)
        else:  # a sample of windows has decided all but the edges of buckets, which each window has for itself
            fitted = fit_window(data, fitted, world)
        kinds = sort_out(items.lengths, fitted.batching)
        if kinds.over:
            tell_doubted_budget(kinds.over, items.lengths, batching, name=data.name)
        if fitted.achieved is not None and (batching.order or batching.padding):  # the user asked for a padding
            tell_missed_request(fitted, batching, name=data.name, world=world)
        drafts, steps = _draw_epoch(items, kinds, fitted, world, key)
        if not is_window and steps != (fitted.steps or steps):
            rule = f"{fitted.steps} as in the other epochs"
            checks.warn(checks.sentence("steps", rule, steps, "This epoch has longer copies.", at=f"epoch {key.epoch}"))
    except OversizeError as error:
        # The error names a chunk or a copy. The user knows the sequences of the data set.
        raise items.name_sequence(error) from None
    bound = _max_cost(items.lengths, drafts, fitted.batching)
    return [price(draft, fitted.batching) for draft in drafts], fitted.batching, steps, bound


def _draw_epoch(items: Items, kinds: Kinds, fitted: Fitted, world: World, key: Key) -> tuple[list[Draft], int]:
    """Draws an epoch until its drafts fit into the steps that every epoch has. Returns drafts and steps.

    If copies have very different lengths, an epoch may never fit. The epoch then has the steps that it needs.
    """
    portions, steps, draws = None, fitted.steps, 0
    while portions is None:
        if draws == _DRAWS:
            steps = None
        portions = draft_portions(items, kinds, fitted, world, key, steps=steps, draw=draws)
        draws += 1
    if steps is None:
        steps = count_steps(portions, fitted.batching.deal, world)
    multiple = length_multiple(fitted.batching.cut)
    filled = fill_steps(portions, fitted.batching, world, steps=steps)
    return [put_alone(portion, items.lengths, multiple=multiple) for portion in filled], steps


def _max_cost(lengths: NDArray[np.int64], drafts: list[Draft], batching: Batching) -> float:
    """Returns the bound of a batch's cost, by the longest length that any item is padded to."""
    if not len(lengths):
        return np.inf
    longest = np.max([longest_of(lengths), *(longest_of(draft.needed) for draft in drafts)], axis=0)
    return batching.cut.max_cost(batching.cost, longest)

"""`make_plan`: the stages in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.batching import Batching, check_batching
from lengthwise.choices.columns import distinct, longest_of
from lengthwise.choices.cut import OversizeError
from lengthwise.choices.multiples import count_multiple, length_multiple, round_up
from lengthwise.choices.rows import max_in_row, row_capacity, row_offsets
from lengthwise.choices.world import World, check_world
from lengthwise.lengths.arrays import view_lengths
from lengthwise.lengths.description import name_checked
from lengthwise.planning.batches import Batches, select
from lengthwise.planning.draft import Draft, price, take_items
from lengthwise.planning.fit import settle
from lengthwise.planning.grid import deal_and_arrange, in_grid
from lengthwise.planning.missed import tell_missed_waiting, tell_other_deal
from lengthwise.planning.oversize import name_sequence
from lengthwise.planning.plan import Plan
from lengthwise.planning.portions import draft_portions
from lengthwise.planning.rest import read_runs, take_runs
from lengthwise.planning.shared_fit import Fitted, stand_for_epochs
from lengthwise.planning.tail import complete_steps
from lengthwise.planning.times import Draw, copies_of, draw_times, read_times
from lengthwise.planning.trial import Data

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
    which = {"seed": seed, "epoch": epoch, "world_size": world_size, "micro_batches": micro_batches}
    return make_fitted(lengths, batching, None, **which, after=after, times=times)


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
    times: ArrayLike | Draw | None = None,
) -> Plan:
    """Plans as `make_plan` does, with what was `fitted` to a sample of windows for as many ranks.

    `times` may be drawn already, by the same seed: the draw serves all epochs.
    """
    check_batching(batching)
    world = check_world(world_size, micro_batches)
    runs = read_runs(after)
    key = Key(seed=seed, epoch=epoch)
    # Runs on 8 and 6 ranks, now 4: planned for 8, then what those left for 6, then what those left for 4.
    first = runs[0].world if runs else world
    # Order and cut; then a tail fills the last step.
    portions, made = _make_batches(lengths, batching, fitted, key, first, times)
    settled, capacity = made.batching, row_capacity(made.batching.cut)
    batches, numbers = complete_steps(
        portions,
        first.slots // len(portions),
        tail=settled.deal.tail,
        cost=settled.cost,
        keys=[key.at("tail", lane=lane) for lane in range(len(portions))],
        multiple=count_multiple(settled.cut),
    )
    if made.items and not numbers.size:
        raise NoStepError.of(len(batches.costs), first)
    if not runs and capacity is None:  # nobody splits or packs these batches from here on
        batches = batches._replace(needed=batches.needed[:0].copy())

    # Deal and arrange; then what earlier runs took is taken, each from what the one before it left.
    grid = deal_and_arrange(batches, numbers, first, settled, deal=key.at("deal"), arrange=key.at("arrange"))
    if not runs:  # the rest of an epoch may wait a little longer by chance
        tell_missed_waiting(grid, batches.costs, batching, name=made.data_name)
    batches, grid, taken = take_runs(batches, grid, runs, world, settled, key)

    # Batches that no rank takes, for a tail that drops or a run that took them, leave.
    held = in_grid(batches, grid)
    if not held.all():
        batches, grid = select(batches, held), (np.cumsum(held) - 1)[grid]
    starts = None
    if capacity is not None:
        starts = row_offsets(batches.needed[:, 0], batches.offsets, capacity, max_in_row(settled.cut))
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
    data_name                the name of what the order is fitted to
    batching                 the choices as they were settled for these lengths
    """

    spans: NDArray[np.int64] | None
    times: NDArray[np.int64] | None
    items: int
    name: str
    data_name: str
    max_cost: float
    batching: Batching


def _make_batches(
    lengths: ArrayLike,
    batching: Batching,
    fitted: Fitted | None,
    key: Key,
    world: World,
    times: ArrayLike | Draw | None,
) -> tuple[list[Batches], _Made]:
    """Lengths ordered, cut, padded and priced: the batches of each portion."""
    array = view_lengths(lengths)
    # Each sequence once, or as often as the epoch takes it; whole, or in chunks.
    drawn = times if times is None or isinstance(times, Draw) else draw_times(read_times(times, len(array)), key.seed)
    taken_times = None if drawn is None else drawn.take(key.epoch)
    check_countable(array if array.ndim == 2 else array[:, None])
    items, spans = take_items(array, batching, taken_times)
    check_countable(round_up(items, length_multiple(batching.cut)))

    # The plan keeps the batching as it was given, for that is what a checkpoint compares.
    name = name_checked(array)
    data = Data(items, name) if drawn is None else stand_for_epochs(array, batching, drawn, name)
    settled = settle(data, batching, world) if fitted is None else fitted.settled
    tell_other_deal(batching, settled, world, name=data.name)
    batching = settled.batching
    try:
        drafts = draft_portions(items, batching, world, key, data=data, fitted=fitted)
    except OversizeError as error:
        # The draft knows the numbers of chunks and of copies; the user those of the data set.
        if spans is not None:
            raise name_sequence(error, spans) from None
        if taken_times is not None:
            raise name_sequence(error, copies_of(taken_times)) from None
        raise
    most = _max_cost(items, drafts, batching)
    made = _Made(spans, taken_times, len(items), name, data.name, most, batching)
    del array, items, data  # the drafts have what they need of these, and batches take the room
    return [price(draft, batching) for draft in drafts], made


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

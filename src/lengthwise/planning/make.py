"""`make_plan`: the stages in a row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.arithmetic import distinct, length_multiple, longest_of
from lengthwise.choices.batching import Batching, check_batching
from lengthwise.choices.deal import World, check_world
from lengthwise.choices.rows import Rows
from lengthwise.planning.epoch import complete_steps, deal_and_arrange, draw_epoch, in_grid
from lengthwise.planning.items import Items, Source, check_countable, kinds_of, read_source
from lengthwise.planning.plan import Plan
from lengthwise.planning.plan_warnings import tell_doubted_budget, tell_missed_request, tell_other_steps
from lengthwise.planning.portion import Portion, Settled, select
from lengthwise.planning.resume import EarlierRun, read_runs, take_runs
from lengthwise.planning.settle import settle_run

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
    check_batching(batching)
    source = read_source(lengths, groups=groups, times=times, seed=seed)
    world, runs = check_world(world_size, micro_batches), read_runs(after) if after else ()
    return settle_and_plan(source, batching, Key(seed=seed, epoch=epoch), world, runs)


def settle_and_plan(
    source: Source, batching: Batching, key: Key, world: World, runs: Sequence[EarlierRun] = ()
) -> Plan:
    """Settles the choices and the steps of all epochs, and plans what earlier `runs` left of one."""
    # If runs on 8 and 6 ranks came before one on 4: plan for 8 ranks, deal the rest to 6, and what is left then to 4.
    first = runs[0].world if runs else world
    items = take_epoch(source, batching, key.epoch)
    settled = settle_run(source, batching, first)
    return plan_epoch(source, items, batching, settled, key, world, runs)


def take_epoch(source: Source, batching: Batching, epoch: int) -> Items:
    """Returns the items of an epoch; refuses lengths whose sums would not be exact."""
    items = source.items(batching, epoch)
    check_countable(items.lengths, length_multiple(batching.cut))
    return items


def plan_epoch(
    source: Source,
    items: Items,
    batching: Batching,
    settled: Settled,
    key: Key,
    world: World,
    runs: Sequence[EarlierRun] = (),
) -> Plan:
    """Plans what earlier `runs` left of an epoch.

    Args:
        source: The data set.
        items: The items of the epoch.
        batching: The choices as the user gave them, for warnings.
        settled: The choices of the run, and the steps of every epoch if these are equal. They hold for the ranks and
            micro-batches of the first run.
        key: The key of the epoch.
        world: The ranks and micro-batches of the plan.
        runs: The runs that took the beginning of the epoch, first to last.
    """
    first, cut = runs[0].world if runs else world, settled.batching.cut
    # Order, cut, and find the costs, in as many batches as fill whole steps.
    kinds = kinds_of(items.lengths, settled.batching)
    if kinds.giant_count:
        tell_doubted_budget(kinds.giant_count, items.lengths, batching, name=source.name)
    if settled.trial_padding is not None:
        tell_missed_request(settled, batching, name=source.name, world=first)
    with items.naming_sequences():
        portions, steps = draw_epoch(items, kinds, settled, first, key)
    tell_other_steps(steps, settled.steps, key.epoch)
    max_cost = find_max_cost(items.lengths, portions, settled.batching)
    tail, keys = settled.batching.deal.tail, [key.at("tail", lane=lane) for lane in range(len(portions))]
    batches, numbers = complete_steps(portions, first.slots // len(portions), steps, tail=tail, keys=keys)
    if len(items.lengths) and not numbers.size:
        raise NoStepError.of(len(batches.costs), first)
    if not runs and not isinstance(cut, Rows):  # nobody splits or packs these batches from here on
        batches = batches._replace(needed=batches.needed[:0].copy())

    # Deal and arrange; then each earlier run takes its batches, and the rest is dealt to the next.
    grid = deal_and_arrange(batches, numbers, first, settled.batching, deal=key.at("deal"), arrange=key.at("arrange"))
    delivered = None
    if runs:
        batches, grid, members = take_runs(batches, grid, runs, world, settled.batching, key)
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
        balances=None if settled.batching.balance is None else batches.balances,
        grid=np.ascontiguousarray(grid),
        row_offsets=cut.find_rows(batches.needed, batches.offsets) if isinstance(cut, Rows) else None,
        spans=items.spans,
        delivered=delivered,
        times=items.times,
        count=len(items.lengths),
        batching=settled.batching.to_json(),
        seed=int(key.seed),
        epoch=int(key.epoch),
        lengths_fingerprint=source.fingerprint,
        max_cost=max_cost,
    )


def find_max_cost(lengths: NDArray[np.int64], portions: Sequence[Portion], batching: Batching) -> float:
    """Returns the bound of a batch's cost, by the longest length that any item is padded to."""
    if not len(lengths):
        return np.inf
    longest = np.max([longest_of(lengths), *(longest_of(portion.needed) for portion in portions)], axis=0)
    return batching.cut.max_cost(batching.cost, longest)

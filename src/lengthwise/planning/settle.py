"""Settle: decides once for a run what depends on all sequences, and remembers it for the next epoch.

1. Order and deal are chosen, if the batching leaves them open.
2. Sequences of several lengths are sorted by their sum, or in bands.
3. The order is fitted: its edges, or the noise of `MaxEntropy` by trials.
4. Trial epochs count the steps that every epoch has:

8 trial epochs of 43 to 45 steps     every epoch of the run has 45
an epoch that would have 46          is drawn again, the same on every rank
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.choices.arithmetic import distinct, length_multiple, longest_of, round_up
from lengthwise.choices.bands import count_bands
from lengthwise.choices.batching import DEFAULT_PADDING, Batching, chooses_deal, group_by_length, order_by_noise
from lengthwise.choices.cost import costs_alone
from lengthwise.choices.cut import FixedSize, OversizeError, is_hard
from lengthwise.choices.deal import Balanced, RandomSteps, World, has_equal_epochs
from lengthwise.choices.names import is_custom
from lengthwise.choices.order import Bucketed, MaxEntropy, NoisyLine, Order, Sorted, finds_noise, pads_to_edge
from lengthwise.choices.rows import Rows
from lengthwise.planning.epoch import count_portions
from lengthwise.planning.items import Items, Kinds, Source, kinds_of, take_items
from lengthwise.planning.portion import Settled, sizes_of
from lengthwise.planning.times import Copies
from lengthwise.planning.trial import Fit, Trials, Work, estimate_batches, fit_noise, try_epoch

_Result = TypeVar("_Result")
_NOTHING = object()


class Recent(Generic[_Result]):
    """A cache of the `most` results that were used last. Threads may share it, and processes may fork at any time.

    >>> squares = Recent(most=2)
    >>> [squares.get(number, lambda: number**2) for number in (1, 2, 1, 3)]
    [1, 4, 1, 9]
    >>> 1 in squares, 2 in squares, 3 in squares
    (True, False, True)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._results: dict[Hashable, Any] = {}

    def get(self, name: Hashable, find: Callable[[], _Result]) -> _Result:
        """Returns the result of this name; `find` makes a missing one. Two threads may both make it."""
        result = self._results.pop(name, _NOTHING)
        if result is _NOTHING:
            result = find()
        self._results[name] = result  # as the newest
        # Another thread may have removed the oldest. There is no lock: a process forked meanwhile would keep it locked.
        for oldest in list(self._results)[: -self._most]:
            self._results.pop(oldest, None)
        return result

    def __contains__(self, name: Hashable) -> bool:
        return name in self._results

    def clear(self) -> None:
        """Forgets all results."""
        self._results.clear()


_MOST_OVER_GROUPED = 0.02  # of what group_by_length computes: the default computes no more than that above it
_MOST_PRICE = 1.0 / 0.9  # of random steps, however much group_by_length computes
_MOST_WAITING = 0.05  # of the time: if ranks wait longer for batches in strata, batches of similar cost share a step
_BATCHES_A_GROUP = 4  # for several groups: with fewer batches a group in a step, the default takes no random steps
_TRIAL_EPOCHS = 8  # one in nine later epochs would have more batches than any of these
_TRIAL_EPOCHS_OF_COPIES = 32  # if epochs take different copies
_TRIED = 2**21  # sequences of all trial epochs, but at least one epoch is tried whole
_SPARE = 0.3  # of a step, if fewer epochs are tried: then few later epochs are drawn twice
_DEVIATIONS = 4.0  # standard deviations of the trials' steps: one epoch in 30,000 needs more
_RARE = 0.1  # of the epochs: the trials may miss a sequence that fewer of them take
_remembered: Recent[Any] = Recent(most=256)


def settle_run(source: Source, batching: Batching, world: World) -> Settled:
    """Settles the choices and the steps that all epochs of a run share.

    Args:
        source: The data set.
        batching: The choices, some of which may be open.
        world: The ranks and micro-batches of a step.
    """
    items, name = _items_to_fit(source, batching)
    settled = settle(items, name, batching, world)
    if not has_equal_epochs(batching.cut):
        return settled

    def count() -> int:
        if source.copies is not None:
            return _count_steps_of_copies(source, source.copies, settled, world)
        epochs = max(1, min(_TRIAL_EPOCHS, _TRIED // max(1, len(items.lengths))))
        trial_steps = [try_epoch(items, settled, world, epoch) for epoch in range(epochs)]
        return round_steps(trial_steps, settled.batching, margin=0.0 if epochs == _TRIAL_EPOCHS else _SPARE)

    return settled._replace(steps=remember(count, "steps of epochs", name, settled.batching, world))


def _count_steps_of_copies(source: Source, copies: Copies, settled: Settled, world: World) -> int:
    """Counts the steps of epochs that take different copies; another attempt at an epoch does not change these."""
    batching = settled.batching
    # Names the sequence that is over the budget now, whichever epoch takes it.
    try_epoch(take_items(source.array, batching, copies.most(), source.groups), settled, world, 0)
    split = None
    if batching.takes_random_steps and batching.deal.tail == "drop":
        # Whole steps are left. Another tail shows how full the step after them is.
        split = settled._replace(batching=replace(batching, deal=replace(batching.deal, tail="split")))
    trial_steps: list[float] = []
    for epoch in range(_TRIAL_EPOCHS_OF_COPIES):
        items = source.items(batching, epoch)
        trial_steps.append(try_epoch(items, settled, world, epoch))
        if split is not None and (share := try_epoch(items, split, world, epoch)) > 1.0:
            trial_steps[-1] = max(trial_steps[-1], share)
    margin = _DEVIATIONS * float(np.std(trial_steps))
    if batching.deal.tail != "drop":
        margin += _count_rare(source.array, copies, batching) / world.slots
    return round_steps(trial_steps, batching, margin=margin)


def settle(items: Items, name: str, batching: Batching, world: World) -> Settled:
    """Settles the choices, but not the steps: epochs may differ in these.

    Args:
        items: The items that the order is fitted to.
        name: The name of the lengths and groups, by which results are remembered.
        batching: The choices, some of which may be open.
        world: The ranks and micro-batches of a step.
    """
    batching = _fill_in(items, name, batching, world)
    _check_groups(batching, items.groups, world)
    return _fit(items, name, batching, world)


def _fit(items: Items, name: str, batching: Batching, world: World) -> Settled:
    bands = choose_bands(items, kinds_of(items.lengths, batching), batching, world)
    return _fit_order(items, name, Settled(batching, batching.order, bands), world)


def settle_window(items: Items, name: str, settled: Settled, world: World) -> Settled:
    """Fits the edges of buckets to one window; windows share all else."""
    return settled if finds_noise(settled.batching.order) else _fit_order(items, name, settled, world)


def round_steps(trial_steps: Sequence[float], batching: Batching, *, margin: float = 0.0) -> int:
    """Returns the steps of every epoch, from those that trial epochs fill: the most, or the least if the tail drops.

    The `margin` is for later epochs that fill more, or fewer, than the trials do on average.
    """
    steps = np.array(trial_steps)
    if batching.deal.tail == "drop":
        return max(0, math.floor(min(steps.min(), steps.mean() - margin)))
    return math.ceil(max(steps.max(), steps.mean() + margin))


def _count_rare(array: NDArray[np.int64], copies: Copies, batching: Batching) -> float:
    """Returns the most batches that rare copies add to an epoch: long sequences, which the trials may have missed."""
    cut = batching.cut
    if not (is_hard(cut) or type(cut) is Rows):
        return 0.0
    share = copies.fraction.astype(np.float64) / 2.0**64
    rare = (share > 0.0) & (share < _RARE)
    lengths = take_items(array[rare], batching).lengths if batching.chunks is None else array[:0, None]
    if not len(lengths):
        return 0.0
    if type(cut) is Rows:
        shares = lengths[:, 0] / (cut.capacity * cut.rows)
    else:
        shares = costs_alone(batching.cost, lengths) / cut.max_cost(batching.cost, longest_of(lengths))
    batches = np.minimum(1.0, shares)
    return max(float(batches.max()), _DEVIATIONS * math.sqrt(float((share[rare] * batches * batches).sum())))


def remember(find: Callable[[], _Result], kind: str, name: str, batching: Batching, world: tuple[int, int]) -> _Result:
    """Returns the result of `find`, found once for the lengths of this name, these choices and the `world`.

    `world` holds the two numbers that the result depends on: a World, or (portions, batches of each portion in a step).
    A choice that the user wrote is known by its object.
    """
    choices = [batching.cut, batching.order, batching.deal, batching.arrange, batching.cost, batching.chunks]
    choices.append(batching.balance)
    custom = [choice for choice in choices if choice is not None and is_custom(choice)]
    # The cache keeps the user's choices, too: Python may give the id of a deleted object to another.
    case = kind, batching.to_json(), tuple(map(id, custom)), name, world
    return _remembered.get(case, lambda: (find(), custom))[0]


def _items_to_fit(source: Source, batching: Batching) -> tuple[Items, str]:
    """Returns the items that the order of a run is fitted to, and their name.

    If epochs take copies, noise is fitted to the first epoch. Edges are the same in all epochs, and must hold the
    longest sequence of each: they are fitted to the most copies that any epoch takes of each sequence.
    """
    copies, name = source.copies, source.name
    if copies is None:
        return source.items(batching, 0), name
    if batching.order is None or finds_noise(batching.order):
        items = source.items(batching, 0)
        if kinds_of(items.lengths, batching).regular.any():
            return items, f"{name} in the first epoch of {copies.name}"
    return take_items(source.array, batching, copies.most(), source.groups), f"{name} at most as in {copies.name}"


def _fill_in(items: Items, name: str, batching: Batching, world: World) -> Batching:
    """Chooses the order and the deal that a batching leaves open, by the rule that `Batching` states."""
    if batching.order is not None:
        return batching
    kinds = kinds_of(items.lengths, batching)
    if not kinds.regular.any():
        return order_by_noise(batching, DEFAULT_PADDING)
    regular = items.select(kinds.regular) if kinds.giant_count else items

    def choose() -> Batching:
        padding, most = _read_most(regular, batching, world)
        if chooses_deal(batching) and _may_pad_little(regular, world):
            in_steps = replace(batching, padding=None, deal=RandomSteps())
            # Their order is Shuffled: nothing is fitted, and remembered by this name.
            if _work(regular, _fit(regular, name, in_steps, world), world).price <= most:
                return in_steps
        in_strata = order_by_noise(batching, padding)
        if not chooses_deal(batching) or world.world_size == 1:
            return in_strata
        waiting = _work(regular, _fit(items, name, in_strata, world), world).waiting
        return in_strata if waiting <= _MOST_WAITING else order_by_noise(batching, padding, Balanced())

    try:
        return remember(choose, "default", name, batching, world)
    except OversizeError:  # the plan raises the same error, and names the sequence
        return order_by_noise(batching, DEFAULT_PADDING)


def _read_most(items: Items, batching: Batching, world: World) -> tuple[float, float]:
    """Returns the padding of batches, and the highest price of random steps: as asked, or near group_by_length."""
    if batching.padding is not None:
        return batching.padding, 1.0 / (1.0 - batching.padding)
    size = max(1, round(len(items.lengths) / estimate_batches(items.lengths, batching, 1)))
    order, deal = group_by_length(size, len(items.lengths), world)
    cut = FixedSize(size, multiple_of=length_multiple(batching.cut))
    grouped = replace(batching, cut=cut, order=order, deal=deal)
    trials, more = Trials(items, Settled(grouped, order), world), 1.0 + _MOST_OVER_GROUPED
    # If theirs pad 1.4 %, 98.6 % of their frames are data. Batches that compute 2 % more may pad 3.3 %.
    padding = math.floor(1_000.0 * (1.0 - (1.0 - trials.padding_of(order)) / more)) / 1_000.0
    return min(DEFAULT_PADDING, padding), min(_MOST_PRICE, more * trials.work_of(order).price)


def _may_pad_little(items: Items, world: World) -> bool:
    """Tells if random steps may pad little. A random step of one batch is a random batch, and pads like one.

    In every step, each group has one batch that is not full, so steps of few batches a group waste too much.
    """
    groups = 1 if items.groups is None else len(distinct(items.groups))
    return world.slots >= (2 if groups == 1 else _BATCHES_A_GROUP * groups)


def _work(items: Items, settled: Settled, world: World) -> Work:
    return Trials(items, settled, world).work_of(settled.fitted_order)


def _check_groups(batching: Batching, groups: NDArray[np.int64] | None, world: World) -> None:
    """Refuses groups if the batching has random steps that cannot keep groups apart."""
    if groups is None or not batching.takes_random_steps:
        return
    remedy = "Take another deal, such as Mixed(), or leave the deal to the plan."
    if type(batching.cut) is Rows:
        raise checks.value_error("cut", "one that packs no rows beside groups and RandomSteps", batching.cut, remedy)
    if not batching.deal.even:
        raise checks.value_error("even", "True beside groups", False, remedy)
    count = len(distinct(groups))
    if count > world.slots:
        rule = f"at most {world.slots} beside RandomSteps, as many as a step has batches"
        raise checks.value_error("groups", rule, count, remedy)


def choose_bands(items: Items, kinds: Kinds, batching: Batching, world: World) -> tuple[int, ...]:
    """Chooses the bands by which `line_up` sorts sequences of several lengths; none if their sum sorts them.

    Bands serve the orders that sort by length, and the sort inside a random step.
    """
    in_steps, order = batching.takes_random_steps, batching.order
    # Noise of a given scale has the unit of the lengths. A place in a line of bands has no unit.
    sorts = in_steps or type(order) is Sorted or finds_noise(order)
    # In random steps, edges of several lengths all rise together, so their sum sorts them.
    if items.lengths.shape[1] == 1 or not kinds.regular.any() or not sorts or pads_to_edge(order):
        return ()
    lengths = items.lengths[kinds.regular]
    portions = count_portions(batching.deal, len(items.lengths), world)
    batches = estimate_batches(lengths, batching, portions)
    return count_bands(lengths, min(batches, world.slots) if in_steps else batches)


def _fit_order(items: Items, name: str, settled: Settled, world: World) -> Settled:
    """Fits the order of the batching to the items, once for all epochs."""
    batching, kinds = settled.batching, kinds_of(items.lengths, settled.batching)
    if not (finds_noise(batching.order) or hasattr(batching.order, "fit")) or not kinds.ordered.any():
        return settled._replace(fitted_order=batching.order)
    portions = count_portions(batching.deal, len(items.lengths), world)

    def find() -> Fit:
        if finds_noise(batching.order) and kinds.regular.any():
            return _fit_noise(items, kinds, settled, world, portions)
        is_giant, order = kinds.ordered & ~kinds.regular, batching.order
        if isinstance(order, Bucketed) and (order.buckets or 1) > 1 and is_giant.any() and kinds.regular.any():
            longest = int(items.lengths[is_giant].max())
            return Fit(_fit_below(longest, items.lengths[kinds.regular], batching, order))
        return Fit(_fit_to_lengths(items.lengths[kinds.ordered], batching))

    if is_custom(batching.order):  # its `fit` may return another order each time
        fit = find()
    else:
        fit = remember(find, "order", name, batching, (portions, world.slots // portions))
    return settled._replace(fitted_order=fit.order, trial_padding=fit.padding)


def _fit_noise(items: Items, kinds: Kinds, settled: Settled, world: World, portions: int) -> Fit:
    """Finds the noise by which trials have the padding that was asked for."""
    regular = items.select(kinds.regular)
    trials = Trials(regular, settled, world, portions=portions, alone=int(kinds.alone.sum()))
    padding = settled.batching.order.padding or 0.0
    odds = max(1e-3, padding / (1.0 - padding))
    if settled.bands:
        return fit_noise(padding, NoisyLine, odds / 10.0, trials)
    # The first guess: 10 % of padding is 1 frame for each 9 of data. At a mean length of 900 that is 100 frames.
    mean = float(regular.lengths.sum()) / len(regular.lengths)
    return fit_noise(padding, lambda scale: MaxEntropy(scale=scale), odds * mean, trials)


def _fit_below(longest: int, lengths: NDArray[np.int64], batching: Batching, order: Bucketed) -> Order:
    """Fits all buckets but the last to `lengths`. The last one is for sequences over the budget, up to the `longest`.

    Three uniform buckets of 10, 20 and a giant of 900 would have the edges 306, 603 and 900. Here they are 15, 20, 900.
    """
    fewer = replace(order, buckets=(order.buckets or 1) - 1)
    edges = getattr(_fit_to_lengths(lengths, replace(batching, order=fewer)), "edges", ())
    return replace(order, buckets=None, by="optimal", edges=tuple(sorted({*edges, longest})))


def _fit_to_lengths(lengths: NDArray[np.int64], batching: Batching) -> Order:
    """Returns the order, fitted to `lengths` [n, dims] if it has a method for that."""
    fit = getattr(batching.order, "fit", None)
    if fit is None or not len(lengths):
        return batching.order
    if isinstance(batching.order, Bucketed) and batching.order.edges is None:
        # Edges must be lengths that batches can be padded to.
        lengths = round_up(lengths, length_multiple(batching.cut))
    return fit(sizes_of(lengths, batching.order))

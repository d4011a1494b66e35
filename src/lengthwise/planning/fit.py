"""Fit: what depends on all sequences is decided once for a run, and remembered for the next epoch.

`resolve` decides about order and deal where the batching leaves them to the lengths and the ranks.
`choose_bands` says how sequences of several lengths are put in line.
`fit_order` fits edges, and the noise of `MaxEntropy` by trials.
`fit_epochs` counts the steps that every epoch has:

8 trial epochs of 43 to 45 steps     every epoch of the run has 45
an epoch that would have 46          is drawn again, the same on every rank
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.arithmetic import distinct, length_multiple, round_up
from lengthwise.choices.bands import count_bands
from lengthwise.choices.batching import DEFAULT_PADDING, Batching, is_custom
from lengthwise.choices.cost import Padded
from lengthwise.choices.cut import Cut, OversizeError
from lengthwise.choices.deal import Balanced, RandomSteps, Stratified, World
from lengthwise.choices.order import Bucketed, MaxEntropy, NoisyLine, Order, Shuffled, Sorted, finds_noise, pads_to_edge
from lengthwise.choices.rows import Rows
from lengthwise.planning.cutter import limits_of
from lengthwise.planning.draft import sizes_of, take_groups, take_items
from lengthwise.planning.drafts import Kinds, count_portions, draft_portions, sort_out
from lengthwise.planning.times import Draw
from lengthwise.planning.trial import Data, Fit, Trial, estimate_batches, fit_noise

_Found = TypeVar("_Found")
_NOTHING = object()


class Recent(Generic[_Found]):
    """The `most` results that were asked for last; for several threads, and for processes forked meanwhile.

    >>> squares = Recent(most=2)
    >>> [squares.get(number, lambda: number**2) for number in (1, 2, 1, 3)]
    [1, 4, 1, 9]
    >>> 1 in squares, 2 in squares, 3 in squares
    (True, False, True)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[Hashable, Any] = {}

    def get(self, about: Hashable, find: Callable[[], _Found]) -> _Found:
        """Returns what is kept `about` this; else what `find` returns. Two threads may find the same at once."""
        found = self._kept.pop(about, _NOTHING)
        if found is _NOTHING:
            found = find()
        self._kept[about] = found  # behind all others
        # Another thread may have made room. A lock would stay locked in a process forked meanwhile.
        for oldest in list(self._kept)[: -self._most]:
            self._kept.pop(oldest, None)
        return found

    def __contains__(self, about: Hashable) -> bool:
        return about in self._kept

    def clear(self) -> None:
        """Forgets all."""
        self._kept.clear()


class Same:
    """An object that equals itself alone, and lives as long as what is kept about it."""

    def __init__(self, thing: object) -> None:
        # Held, not only its id: the id of an object that is gone may become another's.
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


_BATCHES_A_GROUP = 4  # in a random step, where there are several groups
_MOST_TRIED = 200_000  # sequences of a trial: they fill all the bins of mixing

_Found = TypeVar("_Found")
_remembered: Recent[Any] = Recent(most=16)


def resolve(batching: Batching, data: Data, world: World) -> Batching:
    """Makes the choices that the batching leaves to the lengths and the ranks, by the rule that `Batching` states."""
    if batching.order is not None:
        return batching
    asked = DEFAULT_PADDING if batching.padding is None else batching.padding
    in_steps = replace(batching, padding=None, order=Shuffled(), deal=RandomSteps())
    of_batches = replace(batching, padding=None, order=MaxEntropy(padding=asked), deal=Stratified())
    kinds, slots = sort_out(data.items, of_batches), world.slots
    # A step of one batch is that batch: as a random sample it would pad as random batches do. And each group of a step
    # has a batch that is not full.
    groups = 1 if data.groups is None else len(distinct(data.groups))
    if slots < (2 if groups == 1 else _BATCHES_A_GROUP * groups) or not kinds.fitted.any():
        return of_batches

    def measure_steps() -> float:
        bands = choose_bands(data, kinds, in_steps, portions=1, slots=slots)
        trial = Trial(data.select(kinds.fitted), in_steps, portions=1, slots=slots, bands=bands)
        return trial.padding_of(Shuffled(), against=asked)

    try:
        padding = remember(measure_steps, "steps", data.name, batching, (1, slots))
    except OversizeError:  # the plan itself will say which sequence it is
        return of_batches
    return in_steps if padding <= asked else of_batches


def choose_bands(data: Data, kinds: Kinds, batching: Batching, *, portions: int, slots: int) -> tuple[int, ...]:
    """By how many bands `line_up` sorts sequences of several lengths; none for by their sum.

    For the orders that sort by length, and for what is sorted inside of a step.
    """
    in_steps, order = batching.takes_random_steps, batching.order
    # A noise of a given scale is in the unit of the lengths, and a place in a line has no unit.
    sorts = in_steps or type(order) is Sorted or finds_noise(order)
    # The edges of a step are a chain, which one sum puts in line.
    if data.items.shape[1] == 1 or not kinds.fitted.any() or not sorts or pads_to_edge(order):
        return ()
    items = data.items[kinds.fitted]
    batches = estimate_batches(items, batching, portions * max(1, len(data.windows)))
    return count_bands(items, min(batches, slots) if in_steps else batches)


def fit_order(
    data: Data, kinds: Kinds, batching: Batching, *, portions: int, bands: tuple[int, ...], places: int
) -> Fit:
    """The order of the batching, fitted to `data`; the same for every epoch, so that only the first must find it.

    Args:
        data: The items.
        kinds: Which of them the order is fitted to.
        batching: The choices.
        portions: How many equal parts the sequences are dealt into before they are sorted.
        bands: As `choose_bands` says.
        places: Batches that each portion has in a step: filling the last step changes what is padded.
    """
    if not (finds_noise(batching.order) or hasattr(batching.order, "fit")) or not kinds.ordered.any():
        return Fit(batching.order)
    if type(batching.deal) is Balanced:  # what may be waited for moves batches to other steps, and changes none
        batching = replace(batching, deal=Balanced(tail=batching.deal.tail))
    fit = partial(_fit_anew, data, kinds, batching, portions, bands, places)
    if is_custom(batching.order):  # it may find other things every time
        return fit()
    return remember(fit, "order", data.name, batching, (portions, places))


def remember(find: Callable[[], _Found], about: str, name: str, batching: Batching, world: tuple[int, int]) -> _Found:
    """What `find` returns, found once for the same lengths, of this `name`, choices, and `world`: (portions, batches).

    A choice of the user's is the same where it is the same object.
    """
    chosen = [batching.cut, batching.order, batching.deal, batching.arrange, batching.cost, batching.chunks]
    custom = tuple(Same(choice) for choice in chosen if choice is not None and is_custom(choice))
    return _remembered.get((about, batching.to_json(), custom, name, world), find)


def _fit_anew(data: Data, kinds: Kinds, batching: Batching, portions: int, bands: tuple[int, ...], places: int) -> Fit:
    order, giants = batching.order, kinds.ordered & ~kinds.fitted
    if finds_noise(order) and kinds.fitted.any():
        return _fit_noise(data, kinds, batching, order, portions, bands, places)
    one_length = data.items.shape[1] == 1
    if isinstance(order, Bucketed) and one_length and (order.buckets or 1) > 1 and giants.any() and kinds.fitted.any():
        return Fit(_fit_below(int(data.items[giants].max()), data.items[kinds.fitted], batching, order))
    return Fit(_fit_to_lengths(data.items[kinds.ordered], batching))


def _fit_below(longest: int, items: NDArray[np.int64], batching: Batching, order: Bucketed) -> Order:
    """Buckets fitted to `items`, the last of them kept for what is over the budget by itself, up to the `longest`.

    Three uniform buckets over 10, 20 and a giant of 900 would be padded to 306, 603 and 900; so they are 15, 20, 900.
    """
    fewer = replace(order, buckets=(order.buckets or 1) - 1)
    edges = getattr(_fit_to_lengths(items, replace(batching, order=fewer)), "edges", ())
    return replace(order, buckets=None, by="optimal", edges=tuple(sorted({*edges, longest})))


def _fit_noise(
    data: Data, kinds: Kinds, batching: Batching, order: MaxEntropy, portions: int, bands: tuple[int, ...], places: int
) -> Fit:
    """The noise under which trials have the padding, or the mixing, that was asked for."""
    within, windows = data.select(kinds.fitted), max(1, len(data.windows))
    trial = Trial(
        within,
        batching,
        portions=portions,
        slots=1,
        bands=bands,
        drafted=portions,
        places=places,
        alone=int(kinds.alone.sum()) // windows,
        most=_MOST_TRIED,
    )
    share = order.padding if order.padding is not None else (order.mixing or 0.0)
    odds = max(1e-3, share / (1.0 - min(share, 0.99)))
    if bands:
        return fit_noise(order, NoisyLine, odds / 10.0, trial)
    # A batch of sequences that pad by 1 frame for each 9 of data is padded by 100 frames where the mean length is 900.
    mean = float(within.items.sum()) / len(within.items)
    return fit_noise(order, lambda scale: MaxEntropy(scale=scale), odds * mean, trial)


def _fit_to_lengths(items: NDArray[np.int64], batching: Batching) -> Order:
    """The order, fitted to `items` where it has something to fit."""
    fit = getattr(batching.order, "fit", None)
    if fit is None or not len(items):
        return batching.order
    if isinstance(batching.order, Bucketed) and batching.order.edges is None:
        # Its edges are to be lengths that batches are padded to.
        items = round_up(items, length_multiple(batching.cut))
    return fit(sizes_of(items, batching.order))


_TRIALS = 8  # epochs: of the next ones, one in nine would have more batches than any of them
_TRIALS_OF_COPIES = 32  # epochs that take other copies
DEVIATIONS = 6.0  # of what these trials need: of as many more, no run comes to an epoch
_MOST_TRIED = 2**18  # sequences of a trial: the shares of lengths in more than that hardly move
_OF_TRIALS = 2**40  # draws of an epoch, which trials begin at


class Fitted(NamedTuple):
    """What is found once for a run.

    Attributes:
        batching: All choices made, as `resolve` says.
        bands: As `choose_bands` says.
        fit: As `fit_order` says; windows fit edges of their own.
        steps: Of every epoch; None where each has as many as its batches fill.
    """

    batching: Batching
    bands: tuple[int, ...]
    fit: Fit
    steps: int | None


def fit_epochs(
    data: Data,
    batching: Batching,
    world: World,
    items_of: Callable[[int], tuple[NDArray[np.int64], NDArray[np.int64] | None]] | None,
    *,
    vary: bool = False,
) -> Fitted:
    """Finds what serves every epoch.

    Args:
        data: What the order is fitted to.
        batching: The choices.
        world: What a step is shared out to.
        items_of: The items of an epoch, [n, dims], and their groups, [n] or None. None where epochs need not have the
            same number of steps.
        vary: Whether epochs take other copies.
    """
    batching = resolve(batching, data, world)
    _check_groups(batching, data.groups, world)
    portions = count_portions(batching.deal, len(data.items), world)
    kinds = sort_out(data.items, batching)
    bands = choose_bands(data, kinds, batching, portions=portions, slots=world.slots)
    fit = fit_order(data, kinds, batching, portions=portions, bands=bands, places=world.slots // portions)
    if items_of is None or not has_equal_epochs(batching.cut):
        return Fitted(batching, bands, fit, None)

    def count() -> int:
        trials = range(_TRIALS_OF_COPIES if vary else _TRIALS)
        tried = np.array([try_epoch(*items_of(epoch), batching, fit, bands, world, epoch) for epoch in trials])
        # Another draw brings no other copies, so that the epoch of the longest copies counts, of all that will be.
        margin = DEVIATIONS * float(tried.std()) if vary else 0.0
        return round_steps(min(tried.min(), tried.mean() - margin), max(tried.max(), tried.mean() + margin), batching)

    return Fitted(batching, bands, fit, remember(count, "steps of epochs", data.name, batching, world))


def fit_window(fitted: Fitted, data: Data, world: World) -> Fitted:
    """What was found for all windows, and the edges of buckets that the window finds for itself."""
    if finds_noise(fitted.batching.order):
        return fitted
    batching, kinds = fitted.batching, sort_out(data.items, fitted.batching)
    portions = count_portions(batching.deal, len(data.items), world)
    places = world.slots // portions
    return fitted._replace(fit=fit_order(data, kinds, batching, portions=portions, bands=fitted.bands, places=places))


def has_equal_epochs(cut: Cut) -> bool:
    """Whether every epoch of a run has the same number of steps by this cut.

    Not by the rule of the paper, which overshoots, and not by a cut of the user's: they alone say which batches there
    are.
    """
    return type(cut) is Rows or limits_of(cut, Padded(), np.ones(1, np.int64)) is not None


def try_epoch(
    items: NDArray[np.int64],
    groups: NDArray[np.int64] | None,
    batching: Batching,
    fit: Fit,
    bands: tuple[int, ...],
    world: World,
    epoch: int,
) -> float:
    """The steps that an epoch fills, the last of them in part; of very many sequences, by a sample of them."""
    count, key = len(items), Key(epoch=epoch)
    if count > _MOST_TRIED:
        chosen = np.sort(key.at("trial").places(0, _MOST_TRIED, count))
        items, groups = items[chosen], None if groups is None else groups[chosen]
    kinds = sort_out(items, batching)
    options: dict[str, Any] = {"bands": bands, "draw": _OF_TRIALS, "groups": groups}
    drawn = draft_portions(items, kinds, batching, fit.order, world, key, **options)
    portions = drawn or []  # never None, as no number of steps is asked for
    filled = max(portion.batches for portion in portions) / (world.slots // len(portions))
    return filled * (count / len(items)) if len(items) else 0.0


def round_steps(least: float, most: float, batching: Batching) -> int:
    """So many steps that epochs fill them, where the tail drops; else so many that epochs need no more."""
    return max(0, math.floor(least)) if batching.deal.tail == "drop" else math.ceil(most)


def stand_for_epochs(
    array: NDArray[np.int64], groups: NDArray[np.int64] | None, batching: Batching, drawn: Draw, name: str
) -> Data:
    """What stands for every epoch of the lengths `array`, of this `name`, whose copies are `drawn`.

    A padding or a mixing is asked of what an epoch takes: it is fitted to the first one. Edges must hold the longest
    sequence of every epoch, and be the same in all: they are fitted to the most copies that any epoch takes of each.
    """
    if batching.order is None or finds_noise(batching.order):
        items, own = take_grouped(array, groups, batching, drawn.take(0))
        if sort_out(items, batching).fitted.any():
            return Data(items, f"{name} in the first epoch of {drawn.name}", groups=own)
    items, own = take_grouped(array, groups, batching, drawn.most())
    return Data(items, f"{name} at most as in {drawn.name}", groups=own)


def take_grouped(
    array: NDArray[np.int64], groups: NDArray[np.int64] | None, batching: Batching, times: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """The items of so many copies, [m, dims], and the group of each, [m] or None."""
    items, spans = take_items(array, batching, times)
    return items, take_groups(groups, spans, times)


def _check_groups(batching: Batching, groups: NDArray[np.int64] | None, world: World) -> None:
    """Refuses groups of which random steps cannot be made."""
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

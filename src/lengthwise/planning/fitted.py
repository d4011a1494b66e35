"""Fitted: all that is found once for a run: the choices that were left open, the order, and the steps of every epoch.

8 trial epochs of 43 to 45 steps     every epoch of the run has 45
an epoch that would have 46          is drawn again, the same on every rank

For windows it is found once, on a sample of them, and serves all. So it is with epochs that take other copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.arithmetic import distinct
from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import Padded
from lengthwise.choices.cut import Cut, OversizeError
from lengthwise.choices.deal import World
from lengthwise.choices.order import finds_noise
from lengthwise.choices.rows import Rows
from lengthwise.lengths import fingerprint
from lengthwise.planning.cutter import limits_of
from lengthwise.planning.draft import take_groups, take_items
from lengthwise.planning.drafts import count_portions, draft_portions, name_sequence, sort_out
from lengthwise.planning.fit import Fit, choose_bands, fit_order, remember, resolve
from lengthwise.planning.times import Draw
from lengthwise.planning.trial import Data

_TRIALS = 8  # epochs: of the next ones, one in nine would have more batches than any of them
_TRIALS_OF_COPIES = 32  # epochs that take other copies
_DEVIATIONS = 6.0  # of what these trials need: of as many more, no run comes to an epoch
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
        tried = np.array([_try_epoch(*items_of(epoch), batching, fit, bands, world, epoch) for epoch in trials])
        # Another draw brings no other copies, so that the epoch of the longest copies counts, of all that will be.
        margin = _DEVIATIONS * float(tried.std()) if vary else 0.0
        return _round(min(tried.min(), tried.mean() - margin), max(tried.max(), tried.mean() + margin), batching)

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


def _try_epoch(
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


class Part(NamedTuple):
    """Some of the items of a window [n, dims], their names, and how many times as many the largest window has."""

    items: NDArray[np.int64]
    names: NDArray[np.int64]
    ratio: float


def fit_windows(
    windows: Sequence[NDArray[np.int64]], parts: Sequence[Part], batching: Batching, world: World
) -> Fitted:
    """Finds what every window of an epoch would find by itself.

    An order that tries drafts is tried on a sample of windows, each drafted by itself, so that windows pad what was
    asked on average. Edges of buckets are left to each window, whose longest sequence they must hold.

    Args:
        windows: A sample of them, [n, dims] each.
        parts: Of windows, whose batches are counted.
        batching: The choices.
        world: What a step is shared out to.
    """
    items, sizes = np.concatenate(windows), [len(window) for window in windows]
    data = Data(items, f"{fingerprint(items)} in windows of {sizes}", sizes)
    batching, slots = resolve(batching, data, world), world.slots
    portions = count_portions(batching.deal, len(windows[0]), world)
    kinds = sort_out(items, batching)
    bands = choose_bands(data, kinds, batching, portions=portions, slots=slots)
    fit = Fit(batching.order)
    if finds_noise(batching.order):
        fit = fit_order(data, kinds, batching, portions=portions, bands=bands, places=slots // portions)
    fitted = Fitted(batching, bands, fit, None)
    ratios = np.array([part.ratio for part in parts])
    tried = ratios * [_try_part(part, fitted, world, number) for number, part in enumerate(parts)]
    # Of a quarter of a window, batches deviate by twice as much of their number as those of all of it.
    margin = _DEVIATIONS * float(tried.std()) / math.sqrt(float(ratios.mean()))
    return fitted._replace(steps=_round(tried.mean() - margin, tried.mean() + margin, batching))


def _try_part(part: Part, fitted: Fitted, world: World, number: int) -> float:
    """The steps that a part of a window fills."""
    try:
        own = fit_window(fitted, Data(part.items, fingerprint(part.items)), world)
        return _try_epoch(part.items, None, own.batching, own.fit, own.bands, world, number)
    except OversizeError as error:  # the draft knows places in the part; the user those among all lengths
        raise name_sequence(error, part.names) from None


def _round(least: float, most: float, batching: Batching) -> int:
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
    if type(batching.cut) is Rows or not batching.deal.even:
        what = "even=False" if type(batching.cut) is not Rows else batching.cut
        raise checks.value_error("groups", "left out beside random steps of these batches", what, remedy)
    count = len(distinct(groups))
    if count > world.slots:
        rule = f"at most {world.slots} beside RandomSteps, as many as a step has batches"
        raise checks.value_error("groups", rule, count, remedy)

"""Fitted: all that is found once for a run: the choices that were left open, the order, and the steps of every epoch.

8 trial epochs of 43 to 45 steps     every epoch of the run has 45
an epoch that would have 46          is drawn again, the same on every rank

For windows it is found once, on a sample of them, and serves all. So it is with epochs that take other copies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise._random import Key
from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import Padded
from lengthwise.choices.cut import Cut
from lengthwise.choices.order import Sorted, finds_noise
from lengthwise.choices.rows import Rows
from lengthwise.choices.world import World
from lengthwise.lengths import fingerprint
from lengthwise.planning.cutter import limits_of
from lengthwise.planning.draft import take_items
from lengthwise.planning.drafts import count_portions, draft_portions
from lengthwise.planning.fit import Fit, choose_bands, fit_order, remember, resolve
from lengthwise.planning.oversize import sort_out
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
    items_of: Callable[[int], NDArray[np.int64]] | None,
    *,
    vary: bool = False,
) -> Fitted:
    """Finds what serves every epoch.

    Args:
        data: What the order is fitted to.
        batching: The choices.
        world: What a step is shared out to.
        items_of: The items of an epoch, [n, dims]; None where epochs need not have the same number of steps.
        vary: Whether epochs take other copies.
    """
    batching = resolve(batching, data, world)
    portions = count_portions(batching.deal, len(data.items), world)
    kinds = sort_out(data.items, batching)
    bands = choose_bands(data, kinds, batching, portions=portions, slots=world.slots)
    fit = fit_order(data, kinds, batching, portions=portions, bands=bands, places=world.slots // portions)
    if items_of is None or not has_equal_epochs(batching.cut):
        return Fitted(batching, bands, fit, None)

    def count() -> int:
        trials = range(_TRIALS_OF_COPIES if vary else _TRIALS)
        tried = np.array([_try_epoch(items_of(epoch), batching, fit, bands, world, epoch) for epoch in trials])
        # Another draw brings no other copies, so that the epoch of the longest copies counts, of all that will be.
        margin = _DEVIATIONS * float(tried.std()) if vary else 0.0
        if batching.deal.tail == "drop":
            return max(0, math.floor(min(tried.min(), tried.mean() - margin)))
        return math.ceil(max(tried.max(), tried.mean() + margin))

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
    items: NDArray[np.int64], batching: Batching, fit: Fit, bands: tuple[int, ...], world: World, epoch: int
) -> float:
    """The steps that an epoch fills, the last of them in part; of very many sequences, by a sample of them."""
    count, key = len(items), Key(epoch=epoch)
    if count > _MOST_TRIED:
        items = items[np.sort(key.at("trial").places(0, _MOST_TRIED, count))]
    kinds = sort_out(items, batching)
    drawn = draft_portions(items, kinds, batching, fit.order, world, key, bands=bands, draw=_OF_TRIALS)
    portions = drawn or []  # never None, as no number of steps is asked for
    filled = max(portion.batches for portion in portions) / (world.slots // len(portions))
    return filled * (count / len(items)) if len(items) else 0.0


def fit_windows(windows: Sequence[NDArray[np.int64]], batching: Batching, world: World) -> Fitted:
    """Finds what every window of an epoch would find by itself; `windows` [n, dims] each are a sample of them.

    An order that tries drafts is tried on all of the sample, each window drafted by itself, so that windows pad what
    was asked on average. Edges of buckets are left to each window, whose longest sequence they must hold. Each window
    has as many steps as its batches fill.
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
    return Fitted(batching, bands, fit, None)


def stand_for_epochs(array: NDArray[np.int64], batching: Batching, drawn: Draw, name: str) -> Data:
    """What stands for every epoch of the lengths `array`, of this `name`, whose copies are `drawn`.

    A padding or a mixing is asked of what an epoch takes: it is fitted to the first one. Edges must hold the longest
    sequence of every epoch, and be the same in all: they are fitted to the most copies that any epoch takes of each.
    """
    if batching.order is None or finds_noise(batching.order):
        items, _ = take_items(array, batching, drawn.take(0))
        if sort_out(items, batching).fitted.any():
            return Data(items, f"{name} in the first epoch of {drawn.name}")
    return Data(take_items(array, batching, drawn.most())[0], f"{name} at most as in {drawn.name}")


def has_fit(batching: Batching, dims: int) -> bool:
    """Whether `fit_windows` has anything to find."""
    order = batching.order
    in_bands = dims > 1 and (type(order) is Sorted or batching.takes_random_steps)
    return order is None or in_bands or finds_noise(order)

"""Shared fit: what windows fit to their lengths is fitted once, to a sample of them, and serves all.

So it is with epochs that take other copies: what is fitted is fitted to the same copies for all epochs.

a window fitted by itself          drafted 16 times for every guess, in every window
16 windows fitted together         drafted once each for every guess, once in a run
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.choices.batching import Batching
from lengthwise.choices.deal import RandomSteps
from lengthwise.choices.order import Sorted, finds_noise
from lengthwise.choices.world import World
from lengthwise.lengths import fingerprint
from lengthwise.planning.draft import take_items
from lengthwise.planning.fit import Fit, Settled, choose_bands, fit_order, settle
from lengthwise.planning.oversize import sort_out
from lengthwise.planning.times import Draw
from lengthwise.planning.trial import Data


class Fitted(NamedTuple):
    """What is settled once for all windows of an epoch: see `fit_windows`.

    Attributes:
        settled: As `settle` says.
        bands: As `choose_bands` says.
        fit: As `fit_order` says; None where each window fits its own.
    """

    settled: Settled
    bands: tuple[int, ...]
    fit: Fit | None


def fit_windows(windows: Sequence[NDArray[np.int64]], batching: Batching, world: World, portions: int) -> Fitted:
    """Fits once what every window of an epoch would fit by itself; `windows` [n, dims] each are a sample of them.

    An order that tries drafts is tried on all of the sample, each window drafted by itself, so that windows pad what
    was asked on average. Edges of buckets are left to each window, whose longest sequence they must hold.
    """
    items, sizes = np.concatenate(windows), [len(window) for window in windows]
    data = Data(items, f"{fingerprint(items)} in windows of {sizes}", sizes)
    settled = settle(data, batching, world)
    batching, slots = settled.batching, world.slots
    kinds = sort_out(items, batching)
    bands = choose_bands(data, kinds, batching, portions=portions, slots=slots)
    if not finds_noise(batching.order):
        return Fitted(settled, bands, None)
    fit = fit_order(data, kinds, batching, portions=portions, bands=bands, places=slots // portions)
    return Fitted(settled, bands, fit)


def stand_for_epochs(array: NDArray[np.int64], batching: Batching, drawn: Draw, name: str) -> Data:
    """What stands for every epoch of the lengths `array`, of this `name`, whose copies are `drawn`.

    A padding or a mixing is asked of what an epoch takes: it is fitted to the first one. Edges must hold the longest
    sequence of every epoch, and be the same in all: they are fitted to the most copies that any epoch takes of each.
    """
    if finds_noise(batching.order):
        items, _ = take_items(array, batching, drawn.take(0))
        if sort_out(items, batching).fitted.any():
            return Data(items, f"{name} in the first epoch of {drawn.name}")
    return Data(take_items(array, batching, drawn.most())[0], f"{name} at most as in {drawn.name}")


def has_fit(batching: Batching, dims: int) -> bool:
    """Whether `fit_windows` has anything to fit."""
    in_bands = dims > 1 and (type(batching.order) is Sorted or isinstance(batching.deal, RandomSteps))
    return in_bands or finds_noise(batching.order)

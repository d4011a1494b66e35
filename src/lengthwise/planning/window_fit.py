"""What windows fit to their lengths is fitted once, to a sample of them, and serves all.

a window fitted by itself          drafted 16 times for every guess, in every window
16 windows fitted together         drafted once each for every guess, once in a run
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.choices.batching import Batching
from lengthwise.choices.cut import OversizeError
from lengthwise.choices.deal import World
from lengthwise.choices.order import finds_noise
from lengthwise.lengths import fingerprint
from lengthwise.planning.drafts import count_portions, name_sequence, sort_out
from lengthwise.planning.fit import (
    DEVIATIONS,
    Fitted,
    choose_bands,
    fit_order,
    fit_window,
    resolve,
    round_steps,
    try_epoch,
)
from lengthwise.planning.trial import Data, Fit


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
    margin = DEVIATIONS * float(tried.std()) / math.sqrt(float(ratios.mean()))
    return fitted._replace(steps=round_steps(tried.mean() - margin, tried.mean() + margin, batching))


def _try_part(part: Part, fitted: Fitted, world: World, number: int) -> float:
    """The steps that a part of a window fills."""
    try:
        own = fit_window(fitted, Data(part.items, fingerprint(part.items)), world)
        return try_epoch(part.items, None, own.batching, own.fit, own.bands, world, number)
    except OversizeError as error:  # the draft knows places in the part; the user those among all lengths
        raise name_sequence(error, part.names) from None

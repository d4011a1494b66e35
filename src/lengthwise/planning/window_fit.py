"""Window fit: the choices that all windows share are fitted once, to a sample of windows.

each window alone        16 drafts for every guess, in every window
16 windows together      one draft of each for every guess, once in a run
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
from lengthwise.planning.draft import Fitted
from lengthwise.planning.drafts import count_portions, sort_out
from lengthwise.planning.fit import DEVIATIONS, choose_bands, fit_order, fit_window, resolve, round_steps, try_epoch
from lengthwise.planning.items import Items, name_sequence
from lengthwise.planning.trial import Data


class Part(NamedTuple):
    """Some items of a window, [n, dims]; their names, [n] or [n, 3]; the size of the largest window over theirs."""

    items: NDArray[np.int64]
    names: NDArray[np.int64]
    ratio: float


def fit_windows(
    windows: Sequence[NDArray[np.int64]], parts: Sequence[Part], batching: Batching, world: World
) -> Fitted:
    """Fits what all windows share to a sample of them.

    An order that tries drafts is tried on a sample of windows, so that windows have the padding asked for on average.
    Edges of buckets are left to each window, whose longest sequence they must hold.

    Args:
        windows: A sample of them, [n, dims] each.
        parts: Of windows, whose batches are counted.
        batching: The choices.
        world: The ranks and micro-batches of a step.
    """
    items, sizes = np.concatenate(windows), [len(window) for window in windows]
    data = Data(items, f"{fingerprint(items)} in windows of {sizes}", sizes)
    batching, slots = resolve(batching, data, world), world.slots
    portions = count_portions(batching.deal, len(windows[0]), world)
    kinds = sort_out(items, batching)
    bands = choose_bands(data, kinds, batching, portions=portions, slots=slots)
    fitted = Fitted(batching, batching.order, bands)
    if finds_noise(batching.order):
        fit = fit_order(data, kinds, batching, portions=portions, bands=bands, places=slots // portions)
        fitted = fitted._replace(order=fit.order, achieved=fit.achieved)
    ratios = np.array([part.ratio for part in parts])
    steps = ratios * [_try_part(part, fitted, world, number) for number, part in enumerate(parts)]
    # The batches of a quarter of a window deviate by twice the share that those of a whole window do.
    margin = DEVIATIONS * float(steps.std()) / math.sqrt(float(ratios.mean()))
    return fitted._replace(steps=round_steps(steps.mean() - margin, steps.mean() + margin, batching))


def _try_part(part: Part, fitted: Fitted, world: World, number: int) -> float:
    """Returns the steps that a part of a window fills."""
    try:
        fitted = fit_window(fitted, Data(part.items, fingerprint(part.items)), world)
        return try_epoch(Items(part.items), fitted, world, number)
    except OversizeError as error:  # the draft knows places in the part; the user those among all lengths
        raise name_sequence(error, part.names) from None

"""The limit of an epoch: it has each sequence once, and its batches have a given number of empty places.

Let S_s sequences be longer than level s. The batches padded beyond level s hold them all, and have places for more. Let
e_s sequences of level s or lower be in these places. They are padded beyond level s, so they are part of the flow F_s
of `levels`. With n sequences in all, n F_s >= e_s.

K batches of a fixed size B have K B - n empty places. If W_s of them are in batches beyond level s, then

    e_s >= ceil((S_s + W_s) / B) B - W_s - S_s.

- 164 full batches of 64, S_s = 100: at least two batches are padded beyond level s, so at least 28 shorter
  sequences are in them.
- If these two have 10 empty places, at least 18 shorter sequences are in them.

W falls from all empty places to none as s rises. Under a budget, a batch of padded length t has B(t) places. The search
goes down from the longest level: it opens batches, leaves places empty, and fills places with the sequences of the
level.

- Budget 100, lengths 50, 40, 30, 30: a batch padded to 50 has two places, for 50 and 40.
- Without empty places that is impossible: the other two would leave one of three places of 30 empty. So 30 is with 50.

With fixed sizes and no empty place the floors e_s are known. The limit is then the least information of flows above
them. Otherwise the floors depend on the batching, and those of a pool of epochs are an average. The search for the best
average is that of Frank and Wolfe. By the prices of the floors, dynamic programming finds the choice that reduces the
information most. The size of that reduction is known, so every state proves a bound.

In addition, each batch has a member of its padded length. The prices of the floors prove a bound for both conditions:
see `batches`.

References:
    Frank and Wolfe 1956, "An algorithm for quadratic programming".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise_recipes.limits import kernels
from lengthwise_recipes.limits.batches import rate_in_batches
from lengthwise_recipes.limits.levels import Levels, ends_of_betas, least_flows, least_information, padding_of_flows

_ROUNDS = 40  # searches for a better choice
_NEAR = 1e-3  # nats: the search ends this close to its bound
_MOST = 2**23  # floors in the table of all W; a larger table is not searched, and the limit has no floors
_MOST_FILLED = 2**25  # the same for the table of all ways to fill an epoch

Floors = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Maps prices of the floors [levels - 1] to the floors [levels - 1] of the cheapest choice."""


def rate_in_epoch(levels: Levels, target: float, most: NDArray[np.float64], cheapest: Floors | None) -> float:
    """Returns a lower bound, in nats, on I(X; T) of epochs with a mean padding of `target` per sequence.

    `most` [levels] is the most sequences in a batch padded to each level. `cheapest` comes from `floors_of_sizes` or
    `floors_of_budget`.
    """
    if cheapest is None:
        return 0.0
    # No epoch pads less than flows above the best floors at the highest price of a frame.
    dearest_flows, _ = least_flows(levels, ends_of_betas(levels)[1], cheapest(np.diff(levels.sizes)))
    target = max(target, padding_of_flows(levels, dearest_flows))
    best, prices = _search(levels, cheapest, target)
    # The same prices, with the condition that each batch has a member of its padded length.
    return max(best, float(prices @ cheapest(prices)) + rate_in_batches(levels, target, most, prices))


def floors_of_sizes(levels: Levels, batch_size: int, batches: int) -> Floors | None:
    """Returns the floors of `batches` batches of a size; None if there are too many to search."""
    count = levels.total
    longer = count - np.cumsum(_counts(levels))[:-1]
    empty = batches * batch_size - count
    if (empty + 1) * len(longer) > _MOST:
        return None
    places = longer[:, None] + np.arange(empty + 1)
    table = (-(-places // batch_size) * batch_size - places) / count  # [levels - 1, W]
    # If 6 of 7 sequences are longer, at most one shorter sequence can be with them.
    table[table > 1.0 - longer[:, None] / count + 0.5 / count] = np.inf
    return lambda prices: table[np.arange(len(table)), _best_path(table, prices)]


def floors_of_budget(
    levels: Levels, fewest: NDArray[np.float64], most: NDArray[np.float64], empty: int
) -> Floors | None:
    """Returns the floors of batches with `fewest` to `most` [levels] places; None if there are too many to search.

    At most `empty` of all places stay empty.
    """
    counts = _counts(levels)
    least_places, most_places = (np.minimum(places, levels.total).astype(np.int64) for places in (fewest, most))
    # More than two batches of spare places are hardly ever worth their price.
    room = min(2 * int(most_places.max()), _MOST_FILLED // (len(counts) * (empty + 1)) - int(counts.max()) - 1)
    if room < 1:
        return None
    least, opened = np.empty((empty + 1, room + 1)), np.empty((empty + 1, room + 1 + int(counts.max())))
    origins = np.empty((len(counts), *opened.shape), np.int32)

    def cheapest(prices: NDArray[np.float64]) -> NDArray[np.float64]:
        spare_places = np.empty(len(prices))
        total = kernels.fill_epoch(counts, least_places, most_places, prices, least, opened, origins, spare_places)
        if np.isinf(total):
            rule, remedy = "at least the fewest of any epoch", "Count the empty places of a plan."
            raise checks.value_error("empty_places", rule, empty, remedy)
        return spare_places / levels.total

    return cheapest


def _counts(levels: Levels) -> NDArray[np.int64]:
    """Counts the sequences of each level."""
    return np.rint(levels.masses * levels.total).astype(np.int64)


def _search(levels: Levels, cheapest: Floors, target: float) -> tuple[float, NDArray[np.float64]]:
    """Returns the greatest bound of the search by Frank and Wolfe, in nats, and the prices of the floors there."""
    floors = cheapest(np.diff(levels.sizes))
    best, best_prices = 0.0, np.zeros(len(floors))
    for number in range(_ROUNDS):
        value, prices = least_information(levels, target, floors)
        new_floors = cheapest(prices)
        gain = float(prices @ (floors - new_floors))
        if value - gain > best:
            best, best_prices = value - gain, prices
        if gain < _NEAR:
            break
        floors = floors + 2.0 / (number + 3.0) * (new_floors - floors)
    return best, best_prices


def _best_path(table: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns the W of each level, falling, with the least sum of weight x floor: [levels - 1]."""
    # From the last level down: total[W] is the least sum of the levels so far that ends with W; W may only grow.
    total, came = np.zeros(table.shape[1]), np.empty(table.shape, np.int64)
    # Impossible floors cost infinity, also at weight 0.
    costs = np.full(table.shape, np.inf)
    np.multiply(weights[:, None], table, out=costs, where=np.isfinite(table))
    for level in range(len(table) - 1, -1, -1):
        least = np.minimum.accumulate(total)
        came[level] = np.maximum.accumulate(np.where(total == least, np.arange(len(total)), 0))
        total = least + costs[level]
    path = np.empty(len(table), np.int64)
    place = int(np.argmin(total))
    for level in range(len(table)):
        path[level] = place
        place = int(came[level, place])
    return path

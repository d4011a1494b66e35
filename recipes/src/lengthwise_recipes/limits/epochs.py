"""The limit of an epoch: each sequence is taken once, and of the places of all batches so many stay empty.

Let S_s sequences be longer than level s. The batches that are padded beyond it hold them all, and have places for more.
Say e_s of these are taken by sequences of level s or lower. They are padded beyond it too, and that is n times the flow
of `levels` there: n F_s >= e_s.

With K batches of a fixed size B, K B - n places stay empty in all. If W_s of them are in batches beyond level s, then

    e_s >= ceil((S_s + W_s) / B) B - W_s - S_s

    164 full batches of 64, S_s = 100     two batches are padded beyond level s: at least 28 shorter ones are in them
    10 places empty, all in those two     at least 18

W falls as s rises, from all places that stay empty to none. Under a budget a batch has B(t) places, as many as the
budget allows of the length t that it is padded to. Down from the longest, some batches are opened at each level t, some
places stay empty, and as many as are of this level are taken.

    budget 100, lengths 50, 40, 30, 30    50 and 40 fill a batch, which has two places: none shorter is padded to 50
    none may stay empty                   a batch padded to 30 has three places, for two: so one 30 is beside 50

Where no place stays empty, and sizes are fixed, the floors e_s are known, and the limit is the least information of
flows above them. Elsewhere a batching chooses, and so does a pool of epochs, by the average of its floors. The best
average is looked for as Frank and Wolfe do: the prices of the floors say which choice would lessen the information
most, by dynamic programming. What that could lessen it by is known too, so every state proves a bound.

One of a batch is as long as the batch is padded to, besides. The prices of the floors prove a bound of both conditions:
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
from lengthwise_recipes.limits.levels import (
    Levels,
    ends_of_betas,
    least_flows,
    least_information,
    padding_of_flows,
)

_ROUNDS = 40  # looks for a better choice
_NEAR = 1e-3  # nats: how far above the bound the state may be in the end
_MOST = 2**23  # floors in the table of all W; beyond, they are left out, and the limit is that of flows without
_MOST_FILLED = 2**25  # the same for the table of all ways to fill an epoch

Floors = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""The floors [levels - 1] of the choice that costs least at prices [levels - 1] of the floors."""


def rate_in_epoch(levels: Levels, target: float, most: NDArray[np.float64], cheapest: Floors | None) -> float:
    """A lower bound, in nats, on I(X; T) of epochs that pad `target` a sequence on average.

    `most` [levels] is the most sequences in a batch that is padded to each level. `cheapest` is of `floors_of_sizes` or
    of `floors_of_budget`.
    """
    if cheapest is None:
        return 0.0
    target = max(target, _least_padding(levels, cheapest))  # no epoch pads less
    best, prices = _search(levels, cheapest, target)
    # The same prices, where one of each batch is as long as the batch is padded to.
    return max(best, float(prices @ cheapest(prices)) + rate_in_batches(levels, target, most, prices))


def floors_of_sizes(levels: Levels, batch_size: int, batches: int) -> Floors | None:
    """The floors of `batches` batches of a size; None where there are too many to look through."""
    count = levels.total
    longer = count - np.cumsum(_counts(levels))[:-1]
    empty = batches * batch_size - count
    if (empty + 1) * len(longer) > _MOST:
        return None
    held = longer[:, None] + np.arange(empty + 1)
    table = (-(-held // batch_size) * batch_size - held) / count  # [levels - 1, W]
    # Of 7 sequences of which 6 are longer, no more than one shorter can be beside them.
    table[table > 1.0 - longer[:, None] / count + 0.5 / count] = np.inf
    return lambda prices: table[np.arange(len(table)), _best_path(table, prices)]


def floors_of_budget(
    levels: Levels, fewest: NDArray[np.float64], most: NDArray[np.float64], empty: int
) -> Floors | None:
    """The floors of batches that have fewest to most [levels] places by what they are padded to; None as above.

    `empty` is how many of all places stay empty at most.
    """
    counts = _counts(levels)
    least_places, most_places = (np.minimum(places, levels.total).astype(np.int64) for places in (fewest, most))
    # More places than those of two batches are hardly ever worth their price.
    room = min(2 * int(most_places.max()), _MOST_FILLED // (len(counts) * (empty + 1)) - int(counts.max()) - 1)
    if room < 1:
        return None
    least, opened = np.empty((empty + 1, room + 1)), np.empty((empty + 1, room + 1 + int(counts.max())))
    origins = np.empty((len(counts), *opened.shape), np.int32)

    def cheapest(prices: NDArray[np.float64]) -> NDArray[np.float64]:
        beside = np.empty(len(prices))
        total = kernels.fill_epoch(counts, least_places, most_places, prices, least, opened, origins, beside)
        if np.isinf(total):
            rule, remedy = "as many as some epoch leaves empty", "Count those of a plan: no batches leave so few."
            raise checks.value_error("empty_places", rule, empty, remedy)
        return beside / levels.total

    return cheapest


def _counts(levels: Levels) -> NDArray[np.int64]:
    """How many sequences are of each level."""
    return np.rint(levels.masses * levels.total).astype(np.int64)


def _search(levels: Levels, cheapest: Floors, target: float) -> tuple[float, NDArray[np.float64]]:
    """The greatest bound that the search by Frank and Wolfe proves, in nats, and the prices of the floors there."""
    floors = cheapest(np.diff(levels.sizes))
    best, found = 0.0, np.zeros(len(floors))
    for number in range(_ROUNDS):
        value, prices = least_information(levels, target, floors)
        another = cheapest(prices)
        lessened = float(prices @ (floors - another))
        if value - lessened > best:
            best, found = value - lessened, prices
        if lessened < _NEAR:
            break
        floors = floors + 2.0 / (number + 3.0) * (another - floors)
    return best, found


def _least_padding(levels: Levels, cheapest: Floors) -> float:
    """What an epoch pads at least: the flows above the best floors, where a frame costs more than all else."""
    _, dearest = ends_of_betas(levels)
    return padding_of_flows(levels, least_flows(levels, dearest, cheapest(np.diff(levels.sizes)))[0])


def _best_path(table: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """The W of each level, falling, whose floors have the least sum of weight x floor: [levels - 1]."""
    # From the last level down: total[W] is the least sum of the levels so far that ends with W; W may only grow.
    total, came = np.zeros(table.shape[1]), np.empty(table.shape, np.int64)
    # What is impossible costs infinity, also where the weight is 0.
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

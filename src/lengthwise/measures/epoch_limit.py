"""The limit of an epoch: each sequence is taken once, by so many batches of at most B.

Let S_s sequences be longer than level s. The batches that are padded beyond it hold them all, and if K batches do, they
have K B places. Say W_s of these stay empty. Then the rest, K B - W_s - S_s sequences of level s or lower, is padded
beyond it too, and that is n times the flow of `rate_distortion` there:

    n F_s >= ceil((S_s + W_s) / B) B - W_s - S_s

    164 full batches of 64, S_s = 100     two batches are padded beyond level s: at least 28 shorter ones are in them
    10 places empty, all in those two     at least 18

W falls as s rises, from all places that stay empty to none. Where none does the floors are known, and the limit is the
least information of flows above them. Elsewhere a batching chooses W, and so does a pool of epochs, by the average of
its floors. The best average is looked for as Frank and Wolfe do: the prices of the floors say which W would lessen the
information most, by dynamic programming. What that could lessen it by is known too, so every state proves a bound.

One of a batch is as long as the batch is padded to, besides. The prices of the floors prove a bound of both conditions:
see `lengthwise.measures.batch_limit`.

References:
    Frank and Wolfe 1956, "An algorithm for quadratic programming".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise.choices.rate_distortion import Levels, information_of_flows, least_flows, padding_of_flows
from lengthwise.measures.batch_limit import rate_in_batches

_ROUNDS = 40  # looks for a better W
_NEAR = 1e-3  # nats: how far above the bound the state may be in the end
_STEPS = 50  # halvings of the logarithm of beta
_MOST = 2**23  # floors in the table of all W; beyond, they are left out, and the limit is that of flows without


def rate_in_epoch(levels: Levels, target: float, batch_size: int, batches: int, most: NDArray[np.float64]) -> float:
    """A lower bound, in nats, on I(X; T) of epochs of `batches` batches that pad `target` a sequence on average.

    `most` [levels] is the most sequences in a batch that is padded to each level, `batch_size` or fewer.
    """
    count = round(levels.total)
    longer = count - np.cumsum(np.rint(levels.masses * count).astype(np.int64))[:-1]
    empty = batches * batch_size - count
    if (empty + 1) * len(longer) > _MOST:
        return 0.0
    places = np.arange(empty + 1)
    held = longer[:, None] + places
    table = (-(-held // batch_size) * batch_size - held) / count  # [levels - 1, W]
    # Of 7 sequences of which 6 are longer, no more than one shorter can be beside them.
    table[table > 1.0 - longer[:, None] / count + 0.5 / count] = np.inf
    target = max(target, _least_padding(levels, table))  # no epoch pads less
    best, prices = _search(levels, table, target)
    # The same prices, where one of each batch is as long as the batch is padded to.
    priced = float(prices @ _floors_of(table, _best_path(table, prices)))
    return max(best, priced + rate_in_batches(levels, target, most, prices))


def _search(levels: Levels, table: NDArray[np.float64], target: float) -> tuple[float, NDArray[np.float64]]:
    """The greatest bound that the search by Frank and Wolfe proves, in nats, and the prices of the floors there."""
    floors = _floors_of(table, _best_path(table, np.diff(levels.sizes)))
    best, found = 0.0, np.zeros(len(floors))
    for number in range(_ROUNDS):
        value, prices = _solve(levels, floors, target)
        another = _floors_of(table, _best_path(table, prices))
        lessened = float(prices @ (floors - another))
        if value - lessened > best:
            best, found = value - lessened, prices
        if lessened < _NEAR:
            break
        floors = floors + 2.0 / (number + 3.0) * (another - floors)
    return best, found


def _solve(levels: Levels, floors: NDArray[np.float64], target: float) -> tuple[float, NDArray[np.float64]]:
    """The least information of flows above `floors` at `target`, in nats, and what each floor adds to it."""
    sizes, reached = levels.sizes, np.cumsum(levels.masses)
    low, high = 1e-9 / (sizes[-1] - sizes[0]), 1e3 / np.diff(sizes).min()
    flows, prices = np.empty(len(floors)), np.empty(len(floors))
    beta = low
    for _ in range(_STEPS):
        beta = float(np.sqrt(low * high))
        _kernels.least_flows(sizes, reached, floors, beta, flows, prices)
        low, high = (beta, high) if padding_of_flows(levels, flows) > target else (low, beta)
    value = information_of_flows(levels, flows) + beta * (padding_of_flows(levels, flows) - target)
    return value, prices


def _least_padding(levels: Levels, table: NDArray[np.float64]) -> float:
    """What an epoch pads at least: the flows above the floors of the best W, where a frame costs more than all else."""
    gaps = np.diff(levels.sizes)
    return padding_of_flows(levels, least_flows(levels, 1e3 / gaps.min(), _floors_of(table, _best_path(table, gaps))))


def _floors_of(table: NDArray[np.float64], path: NDArray[np.int64]) -> NDArray[np.float64]:
    """The floors of a path, [levels - 1]."""
    return table[np.arange(len(path)), path]


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

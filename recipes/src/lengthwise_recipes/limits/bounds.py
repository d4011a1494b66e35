"""Bounds: the most mixing at a padding, for batches of a size, for an epoch of them, or for steps of several.

Each search proves a bound at every state, so a limit is never too low. Lengths are put into groups of similar length;
few groups make the limit a little too high. Compare `measure_mixing` with the limit at the same `bins`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

import lengthwise as lw
from lengthwise import checks
from lengthwise_recipes.limits.batches import rate_in_batches
from lengthwise_recipes.limits.epochs import floors_of_budget, floors_of_sizes, rate_in_epoch
from lengthwise_recipes.limits.levels import Levels, group_levels, least_information
from lengthwise_recipes.limits.steps import rate_in_steps

_LEVELS = 65_536  # of `mixing_limit`, whose search takes linear time
_BINS = 2_048  # at least 24 times 100 rounds visit each
_BINS_OF_STEPS = 1_024  # the search visits each some thousand times


def mixing_limit(lengths: ArrayLike, padding: float, *, bins: int = _LEVELS) -> float:
    """Returns the most mixing that any batching of these lengths can have at a padding share: exp(-R(D)).

    R is the rate-distortion function of the lengths, and D = mean length x padding / (1 - padding). The limit is exact,
    except for rounding, for at most `bins` distinct lengths. Infinite batches reach it. Small ones stay below it,
    because their longest sequence has the padded length.

    Args:
        lengths: [n], in any unit.
        padding: The share of all computed frames that are padding, from 0 to 0.999.
        bins: The most groups of similar length. All lengths of a group count as their mean.

    >>> mixing_limit([100, 200, 300, 400], 0.4)  # enough to pad every sequence to the longest
    1.0

    References:
        Cover and Thomas 2006, "Elements of information theory", chapter 10. The solution is our own: see `levels`.
    """
    levels, target = _read(lengths, padding, bins)
    if target >= levels.sizes[-1] - float(levels.sizes @ levels.masses):
        return 1.0
    rate, _ = least_information(levels, target, np.zeros(len(levels.sizes) - 1))
    return min(1.0, float(np.exp(-rate)))


def batch_limit(
    lengths: ArrayLike, padding: float, *, batch_size: int | None = None, budget: float | None = None, bins: int = _BINS
) -> float:
    """Returns the most mixing of batches, in one plan or pooled over epochs; at most 0.2 % too high.

    Args:
        lengths: [n], in any unit.
        padding: The share of all computed frames that are padding, from 0 to 0.999.
        batch_size: The most sequences in a batch.
        budget: The largest batch in padded frames; a longer sequence has a batch of its own.
        bins: The most groups of similar length.

    >>> batch_limit([1, 1, 9, 9], 4 / 9, batch_size=2) > 0.999  # each batch has a long and a short one
    True
    """
    levels, target = _read(lengths, padding, bins)
    if len(levels.sizes) == 1:
        return 1.0
    rate = rate_in_batches(levels, target, _most_in_batches(levels.lowest, batch_size, budget))
    return min(mixing_limit(lengths, padding, bins=bins), float(np.exp(-rate)))


def epoch_limit(
    lengths: ArrayLike,
    padding: float,
    *,
    batch_size: int | None = None,
    batches: int | None = None,
    budget: float | None = None,
    empty_places: int | None = None,
    bins: int = _BINS,
) -> float:
    """Returns the most mixing of an epoch. Give `batch_size` and `batches`, or `budget` and `empty_places`.

    An epoch has each sequence once. Sorted batches pad least, and at that padding only sorted batches are possible.
    More batches than needed can pad less, and mix more. If there are too many empty places to search, the limit is
    `batch_limit`.

    Args:
        lengths, padding: As in `batch_limit`.
        batch_size: The most sequences in a batch.
        batches: Batches of an epoch, `len(plan.batch_sizes)`.
        budget: The largest batch in padded frames.
        empty_places: The most places that an epoch leaves empty in its batches, at their padded lengths:
            `(budget // longest - plan.batch_sizes).sum()`, with `longest = plan.padded_lengths[:, 0]`.
        bins: As in `batch_limit`.

    Raises:
        ValueError: Too few batches, or fewer empty places than any epoch has.
    """
    levels, target = _read(lengths, padding, bins)
    highest = batch_limit(lengths, padding, batch_size=batch_size, budget=budget, bins=bins)
    if len(levels.sizes) == 1:
        return 1.0
    most = _most_in_batches(levels.lowest, batch_size, budget)
    if batch_size is not None and batches is not None:
        needed = -(-levels.total // batch_size)
        remedy = f"{levels.total} sequences need {needed} batches of {batch_size}."
        checks.check_whole("batches", batches, minimum=needed, remedy=remedy)
        floors = floors_of_sizes(levels, batch_size, batches)
    elif budget is not None and empty_places is not None:
        # A batch holds most at the shortest length of a level, and fewest at the longest.
        floors = floors_of_budget(levels, _most_in_batches(levels.highest, None, budget), most, empty_places)
    else:
        remedy = "Give `batch_size` and `batches`, or `budget` and `empty_places`."
        raise checks.value_error("batches", "given with a batch_size", batches, remedy)
    return min(highest, float(np.exp(-rate_in_epoch(levels, target, most, floors))))


def step_limit(lengths: ArrayLike, padding: float, batches: int, *, bins: int = _BINS_OF_STEPS) -> float:
    """Returns the most mixing of steps of `batches` batches, by the information of their padded lengths about a length.

    The limit is 1 from the padding of `optimal_edges(lengths, batches)` on. It takes some seconds.
    `measure_mixing` sees only the mean padded length of a step, so it may lie above this limit.

    Args:
        lengths, padding: As in `batch_limit`.
        batches: Batches of a step: ranks x micro-batches.
        bins: As in `batch_limit`.

    >>> step_limit([100, 200, 300, 400], 0.2, 2)  # one batch padded to 200, the other to 400
    1.0
    """
    levels, target = _read(lengths, padding, bins)
    return float(np.exp(-rate_in_steps(levels, target, batches)))


def _read(lengths: ArrayLike, padding: float, bins: int) -> tuple[Levels, float]:
    """Returns the lengths in groups, and the mean padding of a sequence in frames."""
    checks.check_number("padding", padding, maximum=0.999, remedy="Give a share from 0 to 0.999, such as 0.05.")
    checks.check_whole("bins", bins, minimum=2, remedy="Give as many bins as mixing was estimated in, such as 128.")
    array = lw.as_lengths(lengths).astype(np.float64)
    if array.ndim != 1 or not len(array):
        remedy = "Give at least one sequence, and one length each: lengths[:, 0], for example."
        raise checks.value_error("lengths", "of shape [n], n at least 1", array.shape, remedy)
    return group_levels(array, bins), float(array.mean()) * padding / (1.0 - padding)


def _most_in_batches(padded: NDArray[np.float64], batch_size: int | None, budget: float | None) -> NDArray[np.float64]:
    """Returns the most sequences in a batch of each padded length: [levels], at least 1."""
    most = np.full(len(padded), np.inf if batch_size is None else float(batch_size))
    return np.maximum(1.0, most if budget is None else np.minimum(most, np.floor(budget / padded)))

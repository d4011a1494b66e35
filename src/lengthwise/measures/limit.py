"""The limit: how random batches can be at a given padding, however they are made."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.rate_distortion import Levels, group_levels, least_information
from lengthwise.lengths import as_lengths

_LEVELS = 65_536  # lengths told apart where nobody says how many


def mixing_limit(lengths: ArrayLike, padding: float, *, bins: int | None = None) -> float:
    """The most mixing that any batching can have at a padding share of `padding` on these lengths.

    exp(-R(D)) with D = mean length x padding / (1 - padding). It is exact, but for rounding, where at most 65,536
    lengths are distinct; more are grouped. Few bins make little mixing look like more: mixing that `mixing` estimated
    in few bins may lie above this limit. Compare it with the limit of the same `bins`.

    Args:
        lengths: [n], in any unit.
        padding: The share of all computed frames that are padding, from 0 to 0.999.
        bins: Into how many groups of like length the lengths are put at most, as if all of a group were of its mean
            length; by default every length counts for itself.

    Returns:
        A number from 0 to 1; 1 where `padding` is enough to pad every sequence to the longest.

    >>> mixing_limit(np.array([100, 200, 300, 400]), 0.4)
    1.0

    References:
        Blahut 1972, "Computation of channel capacity and rate-distortion functions", for the condition that the best
        law fulfils; its solution is our own: see `lengthwise.choices.rate_distortion`.
    """
    checks.check_number("padding", padding, maximum=0.999, remedy="Give a share from 0 to 0.999, 0.05 say.")
    remedy = "Give as many bins as mixing was estimated in, 128 say."
    most = checks.check_whole("bins", _LEVELS if bins is None else bins, minimum=2, remedy=remedy)
    levels = group_levels(_check_lengths(lengths), most)
    mean = float(levels.sizes @ levels.masses)
    target = mean * padding / (1.0 - padding)
    # Frames enough to pad every sequence to the longest: then the padded length tells nothing.
    if target >= levels.sizes[-1] - mean:
        return 1.0
    return min(1.0, float(np.exp(-_rate(levels, target))))


def _check_lengths(lengths: ArrayLike) -> NDArray[np.float64]:
    checked = as_lengths(lengths)
    if checked.ndim != 1 or not len(checked):
        remedy = "Give at least one sequence, and one length each: lengths[:, 0], say."
        raise checks.value_error("lengths", "of shape [n], n at least 1", checked.shape, remedy)
    return checked.astype(np.float64)


def _rate(levels: Levels, target: float) -> float:
    """R(target), in nats, on its tangent of the slope -beta that touches it there."""
    spread = levels.sizes[-1] - levels.sizes[0]
    low, high = 1e-9 / spread, 1e3 / np.diff(levels.sizes).min()  # beta weighs differences of lengths
    height, beta = 0.0, low
    for _ in range(60):
        beta = float(np.sqrt(low * high))  # halfway between their logarithms: beta spans many decades
        distortion, height = least_information(levels, beta)
        low, high = (beta, high) if distortion > target else (low, beta)
    return height - beta * target

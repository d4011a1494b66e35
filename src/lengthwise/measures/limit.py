"""The limit: how random batches can be at a given padding, however they are made."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lengthwise import checks
from lengthwise.lengths import as_lengths
from lengthwise.measures.rate_distortion import group_levels, least_information

_LEVELS = 65_536  # lengths told apart where nobody says how many


def mixing_limit(lengths: ArrayLike, padding: float, *, bins: int | None = None) -> float:
    """The most mixing that any batching can have at a padding share of `padding` on these lengths.

    exp(-R(D)) with D = mean length x padding / (1 - padding). It is exact, except for rounding, if at most 65,536
    lengths are distinct; more are grouped. Few bins make little mixing look like more: mixing that `measure` estimated
    in few bins may lie above this limit. Compare it with the limit of the same `bins`.

    It is the limit of endless batches. Small batches stay below it: one of a batch is as long as the batch is padded
    to, and tells its length.

    Args:
        lengths: [n], in any unit.
        padding: The share of all computed frames that are padding, from 0 to 0.999.
        bins: Into how many groups of like length the lengths are put at most, as if all of a group were of its mean
            length; by default every length counts for itself.

    Returns:
        A number from 0 to 1; 1 where `padding` is enough to pad every sequence to the longest.

    Raises:
        ValueError: A padding out of range, or lengths that are not [n].

    >>> mixing_limit([100, 200, 300, 400], 0.4)
    1.0

    References:
        Cover and Thomas 2006, "Elements of information theory", chapter 10; the solution is our own, see
        `lengthwise.measures.rate_distortion`.
    """
    checks.check_number("padding", padding, maximum=0.999, remedy="Give a share from 0 to 0.999, such as 0.05.")
    remedy = "Give as many bins as mixing was estimated in, such as 128."
    bins = checks.check_whole("bins", _LEVELS if bins is None else bins, minimum=2, remedy=remedy)
    array = as_lengths(lengths)
    if array.ndim != 1 or not len(array):
        remedy = "Give at least one sequence, and one length each: lengths[:, 0], for example."
        raise checks.value_error("lengths", "of shape [n], n at least 1", array.shape, remedy)
    levels = group_levels(array.astype(np.float64), bins)
    mean = float(levels.sizes @ levels.masses)
    target = mean * padding / (1.0 - padding)
    # Frames enough to pad every sequence to the longest: then the padded length tells nothing.
    if target >= levels.sizes[-1] - mean:
        return 1.0
    return min(1.0, float(np.exp(-least_information(levels, target))))

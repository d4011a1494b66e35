"""The limit: how random batches can be at a given padding, however they are made."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.rate_distortion import Levels, group_levels, least_information
from lengthwise.lengths import as_lengths
from lengthwise.measures.batch_limit import rate_in_batches

_LEVELS = 65_536  # lengths told apart where nobody says how many
_LEVELS_IN_BATCHES = 2_048  # the same for batches of a given size, where each takes 24 times 100 rounds and more


def mixing_limit(
    lengths: ArrayLike, padding: float, *, batch_size: int | None = None, bins: int | None = None
) -> float:
    """The most mixing that any batching can have at a padding share of `padding` on these lengths.

    exp(-R(D)) with D = mean length x padding / (1 - padding). It is exact, but for rounding, where at most 65,536
    lengths are distinct; more are grouped. Few bins make little mixing look like more: mixing that `mixing` estimated
    in few bins may lie above this limit. Compare it with the limit of the same `bins`.

    Small batches cannot reach it. Of `batch_size` members at least one is as long as the batch is padded to, and tells
    its length. With `batch_size` the limit holds for all batches of at most so many sequences that are padded to their
    longest, in one plan or pooled over epochs. The bound is proved wherever the iteration stands, if at most 2,048
    lengths are distinct (more are grouped); what is computed is how low it comes, within about 0.2 %. It need not be
    reached: nothing in it says that a sequence is taken once an epoch, which costs padding where little is padded.

    Args:
        lengths: [n], in any unit.
        padding: The share of all computed frames that are padding, from 0 to 0.999.
        batch_size: The most sequences in a batch; by default batches are endless.
        bins: Into how many groups of like length the lengths are put at most, as if all of a group were of its mean
            length; by default every length counts for itself.

    Returns:
        A number from 0 to 1; for endless batches 1 where `padding` is enough to pad every sequence to the longest.

    >>> mixing_limit(np.array([100, 200, 300, 400]), 0.4)
    1.0

    References:
        Blahut 1972, "Computation of channel capacity and rate-distortion functions", for the condition that the best
        law fulfils; its solution is our own: see `lengthwise.choices.rate_distortion`.
    """
    checks.check_number("padding", padding, maximum=0.999, remedy="Give a share from 0 to 0.999, 0.05 say.")
    levels = _group(_check_lengths(lengths), bins, _LEVELS if batch_size is None else _LEVELS_IN_BATCHES)
    target = float(levels.sizes @ levels.masses) * padding / (1.0 - padding)
    rate = _rate(levels, target)
    if batch_size is not None:
        remedy = "Give the most sequences in a batch, or leave it out for endless batches."
        checks.check_whole("batch_size", batch_size, minimum=1, remedy=remedy)
        rate = max(rate, rate_in_batches(levels, target, batch_size) if len(levels.sizes) > 1 else 0.0)
    return min(1.0, float(np.exp(-rate)))


def _group(sizes: NDArray[np.float64], bins: int | None, most: int) -> Levels:
    remedy = "Give as many bins as mixing was estimated in, 128 say."
    return group_levels(sizes, checks.check_whole("bins", most if bins is None else bins, minimum=2, remedy=remedy))


def _check_lengths(lengths: ArrayLike) -> NDArray[np.float64]:
    checked = as_lengths(lengths)
    if checked.ndim != 1 or not len(checked):
        remedy = "Give at least one sequence, and one length each: lengths[:, 0], say."
        raise checks.value_error("lengths", "of shape [n], n at least 1", checked.shape, remedy)
    return checked.astype(np.float64)


def _rate(levels: Levels, target: float) -> float:
    """R(target), in nats, on its tangent of the slope -beta that touches it there."""
    # Frames enough to pad every sequence to the longest: then the padded length tells nothing.
    if target >= levels.sizes[-1] - levels.sizes @ levels.masses:
        return 0.0
    spread = levels.sizes[-1] - levels.sizes[0]
    low, high = 1e-9 / spread, 1e3 / np.diff(levels.sizes).min()  # beta weighs differences of lengths
    height, beta = 0.0, low
    for _ in range(60):  # halvings: beyond the 53 bits to which a float is exact
        beta = float(np.sqrt(low * high))  # halfway between their logarithms: beta spans many decades
        distortion, height = least_information(levels, beta)
        low, high = (beta, high) if distortion > target else (low, beta)
    return height - beta * target

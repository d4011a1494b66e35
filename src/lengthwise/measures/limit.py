"""The limit: how random batches can be at a given padding, however they are made."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.rate_distortion import blahut_arimoto, decay_of, group_levels
from lengthwise.lengths import as_lengths

_CELLS = 128  # lengths told apart


def mixing_limit(lengths: ArrayLike, padding: float) -> float:
    """The most mixing that any batching can have at a padding share of `padding` on these lengths.

    exp(-R(D)) with D = mean length x padding / (1 - padding), by Blahut-Arimoto on at most 128 cells of length.

    Args:
        lengths: [n], in any unit.
        padding: The share of all computed frames that are padding, from 0 to 0.999.

    Returns:
        A number from 0 to 1; 1 where `padding` is enough to pad every sequence to the longest. Mixing that was
        estimated in few bins may lie above it, because few bins make little mixing look like more.

    >>> mixing_limit(np.array([100, 200, 300, 400]), 0.4)
    1.0

    References:
        Blahut 1972, "Computation of channel capacity and rate-distortion functions".
    """
    checks.check_number("padding", padding, maximum=0.999, remedy="Give a share from 0 to 0.999, 0.05 say.")
    checked = as_lengths(lengths)
    if checked.ndim != 1 or not len(checked):
        remedy = "Give at least one sequence, and one length each: lengths[:, 0], say."
        raise checks.value_error("lengths", "of shape [n], n at least 1", checked.shape, remedy)
    sizes, masses, _ = group_levels(checked.astype(np.float64), _CELLS)
    target = float(sizes @ masses) * padding / (1.0 - padding)
    # Frames enough to pad every sequence to the longest: then the padded length tells nothing.
    if target >= sizes[-1] - sizes @ masses:
        return 1.0
    low, high = 1e-9 / sizes[-1], 1e3 / np.diff(sizes).min()  # beta weighs differences of lengths
    information = 0.0
    for _ in range(60):
        beta = float(np.sqrt(low * high))  # halfway between their logarithms: beta spans many decades
        distortion, information = _rate_distortion(sizes, masses, beta)
        low, high = (beta, high) if distortion > target else (low, beta)
    return float(np.exp(-information))


def _rate_distortion(sizes: NDArray[np.float64], masses: NDArray[np.float64], beta: float) -> tuple[float, float]:
    """The mean of T - X, and I(X; T) in nats, on the point of R(D) with slope -beta."""
    gaps = sizes[None, :] - sizes[:, None]
    decay = decay_of(sizes, beta)
    joint = decay * blahut_arimoto(masses, decay, rounds=400)
    joint *= (masses / joint.sum(axis=1))[:, None]
    independent = masses[:, None] * joint.sum(axis=0)
    seen = joint > 1e-200  # a smaller one carries nothing, and its product above may be zero
    information = np.sum(joint[seen] * np.log(joint[seen] / independent[seen]))
    return float(np.sum(joint * gaps)), float(information)

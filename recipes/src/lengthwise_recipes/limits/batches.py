"""The limit of batches of at most B sequences. X is the length of a sequence, T the padded length of its batch.

A batch is padded to its longest sequence. So among the sequences padded to t, at least one in B has length t:
P(X = t | T = t) >= 1 / B.  Under a budget B = B(t), the number of sequences of length t that fit.

Consider all joint laws of X and T with E[T - X] <= D that fulfil this condition. The least I(X; T) among them is a
lower bound for any such batches. The condition is linear, so the pool of several epochs fulfils it too.

The problem is convex. Let p(x) be the share of sequences of length x. The dual maximises the sum over x of p(x) log
a(x), less beta D. Its condition is that for every t some price mu(t) >= 0 exists with

    exp(-mu / B) (sum over x < t of a(x) exp(-beta (t - x))) + a(t) exp(mu (1 - 1 / B)) <= 1.

Any beta >= 0 and any such a prove a bound. So an iteration that has not converged gives a limit that is a little too
high, and never one that is too low. The best mu is known for given a; it gives the g of `information_in_batches`.

The floors of `epochs` are conditions on the same law. The floor between level s and the next has a price nu(s) >= 0.
Prices make padding over their gaps cheaper: exp(-beta (t - x)) becomes exp(-beta (t - x) + the sum of nu from x to t).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.limits import kernels
from lengthwise_recipes.limits.levels import Levels, ends_of_betas

_STEPS = 24  # halvings of the logarithm of beta: to 1e-5 of its range
_ROUGH, _FINE = 100, 2_000  # rounds: to find the side of the best beta, and at the best beta


def rate_in_batches(
    levels: Levels, target: float, most: NDArray[np.float64], prices: NDArray[np.float64] | None = None
) -> float:
    """Returns a lower bound, in nats, on I(X; T) of batches with a mean padding of `target` per sequence.

    Args:
        levels: The lengths.
        target: Mean padding of a sequence, in frames.
        most: The most sequences in a batch that is padded to each level, [levels].
        prices: Prices of the floors of the flow, [levels - 1], in nats; 0 without floors. The bound is then on I(X; T)
            less the sum of price x flow.
    """
    if prices is None and most.max() == 1.0:
        return float(-levels.masses @ np.log(levels.masses))  # T is X
    prices = np.zeros(len(levels.sizes) - 1) if prices is None else prices
    low, high = ends_of_betas(levels)
    for _ in range(_STEPS):
        beta = float(np.sqrt(low * high))
        # Not `> target`: the distortion is nan if prices outweigh a low beta.
        within_target = _solve(levels, beta, most, prices, _ROUGH)[0] <= target
        low, high = (low, beta) if within_target else (beta, high)
    return _solve(levels, high, most, prices, _FINE)[1] - high * target


def _solve(
    levels: Levels, beta: float, most: NDArray[np.float64], prices: NDArray[np.float64], rounds: int
) -> tuple[float, float]:
    """Returns the mean of T - X after `rounds` rounds, and a lower bound.

    The bound is on I(X; T) + beta E[T - X] - the sum of price x flow.
    """
    sizes, masses = levels.sizes, levels.masses
    with np.errstate(over="ignore"):
        decays = np.exp(prices - beta * np.diff(sizes))
    if np.isinf(decays).any():
        return np.inf, -np.inf
    marginal, factors, weights = masses.copy(), np.ones((2, len(sizes))), np.empty(len(sizes))
    kernels.mix_in_batches(decays, masses, most, rounds, marginal, factors, weights)
    distortion = float((marginal / marginal.sum() - masses) @ sizes)
    return distortion, kernels.information_in_batches(decays, masses, most, weights)

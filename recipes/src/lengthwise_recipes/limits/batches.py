"""The limit of batches of at most B sequences, each padded to its longest: T is the length of one of them.

Of the B members of a batch at least one is as long as the batch is padded to. So among the sequences padded to t, at
least one in B has length t:  P(X = t | T = t) >= 1 / B.  Under a budget B = B(t), as many as it allows of length t. The
least I(X; T) of all laws with E[T - X] <= D that fulfil this is a lower bound on I(X; T) of any such batches, and their
pool over epochs fulfils it too, because it is linear.

The problem is convex. Its dual is to raise the sum over x of p(x) log a(x), less beta D, as far as there are prices
mu(t) >= 0 with, for every t,

    exp(-mu / B) (sum over x < t of a(x) exp(-beta (t - x))) + a(t) exp(mu (1 - 1 / B)) <= 1

Any beta >= 0 and any such a prove a bound. So an iteration that has not converged gives a limit that is a little too
high, and never one that is too low. The best mu is known for given a; it gives the g of `information_in_batches`.

Floors of the flow, as an epoch has them (see `epochs`), are conditions on the same law. A price nu(s) >= 0 for the
floor between s and the next level stands beside what padding from s to there costs: exp(-beta (t - x) + the sum of nu
between x and t).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.limits import kernels
from lengthwise_recipes.limits.levels import Levels, ends_of_betas

_STEPS = 24  # halvings of the logarithm of beta: to 1e-5 of its range
_ROUGH, _FINE = 100, 2_000  # rounds, to tell on which side the best beta lies, and at it


def rate_in_batches(
    levels: Levels, target: float, most: NDArray[np.float64], prices: NDArray[np.float64] | None = None
) -> float:
    """A lower bound, in nats, on I(X; T) of batches that pad `target` a sequence on average.

    Args:
        levels: The lengths.
        target: Frames that a sequence is padded by.
        most: The most sequences in a batch that is padded to each level, [levels].
        prices: Of floors of the flow, [levels - 1], in nats; 0 where there are none. What is bounded is then I(X; T)
            less the sum of price x flow.
    """
    if prices is None and most.max() == 1.0:
        return float(-levels.masses @ np.log(levels.masses))  # T is X
    prices = np.zeros(len(levels.sizes) - 1) if prices is None else prices
    low, high = ends_of_betas(levels)
    for _ in range(_STEPS):
        beta = float(np.sqrt(low * high))
        # Not `> target`: the distortion is no number where prices outweigh a low beta.
        enough = _solve(levels, beta, most, prices, _ROUGH)[0] <= target
        low, high = (low, beta) if enough else (beta, high)
    return _solve(levels, high, most, prices, _FINE)[1] - high * target


def _solve(
    levels: Levels, beta: float, most: NDArray[np.float64], prices: NDArray[np.float64], rounds: int
) -> tuple[float, float]:
    """The mean of T - X where the iteration stands after `rounds`, and a bound on what `rate_in_batches` says.

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

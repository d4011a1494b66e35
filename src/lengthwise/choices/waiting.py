"""Waiting: batches are grouped into steps as much at random as a share of waiting allows.

A step takes as long as its costliest batch, so the others wait for it, as sequences are padded to the longest of their
batch. So it is the problem of `MaxEntropy` once more, one level up: X is what a batch costs, T what the costliest batch
of its step costs, and the waiting is E[T - X] / E[T]. The law that tells least is near T = X + exponential noise.

    costs           5 9 2 4         to be dealt in steps of 2
    no noise        (2 4) (5 9)     as `Balanced` deals: two ranks take 4 + 9 each, and wait 2 + 4 of these 26
    some noise      (5 2) (9 4)     say: they take 5 + 9, and wait 3 + 5 of 28
    endless noise   any two         as `Mixed` deals

Uniform noise mixes less: 0.32 for 0.37 at 10 % waiting on LJSpeech.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lengthwise import _random
from lengthwise._random import Key

# Sums of costs are rounded: a waiting that is more than was asked by less than this is what was asked.
_ROUNDING = 1e-12
_NEAR = 1e-4  # a search that is so near to what was asked is over
_HALF = 32  # bits of a float that are searched: the sign, the exponent, and 20 of the fraction


def waiting_of(steps: NDArray[np.float64]) -> float:
    """The share of time that ranks spend waiting for the slowest of their step.

    Args:
        steps: [steps, ranks], what each rank has to do, of about 1 or less.

    >>> waiting_of(np.array([[2.0, 4.0], [5.0, 9.0]]))  # both ranks take 4 + 9, and work 20 of these 26
    0.23076923076923073
    """
    taken = float(steps.max(axis=1, initial=0.0).sum()) * steps.shape[1]
    return 1.0 - float(steps.sum()) / taken if taken else 0.0


def order_by(costs: NDArray[np.float64], key: Key) -> NDArray[np.int64]:
    """Puts batches in order of cost, equals at random: [batches], positions in `costs`.

    If each rank takes one batch of a step, no other steps wait less: the costliest batches share one step, so that the
    others need not wait for them. Of the rest the costliest share the next step, and so on.
    """
    shuffled = key.permutation(len(costs))
    return shuffled[_random.argsort(costs[shuffled])]


def order_within(
    costs: NDArray[np.float64], waits: Callable[[NDArray[np.int64]], float], waiting: float, key: Key
) -> NDArray[np.int64]:
    """Puts batches in an order that makes steps as random as the waiting allows.

    The order is by cost x beta + standard exponential noise, with the least beta of a bisection under which the
    steps wait no longer than was asked. If `order_by` waits longer than that, its order is taken.

    Args:
        costs: [batches], of about 1 or less.
        waits: What share of the time ranks wait, by an order.
        waiting: The share that they may wait.
        key: The source of all chance.

    Returns:
        [batches], positions in `costs`. Where random steps wait no longer than was asked, `key.permutation`.
    """
    shuffled, by_cost = key.permutation(len(costs)), order_by(costs, key)
    if waits(shuffled) <= waiting + _ROUNDING:
        return shuffled
    if waits(by_cost) > waiting + _ROUNDING:
        return by_cost
    noise, order = key.exponential(len(costs)), by_cost
    # At the lower bound noise is far beyond the largest cost, which is about 1; at the upper one it is below the gap
    # between most two costs. The bits of a positive float rise with it, and in logarithmic steps or nearly so: halving
    # their interval takes the same betas on every platform, as halving that of log(beta) would not.
    low, high = (int(np.array(beta).view(np.int64)) >> _HALF for beta in (2.0**-12, 2.0**40))
    while high - low > 1:
        middle = (low + high) // 2
        beta = np.array(middle << _HALF).view(np.float64)
        # Multiplied and added by separate operations: fused ones would differ between platforms in the last bit.
        found = _random.argsort(costs * beta + noise)
        waited = waits(found)
        if waited > waiting + _ROUNDING:
            low = middle
            continue
        high, order = middle, found
        if waited > waiting - _NEAR:
            break
    return order

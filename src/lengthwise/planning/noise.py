"""Noise: how much of it `MaxEntropy` needs, so that trial plans pad, or mix, what was asked.

asked for 10 %     noise of 60 frames on average     trials pad 8 %
noise of 77 frames                trials pad 10 %
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from lengthwise.choices.cut import OversizeError
from lengthwise.choices.order import MaxEntropy, Order, Shuffled, Sorted
from lengthwise.planning.trial import Trial

_NEAR_OF_MANY, _NEAR_OF_FEW = 5e-4, 2e-3  # how near trials come to what was asked: chance moves plans by more
_MOST_GUESSES = 32
_FINEST = 0.01  # two scales that differ by a hundredth pad alike but for chance
_BY_ODDS = 5  # guesses that the odds are followed alone
_FURTHEST = 2.0**16  # times the first guess: beyond, the noise changes nothing
_LEAST = 1e-6  # of padding or mixing


class Fit(NamedTuple):
    """An order fitted to its sequences; `achieved` is what trials by it have on average, None if there were none.

    It is the share of the computed frames that is padding, or, if a mixing was asked for, the mixing: both 0..1.
    """

    order: Order
    achieved: float | None = None


def fit_noise(order: MaxEntropy, add_noise: Callable[[float], Order], guess: float, trial: Trial) -> Fit:
    """Finds the scale of the noise under which trials have the padding, or the least that has the mixing, asked for.

    Random batches that pad no more than was asked are as random as can be; sorted ones that pad no less are as near as
    can be. Both ends are tried only if the search runs into them.

    Args:
        order: What was asked.
        add_noise: Makes the order whose noise has this scale.
        guess: A scale to begin with.
        trial: What says how much an order pads or mixes.
    """
    try:
        if order.padding is not None:
            return _seek_padding(order.padding, add_noise, guess, trial)
        return _seek_mixing(order.mixing or 0.0, add_noise, guess, trial)
    except OversizeError:  # the plan itself will say which sequence it is
        return Fit(add_noise(guess))


def _seek_padding(padding: float, add_noise: Callable[[float], Order], guess: float, trial: Trial) -> Fit:
    near = _NEAR_OF_FEW if trial.few else max(_NEAR_OF_MANY, padding / 200.0)
    tried = _seek(padding, near, add_noise, guess, partial(trial.padding_of, against=padding))
    order, achieved = min(tried, key=lambda fit: abs(fit[1] - padding))
    # It may be so far off that its trials were stopped. Warnings tell the padding of all trials.
    return Fit(order, trial.padding_of(order) if trial.may_stop else achieved)


def _seek_mixing(mixing: float, add_noise: Callable[[float], Order], guess: float, trial: Trial) -> Fit:
    # Aims a little higher, so as not to end below.
    tried = _seek(mixing + _NEAR_OF_FEW, _NEAR_OF_FEW, add_noise, guess, trial.mixing_of)
    enough = [fit for fit in tried if fit[1] >= mixing]
    return Fit(*min(enough or tried, key=lambda fit: abs(fit[1] - mixing)))


def _seek(
    asked: float, near: float, add_noise: Callable[[float], Order], guess: float, measure: Callable[[Order], float]
) -> list[tuple[Order, float]]:
    """Measures scale after scale until one is `near` to what was `asked`, and returns all that were tried.

    The odds of padding, padding / (1 - padding), go about with the scale. So who asked for 10 % and had 8 % tries a
    scale 1.28 times as large; and never one outside of those that had too little and too much. The first time that
    there is too little, random batches are tried, and the first time that there is too much, sorted ones. If even these
    have too little, or too much, nothing else is returned.
    """
    tried: list[tuple[Order, float]] = []
    low, high, scale = guess / _FURTHEST, guess * _FURTHEST, guess
    least: float | None = None  # what sorted batches have, and
    most: float | None = None  # random ones, once they were tried

    def odds_of(share: float) -> float:
        return max(share - (least or 0.0), _LEAST) / max((most or 1.0) - share, _LEAST)

    for _ in range(_MOST_GUESSES):
        order = add_noise(scale)
        tried.append((order, achieved := measure(order)))
        too_little = achieved < asked
        if abs(achieved - asked) <= near or high <= low * (1.0 + _FINEST):
            break
        if too_little and most is None:
            most = measure(Shuffled())
            tried.append((Shuffled(), most))
            if most <= asked:
                return tried[-1:]
        elif not too_little and least is None:
            least = measure(Sorted())
            tried.append((Sorted(), least))
            if least >= asked:
                return tried[-1:]
        low, high = (scale, high) if too_little else (low, scale)
        scale *= odds_of(asked) / odds_of(achieved)
        # Where padding leaps, as between two lengths far apart, the odds say little: halves find the leap.
        if (len(tried) > _BY_ODDS and len(tried) % 2) or not low * (1.0 + _FINEST) < scale < high / (1.0 + _FINEST):
            scale = math.sqrt(low * high)
    return tried

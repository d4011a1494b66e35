"""Noise: how much of it `MaxEntropy` needs, so that trials pad, or mix, what was asked.

A padding is fitted on the histogram of lengths, and a trial draft says what that pads. It may not be what was asked: if
batches or steps are few, or if sequences have two lengths. Then the request is moved until trials pad what was asked:

    asked for 10 %     fitted to 10 %     trials pad 24 %
                       fitted to  4 %     trials pad 20 %
                       fitted to  0.2 %   trials pad  5 %
                       fitted to  0.5 %   trials pad 10 %

A mixing is fitted by trials alone: the padding is moved until they mix what was asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lengthwise import _exact
from lengthwise.choices.cut import OversizeError
from lengthwise.choices.order import Order, Shuffled, Sorted
from lengthwise.choices.warp import find_root
from lengthwise.planning.trial import Trial

_NEAR_OF_MANY, _NEAR_OF_FEW = 5e-4, 2e-3  # how near trials come to the padding: chance moves plans by more
# Between these a padding is sought: 99 % and 0.03 %. `odds` are logarithms here, of the odds that a frame is data: by
# them small shares of padding are told apart as well as large ones.
_ENDS = -5.0, 8.0
_FURTHEST_IN_LINE = 14.0  # of a line of hundreds of bands, which pads 8 % where noise pads 0.03 % along the line
_GUESSES = 3  # by the secant; where these miss, the last end tells whether any hits
_FLAT = 0.1  # the least slope of a secant
_MOST_TRIED = 8  # between two odds of which one pads too little
_SAME_ODDS = 0.01  # so near to each other, two fits pad alike but for chance


class Fit(NamedTuple):
    """An order fitted to its sequences; `achieved` is what trials by it have on average, None if there were none.

    It is the share of the computed frames that is padding, or, if a mixing was asked for, the mixing: both 0..1.
    """

    order: Order
    achieved: float | None = None


def fit_to_padding(fit_to: Callable[[float], Order], trial: Trial, padding: float) -> Fit:
    """The noise under which trials pad what was asked; `fit_to` fits it to a padding on the histogram of lengths."""
    near = _NEAR_OF_FEW if trial.few else max(_NEAR_OF_MANY, padding / 100.0)
    # The pool draws batches, and they are then cut smaller. So a batch holds parts of two draws, and pads more: a tenth
    # smaller, about a tenth more.
    first = padding / (2.0 - trial.filled)
    fitted = fit_to(first)
    try:
        achieved = trial.padding_of(fitted, against=padding)
    except OversizeError:  # the plan itself will say which sequence it is
        return Fit(fitted)
    # A fit this near is kept: the search below drafts all sequences again for every guess. But 2.4 % is not near 2 %.
    if abs(achieved - padding) <= min(10 * _NEAR_OF_MANY, max(near, padding / 5.0)):
        return Fit(fitted, achieved)
    # Random batches that pad no more than was asked are as random as can be. Sorted ones that pad no less are as
    # near as can be.
    tried = [Fit(fitted, achieved)]
    order_at_end, reaches = (Shuffled(), padding.__ge__) if achieved < padding else (Sorted(), padding.__le__)
    at_end = trial.padding_of(order_at_end, against=padding)
    if reaches(at_end):
        return Fit(order_at_end, trial.padding_of(order_at_end))
    tried.append(Fit(order_at_end, at_end))
    asked = _odds_of(padding)

    def excess(odds: float) -> float:
        order = fit_to(_padding_at(odds))
        tried.append(Fit(order, achieved := trial.padding_of(order, against=padding)))
        return 0.0 if abs(achieved - padding) <= near else asked - _odds_of(achieved)

    _seek_root(excess, _odds_of(first), asked - _odds_of(achieved), _ends_of(trial))
    # Where few lengths lie far apart, the pool that pads least may pad 14 % and sorting 9 %: sorting is nearer to 10 %.
    nearest = min(tried, key=lambda each: abs((each.achieved or 0.0) - padding))
    if trial.may_stop and abs((nearest.achieved or 0.0) - padding) > near:
        # It may be so far off that its trials were stopped. Warnings tell the padding of all trials.
        return Fit(nearest.order, trial.padding_of(nearest.order))
    return nearest


def _seek_root(
    excess: Callable[[float], float], odds: float, at_odds: float, ends: tuple[float, float] = _ENDS
) -> None:
    """Calls a falling `excess`, which is `at_odds` at `odds`, until it is 0, or until nothing comes nearer to 0."""
    points, slope = [(odds, at_odds)], 1.0
    # Who asked for 10 % and had 8 % asks for 12.5 % next: on this scale, both lie about as far from 10 %. What comes of
    # that says how far they do lie.
    for _ in range(_GUESSES):
        (before, at_before), odds = points[-1], float(np.clip(points[-1][0] + points[-1][1] / slope, *ends))
        if odds == before:
            return
        points.append((odds, at_odds := excess(odds)))
        if at_odds * at_before <= 0.0:
            break
        slope = max(_FLAT, (at_before - at_odds) / (odds - before))
    if points[-1][1] * points[0][1] > 0.0:  # no pool may come nearer: the one that pads least, or most, tells
        furthest = ends[1 if points[-1][1] > 0.0 else 0]
        points.append((furthest, excess(furthest)))
    (low, at_low), (high, at_high) = sorted(points[-2:])
    if at_low > 0.0 > at_high:
        find_root(excess, low, high, near=_SAME_ODDS, ends=(at_low, at_high), most=_MOST_TRIED)


def fit_to_mixing(fit_to: Callable[[float], Order], trial: Trial, mixing: float) -> Fit:
    """The noise of the least padding tried under which trials mix what was asked."""
    try:
        most = trial.mixing_of(Shuffled())
    except OversizeError:  # the plan itself will say which sequence it is
        return Fit(Shuffled())
    if mixing >= most:
        return Fit(Shuffled(), most)
    if mixing <= (least := trial.mixing_of(Sorted())):
        return Fit(Sorted(), least)
    tried: list[tuple[float, Fit]] = []

    def excess(odds: float) -> float:
        order = fit_to(_padding_at(odds))
        tried.append((odds, Fit(order, achieved := trial.mixing_of(order))))
        return achieved - mixing - _NEAR_OF_FEW  # aims a little higher, so as not to end below

    # No odds pad more than random batches, and a fit to more than they pad would be slow.
    share = float(np.clip(1.1 * trial.padding_of(Shuffled()), 1e-3, 0.99))
    root = find_root(excess, _exact.log(1.0 / share - 1.0), _ends_of(trial)[1], near=_NEAR_OF_FEW)
    if root != tried[-1][0]:
        excess(root)
    enough = [(odds, fitted) for odds, fitted in tried if fitted.achieved is not None and fitted.achieved >= mixing]
    return max(enough, key=lambda each: each[0])[1] if enough else Fit(Shuffled(), most)  # the last pads least


def _ends_of(trial: Trial) -> tuple[float, float]:
    """Between which odds noise is sought."""
    return _ENDS[0], _FURTHEST_IN_LINE if trial.bands else _ENDS[1]


def _odds_of(padding: float) -> float:
    """The logarithm of the odds that a frame is data, within the range that is searched."""
    return float(np.clip(_exact.log(1.0 / max(padding, 1e-9) - 1.0), *_ENDS))


def _padding_at(odds: float) -> float:
    """The inverse of `_odds_of`, and no more than 0.99."""
    return min(0.99, 1.0 / (1.0 + _exact.exp(odds)))

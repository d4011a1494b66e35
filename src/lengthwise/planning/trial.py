"""Trial: drafts by keys of their own that say what an order pads and mixes, and how much noise it needs.

asked for 10 %     noise of 60 frames on average     trials pad 8 %
noise of 77 frames                trials pad 10 %

Drafts are filled to whole steps as plans are: 14 batches for steps of 4 become 16 smaller ones, which pad less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise._random import Key
from lengthwise.choices.arithmetic import distinct, longest_of
from lengthwise.choices.batching import Batching, is_custom
from lengthwise.choices.cost import prices_of
from lengthwise.choices.cut import OversizeError
from lengthwise.choices.order import MaxEntropy, Order, Shuffled, Sorted
from lengthwise.planning.batches import count_wanted
from lengthwise.planning.custom import check_batch_sizes
from lengthwise.planning.draft import Draft, count_frames, cut_again, draft, longest_in_batches, share_of_padding
from lengthwise.planning.joint import mixing_of_batches

_MANY = 400  # batches: of fewer, chance moves what they pad by a hundredth
_ENOUGH = 1_600  # batches of all trials
_MOST_TRIALS = 16
_STEPS_TRIED = 24  # more of them pad the same
_LEAST_TRIED = 20_000  # sequences, where there are as many
_LEAST_TRIALS = 4  # fewer do not say how far chance moves them
_PLAIN = 6.0  # standard errors: so far off, no further trial would move the mean to the other side


class Data(NamedTuple):
    """What an order is fitted to.

    Attributes:
        items: [n, dims], of all portions; of windows, those of one after the other.
        name: The fingerprint of the lengths, by which what was found is remembered.
        windows: How many of the items each window has, where one order is to serve several; else empty.
        groups: [n], of which no batch mixes two; None for one group.
    """

    items: NDArray[np.int64]
    name: str
    windows: Sequence[int] = ()
    groups: NDArray[np.int64] | None = None

    def select(self, chosen: NDArray[np.bool_]) -> Data:
        """The items that are `chosen` [n]; windows that have none are left out."""
        sizes = [int(part.sum()) for part in self._split(chosen) if part.any()] if self.windows else ()
        return Data(self.items[chosen], self.name, sizes, None if self.groups is None else self.groups[chosen])

    def parts(self) -> list[NDArray[np.int64]]:
        """The places of the items of each window; of all, where there are none."""
        return self._split(np.arange(len(self.items)))

    def _split(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        return np.split(rows, np.cumsum(self.windows)[:-1]) if self.windows else [rows]


class Trial:
    """Drafts by keys of their own, the same ones for every order: of all sequences, or of some steps' worth.

    Args:
        data: What is drafted; each window by itself.
        batching: The choices.
        portions: How many equal parts the sequences are dealt into before they are sorted; of windows, those of one.
        slots: Batches of a step, where the deal takes whole steps.
        bands: As `draft` takes them.
        drafted: How many of the portions are drafted: one for all, or every one.
        places: Batches that a portion has in a step, of which the last one is filled; 0 to fill none.
        alone: Batches that will stand beside those of the draft.
        most: How many sequences are enough.

    Attributes:
        items: Those that are drafted, of each window.
        few: Whether they make so few batches that chance moves what they pad.
        trials: How many drafts are made by each order: of windows, one of each at least.
    """

    batching: Batching
    slots: int
    bands: tuple[int, ...]
    drafted: int
    places: int
    alone: int
    items: list[NDArray[np.int64]]
    few: bool
    trials: int

    def __init__(
        self,
        data: Data,
        batching: Batching,
        *,
        portions: int,
        slots: int,
        bands: tuple[int, ...],
        drafted: int = 1,
        places: int = 0,
        alone: int = 0,
        most: int = 2**62,
    ) -> None:
        self.batching, self.slots, self.bands, self.drafted, self.alone = batching, slots, bands, drafted, alone
        parts, windows = data.parts(), len(data.windows)
        batches = estimate_batches(data.items, batching, portions * len(parts))
        # Windows are drafted together as one set of sequences is: as many of each as of one.
        drawn = [
            _draw(data.items, part, min(most, _enough(len(part), portions, drafted, slots, batches))) for part in parts
        ]
        self.items = [data.items[part] for part in drawn]
        self._groups = [None if data.groups is None else data.groups[part] for part in drawn]
        # Of a part of the sequences, the last step would be another.
        self.places = places if sum(map(len, self.items)) == len(data.items) else 0
        # What chance does to one set of sequences is no fault of the order. It would be one in every window.
        self.few = batches * drafted < _MANY and not windows
        most_trials = _MOST_TRIALS if prices_of(batching.cost, data.items.shape[1]) is not None else 1
        # 100 batches are drafted 16 times: 1,600 batches then say what they pad.
        self.trials = max(windows, int(np.clip(_ENOUGH / (batches * drafted), 1, most_trials)))

    def padding_of(self, order: Order, *, against: float | None = None) -> float:
        """The share of the computed frames that is padding, by an order that is fitted.

        With `against`, a padding, no more is tried as soon as it is plain that the order pads more than that, or less.
        """
        shares: list[float] = []
        useful = computed = 0
        for each in self._try(order):
            of_trial = count_frames(*each, self.batching.cut)
            useful, computed = useful + of_trial[0], computed + of_trial[1]
            shares.append(share_of_padding(*of_trial))
            if against is None or len(shares) < _LEAST_TRIALS:
                continue
            if abs(share_of_padding(useful, computed) - against) > _PLAIN * _standard_error(shares):
                break
        return share_of_padding(useful, computed)

    @property
    def may_stop(self) -> bool:
        """Whether there are enough trials that `padding_of` may stop before the last one, given `against`."""
        return self.trials > _LEAST_TRIALS

    def mixing_of(self, order: Order) -> float:
        """What a plan by this order mixes, by the bins of one plan: the mean over the trials."""
        return float(np.mean([mixing_of(*each) for each in self._try(order)]))

    def _try(self, order: Order) -> Iterator[tuple[list[Draft], NDArray[np.int64]]]:
        """The drafts of each trial, and the items that they are of: those of one window after the other."""
        # Chance puts equal lengths in order, which changes no padding: all drafts of sorted sequences would be alike.
        fixed = type(order) is Sorted and self.drafted == 1 and self.items[0].shape[1] == 1
        for number in range(len(self.items) if fixed else self.trials):
            items, groups = self.items[number % len(self.items)], self._groups[number % len(self.items)]
            yield self._draft(order, items, groups, Key(seed=0, epoch=number, stage="trial")), items

    def _draft(self, order: Order, items: NDArray[np.int64], groups: NDArray[np.int64] | None, key: Key) -> list[Draft]:
        portions: list[NDArray[np.int64] | None] = [None]
        if self.drafted > 1:
            shuffled = key.at("portions").permutation(len(items))
            portions = [np.sort(portion) for portion in np.array_split(shuffled, self.drafted)]
        lanes = (key.at("trial", lane=lane) for lane in range(len(portions)))
        drawn = (
            draft(items, portion, self.batching, order, lane, slots=self.slots, bands=self.bands, groups=groups)
            for portion, lane in zip(portions, lanes, strict=True)
        )
        drafts = [each for each in drawn if each is not None]  # all: no number of steps is asked for
        return _fill_steps(drafts, self.batching, self.places, alone=self.alone) if self.places else drafts


def _standard_error(values: Sequence[float]) -> float:
    """The standard error of the mean of `values`. Plans depend on it, so it is rounded alike on every platform."""
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) * (value - mean) for value in values)
    return math.sqrt(squares / (len(values) - 1) / len(values))


def _fill_steps(drafts: list[Draft], batching: Batching, places: int, *, alone: int) -> list[Draft]:
    """The drafts with as many batches as fill whole steps, where the tail splits batches to fill them.

    Other tails leave batches out, or take some twice: those that are taken stay as they are.

    Args:
        drafts: One for each portion.
        batching: The choices.
        places: Batches that each portion has in a step.
        alone: Batches that will stand beside those of the draft, where there is but one.
    """
    if batching.deal.tail != "split":
        return drafts
    beside = alone if len(drafts) == 1 else 0
    wanted = count_wanted([len(each.offsets) - 1 + beside for each in drafts], places, "split") - beside
    return [cut_again(each, batching, wanted) for each in drafts]


def mixing_of(drafts: Sequence[Draft], items: NDArray[np.int64]) -> float:
    """What a plan of the drafts mixes: as `measure` says of one epoch."""
    drafts = [each for each in drafts if len(each.members)]
    if not drafts:
        return 1.0
    return mixing_of_batches(
        np.concatenate([items[each.members].sum(axis=1, dtype=np.int64) for each in drafts]),
        np.concatenate([longest_in_batches(each).sum(axis=1) for each in drafts]),
        np.concatenate([np.diff(each.offsets) for each in drafts]),
    )


def estimate_batches(items: NDArray[np.int64], batching: Batching, portions: int) -> float:
    """About how many batches a portion makes, were all sequences of the mean length."""
    mean = np.ceil(items.mean(axis=0)).astype(np.int64)
    sizes = batching.cut.batch_sizes(mean[None], cost=batching.cost, longest=longest_of(items))
    sizes = check_batch_sizes(sizes, 1) if is_custom(batching.cut) else sizes
    return len(items) / portions / float(sizes[0])


def _enough(count: int, portions: int, drafted: int, slots: int, batches: float) -> int:
    """How many of `count` sequences say what all of them pad."""
    count = max(1, count // portions * drafted) if drafted < portions else count
    if slots > 1:  # of batches that are not in steps, fewer sequences would pad otherwise
        return min(count, max(_LEAST_TRIED, int(_STEPS_TRIED * slots * count / batches)))
    return count


def _draw(items: NDArray[np.int64], places: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """As many of `places` at random, the same ones every time, and among them the longest item of each dimension."""
    if count >= len(places):
        return places
    drawn = Key(stage="trial", lane=1).permutation(len(places))[:count]
    return places[distinct(np.append(drawn, items[places].argmax(axis=0)))]


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

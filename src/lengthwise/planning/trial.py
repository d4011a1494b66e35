"""Trial: portions cut by keys of their own, to measure how much an order pads, and to find the noise that it needs.

asked for 10 %     noise of 60 frames on average     trials pad 8 %
                   noise of 77 frames                trials pad 10 %

Portions are filled to whole steps as plans are: 14 batches for steps of 4 become 16 smaller ones, which pad less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise._random import Key
from lengthwise.choices.arithmetic import count_multiple, distinct, longest_of, raise_counts
from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import coefficients_of, costs_alone
from lengthwise.choices.cut import Cut, OversizeError
from lengthwise.choices.deal import World
from lengthwise.choices.names import is_custom
from lengthwise.choices.order import Order, Shuffled, Sorted
from lengthwise.planning.custom import check_batch_sizes
from lengthwise.planning.epoch import complete_steps, count_steps, cut_portions, cut_to_steps
from lengthwise.planning.items import Items, kinds_of
from lengthwise.planning.portion import Portion, Settled, add_costs, cut_portion
from lengthwise.planning.steps import share_of_last

_MANY = 400  # batches: with fewer, chance moves the padding by a hundredth
_ENOUGH = 1_600  # batches of all trials
_MOST_TRIALS = 16
_STEPS_TRIED = 24  # more steps would pad the same
_LEAST_TRIED = 20_000  # sequences
_MOST_TRIED = 200_000  # sequences: more would pad the same
_LEAST_TRIALS = 4  # fewer do not show how far chance moves the padding
_PLAIN = 6.0  # standard errors: at this distance, further trials would not move the mean to the other side


class Work(NamedTuple):
    """The work of an epoch, in the unit of the cost that ranks share evenly.

    Attributes:
        needed: The work of the sequences without padding.
        done: The work of all ranks, padding included.
        paid: The work that all ranks could do in the same time: `done`, and waiting.
    """

    needed: float
    done: float
    paid: float

    @property
    def price(self) -> float:
        """The work paid for each unit that is needed, at least 1."""
        return self.paid / self.needed if self.needed else 1.0

    @property
    def waiting(self) -> float:
        """The share of the time of all ranks that they wait for the costliest of each step."""
        return 1.0 - self.done / self.paid if self.paid else 0.0


class Trials:
    """Portions of all items, or of a sample of them, cut by the same keys for every order.

    Args:
        items: The items that the order is fitted to.
        settled: The choices, but for the order.
        world: The ranks and micro-batches of a step.
        portions: The equal parts that the items are dealt into before they are sorted.
        alone: The giants that stand alone: batches of one item that join those of the portion.
    """

    def __init__(self, items: Items, settled: Settled, world: World, *, portions: int = 1, alone: int = 0) -> None:
        self.settled, self.world, self.portions = settled, world, portions
        in_steps = settled.batching.takes_random_steps
        # Only their number counts; of several portions, nobody knows which they join.
        self.alone: NDArray[np.int64] = np.empty(alone if portions == 1 else 0, np.int64)
        batches = portions * estimate_batches(items.lengths, settled.batching, portions)
        # A sample of the random steps pads as all of them do.
        steps = _STEPS_TRIED * world.slots * len(items.lengths) / batches
        self.sample: Items = _sample(items, max(_LEAST_TRIED, int(steps)) if in_steps else _MOST_TRIED)
        # Random steps are whole already. The last step of a sample of sequences is not that of all sequences.
        self.fills_steps: bool = not in_steps and len(self.sample.lengths) == len(items.lengths)
        self.few: bool = batches < _MANY  # chance moves their padding
        priced = coefficients_of(settled.batching.cost, items.lengths.shape[1]) is not None
        # 100 batches are cut 16 times: their padding is the mean of 1,600 batches.
        self.count: int = int(np.clip(_ENOUGH / batches, 1, _MOST_TRIALS if priced else 1))

    def work_of(self, order: Order) -> Work:
        """Returns the work of all trials by a fitted order."""
        works: list[Work] = []
        for number, portions in enumerate(self._try(order)):
            works.append(self._count_work(portions, Key(epoch=number, stage="trial")))
        return Work(*map(math.fsum, zip(*works, strict=True)))

    def padding_of(self, order: Order, *, against: float | None = None) -> float:
        """Returns the padding by a fitted order, as a share of the computed frames.

        With `against`, trials end once it is plain that the order pads more than that, or less.
        """
        shares: list[float] = []
        useful = computed = 0
        for portions in self._try(order):
            frames = count_frames(portions, self.sample.lengths, self.settled.batching.cut)
            useful, computed = useful + frames[0], computed + frames[1]
            shares.append(share_of_padding(*frames))
            if against is None or len(shares) < _LEAST_TRIALS:
                continue
            if abs(share_of_padding(useful, computed) - against) > _PLAIN * _standard_error(shares):
                break
        return share_of_padding(useful, computed)

    def _try(self, order: Order) -> Iterator[list[Portion]]:
        """Yields the portions of each trial."""
        # Sorted sequences pad the same in every trial: chance only orders those of equal length.
        fixed = type(order) is Sorted and self.portions == 1 and self.sample.lengths.shape[1] == 1
        for number in range(1 if fixed else self.count):
            yield self._cut(order, Key(seed=0, epoch=number, stage="trial"))

    def _cut(self, order: Order, key: Key) -> list[Portion]:
        members: list[NDArray[np.int64] | None] = [None]
        if self.portions > 1:
            shuffled = key.at("portions").permutation(len(self.sample.lengths))
            members = [np.sort(part) for part in np.array_split(shuffled, self.portions)]
        settled, portions = self.settled._replace(fitted_order=order), list[Portion]()
        for lane, part in enumerate(members):
            portion = cut_portion(self.sample, part, settled, key.at("trial", lane=lane), slots=self.world.slots)
            if portion is not None:  # always, because no number of steps is asked for
                portions.append(portion._replace(alone=self.alone))
        if not self.fills_steps:
            return portions
        steps = count_steps(portions, settled.batching.deal, self.world)
        return cut_to_steps(portions, settled.batching, self.world, steps)

    def _count_work(self, portions: list[Portion], key: Key) -> Work:
        batching, world = self.settled.batching, self.world
        steps = count_steps(portions, batching.deal, world)
        filled = cut_to_steps(portions, batching, world, steps)
        priced = [add_costs(portion, batching.cut, batching.cost, batching.balance) for portion in filled]
        places, keys = world.slots // len(portions), [key] * len(portions)
        batches, numbers = complete_steps(priced, places, steps, tail=batching.deal.tail, keys=keys)
        ranks = batches.balances[batching.deal.grid(numbers, batches.balances, world, key.at("deal"))].sum(axis=1)
        unpadded = costs_alone(batching.cost if batching.balance is None else batching.balance, self.sample.lengths)
        return Work(math.fsum(unpadded), math.fsum(ranks.flat), math.fsum(ranks.max(axis=1)) * world.world_size)


def _standard_error(values: Sequence[float]) -> float:
    """Returns the standard error of the mean. Plans depend on it, so it is rounded the same way on every platform."""
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) * (value - mean) for value in values)
    return math.sqrt(squares / (len(values) - 1) / len(values))


def share_of_padding(useful: int, computed: int) -> float:
    """Returns the share of `computed` frames that are not `useful`; 0 where nothing is computed."""
    return 1.0 - useful / computed if computed else 0.0


def count_frames(portions: Sequence[Portion], lengths: NDArray[np.int64], cut: Cut) -> tuple[int, int]:
    """Counts the frames of data in the portions, and the frames that are computed, including rows that fill up."""
    computed = useful = 0
    for portion in portions:
        if len(portion.members):
            rows = raise_counts(np.diff(portion.offsets), count_multiple(cut))
            longest = np.maximum.reduceat(portion.needed, portion.offsets[:-1])
            computed += int((rows * longest.sum(axis=1)).sum())
            useful += int(lengths[portion.members].sum())
    return useful, computed


def estimate_batches(lengths: NDArray[np.int64], batching: Batching, portions: int) -> float:
    """Estimates the batches of a portion, as if all sequences were of the mean length."""
    mean = np.ceil(lengths.mean(axis=0)).astype(np.int64)
    sizes = batching.cut.batch_sizes(mean[None], cost=batching.cost, longest=longest_of(lengths))
    sizes = check_batch_sizes(sizes, 1) if is_custom(batching.cut) else sizes
    return len(lengths) / portions / float(sizes[0])


def _sample(items: Items, most: int) -> Items:
    """Draws at most `most` items, the same ones every time, and adds the longest of each dimension."""
    if len(items.lengths) <= most:
        return items
    sample = Key(stage="trial", lane=1).permutation(len(items.lengths))[:most]
    return items.select(distinct(np.append(sample, items.lengths.argmax(axis=0))))


_FIRST_ATTEMPT = 2**40  # the number of a trial epoch's attempt: no epoch of a plan is tried so often


def try_epoch(items: Items, settled: Settled, world: World, epoch: int) -> float:
    """Returns the steps that an epoch fills. The last one counts by its share: 43.5 is half of a 44th step."""
    kinds, batching = kinds_of(items.lengths, settled.batching), settled.batching
    with items.naming_sequences():
        portions = cut_portions(items, kinds, settled, world, Key(epoch=epoch), attempt=_FIRST_ATTEMPT)
    if not portions or not len(items.lengths):
        return 0.0
    if batching.takes_random_steps and batching.deal.tail != "drop":  # which has left whole steps
        # Steps of 9, 9 and 2 sequences are 2.22 steps.
        counts = np.diff(np.append(portions[0].offsets[: -1 : world.slots], len(portions[0].members)))
        return len(counts) - 1 + share_of_last(counts)
    return max(portion.batch_count for portion in portions) / (world.slots // len(portions))


_NEAR_OF_MANY, _NEAR_OF_FEW = 5e-4, 2e-3  # distances from the share asked for: chance moves plans by more
_MOST_GUESSES = 32
_FINEST = 0.01  # two scales that differ by a hundredth pad alike but for chance
_BY_ODDS = 5  # guesses by the odds alone
_FURTHEST = 2.0**16  # times the first guess: beyond, the noise changes nothing
_LEAST = 1e-6  # of padding


class Fit(NamedTuple):
    """A fitted order, and the padding that trials by it have on average, 0..1; None without trials."""

    order: Order
    padding: float | None = None


def fit_noise(padding: float, add_noise: Callable[[float], Order], guess: float, trials: Trials) -> Fit:
    """Finds the scale of the noise by which trials have the `padding`.

    If even random batches pad less, the fit is `Shuffled`. If even sorted ones pad more, it is `Sorted`. Each of the
    two is measured only if a scale pads too little or too much.

    Args:
        padding: The padding that was asked for, 0..1.
        add_noise: Makes the order whose noise has this scale.
        guess: The first scale.
        trials: Measure orders.
    """
    tolerance = _NEAR_OF_FEW if trials.few else max(_NEAR_OF_MANY, padding / 200.0)
    try:
        fits = _seek(padding, tolerance, add_noise, guess, partial(trials.padding_of, against=padding))
    except OversizeError:  # the plan raises the same error, and names the sequence
        return Fit(add_noise(guess))
    nearest = min(fits, key=lambda fit: abs((fit.padding or 0.0) - padding))
    # If there are so many, its trials may have ended early. Warnings name the padding of all trials.
    return Fit(nearest.order, trials.padding_of(nearest.order)) if trials.count > _LEAST_TRIALS else nearest


def _seek(
    goal: float, tolerance: float, add_noise: Callable[[float], Order], guess: float, measure: Callable[[Order], float]
) -> list[Fit]:
    """Measures scale after scale until one pads the `goal`, give or take `tolerance`; returns all fits.

    The odds of padding, padding / (1 - padding), grow about as the scale does. If 10 % were asked for and trials have
    8 %, the next scale is 1.28 times as large. It always lies between the scales that had too little and too much.
    After the first scale with too little padding, random batches are measured; after the first with too much, sorted
    batches. If even random batches pad too little, or even sorted ones too much, they are the only fit.
    """
    fits: list[Fit] = []
    low, high, scale = guess / _FURTHEST, guess * _FURTHEST, guess
    sorted_padding: float | None = None  # once it is measured
    random_padding: float | None = None

    def odds_of(value: float) -> float:
        return max(value - (sorted_padding or 0.0), _LEAST) / max((random_padding or 1.0) - value, _LEAST)

    for _ in range(_MOST_GUESSES):
        order = add_noise(scale)
        fits.append(Fit(order, padding := measure(order)))
        too_little = padding < goal
        if abs(padding - goal) <= tolerance or high <= low * (1.0 + _FINEST):
            break
        if too_little and random_padding is None:
            random_padding = measure(Shuffled())
            fits.append(Fit(Shuffled(), random_padding))
            if random_padding <= goal:
                return fits[-1:]
        elif not too_little and sorted_padding is None:
            sorted_padding = measure(Sorted())
            fits.append(Fit(Sorted(), sorted_padding))
            if sorted_padding >= goal:
                return fits[-1:]
        low, high = (scale, high) if too_little else (low, scale)
        scale *= odds_of(goal) / odds_of(padding)
        # Padding may jump at a scale, as with two lengths far apart. The odds then mislead, and halving finds the jump.
        if (len(fits) > _BY_ODDS and len(fits) % 2) or not low * (1.0 + _FINEST) < scale < high / (1.0 + _FINEST):
            scale = math.sqrt(low * high)
    return fits

"""Deal: batches go to the ranks, step by step, the same number to each.

    costs    [batches]                       what each batch costs
    numbers  [portions, each]                the batches that take part, portion by portion; some may stand twice
    grid     [steps, micro_batches, ranks]   batch numbers

A step is `world.slots` batches. Which batches share a step depends on that number only, so that the same steps are
taken on another number of ranks that divides it. `Portions` are the exception.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lengthwise import _random, checks
from lengthwise._random import Key
from lengthwise.choices.cut import Budget, Cut, DynamicSize, FixedSize
from lengthwise.choices.rows import Rows

_MAX_SLOTS = 2**20  # batches in a step: more is a mistake, and the grid of its plan would fill the memory


class World(NamedTuple):
    """What a step is shared out to: `world_size` ranks, and on each `micro_batches` batches, one after another.

    Attributes:
        world_size: How many ranks there are.
        micro_batches: How many batches each of them takes in one step.

    >>> World(8, 2).slots
    16
    """

    world_size: int
    micro_batches: int

    @property
    def slots(self) -> int:
        """Batches in a step."""
        return self.world_size * self.micro_batches


def check_world(world_size: object, micro_batches: object = 1, *, remedy: str = "") -> World:
    """Returns the world of a run, and refuses numbers that no run has.

    Args:
        world_size: Ranks.
        micro_batches: Batches that each rank takes in a step.
        remedy: What the error advises; by default, to give the right number.

    >>> check_world(8, 2).slots
    16
    """
    ranks = checks.check_whole("world_size", world_size, minimum=1, remedy=remedy or "Give the number of ranks.")
    fix = remedy or "Give the batches a rank takes in a step."
    world = World(ranks, checks.check_whole("micro_batches", micro_batches, minimum=1, remedy=fix))
    if world.slots > _MAX_SLOTS:
        rule = f"at most {_MAX_SLOTS} batches in a step"
        fix = remedy or "Check world_size and micro_batches."
        raise checks.value_error("world_size x micro_batches", rule, world.slots, fix)
    return world


def order_by(costs: NDArray[np.float64], key: Key) -> NDArray[np.int64]:
    """Puts batches in order of cost, equals at random: [batches], positions in `costs`.

    If each rank takes one batch of a step, no other steps wait less: the costliest batches share one step, so that the
    others need not wait for them. Of the rest the costliest share the next step, and so on.
    """
    shuffled = key.permutation(len(costs))
    return shuffled[_random.argsort(costs[shuffled])]


TAILS = ("split", "repeat", "drop")


class Deal(Protocol):
    """What every deal does."""

    @property
    def tail(self) -> str:
        """What happens where the batches do not fill the last step.

        "split" the largest batches until they do; "repeat" the cheapest, to which `loss_scales` gives 0 the second
        time; or "drop" some, other ones each epoch. Where every batch is down to one sequence, "split" repeats too.
        """
        ...

    def portions(self, count: int, world: World, key: Key) -> list[NDArray[np.int64]]:
        """The sequence numbers 0..count-1 in the portions that are to be batched apart: one portion, or one a rank."""
        ...

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        """Shares out batches to the ranks.

        Args:
            numbers: [portions, each] int64, the batches that take part, which fill whole steps; some may stand twice.
            costs: [batches] float64, what each batch costs, in the unit of the budget.
            world: What a step is shared out to.
            key: The source of all chance, for this epoch.

        Returns:
            [steps, micro_batches, ranks] int64: all of `numbers`, each as often as it stands there.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class _Whole:
    """No portions: all sequences are batched together."""

    tail: str = "split"

    def __post_init__(self) -> None:
        checks.check_choice("tail", self.tail, TAILS)

    def portions(self, count: int, world: World, key: Key) -> list[NDArray[np.int64]]:
        del world, key
        return [np.arange(count)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Balanced(_Whole):
    """Batches of similar cost share a step, so that no rank waits long for another.

    If each rank takes one batch of a step, no deal waits less. Steps of similar cost are steps of similar lengths, so
    they mix little. `RandomSteps` mix and wait little.

    Args:
        tail: What becomes of a last step that is not full: "split", "repeat" or "drop"; see `Deal`.

    """

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        # Costs [9, 1, 8, 2] in steps of 2: the batches 1 and 3 share a step, and 2 and 0 do.
        order = order_by(costs[numbers[0]], key)
        return share_out(_in_order(numbers[0, order].reshape(-1, world.slots)), costs, world.world_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixed(_Whole):
    """Random batches share a step: representative steps, at the price of waiting where batches differ in cost.

    Args:
        tail: What becomes of a last step that is not full: "split", "repeat" or "drop"; see `Deal`.
    """

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        shuffled = numbers[0, key.permutation(numbers.size)]
        return share_out(_in_order(shuffled.reshape(-1, world.slots)), costs, world.world_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class InTurn(_Whole):
    """Batches are dealt in the order they were cut, one to each rank in turn, as most systems do.

    Args:
        tail: What becomes of a last step that is not full: "split", "repeat" or "drop"; see `Deal`.
    """

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        del costs, key
        # Batches 0 to 3 on 2 ranks with 2 micro-batches: rank 0 takes 0 and then 2, rank 1 takes 1 and then 3.
        return numbers.reshape(-1, world.micro_batches, world.world_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stratified(_Whole):
    """Each step takes one batch of every stratum of lengths: short, middle and long ones in the same shares always.

    The batches, in the order they were cut, are divided into as many equal strata as a step has batches. A step takes
    one of each at random. With an order that sorts, as `MaxEntropy` does, the mean length of a step then varies less
    than with `Mixed`; from about 16 batches a step on, it varies less than that of random samples. With an order that
    does not sort, steps are those of `Mixed`.

    For cuts by a budget, whose batches cost about the same. With `FixedSize`, ranks wait for the batch of the longest.

    Args:
        tail: What becomes of a last step that is not full: "split", "repeat" or "drop"; see `Deal`.

    References:
        Stratified sampling with proportional allocation: Cochran 1977, "Sampling techniques", chapter 5.
    """

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        # For 6 batches and 2 places, [[0, 1, 2], [3, 4, 5]] is shuffled row by row, and a step is a column.
        strata = numbers.reshape(world.slots, -1)
        stratum_of = np.repeat(np.arange(world.slots), strata.shape[1])
        shuffled = key.permutation(numbers.size)
        rows = _random.sort_by(shuffled, stratum_of)
        steps = numbers.reshape(-1)[rows].reshape(strata.shape).T
        return share_out(_in_order(np.ascontiguousarray(steps)), costs, world.world_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomSteps(_Whole):
    """Each step is a random sample of the sequences, which is then sorted and cut into the batches of the step.

    The gradient sees whole steps, and these are as good as with random batches. The batches are nearly sorted, so that
    they pad little. The more batches a step has, the less they pad. Each costs about the same, so that no rank waits
    long.

    The order is `Shuffled`, unless another is given: steps are then cut from that. `MaxEntropy` of a padding or a
    mixing is refused, which asks for batches that are not sorted within their step.

    Steps are cut by `Padded` or `Quadratic`. A cost of your own is refused: with it the default deal is `Stratified`.

    Under `Rows(4_096, rows=8)` a step takes the next 8 packed rows for each of its batches, which share them so that
    they cost the same, by a cost that counts attention. The rows are those of any other deal. With 8 rows in a batch or
    more, ranks wait little. With one row there is nothing to share, and they wait as with `Mixed`.

    Args:
        tail: What becomes of the last step, which the sequences seldom fill. With "split" and "repeat" it has as many
            batches, but smaller ones; "drop" leaves it out. If there are fewer sequences than batches, some are taken
            again.
        even: Under `FixedSize(16)` a step holds 16 sequences for each batch. They are shared out so that its batches
            cost the same: many short ones in one, few long ones in another. False keeps 16 in each, and lets ranks
            wait. Under a budget batches always cost the same.
    """

    even: bool = True

    def __post_init__(self) -> None:
        checks.check_choice("tail", self.tail, TAILS)
        checks.check_flag("even", self.even)

    def check_cut(self, cut: Cut) -> None:
        """Refuses a cut by which no step can be formed: one of the user's, or one that overshoots its capacity."""
        known = type(cut) in (FixedSize, Budget, Rows) or (type(cut) is DynamicSize and cut.rule == "hard")
        if not known:
            rule = 'a FixedSize, a Budget, a Rows, or a DynamicSize of rule "hard" beside RandomSteps'
            raise checks.value_error("cut", rule, cut, "Take one of them, or another deal, as Balanced() or Mixed().")
        if isinstance(cut, FixedSize) and cut.drop_incomplete:
            rule, remedy = "False beside RandomSteps, which drop whole steps", "Choose RandomSteps(tail='drop')."
            raise checks.value_error("drop_incomplete", rule, True, remedy)
        if not self.even and not isinstance(cut, FixedSize):
            rule = "True beside a budget or rows: only the batches of a FixedSize may be told to hold as many sequences"
            raise checks.value_error("even", rule, False, "Leave it out.")

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        """The batches as they come, a step at a time: `make_plan` has formed the steps."""
        del key
        return share_out(numbers.reshape(-1, world.slots), costs, world.world_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class Portions:
    """Every epoch the sequences are dealt at random into one portion for each rank, which batches its own.

    Ranks take their batches in order of cost, so that those of one step cost about the same; the arrangement then moves
    whole steps. The steps change with the world size. A rank with fewer batches than another splits its largest.

    References:
        Khomenko et al. 2016, section III.B, step 3.
    """

    @property
    def tail(self) -> str:
        return "split"

    def portions(self, count: int, world: World, key: Key) -> list[NDArray[np.int64]]:
        shuffled = key.permutation(count)
        # Sorted, because all that is drawn here is who has which sequence: the order draws by a key of its own.
        return [np.sort(portion) for portion in np.array_split(shuffled, world.world_size)]

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        del key
        # Step s takes the s-th cheapest batch of every rank: [0, 1] and [2, 3] make the steps (0, 2) and (1, 3).
        by_cost = np.take_along_axis(numbers, np.argsort(costs[numbers], axis=1, kind="stable"), axis=1)
        return by_cost.reshape(world.world_size, -1, world.micro_batches).transpose(1, 2, 0)


def share_out(steps: NDArray[np.int64], costs: NDArray[np.float64], world_size: int) -> NDArray[np.int64]:
    """Gives each rank its share of every step's batches, of about equal cost in sum.

    The batches of a step are laid out by falling cost in rows of `world_size`, every other row backwards.

    Args:
        steps: [steps, slots] batch numbers.

    Returns:
        [steps, micro_batches, world_size] batch numbers.

    >>> share_out(np.array([[0, 1, 2, 3]]), np.array([4.0, 3.0, 2.0, 1.0]), 2)
    array([[[0, 1],
            [3, 2]]])
    """
    ranked = np.take_along_axis(steps, np.argsort(-costs[steps], axis=1, kind="stable"), axis=1)
    grid = ranked.reshape(len(steps), steps.shape[1] // world_size, world_size)
    grid[:, 1::2] = grid[:, 1::2, ::-1].copy()
    return grid


def _in_order(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Steps by their first batch, so that an arrangement "in order" keeps the order of the cut."""
    return steps[_random.argsort(steps.min(axis=1))]

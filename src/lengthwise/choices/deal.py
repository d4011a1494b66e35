"""Deal: gives batches to steps and ranks, the same number to each rank.

    costs    [batches]                       the cost of each batch
    numbers  [portions, batches / portions]  the batches to deal, portion by portion; some may occur twice
    grid     [steps, micro_batches, ranks]   batch numbers

A step is `world.slots` batches. Which batches share a step depends on this number, but not on the number of ranks. So
any number of ranks that divides it takes the same steps. `Portions` are the exception.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels, _random, checks
from lengthwise._random import Key
from lengthwise.choices.cut import Cut, FixedSize, is_hard
from lengthwise.choices.rows import Rows

_MAX_SLOTS = 2**20  # batches in a step: more is a mistake, and the grid of its plan would fill the memory


class World(NamedTuple):
    """The ranks that share a step, and the batches that each of them takes in it, one after another.

    Attributes:
        world_size: The number of ranks.
        micro_batches: The number of batches that each rank takes in a step.

    >>> World(8, 2).slots
    16
    """

    world_size: int
    micro_batches: int

    @property
    def slots(self) -> int:
        """The number of batches in a step."""
        return self.world_size * self.micro_batches


def check_world(world_size: object, micro_batches: object = 1, *, remedy: str = "") -> World:
    """Returns the world of a run, and refuses numbers that no run has.

    Args:
        world_size: The number of ranks.
        micro_batches: The number of batches that each rank takes in a step.
        remedy: The advice of the error; by default, to give the right number.

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


def has_equal_epochs(cut: Cut) -> bool:
    """Returns True if every epoch of a run has the same number of steps by this cut.

    `DynamicSize(rule="paper")`, which overshoots, and the cuts of users promise no number.
    """
    return type(cut) in (FixedSize, Rows) or is_hard(cut)


TAILS = ("split", "repeat", "drop")


class Deal(Protocol):
    """The form of every deal.

    >>> import lengthwise as lw
    >>> class ByNumber:
    ...     tail = "split"
    ...     def portions(self, count, world, key):
    ...         return [np.arange(count)]
    ...     def grid(self, numbers, costs, world, key):
    ...         return numbers.reshape(-1, world.micro_batches, world.world_size)
    >>> lw.make_plan([5, 9, 2, 4], lw.Batching(cut=lw.FixedSize(1), deal=ByNumber()), world_size=2).grid.shape
    (2, 1, 2)
    """

    @property
    def tail(self) -> str:
        """The policy for batches that do not fill the last step.

        "split" makes batches smaller, so that they fill all steps. "repeat" repeats the cheapest, and `loss_scales`
        gives the repeats a scale of 0. "drop" leaves out some batches, at random in each epoch. If every batch has one
        sequence, "split" repeats too.
        """
        ...

    def portions(self, count: int, world: World, key: Key) -> list[NDArray[np.int64]]:
        """Divides the sequences 0..count-1 into portions that are batched separately: one portion, or one a rank."""
        ...

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        """Shares out batches to the ranks.

        Args:
            numbers: [portions, batches / portions] int64, the batches to deal, which fill whole steps; some may occur
                twice.
            costs: [batches] float64, the cost of each batch, by the `balance` of the batching, or else by its `cost`.
            world: The ranks that share a step.
            key: The key of all random numbers, for this epoch.

        Returns:
            [steps, micro_batches, ranks] int64: all of `numbers`, each as often as it occurs there.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class _OnePortion:
    """A deal without portions: all sequences are batched together."""

    tail: str = "split"

    def __post_init__(self) -> None:
        checks.check_choice("tail", self.tail, TAILS)

    def portions(self, count: int, world: World, key: Key) -> list[NDArray[np.int64]]:
        return [np.arange(count)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Balanced(_OnePortion):
    """Batches of similar cost share a step, so that no rank waits long for another.

    If each rank takes one batch of a step, no other deal of the same batches makes ranks wait less. Batches of similar
    cost have similar lengths, so steps mix little. With `RandomSteps`, steps mix well and ranks wait little.

    Args:
        tail: The policy for a last step that is not full: "split", "repeat" or "drop"; see `Deal`.

    >>> costs = np.array([9.0, 1.0, 8.0, 2.0])
    >>> grid = Balanced().grid(np.array([[0, 1, 2, 3]]), costs, World(2, 1), Key())
    >>> costs[grid].tolist()  # two steps of two ranks
    [[[9.0, 8.0]], [[1.0, 2.0]]]
    """

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        # Costs [9, 1, 8, 2] in steps of 2: the batches 1 and 3 share a step, and 2 and 0 do.
        shuffled = numbers[0, key.permutation(numbers.size)]
        # The cheapest batches share a step, the next cheapest another, and so on. No other deal makes ranks wait less.
        order = shuffled[_random.argsort(costs[shuffled])]
        return share_out(_in_order(order.reshape(-1, world.slots)), costs, world.world_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixed(_OnePortion):
    """Random batches share a step: steps are representative, but ranks wait if batches differ in cost.

    Args:
        tail: The policy for a last step that is not full: "split", "repeat" or "drop"; see `Deal`.

    >>> Mixed().grid(np.array([[0, 1, 2, 3]]), np.ones(4), World(2, 1), Key(seed=2)).tolist()  # two steps of two ranks
    [[[0, 3]], [[2, 1]]]
    """

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        shuffled = numbers[0, key.permutation(numbers.size)]
        return share_out(_in_order(shuffled.reshape(-1, world.slots)), costs, world.world_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class InTurn(_OnePortion):
    """Batches are dealt in the order they were cut, one to each rank, as most systems do.

    Args:
        tail: The policy for a last step that is not full: "split", "repeat" or "drop"; see `Deal`.

    >>> InTurn().grid(np.array([[0, 1, 2, 3]]), np.ones(4), World(2, 1), Key()).tolist()  # two steps of two ranks
    [[[0, 1]], [[2, 3]]]
    """

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        # Batches 0 to 3 on 2 ranks with 2 micro-batches: rank 0 takes 0 and then 2, rank 1 takes 1 and then 3.
        return numbers.reshape(-1, world.micro_batches, world.world_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stratified(_OnePortion):
    """Each step takes one batch of every stratum of lengths, so that all steps have the same shares of short and long.

    The batches, in the order they were cut, are divided into equal strata, one for each batch of a step. A step takes
    one of each at random. If the order sorts, as `MaxEntropy` does, the mean length of a step varies less than with
    `Mixed`. With 16 batches a step or more, it varies less than in random samples. If the order does not sort,
    steps are as with `Mixed`.

    Use it with a budget: batches then cost about the same. With `FixedSize`, ranks wait for the longest batch.

    Args:
        tail: The policy for a last step that is not full: "split", "repeat" or "drop"; see `Deal`.

    References:
        Stratified sampling with proportional allocation: Cochran 1977, "Sampling techniques", chapter 5.

    >>> grid = Stratified().grid(np.array([[0, 1, 2, 3]]), np.ones(4), World(2, 1), Key())
    >>> grid.tolist()  # each of two steps has one of 0 and 1, and one of 2 and 3
    [[[0, 2]], [[3, 1]]]
    """

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        # For 6 batches in steps of 2, [[0, 1, 2], [3, 4, 5]] is shuffled row by row, and a step is a column.
        strata = numbers.reshape(world.slots, -1)
        stratum_of = np.repeat(np.arange(world.slots), strata.shape[1])
        shuffled = key.permutation(numbers.size)
        rows = _random.sort_by(shuffled, stratum_of)
        steps = numbers.reshape(-1)[rows].reshape(strata.shape).T
        return share_out(_in_order(np.ascontiguousarray(steps)), costs, world.world_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomSteps(_OnePortion):
    """Each step is a random sample of the sequences, which is then sorted and cut into the batches of the step.

    The gradient sees whole steps, and these are random, as with random batches. The batches are nearly sorted, so that
    they pad little: the more batches a step has, the less. All batches cost about the same, so that no rank waits long.

    The default order is `Shuffled()`. `MaxEntropy(padding=...)` is refused, because each step is sorted.

    The cost must be `Padded()` or a `Quadratic`, unless the cut packs rows.

    Under `Rows(4_096, rows=8)` a step takes the next 8 packed rows for each of its batches. The rows are the same as
    with any other deal. They are shared out so that the batches cost about the same, if the cost counts attention. With
    8 rows in a batch or more, ranks wait little. With one row there is nothing to share, and ranks wait as with
    `Mixed`.

    Args:
        tail: The policy for the last step, which the sequences seldom fill. "split" and "repeat" make all batches a
            little smaller, so that the last step is about as full as the others. But with packed rows, only the last
            steps hold fewer rows. "drop" leaves the last step out. If there are fewer sequences than batches, some are
            taken again.
        even: Under `FixedSize(16)` a step holds 16 sequences for each batch. They are shared out so that the batches
            cost about the same: many short sequences in one, few long ones in another. False keeps 16 in each, and
            ranks wait. Under a budget, batches always cost about the same.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), deal=RandomSteps())
    >>> lengths = np.array([5, 9, 2, 4])
    >>> [lengths[batch].tolist() for batch in lw.make_plan(lengths, batching, micro_batches=2).batches()]
    [[5, 4, 2], [9]]
    """

    even: bool = True

    def __post_init__(self) -> None:
        checks.check_choice("tail", self.tail, TAILS)
        checks.check_flag("even", self.even)

    def check_cut(self, cut: Cut) -> None:
        """Refuses a cut that forms no steps: one of the user's, or one that overshoots its capacity."""
        if not has_equal_epochs(cut):
            rule = 'a FixedSize, a Budget, a Rows, or a DynamicSize of rule "hard" beside RandomSteps'
            raise checks.value_error("cut", rule, cut, "Take one of them, or another deal: Balanced() or Mixed().")
        if isinstance(cut, FixedSize) and cut.drop_incomplete:
            rule, remedy = "False beside RandomSteps, which drop whole steps", "Choose RandomSteps(tail='drop')."
            raise checks.value_error("drop_incomplete", rule, True, remedy)
        if not self.even and not isinstance(cut, FixedSize):
            rule = "True beside a budget or rows: only the batches of a FixedSize may all hold the same count"
            raise checks.value_error("even", rule, False, "Leave it out.")

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        """Deals the batches in their order, step by step: `make_plan` has formed the steps."""
        return share_out(numbers.reshape(-1, world.slots), costs, world.world_size)


@dataclass(frozen=True, kw_only=True, slots=True)
class Portions:
    """In every epoch each rank gets a random portion of the sequences, and makes its own batches.

    Ranks take their batches in order of cost, so that those of one step cost about the same. The arrangement then moves
    whole steps. The steps change with the world size. A rank with too few batches makes its batches smaller.

    References:
        Khomenko et al. 2016, section III.B, step 3.

    >>> [portion.tolist() for portion in Portions().portions(5, World(2, 1), Key())]
    [[0, 2, 3], [1, 4]]
    """

    tail = "split"

    def portions(self, count: int, world: World, key: Key) -> list[NDArray[np.int64]]:
        shuffled = key.permutation(count)
        # Sort each portion: this draw decides only the rank of each sequence, and the order has a key of its own.
        return [np.sort(portion) for portion in np.array_split(shuffled, world.world_size)]

    def grid(self, numbers: NDArray[np.int64], costs: NDArray[np.float64], world: World, key: Key) -> NDArray[np.int64]:
        # Step s takes the s-th cheapest batch of every rank: [0, 1] and [2, 3] make the steps (0, 2) and (1, 3).
        by_cost = np.take_along_axis(numbers, np.argsort(costs[numbers], axis=1, kind="stable"), axis=1)
        return by_cost.reshape(world.world_size, -1, world.micro_batches).transpose(1, 2, 0)


def share_out(steps: NDArray[np.int64], costs: NDArray[np.float64], world_size: int) -> NDArray[np.int64]:
    """Shares out the batches of every step to the ranks, so that the sums of their costs are about equal.

    If a rank takes two, the costliest batch goes with the cheapest, the next with the next: no other pairs make ranks
    wait less. If it takes more, each batch, from the costliest, goes to the rank with the least cost so far. Then ranks
    swap batches, as long as the costliest rank gets cheaper. Ranks take the parts of a step in turn: otherwise the
    first would always have the longest sequences.

    Args:
        steps: [steps, slots] batch numbers.

    Returns:
        [steps, micro_batches, world_size] batch numbers; each rank takes its batches from the costliest.

    >>> share_out(np.array([[0, 1, 2, 3]]), np.array([4.0, 3.0, 2.0, 1.0]), 2)
    array([[[0, 1],
            [3, 2]]])
    >>> share_out(np.arange(6)[None], np.array([9.0, 5.0, 4.0, 3.0, 2.0, 1.0]), 2)  # 9 + 2 + 1 and 5 + 4 + 3
    array([[[0, 1],
            [4, 2],
            [5, 3]]])
    """
    ranked = np.take_along_axis(steps, np.argsort(-costs[steps], axis=1, kind="stable"), axis=1)
    count, slots = ranked.shape
    micro_batches = slots // world_size
    if world_size == 1 or micro_batches <= 2:
        grid = ranked.reshape(count, micro_batches, world_size)
        grid[:, 1::2] = grid[:, 1::2, ::-1].copy()
    else:
        ranks = np.empty(ranked.size, np.int64)
        places, of_step = np.arange(ranked.size), np.full(count, slots)
        _kernels.share_rows(costs[ranked].reshape(-1), places, of_step, world_size, micro_batches, ranks)
        by_rank = np.argsort(ranks.reshape(count, slots), axis=1, kind="stable")
        grid = np.take_along_axis(ranked, by_rank, axis=1).reshape(count, world_size, micro_batches).swapaxes(1, 2)
    return np.take_along_axis(grid, (np.arange(world_size) + np.arange(count)[:, None, None]) % world_size, axis=2)


def _in_order(steps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sorts steps by their least batch number, so that the arrangement `InOrder` keeps the order of the cut."""
    return steps[_random.argsort(steps.min(axis=1))]

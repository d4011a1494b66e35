"""Arrange: puts the steps of an epoch in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise._random import Key


class Arrangement(Protocol):
    """The form of every arrangement: a permutation of the steps.

    >>> import lengthwise as lw
    >>> class LongestFirst:
    ...     def __call__(self, costs, lengths, key):
    ...         return np.argsort(-lengths, kind="stable")
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=LongestFirst())
    >>> [batch.tolist() for batch in lw.make_plan([5, 9, 2, 4], batching).batches()]
    [[0, 1], [2, 3]]
    """

    def __call__(self, costs: NDArray[np.float64], lengths: NDArray[np.float64], key: Key) -> NDArray[np.int64]:
        """Puts steps in order.

        Args:
            costs: [steps] float64, the cost of the costliest batch of each step, in the unit of the budget.
            lengths: [steps] float64, the mean length of the batches of each step. A batch counts with the longest
                length of its bucket, or without buckets with its padded length.
            key: The key of all random numbers, for this epoch.

        Returns:
            [steps] int64, a permutation of 0..steps-1.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class InOrder:
    """The order in which the batches were cut: sorted batches stay sorted.

    >>> InOrder()(np.array([5.0, 9.0, 2.0]), np.ones(3), Key())
    array([0, 1, 2])
    """

    def __call__(self, costs: NDArray[np.float64], lengths: NDArray[np.float64], key: Key) -> NDArray[np.int64]:
        return np.arange(len(costs))


@dataclass(frozen=True, kw_only=True, slots=True)
class ShuffledSteps:
    """Random order of the steps.

    References:
        Batch randomisation (BR) in Ge et al. 2021, section 5.

    >>> ShuffledSteps()(np.array([5.0, 9.0, 2.0]), np.ones(3), Key(seed=1))
    array([1, 0, 2])
    """

    def __call__(self, costs: NDArray[np.float64], lengths: NDArray[np.float64], key: Key) -> NDArray[np.int64]:
        return key.permutation(len(costs))


@dataclass(frozen=True, kw_only=True, slots=True)
class ShortestFirst:
    """Steps by bucket, the shortest first, and in random order within a bucket. Without buckets, steps by length.

    Args:
        epochs: Epochs before this number are sorted; later ones have a random order. None sorts all epochs. `epochs=1`
            is the SortaGrad of Amodei et al. Random steps are all about equally long: to sort, take `deal=Balanced()`.
        reverse: Puts the longest first.

    References:
        Khomenko et al. 2016, section IV.A: "first fed with shorter sequences". Amodei et al. 2016, "Deep Speech 2:
        end-to-end speech recognition in English and Mandarin", section 3.3.

    >>> ShortestFirst()(np.ones(3), np.array([5.0, 9.0, 2.0]), Key())
    array([2, 0, 1])
    """

    epochs: int | None = None
    reverse: bool = False

    def __post_init__(self) -> None:
        checks.check_flag("reverse", self.reverse)
        remedy = "Give the number of epochs whose steps are sorted, such as 1, or None for all."
        checks.keep_whole(self, "epochs", remedy=remedy, optional=True)

    def __call__(self, costs: NDArray[np.float64], lengths: NDArray[np.float64], key: Key) -> NDArray[np.int64]:
        # The steps of one bucket are equally long. The sort is stable, so they keep the random order.
        shuffled = key.permutation(len(lengths))
        if self.epochs is not None and key.epoch >= self.epochs:
            return shuffled
        return shuffled[np.argsort(-lengths[shuffled] if self.reverse else lengths[shuffled], kind="stable")]


@dataclass(frozen=True, kw_only=True, slots=True)
class CostliestFirst:
    """The costliest steps first, so that a run that lacks memory fails in its first step; the others in random order.

    Args:
        steps: The number of costly steps to put first. None sorts all steps by falling cost.

    >>> CostliestFirst(steps=None)(np.array([5.0, 9.0, 2.0]), np.ones(3), Key())
    array([1, 0, 2])
    """

    steps: int | None = 1

    def __post_init__(self) -> None:
        remedy = "Give how many costly steps come first, or None for all."
        checks.keep_whole(self, "steps", remedy=remedy, optional=True)

    def __call__(self, costs: NDArray[np.float64], lengths: NDArray[np.float64], key: Key) -> NDArray[np.int64]:
        shuffled = key.permutation(len(costs))
        # The sort is stable: of several costliest steps, a random one leads.
        leading = shuffled[np.argsort(-costs[shuffled], kind="stable")[: self.steps]]
        return np.concatenate([leading, shuffled[~np.isin(shuffled, leading)]])


def arrange_of(arrange: Arrangement, epoch: int) -> Arrangement:
    """Returns the arrangement for a window of `epoch`. It cannot read the epoch from the window's key.

    >>> arrange_of(ShortestFirst(epochs=2), 1), arrange_of(ShortestFirst(epochs=2), 2)
    (ShortestFirst(epochs=None, reverse=False), ShuffledSteps())
    """
    if not isinstance(arrange, ShortestFirst) or arrange.epochs is None:
        return arrange
    return ShuffledSteps() if epoch >= arrange.epochs else replace(arrange, epochs=None)

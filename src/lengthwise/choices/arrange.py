"""Arrange: in which order the steps are taken.

    costs    [steps]   the cost of the costliest batch of each step
    lengths  [steps]   how long the batches of each step are: with buckets, the longest length of the batch's bucket;
                       without, what the batch is padded to; the mean over the step

Each choice gives a permutation of the steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise._random import Key


class Arrangement(Protocol):
    """What every arrangement does."""

    def __call__(self, costs: NDArray[np.float64], lengths: NDArray[np.float64], key: Key) -> NDArray[np.int64]:
        """Puts steps in order.

        Args:
            costs: [steps] float64, the cost of the costliest batch of each step, in the unit of the budget.
            lengths: [steps] float64, how long the batches of each step are, in the unit of the lengths: the mean over
                the step of the longest length of each batch's bucket, or, without buckets, of its padded length.
            key: The source of all chance, for this epoch.

        Returns:
            [steps] int64, a permutation of 0..steps-1.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class InOrder:
    """In the order in which the batches were cut: sorted batches stay sorted."""

    def __call__(self, costs: NDArray[np.float64], lengths: NDArray[np.float64], key: Key) -> NDArray[np.int64]:
        del lengths, key
        return np.arange(len(costs))


@dataclass(frozen=True, kw_only=True, slots=True)
class ShuffledSteps:
    """Random order of the steps.

    References:
        Batch randomisation (BR) in Ge et al. 2021, section 5.
    """

    def __call__(self, costs: NDArray[np.float64], lengths: NDArray[np.float64], key: Key) -> NDArray[np.int64]:
        del lengths
        return key.permutation(len(costs))


@dataclass(frozen=True, kw_only=True, slots=True)
class ShortestFirst:
    """The shortest bucket first, its steps in random order, then the next; without buckets, by the length of the step.

    Args:
        epochs: In so many epochs, from the first on; later ones take their steps in random order. None for all epochs.
            `epochs=1` is what Amodei et al. call SortaGrad. It sorts whole steps, and random steps are all about as
            long: give it `deal=Balanced()`.
        reverse: The longest first.

    References:
        Khomenko et al. 2016, section IV.A: "first fed with shorter sequences". Amodei et al. 2016, "Deep Speech 2:
        end-to-end speech recognition in English and Mandarin", section 3.3.
    """

    epochs: int | None = None
    reverse: bool = False

    def __post_init__(self) -> None:
        checks.check_flag("reverse", self.reverse)
        if self.epochs is not None:
            remedy = "Give in how many epochs steps are sorted, such as 1, or None for all."
            checks.keep(self, epochs=checks.check_whole("epochs", self.epochs, minimum=1, remedy=remedy))

    def __call__(self, costs: NDArray[np.float64], lengths: NDArray[np.float64], key: Key) -> NDArray[np.int64]:
        del costs
        # The steps of one bucket are equally long. The sort is stable, so they stay in random order.
        shuffled = key.permutation(len(lengths))
        if self.epochs is not None and key.epoch >= self.epochs:
            return shuffled
        return shuffled[np.argsort(-lengths[shuffled] if self.reverse else lengths[shuffled], kind="stable")]


@dataclass(frozen=True, kw_only=True, slots=True)
class CostliestFirst:
    """The costliest steps first, so that a run that lacks memory fails in its first step; the others in random order.

    Args:
        steps: How many come first, costliest first. None sorts all steps by falling cost.
    """

    steps: int | None = 1

    def __post_init__(self) -> None:
        if self.steps is not None:
            remedy = "Give how many costly steps come first, or None for all."
            checks.keep(self, steps=checks.check_whole("steps", self.steps, minimum=1, remedy=remedy))

    def __call__(self, costs: NDArray[np.float64], lengths: NDArray[np.float64], key: Key) -> NDArray[np.int64]:
        del lengths
        shuffled = key.permutation(len(costs))
        # Of steps that cost the same, other ones lead in every epoch: the sort is stable, and they come shuffled.
        leading = shuffled[np.argsort(-costs[shuffled], kind="stable")[: self.steps]]
        return np.concatenate([leading, shuffled[~np.isin(shuffled, leading)]])


def arrange_of(arrange: Arrangement, epoch: int) -> Arrangement:
    """The choice for a window of `epoch`: its plan has a key of its own, whose epoch counts windows.

    >>> arrange_of(ShortestFirst(epochs=2), 1), arrange_of(ShortestFirst(epochs=2), 2)
    (ShortestFirst(epochs=None, reverse=False), ShuffledSteps())
    """
    if not isinstance(arrange, ShortestFirst) or arrange.epochs is None:
        return arrange
    return ShuffledSteps() if epoch >= arrange.epochs else replace(arrange, epochs=None)

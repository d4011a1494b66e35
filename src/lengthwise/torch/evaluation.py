"""Evaluation under a DataLoader: least padding, each sequence once, on every rank as many batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import Sampler

from lengthwise import _checks
from lengthwise.cost import Cost
from lengthwise.cut import Cut
from lengthwise.evaluation import evaluation_plan, evaluation_weights, restore_order
from lengthwise.plan import Plan
from lengthwise.torch import ranks


class EvaluationSampler(Sampler[list[int]]):
    """Yields this rank's batches of an evaluation, for `DataLoader(dataset, batch_sampler=...)`.

    Every pass is the same. Where the batches do not fill the last step, the cheapest stand twice: their outputs count
    once, by `weights` and `restore_order`.

    Args:
        lengths: [n] or [n, dims], in the order of the dataset.
        cut: Which sequences share a batch.
        cost: What a batch costs; padded frames where none is given.
        rank: Which of the ranks this process is; torch.distributed's where it is running and none is given, else 0.
        world_size: How many ranks share out the batches; torch.distributed's where it is running, else 1.

    >>> import lengthwise as lw
    >>> sampler = EvaluationSampler([5, 9, 2, 4], lw.FixedSize(2))
    >>> list(sampler), sampler.weights().tolist()
    ([[0, 1], [2, 3]], [0.5, 0.5])
    >>> sampler.restore_order(["five", "nine", "two", "four"])
    ['five', 'nine', 'two', 'four']
    """

    def __init__(
        self,
        lengths: ArrayLike,
        cut: Cut,
        *,
        cost: Cost | None = None,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        ranks.check_place(rank, world_size)
        self.rank, self.world_size = ranks.place(rank, world_size)
        self.plan: Plan = evaluation_plan(lengths, cut, cost=cost, world_size=self.world_size)
        self._given = rank is not None

    def __len__(self) -> int:
        """Batches of this rank, as many as on every other."""
        return len(self.plan)

    def __iter__(self) -> Iterator[list[int]]:
        return (batch.tolist() for batch in self.plan.batches(self.rank))

    def weights(self, weights: ArrayLike | None = None) -> NDArray[np.float64]:
        """What the mean of each of this rank's batches counts for in the mean over everything, [batches].

        Sum weight x mean over the batches, and that over the ranks (`torch.distributed.all_reduce`).

        Args:
            weights: [n]: 1 each for a mean over sequences (where not given), their tokens for a mean over tokens.
        """
        return evaluation_weights(self.plan, weights)[:, :, self.rank].reshape(-1)

    def restore_order(self, outputs: Sequence[Any]) -> list[Any]:
        """The outputs of all ranks in the order of the dataset, on every rank: a collective of torch.distributed.

        Args:
            outputs: One for each sequence of this rank's batches, batch after batch: values, or tensors on the CPU.

        Returns:
            n outputs; None for a sequence that the plan drops.

        Raises:
            ValueError: Rank and world size were given, so that nothing can be gathered: `lw.restore_order` takes the
                outputs of all ranks.
        """
        if self._given and self.world_size > 1:
            remedy = "Gather the outputs of all ranks and give them to lw.restore_order(sampler.plan, outputs)."
            raise _checks.value_error("rank", "torch.distributed's own, to gather outputs", self.rank, remedy)
        return restore_order(self.plan, [list(outputs)] if self._given else ranks.gathered(list(outputs)))

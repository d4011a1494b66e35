"""Evaluation under a DataLoader: sorted batches, each sequence once, the same number of batches on every rank."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import distributed

from lengthwise import checks
from lengthwise.choices.cost import Cost
from lengthwise.choices.cut import Cut
from lengthwise.lengths import as_lengths
from lengthwise.planning.evaluation import evaluation_plan, evaluation_weights, restore_order
from lengthwise.planning.plan import Plan
from lengthwise.torch.guard import check_no_worker
from lengthwise.torch.ranks import OwnRank, RankSampler


class EvaluationSampler(RankSampler):
    """Yields this rank's batches of an evaluation, for `DataLoader(dataset, batch_sampler=...)`.

    Every pass yields the same batches. If they do not fill the last step, the cheapest batches are repeated; `weights`
    and `restore_order` count them once. Do not give the loader to Accelerate's `prepare`: it would share the batches
    out again, so the sampler raises.

    If torch.distributed is running and no rank is given, making a sampler is a collective: all ranks compare their
    plans, as for `BatchSampler`.

    Args:
        lengths: [n] or [n, dims], in the order of the dataset.
        cut: The cut into batches.
        cost: The cost of a batch; by default its padded frames.
        balance: The cost that ranks share evenly, as in `lengthwise.Batching`; by default `cost`.
        rank: The rank of this process; by default from torch.distributed if it is running, else 0.
        world_size: The number of ranks that share out the batches; by default from torch.distributed, else 1.
        group: The process group of the ranks that share out the batches, in place of rank and world_size.

    Raises:
        ValueError: As `evaluation_plan`. With the first batch: the sampler is read in a loader's worker, or torchrun
            started several processes, and torch.distributed is not running.
        PlanMismatchError: Another rank has another plan, or none.

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
        balance: Cost | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        group: distributed.ProcessGroup | None = None,
    ) -> None:
        remedy = "Give every rank the same lengths, cut, cost and balance."
        self._own_rank = OwnRank(rank, world_size, group, remedy=remedy)
        self.cut = cut
        self.cost = cost
        self.balance = balance
        with self._own_rank.alike(self._facts):
            self.lengths: NDArray[np.int64] = as_lengths(lengths)
            self._plan = self._make_plan()

    def __repr__(self) -> str:
        return (
            f"EvaluationSampler(rank {self.rank} of {self.world_size}, {len(self._plan)} batches, "
            f"{len(self.lengths)} sequences cut by {self.cut})"
        )

    @property
    def plan(self) -> Plan:
        """The plan of every pass; made again if torch.distributed has changed the number of ranks."""
        # Samplers are often made before init_process_group, when every process is rank 0 of 1.
        if self._plan.world_size != self.world_size:
            self._plan = self._make_plan()
        return self._plan

    def __len__(self) -> int:
        """The number of batches of a rank, the same on every rank."""
        return len(self.plan)

    def __iter__(self) -> Iterator[list[int]]:
        check_no_worker()
        plan = self.plan
        self._own_rank.check_started(self._facts)
        for batch in plan.batches(self.rank):
            yield batch.tolist()

    def weights(self, weights: ArrayLike | None = None) -> NDArray[np.float64]:
        """Returns the weight of each of this rank's batches in the mean over all sequences: [batches].

        Multiply the mean of each batch by its weight. Add up over the batches, then over the ranks (`all_reduce`). Skip
        batches of weight 0: their mean may be NaN.

        Args:
            weights: [n]: 1 for each sequence (the default) in a mean over sequences, its tokens in a mean over tokens.
        """
        return evaluation_weights(self.plan, weights)[:, :, self.rank].reshape(-1)

    def restore_order(self, outputs: Sequence[Any]) -> list[Any]:
        """Returns the outputs of all ranks in the order of the dataset; a collective of torch.distributed.

        Args:
            outputs: One for each sequence of this rank's batches, batch after batch: values, or tensors on the CPU.

        Returns:
            n outputs; None for a sequence that the plan drops.

        Raises:
            ValueError: `rank` and `world_size` were given, so there is no process group to gather the outputs. Give
                `group` in their place, or give the outputs of all ranks to `lw.restore_order`.
        """
        if self._own_rank.is_alone and self.world_size > 1:
            remedy = "Give group= in its place, or all outputs to lw.restore_order(sampler.plan, outputs)."
            raise checks.value_error("rank", "torch.distributed's own, to gather outputs", self.rank, remedy)
        return restore_order(self.plan, self._own_rank.gather(list(outputs)))

    def _make_plan(self) -> Plan:
        return evaluation_plan(self.lengths, self.cut, cost=self.cost, balance=self.balance, world_size=self.world_size)

    def _facts(self) -> dict[str, Any]:
        """Returns the facts that all ranks must share."""
        plan = self.plan
        choices = json.loads(plan.batching)
        # The other choices are the same in every evaluation plan.
        named = {name: choices.get(name) for name in ("cut", "cost", "balance")}
        return {"lengths": plan.lengths_fingerprint, **named, "plan": plan.fingerprint()}

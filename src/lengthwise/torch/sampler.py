"""The batch sampler: a plan and a position, nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from numpy.typing import ArrayLike
from torch import distributed
from torch.utils.data import Sampler

from lengthwise import _checks
from lengthwise.batching import Batching
from lengthwise.lengths import as_lengths
from lengthwise.plan import Plan
from lengthwise.planning import make_plan


class BatchSampler(Sampler[list[Any]]):
    """Yields the batches of one epoch, for `DataLoader(dataset, batch_sampler=...)`.

    The dataset is never touched: planning needs its lengths only. What goes wrong in use: an epoch that is never set.
    Call `set_epoch` before each epoch, or every epoch takes the same batches, which warns once.

    Args:
        lengths: [n] or [n, dims], in the order of the dataset.
        batching: How batches are made.
        seed: Names the run.
        rank: Which of the ranks this process is; torch.distributed's where it is running and none is given, else 0.
        world_size: How many ranks share out the batches; torch.distributed's where it is running, else 1.
        micro_batches: Batches of each rank in one optimiser step.

    Yields:
        A fresh list for each batch: of sequence numbers, or, where the batching takes chunks, of tuples (sequence,
        start, stop); the dataset's `__getitem__` is given one entry at a time.

    Raises:
        ValueError: As `make_plan` does, at once and not in the first epoch.

    >>> import lengthwise as lw
    >>> sampler = BatchSampler([5, 9, 2, 4], lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted()), seed=0)
    >>> len(sampler), sorted(sampler)
    (2, [[0, 1], [2, 3]])
    """

    # No attribute `batch_size`: trainers that find one think that every batch has it, and drop those that do not.

    def __init__(
        self,
        lengths: ArrayLike,
        batching: Batching,
        *,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        micro_batches: int = 1,
    ) -> None:
        if not isinstance(batching, Batching):
            remedy = "Make one: lw.Batching(cut=lw.FixedSize(16)), say."
            raise _checks.type_error("batching", "a lengthwise.Batching", batching, remedy)
        rank, world_size = _place(rank, world_size)
        _checks.check_whole("world_size", world_size, minimum=1, remedy="Give the number of ranks.")
        remedy = "Ranks count from 0 to world_size - 1."
        self.rank = _checks.check_whole("rank", rank, minimum=0, maximum=world_size - 1, remedy=remedy)
        self.lengths = as_lengths(lengths)
        self.batching = batching
        self.seed = seed
        self.world_size = world_size
        self.micro_batches = micro_batches
        self._taken: int | None = None  # the epoch that was taken, but for a look at its first batch
        self._warned = False
        self.set_epoch(0)

    @property
    def plan(self) -> Plan:
        """The plan of the epoch that is set."""
        return self._plan

    @property
    def epoch(self) -> int:
        return self._plan.epoch

    def set_epoch(self, epoch: int) -> None:
        """Plans `epoch`, which the next iteration yields."""
        self._plan = make_plan(
            self.lengths,
            self.batching,
            seed=self.seed,
            epoch=epoch,
            world_size=self.world_size,
            micro_batches=self.micro_batches,
        )

    def __len__(self) -> int:
        """Batches of this rank in the epoch that is set: exact, before it begins."""
        return len(self._plan)

    def __iter__(self) -> Iterator[list[Any]]:
        plan = self._plan
        if self._taken == plan.epoch and not self._warned:
            remedy = "Call set_epoch with a new number before each epoch."
            text = _checks.sentence("epoch", "another for every epoch", plan.epoch, remedy, at="the second pass")
            warnings.warn(text, stacklevel=2)
            self._warned = True
        for place, batch in enumerate(plan.batches(self.rank)):
            if place:
                self._taken = plan.epoch
            yield [tuple(span) for span in batch.tolist()] if batch.ndim == 2 else batch.tolist()


def _place(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Rank and world size as given, or torch.distributed's where it is running: every rank must take its own share."""
    if (rank is None) != (world_size is None):
        given = f"rank={rank}, world_size={world_size}"
        remedy = "Give both, or neither for torch.distributed's own."
        raise _checks.value_error("rank", "given together with world_size", given, remedy)
    if rank is not None and world_size is not None:
        return rank, world_size
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1

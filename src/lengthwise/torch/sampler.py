"""The batch sampler: a plan and a position in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import distributed

from lengthwise import checks
from lengthwise.choices.batching import Batching
from lengthwise.choices.deal import World, check_world, has_equal_epochs
from lengthwise.planning.loss import loss_scales
from lengthwise.planning.plan import Plan
from lengthwise.planning.resume import EarlierRun
from lengthwise.planning.window_epoch import WindowEpoch
from lengthwise.torch.guard import Notices, changed, check_no_worker, check_wrappers, unused
from lengthwise.torch.padded import PaddedAsPlanned
from lengthwise.torch.planner import Planner
from lengthwise.torch.position import Remainder, read_state, split_runs, write_state
from lengthwise.torch.ranks import OwnRank, RankSampler
from lengthwise.torch.summary import summarize


class BatchSampler(RankSampler):
    """Yields the batches of one epoch, for `lw.torch.DataLoader(dataset, sampler)`.

    It has the plan of each epoch, and the position of the next pass. Workers draw batches ahead, so the sampler cannot
    know how many the training loop has had: `lw.torch.DataLoader` counts them. PyTorch's own `DataLoader(dataset,
    batch_sampler=sampler)` works too; then count the batches yourself, for `state_after`.

    Call `set_epoch` before each epoch. Otherwise every epoch takes the same batches, and you get one warning. If the
    trainer never uses this sampler, the second `set_epoch` raises.

    If torch.distributed is running and no rank is given, making a sampler or loading a state is a collective: all ranks
    compare their plans. If the plans differ, or one rank fails, all ranks raise, so that none hangs later. With nccl,
    call `torch.cuda.set_device` first: ranks communicate through the current GPU.

    Args:
        lengths: [n] or [n, dims], in the order of the dataset.
        batching: The choices.
        seed: The seed of the run.
        rank: The rank of this process; by default from torch.distributed if it is running, else 0.
        world_size: The number of ranks that share out the batches; by default from torch.distributed, else 1.
        group: The process group of the ranks that share out the batches, in place of rank and world_size.
        micro_batches: The batches of each rank in one optimiser step.
        times: [n], or one number for all: the times that an epoch takes each sequence, as in `make_plan`; by default
            once.
        groups: [n], such as the task of each sequence, as in `make_plan`: no batch mixes two of them.

    Yields:
        A new list for each batch, of sequence numbers, or of tuples (sequence, start, stop) if the batching takes
        chunks. The dataset's `__getitem__` gets one entry at a time.

    Raises:
        ValueError: As `make_plan`, when the sampler is made. With the first batch: the sampler is read in a loader's
            worker.
        PlanMismatchError: Another rank has another plan, or none.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted())
    >>> sampler = BatchSampler([5, 9, 2, 4], batching, seed=0)
    >>> len(sampler), sorted(sampler)
    (2, [[0, 1], [2, 3]])
    """

    def __init__(
        self,
        lengths: ArrayLike,
        batching: Batching,
        *,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        group: distributed.ProcessGroup | None = None,
        micro_batches: int = 1,
        times: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> None:
        remedy = "Give every rank the same lengths, batching, seed, micro_batches, times and checkpoint."
        self._own_rank = OwnRank(rank, world_size, group, remedy=remedy)
        self.batching = batching
        self.seed = seed
        self.micro_batches = micro_batches
        self.notices: Notices = Notices()
        with self._own_rank.alike(self._facts):
            self._planner = self._read(lengths, times, groups)
            self.lengths: NDArray[Any] = self._planner.lengths
            # The sampler keeps this check, because trainers make several loaders.
            self.padded: PaddedAsPlanned = PaddedAsPlanned(batching, self.lengths)
            self.arrived: NDArray[np.int64] = np.zeros(2, np.int64)  # frames that loaders counted, see `count_frames`
            self.times: NDArray[np.float64] | None = self._planner.times
            self.groups: NDArray[np.int64] | None = self._planner.groups
            self._remainder = self._plan_remainder(0)
            self._identity = self._planner.identity(self._remainder.plan)
        self.scaled: tuple[int, int] | None = None  # the epoch and the start of the latest `loss_scales`

    def __repr__(self) -> str:
        rank = f"rank {self.rank} of {self.world_size}"
        place = f"epoch {self.epoch} from batch {self.start} of {self.remainder.batches_in_epoch}"
        return f"{type(self).__name__}({rank}, {place}, {len(self.lengths)} sequences, {self.batching})"

    @property
    def plan(self) -> Plan:
        """The plan of the current epoch. If another number of ranks saved the loaded state, the plan of the rest."""
        return cast(Plan, self._ask().plan)  # a WindowSampler has a WindowEpoch, and overrides `plan`

    @property
    def epoch(self) -> int:
        return self._remainder.plan.epoch

    @property
    def start(self) -> int:
        """The batches of the epoch that each rank had before the next pass: 0 unless a state was loaded."""
        return self.remainder.start

    @property
    def remainder(self) -> Remainder:
        """The plan and the position of a pass; a new object for each epoch or loaded position."""
        # If torch.distributed ends within a pass, the state still has the number of ranks that took the batches.
        return self._remainder if self._remainder.use == "begun" else self._follow_ranks()

    @property
    def sampler(self) -> BatchSampler:
        """The sampler itself, because some trainers set the epoch of `loader.batch_sampler.sampler` only."""
        return self

    def set_epoch(self, epoch: int, *, restart: bool = False) -> None:
        """Plans `epoch` for the next pass. If a state of this epoch was loaded, its position is kept.

        Args:
            epoch: Counted from 0, and the same on every rank: ranks do not compare it.
            restart: If True, forgets the position: the next pass yields the whole epoch.

        >>> import lengthwise as lw
        >>> sampler = BatchSampler([5, 9, 2], lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted()))
        >>> sampler.resume(sampler.state_after(2))
        >>> sampler.set_epoch(0)
        >>> list(sampler)
        []
        >>> sampler.set_epoch(0, restart=True)
        >>> sorted(sampler)
        [[0, 1], [2]]
        """
        remainder = self._remainder
        if epoch == self.epoch and not restart:
            remainder = self._follow_ranks()
            remainder.use = "set" if remainder.use == "asked" else remainder.use
            return
        if epoch != self.epoch and remainder.use == "set":
            raise unused(self.epoch)
        planned = self._plan_remainder(epoch)
        is_loaded = remainder.use == "asked" and remainder.start > 0
        if is_loaded and not restart and (epoch < self.epoch or remainder.batches_left):
            self.notices.warn_left_position(self.epoch, epoch)
        self._remainder, planned.use = planned, "set"

    @property
    def steps(self) -> int:
        """The optimiser steps of every epoch, on these ranks: a schedule has `epochs * sampler.steps` steps.

        Raises:
            ValueError: Epochs may differ in steps, as with a cut of your own.
        """
        if not has_equal_epochs(self.batching.cut):
            remedy = "Take Budget, FixedSize or Rows, or end each epoch where the loader does."
            rule = "one that gives every epoch the same number of steps"
            raise checks.value_error("cut", rule, self.batching.cut, remedy)
        return self._planner.steps(World(self.world_size, self.micro_batches))

    def summary(self, *, batch_size: int | None = None) -> str:
        """Returns sentences that compare the current epoch with random batches.

        Args:
            batch_size: The sequences in a random batch, such as your former batch size; by default the mean of the
                plan.

        >>> import lengthwise as lw
        >>> sampler = BatchSampler([5, 9, 2, 4] * 10, lw.Batching(budget=40, order=lw.Sorted()))
        >>> sampler.summary(batch_size=4).splitlines()[3]
        'Random batches of 4 take 10 steps, pad 35.1 % and compute 1.54.'
        """
        remainder = self.remainder
        state: Any = {"earlier_batches": remainder.earlier_batches, "plan_start": remainder.plan_start}
        state["arrived"] = self.arrived
        return summarize(remainder.plan, self.lengths, self.batching, **state, batch_size=batch_size)

    def loss_scales(
        self,
        weights: ArrayLike | None = None,
        *,
        reduction: str = "mean",
        ranks_averaged: bool = True,
        micro_batches_averaged: bool = False,
    ) -> NDArray[np.float64]:
        """Returns the factors for the losses of a pass: `lengthwise.loss_scales`, for this rank.

        A `WindowSampler` plans all remaining windows for these factors. If the windows are many, loop over
        `sampler.plan.loss_scales(rank=sampler.rank)` instead.

        Returns:
            [len(self) - start] float64: one for each batch that a pass yields.

        >>> import lengthwise as lw
        >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted())
        >>> sampler = BatchSampler([5, 9, 2], batching, micro_batches=2)
        >>> for batch, scale in zip(sampler, sampler.loss_scales(), strict=True):
        ...     print(batch, scale.round(2))
        [0, 1] 0.67
        [2] 0.33
        """
        averaged: Any = {"ranks_averaged": ranks_averaged, "micro_batches_averaged": micro_batches_averaged}
        remainder = self._ask()
        plan, start, self.scaled = remainder.plan, remainder.plan_start, (remainder.plan.epoch, remainder.start)
        if isinstance(plan, WindowEpoch):
            scales = plan.loss_scales(weights, rank=self.rank, start=start, reduction=reduction, **averaged)
            return np.fromiter(scales, np.float64)
        return loss_scales(plan, weights, reduction=reduction, **averaged)[:, :, self.rank].reshape(-1)[start:]

    def state_after(self, delivered: int) -> dict[str, Any]:
        """Returns the position after `delivered` batches, the same on every rank, under a kilobyte.

        A checkpoint has no gradients of an unfinished step: from within a step, a resumed run takes the step again.

        Args:
            delivered: The batches of the epoch that the training loop has had, including `start`. `lw.torch.DataLoader`
                counts them, and its `state_dict` returns this state.

        Returns:
            A state for `resume` on any number of ranks, which JSON can hold.
        """
        remainder, remedy = self.remainder, "Count from the beginning of the epoch."
        plan, least, most = remainder.plan, remainder.start, remainder.batches_in_epoch
        count = checks.check_whole("delivered", delivered, minimum=least, maximum=most, remedy=remedy)
        facts = self._identity | {"sequences": len(self.lengths), "epoch": plan.epoch, "plan": remainder.fingerprint}
        world, taken = World(plan.world_size, plan.micro_batches), count - remainder.earlier_batches
        return write_state(facts, world, remainder.runs(taken - taken % plan.micro_batches))

    def resume(self, state: Mapping[str, Any]) -> None:
        """Resumes where `state` was saved: the next pass yields the rest of its epoch.

        The number of ranks may differ. If world size x micro-batches is the same, the same steps follow. Otherwise the
        remaining batches are dealt again. If either number differs, the epoch is planned twice: first as in the state,
        to check that the plan has not changed.

        Raises:
            ValueError: `state` is not from `state_after`.
            PlanMismatchError: The state has other lengths, another batching, seed or plan, or the ranks loaded
                different states. If only the plan differs, a cost function of yours may have changed.
        """
        with self._own_rank.alike(self._facts):
            position = read_state(state, self._identity, sequences=len(self.lengths))
            remainder = self._plan_remainder(position.epoch, position.runs, position.world)
            position.check_plan(remainder.fingerprint)
            if position.world != (self.world_size, self.micro_batches):
                remainder = self._plan_remainder(position.epoch, position.runs)
            self._remainder = remainder

    def __len__(self) -> int:
        """The batches of this rank in the whole epoch, exact before it begins. A pass yields `start` fewer."""
        return self._ask().batches_in_epoch

    def __iter__(self) -> Iterator[list[Any]]:
        # A generator starts with its first batch: until then the epoch may be set.
        check_no_worker()
        remainder = self._follow_ranks()
        if not remainder.is_counted and (self.world_size > 1 or remainder.start):
            check_wrappers(self, world_size=self.world_size, start=remainder.start)
        remainder.use = "begun"
        self._own_rank.check_started(self._facts)
        for batch in remainder.batches(self.rank, remainder.plan_start):
            if remainder is not self._remainder:
                raise changed(remainder.plan.epoch, self.epoch)
            yield batch
        # A loop that stops after one batch may have had workers that drew all of a short epoch. So a second complete
        # pass may be the first whole loop; a third is not.
        remainder.complete_passes += 1
        if remainder.complete_passes > 2:
            self.notices.warn_second_pass(self.epoch)

    def _ask(self) -> Remainder:
        """Returns what is left, and notes that it was asked for."""
        remainder = self.remainder
        remainder.use = "asked" if remainder.use == "set" else remainder.use
        return remainder

    def _follow_ranks(self) -> Remainder:
        """Returns the rest of the epoch for the current ranks: torch.distributed may have started or ended since."""
        remainder = self._remainder
        if remainder.plan.world_size != self.world_size:
            self._remainder = self._plan_remainder(self.epoch, remainder.runs(remainder.plan_start))
            self._remainder.use = remainder.use
        return self._remainder

    def _plan_remainder(self, epoch: int, runs: tuple[EarlierRun, ...] = (), world: World | None = None) -> Remainder:
        """Plans the rest of an epoch after `runs` for `world`, by default this run's."""
        world = world or check_world(self.world_size, self.micro_batches)
        earlier_runs = [run.numbers for run in split_runs(runs, world)[0]]
        return Remainder.after(runs, self._planner.plan(epoch, world, earlier_runs))

    def _read(self, lengths: ArrayLike, times: ArrayLike | None, groups: ArrayLike | None) -> Planner:
        """Returns the planner of the epochs; `WindowSampler` returns one of windows."""
        return Planner.read(lengths, self.batching, seed=self.seed, times=times, groups=groups)

    def _facts(self) -> dict[str, Any]:
        """Returns the facts that all ranks must share: the identity of the run, and the position."""
        remainder = self._remainder
        # Ranks that loaded different checkpoints would skip and repeat batches.
        runs = [run.numbers for run in remainder.runs(remainder.plan_start)]
        facts = {"micro_batches": self.micro_batches, "epoch": self.epoch, "runs": runs}
        return self._identity | facts | {"plan": remainder.fingerprint}


def check_sampler(name: str, sampler: object) -> BatchSampler:
    """Returns a `BatchSampler`; refuses anything else."""
    if not isinstance(sampler, BatchSampler):
        remedy = (
            "Make one of the lengths and a batching. An evaluation takes PyTorch's own loader: "
            "torch.utils.data.DataLoader(dataset, batch_sampler=..., collate_fn=lw.torch.PadCollate())."
        )
        raise checks.type_error(name, "a lengthwise.torch.BatchSampler", sampler, remedy)
    return sampler

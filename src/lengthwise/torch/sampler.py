"""The batch sampler: a plan and a position in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import distributed
from torch.utils.data import Sampler

from lengthwise import checks
from lengthwise.choices.batching import Batching
from lengthwise.choices.deal import World, check_world
from lengthwise.planning.fit import has_equal_epochs
from lengthwise.planning.loss import loss_scales
from lengthwise.planning.plan import Plan
from lengthwise.planning.resume import EarlierRun
from lengthwise.torch.guard import Notices, changed, check_no_worker, refuse_second_sharing, unused
from lengthwise.torch.padded import PaddedAsPlanned
from lengthwise.torch.planner import Planner
from lengthwise.torch.position import Remainder, read_state, split_runs, write_state
from lengthwise.torch.ranks import OwnRank
from lengthwise.torch.summary import summarize


class BatchSampler(Sampler[list[Any]]):
    """Yields the batches of one epoch, for `lw.torch.DataLoader(dataset, sampler)`.

    It knows the plan of each epoch, and where passes begin: at the first batch, or where a state says. It does not know
    how many of its batches a training loop has had, because workers draw them ahead: `lw.torch.DataLoader` counts them.
    PyTorch's own `DataLoader(dataset, batch_sampler=sampler)` trains as well; count its batches yourself, for
    `state_after`.

    Planning needs the lengths alone. What goes wrong in use: an epoch that is never set. Call `set_epoch` before each
    epoch. Without it every epoch takes the same batches, which warns once. If the trainer never uses this sampler, the
    second `set_epoch` raises.

    If torch.distributed is running and no rank is given, making a sampler or loading a state is a collective: all ranks
    compare their plans. If the plans differ, or a rank can make none, all ranks raise, so that none hangs later. With
    nccl, call `torch.cuda.set_device` before: they communicate through the current GPU.

    Args:
        lengths: [n] or [n, dims], in the order of the dataset.
        batching: How batches are made.
        seed: Names the run.
        rank: The rank of this process; by default that of torch.distributed if it is running, else 0.
        world_size: How many ranks share out the batches; by default that of torch.distributed, else 1.
        group: The ranks that share out the batches, in place of the two, such as those of data parallelism.
        micro_batches: Batches of each rank in one optimiser step.
        times: [n], or one number for all: how often epochs take each sequence, as in `make_plan`; by default once.
        groups: [n], such as the task of each sequence, as in `make_plan`: no batch mixes two of them.

    Yields:
        A fresh list for each batch. It has sequence numbers or, where the batching takes chunks, tuples (sequence,
        start, stop). The dataset's `__getitem__` is given one entry at a time.

    Raises:
        ValueError: As `make_plan` does, at once and not in the first epoch; and with the first batch, in the worker of
            a loader, where each would take all batches.
        PlanMismatchError: Another rank has another plan, or none.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted())
    >>> sampler = BatchSampler([5, 9, 2, 4], batching, seed=0)
    >>> len(sampler), sorted(sampler)
    (2, [[0, 1], [2, 3]])
    """

    # No attribute `batch_size`: trainers that find one think that every batch has it, and drop those that do not.
    # No `state_dict`: a loader or trainer that finds one asks it for a count that only `lw.torch.DataLoader` knows.

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
        self._asked = True  # whether anything was asked of the sampler since the epoch was set
        self._resumed = False  # whether no epoch was set, and no pass begun, since a state was loaded
        self._steps: dict[World, int] = {}
        self._begun, self._drawn = False, 0  # passes over what is left: whether one has begun, how many came to an end
        self.notices: Notices = Notices()
        with self._own_rank.alike(self._facts):
            self._planner = self._read(lengths, times, groups)
            self.lengths: NDArray[Any] = self._planner.lengths
            self.padded: PaddedAsPlanned = PaddedAsPlanned(
                batching.cut, self.lengths
            )  # beside it: trainers make loaders anew
            self.times: NDArray[np.float64] | None = self._planner.times
            self._remainder = self._plan_remainder(0)
            self._named = self._planner.facts(self._remainder.plan)

    def __repr__(self) -> str:
        place = f"epoch {self.epoch} from batch {self.start} of {len(self.remainder)}"
        return (
            f"{type(self).__name__}(rank {self.rank} of {self.world_size}, {place}, {len(self.lengths)} sequences, "
            f"{self.batching})"
        )

    @property
    def rank(self) -> int:
        return self._own_rank.rank

    @property
    def world_size(self) -> int:
        return self._own_rank.world_size

    @property
    def plan(self) -> Plan:
        """The plan of the epoch that is set; after a state of other numbers of ranks, of what those runs left."""
        self._asked = True
        return cast(Plan, self.remainder.plan)  # that of a WindowSampler is a WindowEpoch, as its own `plan` says

    @property
    def epoch(self) -> int:
        return self._remainder.plan.epoch

    @property
    def start(self) -> int:
        """Batches of the epoch that each rank had before a pass begins: 0 unless a state was loaded."""
        return self.remainder.start

    @property
    def remainder(self) -> Remainder:
        """What a pass goes over: a plan, and where in it to begin. Another object for another epoch or position."""
        # If torch.distributed ends within a pass, a state is still of the ranks that took the batches.
        return self._remainder if self._begun else self._follow_ranks()

    @property
    def sampler(self) -> BatchSampler:
        """Itself, because some trainers set the epoch of `loader.batch_sampler.sampler` alone."""
        return self

    @property
    def drop_last(self) -> bool:
        """Refuses whoever makes other batches of these, such as `accelerator.prepare`; False on one rank."""
        return refuse_second_sharing(self.world_size)

    def set_epoch(self, epoch: int, *, restart: bool = False) -> None:
        """Plans `epoch`, which the next pass yields; a position that was loaded for it is kept.

        Args:
            epoch: Counted from 0, and the same on every rank: ranks do not compare it.
            restart: Forget the position: the next pass yields the whole epoch.

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
        resumed, self._resumed = self._resumed, False
        if epoch == self.epoch and not restart:
            self._asked = self._begun
            self._follow_ranks()
            return
        if resumed and not restart and (epoch < self.epoch or self._remainder.batches_left):
            self.notices.warn_left_position(self.epoch, epoch)
        if epoch != self.epoch and not self._asked:
            raise unused(self.epoch)
        self._stand(self._plan_remainder(epoch))

    @property
    def steps(self) -> int:
        """Optimiser steps of every epoch, on these ranks: a learning rate schedule has `epochs * sampler.steps`.

        Raises:
            ValueError: The cut alone says which batches there are, as the user's own do: epochs may differ.
        """
        if not has_equal_epochs(self.batching.cut):
            remedy = "Take Budget, FixedSize or Rows, or end each epoch where the loader does."
            rule = "one by which every epoch has as many steps"
            raise checks.value_error("cut", rule, self.batching.cut, remedy)
        world = World(self.world_size, self.micro_batches)
        if world not in self._steps:
            self._steps[world] = self._plan_remainder(0).plan.steps
        return self._steps[world]

    def summary(self, *, batch_size: int | None = None) -> str:
        """What the epoch that is set computes, in sentences to print, beside random batches.

        Args:
            batch_size: Sequences in a random batch, such as you had before; by default they are cut as the plan is.

        >>> import lengthwise as lw
        >>> sampler = BatchSampler([5, 9, 2, 4] * 10, lw.Batching(budget=40, order=lw.Sorted()))
        >>> sampler.summary(batch_size=4).splitlines()[-2]
        'Random batches of 4 take 10 steps, pad 35.1 %, and compute 1.5 times as much.'
        """
        remainder = self.remainder
        place = {"before": remainder.before, "taken": remainder.taken}
        return summarize(remainder.plan, self.lengths, self.batching, **place, batch_size=batch_size)

    def loss_scales(
        self,
        weights: ArrayLike | None = None,
        *,
        reduction: str = "mean",
        ranks_averaged: bool = True,
        micro_batches_averaged: bool = False,
    ) -> NDArray[np.float64]:
        """The factor for the loss of each batch of a pass: `lengthwise.loss_scales`, for this rank.

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
        scales = loss_scales(
            self.plan,
            weights,
            reduction=reduction,
            ranks_averaged=ranks_averaged,
            micro_batches_averaged=micro_batches_averaged,
        )
        return scales[:, :, self.rank].reshape(-1)[self.remainder.taken :]

    def state_after(self, delivered: int) -> dict[str, Any]:
        """Returns where this run stands after so many batches: the same on every rank, under a kilobyte.

        Args:
            delivered: Batches of the epoch that the training loop has had, `start` included. A `lw.torch.DataLoader`
                counts them, and its `state_dict` gives this state.

        Returns:
            For `resume`, here or on another number of ranks; plain numbers and words, fit for JSON.
        """
        remainder, remedy = self.remainder, "Count from the beginning of the epoch."
        whole = checks.check_whole(
            "delivered", delivered, minimum=remainder.start, maximum=len(remainder), remedy=remedy
        )
        plan = remainder.plan
        facts = self._named | {"sequences": len(self.lengths), "epoch": plan.epoch, "plan": remainder.fingerprint}
        return write_state(facts, World(plan.world_size, plan.micro_batches), remainder.runs(whole - remainder.before))

    def resume(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state` was saved: a pass yields what was not delivered of its epoch, and nothing else.

        The number of ranks may differ. If a step has as many batches (world size x micro-batches) as before, the same
        steps follow; otherwise the batches that no rank had are dealt anew. The epoch is then planned twice: first for
        the ranks of the state, to check that their plan is still the same.

        Raises:
            ValueError: `state` is not what `state_after` gave.
            PlanMismatchError: It is of other lengths, another batching or seed; or only its plan differs, as after a
                change of your own cost; or the ranks loaded different states, or one could not load its own.
        """
        with self._own_rank.alike(self._facts):
            position = read_state(state, self._named, sequences=len(self.lengths))
            remainder = self._plan_remainder(position.epoch, position.runs, position.world)
            position.check_plan(remainder.fingerprint)
            if position.world != (self.world_size, self.micro_batches):
                remainder = self._plan_remainder(position.epoch, position.runs)
            self._stand(remainder)
            self._asked, self._resumed = True, remainder.start > 0

    def __len__(self) -> int:
        """Batches of this rank in the whole epoch that is set, exact before it begins. A pass yields `start` fewer."""
        self._asked = True
        return len(self.remainder)

    def __iter__(self) -> Iterator[list[Any]]:
        # A generator: it begins with its first batch, and until then the epoch may be set.
        check_no_worker()
        remainder = self._follow_ranks()
        self._asked, self._begun, self._resumed = True, True, False
        self._own_rank.check_started(self._facts)
        for batch in remainder.plan.batches(self.rank, remainder.taken):
            if remainder is not self._remainder:
                raise changed(remainder.plan.epoch, self.epoch)
            # Chunks are rows (sequence, start, stop): the dataset is given one of them at a time, as a tuple.
            yield [tuple(span) for span in batch.tolist()] if batch.ndim == 2 else batch.tolist()
        # Workers of a short epoch may draw all of it for a look. So two ends may be a look and a loop; three are not.
        self._drawn += remainder is self._remainder
        if self._drawn > 2:
            self.notices.warn_second_pass(self.epoch)

    def _follow_ranks(self) -> Remainder:
        """What is left, for the ranks there are now: torch.distributed may have started since, or ended."""
        if self._remainder.plan.world_size != self.world_size:
            self._remainder = self._plan_remainder(self.epoch, self._remainder.runs(self._remainder.taken))
        return self._remainder

    def _stand(self, remainder: Remainder) -> None:
        """Makes `remainder` what passes go over."""
        self._remainder, self._begun, self._drawn, self._asked = remainder, False, 0, False

    def _plan_remainder(self, epoch: int, runs: tuple[EarlierRun, ...] = (), world: World | None = None) -> Remainder:
        """What `runs` left, planned for `world`; by default for the ranks and micro-batches of this run."""
        world = world or check_world(self.world_size, self.micro_batches)
        earlier = [run.numbers for run in split_runs(runs, world)[0]]
        return Remainder.after(runs, self._planner.plan(epoch, world, earlier))

    def _read(self, lengths: ArrayLike, times: ArrayLike | None, groups: ArrayLike | None) -> Planner:
        """What epochs are planned from. A sampler over windows has another one, and all else as it stands here."""
        return Planner.read(lengths, self.batching, seed=self.seed, times=times, groups=groups)

    def _facts(self) -> dict[str, Any]:
        """What all ranks must share."""
        remainder = self._remainder
        # The position is compared too: ranks that loaded different checkpoints would skip and repeat batches.
        runs = [run.numbers for run in remainder.runs(remainder.taken)]
        facts = {"micro_batches": self.micro_batches, "epoch": self.epoch, "runs": runs}
        return self._named | facts | {"plan": remainder.fingerprint}

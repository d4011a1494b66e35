"""The batch sampler: a plan and a position in it."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import distributed
from torch.utils.data import Sampler

from lengthwise import checks
from lengthwise.choices.batching import Batching
from lengthwise.choices.world import World, check_world
from lengthwise.planning.loss import loss_scales
from lengthwise.planning.plan import Plan
from lengthwise.planning.rest import EarlierRun
from lengthwise.torch.consumer import Caller, callers, consumer_of, loader_among
from lengthwise.torch.delivery import Count, Pass, Passes
from lengthwise.torch.guard import changed, check_callers, unused
from lengthwise.torch.notices import Notices
from lengthwise.torch.padded import PaddedAsPlanned
from lengthwise.torch.planner import Planner
from lengthwise.torch.position import read_state, split_runs, write_state
from lengthwise.torch.ranks import OwnRank
from lengthwise.torch.rest import Rest
from lengthwise.torch.summary import summarize


class BatchSampler(Sampler[list[Any]]):
    """Yields the batches of one epoch, for `DataLoader(dataset, batch_sampler=...)`.

    Planning needs the lengths alone; of the dataset, only the size is asked for. What goes wrong in use: an epoch that
    is never set. Call `set_epoch` before each epoch. Without it every epoch takes the same batches, which warns once.
    An epoch that is left early warns once, too, and so does a loop that begins at another epoch than the loaded state.
    If the trainer never uses this sampler, the second `set_epoch` raises.

    Each pass counts for itself. A look at the first batch takes nothing. A pass that begins within a loop does not move
    the position of the loop, from the loop's second batch on. If a batch fails to load and the loop goes on, the batch
    counts as taken. If the last batch of an epoch fails under workers, a resumed run tries it once more.

    If torch.distributed is running and no rank is given, making a sampler or loading a state is a collective: all ranks
    compare their plans. If the plans differ, or a rank can make none, all ranks raise, so that none hangs later. With
    nccl, call `torch.cuda.set_device` before: they communicate through the current GPU.

    Args:
        lengths: [n] or [n, dims], in the order of the dataset; another order warns, once a loader pads 24 batches.
        batching: How batches are made.
        seed: Names the run.
        rank: The rank of this process; by default that of torch.distributed if it is running, else 0.
        world_size: How many ranks share out the batches; by default that of torch.distributed, else 1.
        group: The ranks that share out the batches, in place of the two, such as those of data parallelism.
        micro_batches: Batches of each rank in one optimiser step.
        times: [n], or one number for all: how often epochs take each sequence, as in `make_plan`; by default once.

    Attributes:
        reads_callers: True. Set it to False for a sampler that does not look at who draws from it. Then no caller is
            refused, and a position counts all batches that were drawn, also those that workers fetched ahead: count the
            delivered ones yourself, and give their number to `state_dict`.

    Yields:
        A fresh list for each batch. It has sequence numbers or, where the batching takes chunks, tuples (sequence,
        start, stop). The dataset's `__getitem__` is given one entry at a time.

    Raises:
        ValueError: As `make_plan` does, at once and not in the first epoch; and with the first batch, where something
            between the sampler and its loader shares the batches out to the ranks once more, where a dataset draws
            from the sampler, or where the dataset has more or fewer sequences than there are lengths.
        PlanMismatchError: Another rank has another plan, or none.

    >>> import lengthwise as lw
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted())
    >>> sampler = BatchSampler([5, 9, 2, 4], batching, seed=0)
    >>> len(sampler), sorted(sampler)
    (2, [[0, 1], [2, 3]])
    """

    # No attribute `batch_size`: trainers that find one think that every batch has it, and drop those that do not.
    reads_callers = True

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
    ) -> None:
        remedy = "Give every rank the same lengths, batching, seed, micro_batches, times and checkpoint."
        self._own_rank = OwnRank(rank, world_size, group, remedy=remedy)
        self.batching = batching
        self.seed = seed
        self.micro_batches = micro_batches
        self._passes = Passes()
        self._restorer: weakref.ref[Any] | None = None  # the loader that loaded the position, until its first pass
        self._epoch_set = False  # whether the epoch was set since the position was loaded
        self._restarted = False  # whether the next pass is to yield a whole epoch, whatever its loader restores
        self._asked = True  # whether anything was asked of the sampler since the epoch was set
        self._epoch_taken: int | None = None  # in the pass before `set_epoch`
        self._notices, self._padded = Notices(), PaddedAsPlanned(batching)
        with self._own_rank.alike(self._facts):
            self._planner = self._read(lengths, times)
            self.lengths: NDArray[Any] = self._planner.lengths
            self.times: NDArray[np.float64] | None = self._planner.times
            self._base = self._plan_rest(0)
            self._planner.try_epochs(self._base.plan, check_world(self.world_size, self.micro_batches))
            self._named = self._planner.facts(self._base.plan)

    def __repr__(self) -> str:
        count = self._latest()
        delivered, batches = count.rest.before + count.delivered, len(count.rest)
        return (
            f"{type(self).__name__}(rank {self.rank} of {self.world_size}, epoch {self.epoch}, "
            f"{delivered} of {batches} batches delivered, {len(self.lengths)} sequences, {self.batching})"
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
        return cast(Plan, self._now().plan)  # that of a WindowSampler is a WindowEpoch, as its own `plan` says

    @property
    def epoch(self) -> int:
        return self._base.plan.epoch

    @property
    def start(self) -> int:
        """Batches of the epoch that each rank had before the pass: 0 unless a state was loaded."""
        return self._now().start

    @property
    def delivered(self) -> int:
        """Batches of the epoch that this rank has had, `start` included: what `state_dict` counts."""
        rest, taken = self._position()
        return rest.before + taken

    @property
    def sampler(self) -> BatchSampler:
        """Itself, because some trainers set the epoch of `loader.batch_sampler.sampler` alone."""
        return self

    def set_epoch(self, epoch: int, *, restart: bool = False) -> None:
        """Plans `epoch`, which the next pass yields; a position that was loaded for it is kept.

        If you do not call it after a loaded epoch has ended, the next pass yields that whole epoch again, and warns.

        Args:
            epoch: Counted from 0, and the same on every rank: ranks do not compare it.
            restart: Forget the position: the next pass yields the whole epoch.

        >>> import lengthwise as lw
        >>> sampler = BatchSampler([5, 9, 2], lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted()))
        >>> sampler.load_state_dict(sampler.state_dict(delivered=2))
        >>> sampler.set_epoch(0)
        >>> list(sampler)
        []
        >>> sampler.set_epoch(0, restart=True)
        >>> sorted(sampler)
        [[1], [2, 0]]
        """
        count, begun, same = self._latest(), self._passes.current is not None, epoch == self.epoch
        # The same number keeps the position, unless a pass has ended that epoch: then the epoch begins anew.
        if same and not restart and not (count.ended and count.handed):
            self._asked, self._epoch_set = begun or count.ended, True
            self._passes.retire()
            return
        if not same:
            loaded = not begun and count.rest.start > 0 and not self._epoch_set and not restart
            self._check_left(count, epoch, restart=restart, loaded=loaded)
        self._epoch_taken = count.rest.plan.epoch if count.handed > 1 and not restart else None
        self._stand(self._plan_rest(epoch))
        self._asked, self._epoch_set, self._restarted = same and begun, True, restart

    def total_steps(self, epochs: int) -> int:
        """The exact optimiser steps of the epochs 0 to epochs - 1, for a learning rate schedule: plans them all."""
        checks.check_whole("epochs", epochs, minimum=0, remedy="Give the number of epochs.")
        return sum(self._plan_rest(epoch).plan.steps for epoch in range(epochs))

    def summary(self, *, batch_size: int | None = None) -> str:
        """What the epoch that is set computes, in sentences to print, beside random batches.

        Args:
            batch_size: Sequences in a random batch, such as you had before; by default they are cut as the plan is.

        >>> import lengthwise as lw
        >>> sampler = BatchSampler([5, 9, 2, 4] * 10, lw.Batching(budget=40, order=lw.Sorted()))
        >>> sampler.summary(batch_size=4).splitlines()[-2]
        'Random batches of 4 take 10 steps, pad 35.1 %, and compute 1.5 times as much.'
        """
        rest, taken = self._position()
        return summarize(rest.plan, self.lengths, self.batching, before=rest.before, taken=taken, batch_size=batch_size)

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
            [len(self) - start] float64: one for each batch that this pass yields, or the next where none has begun.

        >>> import lengthwise as lw
        >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted())
        >>> sampler = BatchSampler([5, 9, 2], batching, micro_batches=2)
        >>> for batch, scale in zip(sampler, sampler.loss_scales(), strict=True):
        ...     print(batch, scale.round(2))
        [2, 0] 0.67
        [1] 0.33
        """
        scales = loss_scales(
            self.plan,
            weights,
            reduction=reduction,
            ranks_averaged=ranks_averaged,
            micro_batches_averaged=micro_batches_averaged,
        )
        return scales[:, :, self.rank].reshape(-1)[self._now().taken :]

    def state_dict(self, *, delivered: int | None = None) -> dict[str, Any]:
        """Where this run stands: the same on every rank, exact at every batch.

        Under a kilobyte, unless the number of ranks changes fifty times within one epoch. It counts what the trainer
        was handed, not what a DataLoader's workers fetched ahead.

        Args:
            delivered: Batches of the epoch that the trainer has had, `start` included. Give it if your loader is not
                PyTorch's own and fetches ahead.

        Returns:
            For `load_state_dict`, here or on another number of ranks; plain numbers and words, fit for JSON.
        """
        if delivered is None:
            rest, taken = self._position()
        else:
            count = self._passes.current
            rest = self._bound() if count is None else count.rest
            remedy = "Count from the beginning of the epoch."
            whole = checks.check_whole("delivered", delivered, minimum=rest.start, maximum=len(rest), remedy=remedy)
            taken = whole - rest.before
        plan = rest.plan
        facts = self._named | {"sequences": len(self.lengths), "epoch": plan.epoch, "plan": rest.fingerprint}
        return write_state(facts, World(plan.world_size, plan.micro_batches), rest.runs(taken))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state` was saved: the next pass yields what was not delivered of its epoch, and nothing else.

        The number of ranks may differ. If a step has as many batches (world size x micro-batches) as before, the same
        steps follow; otherwise the batches that no rank had are dealt anew. The epoch is then planned twice: first for
        the ranks of the state, to check that their plan is still the same.

        Raises:
            ValueError: `state` is not what `state_dict` gave.
            PlanMismatchError: It is of other lengths, another batching or seed; or only its plan differs, as after a
                change of your own cost; or the ranks loaded different states, or one could not load its own.
        """
        loader, _ = loader_among(list(callers())) if self.reads_callers else (None, "")
        with self._own_rank.alike(self._facts):
            position = read_state(state, self._named, sequences=len(self.lengths))
            rest = self._plan_rest(position.epoch, position.runs, position.world)
            position.check_plan(rest.fingerprint)
            if position.world != (self.world_size, self.micro_batches):
                rest = self._plan_rest(position.epoch, position.runs)
            # torchdata's loader loads its state with its first pass. If a later epoch was set by then, and the loaded
            # one has ended, the later one stands; so does an epoch that was begun anew.
            later = self._epoch_set and self.epoch > position.epoch
            if loader is None or not (self._restarted or (later and not rest.batches_left)):
                self._restarted = False
                self._epoch_set = loader is not None and self._epoch_set and self.epoch == position.epoch
                self._stand(rest)
                self._epoch_taken, self._restorer = None, None if loader is None else weakref.ref(loader)

    def __len__(self) -> int:
        """Batches of this rank in the whole epoch that is set, exact before it begins. A pass yields `start` fewer."""
        return len(self._now())

    def __iter__(self) -> Iterator[list[Any]]:
        return Pass(self._begin, self._check, self._notices.warn_at_end)

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the loader that draws out of copies and pickles: it belongs to this process."""
        count = self._passes.current
        return self.__dict__ | {"_passes": Passes([] if count is None else [count.copy_alone()]), "_restorer": None}

    def _begin(self, holder: Pass) -> tuple[Count, Iterator[NDArray[np.int64]]]:
        """Begins a pass, with its first batch: gives its count and its batches."""
        rest = self._bound()
        self._asked, self._restarted = True, False
        self._own_rank.check_started(self._facts)
        found = list(callers()) if self.reads_callers else []
        if self.reads_callers:
            check_callers(self, found, sequences=len(self.lengths), world_size=rest.plan.world_size)
        restored = self._restorer is not None and loader_among(found)[0] is self._restorer()
        self._restorer = None
        if restored and not rest.batches_left:  # a loader that restored the end of an epoch makes another pass at once
            return Count(rest), iter(())
        rest, again = self._second(rest, found)
        count = Count(rest, holder, consumer_of(found), reads_loops=self.reads_callers, again=again)
        self._passes.begin(count)
        return count, self._padded.follow(rest.plan.batches(self.rank, rest.taken), count, found, self.lengths)

    def _second(self, rest: Rest, found: Sequence[Caller]) -> tuple[Rest, bool]:
        """What a pass goes over, and whether it takes the epoch once more."""
        last = self._latest()
        if last.is_under_way and last.is_asked_for(found):
            self._notices.warn_new_pass(last.delivered, len(last.rest.plan), self.epoch)
        taken = last.was_taken and not last.is_under_way
        if taken and last.ended and rest.start:  # the position that was loaded is used up
            self._base = rest = self._plan_rest(self.epoch)
        if not rest.batches_left and len(rest) and not self._epoch_set:
            self._notices.warn_nothing_left(self.epoch)
        return rest, taken or self.epoch == self._epoch_taken

    def _check(self, count: Count) -> None:
        """Refuses a pass over another epoch than is set; warns once of a pass within another, and of a second one."""
        if self.epoch != count.rest.plan.epoch or count not in self._passes:
            raise changed(count.rest.plan.epoch, self.epoch)
        if count.again and count.handed:  # after one batch alone it may be a look, at the end of an epoch
            self._notices.warn_second_pass(self.epoch)
        if count.handed and self._passes.is_second(count):
            self._notices.warn_pass_within(self.epoch)

    def _latest(self) -> Count:
        """The pass that holds the position; where there is none, a count of nothing drawn yet."""
        return self._passes.current or Count(self._base)

    def _check_left(self, count: Count, epoch: int, *, restart: bool, loaded: bool) -> None:
        """Warns of an epoch left before its end, unless its last batches failed; refuses an epoch that nobody used."""
        delivered, batches = count.delivered, len(count.rest.plan)
        if loaded and (epoch < self.epoch or delivered < batches):
            self._notices.warn_left_position(self.epoch, epoch)
        elif 1 < delivered < batches and not restart and not count.is_spent:
            self._notices.warn_early_end(delivered, batches, self.epoch)
        if not self._asked:
            raise unused(self.epoch)

    def _stand(self, rest: Rest) -> None:
        """Makes `rest` what the next pass goes over, and ends the passes so far."""
        self._base, self._passes = rest, Passes()

    def _bound(self) -> Rest:
        """What is left, for the ranks there are now: torch.distributed may have started after the sampler was made."""
        if self._base.plan.world_size != self.world_size:
            self._base = self._plan_rest(self.epoch, self._base.runs(self._base.taken))
        return self._base

    def _now(self) -> Rest:
        """What the current pass goes over, or else the next. Whoever asks does use the sampler."""
        self._asked = True
        count = self._passes.current
        if count is None or count.rest.plan.world_size != self.world_size:
            return self._bound()
        return count.rest

    def _position(self) -> tuple[Rest, int]:
        """What the trainer goes over, and how many batches of it are taken; torch.distributed may have ended since."""
        count = self._passes.current
        found = list(callers()) if self.reads_callers else []
        # A loader that asks for the state itself, as torchdata's does, means its own pass and no other.
        if loader_among(found)[0] is not None and (count is None or count.consumer is not None):
            count = self._passes.find_asking(found)
        if count is not None:
            return count.rest, count.count_taken(found)
        rest = self._bound()
        return rest, rest.taken

    def _plan_rest(self, epoch: int, runs: tuple[EarlierRun, ...] = (), world: World | None = None) -> Rest:
        """What `runs` left, planned for `world`; by default for the ranks and micro-batches of this run."""
        world = world or check_world(self.world_size, self.micro_batches)
        earlier = [run.numbers for run in split_runs(runs, world)[0]]
        return Rest.after(runs, self._planner.plan(epoch, world, earlier, rank=self.rank))

    def _read(self, lengths: ArrayLike, times: ArrayLike | None) -> Planner:
        """What epochs are planned from. A sampler over windows has another one, and all else as it stands here."""
        return Planner.read(lengths, self.batching, seed=self.seed, times=times)

    def _facts(self) -> dict[str, Any]:
        """What all ranks must share."""
        base = self._base
        # The position is compared too: ranks that loaded different checkpoints would skip and repeat batches.
        runs = [run.numbers for run in base.runs(base.taken)]
        facts = {"micro_batches": self.micro_batches, "epoch": self.epoch, "runs": runs}
        return self._named | facts | {"plan": base.fingerprint}

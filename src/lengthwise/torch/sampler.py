"""The batch sampler: a plan and a position, nothing else."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch.utils.data import Sampler

from lengthwise import _checks
from lengthwise.batching import Batching
from lengthwise.lengths import as_lengths
from lengthwise.loss import loss_scales
from lengthwise.plan import Plan
from lengthwise.planning import make_plan
from lengthwise.torch.consumer import Consumer, consumer_of
from lengthwise.torch.position import Run, checked_state, parted, state_of
from lengthwise.torch.ranks import Place


@dataclass(slots=True)
class _Pass:
    """One iteration over a plan: from which batch, how many were drawn since, and by which loader's iterator.

    `skipped` are those that something between the sampler and the loader threw away, to resume without a state.
    """

    plan: Plan
    start: int
    drawn: int = 0
    skipped: int = 0
    consumer: Consumer | None = None

    @property
    def handed(self) -> int:
        """Batches that the trainer was handed, or skipped."""
        return self.drawn if self.consumer is None else self.skipped + self.consumer.handed

    def draw(self) -> None:
        """Counts a batch that is about to be drawn."""
        if self.consumer is not None:
            self.skipped = self.drawn - self.consumer.fetched
        self.drawn += 1

    @property
    def delivered(self) -> int:
        """Batches of the plan that the trainer has had."""
        return self.start + self.handed

    @property
    def ended(self) -> bool:
        return self.delivered >= len(self.plan)

    def taken(self) -> int:
        """Batches to be counted in a state: a loader that asks as it draws means the one that it has just drawn."""
        if self.consumer is not None and self.consumer.is_asking():
            return self.start + self.drawn
        if self.consumer is not None and not self.consumer.in_order and not self.ended:
            remedy = "Let the loader keep its order, or save between epochs only."
            raise _checks.value_error("in_order", "True, for a position to be kept", False, remedy)
        return self.delivered


class BatchSampler(Sampler[list[Any]]):
    """Yields the batches of one epoch, for `DataLoader(dataset, batch_sampler=...)`.

    The dataset is never touched: planning needs its lengths only. What goes wrong in use: an epoch that is never set.
    Call `set_epoch` before each epoch, or every epoch takes the same batches, which warns once; so does an epoch that
    is left before its end. One of which nobody asks for anything, because the trainer has a sampler of its own, raises
    when the next is set.

    Where torch.distributed is running and no rank is given, making a sampler (and loading a state) is a collective: all
    ranks compare their plans, and disagreement, or a rank that can make no plan, is an error there on all of them and
    not a hang later. Over nccl it goes through the
    current GPU: call `torch.cuda.set_device` before, or all ranks of a machine meet on its first.

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
        ValueError: As `make_plan` does, at once and not in the first epoch; and with the first batch where something
            between the sampler and its loader shares the batches out to the ranks once more.
        PlanMismatchError: Another rank plans otherwise, or not at all.

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
        remedy = "Give every rank the same lengths, batching, seed, micro_batches and checkpoint."
        self._place = Place(rank, world_size, remedy=remedy)
        self.batching = batching
        self.seed = seed
        self.micro_batches = micro_batches
        self._pass: _Pass | None = None
        self._epoch_taken: int | None = None
        self._asked = True  # for anything of the epoch, since it was set
        self._warned: set[str] = set()
        self._fingerprinted: tuple[Plan, str] | None = None
        with self._place.alike(self._facts):
            if not isinstance(batching, Batching):
                remedy = "Make one: lw.Batching(cut=lw.FixedSize(16)), say."
                raise _checks.type_error("batching", "a lengthwise.Batching", batching, remedy)
            self.lengths = as_lengths(lengths)
            self._plan_epoch(0)
            self._named = {
                "seed": self._plan.seed,
                "lengths": self._plan.lengths_fingerprint,
                "batching": json.loads(self._plan.batching),
            }

    @property
    def rank(self) -> int:
        return self._place.rank

    @property
    def world_size(self) -> int:
        return self._place.world_size

    @property
    def plan(self) -> Plan:
        """The plan of the epoch that is set; where a state was loaded, of what runs on other numbers of ranks left."""
        self._asked = True
        return self._bound()

    @property
    def epoch(self) -> int:
        return self._plan.epoch

    @property
    def start(self) -> int:
        """Batches of the epoch that each rank had before the next pass: 0, unless a state was loaded."""
        return len(self) - len(self.plan) + self._taken

    @property
    def delivered(self) -> int:
        """Batches of the epoch that this rank has had, `start` included: what `state_dict` counts."""
        return sum(taken for _, _, taken in self._runs_of(self._drawn_plan()))

    @property
    def sampler(self) -> BatchSampler:
        """Itself: some trainers set the epoch of `loader.batch_sampler.sampler` alone."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Plans `epoch`, which the next pass yields; a position that was loaded for it is kept."""
        current = self._pass or _Pass(self._plan, self._taken)
        if epoch == self.epoch and not (current.ended and current.handed):
            self._asked = current.ended or self._pass is not None
            return
        if current.delivered > 1 and not current.ended:
            rule = f"{len(current.plan)} before the next epoch, or sequences are lost"
            remedy = (
                "Raise the trainer's limit (total_steps tells the steps of the epochs), or let it ask for every epoch's"
                " length: Lightning's Trainer by reload_dataloaders_every_n_epochs=1."
            )
            self._warn("batches delivered", rule, current.delivered, remedy, at=f"epoch {self.epoch}")
        if not self._asked:
            remedy = (
                "Give it to the loader, DataLoader(dataset, batch_sampler=sampler), that loader to the trainer, and no "
                "training_data to deepspeed.initialize; to skip epochs, set only the one to begin with."
            )
            rule = "asked for batches of every epoch that is set"
            raise _checks.value_error("sampler", rule, "not asked", remedy, at=f"epoch {self.epoch}")
        self._leave()
        self._plan_epoch(epoch)
        self._asked = False

    def total_steps(self, epochs: int) -> int:
        """Optimiser steps of the epochs 0 to epochs - 1, exact, for a schedule of the learning rate: plans them all."""
        _checks.check_whole("epochs", epochs, minimum=0, remedy="Give the number of epochs.")
        return sum(self._planned(epoch).steps for epoch in range(epochs))

    def loss_scales(
        self,
        weights: ArrayLike | None = None,
        *,
        reduction: str = "mean",
        ranks_averaged: bool = True,
        micro_batches_averaged: bool = False,
    ) -> NDArray[np.float64]:
        """What to multiply the loss of each batch of a pass by: `lengthwise.loss_scales`, for this rank.

        Returns:
            [len(self) - start] float64: one for each batch that this pass yields, or the next where none has begun.

        >>> import lengthwise as lw
        >>> sampler = BatchSampler([5, 9, 2], lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted()), micro_batches=2)
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
        return scales[:, :, self.rank].reshape(-1)[self._taken :]

    def state_dict(self, *, delivered: int | None = None) -> dict[str, Any]:
        """Where this run stands: the same on every rank, exact at every batch.

        Under a kilobyte, unless the number of ranks changes fifty times within one epoch. What counts is what the
        trainer was handed, not what a DataLoader's workers fetched ahead.

        Args:
            delivered: Batches of the epoch that the trainer has had, `start` included, where it counts them itself:
                behind a loader that is not PyTorch's own and fetches ahead.

        Returns:
            For `load_state_dict`, here or on another number of ranks; plain numbers and words, fit for JSON.
        """
        plan, taken = self._drawn_plan(), None
        if delivered is not None:
            remedy = "Count from the beginning of the epoch."
            whole = _checks.check_whole("delivered", delivered, minimum=self.start, maximum=len(self), remedy=remedy)
            taken = whole - (len(self) - len(self.plan))
        place = {"world_size": plan.world_size, "micro_batches": plan.micro_batches}
        facts = self._named | {"epoch": plan.epoch} | place | {"plan": self._fingerprint_of(plan)}
        return state_of(facts, self._runs_of(plan, taken))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state` was saved: the next pass yields what was not delivered of its epoch, and nothing else.

        On another number of ranks too: where a step is as many batches (world size x micro-batches) as before, the same
        steps follow; else the batches that no rank had are dealt anew. There the epoch is planned twice: once for the
        ranks of the state, to see that their plan is still the same.

        Raises:
            ValueError: `state` is not what `state_dict` gave.
            PlanMismatchError: It is of other lengths, another batching or seed; or of the same and yet of another plan,
                as where a cost function of your own was changed; or the ranks loaded different states, or another of
                them could not load its own.
        """
        with self._place.alike(self._facts):
            position = checked_state(state, self._named)
            plan = self._planned(position.epoch, position.runs, position.place)
            position.check_plan(self._fingerprint_of(plan))
            if position.place != (self.world_size, self.micro_batches):
                plan = self._planned(position.epoch, position.runs)
            self._stand(plan, position.runs)
            self._pass = self._epoch_taken = None

    def __len__(self) -> int:
        """Batches of this rank in the whole epoch that is set: exact, before it begins. A pass yields `start` fewer."""
        earlier, _ = parted(self._runs, self.world_size, self.micro_batches)
        return sum(taken for _, _, taken in earlier) + len(self.plan)

    def __iter__(self) -> Iterator[list[Any]]:
        plan = self.plan
        self._place.check_started(self._facts)
        self._leave()
        if self.epoch == self._epoch_taken:
            remedy = "Call set_epoch with a new number before each epoch."
            self._warn("epoch", "another for every epoch", self.epoch, remedy, at="the second pass")
        current = self._pass = _Pass(plan, self._taken)
        for batch in plan.batches(self.rank, current.start):
            if not current.drawn:
                current.consumer = consumer_of(self, world_size=plan.world_size)
            elif self.epoch != plan.epoch:
                remedy = "Set the epoch, or load the position, before the loader begins to fetch its batches."
                raise _checks.value_error("epoch", f"{plan.epoch} until its pass has ended", self.epoch, remedy)
            elif current.handed:
                self._epoch_taken = plan.epoch  # now: persistent workers count from 0 again before the next pass
            current.draw()
            yield [tuple(span) for span in batch.tolist()] if batch.ndim == 2 else batch.tolist()

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles leave out the loader that draws: it is of this process."""
        state = self.__dict__.copy()
        if self._pass is not None:
            state["_pass"] = replace(self._pass, drawn=self._pass.handed, consumer=None)
        return state

    def _bound(self) -> Plan:
        """The plan for as many ranks as there are: torch.distributed may have started after the sampler was made."""
        if self._plan.world_size != self.world_size:
            self._plan_epoch(self.epoch, self._runs)
        return self._plan

    def _leave(self) -> None:
        """Ends the pass, if there is one; a look at the first batch took nothing."""
        if self._pass is not None and self._pass.handed > 1:
            self._epoch_taken = self._pass.plan.epoch
        self._pass = None

    def _plan_epoch(self, epoch: int, runs: tuple[Run, ...] = ()) -> None:
        self._stand(self._planned(epoch, runs), runs)

    def _planned(self, epoch: int, runs: tuple[Run, ...] = (), place: tuple[int, int] | None = None) -> Plan:
        """The plan of what `runs` left, for the world size and micro-batches of a place: this one, if none is given."""
        world_size, micro_batches = place or (self.world_size, self.micro_batches)
        return make_plan(
            self.lengths,
            self.batching,
            seed=self.seed,
            epoch=epoch,
            world_size=world_size,
            micro_batches=micro_batches,
            after=parted(runs, world_size, micro_batches)[0],
        )

    def _stand(self, plan: Plan, runs: tuple[Run, ...]) -> None:
        _, taken = parted(runs, plan.world_size, plan.micro_batches)
        _checks.check_whole("runs", taken, minimum=0, maximum=len(plan), remedy="Load the state as it was saved.")
        self._plan, self._runs, self._taken = plan, runs, taken

    def _drawn_plan(self) -> Plan:
        """Of the pass, where there is one: torch.distributed may have ended since it began."""
        return self._bound() if self._pass is None else self._pass.plan

    def _runs_of(self, plan: Plan, taken: int | None = None) -> tuple[Run, ...]:
        """The runs of the epoch, `plan`'s the last: with `taken` batches, or with those that the trainer has had."""
        earlier, _ = parted(self._runs, plan.world_size, plan.micro_batches)
        if taken is None:
            taken = self._taken if self._pass is None else self._pass.taken()
        return *earlier, (plan.world_size, plan.micro_batches, taken)

    def _fingerprint_of(self, plan: Plan) -> str:
        """Made once for each plan: a loader may ask for a state with every batch."""
        if self._fingerprinted is None or self._fingerprinted[0] is not plan:
            self._fingerprinted = plan, plan.fingerprint()
        return self._fingerprinted[1]

    def _facts(self) -> dict[str, Any]:
        """What all ranks must have alike."""
        facts = {"micro_batches": self.micro_batches, "epoch": self.epoch, "runs": self._runs}
        return self._named | facts | {"plan": self._fingerprint_of(self._plan)}

    def _warn(self, name: str, rule: str, value: object, remedy: str, *, at: str) -> None:
        if name not in self._warned:
            self._warned.add(name)
            warnings.warn(_checks.sentence(name, rule, value, remedy, at=at), stacklevel=3)

"""The loader: PyTorch's own, which counts the batches that a training loop has had.

Each `iter(loader)` is a loop with a count of its own. The position is that of the loop that was handed a batch last:

    a look        left after its first batch: it takes nothing
    closed        at its end, or left by a `break`: it keeps the position until another loop has its second batch
    open          may go on; beside another open one, nobody can tell which is trained on, and `state_dict` refuses

Say a loop has had 5 batches, and the fourth could not be read. Then `taken` is 5 or, once it has the next one, 6.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils import data

from lengthwise import checks
from lengthwise.choices.arithmetic import count_multiple, length_multiple
from lengthwise.choices.cut import Cut
from lengthwise.choices.rows import Rows
from lengthwise.torch.collate import PadCollate
from lengthwise.torch.guard import changed, check_dataset
from lengthwise.torch.position import Remainder
from lengthwise.torch.rows import RowCollate
from lengthwise.torch.sampler import BatchSampler
from lengthwise.torch.summary import describe_padding


class DataLoader(data.DataLoader[Any]):
    """PyTorch's `DataLoader` over the batches of a sampler, which counts those that it yields.

    `state_dict` is exact at every batch, also with workers, and loads on any number of ranks. What goes wrong in use: a
    wrapper that holds batches ahead of the training loop, such as a prefetching thread. No loader sees what it holds:
    give `state_dict(delivered=...)` your own count.

    - An iterator that is dropped after its first batch was a look, and takes nothing.
    - A batch that cannot be read counts once the loop goes on to the next one. Until then, a resumed run tries it.
    - An epoch that is left early, taken twice, or begun at another place than the loaded one warns once.
    - The first batches are compared with the plan. If their sizes do not go with it, a warning says so: the data set
      has another order than the lengths, or something pads before the collate function.

    `accelerator.prepare` leaves this loader as it is, and its `save_state` and `load_state` keep the position. Move the
    batches to the device yourself.

    Args:
        dataset: With `__getitem__` and, if it has a length, as many sequences as the sampler has lengths.
        batch_sampler: A `BatchSampler` or `WindowSampler`.
        collate_fn: From the samples of a batch to the batch. By default `PadCollate`, or `RowCollate` if the plan has
            packed rows, with the multiples and the capacity of the plan.
        generator: Seeds the workers. By default each epoch is seeded by the sampler's seed, the epoch, the rank and
            the position; PyTorch's own generator is left alone, so that a resumed run draws what the first would have.
        quiet: Whether to leave out the line that says, with the first batch, what an epoch pads.
        **options: As PyTorch's `DataLoader` takes them, such as `num_workers`.

    Raises:
        TypeError: `batch_sampler` is another sampler.
        ValueError: The data set has another size than the sampler; and with a batch, another epoch or position was set
            while the loop was under way.

    >>> import lengthwise as lw
    >>> data = [torch.ones(n) for n in (5, 9, 2, 4)]
    >>> sampler = BatchSampler([5, 9, 2, 4], lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted()))
    >>> loader = DataLoader(data, sampler, quiet=True)
    >>> for batch in loader:
    ...     print(list(batch.values.shape), loader.delivered, "of", len(loader))
    [2, 4] 1 of 2
    [2, 9] 2 of 2
    """

    # Accelerate leaves a loader with the first mark as it is, and keeps the state of one with the second.
    _is_accelerate_prepared = True
    use_stateful_dataloader = True

    batch_sampler: BatchSampler

    def __init__(
        self,
        dataset: Any,
        batch_sampler: BatchSampler,
        *,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        generator: torch.Generator | None = None,
        quiet: bool = False,
        **options: Any,
    ) -> None:
        if not isinstance(batch_sampler, BatchSampler):
            remedy = "Make one of the lengths and a batching; for an evaluation take PyTorch's own DataLoader."
            raise checks.type_error("batch_sampler", "a lengthwise.torch.BatchSampler", batch_sampler, remedy)
        check_dataset(dataset, len(batch_sampler.lengths))
        if not options.get("in_order", True):
            remedy = "Leave it out: the position is a count of the plan's first batches."
            raise checks.value_error("in_order", "True", False, remedy)
        collate: Any = collate_fn or _collate_as_planned(batch_sampler.batching.cut)
        self._own_generator = torch.Generator() if generator is None else None
        options["generator"] = self._own_generator or generator
        super().__init__(dataset, batch_sampler=batch_sampler, collate_fn=collate, **options)
        self.quiet = quiet
        self._loops = 0
        self._remainder, self._counts = batch_sampler.remainder, list[_Count]()

    @property
    def epoch(self) -> int:
        """The epoch that is set; after a state, the one to go on with."""
        return self.batch_sampler.epoch

    def set_epoch(self, epoch: int, *, restart: bool = False) -> None:
        """Chooses the epoch that the next loop takes; a position that was loaded for it is kept, and used once.

        Args:
            epoch: Counted from 0, and the same on every rank.
            restart: Forget the position: the next loop takes the whole epoch.
        """
        used_up = epoch == self.epoch and self._has_used_up()
        self.batch_sampler.set_epoch(epoch, restart=restart or used_up)
        self._current_counts()  # warns of an epoch that was left early
        self._counts = []

    @property
    def delivered(self) -> int:
        """Batches of the epoch that this rank has had, those before a loaded state included.

        Raises:
            ValueError: Nobody can tell: another loop over this loader is open.
        """
        counts = [count for count in self._current_counts() if not count.was_look]
        if any(count.is_open for count in counts[:-1]):
            remedy = (
                "Give the other loop a sampler and a loader of its own, and call set_epoch before each epoch; or give"
                " state_dict your own count."
            )
            raise checks.value_error("loops", "one at a time, for a position to be known", "two that are open", remedy)
        return counts[-1].delivered if counts else self._remainder.start

    def state_dict(self, *, delivered: int | None = None) -> dict[str, Any]:
        """Returns where this run stands: the same on every rank, under a kilobyte; see `BatchSampler.state_after`.

        Args:
            delivered: Batches of the epoch that were trained on, if something between this loader and the training
                loop holds more; by default those that this loader has yielded.
        """
        return self.batch_sampler.state_after(self.delivered if delivered is None else delivered)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state` was saved, on any number of ranks; see `BatchSampler.resume`."""
        self.batch_sampler.resume(state)
        self._remainder, self._counts = self.batch_sampler.remainder, []

    def __iter__(self) -> Iterator[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]  # PyTorch's, in ours
        if self._has_used_up():
            self.batch_sampler.notices.warn_second_pass(self.epoch)
            self.batch_sampler.set_epoch(self.epoch, restart=True)
        if self._own_generator is not None:
            place = (self.batch_sampler.seed, self.epoch, self.batch_sampler.rank, self.batch_sampler.start)
            self._own_generator.manual_seed(int(np.random.SeedSequence(place).generate_state(1, np.uint64)[0]))
        self._loops += 1
        return _Loop(self, super().__iter__(), self._loops)

    def _current_counts(self) -> list[_Count]:
        """The counts of the loops over what the sampler goes over now, the last of them by its last batch."""
        remainder = self.batch_sampler.remainder
        if remainder is not self._remainder:
            latest, self._counts, self._remainder = self._counts[-1:], [], remainder
            for count in latest:
                epoch = count.remainder.plan.epoch
                # An earlier epoch, or one that is gone on with, is another run.
                if count.taken > 1 and not count.has_all and epoch < remainder.plan.epoch and not remainder.start:
                    self.batch_sampler.notices.warn_early_end(count.delivered, len(count.remainder), epoch)
        return self._counts

    def _has_used_up(self) -> bool:
        """Tells if a loop has taken all that a loaded state left of its epoch."""
        return any(count.has_all for count in self._current_counts()) and self._remainder.start > 0

    def _note_end(self, count: _Count) -> None:
        """Counts a loop that asked for more than there is, and the batches at its end that failed."""
        count.ended, count.taken, count.failed = True, count.taken + count.failed, 0
        if count.remainder is self.batch_sampler.remainder and count not in self._current_counts():
            self._counts.append(count)

    def _note_batch(self, count: _Count, batch: Any) -> None:
        """Counts a batch that is handed on, and those before it that failed."""
        sampler = self.batch_sampler
        if count.remainder is not sampler.remainder:
            raise changed(count.remainder.plan.epoch, self.epoch)
        count.taken, count.failed = count.taken + 1 + count.failed, 0
        if self._counts != [count]:
            self._hand_position(count)
        if not sampler.padded.has_seen_enough:
            sampler.padded.look(batch, count.remainder.plan, sampler.rank, count.remainder.taken + count.taken - 1)

    def _hand_position(self, count: _Count) -> None:
        """Makes a loop the one that had a batch last: with its second one, closed loops give way."""
        sampler = self.batch_sampler
        others = [other for other in self._current_counts() if other is not count and not other.was_look]
        if count.taken > 1:
            if any(other.number < count.number and not other.is_open for other in others):
                sampler.notices.warn_second_pass(self.epoch)
            others = [other for other in others if other.is_open]
        self._counts = [*others, count]
        if not (self.quiet or sampler.rank) and sampler.notices.is_first("what an epoch pads"):
            print(describe_padding(count.remainder.plan, sampler.lengths), file=sys.stderr)


@dataclass(eq=False)
class _Count:
    """How far a loop is; it outlives the loop.

    Attributes:
        remainder: What the loop goes over.
        number: Counts the loops of the loader; a later loop has a larger one.
        loop: The iterator.
        taken: Batches that were handed on, and those before them that failed.
        failed: Batches that failed since.
        ended: Whether the loop asked for more than there is.
    """

    remainder: Remainder
    number: int
    loop: weakref.ref[Any]
    taken: int = 0
    failed: int = 0
    ended: bool = False

    @property
    def delivered(self) -> int:
        """Batches of the epoch that were delivered, with those before this loop."""
        return self.remainder.start + self.taken

    @property
    def has_all(self) -> bool:
        """Whether nothing is left. One batch alone may be a look, until the loop asks for more."""
        return self.ended or self.taken >= max(self.remainder.batches_left, 2)

    @property
    def is_open(self) -> bool:
        """Whether more batches may be handed on."""
        return not self.has_all and self.loop() is not None

    @property
    def was_look(self) -> bool:
        return self.taken == 1 and not self.ended and self.loop() is None


class _Loop(Iterator[Any]):
    """One loop over a loader."""

    def __init__(self, loader: DataLoader, batches: Iterator[Any], number: int) -> None:
        self._loader, self._batches, self._number = loader, batches, number
        # Workers have drawn the first batches. Without them, the epoch may be set until the first batch is asked for.
        self._count = self._begin() if loader.num_workers else None

    def _begin(self) -> _Count:
        return _Count(self._loader.batch_sampler.remainder, self._number, weakref.ref(self))

    def __next__(self) -> Any:
        loader = self._loader
        if loader.persistent_workers and self._number != loader._loops:
            remedy = "Persistent workers serve one loop at a time: give the other loop a loader of its own."
            raise checks.value_error("loop", "the one that was begun last", "an earlier one", remedy)
        if self._count is None:
            self._count = self._begin()
        try:
            batch = next(self._batches)
        except StopIteration:
            loader._note_end(self._count)
            raise
        except Exception:
            self._count.failed += 1
            raise
        loader._note_batch(self._count, batch)
        return batch


def _collate_as_planned(cut: Cut) -> PadCollate | RowCollate:
    """Returns the collate function that pads, or packs, as the plan counts."""
    if isinstance(cut, Rows):
        return RowCollate(cut.capacity, max_in_row=cut.max_in_row)
    return PadCollate(multiple_of=length_multiple(cut), count_multiple_of=count_multiple(cut))

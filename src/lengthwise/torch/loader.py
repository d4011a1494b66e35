"""PyTorch's DataLoader, which also counts the batches that it yields to a training loop.

Each `iter(loader)` is a loop with its own count. The loop that got the latest batch has the position:

    a look        was left after its first batch: its batch does not count
    closed        is at its end, or was left by a `break`: it has the position until another loop has two batches
    open          may go on: with two open loops, the position is unknown, and `state_dict` raises

A batch that raises an error counts once the next batch is read.
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
    """PyTorch's `DataLoader` over the batches of a sampler. It counts the batches that it yields.

    `state_dict` is exact at every batch, even with workers, and loads on any number of ranks. If a wrapper, such as a
    prefetching thread, reads batches ahead of the training loop, the loader counts them too: then give
    `state_dict(delivered=...)` your own count.

    - If an iterator is dropped after its first batch, that batch does not count.
    - A batch that cannot be read counts once the loop reads the next one. Until then, a resumed run tries it again.
    - You get one warning if an epoch is left early or taken twice, or if the loaded position is not used.
    - You get a warning if the sizes of the first batches do not match the plan. The data set may have another order
      than the lengths, or the samples may be padded before the collate function.

    `accelerator.prepare` leaves this loader as it is. `accelerator.save_state` and `load_state` keep its position. Move
    the batches to the device yourself.

    Args:
        dataset: A data set with `__getitem__`. Its `len`, if it has one, must be the number of the sampler's lengths.
        batch_sampler: A `BatchSampler` or `WindowSampler`.
        collate_fn: A function of a list of samples that returns a batch. By default `PadCollate`, or `RowCollate` if
            the plan has packed rows, with the multiples and the capacity of the plan.
        generator: Seeds the workers. By default each epoch is seeded by the sampler's seed, the epoch, the rank and the
            position, so that a resumed run draws the same numbers. PyTorch's global generator is not used.
        quiet: If True, does not print the padding of an epoch with the first batch.
        **options: Options of PyTorch's `DataLoader`, such as `num_workers`.

    Raises:
        TypeError: `batch_sampler` is not a `BatchSampler`.
        ValueError: The data set has another size than the sampler. In a loop: another epoch or position was set since
            it began.

    >>> import lengthwise as lw
    >>> data = [torch.ones(n) for n in (5, 9, 2, 4)]
    >>> sampler = BatchSampler([5, 9, 2, 4], lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted()))
    >>> loader = DataLoader(data, sampler, quiet=True)
    >>> for batch in loader:
    ...     print(list(batch.values.shape), loader.delivered, "of", len(loader))
    [2, 4] 1 of 2
    [2, 9] 2 of 2
    """

    # The first mark tells Accelerate to leave the loader as it is, the second to save its state.
    _is_accelerate_prepared = True
    use_stateful_dataloader = True

    batch_sampler: BatchSampler  # pyrefly: ignore[bad-override-mutable-attribute]  # no other is taken

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
        """The epoch that is set or loaded."""
        return self.batch_sampler.epoch

    def set_epoch(self, epoch: int, *, restart: bool = False) -> None:
        """Sets the epoch of the next loop. If a state of this epoch was loaded, its position is kept, and used once.

        Args:
            epoch: Counted from 0, and the same on every rank.
            restart: If True, forgets the position: the next loop takes the whole epoch.
        """
        used_up = epoch == self.epoch and self._has_used_up()
        self.batch_sampler.set_epoch(epoch, restart=restart or used_up)
        self._current_counts()  # warns of an epoch that was left early
        self._counts = []

    @property
    def delivered(self) -> int:
        """The batches of the epoch that this rank has had, including those before a loaded state.

        Raises:
            ValueError: Two loops over this loader are open, so the count is unknown.
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
        """Returns the position, the same on every rank, under a kilobyte; see `BatchSampler.state_after`.

        Args:
            delivered: The batches of the epoch that were trained on; by default those that this loader has yielded.
                Give it if a wrapper reads batches ahead.
        """
        return self.batch_sampler.state_after(self.delivered if delivered is None else delivered)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes where `state` was saved, on any number of ranks; see `BatchSampler.resume`."""
        self.batch_sampler.resume(state)
        self._remainder, self._counts = self.batch_sampler.remainder, []

    def __iter__(self) -> Iterator[Any]:  # pyrefly: ignore[bad-override]  # wraps PyTorch's own
        if self._has_used_up():
            self.batch_sampler.notices.warn_second_pass(self.epoch)
            self.batch_sampler.set_epoch(self.epoch, restart=True)
        if self._own_generator is not None:
            place = (self.batch_sampler.seed, self.epoch, self.batch_sampler.rank, self.batch_sampler.start)
            self._own_generator.manual_seed(int(np.random.SeedSequence(place).generate_state(1, np.uint64)[0]))
        self._loops += 1
        return _Loop(self, super().__iter__(), self._loops)

    def _current_counts(self) -> list[_Count]:
        """Returns the counts of the loops over the current plan and position; the last has the latest batch."""
        remainder = self.batch_sampler.remainder
        if remainder is not self._remainder:
            latest, self._counts, self._remainder = self._counts[-1:], [], remainder
            for count in latest:
                epoch = count.remainder.plan.epoch
                # No warning if the new epoch is earlier, or was loaded: then another run begins.
                if count.taken > 1 and not count.has_all and epoch < remainder.plan.epoch and not remainder.start:
                    self.batch_sampler.notices.warn_early_end(count.delivered, len(count.remainder), epoch)
        return self._counts

    def _has_used_up(self) -> bool:
        """Tells if a loop has taken all batches that a loaded state left of its epoch."""
        return any(count.has_all for count in self._current_counts()) and self._remainder.start > 0

    def _note_end(self, count: _Count) -> None:
        """Marks a loop as ended, and counts the failed batches at its end."""
        count.ended, count.taken, count.failed = True, count.taken + count.failed, 0
        if count.remainder is self.batch_sampler.remainder and count not in self._current_counts():
            self._counts.append(count)

    def _note_batch(self, count: _Count, batch: Any) -> None:
        """Counts a batch, and the failed batches just before it."""
        sampler = self.batch_sampler
        if count.remainder is not sampler.remainder:
            raise changed(count.remainder.plan.epoch, self.epoch)
        count.taken, count.failed = count.taken + 1 + count.failed, 0
        if self._counts != [count]:
            self._hand_position(count)
        if not sampler.padded.has_seen_enough:
            sampler.padded.look(batch, count.remainder.plan, sampler.rank, count.remainder.taken + count.taken - 1)

    def _hand_position(self, count: _Count) -> None:
        """Gives the position to a loop. When it has two batches, closed loops are forgotten."""
        sampler = self.batch_sampler
        counts = [loop for loop in self._current_counts() if loop is not count and not loop.was_look]
        if count.taken > 1:
            if any(loop.number < count.number and not loop.is_open for loop in counts):
                sampler.notices.warn_second_pass(self.epoch)
            counts = [loop for loop in counts if loop.is_open]
        self._counts = [*counts, count]
        if not (self.quiet or sampler.rank) and sampler.notices.is_first("what an epoch pads"):
            print(describe_padding(count.remainder.plan, sampler.lengths), file=sys.stderr)


@dataclass(eq=False)
class _Count:
    """A count of a loop's batches; it outlives the loop.

    Attributes:
        remainder: The plan and position that the loop reads.
        number: The number of the loop, rising with each `iter`.
        loop: The iterator.
        taken: The batches yielded, and the failed ones before them.
        failed: The batches that failed since the last one yielded.
        ended: True if the loop has reached its end.
    """

    remainder: Remainder
    number: int
    loop: weakref.ref[Any]
    taken: int = 0
    failed: int = 0
    ended: bool = False

    @property
    def delivered(self) -> int:
        """The batches of the epoch that were delivered, including those before this loop."""
        return self.remainder.start + self.taken

    @property
    def has_all(self) -> bool:
        """Tells if no batch is left. A single batch may be a look until the loop asks for more."""
        return self.ended or self.taken >= max(self.remainder.batches_left, 2)

    @property
    def is_open(self) -> bool:
        """Tells if the loop may yield more batches."""
        return not self.has_all and self.loop() is not None

    @property
    def was_look(self) -> bool:
        return self.taken == 1 and not self.ended and self.loop() is None


class _Loop(Iterator[Any]):
    """One loop over a loader."""

    def __init__(self, loader: DataLoader, batches: Iterator[Any], number: int) -> None:
        self._loader, self._batches, self._number = loader, batches, number
        # With workers, the first batches are drawn already. Without workers, the epoch may be set until the first
        # batch is read.
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
    """Returns the collate function whose padding or rows are those of the plan."""
    if isinstance(cut, Rows):
        return RowCollate(cut.capacity, max_in_row=cut.max_in_row)
    return PadCollate(multiple_of=length_multiple(cut), count_multiple_of=count_multiple(cut))

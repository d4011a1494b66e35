"""PyTorch's DataLoader, which also counts the batches that it yields to a training loop.

Each loop over the loader is a `Pass`, which counts its batches. The pass that had the latest batch has the position,
whether its loop goes on, was left, or has ended. If an earlier loop may go on too, the position is unknown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils import data

from lengthwise import checks
from lengthwise.choices.arithmetic import count_multiple, length_multiple
from lengthwise.choices.cut import Cut
from lengthwise.choices.rows import Rows
from lengthwise.torch.arrived import count_frames
from lengthwise.torch.collate import PadCollate
from lengthwise.torch.guard import changed, check_dataset
from lengthwise.torch.position import Pass, find_position
from lengthwise.torch.rows import RowCollate
from lengthwise.torch.sampler import BatchSampler, check_sampler
from lengthwise.torch.summary import describe_padding


class DataLoader(data.DataLoader[Any]):
    """PyTorch's `DataLoader` over the batches of a sampler. It counts the batches that it yields.

    `state_dict` is exact at every batch, even with workers, and loads on any number of ranks. Within a step it has the
    position before the step, whose gradients no checkpoint has. If a wrapper, such as a prefetching thread, reads
    batches ahead of the training loop, the loader counts them too: then give your own count by
    `state_dict(delivered=...)`.

    - Every batch that a loop yields counts. To look at a batch, take `peek`: it counts nothing.
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
            position: two runs that resume at the same place draw the same numbers. PyTorch's global generator is not
            used.
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
        check_sampler("batch_sampler", batch_sampler)
        check_dataset(dataset, batch_sampler.lengths)
        if not options.get("in_order", True):
            remedy = "Leave it out: the position is a count of the plan's first batches."
            raise checks.value_error("in_order", "True", False, remedy)
        for name, default in {"batch_size": 1, "shuffle": False, "sampler": None, "drop_last": False}.items():
            if options.get(name) is not None and options[name] != default:
                raise checks.value_error(name, "left out", options[name], "Delete it: `batch_sampler` has the batches.")
        collate: Any = collate_fn or _collate_as_planned(batch_sampler.batching.cut)
        self._own_generator = torch.Generator() if generator is None else None
        options["generator"] = self._own_generator or generator
        super().__init__(dataset, batch_sampler=batch_sampler, collate_fn=collate, **options)
        self.quiet = quiet
        self._options = options
        self._last_begun: Pass | None = None
        self._passes: list[Pass] = []  # those that had a batch, in the order of their latest ones

    @property
    def epoch(self) -> int:
        """The epoch that is set or loaded; it stays until `set_epoch` sets the next."""
        return self.batch_sampler.epoch

    def set_epoch(self, epoch: int, *, restart: bool = False) -> None:
        """Sets the epoch of the next loop. If a state of this epoch was loaded, its position is kept, and used once.

        Args:
            epoch: Counted from 0, and the same on every rank.
            restart: If True, forgets the position: the next loop takes the whole epoch.
        """
        self.batch_sampler.set_epoch(epoch, restart=restart or self._has_ended_the_rest())
        self._current_passes()  # warns of an epoch that was left early
        self._passes = []

    @property
    def delivered(self) -> int:
        """The batches of the epoch that this rank has had, including those before a loaded state.

        Raises:
            ValueError: Two loops have begun and the earlier one may go on, so the count is unknown.
        """
        return find_position(self._current_passes(), self.batch_sampler.start)

    def peek(self) -> Any:
        """Returns the first batch of the next loop, which will yield it again: a look that no state counts.

        Once nothing is left of an epoch, this is the first batch of the plan. With workers, one worker reads the batch.

        Raises:
            ValueError: The plan has no batch.

        >>> import lengthwise as lw
        >>> sampler = BatchSampler([5, 9, 2, 4], lw.Batching(cut=lw.FixedSize(4)))
        >>> loader = DataLoader("abcd", sampler, collate_fn=sorted)
        >>> loader.peek(), loader.delivered
        (['a', 'b', 'c', 'd'], 0)
        """
        remainder, rank = self.batch_sampler.remainder, self.batch_sampler.rank
        first = next(remainder.batches(rank, remainder.plan_start if remainder.batches_left else 0), None)
        if first is None:
            raise checks.state_error(f"Nothing is left of epoch {self.epoch}", "Set the next epoch, then look.")
        one_worker: dict[str, Any] = {"num_workers": min(self.num_workers, 1), "persistent_workers": False}
        options = self._options | one_worker | {"generator": self._seed(torch.Generator())}
        (batch,) = data.DataLoader(self.dataset, batch_sampler=[first], collate_fn=self.collate_fn, **options)
        return batch

    def state_dict(self, *, delivered: int | None = None) -> dict[str, Any]:
        """Returns the position, the same on every rank, under a kilobyte; see `BatchSampler.state_after`.

        Args:
            delivered: The batches of the epoch that were trained on; by default those that this loader has yielded.
                Give it if a wrapper reads batches ahead.
        """
        if delivered is None:
            delivered = self.delivered
            if any(loop.state == "left" and loop.taken == 1 for loop in self._passes[-1:]):
                self.batch_sampler.notices.warn_only_batch(self.epoch)
        return self.batch_sampler.state_after(delivered)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes where `state` was saved, on any number of ranks; see `BatchSampler.resume`."""
        self.batch_sampler.resume(state)
        self._passes = []

    def __iter__(self) -> Iterator[Any]:  # pyrefly: ignore[bad-override]  # wraps PyTorch's own
        return _Reader(self)

    def _begin(self) -> tuple[Pass, Iterator[Any]]:
        """Begins a pass over PyTorch's batches."""
        # A single batch may have been a look.
        if any(loop.state == "ended" or (loop.taken > 1 and not loop.may_go_on) for loop in self._current_passes()):
            look = " Look at a batch by loader.peek()."
            self.batch_sampler.notices.warn_second_pass(self.epoch, look)
        if self._has_ended_the_rest():
            self.batch_sampler.set_epoch(self.epoch, restart=True)
        if self._own_generator is not None:
            self._seed(self._own_generator)
        self.batch_sampler.remainder.is_counted = True
        batches = super().__iter__()
        self._last_begun = Pass(self.batch_sampler.remainder)
        return self._last_begun, batches

    def _seed(self, generator: torch.Generator) -> torch.Generator:
        """Seeds the workers of the next pass."""
        place = (self.batch_sampler.seed, self.epoch, self.batch_sampler.rank, self.batch_sampler.start)
        return generator.manual_seed(int(np.random.SeedSequence(place).generate_state(1, np.uint64)[0]))

    def _current_passes(self) -> list[Pass]:
        """Returns the passes over what the sampler has now; warns if an earlier epoch was left early."""
        remainder = self.batch_sampler.remainder
        if self._passes and self._passes[-1].remainder is not remainder:
            latest, self._passes = self._passes[-1], []
            old, is_early = latest.remainder, 1 < latest.taken < latest.remainder.batches_left
            # If the new epoch is earlier or was loaded, another run begins. A single batch may have been a look.
            if is_early and old.plan.epoch < remainder.plan.epoch and not remainder.start:
                delivered = old.start + latest.taken
                self.batch_sampler.notices.warn_early_end(delivered, old.batches_in_epoch, old.plan.epoch)
        return self._passes

    def _has_ended_the_rest(self) -> bool:
        """Tells if a loop was at the end of the epoch whose rest was loaded."""
        return self.batch_sampler.start > 0 and any(loop.state == "ended" for loop in self._current_passes())

    def _give_position(self, latest: Pass) -> None:
        """Gives the position to the pass that had the latest batch, or that has ended."""
        passes, sampler = self._current_passes(), self.batch_sampler
        if latest.remainder is not sampler.remainder:
            return
        if latest.taken and not (self.quiet or sampler.rank) and sampler.notices.is_first("what an epoch pads"):
            earlier = latest.remainder.earlier_batches
            print(describe_padding(latest.remainder.plan, sampler.lengths, earlier_batches=earlier), file=sys.stderr)
        # A trainer may draw the batches of a step before it asks for their scales.
        if latest.taken > sampler.micro_batches and sampler.scaled not in (None, (sampler.epoch, sampler.start)):
            sampler.notices.warn_old_scales(self.epoch)
        self._passes = [*(loop for loop in passes if loop.state == "open" and loop is not latest), latest]


class _Reader(Iterator[Any]):
    """The iterator of one loop over a loader."""

    _reading: tuple[Pass, Iterator[Any]] | None = None

    def __init__(self, loader: DataLoader) -> None:
        self._loader = loader
        # Workers fetch batches at once. Without workers, the epoch may be set until the first batch is read.
        if loader.num_workers:
            self._reading = loader._begin()

    def __del__(self) -> None:
        if self._reading is not None and self._reading[0].state == "open":
            self._reading[0].state = "left"

    def __next__(self) -> Any:
        loader, sampler = self._loader, self._loader.batch_sampler
        self._reading = loop, batches = self._reading or loader._begin()
        if loader.persistent_workers and loop is not loader._last_begun:
            remedy = "Give the other loop a loader of its own."
            raise checks.state_error("Persistent workers serve one loop at a time, and a later one has begun", remedy)
        try:
            batch = next(batches)
        except StopIteration:
            loop.count(0)
            loop.state = "ended"
            loader._give_position(loop)
            raise
        except BaseException as error:
            # Without workers, the batch is gone. With workers, an error of the batch comes in its place. Any other
            # error, such as a timeout or Ctrl-C, came while the loop waited: then the same batch comes next. If an
            # error hides PyTorch's text, a resumed run may take a batch again, but loses none.
            loop.failed += not loader.num_workers or " in DataLoader worker process " in str(error)
            raise
        if loop.remainder is not sampler.remainder:
            raise changed(loop.remainder.plan.epoch, sampler.epoch)
        loop.count(1)
        loader._give_position(loop)
        sampler.arrived += count_frames(batch, sampler.lengths[:1].size)
        if not sampler.padded.has_seen_enough:
            sampler.padded.look(batch, loop.remainder.plan, sampler.rank, loop.remainder.plan_start + loop.taken - 1)
        return batch


def _collate_as_planned(cut: Cut) -> PadCollate | RowCollate:
    """Returns the collate function whose padding or rows are those of the plan."""
    if isinstance(cut, Rows):
        return RowCollate(cut.capacity, max_in_row=cut.max_in_row)
    return PadCollate(multiple_of=length_multiple(cut), count_multiple_of=count_multiple(cut))

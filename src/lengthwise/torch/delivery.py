"""Passes over a plan: each counts what it drew, and what of that the trainer was handed.

A look at the first batch, a loop that counts the batches, two loaders over one sampler: each is a pass of its own.
`Passes` decides which of them holds the position, that is, what a checkpoint says was taken.

    drawn    batches that were asked for; workers fetch ahead
    lost     drawn batches that nobody will be handed: thrown away to resume, or failed to load
    handed   drawn batches that the trainer has had, and those lost before them
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.torch.consumer import Caller, Consumer, Loop, find_loops
from lengthwise.torch.rest import Rest


class Count:
    """How far one pass is, whether it goes on, and where it began. The count outlives the pass.

    Say a loader with two workers has drawn 5 batches, the first of them was thrown away to resume, and the loop has had
    3. Then `drawn` is 5, `handed` is 4, and the fifth is on its way. Of a rest of which 40 were taken before,
    `delivered` is 44.

    A pass is one of these, first to last:

        a look      left after its first batch; it takes nothing
        under way   in the middle of its loop: it holds the position
        ended       every batch was handed on

    Args:
        rest: What the pass goes over.
        owner: The pass; kept by a weak reference alone.
        consumer: The loader that draws; None for a plain loop, which is handed what it draws.
        reads_loops: Whether to look through the callers for the loop that asks for batches.
        again: Whether another pass has taken the epoch before.
    """

    def __init__(
        self,
        rest: Rest,
        owner: object | None = None,
        consumer: Consumer | None = None,
        *,
        reads_loops: bool = False,
        again: bool = False,
    ) -> None:
        self.rest = rest
        self.consumer = consumer
        self.reads_loops = reads_loops
        self.again = again
        self._owner = None if owner is None else weakref.ref(owner)
        # How far it is:
        self.drawn = 0
        self._lost = 0
        self._skipped: int | None = None  # the lost ones before the loader's first batch; None until that is known
        self.asked_past_end = False
        # Its loops, and where it began:
        self.loops: tuple[Loop, ...] = ()  # those that ask for its batches
        self.outer: Count | None = None  # the pass that was under way when it began
        self.began_in_a_loop = False  # in the body of a loop over another pass
        self.began_another = False  # another pass began in the body of a loop over this one
        self._epoch_set_since = False
        if owner is not None and consumer is not None and consumer.one_by_one:
            # Persistent workers set the loader's counts to 0 for the next pass: keep them when this one ends.
            weakref.finalize(owner, consumer.remember).atexit = False

    # How far it is.

    @property
    def handed(self) -> int:
        """Batches that the trainer was handed, and those lost before them."""
        if self.consumer is None or self.consumer.is_over:
            return self.drawn
        # 5 drawn, 1 lost, 3 handed on by the loader: the position is 4, and the fifth is still on its way.
        return min(self.drawn, self._lost + self.consumer.handed)

    @property
    def delivered(self) -> int:
        """Batches of the plan that the trainer has had."""
        return self.rest.taken + self.handed

    @property
    def ended(self) -> bool:
        return self.delivered >= len(self.rest.plan)

    @property
    def is_spent(self) -> bool:
        """Whether nothing can follow: every batch was handed on, or failed to load."""
        # If the last batches failed, all were drawn and came back, and yet not all were handed on.
        all_drawn = self.drawn >= self.rest.batches_left
        return self.ended or (all_drawn and self.consumer is not None and self.consumer.has_back(self.drawn))

    @property
    def lost_within(self) -> tuple[int, int]:
        """Batches that nobody was handed, and all that were drawn; without those skipped at first, to resume."""
        skipped = self._skipped or 0
        return self._lost - skipped, self.drawn - skipped

    def note_lost(self) -> None:
        """Counts, before a batch is drawn, how many of those before it were lost."""
        if self.consumer is not None and self.consumer.is_live:
            self._lost = self.consumer.count_lost(self.drawn)
            if self._skipped is None and self._lost < self.drawn:
                self._skipped = self._lost

    # Whether it goes on.

    @property
    def exists(self) -> bool:
        """Whether somebody keeps the pass, and so could go on with it."""
        return self._owner is not None and self._owner() is not None

    @property
    def is_live(self) -> bool:
        """Whether more batches may be handed on: a loader goes on with those that it fetched ahead."""
        return self.exists if self.consumer is None else self.consumer.is_live

    @property
    def is_under_way(self) -> bool:
        """Whether a loop is in the middle of it. After one batch it may still be a look that somebody keeps."""
        begun = self.handed > 1 or self.began_another
        return self.is_live and begun and not self.ended and not self._epoch_set_since

    @property
    def is_look(self) -> bool:
        """Whether it was a look: left after its first batch."""
        return not self.is_live and self.handed <= 1 and not self.ended

    @property
    def was_taken(self) -> bool:
        """Whether it counts as taken, so that another pass takes the epoch a second time."""
        return self.handed > 1 or (self.ended and self.asked_past_end)

    @property
    def is_in_loop_body(self) -> bool:
        """Whether the caller of this runs in the body of a loop over the pass."""
        return not self._epoch_set_since and any(loop.is_running for loop in self.loops)

    def note_epoch_set(self) -> None:
        """Ends what is under way: the epoch was set once more."""
        self._epoch_set_since = True

    # Where it began, and who draws.

    @property
    def is_within(self) -> bool:
        """Whether it began within a loop that goes on, or has ended. If the loop was left, this pass took its place."""
        return self.began_in_a_loop or (self.outer is not None and (self.outer.is_live or self.outer.ended))

    def is_of(self, iterator: object) -> bool:
        """Whether `iterator` is the pass itself."""
        return self._owner is not None and self._owner() is iterator

    def is_asked_for(self, found: Sequence[Caller]) -> bool:
        """Whether the loader is among the callers. That of torchdata asks for a state while it draws."""
        return self.consumer is not None and self.consumer.is_among(found)

    # What a state is made of.

    def count_taken(self, found: Sequence[Caller]) -> int:
        """Batches that a state counts. A loader that asks while it draws includes the batch that it has just drawn."""
        if self.consumer is None:
            return self.delivered
        if self.consumer.fetches_ahead and self.is_asked_for(found):
            return self.rest.taken + self.drawn
        if not self.consumer.in_order and not self.ended:
            remedy = "Let the loader keep its order, or save between epochs only."
            raise checks.value_error("in_order", "True, for a position to be kept", False, remedy)
        return self.delivered

    def copy_alone(self) -> Count:
        """A copy without the loader, which belongs to this process."""
        # What the loader fetched ahead stays with it: the copy counts as drawn what was handed on.
        copied = Count(self.rest)
        copied.drawn, copied.asked_past_end = self.handed, self.asked_past_end
        return copied


class Passes:
    """The passes since the epoch was set, or a position was loaded."""

    def __init__(self, counts: Sequence[Count] = ()) -> None:
        self._counts = list(counts)

    @property
    def current(self) -> Count | None:
        """The pass that holds the position, if there is any.

        1. The loop that is under way: passes that begin within it, to look at batches or count them, do not move it.
        2. Else the last pass that was not a look. A pass of one batch may still be a look, so an earlier pass
           that took the epoch to its end goes before it.
        """
        if not self._counts:
            return None
        # The first loop that is under way began first: those that began within it stand behind it.
        for count in self._counts:
            if count.is_under_way:
                return count
        own = [count for count in self._counts if not count.is_look and not count.is_within]
        # An epoch taken to its end, then next(iter(loader)): the position stays at the end of the epoch.
        if own and own[-1].handed <= 1:
            own = [count for count in own if count.ended and count.handed > 1] or own
        return (own or [count for count in self._counts if not count.began_in_a_loop] or self._counts)[-1]

    def begin(self, count: Count) -> None:
        """Adds a pass, and forgets those that can no longer hold the position."""
        for other in self._counts:
            if other.consumer is not None:
                other.consumer.end_for(count.consumer)
        # Whose loop is running now? The new pass begins in its body, and so does not take its place.
        around = next((other for other in reversed(self._counts) if other.is_live and other.is_in_loop_body), None)
        if around is not None:
            around.began_another = count.began_in_a_loop = True
        current = self.current
        count.outer = current if current is not None and current.is_under_way else None
        # A pass that is over counts no more, unless it holds the position. So a thousand looks keep no thousand counts.
        self._counts = [other for other in self._counts if other.is_live or other is current]
        self._counts.append(count)

    def is_second(self, count: Count) -> bool:
        """Whether another loop is under way, and holds the position."""
        current = self.current
        return current is not count and current is not None and current.is_under_way

    def find_asking(self, found: Sequence[Caller]) -> Count | None:
        """The pass whose loader is among the callers; None if that pass has not begun."""
        return next((count for count in self._counts if count.exists and count.is_asked_for(found)), None)

    def __contains__(self, count: object) -> bool:
        return count in self._counts

    def retire(self) -> None:
        """Ends the passes so far, as the epoch was set once more: no later pass is within them. Forgets empty ones."""
        self._counts = [count for count in self._counts if count.rest.batches_left]
        for count in self._counts:
            count.note_epoch_set()


Begin = Callable[["Pass"], tuple[Count, Iterator[NDArray[np.int64]]]]


class Pass(Iterator[list[Any]]):
    """One iteration over the batches of a rank. It begins with its first batch; until then the epoch may be set.

    Args:
        begin: Called for the first batch: gives the count of the pass, and its batches.
        check: Called for every later batch: refuses a pass that must not go on.
        end: Called when more is asked for than there is.
    """

    def __init__(self, begin: Begin, check: Callable[[Count], None], end: Callable[[Count], None]) -> None:
        self._begin, self._check, self._end = begin, check, end
        self._count: Count | None = None

    def __next__(self) -> list[Any]:
        if self._count is None:
            self._count, self._batches = self._begin(self)
        # Behind the last batch there is nothing to check: a loader may ask once more after the next epoch was set.
        elif self._count.drawn < self._count.rest.batches_left:
            self._check(self._count)
        self._count.note_lost()
        # Until a batch was handed on: the same loops ask for all later ones.
        if self._count.reads_loops and not self._count.handed:
            self._count.loops = find_loops()
        batch = next(self._batches, None)
        if batch is None:
            self._count.asked_past_end = True
            self._end(self._count)
            raise StopIteration
        self._count.drawn += 1
        # Chunks are rows (sequence, start, stop): the dataset is given one of them at a time, as a tuple.
        return [tuple(span) for span in batch.tolist()] if batch.ndim == 2 else batch.tolist()

"""Passes over a plan, each of which counts for itself: what it drew, and what of that the trainer was handed.

A look at the first batch, a loop that counts the batches, two loaders over one sampler: each is a pass of its own.
`Passes` says which of them the position is of.

    drawn    batches that were asked for; workers fetch ahead
    lost     those of them that nobody will be handed: thrown away to resume, or impossible to load
    handed   those of them that the trainer has had, or that were lost before those
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
    """What one pass has drawn and handed on; it outlives the pass.

    Args:
        rest: What the pass goes over.
        holder: The pass, which is not held.
        consumer: The loader that draws; None where a plain loop does, which is handed what it draws.
        reads_loops: Whether to look through the callers for the loop that asks for batches.
    """

    def __init__(
        self,
        rest: Rest,
        holder: object | None = None,
        consumer: Consumer | None = None,
        *,
        reads_loops: bool = False,
    ) -> None:
        self.rest = rest
        self.reads_loops = reads_loops
        self.drawn = 0
        self.exhausted = False  # whether more was asked for than there is
        self.consumer = consumer
        self.outer: Count | None = None  # the loop within which it began
        self.loops: tuple[Loop, ...] = ()  # that ask for its batches
        self.holds = False  # whether a pass began in the body of one of them
        self.is_nested = False  # whether it began in such a body itself
        self._lost = 0
        self._retired = False
        self._holder = None if holder is None else weakref.ref(holder)
        if holder is not None and consumer is not None and consumer.one_by_one:
            weakref.finalize(holder, consumer.remember).atexit = False

    @property
    def handed(self) -> int:
        """Batches that the trainer was handed, and those lost before."""
        if self.consumer is None or self.consumer.is_over:
            return self.drawn
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
        """Whether each batch was handed on, or its loading failed: nothing can follow."""
        all_drawn = self.drawn >= self.rest.batches_left
        return self.ended or (all_drawn and self.consumer is not None and self.consumer.has_all_back)

    @property
    def is_held(self) -> bool:
        """Whether anyone could still go on with the pass."""
        return self._holder is not None and self._holder() is not None

    @property
    def is_live(self) -> bool:
        """Whether more batches may be handed on: a loader goes on with those that it fetched ahead."""
        return self.is_held if self.consumer is None else self.consumer.is_live

    @property
    def is_under_way(self) -> bool:
        """Whether a loop is in the middle of it; one batch alone may be a look that somebody keeps."""
        return self.is_live and not self._retired and (self.handed > 1 or self.holds) and not self.ended

    @property
    def is_look(self) -> bool:
        """Whether it was left with the first batch."""
        return not self.is_live and self.handed <= 1 and not self.ended

    @property
    def is_within(self) -> bool:
        """Whether it began within a loop, and not in the place of one that was left."""
        return self.is_nested or (self.outer is not None and (self.outer.is_live or self.outer.ended))

    @property
    def is_running(self) -> bool:
        """Whether whoever calls this is called from the body of a loop over the pass."""
        return not self._retired and any(loop.is_running for loop in self.loops)

    @property
    def was_taken(self) -> bool:
        """Whether another pass takes the epoch a second time."""
        return self.handed > 1 or (self.ended and self.exhausted)

    def note(self) -> None:
        """Before a batch is drawn: counts what was lost of those before it."""
        if self.consumer is not None and self.consumer.is_live:
            self._lost = self.consumer.count_lost(self.drawn)

    def retire(self) -> None:
        self._retired = True

    def is_asked_for(self, found: Sequence[Caller]) -> bool:
        """Whether the loader itself is among the callers: torchdata's asks for a state as it draws."""
        return self.consumer is not None and self.consumer.is_among(found)

    def count_taken(self, found: Sequence[Caller]) -> int:
        """Batches to be counted in a state: a loader that asks as it draws means the one that it has just drawn."""
        if self.consumer is None:
            return self.delivered
        if self.consumer.fetches_ahead and self.is_asked_for(found):
            return self.rest.taken + self.drawn
        if not self.consumer.in_order and not self.ended:
            remedy = "Let the loader keep its order, or save between epochs only."
            raise checks.value_error("in_order", "True, for a position to be kept", False, remedy)
        return self.delivered

    def copy_alone(self) -> Count:
        """A copy without the loader, which is of this process."""
        copied = Count(self.rest)
        copied.drawn, copied.exhausted = self.handed, self.exhausted
        return copied


class Passes:
    """The passes since the epoch was set, or a position was loaded."""

    def __init__(self, counts: Sequence[Count] = ()) -> None:
        self._counts = list(counts)

    @property
    def current(self) -> Count | None:
        """The pass that the position is of, where there is any.

        A loop that is under way: what begins within it, to look at batches or to count them, does not move it. Else
        the last that was not a look. One that has had a single batch may still be a look: an epoch that was taken to
        its end goes before it.
        """
        if not self._counts:
            return None
        for count in self._counts:
            if count.is_under_way:
                return count
        own = [count for count in self._counts if not count.is_look and not count.is_within]
        if own and own[-1].handed <= 1:
            own = [count for count in own if count.ended and count.handed > 1] or own
        return (own or [count for count in self._counts if not count.is_nested] or self._counts)[-1]

    def begin(self, count: Count) -> None:
        """Adds a pass; those that it makes meaningless are forgotten."""
        for other in self._counts:
            if other.consumer is not None:
                other.consumer.end_for(count.consumer)
        holder = next((other for other in reversed(self._counts) if other.is_live and other.is_running), None)
        if holder is not None:
            holder.holds = count.is_nested = True
        current = self.current
        count.outer = current if current is not None and current.is_under_way else None
        self._counts = [other for other in self._counts if other.is_live or other is current]
        self._counts.append(count)

    def is_second(self, count: Count) -> bool:
        """Whether another loop is under way, which the position is of."""
        current = self.current
        return current is not count and current is not None and current.is_under_way

    def find_asking(self, found: Sequence[Caller]) -> Count | None:
        """The pass whose loader is among the callers; None where its pass has not begun."""
        return next((count for count in self._counts if count.is_held and count.is_asked_for(found)), None)

    def __contains__(self, count: object) -> bool:
        return count in self._counts

    def retire(self) -> None:
        """The epoch was set once more: what begins now does not begin within these, and an empty pass is forgotten."""
        self._counts = [count for count in self._counts if count.rest.batches_left]
        for count in self._counts:
            count.retire()


Begin = Callable[["Pass"], tuple[Count, Iterator[NDArray[np.int64]]]]


class Pass(Iterator[list[Any]]):
    """One iteration over the batches of a rank. It begins with its first batch: until then an epoch may be set.

    Args:
        begin: Gives, with the first batch, where the pass counts and its batches.
        check: Refuses a pass that must not go on.
    """

    def __init__(self, begin: Begin, check: Callable[[Count], None]) -> None:
        self._begin, self._check = begin, check
        self._count: Count | None = None

    def __next__(self) -> list[Any]:
        if self._count is None:
            self._count, self._batches = self._begin(self)
        elif self._count.drawn < self._count.rest.batches_left:
            self._check(self._count)
        self._count.note()
        if self._count.reads_loops and not self._count.handed:
            self._count.loops = find_loops()
        batch = next(self._batches, None)
        if batch is None:
            self._count.exhausted = True
            raise StopIteration
        self._count.drawn += 1
        return [tuple(span) for span in batch.tolist()] if batch.ndim == 2 else batch.tolist()

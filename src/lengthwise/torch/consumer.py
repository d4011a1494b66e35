"""The loader that draws from a sampler: what it has handed on of what it fetched.

PyTorch tells a sampler neither. Its loader is read off the call stack, once a pass, when the first batch is drawn.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

from torch.utils.data.dataloader import _BaseDataLoaderIter

from lengthwise import checks


class Caller(NamedTuple):
    """An object whose method is running, and the name of the method."""

    holder: object
    method: str


def callers() -> Iterator[Caller]:
    """The objects whose methods are running, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_varnames[:1] == ("self",):  # no others: a look at a frame keeps its variables alive
            yield Caller(frame.f_locals.get("self"), frame.f_code.co_name)
        frame = frame.f_back


def loader_among(found: Sequence[Caller]) -> tuple[_BaseDataLoaderIter | None, str]:
    """The innermost iterator of a loader, and its method that is running; None and no method where there is none."""
    for holder, method in found:
        if isinstance(holder, _BaseDataLoaderIter):
            return holder, method
    return None, ""


class Consumer:
    """The iterator of a loader that draws from a sampler.

    Its counts outlive it, and it is not held: its workers are to end with the loop that was left, and not when the
    garbage collector comes by, where PyTorch waits ten seconds for them.

    Args:
        iterator: Of a loader.
        one_by_one: Whether the loader asks for each batch when it wants it. Where it does not, a sampler between them
            drew all batches before the loader counted its first: what it throws away cannot be told.
    """

    def __init__(self, iterator: _BaseDataLoaderIter, *, one_by_one: bool = True) -> None:
        self.in_order = getattr(iterator, "_in_order", True)
        self.one_by_one = one_by_one
        self._state: dict[str, Any] | None = vars(iterator)
        self._before = self._state["_num_yielded"] if one_by_one else 0  # torchdata's counts on from a loaded state
        self._known = 0
        weakref.finalize(iterator, self.end).atexit = False

    @property
    def is_live(self) -> bool:
        """Whether the loader may still hand on batches of this pass."""
        return self._state is not None

    @property
    def handed(self) -> int:
        """Batches that the caller of the loader has been handed since this was made."""
        if self._state is None:
            return self._known
        return max(self._known, self._state.get("_num_yielded", 0) - self._before)

    @property
    def fetches_ahead(self) -> bool:
        return self._state is not None and "_send_idx" in self._state

    def lost(self, drawn: int) -> int:
        """Of `drawn` batches, those that nobody will be handed; exact where the next one is about to be drawn.

        A sampler between throws batches away to resume; and a loop that catches the error of a batch which could not
        be loaded goes on without it. With 5 drawn, 4 sent to workers, 3 back of which the last is about to be handed
        on, and 1 handed on: 1 was thrown away, and 1 failed.
        """
        if self._state is None or not self.one_by_one:
            return 0
        if not self.fetches_ahead:
            return drawn - self.handed
        sent = self._state["_send_idx"]
        back = sent - len(self._state["_task_info"])
        return drawn - sent + max(0, back - 1 - self.handed)

    def is_among(self, found: Sequence[Caller]) -> bool:
        loader, _ = loader_among(found)
        return loader is not None and vars(loader) is self._state

    def remember(self) -> None:
        """Keeps the count: persistent workers count from 0 again in the next pass."""
        self._known = self.handed

    def end(self) -> None:
        """Lets the loader go, and keeps its count."""
        self.remember()
        self._state = None

    def end_for(self, other: Consumer | None) -> None:
        """Ends where `other` reads the same iterator, which has begun another pass."""
        if other is not None and self._state is not None and self._state is other._state:
            self.end()


def consumer_of(found: Sequence[Caller]) -> Consumer | None:
    """The loader that draws, read from the callers; None where a plain loop does, or a loader that cannot be read."""
    loader, method = loader_among(found)
    if loader is None:
        return None
    one_by_one = method == "_next_index"
    if one_by_one and not isinstance(vars(loader).get("_num_yielded"), int):
        remedy = "Give state_dict the batches that were delivered, and set the sampler's reads_callers to False."
        rule = "one that counts the batches it hands on, as PyTorch's does"
        warnings.warn(checks.sentence("loader", rule, type(loader).__name__, remedy), stacklevel=2)
        return None
    return Consumer(loader, one_by_one=one_by_one)

"""The loader that draws from a sampler: how many of the batches that it fetched it has handed on.

PyTorch does not tell a sampler. So the loader is found on the call stack, once a pass, when the first batch is drawn.
"""

from __future__ import annotations

import dis
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from inspect import CO_GENERATOR
from types import CodeType, FrameType
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
    """The innermost iterator of a loader, and its running method; (None, "") if there is none."""
    for holder, method in found:
        # The iterator and not the loader: one loader may have several of them, each with its own counts.
        if isinstance(holder, _BaseDataLoaderIter):
            return holder, method
    return None, ""


class Loop(NamedTuple):
    """A `for` that asks for batches: the code that holds it, and the place of its instruction in that code."""

    code: CodeType
    place: int

    @property
    def is_running(self) -> bool:
        """Whether the caller of this runs within the loop's body, not in its request for the next batch."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code is self.code and _instruction(frame) != self.place:
                return True
            frame = frame.f_back
        return False


def find_loops() -> tuple[Loop, ...]:
    """The loops that ask for the batch, the innermost first; none if a call such as `next(iterator)` asks.

    Between a loop and the sampler there are loaders, progress bars and prefetchers. They are generators, whose loops
    count too, or iterators, whose method is `__next__`.
    """
    found = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        place = _instruction(frame)
        # for batch in tqdm(loader): the frames are the loader's `__next__`, tqdm's generator, and the user's function,
        # where the search ends. Its loop and tqdm's are found.
        passes_on = frame.f_code.co_name == "__next__" or frame.f_code.co_flags & CO_GENERATOR or _is_torchs(frame)
        if frame.f_code.co_code[place] == dis.opmap["FOR_ITER"] and not _is_torchs(frame):
            found.append(Loop(frame.f_code, place))
        if not passes_on:
            break
        frame = frame.f_back
    return tuple(found)


def _is_torchs(frame: FrameType) -> bool:
    """Whether a frame is of a loader; that of `Show` stands within one."""
    name = frame.f_globals.get("__name__", "")
    return name == __name__ or name.partition(".")[0] in ("torch", "torchdata")


def _instruction(frame: FrameType) -> int:
    """The place, in bytes, of the instruction that a frame runs. Python may point to the cache entries behind it."""
    place = frame.f_lasti
    while place > 0 and frame.f_code.co_code[place] == dis.opmap["CACHE"]:
        place -= 2
    return place


class Consumer:
    """The iterator of a loader that draws from a sampler.

    This keeps the iterator's counts, not the iterator: when a loop is left, its workers must end at once.
    If the garbage collector had to end them, PyTorch would wait ten seconds.

    Args:
        iterator: Of a loader.
        one_by_one: Whether the loader asks for each batch when it wants it. If not, a sampler between the two drew all
            batches before the loader counted its first, so nobody knows which it throws away.
    """

    def __init__(self, iterator: _BaseDataLoaderIter, *, one_by_one: bool) -> None:
        self.in_order: bool = getattr(iterator, "_in_order", True)
        self.one_by_one = one_by_one
        self._state: dict[str, Any] | None = vars(iterator)  # its attributes, which do not keep it alive
        self._before = self._state["_num_yielded"] if one_by_one else 0  # torchdata's counts on from a loaded state
        self._known = 0
        self._all_back = False
        self._sent = 0
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
        # torchdata's iterator begins at the count of a loaded state: 40 at first and 43 now are 3 batches of this pass.
        return max(self._known, self._state.get("_num_yielded", 0) - self._before)

    @property
    def fetches_ahead(self) -> bool:
        return self._state is not None and "_send_idx" in self._state

    @property
    def has_all_back(self) -> bool:
        """Whether the workers have returned every batch that they were sent, loaded or failed."""
        if self._state is None or not self.fetches_ahead:
            return self._all_back
        # Of PyTorch's iterator: the number of the next batch to hand on, and of the next to send to a worker.
        return self._state["_rcvd_idx"] >= self._state["_send_idx"]

    def has_back(self, drawn: int) -> bool:
        """Whether the workers have returned all of the `drawn` batches, or all that are left of those thrown away."""
        # A sampler in between that drew all at once may have thrown away any.
        sent = self._sent if self._state is None else self._state.get("_send_idx", 0)
        return self.has_all_back and (self.one_by_one or sent >= drawn)

    @property
    def is_over(self) -> bool:
        """Whether the loader was asked for more batches than there are. With persistent workers it does not say so."""
        return self._state is not None and self._state.get("_shutdown", False) and self.has_all_back

    def count_lost(self, drawn: int) -> int:
        """How many of the `drawn` batches nobody will be handed; exact when the next batch is about to be drawn.

        A sampler in between may throw batches away to resume. A loop that catches the error of a batch goes on without
        it. Say 5 are drawn, 4 were sent to workers, 3 are back, and 1 was handed on; the last that came back is handed
        on next. Then 5 - 4 = 1 was thrown away, and 3 - 1 - 1 = 1 failed.
        """
        if self._state is None or not self.one_by_one:
            return 0
        # Without workers nothing is on its way: what was drawn and not handed on is lost.
        if not self.fetches_ahead:
            return drawn - self.handed
        sent = self._state["_send_idx"]
        back = sent - len(self._state["_task_info"])
        return drawn - sent + max(0, back - 1 - self.handed)

    def is_among(self, found: Sequence[Caller]) -> bool:
        loader, _ = loader_among(found)
        return loader is not None and vars(loader) is self._state

    def remember(self) -> None:
        """Keeps the counts, because persistent workers count from 0 again in the next pass."""
        self._known, self._all_back = self.handed, self.has_all_back
        if self._state is not None:
            self._sent = self._state.get("_send_idx", 0)

    def end(self) -> None:
        """Keeps the counts and forgets the loader."""
        self.remember()
        self._state = None

    def end_for(self, other: Consumer | None) -> None:
        """Ends where `other` reads the same iterator, which has begun another pass."""
        # Persistent workers: the loader keeps one iterator, and begins it anew for every pass.
        if other is not None and self._state is not None and self._state is other._state:
            self.end()


class Show:
    """Has `see` called with each batch that the iterator of a loader hands on, until it returns False.

    PyTorch shows its batches to the loop alone. So this covers the method of the one iterator that fetches the next
    batch, and uncovers it while it runs: if that raises, nothing is covered any more. It does not keep the iterator.
    """

    def __init__(self, iterator: _BaseDataLoaderIter, see: Callable[[Any], bool]) -> None:
        self._iterator, self._see = weakref.ref(iterator), see
        vars(iterator)["_next_data"] = self

    def __call__(self) -> Any:
        iterator: Any = self._iterator()
        del iterator._next_data
        batch = iterator._next_data()
        if self._see(batch):
            iterator._next_data = self
        return batch


def consumer_of(found: Sequence[Caller]) -> Consumer | None:
    """The loader that draws, found among the callers; None for a plain loop, and for a loader that cannot be read."""
    loader, method = loader_among(found)
    if loader is None:
        return None
    one_by_one = method == "_next_index"  # the loader's own method; else a sampler in between drew all at once
    if one_by_one and not isinstance(vars(loader).get("_num_yielded"), int):
        remedy = "Give state_dict the batches that were delivered, and set the sampler's reads_callers to False."
        rule = "one that counts the batches it hands on, as PyTorch's does"
        checks.warn(checks.sentence("loader", rule, type(loader).__name__, remedy))
        return None
    return Consumer(loader, one_by_one=one_by_one)

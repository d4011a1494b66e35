"""Who draws the batches: the loader that fetches them ahead, and whoever stands between and shards them again.

PyTorch tells a sampler neither. Both are read off the call stack, once a pass, when the first batch is drawn.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from types import FrameType

from torch.utils.data import BatchSampler, Sampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from lengthwise import _checks

# What a sampler that shares out batches calls the number of those it shares them out to.
REPLICAS = ("num_replicas", "num_processes", "num_shards", "world_size")
# Accelerate's loaders. They fetch the batch after the one that they hand on, and set epochs that they count themselves.
PREPARED = ("DataLoaderShard", "DataLoaderDispatcher")


class Consumer:
    """The iterator of a loader that draws from a sampler: what it has handed on, not what its workers fetched ahead.

    The count outlives the iterator, which is not held: its workers are to end with the loop that was left, and not when
    the garbage collector comes by, where PyTorch waits ten seconds for them.
    """

    def __init__(self, iterator: _BaseDataLoaderIter) -> None:
        self.in_order = getattr(iterator, "_in_order", True)
        self._state = vars(iterator)
        self._before = iterator._num_yielded  # torchdata's counts on from the state that it was given
        weakref.finalize(iterator, self._keep_count).atexit = False

    @property
    def handed(self) -> int:
        """Batches that the caller of the loader has been handed since this was made."""
        return self._state["_num_yielded"] - self._before

    @property
    def fetched(self) -> int:
        """Batches that have reached the loader: no fewer than it handed on, and more where workers fetch ahead."""
        return self._state.get("_send_idx", self.handed)

    def is_asking(self) -> bool:
        """Whether the loader itself is calling: torchdata's asks for a state as it draws, and keeps it for later."""
        return any(isinstance(each, _BaseDataLoaderIter) and vars(each) is self._state for each in _callers())

    def _keep_count(self) -> None:
        self._state = {"_num_yielded": self._state["_num_yielded"]}


def consumer_of(sampler: Sampler, *, world_size: int) -> Consumer | None:
    """The loader's iterator that draws from `sampler`; None where a plain loop does. Called while a batch is drawn.

    Raises:
        ValueError: `sampler` is one rank's of several, and something behind it shards its batches again; or its batches
            are taken for sequence numbers, and batched once more; or Accelerate prepared its loader.
    """
    found = None
    for holder in _callers():
        if found is None and isinstance(holder, _BaseDataLoaderIter):
            found = holder
        elif isinstance(holder, BatchSampler) and getattr(holder, "sampler", None) is sampler:
            remedy = "It yields whole batches: make the loader yourself, and give the trainer that loader."
            raise _checks.value_error("sampler", "given to DataLoader as batch_sampler=", "sampler=", remedy)
        elif type(holder).__name__ in PREPARED:
            remedy = "Leave the loader out of accelerator.prepare: the sampler gives each rank its own batches."
            raise _checks.value_error("loader", "PyTorch's own", f"Accelerate's {type(holder).__name__}", remedy)
        elif world_size > 1 and isinstance(holder, Sampler) and holder is not sampler:
            _check_no_second_share(holder, world_size)
    return None if found is None else Consumer(found)


def _callers() -> Iterator[object]:
    """The objects whose methods are running, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_varnames[:1] == ("self",):  # no others: a look at a frame keeps its variables alive
            yield frame.f_locals.get("self")
        frame = frame.f_back


def _check_no_second_share(holder: Sampler, world_size: int) -> None:
    """Refuses a sampler that deals batches out once more."""
    found = [getattr(holder, name, 1) for name in REPLICAS]
    shares = max(number for number in (1, *found) if isinstance(number, int))
    if shares > 1:
        rule = f"shared out once, by the sampler's own rank and world_size of {world_size}"
        remedy = (
            "Leave the loader out of accelerator.prepare, give Lightning's Trainer use_distributed_sampler=False, "
            "or make the sampler with rank=0, world_size=1."
        )
        raise _checks.value_error("batches", rule, f"shared out to {shares} again by {type(holder).__name__}", remedy)

"""Who draws the batches: the loader that fetches them ahead, and whoever stands between and shards them again.

PyTorch tells a sampler neither. Both are read off the call stack, once a pass, when the first batch is drawn.
"""

from __future__ import annotations

import sys
from types import FrameType

from torch.utils.data import Sampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from lengthwise import _checks

# What a sampler that shares out batches calls the number of those it shares them out to.
REPLICAS = ("num_replicas", "num_processes", "num_shards", "world_size")


def consumer_of(sampler: Sampler, *, world_size: int) -> _BaseDataLoaderIter | None:
    """The loader's iterator that draws from `sampler`; None where a plain loop does. Called while a batch is drawn.

    Raises:
        ValueError: `sampler` is one rank's of several, and something behind it shards its batches again.
    """
    frame: FrameType | None = sys._getframe(1)
    found = None
    while frame is not None:
        holder = frame.f_locals.get("self")
        if found is None and isinstance(holder, _BaseDataLoaderIter):
            found = holder
        elif world_size > 1 and holder is not sampler:
            _check_no_second_share(holder, world_size)
        frame = frame.f_back
    return found


def fetched_ahead(loader: _BaseDataLoaderIter | None) -> int:
    """Batches that the loader's workers have been given and its caller has not been handed yet."""
    if loader is None or getattr(loader, "_num_workers", 0) == 0:
        return 0
    if hasattr(loader, "state_dict"):  # torchdata's stateful loader asks as it draws, and keeps the answer itself
        return 0
    if not getattr(loader, "_in_order", True):
        remedy = "Let the loader keep its order, or count the batches delivered in another way."
        raise _checks.value_error("in_order", "True, for a position to be kept", False, remedy)
    return loader._send_idx - loader._num_yielded  # type: ignore[attr-defined]


def _check_no_second_share(holder: object, world_size: int) -> None:
    """Refuses a sampler that deals batches out once more, and a loader that hands rank 0's batches to all."""
    kind = type(holder)
    if isinstance(holder, Sampler):
        shares = max(
            (getattr(holder, name, 1) for name in REPLICAS if not callable(getattr(holder, name, 1))), default=1
        )
    else:
        shares = world_size if kind.__name__ == "DataLoaderDispatcher" else 1
    if isinstance(shares, int) and shares > 1:
        rule = f"shared out once, by the sampler's own rank and world_size of {world_size}"
        remedy = (
            "Leave the loader out of accelerator.prepare, give Lightning's Trainer use_distributed_sampler=False, "
            "or make the sampler with rank=0, world_size=1."
        )
        raise _checks.value_error("batches", rule, f"shared out to {shares} again by {kind.__name__}", remedy)

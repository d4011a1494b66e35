"""The shards of a stream: iterables that yield the same samples in every pass, from any position."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from torch.utils.data import DataLoader, default_collate

from lengthwise import checks

# The position of a shard: {"read": samples, "source": its own state, or None, "ended": whether it is at its end}
Start = Mapping[str, Any]

BEGIN: Start = {"read": 0, "source": None, "ended": False}

_RANDOM = ("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")


def list_shards(source: Any) -> list[Iterable[Any]]:
    """Returns the shards of a list of iterables, or of a Hugging Face stream."""
    if hasattr(source, "num_shards") and hasattr(source, "shard"):
        count = source.num_shards
        shards = [source.shard(num_shards=count, index=index) for index in range(count)]
    else:
        shards = list(source) if isinstance(source, list | tuple) else [source]
    remedy = "Give a list of iterables, one for each file, say: [data['train'].shard(8, i) for i in range(8)]."
    for shard in shards:
        _check_shard(shard, remedy)
    if not shards:
        raise checks.value_error("shards", "at least one", shards, remedy)
    return shards


def _check_shard(shard: Any, remedy: str) -> None:
    """Refuses a shard that cannot be read in every pass, or that yields no single samples."""
    # A generator can be read once: the second epoch would be empty. A dict yields its keys, the names of its splits.
    if not isinstance(shard, Iterable) or isinstance(shard, Iterator | Mapping | str | bytes):
        raise checks.type_error("shards", "iterables of samples that can be read in every epoch", shard, remedy)
    if isinstance(shard, DataLoader):
        _check_loader(shard)


def _check_loader(loader: DataLoader[Any]) -> None:
    """Refuses a loader that yields batches or another order in every pass."""
    # The length of a batch [1, T] is 1, and the budget would not hold. Batches of one are allowed if a collate function
    # takes out the sample: collate_fn=lambda batch: batch[0].
    if loader.batch_sampler is not None and (loader.batch_size != 1 or loader.collate_fn is default_collate):
        batches = "a batch_sampler" if loader.batch_size is None else f"batch_size={loader.batch_size}"
        remedy = "Give it batch_size=None: StreamBatches makes the batches."
        raise checks.value_error("shards", "loaders of single samples", batches, remedy)
    # A resumed run would begin in the middle of another order. Classes are compared by name: torchdata has its own.
    if (sampler := type(loader.sampler).__name__) in _RANDOM:
        remedy = "Leave shuffle=True out: each window is shuffled."
        raise checks.value_error("shards", "loaders of one order", f"one with a {sampler}", remedy)
    if loader.persistent_workers and callable(getattr(loader.dataset, "set_epoch", None)):
        remedy = "Leave persistent_workers out: workers that stay alive do not hear of the data set's set_epoch."
        raise checks.value_error("shards", "loaders whose workers begin anew in every epoch", "persistent ones", remedy)


def set_epoch_of(shards: Sequence[Any], epoch: int) -> None:
    """Sets the epoch of shards, or of the data sets of loaders, if they have a `set_epoch`."""
    for source in map(_dataset_of, shards):
        if callable(getattr(source, "set_epoch", None)):
            source.set_epoch(epoch)


def _dataset_of(source: Any) -> Any:
    return source.dataset if isinstance(source, DataLoader) else source


def _has_state(source: Any) -> bool:
    return callable(getattr(source, "state_dict", None)) and callable(getattr(source, "load_state_dict", None))


def _copy_stateful(source: Any) -> Any:
    """Returns a copy of a source that has a state, so that every pass begins at the same position."""
    if not _has_state(source) and not _has_state(_dataset_of(source)):
        return source
    try:
        return copy.deepcopy(source)
    except Exception as error:  # any class: a source may have its own `__deepcopy__`
        remedy = f"Leave out its state_dict: the shard is then read from its beginning. ({checks.brief(error)})"
        rule = "copied by copy.deepcopy for every pass, if they have a state_dict"
        raise checks.type_error("shards", rule, source, remedy) from error


class Shard:
    """Reads one shard window by window from `start` on, some samples ahead.

    A source with `state_dict` and `load_state_dict` (Hugging Face streams, torchdata's loaders) resumes from its state.
    Any other source is read again from its beginning, and the samples before `start` are skipped.

    Args:
        source: The iterable.
        start: The position to begin at.
        quota: The samples of this shard in a window.
    """

    def __init__(self, source: Any, start: Start, *, quota: int) -> None:
        self._source, self._start, self._quota = source, start, quota
        self._samples: Iterator[Any] | None = None
        self._window: list[Any] = []  # the samples read so far for the next window
        self._read = int(start["read"])
        self._ended = bool(start["ended"])
        self._error: Exception | None = None

    def read_ahead(self, share: float) -> None:
        """Reads until `share` of the next window is in memory. `take` raises any error."""
        missing = round(share * self._quota) - len(self._window)
        if missing <= 0 or self._ended or self._error is not None:
            return
        try:
            if self._samples is None:
                self._samples = self._begin()
            samples = list(islice(self._samples, missing))
        except Exception as error:  # raised here, it would stop this rank in the middle of a step
            self._error = error
            return
        self._window += samples
        self._read += len(samples)
        self._ended = len(samples) < missing

    def take(self) -> tuple[list[Any], Start]:
        """Returns the samples of the next window, fewer at the end of the shard, and the position before them."""
        self.read_ahead(1.0)
        if self._error is not None:
            raise self._error
        # No samples: the shard has ended. A saved position may not know this yet.
        start = self._start if self._window else {**self._start, "source": None, "ended": True}
        samples, self._window, self._start = self._window, [], self._find_state()
        return samples, start

    def _find_state(self) -> Start:
        # At their end, many sources have the state of their beginning, and would be read twice.
        state = self._source.state_dict() if _has_state(self._source) and not self._ended else None
        return {"read": self._read, "source": copy.deepcopy(state), "ended": self._ended}

    def _begin(self) -> Iterator[Any]:
        self._source = _copy_stateful(self._source)
        state = self._start["source"]
        if state is not None and _has_state(self._source):
            self._source.load_state_dict(copy.deepcopy(state))
            return iter(self._source)
        samples = iter(self._source)
        skipped = sum(1 for _ in islice(samples, self._read))
        if skipped < self._read:
            rule = f"of at least {self._read} samples, as many as were read before"
            remedy = "Resume with the same shards, in the same order."
            raise checks.value_error("shards", rule, skipped, remedy)
        return samples


def read_starts(starts: object, shards: int, *, remedy: str) -> tuple[Start, ...]:
    """Returns the positions of the shards in a state, after checking them; none if no batch was read."""
    error = checks.value_error("starts", f"the positions of {shards} shards", starts, remedy)
    if not isinstance(starts, list | tuple) or len(starts) not in (0, shards):
        raise error
    for start in starts:
        if not isinstance(start, Mapping) or start.keys() != BEGIN.keys():
            raise error
        checks.check_whole("starts", start["read"], minimum=0, remedy=remedy)
        checks.check_flag("ended", start["ended"])
    return tuple(starts)

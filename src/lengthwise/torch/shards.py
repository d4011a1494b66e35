"""The shards of a stream: iterables of the same samples in every pass, and a reader that begins at any position."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from torch.utils.data import DataLoader, default_collate

from lengthwise import checks

# The position of a shard: the number of samples read, the own state of the source (or None), and whether it has ended.
Start = Mapping[str, Any]

BEGIN: Start = {"read": 0, "source": None, "ended": False}

_RANDOM = ("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")


def list_shards(source: Any) -> list[Iterable[Any]]:
    """Returns a list of the shards: of a Hugging Face stream, a list of iterables, or one iterable."""
    if hasattr(source, "num_shards") and hasattr(source, "shard"):
        count = source.num_shards
        shards = [source.shard(num_shards=count, index=index) for index in range(count)]
    else:
        shards = list(source) if isinstance(source, list | tuple) else [source]
    remedy = "Give a list of iterables, one for each file, say: [data['train'].shard(8, i) for i in range(8)]."
    for shard in shards:
        # A generator can be read once: the second epoch would be empty. A dict, such as a Hugging Face data set of
        # several splits, yields its keys: the names of the splits.
        if not isinstance(shard, Iterable) or isinstance(shard, Iterator | Mapping | str | bytes):
            raise checks.type_error("shards", "iterables of samples that can be read in every epoch", shard, remedy)
        if isinstance(shard, DataLoader):
            _check_loader(shard)
    if not shards:
        raise checks.value_error("shards", "at least one", shards, remedy)
    return shards


def _check_loader(loader: DataLoader[Any]) -> None:
    """Refuses a loader that yields batches, has a random order, or has workers that `set_epoch` would not reach."""
    # A batch of shape [1, T] would be taken for a sample of length 1 (its `len`), and our batches could exceed the
    # budget. With batch_size=1, a collate function may take out the sample: collate_fn=lambda batch: batch[0].
    if loader.batch_sampler is not None and (loader.batch_size != 1 or loader.collate_fn is default_collate):
        batches = "a batch_sampler" if loader.batch_size is None else f"batch_size={loader.batch_size}"
        remedy = "Give the loader batch_size=None and no batch_sampler: StreamBatches makes the batches."
        raise checks.value_error("shards", "loaders of single samples", batches, remedy)
    # A resumed run may draw another order. Classes are compared by name, because torchdata has its own.
    if (sampler := type(loader.sampler).__name__) in _RANDOM:
        remedy = "Leave shuffle=True or the sampler out: the batching orders each window."
        raise checks.state_error(f"A loader of `shards` has a {sampler}, so no two passes have the same order", remedy)
    if loader.persistent_workers and callable(getattr(loader.dataset, "set_epoch", None)):
        remedy = "Leave it out: the set_epoch of the data set does not reach workers that stay alive."
        raise checks.state_error("A loader of `shards` has persistent_workers=True", remedy)


def set_epoch_of(shards: Sequence[Any], epoch: int) -> None:
    """Sets the epoch of shards, or of the data sets of loaders, if they have a `set_epoch`."""
    for source in map(_dataset_of, shards):
        if callable(getattr(source, "set_epoch", None)):
            source.set_epoch(epoch)


def _dataset_of(source: Any) -> Any:
    return source.dataset if isinstance(source, DataLoader) else source


def _has_state(source: Any) -> bool:
    """Tells if a source has a state that leaves nothing out."""
    has_state = callable(getattr(source, "state_dict", None)) and callable(getattr(source, "load_state_dict", None))
    return has_state and not _has_shuffle_buffer(getattr(_dataset_of(source), "_ex_iterable", None))


def _has_shuffle_buffer(part: Any) -> bool:
    """Tells if a part of a Hugging Face stream has a shuffle buffer: their states leave out its samples."""
    parts = filter(None, [getattr(part, "ex_iterable", None), *getattr(part, "ex_iterables", ())])
    return type(part).__name__ == "BufferShuffledExamplesIterable" or any(map(_has_shuffle_buffer, parts))


def _copy_stateful(source: Any) -> Any:
    """Copies a source if it, or its data set, has a state: then every pass begins at the same position."""
    if not _has_state(source) and not _has_state(_dataset_of(source)):
        return source
    try:
        return copy.deepcopy(source)
    except Exception as error:  # any class: a source may have its own `__deepcopy__`
        remedy = f"Leave out state_dict: a resumed run then reads the shard from its beginning. ({checks.brief(error)})"
        rule = "such that copy.deepcopy can copy those with a state_dict"
        raise checks.type_error("shards", rule, source, remedy) from error


class Shard:
    """A reader of one shard, window by window. It can read a part of the next window ahead.

    A source with `state_dict` and `load_state_dict` (Hugging Face streams, torchdata's loaders) resumes from the state
    in `start`. Without a state, the source is read from its beginning, and the samples before `start` are skipped.

    Args:
        source: The iterable.
        start: The position to begin at.
        quota: The number of samples of this shard in a full window.
    """

    def __init__(self, source: Any, start: Start, *, quota: int) -> None:
        self._source, self._start, self._quota = source, start, quota
        self._samples: Iterator[Any] | None = None
        self._window: list[Any] = []  # the samples read so far for the next window
        self._read = int(start["read"])
        self._ended = bool(start["ended"])
        self._error: Exception | None = None

    def read_ahead(self, share: float) -> None:
        """Reads until `share` of the next window is in memory. An error is kept, and `take` raises it."""
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
        """Returns the samples of the next window, and the position before them. The last window may be short."""
        self.read_ahead(1.0)
        if self._error is not None:
            raise self._error
        # No samples: the shard has ended. The saved position may still say `ended: False`: after a last window that was
        # exactly full, only the next read finds the end.
        start = self._start if self._window else {**self._start, "source": None, "ended": True}
        samples, self._window, self._start = self._window, [], self._find_state()
        return samples, start

    def _find_state(self) -> Start:
        # At the end, many sources return the state of their beginning: a resumed run would read them again.
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
    """Returns the positions of the shards in a state, after checking them.

    The tuple is empty if the state was saved before the epoch began.
    """
    error = checks.value_error("starts", f"the positions of {shards} shards", starts, remedy)
    if not isinstance(starts, list | tuple) or len(starts) not in (0, shards):
        raise error
    for start in starts:
        if not isinstance(start, Mapping) or start.keys() != BEGIN.keys():
            raise error
        checks.check_whole("starts", start["read"], minimum=0, remedy=remedy)
        checks.check_flag("ended", start["ended"])
    return tuple(starts)

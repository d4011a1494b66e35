"""Shards: what a stream is read from, window by window, each from where it stood."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from torch.utils.data import DataLoader, default_collate

from lengthwise import checks

# Where a shard stood: {"read": samples, "source": its own state, or None, "ended": whether its end was seen}
Start = Mapping[str, Any]

_RANDOM = ("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")
_SHUFFLE = ("webdataset.filters", "_shuffle")

BEGIN: Start = {"read": 0, "source": None, "ended": False}


def list_shards(source: Any) -> list[Iterable[Any]]:
    """The shards that a user gave: a list of iterables, or a Hugging Face stream, which knows its own."""
    remedy = "Give a list of iterables, such as one for each file: [dataset.shard(8, i) for i in range(8)]."
    for each in source if isinstance(source, list | tuple) else [source]:
        # Read as an iterable, a dict gives its keys: of the splits of a data set their names.
        if isinstance(each, Mapping):
            rule, advice = "iterables of samples and no dict, which gives its keys", "Name one of them: data['train']."
            if each is not source:
                advice = "If the dicts are samples, give [samples] for one shard; else name a split: data['train']."
            raise checks.type_error("shards", rule, each, advice)
    if isinstance(source, list | tuple):
        shards = list(source)
    elif hasattr(source, "num_shards") and hasattr(source, "shard"):
        shards = [source.shard(num_shards=source.num_shards, index=number) for number in range(source.num_shards)]
    else:
        shards = [source]
    for shard in shards:
        # A generator can be read once: the second epoch would be empty, and nobody would be told.
        if not isinstance(shard, Iterable) or isinstance(shard, Iterator | str | bytes):
            raise checks.type_error("shards", "iterables that can be read in every epoch", shard, remedy)
        _check_loader(shard)
        _check_order(_read_by(shard))
    if not shards:
        raise checks.value_error("shards", "at least one", shards, remedy)
    return shards


def _check_loader(shard: object) -> None:
    """Refuses a loader that gives batches, and one that gives another order whenever it is read."""
    if not isinstance(shard, DataLoader):
        return
    # The length of a batch [1, T] is 1, and no budget would be kept. Batches of one may be taken apart again:
    # collate_fn=lambda batch: batch[0].
    if shard.batch_sampler is not None and (shard.batch_size != 1 or shard.collate_fn is default_collate):
        given = "a batch_sampler" if shard.batch_size is None else f"batch_size={shard.batch_size}"
        remedy = "Give it batch_size=None: StreamBatches makes the batches."
        raise checks.value_error("shards", "loaders of single samples", given, remedy)
    # A resumed run would begin in the middle of another order. By name: torchdata has classes of its own.
    if (sampler := type(shard.sampler).__name__) in _RANDOM:
        remedy = (
            "Leave shuffle=True out: each window is shuffled; for more, a data set may give another order after"
            " `set_epoch`, which StreamBatches calls."
        )
        raise checks.value_error("shards", "loaders of one order", f"one with a {sampler}", remedy)


def _check_order(source: Any) -> None:
    """Refuses a WebDataset that shuffles by the time of day (webdataset 1.0)."""
    for stage in getattr(source, "pipeline", None) or ():
        function = getattr(stage, "f", None)
        if (getattr(function, "__module__", ""), getattr(function, "__name__", "")) != _SHUFFLE:
            continue
        # _shuffle(data, bufsize=1000, initial=100, rng=None, seed=None), without the data
        given = dict(zip(("bufsize", "initial", "rng", "seed"), stage.args, strict=False)) | stage.kw
        if given.get("bufsize", True) and given.get("rng") is None and given.get("seed") is None:
            remedy = "Give it a seed, as .shuffle(1000, seed=0), or leave it out: each window is shuffled."
            raise checks.value_error("shards", "of one order whenever they are read", "one with .shuffle", remedy)


def check_whole(shards: Sequence[Any]) -> None:
    """Refuses, on several ranks, shards that each rank has other ones of: shared out again, most are never read."""
    for source in map(_read_by, shards):
        # What `datasets.distributed.split_dataset_by_node` notes in a Hugging Face stream (datasets 5.2).
        split: Any = getattr(source, "_distributed", None)
        if split is not None and split.world_size > 1:
            given = f"those of node {split.rank} of {split.world_size}"
            remedy = "Leave out split_dataset_by_node: StreamBatches shares the shards out."
            raise checks.value_error("shards", "the same on every rank", given, remedy)


def tell_epoch(shards: Sequence[Any], epoch: int) -> None:
    """Tells the epoch to shards that have a `set_epoch`. Loaders have none: their data sets are told."""
    for source in map(_read_by, shards):
        if callable(getattr(source, "set_epoch", None)):
            source.set_epoch(epoch)


def _read_by(shard: Any) -> Any:
    """What a loader reads; any other shard itself."""
    return shard.dataset if isinstance(shard, DataLoader) else shard


class Shard:
    """One shard, read from `start` on.

    A source with `state_dict` and `load_state_dict` (Hugging Face streams, torchdata's loaders) is asked where it
    stands, and goes on from there. Of any other, the samples that were read before are read again, and left out. So are
    those of a shuffled Hugging Face stream, which forgets what it holds in its buffer.
    """

    def __init__(self, source: Any, start: Start) -> None:
        self._source = source
        self._start = start
        self._samples: Iterator[Any] | None = None
        self._read = int(start["read"])
        self._ended = bool(start["ended"])

    def state(self) -> Start:
        """Where the shard stands, for `Shard(source, start)`."""
        if self._samples is None:  # not begun: what it was told, for the source itself may stand anywhere
            return self._start
        # At its end many a source says that it stands at its beginning, and would be read twice.
        state = self._source.state_dict() if _keeps_state(self._source) and not self._ended else None
        return {"read": self._read, "source": copy.deepcopy(state), "ended": self._ended}

    def take(self, count: int) -> list[Any]:
        """The next samples, at most `count`; fewer at its end."""
        if self._ended or not count:
            return []
        if self._samples is None:
            self._samples = self._begin()
        taken = list(islice(self._samples, count))
        self._read += len(taken)
        self._ended = len(taken) < count
        return taken

    def _begin(self) -> Iterator[Any]:
        if _has_state(self._source):
            # A source that was told where to go on, or was left in the middle, would begin there in every pass.
            self._source = _copy(self._source)
        # A state of shards that had one, resumed with shards that have none, such as loaders of them: read again.
        if self._start["source"] is not None and _keeps_state(self._source):
            self._source.load_state_dict(copy.deepcopy(self._start["source"]))
            return iter(self._source)
        samples = iter(self._source)
        skipped = sum(1 for _ in islice(samples, self._read))
        if skipped < self._read:
            rule = f"of {self._read} samples at least, as many as were read of it"
            remedy = "Resume with the same shards, in the same order."
            raise checks.value_error("shards", rule, skipped, remedy)
        return samples


class Reader:
    """Reads `quota` samples of each shard for a window, some of them ahead."""

    def __init__(self, shards: dict[int, Shard], *, quota: int) -> None:
        self._shards = shards
        self.quota = quota
        self._next: dict[int, list[Any]] = {}
        self._starts: dict[int, Start] = {}
        self._error: Exception | None = None

    @property
    def has_more(self) -> bool:
        """Whether something of the next window was read, or went wrong."""
        return any(self._next.values()) or self._error is not None

    def read_ahead(self, share: float) -> None:
        """Reads so much of the next window that `share` of it is there; `take` raises what goes wrong."""
        try:
            self._read(share)
        except Exception as error:  # raised now, it would leave the other ranks within a step
            self._error = self._error or error

    def _read(self, share: float) -> None:
        if self._error is not None:
            return
        if not self._starts:
            self._starts = {number: shard.state() for number, shard in self._shards.items()}
            self._next = {number: [] for number in self._shards}
        for number, shard in self._shards.items():
            missing = round(share * self.quota) - len(self._next[number])
            if missing > 0:
                self._next[number] += shard.take(missing)

    def take(self) -> tuple[list[Any], list[int], dict[int, Start]]:
        """The samples of the next window, the shard of each, and where the shards stood before it."""
        self.read_ahead(1.0)
        if self._error is not None:
            raise self._error
        samples = [sample for each in self._next.values() for sample in each]
        shards = [number for number, each in self._next.items() for _ in each]
        starts = self._starts
        self._next, self._starts = {}, {}
        return samples, shards, starts


def _copy(source: Any) -> Any:
    """A shallow copy, whose own state is not that of the source."""
    copied = copy.copy(source)
    # A copy of a Hugging Face stream has the very `__dict__` of the stream (datasets 5.2), so that both stand alike.
    if hasattr(source, "__dict__") and copied.__dict__ is source.__dict__:
        copied.__dict__ = dict(source.__dict__)
    return copied


def _has_state(source: Any) -> bool:
    return callable(getattr(source, "state_dict", None)) and callable(getattr(source, "load_state_dict", None))


def _keeps_state(source: Any) -> bool:
    """Whether a source goes on exactly where its state was saved."""
    return _has_state(source) and not _is_shuffled(_read_by(source))


def _is_shuffled(source: Any) -> bool:
    """Whether this is a Hugging Face stream with a shuffle buffer, whose state leaves the buffer out (datasets 5.2)."""
    stages: list[Any] = [getattr(source, "_ex_iterable", None)]
    while stages:
        stage = stages.pop()
        if type(stage).__name__ == "BufferShuffledExamplesIterable":
            return True
        stages += [stage.ex_iterable] if hasattr(stage, "ex_iterable") else getattr(stage, "ex_iterables", [])
    return False


def read_starts(starts: object, shards: int, *, remedy: str) -> tuple[Start, ...]:
    """Reads where shards stood, as a state has it: for each, or for none before the first batch."""
    error = checks.value_error("starts", f"where each of {shards} shards stood", starts, remedy)
    if not isinstance(starts, list | tuple) or len(starts) not in (0, shards):
        raise error
    for start in starts:
        if not isinstance(start, Mapping) or start.keys() != BEGIN.keys():
            raise error
        checks.check_whole("starts", start["read"], minimum=0, remedy=remedy)
        checks.check_flag("ended", start["ended"])
    return tuple(starts)


def numbers_of(rank: int, world_size: int, shards: Sequence[Any]) -> range:
    """Which shards a rank reads: every `world_size`-th, from its own number on."""
    return range(rank, len(shards), world_size)

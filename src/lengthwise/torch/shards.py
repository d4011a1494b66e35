"""Shards: what a stream is read from, window by window, each from where it stood."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from lengthwise import checks
from lengthwise.torch.sources import Source, check_source, keeps_state, split_stream

# Where a shard stood: {"read": samples, "source": its own state, or None, "begin": that before it was ever read, or
# None, "ended": whether its end was seen}
Start = Mapping[str, Any]

BEGIN: Start = {"read": 0, "source": None, "begin": None, "ended": False}


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
        shards = split_stream(source)
    else:
        shards = [source]
    for shard in shards:
        check_source(shard, remedy)
    if not shards:
        raise checks.value_error("shards", "at least one", shards, remedy)
    return shards


class Shard:
    """One shard, read from `start` on.

    A source with `state_dict` and `load_state_dict` (Hugging Face streams, torchdata's loaders) is asked where it
    stands, and goes on from there. Of any other, the samples that were read before are read again, and left out. So are
    those of a shuffled Hugging Face stream, which forgets what it holds in its buffer.

    Args:
        source: What is read, in every epoch.
        start: Where to begin.
        epoch: Which epoch is read.
    """

    def __init__(self, source: Source, start: Start, *, epoch: int = 0) -> None:
        self._source = source
        self._start = start
        self._epoch = epoch
        self._own: Any = None  # what is read in this pass
        self._samples: Iterator[Any] | None = None
        self._read = int(start["read"])
        self._ended = bool(start["ended"])

    def state(self) -> Start:
        """Where the shard stands, for `Shard(source, start)`."""
        if self._samples is None:  # not begun: what it was told, for the source itself may stand anywhere
            return self._start
        # At its end many a source says that it stands at its beginning, and would be read twice.
        state = self._own.state_dict() if keeps_state(self._own) and not self._ended else None
        begin = self._source.begin
        return {"read": self._read, "source": copy.deepcopy(state), "begin": begin, "ended": self._ended}

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
        self._own, goes_on = self._source.stand(self._start["source"], self._start["begin"], epoch=self._epoch)
        if goes_on:
            return iter(self._own)
        samples = iter(self._own)
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
                # Of its end it knew nothing before. Some sources, in the state of their end, begin anew.
                if not self._next[number]:
                    self._starts[number] = {**self._starts[number], "source": None, "ended": True}

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

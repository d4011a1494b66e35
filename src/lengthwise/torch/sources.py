"""Sources: what streams must know of loaders, Hugging Face streams and WebDataset.

- whether a source gives the same samples in the same order whenever it is read
- whether it goes on exactly where its own state was saved
"""

from __future__ import annotations

import copy
import hashlib
import json
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from torch.utils.data import ChainDataset, DataLoader, IterableDataset, default_collate

from lengthwise import checks

_RANDOM = ("RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler")
# Stages of a WebDataset that give another order in every pass: classes and functions (webdataset 1.0)
_OTHER_EVERY_TIME = ("detshuffle", "ResampledShards", "RandomMix", "_rsample", "resampled_")
_ONE_ORDER = "of one order whenever they are read"


def check_source(source: Any, remedy: str) -> None:
    """Refuses what cannot be read again, in the same order, in every pass."""
    # A generator can be read once: the second epoch would be empty, and nobody would be told.
    if not isinstance(source, Iterable) or isinstance(source, Iterator | str | bytes):
        raise checks.type_error("shards", "iterables that can be read in every epoch", source, remedy)
    _check_loader(source)
    for _ in _seeds_of(read_by(source)):
        pass


def _check_loader(source: object) -> None:
    """Refuses a loader that gives batches, and one that gives another order whenever it is read."""
    if not isinstance(source, DataLoader):
        return
    # The length of a batch [1, T] is 1, and no budget would be kept. Batches of one may be taken apart again:
    # collate_fn=lambda batch: batch[0].
    if source.batch_sampler is not None and (source.batch_size != 1 or source.collate_fn is default_collate):
        given = "a batch_sampler" if source.batch_size is None else f"batch_size={source.batch_size}"
        remedy = "Give it batch_size=None: StreamBatches makes the batches."
        raise checks.value_error("shards", "loaders of single samples", given, remedy)
    # A resumed run would begin in the middle of another order. By name: torchdata has classes of its own.
    if (sampler := type(source.sampler).__name__) in _RANDOM:
        remedy = (
            "Leave shuffle=True out: each window is shuffled; for more, a data set may give another order after"
            " `set_epoch`, which StreamBatches calls."
        )
        raise checks.value_error("shards", "loaders of one order", f"one with a {sampler}", remedy)
    # Workers that stay alive keep their copy of the data set. A Hugging Face stream shares its epoch with them.
    told = callable(getattr(source.dataset, "set_epoch", None)) and not _is_hugging_face(source.dataset)
    if source.persistent_workers and told:
        rule = "loaders whose workers are told the epoch"
        remedy = "Leave persistent_workers out: the data set has a set_epoch, and its workers would not hear of it."
        raise checks.value_error("shards", rule, "one with persistent_workers=True", remedy)


def seeds_of(sources: Sequence[Any]) -> list[Any]:
    """The seeds by which WebDatasets and Hugging Face streams shuffle, each once.

    Where none is given they draw one, another in each process.
    """
    return list(dict.fromkeys(seed for source in sources for seed in _seeds_of(read_by(source))))


def _seeds_of(source: Any) -> Iterator[Any]:
    """The seeds within a source; refuses a WebDataset that is in another order whenever it is read (webdataset 1.0)."""
    for stage in _stages_of(source):
        if isinstance(drawn := getattr(stage, "generator", None), np.random.Generator):
            state = json.dumps(drawn.bit_generator.state, default=str)
            yield hashlib.blake2b(state.encode(), digest_size=8).hexdigest()
    if type(source).__module__.startswith("webdataset"):
        yield from _seeds_of_stage(source)
    within = source.datasets if isinstance(source, ChainDataset) else getattr(source, "pipeline", None)
    for stage in within or ():
        yield from _seeds_of(read_by(stage))


def _seeds_of_stage(stage: Any) -> Iterator[Any]:
    name = getattr(getattr(stage, "f", None), "__name__", type(stage).__name__)
    if name in _OTHER_EVERY_TIME:
        remedy = "Take .shuffle(1000, seed=0), or leave it out: each window is shuffled."
        raise checks.value_error("shards", _ONE_ORDER, f"one with {name.strip('_')}", remedy)
    if name == "SimpleShardList" and stage.seed is not None:  # of True it makes the time of day
        yield stage.seed
    if name != "_shuffle":
        return
    # _shuffle(data, bufsize=1000, initial=100, rng=None, seed=None), without the data
    given = dict(zip(("bufsize", "initial", "rng", "seed"), stage.args, strict=False)) | stage.kw
    if not given.get("bufsize", True):
        return
    if given.get("rng") is not None or given.get("seed") is None:
        remedy = "Give it a seed, as .shuffle(1000, seed=0), or leave it out: each window is shuffled."
        raise checks.value_error("shards", _ONE_ORDER, "one with .shuffle", remedy)
    yield given["seed"]


def split_stream(source: Any) -> list[Any]:
    """The shards of a Hugging Face stream."""
    number = source.num_shards
    for stage in _stages_of(source) if number > 1 else ():
        kind = type(stage).__name__
        numbered = kind == "FilteredExamplesIterable" and getattr(stage, "with_indices", False)
        if numbered or kind in ("SkipExamplesIterable", "TakeExamplesIterable"):
            rule = "a stream without skip, take, and filter by numbers"
            remedy = "Each of its shards would count by itself: give [stream], which is read as one shard."
            raise checks.value_error("shards", rule, f"one of {number} shards", remedy)
    return [source.shard(num_shards=number, index=index) for index in range(number)]


def check_whole(sources: Sequence[Any]) -> None:
    """Refuses, on several ranks, shards that each rank has other ones of: shared out again, most are never read."""
    for source in map(read_by, sources):
        # What `datasets.distributed.split_dataset_by_node` notes in a Hugging Face stream (datasets 5.2).
        split: Any = getattr(source, "_distributed", None)
        if split is not None and split.world_size > 1:
            given = f"those of node {split.rank} of {split.world_size}"
            remedy = "Leave out split_dataset_by_node: StreamBatches shares the shards out."
            raise checks.value_error("shards", "the same on every rank", given, remedy)


def tell_epoch(sources: Sequence[Any], epoch: int) -> None:
    """Tells the epoch to sources that have a `set_epoch`; of loaders to their data sets."""
    for source in map(read_by, sources):
        if callable(getattr(source, "set_epoch", None)):
            source.set_epoch(epoch)


def read_by(source: Any) -> Any:
    """What a loader reads; any other source itself."""
    return source.dataset if isinstance(source, DataLoader) else source


def has_state(source: Any) -> bool:
    return callable(getattr(source, "state_dict", None)) and callable(getattr(source, "load_state_dict", None))


def keeps_state(source: Any) -> bool:
    """Whether a source goes on exactly where its state was saved."""
    if not has_state(source) or _forgets(read_by(source)):
        return False
    # Of an IterableDataset without a state torchdata's loader reads again what it had read. Once it has gone on from a
    # state, it counts these twice (torchdata 0.11).
    dataset = read_by(source)
    return dataset is source or not isinstance(dataset, IterableDataset) or has_state(dataset)


class Source:
    """What a shard is read from, anew in every pass.

    Args:
        given: By the user. It is read itself only where it has no state of its own; else copies of it are.

    Attributes:
        begin: The state before anything was read; None where there is none, or where it is not known.
    """

    def __init__(self, given: Any) -> None:
        self._given = given
        # What knows where it stands: of a loader its data set. A copy may share the object that notes it.
        self._noted = read_by(given)
        self.begin: Any = None
        self._stood = False

    def stand(self, state: Any, begin: Any, *, epoch: int) -> tuple[Any, bool]:
        """The source to read, and whether it goes on from `state`; if not, it begins anew.

        Args:
            state: Of the source, where it is to go on; else None.
            begin: `begin` as another process knew it, or None.
            epoch: Which epoch is read.
        """
        first = not (self._stood or id(self._noted) in _begins)
        self._stood = True
        if self.begin is None and has_state(self._noted):
            self.begin = _begin_of(self._noted, begin)
        # A source that was told where to go on, or was left in the middle, would begin there in every pass.
        own = _copy(self._given) if has_state(self._given) else self._given
        if _is_hugging_face(self._noted) and not getattr(own, "num_workers", 0):
            own = _copy_within(own)
            tell_epoch([own], epoch)
        # A state of shards that had one, resumed with shards that have none, such as loaders of them: read again.
        if state is not None and keeps_state(own):
            own.load_state_dict(copy.deepcopy(state))
            return own, True
        noted = read_by(own)
        if not has_state(noted) or _is_hugging_face(noted) or getattr(own, "num_workers", 0):
            return own, False
        if self.begin is not None:
            noted.load_state_dict(copy.deepcopy(self.begin))
            tell_epoch([noted], epoch)
        elif first:
            with suppress(Exception):  # it need not know where it stands before it is read
                self.begin = _begin_of(self._noted, copy.deepcopy(noted.state_dict()))
        return own, False


# Where sources begin, by their identity: several streams may read one, and then it stands anywhere.
_begins: dict[int, Any] = {}


def _begin_of(source: Any, begin: Any) -> Any:
    """Where a source begins, as it is known. If it is not, `begin` is known from now on, while the source lives."""
    if id(source) not in _begins:
        try:
            weakref.finalize(source, _begins.pop, id(source), None).atexit = False
        except TypeError:  # no weak reference may refer to it
            return begin
    if _begins.get(id(source)) is None:
        _begins[id(source)] = begin
    return _begins[id(source)]


def _copy_within(source: Any) -> Any:
    """A Hugging Face stream, or a loader of one, with stages of its own: they count what was read (datasets 5.2)."""
    if read_by(source) is source:
        return source.shard(num_shards=1, index=0)
    loader = copy.copy(source)
    vars(loader)["dataset"] = _copy_within(source.dataset)  # a loader lets nobody set it
    return loader


def _copy(source: Any) -> Any:
    """A shallow copy, whose own state is not that of the source."""
    copied = copy.copy(source)
    # The copy of a source may have its very `__dict__`, so that both stand alike.
    if hasattr(source, "__dict__") and copied.__dict__ is source.__dict__:
        copied.__dict__ = dict(source.__dict__)
    return copied


def _is_hugging_face(source: Any) -> bool:
    return hasattr(source, "_ex_iterable")


def _forgets(source: Any) -> bool:
    """Whether the state of a Hugging Face stream leaves something out (datasets 5.2).

    A shuffle leaves out what its buffer holds. Streams that stand side by side share their stages with every copy.
    """
    kinds = ("BufferShuffledExamplesIterable", "HorizontallyConcatenatedMultiSourcesExamplesIterable")
    return any(type(stage).__name__ in kinds for stage in _stages_of(source))


def _stages_of(source: Any) -> Iterator[Any]:
    """What a Hugging Face stream is made of (datasets 5.2); of any other source nothing."""
    stages: list[Any] = [getattr(source, "_ex_iterable", None)]
    while stages:
        stage = stages.pop()
        yield stage
        stages += [stage.ex_iterable] if hasattr(stage, "ex_iterable") else getattr(stage, "ex_iterables", [])

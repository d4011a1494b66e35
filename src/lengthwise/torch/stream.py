"""StreamBatches: batches of sequences whose lengths are not known in advance. Each window of the stream is one plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from torch import distributed
from torch.utils.data import default_collate

from lengthwise import checks
from lengthwise._random import Key
from lengthwise._samples import nested_error
from lengthwise.choices.batching import Batching, check_batching, is_open_in_0_1
from lengthwise.choices.deal import World, check_world
from lengthwise.planning.make import NoStepError
from lengthwise.planning.plan import Plan, PlanMismatchError
from lengthwise.planning.plan_warnings import FirstWarnings
from lengthwise.planning.resume import EarlierRun, read_runs
from lengthwise.torch.guard import Notices, changed, check_no_worker
from lengthwise.torch.position import DAMAGED, check_alike, check_plain, split_runs
from lengthwise.torch.ranks import OwnRank
from lengthwise.torch.shards import BEGIN, Shard, Start, list_shards, read_starts, set_epoch_of
from lengthwise.torch.stream_window import (
    Part,
    SampleFunctions,
    StreamWindow,
    check_run,
    deliver,
    join_parts,
    naming_samples,
    share_placeholder,
)

_LAST_EPOCH = 2**31
_COMPARED = 8  # of the first shard, the ranks compare the lengths of this many sequences


class _Position(NamedTuple):
    """A position: epoch, window, the positions of the shards before that window, its runs, and its name."""

    epoch: int
    window: int = 0
    starts: tuple[Start, ...] = ()
    runs: tuple[EarlierRun, ...] = ()
    lengths: str = ""

    @property
    def has_rest(self) -> bool:
        """Tells if the epoch has begun, and some shard was not at its end."""
        return any(not start["ended"] for start in self.starts)

    def place(self) -> dict[str, Any]:
        """Returns all parts but the positions of the shards, as plain numbers and words."""
        runs = [run.numbers for run in self.runs]
        return {"epoch": self.epoch, "window": self.window, "runs": runs, "lengths": self.lengths}


class StreamBatches:
    """A loader of streams. It plans and yields the batches of one window while it reads the next.

    Every promise of a plan holds in every window: the budget, each sequence once, equal steps on every rank, the same
    batches from the same seed. Once read, a sequence waits for the batches of at most two windows. A larger buffer
    pads less at the same randomness; a buffer of 10,000 is hardly worse than one plan of the whole stream.

    Rank r of R reads the shards r, r + R, r + 2R, ... and batches their sequences. Ranks exchange the lengths once a
    window. Make the shards about equal in size: a rank whose shards end early gets batches with a loss scale of 0.

    Do not put the stream into a `DataLoader`. It reads in the process that trains, some samples before each batch. If
    reading takes long, let workers read: give `DataLoader(shard, batch_size=None, num_workers=1)` as a shard. If no new
    epoch is set, the same epoch is repeated. If an epoch is left early, its last sequences are lost. You get one
    warning of each. With two loops at once, a state has the position of the latest batch.

    Args:
        shards: A list of iterables, or a Hugging Face stream, which has shards of its own. Give every rank the same
            list, with at least one shard for each rank. A shard yields the same samples in every pass of an epoch.
        batching: The choices. `RandomSteps` are refused.
        length: A function of a sample that returns its length, or a pair of lengths.
        buffer: The sequences in a window, on all ranks together. Each shard gives an equal part, and at least one.
        collate_fn: A function of a list of samples that returns a batch.
        weight: A function of a sample that returns its weight in `loss_scale`, such as its number of tokens; by
            default 1.
        group_of: A function of a sample that returns its task or source, a whole number or a name. No batch mixes two.
        seed: The seed of the run.
        rank: The rank of this process; by default from torch.distributed if it is running, else 0.
        world_size: The number of ranks that share out the shards; by default from torch.distributed, else 1.
        group: The process group of the ranks that share out the shards, in place of rank and world_size.
        micro_batches: The batches of each rank in one optimiser step.

    Attributes:
        loss_scale: The factor for the mean loss of the latest batch, as in `lengthwise.loss_scales`.
        last_of_step: True if the latest batch is the last of its step.
        plan: The plan of the current window.

    Raises:
        ValueError: An argument breaks its rule. In a loop, on all ranks: there are fewer shards than ranks, or as
            `make_plan` for a window.
        TypeError: A shard cannot be read again, or `batching` is not a `Batching`.

    >>> import lengthwise as lw
    >>> words = ["of", "the", "people", "by", "the", "people"]
    >>> batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted(), arrange=lw.InOrder())
    >>> list(StreamBatches([words], batching, length=len, buffer=4, collate_fn=list))
    [['of', 'by'], ['the', 'people'], ['the', 'people']]
    """

    def __init__(
        self,
        shards: Any,
        batching: Batching,
        *,
        length: Callable[[Any], Any],
        buffer: int = 10_000,
        collate_fn: Callable[[list[Any]], Any] = default_collate,
        weight: Callable[[Any], float] | None = None,
        group_of: Callable[[Any], Any] | None = None,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        group: distributed.ProcessGroup | None = None,
        micro_batches: int = 1,
    ) -> None:
        check_batching(batching)
        if batching.chunks is not None:
            raise checks.value_error("batching", "without chunks", batching.chunks, "Cut sequences before you stream.")
        # Each rank batches its own samples. If a step has one batch of each rank, random steps would pad as random
        # batches do. A window may also have more groups than a step has batches.
        if batching.takes_random_steps:
            remedy = "Leave order and deal out: on one rank, a budget takes random steps if they pad little enough."
            raise checks.state_error("Streams form no RandomSteps: each rank batches its own samples", remedy)
        if not callable(collate_fn):
            raise checks.type_error("collate_fn", "a function of a list of samples", collate_fn, "Give list, say.")
        self._functions = SampleFunctions(length, weight, group_of)
        self._shards = list_shards(shards)
        self.batching = batching
        self.buffer: int = checks.check_whole("buffer", buffer, minimum=1, remedy="Give 10_000, for example.")
        self._quota = max(1, self.buffer // len(self._shards))  # samples of a shard in a window
        self.seed: int = int(Key(seed=seed).seed)
        self.micro_batches: int = check_world(1, micro_batches).micro_batches
        self._collate = collate_fn
        same = "Give every rank the same shards, batching, seed and buffer."
        self._own_rank = OwnRank(rank, world_size, group, remedy=same)
        if self._own_rank.is_alone and self._own_rank.world_size > 1:
            state = f"The {world_size} ranks of a stream exchange lengths, for which rank and world_size are not enough"
            raise checks.state_error(state, "Give group=mesh['dp'].get_group(), the group of data parallelism.")
        self._start = self._position = _Position(epoch=0)  # the position of the next pass, and of the latest batch
        # "begun" once a pass over the epoch took a second batch: the first may have been a look.
        self._use: Literal["new", "begun", "ended"] = "new"
        self._notices, self._warnings = Notices(), FirstWarnings()
        self.loss_scale: float = 1.0
        self.last_of_step: bool = True
        self.plan: Plan | None = None

    @property
    def epoch(self) -> int:
        return self._position.epoch

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next pass, and of shards that have a `set_epoch`.

        If a state of this epoch was just loaded, its position is kept. Set the epoch before a pass begins: within a
        pass, the next batch raises.
        """
        epoch = checks.check_whole("epoch", epoch, minimum=0, maximum=_LAST_EPOCH, remedy="Count epochs from 0.")
        set_epoch_of(self._shards, epoch)
        if epoch != self.epoch:
            if self._use == "begun":
                self._notices.warn_early_end_of_stream(self.epoch)
            elif self._start.starts and (epoch < self.epoch or self._start.has_rest):
                self._notices.warn_left_position(self.epoch, epoch)
            self._start, self._use = _Position(epoch=epoch), "new"
        self._position = self._start

    def __len__(self) -> int:
        """Raises, because the number of batches is unknown. A `DataLoader` would ask for it first."""
        remedy = "The stream is a loader: loop over it, without a DataLoader."
        raise checks.state_error("The number of batches of a stream is unknown", remedy, TypeError)

    def __bool__(self) -> bool:
        return True  # else Python would call `__len__`

    def __iter__(self) -> Iterator[Any]:
        check_no_worker("stream", "Loop over it in the process that trains; workers may read DataLoaders as shards.")
        start, is_second = self._start, self._use != "new"
        for number, batch in enumerate(self._read_windows(start)):
            if number:
                self._note_pass(start.epoch, is_second=is_second)
            yield batch
            if self._start is not start:
                raise changed(start.epoch, self.epoch)
        self._note_pass(start.epoch, is_second=is_second)
        # The rest after a loaded position is taken once.
        self._start, self._use = _Position(epoch=start.epoch) if start.starts else start, "ended"

    def _note_pass(self, epoch: int, *, is_second: bool) -> None:
        """Records that a pass is more than a look; warns if its epoch was taken before."""
        self._use = "begun"
        if is_second:
            self._notices.warn_second_pass(epoch)

    def _read_windows(self, position: _Position) -> Iterator[Any]:
        world = check_world(self._own_rank.world_size, self.micro_batches)
        self._own_rank.check_started(self._facts)
        if len(self._shards) < world.world_size:
            rule = f"at least one for each of the {world.world_size} ranks"
            raise checks.value_error("shards", rule, len(self._shards), "Split the data into more shards.")
        begins, has_batches = not position.starts, False
        shards = self._open_shards(position.starts)
        while True:
            samples, window, starts = self._meet(shards, position)
            if position.lengths not in ("", window.name) and any(start["source"] for start in position.starts):
                # The state of a shard may be incomplete. Then all shards are read from their beginning.
                shards = self._open_shards([{**start, "source": None} for start in position.starts])
                samples, window, starts = self._meet(shards, position)
            if position.lengths not in ("", window.name):
                rule = f"the checkpoint's, {position.lengths!r}"
                remedy = "Resume with shards that give the same samples, in the same order and groups."
                raise PlanMismatchError(checks.sentence("window", rule, window.name, remedy))
            position = self._position = position._replace(starts=starts, lengths=window.name)
            if not len(window.shards):
                break
            for batch in self._deliver(samples, window, world, shards, position):
                has_batches = True
                yield batch
            position = _Position(position.epoch, position.window + 1)
        if begins and not has_batches:
            remedy = "Give a larger buffer or smaller batches, and shards that can be read again in every epoch."
            raise NoStepError(checks.sentence("steps", "at least 1", 0, remedy, at=f"epoch {position.epoch}"))

    def _open_shards(self, starts: Sequence[Start]) -> dict[int, Shard]:
        """Returns readers of this rank's shards, by their numbers: rank, rank + world_size, rank + 2 world_size, ..."""
        numbers = range(self._own_rank.rank, len(self._shards), self._own_rank.world_size)
        starts = starts or [BEGIN] * len(self._shards)
        return {number: Shard(self._shards[number], starts[number], quota=self._quota) for number in numbers}

    def state_dict(self) -> dict[str, Any]:
        """Returns the position after the latest batch, the same on every rank."""
        return {**self._facts(), **self._position.place(), "starts": [dict(start) for start in self._position.starts]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state of any number of ranks: the next pass yields the rest of the epoch.

        Raises:
            ValueError: The state is not from `state_dict`.
            PlanMismatchError: The state has another seed, batching, buffer or number of shards.
        """
        facts = self._facts()
        if not isinstance(state, Mapping) or not {*_Position._fields, *facts} <= state.keys():
            raise checks.value_error("state", "a state from StreamBatches.state_dict", state, DAMAGED)
        check_plain(state, facts)
        remedy = "Resume with what the checkpoint was made with, or begin a new run."
        check_alike({name: state[name] for name in facts}, facts, whose="the checkpoint's", remedy=remedy)
        runs = read_runs(state["runs"], name="runs", remedy=DAMAGED)
        # Streams compare no fingerprints of plans. With one batch a step, the plan is that of 0.1.
        if is_open_in_0_1(state["batching"]) and any(run.world.slots > 1 for run in runs):
            reason = "The checkpoint is of version 0.1, whose default dealt batches to ranks by another rule"
            raise checks.state_error(reason, "Finish its epoch with 0.1, or begin a new run.", PlanMismatchError)
        self._start = self._position = _Position(
            epoch=checks.check_whole("epoch", state["epoch"], minimum=0, maximum=_LAST_EPOCH, remedy=DAMAGED),
            window=checks.check_whole("window", state["window"], minimum=0, remedy=DAMAGED),
            starts=read_starts(state["starts"], len(self._shards), remedy=DAMAGED),
            runs=runs,
            lengths=str(state["lengths"]),
        )
        self._use = "new"
        set_epoch_of(self._shards, self.epoch)

    def _facts(self) -> dict[str, Any]:
        batching = json.loads(self.batching.to_json())
        return {"seed": self.seed, "buffer": self.buffer, "shards": len(self._shards), "batching": batching}

    def _meet(self, shards: dict[int, Shard], position: _Position) -> tuple[list[Any], StreamWindow, tuple[Start, ...]]:
        """Reads the rest of the next window, and exchanges its lengths and positions with all ranks; a collective."""
        samples: list[Any] = []

        def read() -> tuple[Part, dict[str, Any]]:
            numbers: list[int] = []
            starts: dict[int, Start] = {}
            for number, shard in shards.items():
                shard_samples, starts[number] = shard.take()
                samples.extend(shard_samples)
                numbers += [number] * len(shard_samples)
            part = self._functions.of(samples, numbers, starts)
            place = {"micro_batches": self.micro_batches, **position.place()}
            if self._own_rank.world_size > 1 and not (position.window or position.starts):
                first = Shard(self._shards[0], BEGIN, quota=_COMPARED).take()[0]
                place["lengths of shard 0"] = np.array([self._functions.length(sample) for sample in first]).tolist()
            return part, place

        parts, places = zip(*self._own_rank.share(read), strict=True)
        remedy = (
            "Give every rank all shards in the same order (no split_dataset_by_node, no shuffle without a seed), and "
            "the same epoch, state and micro_batches."
        )
        for rank, place in enumerate(places):
            check_alike(places[0], place, whose="what rank 0 has", remedy=remedy, at=f"rank {rank}")
        starts = {number: start for part in parts for number, start in part.starts.items()}
        if len(starts) != len(self._shards):
            remedy = "End the loop before torch.distributed ends. A copied stream has lost its group: make a new one."
            state = f"The ranks have exchanged the lengths of {len(starts)} of {len(self._shards)} shards"
            raise checks.state_error(state, remedy)
        in_order = tuple(starts[number] for number in sorted(starts))
        return samples, join_parts(parts, in_order), in_order

    def _deliver(
        self, samples: list[Any], window: StreamWindow, world: World, shards: dict[int, Shard], position: _Position
    ) -> Iterator[Any]:
        rank = self._own_rank.rank
        # A window lists samples shard by shard. These are the numbers of this rank's samples.
        numbers = np.flatnonzero(window.shards % world.world_size == rank).tolist()
        sample_of = dict(zip(numbers, samples, strict=True))
        runs, first_place = split_runs(position.runs, world)
        is_full = len(window.shards) >= self._quota * len(self._shards)
        key = {"seed": self.seed, "epoch": position.epoch, "number": position.window}
        with naming_samples(window.shards.tolist(), position.starts), self._warnings.give(world):
            deliveries = deliver(window, self.batching, runs, world, **key, is_full=is_full)
        self.plan = deliveries.plan
        if is_full and not runs and not deliveries.plan.steps:
            remedy = "All sequences of this window would be left out. Give a larger buffer."
            at = f"window {position.window} of epoch {position.epoch}"
            rule = "large enough for one step in every window"
            raise NoStepError(checks.sentence("buffer", rule, self.buffer, remedy, at=at))
        placeholder = share_placeholder(deliveries, window, sample_of, self._own_rank)
        check_run(first_place, deliveries.plan)
        batches = deliveries.plan.grid[:, :, rank].reshape(-1).tolist()
        scales = deliveries.scales[:, :, rank].reshape(-1).tolist()
        for place in range(first_place, len(batches)):
            is_own = deliveries.owners[batches[place]] == rank
            batch = [sample_of[number] for number in deliveries.batch(batches[place])] if is_own else list(placeholder)
            # Reads a part of the next window for each batch, so that no step waits for all of it.
            for shard in shards.values():
                shard.read_ahead((place + 1) / len(batches))
            # Collates before the state counts the batch: a batch that fails here was not yielded.
            try:
                collated = self._collate(batch)
            except RecursionError as error:
                raise nested_error(batch[0]) from error
            self.loss_scale = scales[place]
            self.last_of_step = (place + 1) % world.micro_batches == 0
            if self.last_of_step:  # the gradients of an unfinished step are in no checkpoint: it is taken again
                self._position = position._replace(runs=(*runs, EarlierRun(world, place + 1)))
            yield collated

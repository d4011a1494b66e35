"""StreamBatches: batches of sequences whose lengths are not known ahead. The buffer is a window; a window is a plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from torch import distributed
from torch.utils.data import default_collate, get_worker_info

from lengthwise import checks
from lengthwise._random import Key
from lengthwise.choices.batching import Batching, check_batching
from lengthwise.choices.cut import OversizeError
from lengthwise.choices.deal import World, check_world
from lengthwise.lengths import as_lengths
from lengthwise.planning.make import NoStepError, read_groups
from lengthwise.planning.missed import FirstWarnings
from lengthwise.planning.plan import Plan, PlanMismatchError
from lengthwise.planning.rest import EarlierRun, read_runs
from lengthwise.torch.guard import changed
from lengthwise.torch.measured import ask, check_length, check_measured, check_weighed, name_sample, tell
from lengthwise.torch.notices import Notices
from lengthwise.torch.position import DAMAGED, check_alike, check_plain, split_runs
from lengthwise.torch.ranks import OwnRank
from lengthwise.torch.shards import BEGIN, Reader, Shard, Start, list_shards, numbers_of, read_starts
from lengthwise.torch.sources import Source, check_whole, seeds_of, tell_epoch
from lengthwise.torch.window import Window, check_taken, deliver, name_window, share_placeholder

_LAST_EPOCH = 2**31


class _Position(NamedTuple):
    """A window of an epoch, where each shard stood before it, what was taken of it, and the name of its lengths."""

    epoch: int
    window: int = 0
    starts: tuple[Start, ...] = ()
    runs: tuple[EarlierRun, ...] = ()
    lengths: str = ""
    ended: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether it was noted after the last batch of its epoch, or behind it, where every shard was at its end."""
        return self.ended or (bool(self.starts) and all(start["ended"] for start in self.starts))

    def place(self) -> dict[str, Any]:
        """What is the same on every rank without being told, as plain numbers and words."""
        runs = [run.numbers for run in self.runs]
        return {"epoch": self.epoch, "window": self.window, "runs": runs, "lengths": self.lengths}


class _Read(NamedTuple):
    """What a rank has read of a window: the samples of each of its shards, and what all ranks must know of them."""

    samples: list[Any]
    starts: dict[int, Start]
    lengths: list[Any]
    weights: list[float]
    groups: list[Any]
    shards: list[int]
    place: dict[str, Any]  # where the rank stands


class StreamBatches:
    """Batches of streams: it reads a window of sequences, and plans and yields its batches while it reads the next.

    Every promise of a plan holds in every window: the hard budget, each sequence once, as many steps on each rank, the
    same batches again from the same seed. A sequence waits for its window and the one before, and no longer. A larger
    buffer pads less at the same mixing; 10,000 sequences are hardly worse than a plan of all.

    Rank r of R reads the shards r, r + R, r + 2R, ... and batches what it has read. Ranks meet once a window, to tell
    each other the lengths. So shards should hold about as many sequences each: a rank whose shards are at their end
    before the others' takes batches without effect, scaled by 0, so that all ranks take as many.

    It is a loader by itself: do not put it into a `DataLoader`. Samples are read in this process, while the model
    trains on the others. If that takes long, let workers read: give `DataLoader(shard, batch_size=None, num_workers=1)`
    as a shard. What goes wrong in use: an epoch that is not set is the same again, and one that is left early loses
    sequences. Both warn once. Of two loops at once, a state tells the position of the one that took the last batch.

    Args:
        shards: A list of iterables, the same on every rank, one for each rank at least; each gives the same samples
            whenever it is read. Or a Hugging Face stream: its shards are taken.
        batching: How batches are made. Of several ranks each batches its own, and random steps are refused.
        length: From a sample to its length, or to a pair of lengths.
        buffer: Sequences in a window, on all ranks together: as many of each shard, and at least one.
        collate_fn: From the samples of a batch to what is yielded.
        weight: From a sample to what it counts for in `loss_scale`, such as its tokens; by default 1.
        group_of: From a sample to its task or source, a whole number or a name: no batch mixes two.
        seed: Names the run.
        rank: The rank of this process; by default that of torch.distributed if it is running, else 0.
        world_size: How many ranks share out the shards; by default that of torch.distributed, else 1.
        group: The ranks that share out the shards, in place of the two, such as those of data parallelism.
        micro_batches: Batches of each rank in one optimiser step.

    Attributes:
        loss_scale: The factor for the mean loss of the batch that was yielded last, as of `lengthwise.loss_scales`.
        last_of_step: Whether that batch is the last of its step.
        plan: The plan of the window that it is of.

    Raises:
        ValueError: Fewer shards than ranks, and later what `make_plan` raises of a window, on all ranks.
        TypeError: Shards that cannot be read again, or no batching.

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
            raise checks.value_error("batching", "without chunks", batching.chunks, "Cut them before streaming.")
        if not callable(length):
            raise checks.type_error("length", "a function of a sample", length, "Give length=len, for example.")
        if not callable(collate_fn):
            raise checks.type_error("collate_fn", "a function of a list of samples", collate_fn, "Give list, say.")
        for name, function in (("weight", weight), ("group_of", group_of)):
            if function is not None and not callable(function):
                raise checks.type_error(name, "a function of a sample, or None", function, "Leave it out.")
        self._shards = list_shards(shards)
        self._sources = [Source(shard) for shard in self._shards]
        self._seeds = seeds_of(self._shards)
        self.batching = batching
        self.buffer: int = checks.check_whole("buffer", buffer, minimum=1, remedy="Give 10_000, for example.")
        self.seed: int = int(Key(seed=seed).seed)
        self.micro_batches: int = check_world(1, micro_batches).micro_batches
        self._length, self._weight, self._group_of, self._collate = length, weight, group_of, collate_fn
        same = "Give every rank the same shards, batching, seed and buffer."
        self._own_rank = OwnRank(rank, world_size, group, remedy=same)
        if self._own_rank.is_alone and self._own_rank.world_size > 1:
            rule = f"given in place of rank and world_size by {world_size} ranks, which tell each other the lengths"
            raise checks.value_error("group", rule, None, "Give that of data parallelism: mesh['dp'].get_group().")
        self._position = _Position(epoch=0)
        self._resumes = False
        self._taken: int | None = None  # the epoch of the last pass that was more than a look
        self._unfinished = False  # whether that pass has not come to its end
        self._is_last = False  # whether nothing was read behind the batch that was yielded last
        self._notices, self._warnings = Notices(), FirstWarnings()
        self.loss_scale: float = 1.0
        self.last_of_step: bool = True
        self.plan: Plan | None = None

    @property
    def epoch(self) -> int:
        return self._position.epoch

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch that the next pass reads; shards that have a `set_epoch` are told.

        An epoch whose state was just loaded goes on where it was. Set before a pass begins: a pass that is under way
        raises with its next batch.
        """
        epoch = checks.check_whole("epoch", epoch, minimum=0, maximum=_LAST_EPOCH, remedy="Count epochs from 0.")
        loaded = self._position
        unread = bool(loaded.starts) and not loaded.has_ended
        if self._resumes and (epoch < loaded.epoch or (epoch > loaded.epoch and unread)):
            self._notices.warn_left_position(loaded.epoch, epoch)
        elif self._unfinished and epoch != loaded.epoch:
            self._notices.warn_early_end_of_stream(loaded.epoch)
            self._unfinished = False
        tell_epoch(self._shards, epoch)
        if not (self._resumes and self._position.epoch == epoch):
            self._position, self._resumes = _Position(epoch=epoch), False

    def __len__(self) -> int:
        """Raises: nobody knows how many batches a stream has. A `DataLoader` would ask for that first."""
        remedy = "Loop over the stream itself, in no DataLoader: it is a loader."
        raise checks.type_error("len", "asked of lengths that are known ahead", "asked of a stream", remedy)

    def __bool__(self) -> bool:
        return True  # without asking for the len

    def __getstate__(self) -> dict[str, Any]:
        """Refuses copies and pickles of a stream that was begun: they would begin anew, behind the state they show."""
        if self._position.starts and not self._resumes:
            remedy = "Make another stream, and give it what state_dict() gives."
            at = f"window {self._position.window} of epoch {self.epoch}"
            raise checks.value_error("stream", "copied or pickled before its first batch", "begun", remedy, at=at)
        return self.__dict__

    def __iter__(self) -> Iterator[Any]:
        _check_no_worker()
        position = self._position if self._resumes else _Position(epoch=self._position.epoch)
        again = not self._resumes and self._taken == position.epoch
        # One batch may be a look, but not one behind those of a state.
        first = 2 if self._resumes else 1
        self._resumes = False
        for number, batch in enumerate(self._read_windows(position), first):
            if number == 2:
                self._take(position.epoch, again=again)
            self._unfinished = (self._unfinished or number > 1) and not self._is_last
            yield batch
            _check_no_worker()  # a loop that was begun before the workers were forked goes on in each of them
            if self._resumes or self._position.epoch != position.epoch:
                raise changed(position.epoch, self._position.epoch)
        self._unfinished = False
        self._take(position.epoch, again=again)

    def _take(self, epoch: int, *, again: bool) -> None:
        """Notes that an epoch is taken; warns if it is taken a second time."""
        self._taken = epoch
        if again:
            self._notices.warn_second_pass(epoch)

    def _read_windows(self, position: _Position) -> Iterator[Any]:
        world = check_world(self._own_rank.world_size, self.micro_batches)
        self._own_rank.check_started(self._facts)
        if len(self._shards) < world.world_size:
            rule = f"at least one for each of the {world.world_size} ranks"
            raise checks.value_error("shards", rule, len(self._shards), "Split the data into more shards.")
        if world.world_size > 1:
            check_whole(self._shards)
            if self.batching.takes_random_steps:  # as portions their random order would pad as random batches do
                rule, remedy = "left out where ranks batch what each has read", "Leave it to the stream."
                raise checks.value_error("deal", rule, self.batching.deal, remedy)
        starts = position.starts or (BEGIN,) * len(self._shards)
        own = {
            number: Shard(self._sources[number], starts[number], epoch=position.epoch)
            for number in numbers_of(self._own_rank.rank, world.world_size, self._shards)
        }
        reader = Reader(own, quota=max(1, self.buffer // len(self._shards)))
        begins, sequences, batches = not position.starts, 0, 0
        while True:
            samples, window, starts = self._meet(reader, position)
            position = self._position = position._replace(starts=starts, lengths=name_window(window, position.lengths))
            if not len(window.shards):
                break
            # A later window may hold nothing to learn, and most of all the last.
            if position.window == 0 and not window.weights.any():
                self._notices.warn_no_weight(position.epoch)
            sequences += len(window.shards)
            for batch in self._deliver(samples, window, world, reader, position):
                batches += 1
                yield batch
            position = _Position(position.epoch, position.window + 1)
        if begins and not sequences:
            self._notices.warn_no_sequence(position.epoch)
        elif begins and not batches:
            remedy = "No window has the batches of a step. Give a larger buffer, smaller batches, or tail='split'."
            raise NoStepError(checks.sentence("steps", "at least 1", 0, remedy, at=f"epoch {position.epoch}"))

    def state_dict(self) -> dict[str, Any]:
        """Where the stream stands: after the batch that was yielded last. The same on every rank."""
        position = self._position
        starts = [dict(start) for start in position.starts]
        return {**self._facts(), **position.place(), "starts": starts, "ended": position.ended}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state, of any number of ranks: the next pass yields what was not yielded.

        Raises:
            ValueError: The state is not one that `state_dict` gave.
            PlanMismatchError: It is one of another seed, batching, buffer or number of shards.
        """
        facts = self._facts()
        if not isinstance(state, Mapping) or not {*_Position._fields, *facts} <= state.keys():
            raise checks.value_error("state", "what StreamBatches.state_dict gives", state, DAMAGED)
        check_plain(state, facts)
        remedy = "Resume with what the checkpoint was made with, or begin a new run."
        check_alike({name: state[name] for name in facts}, facts, whose="the checkpoint's", remedy=remedy)
        self._position = _Position(
            epoch=checks.check_whole("epoch", state["epoch"], minimum=0, maximum=_LAST_EPOCH, remedy=DAMAGED),
            window=checks.check_whole("window", state["window"], minimum=0, remedy=DAMAGED),
            starts=read_starts(state["starts"], len(self._shards), remedy=DAMAGED),
            runs=read_runs(state["runs"], name="runs", remedy=DAMAGED),
            lengths=str(state["lengths"]),
            ended=checks.check_flag("ended", state["ended"]),
        )
        self._resumes, self._taken, self._unfinished = True, None, False
        tell_epoch(self._shards, self._position.epoch)

    def _facts(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "buffer": self.buffer,
            "shards": len(self._shards),
            "seeds of shards": self._seeds,
            "batching": json.loads(self.batching.to_json()),
        }

    def _meet(self, reader: Reader, position: _Position) -> tuple[list[Any], Window, tuple[Start, ...]]:
        """Reads what is missing of the next window, and tells the other ranks where it began; a collective."""
        try:
            read = self._describe(reader, position)
        except Exception as error:  # the other ranks are waiting: it is told first, and raised after
            self._own_rank.gather(tell(error))
            raise
        told = self._own_rank.gather(read._replace(samples=[]))
        for rank, each in enumerate(told):
            if isinstance(each, str):  # the error of that rank
                rule = "read on every rank"
                raise PlanMismatchError(checks.sentence("window", rule, "not read", each, at=f"rank {rank}"))
        remedy = "Set the same epoch on every rank, and give each the same state and micro_batches."
        for rank, each in enumerate(told):
            check_alike(told[0].place, each.place, whose="what rank 0 has", remedy=remedy, at=f"rank {rank}")
        starts = {number: start for each in told for number, start in each.starts.items()}
        if sum(len(each.starts) for each in told) != len(self._shards):
            rule = "that of the ranks that meet, in all of a pass"
            remedy = "Let the loop end before torch.distributed does; a copy of a stream has no group, so make it anew."
            raise checks.value_error("world_size", rule, self._own_rank.world_size, remedy)
        in_order = tuple(starts[number] for number in sorted(starts))
        return read.samples, _join(told), in_order

    def _describe(self, reader: Reader, position: _Position) -> _Read:
        samples, shards, starts = reader.take()
        check_length(self._length, samples)

        def named(place: int) -> str:
            return name_sample(place, shards, starts)

        lengths = check_measured(ask("length", self._length, samples, named), shards, starts)
        weighed = [1.0] * len(samples) if self._weight is None else ask("weight", self._weight, samples, named)
        weights = check_weighed(weighed, named)
        groups = [] if self._group_of is None else ask("group_of", self._group_of, samples, named)
        place = {"micro_batches": self.micro_batches, **position.place()}
        return _Read(samples, starts, lengths, weights, groups, shards, place)

    def _deliver(
        self, samples: list[Any], window: Window, world: World, reader: Reader, position: _Position
    ) -> Iterator[Any]:
        rank = self._own_rank.rank
        # Shard by shard, each in its own order: this rank's samples among those of all.
        held = dict(zip(np.flatnonzero(window.shards % world.world_size == rank).tolist(), samples, strict=True))
        runs, taken = split_runs(position.runs, world)
        # All ranks know that a shard is at its end if it gave less than it was asked for.
        short = bool((np.bincount(window.shards, minlength=len(self._shards)) < reader.quota).all())
        whole = len(window.shards) >= reader.quota * len(self._shards)
        key = {"seed": self.seed, "epoch": position.epoch, "number": position.window}
        try:
            with self._warnings.give(world):
                found = deliver(window, self.batching, runs, world, **key, whole=whole)
        except OversizeError as error:  # the plan knows places in the window
            if error.sequence is not None:
                named = name_sample(error.sequence, window.shards.tolist(), position.starts)
                error.args = (str(error).replace(f" at sequence {error.sequence}.", f" at {named}."),)
            raise
        self.plan = found.plan
        if whole and not runs and not found.plan.steps:
            self._notices.warn_no_step(self.buffer, position.window, position.epoch)
        placeholder = share_placeholder(found, window, held, self._own_rank)
        check_taken(taken, found.plan)
        numbers = found.plan.grid[:, :, rank].reshape(-1)
        scales = found.scales[:, :, rank].reshape(-1)
        for place in range(taken, len(numbers)):
            own = found.owners[numbers[place]] == rank
            batch = [held[number] for number in found.batch(int(numbers[place])).tolist()] if own else list(placeholder)
            # The next window is read bit by bit, so that no step waits for all of it.
            reader.read_ahead((place + 1) / len(numbers))
            # Before the state counts it: a batch that cannot be collated was not yielded.
            collated = self._collate(batch)
            self.loss_scale = float(scales[place])
            self.last_of_step = (place + 1) % world.micro_batches == 0
            last = place + 1 == len(numbers)
            self._is_last = last and not reader.has_more
            ended = last and (short or (world.world_size == 1 and self._is_last))
            self._position = position._replace(runs=(*runs, EarlierRun(world, place + 1)), ended=ended)
            yield collated


def _check_no_worker() -> None:
    if (worker := get_worker_info()) is not None:
        given = f"in worker {worker.id} of {worker.num_workers}"
        remedy = "Loop over it in the process that trains; give DataLoader(shard, batch_size=None) as shards."
        raise checks.value_error("stream", "read in no loader's worker, for each would take all of it", given, remedy)


def _join(told: list[_Read]) -> Window:
    """The window of all ranks, shard by shard: the same on any number of ranks."""
    shards = np.array([number for each in told for number in each.shards], np.int64)
    order = np.argsort(shards, kind="stable")
    starts = {number: start for each in told for number, start in each.starts.items()}
    # Those of one rank may be numbers, and those of another pairs.
    lengths = check_measured([length for each in told for length in each.lengths], shards.tolist(), starts)
    weights = np.array([weight for each in told for weight in each.weights])
    array = as_lengths(lengths) if lengths else np.empty((0, 1), np.int64)
    names = [group for each in told for group in each.groups]
    return Window(array[order], weights[order], shards[order], read_groups(names, len(names))[order] if names else None)

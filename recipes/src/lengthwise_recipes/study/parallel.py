"""Several processes on this machine: the same work on each, as a rank of torch.distributed, and results from rank 0.

They talk by gloo on processors, and by nccl on GPUs, one for each rank.
"""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Lock
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import distributed

from lengthwise.checks import sentence
from lengthwise_recipes.study.watch import Watch, run_watched

Item = TypeVar("Item")

LONGEST_WAIT = timedelta(days=1)  # of one rank for another; where a rank ends early, all are ended at once
GRACE = 5.0  # seconds in which a process that has said its last word ends


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Which rank this process is, and its groups of the first ranks, by how many they are."""

    rank: int = 0
    groups: Mapping[int, distributed.ProcessGroup] = field(default_factory=dict)

    def wait_for(self, ranks: int) -> None:
        """Waits until the first so many ranks, of which this is one, have come here."""
        if ranks > 1:
            distributed.barrier(self.groups[ranks])

    def gather(self, value: Item, ranks: int) -> list[Item]:
        """The `value` of each of the first so many ranks, of which this is one."""
        if ranks == 1:
            return [value]
        values: list[Any] = [None] * ranks
        distributed.all_gather_object(values, value, group=self.groups[ranks])
        return values


ALONE = Place()  # rank 0 of one process


class Start(NamedTuple):
    """What a process is told of its place: the file where ranks meet, and the sizes of the groups."""

    rank: int
    sizes: tuple[int, ...]
    device: str
    store: str


class Voice(NamedTuple):
    """The one pipe on which all ranks speak, so that of two failures the first is heard first."""

    sender: Connection
    lock: Lock

    def say(self, message: object) -> None:
        with self.lock:
            self.sender.send(message)


class Failure(NamedTuple):
    """The last word of a rank that met an error."""

    rank: int
    error: str
    trace: str


class End(NamedTuple):
    """The last word of rank 0."""


def on_ranks(work: Callable[[Place], Iterator[Item]], sizes: Sequence[int], *, device: str = "cpu") -> Generator[Item]:
    """Runs `work` in one process for each rank, and yields what it yields on rank 0, each as it comes.

    Args:
        work: Importable by name, with arguments that can be pickled.
        sizes: How many ranks each group has; the largest of them is how many processes there are.
        device: cpu or cuda.

    Raises:
        ChildProcessError: A process ended before the work did, by an error or a signal; the others are ended too.
            Where this process is killed, all of them end.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    watched, held = context.Pipe(duplex=False)  # `held` stays here: it is closed when this process ends
    voice = Voice(sender, context.Lock())
    processes: list[SpawnProcess] = []
    with tempfile.TemporaryDirectory() as folder, receiver, watched, held:
        try:
            for rank in range(max(sizes)):
                start = Start(rank, tuple(sizes), device, str(Path(folder, "store")))
                given = (Watch(watched), _run, work, start, voice)
                process = context.Process(target=run_watched, args=given, daemon=True)
                process.start()
                processes.append(process)
            sender.close()
            yield from _receive(receiver, processes)
        finally:
            for process in processes:
                process.kill()
                process.join()


def _run(work: Callable[[Place], Iterator[Any]], start: Start, voice: Voice) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this process ends it
    try:
        for item in work(_place(start)):
            if start.rank == 0:
                voice.say(item)
        if start.rank == 0:
            voice.say(End())
    except Exception as error:
        voice.say(Failure(start.rank, "".join(traceback.format_exception_only(error)).strip(), traceback.format_exc()))
    else:
        distributed.destroy_process_group()


def _place(start: Start) -> Place:
    """Joins torch.distributed."""
    device = torch.device("cuda", start.rank) if start.device == "cuda" else None
    if device is not None:
        torch.cuda.set_device(device)
    distributed.init_process_group(
        "gloo" if device is None else "nccl",
        init_method=f"file://{start.store}",
        rank=start.rank,
        world_size=max(start.sizes),
        timeout=LONGEST_WAIT,
        device_id=device,
    )
    made = {size: distributed.new_group(list(range(size)), timeout=LONGEST_WAIT) for size in start.sizes}
    own = {size: group for size, group in made.items() if isinstance(group, distributed.ProcessGroup)}
    return Place(rank=start.rank, groups=own)


def _receive(receiver: Connection, processes: Sequence[SpawnProcess]) -> Iterator[Any]:
    """What rank 0 yields, up to its end."""
    for message in _messages(receiver, processes):
        if isinstance(message, End):
            return
        if isinstance(message, Failure):
            raise _failure_error(message, processes)
        yield message


def _messages(receiver: Connection, processes: Sequence[SpawnProcess]) -> Iterator[object]:
    """What any rank says, as long as none is ended by a signal and one is at work."""
    working = {process.sentinel: process for process in processes}
    while working:
        ready = wait([receiver, *working])
        message = _message(receiver) if receiver in ready else None
        if message is not None:
            yield message
            continue
        # Only now: whatever a process said, it said before it ended.
        for sentinel in working.keys() & set(ready):
            working.pop(sentinel).join()
        _check_none_killed(processes)
    raise _end_error(0, processes, "itself", "Try it on one process.")


def _message(receiver: Connection) -> object:
    """The next message; None where there is none, and no process is left to send one."""
    try:
        return receiver.recv()
    except EOFError:
        return None


def _failure_error(failure: Failure, processes: Sequence[SpawnProcess]) -> ChildProcessError:
    """The error of a rank, unless it is that another rank was killed before."""
    ended = wait([process.sentinel for process in processes], timeout=GRACE)
    for process in processes:
        if process.sentinel in ended:
            process.join()
    _check_none_killed(processes)
    error = _end_error(failure.rank, processes, failure.error.partition(":")[0], f"It said: {failure.error}")
    error.add_note(failure.trace)
    return error


def _check_none_killed(processes: Sequence[SpawnProcess]) -> None:
    for rank, process in enumerate(processes):
        code = process.exitcode or 0
        if code < 0:
            remedy = "Give fewer processes: the machine may lack memory for so many."
            raise _end_error(rank, processes, signal.Signals(-code).name, remedy)
        if code > 0:  # it never came to its work
            remedy = "See what it wrote to standard error, and start it from a script that can be imported."
            raise _end_error(rank, processes, f"status {code}", remedy)


def _end_error(rank: int, processes: Sequence[SpawnProcess], how: str, remedy: str) -> ChildProcessError:
    name = f"rank {rank} of {len(processes)}"
    return ChildProcessError(sentence(name, "at work to the end", f"ended by {how}", remedy))

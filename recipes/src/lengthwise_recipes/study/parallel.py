"""Runs the same work on several processes of this machine, as ranks of torch.distributed; rank 0 returns results.

The ranks use gloo on processors, and nccl on GPUs, one for each rank.
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

LONGEST_WAIT = timedelta(days=1)  # of one rank for another; if a rank ends early, all end at once
GRACE = 5.0  # seconds for a process to end after its last message


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The rank of this process, and the groups of the first ranks that it knows, by their sizes."""

    rank: int = 0
    groups: Mapping[int, distributed.ProcessGroup] = field(default_factory=dict)

    def wait_for(self, ranks: int) -> None:
        """Waits until the first `ranks` ranks, with this one, are here."""
        if ranks > 1:
            distributed.barrier(self.groups[ranks])

    def gather(self, value: Item, ranks: int) -> list[Item]:
        """Returns the `value` of each of the first `ranks` ranks, with this one."""
        if ranks == 1:
            return [value]
        values: list[Any] = [None] * ranks
        distributed.all_gather_object(values, value, group=self.groups[ranks])
        return values


ALONE = Place()  # rank 0 of one process


class Start(NamedTuple):
    """The arguments of a process: its rank, the sizes of the groups, and the file where ranks meet."""

    rank: int
    sizes: tuple[int, ...]
    device: str
    store: str


class Voice(NamedTuple):
    """The pipe that all ranks share to send messages, so the first failure arrives first."""

    sender: Connection
    lock: Lock

    def say(self, message: object) -> None:
        with self.lock:
            self.sender.send(message)


class Failure(NamedTuple):
    """The last message of a rank with an error."""

    rank: int
    error: str
    trace: str


class End(NamedTuple):
    """The last message of rank 0."""


def on_ranks(work: Callable[[Place], Iterator[Item]], sizes: Sequence[int], *, device: str = "cpu") -> Generator[Item]:
    """Runs `work` in a process for each rank, and yields the items of rank 0 as they come.

    If this process is killed, its processes end too.

    Args:
        work: A function that is importable by name, with arguments that can be pickled.
        sizes: The number of ranks in each group; the largest is the number of processes.
        device: cpu or cuda.

    Raises:
        ChildProcessError: A process ended early by an error or a signal; the others are ended too.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    reading_end, writing_end = context.Pipe(duplex=False)  # the writing end stays here, and closes with this process
    voice = Voice(sender, context.Lock())
    processes: list[SpawnProcess] = []
    with tempfile.TemporaryDirectory() as folder, receiver, reading_end, writing_end:
        try:
            for rank in range(max(sizes)):
                start = Start(rank, tuple(sizes), device, str(Path(folder, "store")))
                arguments = (Watch(reading_end), _run, work, start, voice)
                process = context.Process(target=run_watched, args=arguments, daemon=True)
                process.start()
                processes.append(process)
            sender.close()
            yield from _receive(receiver, processes)
        finally:
            for process in processes:
                process.kill()
                process.join()


def _run(work: Callable[[Place], Iterator[Any]], start: Start, voice: Voice) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the starting process ends this one
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
    """Joins torch.distributed and returns the place of this process."""
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
    all_groups = {size: distributed.new_group(list(range(size)), timeout=LONGEST_WAIT) for size in start.sizes}
    groups = {size: group for size, group in all_groups.items() if isinstance(group, distributed.ProcessGroup)}
    return Place(rank=start.rank, groups=groups)


def _receive(receiver: Connection, processes: Sequence[SpawnProcess]) -> Iterator[Any]:
    """Yields the items of rank 0, up to its end."""
    for message in _messages(receiver, processes):
        if isinstance(message, End):
            return
        if isinstance(message, Failure):
            raise _failure_error(message, processes)
        yield message


def _messages(receiver: Connection, processes: Sequence[SpawnProcess]) -> Iterator[object]:
    """Yields the messages of all ranks while one is at work; raises if a signal ended one."""
    working = {process.sentinel: process for process in processes}
    while working:
        ready = wait([receiver, *working])
        message = _message(receiver) if receiver in ready else None
        if message is not None:
            yield message
            continue
        # Only now: all messages of a process arrive before its end.
        for sentinel in working.keys() & set(ready):
            working.pop(sentinel).join()
        _check_none_killed(processes)
    raise _end_error(0, processes, "itself", "Try it on one process.")


def _message(receiver: Connection) -> object:
    """Returns the next message; None if all processes have ended."""
    try:
        return receiver.recv()
    except EOFError:
        return None


def _failure_error(failure: Failure, processes: Sequence[SpawnProcess]) -> ChildProcessError:
    """Returns the error of a rank; raises instead if a signal ended another rank."""
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
        if code > 0:  # it ended before its work
            remedy = "See what it wrote to standard error, and start it from a script that can be imported."
            raise _end_error(rank, processes, f"status {code}", remedy)


def _end_error(rank: int, processes: Sequence[SpawnProcess], how: str, remedy: str) -> ChildProcessError:
    name = f"rank {rank} of {len(processes)}"
    return ChildProcessError(sentence(name, "at work to the end", f"ended by {how}", remedy))

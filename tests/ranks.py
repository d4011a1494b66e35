"""Ranks: processes of torch.distributed that are started together, waited for with a deadline, and killed at its end.

Each is forked from one server that has imported PyTorch and the trainers: a new process would import these again, which
takes longer than most tests.
"""

import faulthandler
import multiprocessing
import os
import pickle
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed
from torch.multiprocessing.spawn import start_processes

PATIENCE = 600  # seconds after which a hang is a failure

FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["torch._dynamo", "lengthwise.torch", "accelerate", "transformers", "lightning"])


def run_ranks(function, *arguments, world_size=2, patience=PATIENCE):
    """Runs `function(rank, *arguments)` on every rank, to the end.

    Args:
        function: At the top of a module.
        arguments: To be pickled.
        patience: Seconds after which the ranks are killed.

    Raises:
        ProcessRaisedException: A rank failed; with its traceback.
        TimeoutError: They took too long; with where each of them was.
    """
    with tempfile.TemporaryDirectory() as folder:
        watched = (folder, patience, function, arguments)
        started = start_processes(_run, watched, nprocs=world_size, join=False, start_method="forkserver")
        end = time.monotonic() + patience
        try:
            while not started.join(timeout=max(0.0, end - time.monotonic())):
                if time.monotonic() >= end:
                    places = "\n".join(path.read_text() for path in sorted(Path(folder).iterdir()))
                    raise TimeoutError(f"the ranks hang:\n{places}")
        finally:
            for process in started.processes:
                process.kill()


def _run(rank, folder, patience, function, arguments):
    with Path(folder, f"rank {rank}").open("w") as file:
        faulthandler.dump_traceback_later(0.9 * patience, file=file)
        try:
            function(rank, *arguments)
        finally:
            faulthandler.cancel_dump_traceback_later()


def ask_ranks(function, *arguments, world_size=2, start=True):
    """Returns what `function(*arguments)` returns on each rank, in processes that are started as torchrun would.

    Args:
        function: At the top of a module; it may call `torch.distributed.get_rank()`.
        arguments: To be pickled.
        world_size: The number of ranks.
        start: If True, torch.distributed runs over gloo before the call; else the call may start it by itself.

    Raises:
        ProcessRaisedException: A rank failed; with its traceback.
        TimeoutError: They took too long; with where each of them was.
    """
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    with tempfile.TemporaryDirectory() as folder:
        given = (world_size, store.port, folder, start, function, arguments)
        run_ranks(_answer, *given, world_size=world_size)
        return [pickle.loads(Path(folder, str(rank)).read_bytes()) for rank in range(world_size)]


def _answer(rank, world_size, port, folder, start, function, arguments):
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world_size, "LOCAL_WORLD_SIZE": world_size}
    elastic = {"USE_AGENT_STORE": True, "RUN_ID": "test", "RESTART_COUNT": 0}
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
    facts = {**places, **meeting, **{f"TORCHELASTIC_{name}": value for name, value in elastic.items()}}
    os.environ.update({name: str(value) for name, value in facts.items()})
    torch.set_num_threads(1)
    if start:
        begin()
    Path(folder, str(rank)).write_bytes(pickle.dumps(function(*arguments)))
    if distributed.is_initialized():
        distributed.destroy_process_group()


def begin():
    """Starts torch.distributed in a process that `ask_ranks` has started."""
    distributed.init_process_group("gloo", timeout=timedelta(seconds=PATIENCE))


def complaint(act):
    """Returns the error of a wrong value that `act` raises, as "Kind: sentence", or "none"."""
    try:
        act()
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "none"

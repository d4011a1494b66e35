"""Ranks: processes of torch.distributed that are started together, waited for with a deadline, and killed at its end.

Each is a process of its own, forked from one server that has imported PyTorch and the trainers for all of them: to
spawn them would import these anew for every rank, which takes longer than what most tests then do.
"""

import faulthandler
import multiprocessing
import tempfile
import time
from pathlib import Path

from torch.multiprocessing.spawn import start_processes

PATIENCE = 120  # seconds after which a hang is a failure

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

"""Ranks: processes of torch.distributed that are started together, waited for with a deadline, and killed at its end.

Each is a process of its own, forked from one server that has imported PyTorch and the trainers for all of them: to
spawn them would import these anew for every rank, which takes longer than what most tests then do.
"""

import multiprocessing
import time

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
        TimeoutError: They took too long.
    """
    started = start_processes(function, arguments, nprocs=world_size, join=False, start_method="forkserver")
    end = time.monotonic() + patience
    try:
        while not started.join(timeout=max(0.0, end - time.monotonic())):
            if time.monotonic() >= end:
                alive = [rank for rank, process in enumerate(started.processes) if process.is_alive()]
                raise TimeoutError(f"ranks {alive} hang")
    finally:
        for process in started.processes:
            process.kill()

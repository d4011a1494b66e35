"""Programs: run as their user runs them, each in a process of its own that finds PyTorch and the trainers loaded."""

import multiprocessing
import os
import runpy
import signal
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import torch

from ranks import FORKSERVER, PATIENCE


def run_program(path, folder, **strict):
    """Runs a file to its end, in `folder`, where it may write: its exit code, what it printed, and its errors.

    Args:
        strict: The warnings that are errors, as `warnings.filterwarnings` takes them.

    Raises:
        AssertionError: It hangs; it is killed then.
    """
    process = FORKSERVER.Process(target=_run, args=(str(path), str(folder), strict))
    process.start()
    process.join(PATIENCE)
    hangs = process.is_alive()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what it has started and left
    process.join()
    assert not hangs
    printed, errors = (Path(folder, name).read_text(encoding="utf-8") for name in ("stdout", "stderr"))
    return process.exitcode, printed, errors


def _run(path, folder, strict):
    os.setsid()
    multiprocessing.set_start_method("fork", force=True)  # as in a process of the user's own
    torch.set_num_threads(1)
    os.chdir(folder)
    for output, name in ((1, "stdout"), (2, "stderr")):
        with open(name, "w") as file:
            os.dup2(file.fileno(), output)
    warnings.filterwarnings("error", **strict)
    sys.argv = [path]
    runpy.run_path(path, run_name="__main__")

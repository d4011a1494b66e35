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
    printed, errors = Path(folder, "stdout"), Path(folder, "stderr")
    process = start_program(path, printed=printed, errors=errors, folder=folder, strict=strict)
    process.join(PATIENCE)
    hangs = process.is_alive()
    sweep(process.pid)  # what it has started and left
    process.join()
    assert not hangs
    return process.exitcode, printed.read_text(encoding="utf-8"), errors.read_text(encoding="utf-8")


def start_program(path, *arguments, printed, errors, folder=".", strict=None, **environment):
    """Starts a file in a process, and returns this; what it prints, and its errors, are appended to two files."""
    options = (list(map(str, arguments)), (printed, errors), str(folder), strict, environment)
    process = FORKSERVER.Process(target=_run, args=(str(path), *options))
    process.start()
    return process


def sweep(pid):
    """Kills all that is left of the session that a process began."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _run(path, arguments, outputs, folder, strict, environment):
    os.setsid()
    multiprocessing.set_start_method("fork", force=True)  # as in a process of the user's own
    torch.set_num_threads(1)
    os.environ.update(environment)
    for output, name in zip((1, 2), outputs, strict=True):
        with open(name, "a") as file:
            os.dup2(file.fileno(), output)
    os.chdir(folder)
    if strict is not None:
        warnings.filterwarnings("error", **strict)
    sys.argv = [path, *arguments]
    runpy.run_path(path, run_name="__main__")

"""Training processes: started, watched by what they print, and killed; never waited for without a deadline."""

import json
import select
import time
from pathlib import Path

import torch

from programs import start_program, sweep
from ranks import PATIENCE

TRAIN = Path(__file__).with_name("train.py")


def started(log, *arguments, **environment):
    """Runs train.py in a process; what it prints is appended to `log`."""
    return start_program(TRAIN, *arguments, printed=log, errors=f"{log}.errors", **environment)


def exit_codes(processes):
    """Waits for the processes in turn, and sweeps up after each: the workers of a killed trainer keep its sockets open.

    Raises:
        AssertionError: One hangs; no process is left over then either.
    """
    end, hanging = time.monotonic() + PATIENCE, []
    for process in processes:
        process.join(max(0.0, end - time.monotonic()))
        hanging += [process.pid] * process.is_alive()
        sweep(process.pid)
        process.kill()
        process.join()
    assert not hanging
    return [process.exitcode for process in processes]


def lines(log):
    """Returns the lines that a trainer printed: a dictionary for each optimiser step."""
    text = log if isinstance(log, bytes) else Path(log).read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def read_until(stream, *, epoch, batches):
    """Reads a trainer's unbuffered output up to a step of its own, and no further: a full pipe then holds it back."""
    text = b""
    while True:
        ready, _, _ = select.select([stream], [], [], PATIENCE)
        assert ready, "the trainer hangs"
        line = stream.readline()
        assert line, "the trainer has ended"
        text += line
        step = json.loads(line)
        if (step["epoch"], step["batches"]) >= (epoch, batches):
            return text


def checkpointed(folder):
    """Epoch and runs of the last checkpoint."""
    state = torch.load(folder / "checkpoint.pt")["loader"]
    return state["epoch"], state["runs"]


def final_weights(folder):
    return torch.load(folder / "final.pt")

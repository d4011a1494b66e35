"""A process that ends with the one that started it, even where that is killed while this one starts.

The starter holds the one writing end of a pipe, and the system closes it whatever way the starter ends. So a thread
that reads from the pipe is told, on every platform. Of what a new process is given, the pipe comes first: the rest,
PyTorch among it, takes seconds to import.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


class Watch:
    """The reading end of a pipe, watched from the moment that a new process unpickles it."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def __reduce__(self) -> tuple[Callable[[Connection], None], tuple[Connection]]:
        return _watch, (self._pipe,)


def run_watched(_: Watch | None, work: Callable[..., None], *arguments: Any) -> None:
    """Runs `work` in a new process; to be given to it with a `Watch` before all else."""
    work(*arguments)


def _watch(pipe: Connection) -> None:
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()


def _end_with(pipe: Connection) -> None:
    pipe.poll(None)  # nothing is ever sent: this returns when the other end is closed
    os._exit(1)

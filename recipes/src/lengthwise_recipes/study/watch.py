"""Ends a process together with the process that started it.

The starting process has the only writing end of a pipe; the system closes it when that process ends, in any way. A
thread here reads from the pipe and so notices, on every platform. The pipe is the first argument of a new process: the
others take seconds to unpickle, because they import PyTorch.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


class Watch:
    """The reading end of a pipe; a new process watches the pipe as soon as this object is unpickled."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def __reduce__(self) -> tuple[Callable[[Connection], None], tuple[Connection]]:
        return _watch, (self._pipe,)


def run_watched(_: Watch | None, work: Callable[..., None], *arguments: Any) -> None:
    """Runs `work` in a new process; the `Watch` must be its first argument."""
    work(*arguments)


def _watch(pipe: Connection) -> None:
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()


def _end_with(pipe: Connection) -> None:
    pipe.poll(None)  # nothing is ever sent: this returns when the other end is closed
    os._exit(1)

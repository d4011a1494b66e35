"""Cores: one large call of a kernel is shared out to several cores.

Each part writes to places of its own, so that plans are the same on any number of cores. Machine code runs without
Python's lock. Threads are started for one call, and end with it: none is left where a process is forked.
"""

from __future__ import annotations

import os
import threading
from itertools import pairwise
from typing import Any

from lengthwise._compile import Kernel

LEAST = 2**19  # numbers of a part: to start a thread takes as long as to sort a few thousand
_MOST = 4  # cores: beyond, they wait for the memory


def split(count: int) -> list[slice]:
    """The places 0..count-1 in parts, one for each core that works on them: rising, of even size but the last.

    >>> split(10)
    [slice(0, 10, None)]
    """
    if count < 2 * LEAST:  # to ask for the cores takes longer than to sort a thousand
        return [slice(0, count)]
    parts = min(count_cores(), count // LEAST)
    borders = [2 * (count * part // parts // 2) for part in range(parts)]
    return [slice(start, stop) for start, stop in pairwise([*borders, count])]


def call(kernel: Kernel, arguments: list[tuple[Any, ...]]) -> list[Any]:
    """What the kernel returns for each of `arguments`: one after the other, or each on a core of its own.

    Raises:
        Exception: What the kernel raised, once all parts have ended.
    """
    # In Python a kernel takes lists, and copies them back whole. So two parts at once would undo each other's places.
    if len(arguments) == 1 or not kernel.is_machine_code:
        return [kernel(*each) for each in arguments]
    others = [_Part(kernel.compiled, each) for each in arguments[1:]]
    try:
        for part in others:
            part.begin()
        return [kernel.compiled(*arguments[0]), *(part.end() for part in others)]
    finally:  # whatever was raised here: the parts write to arrays of the caller
        for part in others:
            part.wait()


class _Part(threading.Thread):
    """One part of a call, on a core of its own; or here, where the system starts no more threads."""

    def __init__(self, compiled: Any, arguments: tuple[Any, ...]) -> None:
        super().__init__(daemon=True)
        self._compiled, self._arguments = compiled, arguments
        self._found: Any = None
        self._error: BaseException | None = None

    def begin(self) -> None:
        try:
            self.start()
        except RuntimeError:  # a limit of threads, or Python ends
            self.run()

    def run(self) -> None:
        try:
            self._found = self._compiled(*self._arguments)
        except BaseException as error:  # of the caller, who asks for it
            self._error = error

    def wait(self) -> None:
        if self.ident is not None:
            self.join()

    def end(self) -> Any:
        """What the kernel returned, once it did."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._found


def count_cores() -> int:
    """Cores that this process may use, from 1 to 4; OMP_NUM_THREADS limits them, as torchrun sets it for each rank."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(_MOST, own, int(asked) if asked.isdecimal() else _MOST))

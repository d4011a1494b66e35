"""Cores: one large call of a kernel is shared out to several cores.

Each part writes to places of its own, so that plans are the same on any number of cores. Machine code runs without
Python's lock. Threads are started for one call, and end with it: none is left where a process is forked.
"""

from __future__ import annotations

import os
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
    parts = max(1, min(count_cores(), count // LEAST))
    borders = [2 * (count * part // parts // 2) for part in range(parts)]
    return [slice(start, stop) for start, stop in pairwise([*borders, count])]


def call(kernel: Kernel, arguments: list[tuple[Any, ...]]) -> list[Any]:
    """What the kernel returns for each of `arguments`: one after the other, or each on a core of its own."""
    if len(arguments) == 1:
        return [kernel(*arguments[0])]
    from concurrent.futures import ThreadPoolExecutor  # few programs plan millions

    compiled = kernel.compiled  # made once, before threads ask for it
    with ThreadPoolExecutor(len(arguments) - 1) as pool:
        others = [pool.submit(compiled, *each) for each in arguments[1:]]
        return [compiled(*arguments[0]), *(other.result() for other in others)]


def count_cores() -> int:
    """Cores that this process may use, from 1 to 4; OMP_NUM_THREADS limits them, as torchrun sets it for each rank."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(_MOST, own, int(asked) if asked.isdecimal() else _MOST))

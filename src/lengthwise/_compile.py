"""Kernels: loops that NumPy cannot express, as machine code. The only module that imports Numba."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import event


def kernel(function: Callable[..., Any]) -> Any:
    """Compiles a function on its first call, and keeps the machine code on disk; `py_func` is the function itself.

    To compile takes some seconds, once in an installation. Numba notices that a file changed by looking at the file of
    the kernel alone. So a kernel calls only kernels of its own file.
    """
    # Without fastmath: reordered sums would round otherwise on other processors, and plans would differ.
    # By NumPy's rule a division by 0 raises nothing: a loop that need not ask is computed several numbers at a time.
    options: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to write in, as in a read-only installation without a home: every process compiles
        return numba.njit(**options)(function)


class _Announcer(event.Listener):
    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce

    def on_start(self, event: event.Event) -> None:
        del event
        self._announce()

    def on_end(self, event: event.Event) -> None:
        """Does nothing."""


@contextmanager
def listen(announce: Callable[[], None]) -> Iterator[None]:
    """Calls `announce` before each kernel that must be compiled, and for none that is on disk."""
    with event.install_listener("numba:compile", _Announcer(announce)):
        yield

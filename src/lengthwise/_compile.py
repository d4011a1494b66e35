"""The compiler of kernels: loops that NumPy cannot express. The only module that imports Numba."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import event


def kernel(function: Callable[..., Any]) -> Any:
    """Compiles a function on its first call, and keeps the machine code on disk; its `py_func` is the plain function.

    Compiling takes some seconds, once in an installation. Numba only checks the kernel's own file for changes. So
    kernels call no kernels of other files, with one exception: those of `steps` call those of `cuts`. Whoever changes
    `cuts` must empty the cache.
    """
    # No fastmath: reordered sums would differ between processors, and so would plans. With NumPy's error model a
    # division by 0 does not raise, so that loops can be vectorised.
    options: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to write in, as in a read-only installation: every process compiles
        return numba.njit(**options)(function)


class _Announcer(event.Listener):
    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce

    def on_start(self, event: event.Event) -> None:
        self._announce()

    def on_end(self, event: event.Event) -> None:
        """Does nothing."""


@contextmanager
def listen(announce: Callable[[], None]) -> Iterator[None]:
    """Calls `announce` before each compilation; not for kernels that are loaded from disk."""
    with event.install_listener("numba:compile", _Announcer(announce)):
        yield

"""Kernels: functions that run as machine code, compiled on their first call.

Numba takes longer to import than all else together, so it is imported on the first call of a kernel, and only here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from typing import Any

_listeners: list[Callable[[], None]] = []  # called before a kernel is compiled


@contextmanager
def listen(listener: Callable[[], None]) -> Iterator[None]:
    """Calls `listener` before each kernel that must be compiled: a fresh installation takes seconds for all of them."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def compile_kernel(function: Callable[..., Any]) -> Kernel:
    """Compiles on first call, and keeps the machine code on disk where some folder can be written."""
    return Kernel(function)


class Kernel:
    """What `compile_kernel` makes of a function; `py_func` is the function itself."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)

    @cached_property
    def compiled(self) -> Any:
        """What Numba makes of the function."""
        from lengthwise._compile import machine_code

        return machine_code.compile_function(self.py_func, _announce)

    @property
    def _numba_type_(self) -> Any:
        # Numba asks this of an object that it meets in a kernel: one kernel may so call another.
        return self.compiled._numba_type_


def _announce() -> None:
    for listener in _listeners:
        listener()

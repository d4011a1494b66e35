"""Kernels: functions that run as machine code, once that is worth the wait.

To compile a kernel takes up to three seconds, once in an installation. To import Numba and to read what was compiled
takes a fifth of a second, in every process. In Python a random plan of a thousand sequences takes a hundredth of a
second, and the default one a tenth. So small calls run in Python at first, and a process that makes many of them goes
over to machine code. The plans are the same to the last bit. Numba is imported only here, and only then.

machine_code   compiles, and keeps what was compiled on disk
cores          shares out one large call to several cores
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial, update_wrapper
from typing import Any

import numpy as np

# Who waits for a bus for as long as walking takes, and then walks, is on the way at most twice as long as one who knows
# when it comes. Nobody knows how many calls will come: so Python runs for about as long as its alternative takes.
BEFORE_READING = 0.2  # seconds of Python, of all kernels, before machine code is read from the disk
BEFORE_COMPILING = 0.25  # seconds of Python, of one kernel, before it is compiled
_EACH = 1e-6  # seconds for an entry of the arrays of a call, in Python
_EACH_IN_LISTS = 3e-7  # where these are lists
_EACH_AT_ONCE = 5e-8  # and by NumPy

_listeners: list[Callable[[], None]] = []  # called before a kernel is compiled


@contextmanager
def listen(listener: Callable[[], None]) -> Iterator[None]:
    """Calls `listener` before each kernel that must be compiled: a fresh installation takes seconds for all of them."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def compile_kernel(
    function: Callable[..., Any] | None = None,
    *,
    linear: bool = False,
    lists: Sequence[str] = (),
    in_python: Callable[..., Any] | None = None,
) -> Any:
    """Compiles on first call, or later, and keeps the machine code on disk where some folder can be written.

    Args:
        function: The kernel.
        linear: Whether it takes about as many steps as its arrays have entries. Only such a kernel may run in Python.
        lists: The names of the arrays that the caller reads afterwards. If some are given, Python runs the kernel on
            lists, whose numbers it reads in a third of the time, and copies back those that are named. Such a kernel
            asks its arrays for nothing but their `len` and single entries. It counts in no more than 63 bits. It
            divides by no 0: machine code gives infinity, and Python raises.
        in_python: What runs then in place of the function, does the same, and takes less time. In place of a kernel
            that is not linear it runs where a kernel in Python calls it.
    """
    if function is None:
        return partial(compile_kernel, linear=linear, lists=lists, in_python=in_python)
    return Kernel(function, linear, lists, in_python)


class Kernel:
    """What `compile_kernel` makes of a function; `py_func` is the function itself."""

    seconds = 0.0  # that all kernels ran in Python

    def __init__(
        self, function: Callable[..., Any], linear: bool, lists: Sequence[str], in_python: Callable[..., Any] | None
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._linear = linear
        self._take = _list if lists else _widen
        self._read_after = [function.__code__.co_varnames.index(name) for name in lists]
        self._in_python = in_python or function
        self._within = function if linear else self._in_python  # a NumPy variant is for arrays alone, and not for lists
        self._each = _EACH_IN_LISTS if lists else _EACH_AT_ONCE if in_python else _EACH
        self._waits = True  # whether no call ran as machine code yet
        self._kept = True  # whether machine code may be on disk
        self._seconds = 0.0  # that this one ran in Python

    def __call__(self, *arguments: Any) -> Any:
        if self._waits:
            if _here.in_python:  # called by a kernel that runs in Python
                return self._within(*arguments)
            if self._linear:
                return self._call_or_wait(arguments)
            self._waits = False
        return self.compiled(*arguments)

    @cached_property
    def compiled(self) -> Any:
        """What Numba makes of the function; where Numba is told to make nothing, the function as it runs in Python."""
        from lengthwise._compile import machine_code

        compiled = machine_code.compile_function(self.py_func, _announce)
        # Under NUMBA_DISABLE_JIT=1 it is the function: called as it is, it would wrap at 16 bits, and NumPy would warn.
        return compiled if compiled is not self.py_func else lambda *arguments: self._run_in_python(arguments)

    @property
    def is_machine_code(self) -> bool:
        """Whether `compiled` runs as machine code, and so without Python's lock."""
        return hasattr(self.compiled, "py_func")

    @property
    def _numba_type_(self) -> Any:
        # Numba asks this of an object that it meets in a kernel: one kernel may so call another.
        return self.compiled._numba_type_

    def _call_or_wait(self, arguments: tuple[Any, ...]) -> Any:
        """Runs in Python, until that takes as long as reading or compiling would."""
        expected = self._each * sum(each.size for each in arguments if isinstance(each, np.ndarray))
        if self._kept and Kernel.seconds + expected >= BEFORE_READING:
            try:
                return self._run_kept(arguments)
            except _NotKeptError:
                self._kept = False
        if not self._kept and self._seconds + expected >= BEFORE_COMPILING:
            self._waits = False
            return self.compiled(*arguments)
        return self._run_in_python(arguments)

    def _run_kept(self, arguments: tuple[Any, ...]) -> Any:
        """Runs machine code from the disk; raises `_NotKeptError` where there is none."""
        _here.only_kept = True
        try:
            found = self.compiled(*arguments)
        finally:
            _here.only_kept = False
        self._waits = False
        return found

    def _run_in_python(self, arguments: tuple[Any, ...]) -> Any:
        taken = [self._take(each) for each in arguments]
        outer, _here.in_python = _here.in_python, True
        start = time.thread_time()
        try:
            with np.errstate(all="ignore"):  # as machine code does
                found = self._in_python(*taken)
        finally:
            _here.in_python = outer
            seconds = time.thread_time() - start
            self._seconds += seconds
            Kernel.seconds += seconds
        for place in self._read_after or range(len(arguments)):
            given, each = arguments[place], taken[place]
            if given is not each and given.flags.writeable:
                given[: len(each)] = each  # of a list that was cut short, the rest of the array means nothing
        return found


class _NotKeptError(Exception):
    """No machine code is on disk, and none may be compiled."""


class _Here(threading.local):
    """What runs in this thread."""

    in_python = False  # a kernel, and those that it calls, in Python
    only_kept = False  # only machine code from the disk


_here = _Here()


def _list(argument: Any) -> Any:
    """An array as a list; all else as it is."""
    if not isinstance(argument, np.ndarray):
        return argument
    # Random words are uint64, and wrap. Python's own numbers do not.
    return list(argument) if argument.dtype == np.uint64 else argument.tolist()


def _widen(argument: Any) -> Any:
    """An array of whole numbers of less than 64 bits, in 64; all else as it is.

    Machine code computes in 64 bits whatever an array holds; NumPy in as many as it holds, and 300 x 300 needs more
    than 16.
    """
    narrow = isinstance(argument, np.ndarray) and argument.dtype.kind in "iu" and argument.itemsize < 8
    return argument.astype(np.int64) if narrow else argument


def _announce() -> None:
    if _here.only_kept:
        raise _NotKeptError
    for listener in _listeners:
        listener()

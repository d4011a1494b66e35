"""The compiler of kernels: loops that NumPy cannot express. It imports Numba when a kernel is first called."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_waiting: list[Kernel] = []  # kernels that are not compiled yet


class Kernel:
    """A function that is compiled on its first call; its machine code is kept on disk. `py_func` is the plain function.

    Compiling takes some seconds, once in an installation.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func: Callable[..., Any] = function
        _waiting.append(self)

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.compiled, name)

    @functools.cached_property
    def compiled(self) -> Any:
        """The function as Numba compiles it. All kernels that are declared are handed to Numba together."""
        digest = functools.cache(_digest_kernels)  # files are read once for all kernels
        compiled = {id(kernel): (kernel, _jit(kernel.py_func, digest)) for kernel in (self, *_waiting)}
        _waiting.clear()
        for kernel, function in compiled.values():
            kernel.__dict__["compiled"] = function
        # Kernels call each other by names of their modules, which must now hold compiled functions.
        modules = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("lengthwise._kernels")]
        for names in (*modules, *(kernel.py_func.__globals__ for kernel, _ in compiled.values())):
            for name, value in list(names.items()):
                if isinstance(value, Kernel) and "compiled" in value.__dict__:
                    names[name] = value.__dict__["compiled"]
        return compiled[id(self)][1]


kernel = Kernel


def _jit(function: Callable[..., Any], digest: Callable[[Path], str]) -> Any:
    import numba

    # No fastmath: reordered sums would differ between processors, and so would plans. With NumPy's error model a
    # division by 0 does not raise, so that loops can be vectorised.
    options: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
    try:
        compiled: Any = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to write in, as in a read-only installation: every process compiles
        return numba.njit(**options)(function)
    # Numba only checks a kernel's own file for changes, but kernels call those of other files. Files of two versions
    # have two names, so that no process loads machine code of one by the index of the other.
    with suppress(ImportError, AttributeError, TypeError):  # a release of Numba may move its cache
        from numba.core.caching import IndexDataCacheFile

        cache, version = compiled._cache, digest(Path(function.__code__.co_filename).parent)
        cache._cache_file = IndexDataCacheFile(cache.cache_path, f"{cache._impl.filename_base}.{version}", version)
        for name in ("load_overload", "save_overload"):
            setattr(cache, name, functools.partial(_try_files, getattr(cache, name), cache.flush))
    return compiled


def _digest_kernels(folder: Path) -> str:
    """Returns a digest of all kernels."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _try_files(method: Callable[..., Any], flush: Callable[[], None], *arguments: Any) -> Any:
    """Loads or saves machine code. Files that were cut off, as on a full disk, count as none and are written again."""
    try:
        return method(*arguments)
    except Exception:  # cut-off pickles raise almost any
        with suppress(OSError):
            flush()


@contextmanager
def listen(announce: Callable[[], None]) -> Iterator[None]:
    """Calls `announce` before each compilation; not for kernels that are loaded from disk."""
    from numba.core import event

    class Announcer(event.Listener):
        def on_start(self, event: event.Event) -> None:
            announce()

        def on_end(self, event: event.Event) -> None:
            """Does nothing."""

    with event.install_listener("numba:compile", Announcer()):
        yield

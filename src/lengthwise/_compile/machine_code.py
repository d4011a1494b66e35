"""The only file that imports Numba: how a kernel is compiled, and how its machine code is kept on disk.

Numba does not check its cache. A full disk or a power cut may leave a file empty or half written: then the program ends
in an error of pickle. A changed byte can end it without any error. Here such a file counts as missing: the kernel is
compiled, and the file written anew. If that is impossible, every process compiles, and says so once.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature

from lengthwise import checks, files

# Versions in which kept machine code was tried without all that Numba loads to compile.
_LOADS_ALONE = (0, 60) <= numba.version_info.short <= (0, 68)


def compile_function(function: Callable[..., Any], announce: Callable[[], None]) -> Any:
    """Compiles on first call, and keeps the machine code on disk where some folder can be written.

    `announce` is called before anything is compiled, and not where the machine code is read.
    """
    # Without fastmath: reordered sums would round otherwise on other processors, and plans would differ.
    # By NumPy's rule a division by 0 raises nothing: a loop that need not ask is computed several numbers at a time.
    # Nobody calls a kernel from C: a wrapper for that would be a tenth of what there is to compile.
    # The types of Numba do not know this option, so it is handed over in a dictionary.
    # Without Python's lock, so that parts of one call run on several cores; see the module `cores`.
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit(**options)(function)
    if compiled is function:  # NUMBA_DISABLE_JIT=1
        return function
    try:
        compiled._cache = _KernelCache(function, announce)
    except (OSError, RuntimeError):  # no folder to write in: a read-only installation without a home
        compiled._cache = _NoCache()
    return compiled


class _Checked(CompileResultCacheImpl):
    """Puts a digest before the machine code, because a process that runs changed code ends without an error."""

    def reduce(self, cres: Any) -> tuple[bytes, bytes]:
        content = dumps(super().reduce(cres))
        return hashlib.sha256(content).digest(), content

    def rebuild(self, target_context: Any, payload: tuple[bytes, bytes]) -> Any:
        digest, content = payload
        if hashlib.sha256(content).digest() != digest:
            raise ValueError("damaged")
        return super().rebuild(target_context, pickle.loads(content))


class _RegularFiles(IndexDataCacheFile):
    """The index and the machine code of one kernel on disk. A pipe in the place of one is refused, not waited for."""

    def _load_index(self) -> Any:
        files.check_regular(self._index_path)
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        files.check_regular(self._data_path(name))
        return super()._load_data(name)


class _KernelCache(FunctionCache):
    """Numba's cache of one kernel, in which a damaged file is no file."""

    _impl_class = _Checked

    def __init__(self, function: Callable[..., Any], announce: Callable[[], None]) -> None:
        super().__init__(function)
        self._announce = announce
        # Numba looks at the file of the kernel alone, but its machine code holds that of the kernels that it calls.
        stamps = self._impl.locator.get_source_stamp(), *_stamp_called(function)
        # Numba made its own file object above: this one takes its place.
        self._cache_file = _RegularFiles(self._cache_path, self._impl.filename_base, stamps)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for these types of arguments; None where it must be compiled."""
        try:
            found = self._load(sig, target_context) if _LOADS_ALONE else super().load_overload(sig, target_context)
        except Exception:  # damaged bytes raise whatever they please
            found = None
        # Two processes that begin to fill an empty cache with other types each may give both the same file name.
        if found is None or tuple(found.signature.args) != tuple(normalize_signature(sig)[0]):
            self._announce()
            return None
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        # Numba would first load all that it can compile, which takes three times as long as all else. To run what is
        # compiled already, its memory management is enough; compiling loads the rest when it comes to that.
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keeps machine code; an index that cannot be read is begun anew."""
        try:
            super().save_overload(sig, data)
        except Exception:
            self._save_anew(sig, data)

    def _save_anew(self, sig: Any, data: Any) -> None:
        try:
            # An empty index, and then the machine code once more.
            self.flush()
            super().save_overload(sig, data)
        except Exception:
            _warn(self.cache_path)


def _stamp_called(function: Callable[..., Any]) -> list[tuple[float, int]]:
    """When the files of `function` and of all kernels that it calls, at any depth, were written; and their sizes."""
    called: list[Any] = [function]
    for each in called:  # grows while it is read
        names: list[Any] = [each.__globals__.get(name) for name in each.__code__.co_names]
        called += {kernel.py_func for kernel in names if hasattr(kernel, "py_func")}.difference(called)
    paths = sorted({each.__code__.co_filename for each in called})
    # In an archive there are no such files. Numba's own stamp is then that of the archive, which holds all of them.
    status = [os.stat(path) for path in paths if os.path.isfile(path)]
    return [(each.st_mtime, each.st_size) for each in status]


class _NoCache(NullCache):
    """Keeps nothing, and says so when there is something to keep."""

    def save_overload(self, sig: Any, cres: Any) -> None:
        del sig, cres
        _warn(os.environ.get("NUMBA_CACHE_DIR") or str(Path(__file__).with_name("__pycache__")))


@cache  # the kernels share a folder: one sentence is for all of them
def _warn(folder: str) -> None:
    remedy = (
        "Every process compiles for some seconds until you delete that folder, make room there, or set NUMBA_CACHE_DIR"
        " to a folder that can be written."
    )
    warnings.warn(checks.sentence("cache", "a folder to keep compiled kernels in", folder, remedy), stacklevel=2)

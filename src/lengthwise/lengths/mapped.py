"""Lengths that are mapped into memory from a file: a billion are opened at once, and read where they are needed.

Another process maps the file by itself: what travels to it is the path, and not the lengths.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks, files

_SAMPLED = 64  # places at which lengths are read to name them
_SAMPLE = 1024  # lengths read at each of those places


class MappedLengths(np.memmap):
    """A `numpy.memmap` that is pickled as its path: the process that unpickles it maps the same file."""

    def __deepcopy__(self, memo: dict[int, Any] | None, /) -> Any:
        # It is read-only. That of `numpy.ndarray` would read the whole file into memory.
        return self if _is_whole(self) else super().__deepcopy__(memo)

    def __reduce__(self) -> Any:
        if not _is_whole(self):  # a part of it, or what was computed of it
            return np.asarray(self).__reduce__()
        path, *how = _describe(self)
        return _map_again, (os.path.abspath(os.fspath(path)), *how, name_sample(self))


def map_file(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Maps a `.npy` file, read-only.

    Raises:
        FileNotFoundError: There is none.
        ValueError: It is no `.npy` file, or damaged.
    """
    with files.refusals(path, "read"):
        files.check_regular(path)
        try:
            array = np.load(os.fspath(path), mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            remedy = f"Write one by numpy.save ({error})."
            raise checks.value_error("lengths", "the path of a .npy file", os.fspath(path), remedy) from error
    if not isinstance(array, np.ndarray):  # numpy.load opens archives too
        array.close()
        remedy = "Write one by numpy.save, because an archive cannot be mapped into memory."
        raise checks.value_error("lengths", "the path of a .npy file", os.fspath(path), remedy)
    return keep_mapped(array)


def keep_mapped(array: NDArray[Any]) -> NDArray[Any]:
    """The array; where it is a whole mapped file, one that is pickled as its path."""
    if isinstance(array, MappedLengths) or not isinstance(array, np.memmap) or not _is_whole(array):
        return array
    try:
        return _map(*_describe(array))
    except (OSError, ValueError):  # the file was removed since, or is shorter: its pages are still there
        return array


def name_sample(lengths: NDArray[Any]) -> str:
    """16 hex digits that name lengths by their number and by a sample: 64 places of 1,024 neighbours, or all of few."""
    count = len(lengths)
    digest = hashlib.blake2b(np.array(lengths.shape, "<i8").tobytes(), digest_size=8)
    if count <= _SAMPLED * _SAMPLE:
        parts = [slice(None)]
    else:  # from the first to the last length, evenly
        parts = [slice(at, at + _SAMPLE) for at in np.linspace(0, count - _SAMPLE, _SAMPLED).astype(np.int64).tolist()]
    for part in parts:
        digest.update(np.asarray(lengths)[part].astype("<i8").tobytes())
    return digest.hexdigest()


def _is_whole(array: Any) -> bool:
    """Whether the array is all that was mapped, and the file holds what it shows."""
    # A view of a mapped array has that array as its base, and the offset of the whole. What is written to a map of mode
    # "c" is not written to the file.
    return isinstance(array.base, mmap.mmap) and array.filename is not None and array.mode != "c"


def _describe(array: Any) -> tuple[Any, str, int, tuple[int, ...], str]:
    """What `_map` needs to map the same file."""
    return array.filename, array.dtype.str, array.offset, array.shape, "C" if array.flags.c_contiguous else "F"


def _map(path: Any, dtype: str, offset: int, shape: tuple[int, ...], order: Any) -> NDArray[Any]:
    return MappedLengths(path, np.dtype(dtype), "r", offset, shape, order)


def _map_again(path: str, dtype: str, offset: int, shape: tuple[int, ...], order: str, name: str) -> NDArray[Any]:
    remedy = "Let every process see the same file, as it was."
    try:
        found = _map(path, dtype, offset, shape, order)
    except (OSError, ValueError) as error:
        raise checks.value_error("lengths", f"a file that can be mapped ({error})", path, remedy) from error
    if name_sample(found) != name:
        raise checks.value_error("lengths", "those of the file as it was", path, remedy)
    return found

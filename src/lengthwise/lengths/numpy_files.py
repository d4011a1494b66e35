"""Lengths in .npy and .npz files, which are never unpickled: read, or mapped into memory.

A billion lengths are mapped at once, and read where they are needed. Another process maps the file by itself: its path
travels there, and not the lengths.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks, files
from lengthwise.lengths.arrays import array_columns
from lengthwise.lengths.columns import Column, choose_columns, choose_dimensions

_SAMPLED = 64  # places at which lengths are read to name them
_SAMPLE = 1024  # lengths read at each of those places


def read_numpy(path: Path, column: str | None = None) -> list[Column]:
    """Reads the array in a .npy file, [n] or [n, dims], or one of those in a .npz file.

    Args:
        path: The file.
        column: Of an array [n, dims], the number of a dimension; of several arrays, the name of one or more.

    Raises:
        ValueError: No such array or dimension, an array of objects, a shape that lengths cannot have, or a file that
            is damaged.
        TypeError: Booleans, text or other values that are not numbers.
    """
    with open(path, "rb") as file:  # because np.load forgets to close what turns out to be no archive
        content = _load(path, lambda: np.load(file, allow_pickle=False))
        if isinstance(content, np.ndarray):
            columns = array_columns(content, of=f" of {path}")
            return [columns[dim] for dim in choose_dimensions(column, len(columns), path)]
        names = choose_columns(column, content.files, at=str(path))
        arrays = [_load(path, lambda name=name: content[name]) for name in names]
    columns = [column for array in arrays for column in array_columns(array, of=f" of {path}")]
    if len({len(column.values) for column in columns}) > 1:
        raise checks.source_error("arrays of as many lengths each", path, "Name arrays of the same sequences.")
    return columns


def _load(path: Path, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Exception as error:  # whatever the parser raises that a damaged byte confuses: zip, zlib, ast, ...
        rule, remedy = f"a {path.suffix} file", "Write it anew with `np.save` or `np.savez`, or name it for what it is."
        # The only sign of NumPy that the file would have to be unpickled.
        if "Object arrays" in str(error):
            rule = "an array of numbers, not of Python objects"
            remedy = "Save whole numbers: `np.save(path, np.asarray(lengths, dtype=np.int64))`."
        raise checks.source_error(rule, path, remedy) from error


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
            raise _no_file(path, f"Write one by numpy.save ({error}).") from error
    if not isinstance(array, np.ndarray):  # numpy.load opens archives too
        array.close()
        raise _no_file(path, "Write one by numpy.save, because an archive cannot be mapped into memory.")
    return keep_mapped(array)


def _no_file(path: str | os.PathLike[str], remedy: str) -> ValueError:
    return checks.value_error("lengths", "the path of a .npy file", os.fspath(path), remedy)


def keep_mapped(array: NDArray[Any]) -> NDArray[Any]:
    """Returns the array; where it is a whole mapped file, one that is pickled as its path."""
    if isinstance(array, MappedLengths) or not isinstance(array, np.memmap) or not _is_whole(array):
        return array
    try:
        return _map(*_describe(array))
    except (OSError, ValueError):  # the file was removed since, or is shorter: its pages are still there
        return array


def name_sample(lengths: NDArray[Any]) -> str:
    """Names lengths by 16 hex digits of their number and of a sample: 64 places of 1,024 neighbours, or all of few."""
    count = len(lengths)
    digest = hashlib.blake2b(np.array(lengths.shape, "<i8").tobytes(), digest_size=8)
    starts, size = [0], count
    if count > _SAMPLED * _SAMPLE:  # from the first to the last length, evenly
        starts, size = np.linspace(0, count - _SAMPLE, _SAMPLED).astype(np.int64).tolist(), _SAMPLE
    for start in starts:
        digest.update(np.asarray(lengths)[start : start + size].astype("<i8").tobytes())
    return digest.hexdigest()


def _is_whole(array: Any) -> bool:
    """Says whether the array is all that was mapped, and the file holds the same values."""
    # A view of a mapped array has that array as its base, and the offset of the whole. Values that are written to a
    # map of mode "c" are not written to the file.
    return isinstance(array.base, mmap.mmap) and array.filename is not None and array.mode != "c"


def _describe(array: Any) -> tuple[Any, str, int, tuple[int, ...], str]:
    """Returns the arguments with which `_map` maps the same file."""
    return array.filename, array.dtype.str, array.offset, array.shape, "C" if array.flags.c_contiguous else "F"


def _map(path: Any, dtype: str, offset: int, shape: tuple[int, ...], order: Any) -> NDArray[Any]:
    return MappedLengths(path, np.dtype(dtype), "r", offset, shape, order)


def _map_again(path: str, dtype: str, offset: int, shape: tuple[int, ...], order: str, name: str) -> NDArray[Any]:
    remedy = "Let every process see the same file, as it was."
    try:
        lengths = _map(path, dtype, offset, shape, order)
    except (OSError, ValueError) as error:
        raise checks.value_error("lengths", f"a file that can be mapped ({error})", path, remedy) from error
    if name_sample(lengths) != name:
        raise checks.value_error("lengths", "those of the file as it was", path, remedy)
    return lengths

"""Arrays on disk: .npy and .npz, never unpickled."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import value_error
from lengthwise.lengths.arrays import as_numbers, sequence_place
from lengthwise.lengths.columns import Column, choose_dimensions
from lengthwise.lengths.sources import source_error


def read_npy(path: Path, column: str | None = None) -> list[Column]:
    """Reads an array, [n] or [n, dims]; of the latter, where `column` is "0", "1", ..., that one.

    Raises:
        ValueError: Not a .npy file, an array of objects, or a shape that lengths cannot have.
        TypeError: Booleans, text or other values that are not numbers.
    """
    with _open_array(path) as found:
        if not isinstance(found, np.ndarray):
            raise source_error("a .npy file", path, "It holds several arrays: name it .npz.")
        columns = array_columns(found, of=f" of {path}")
    return [columns[dim] for dim in choose_dimensions(column, len(columns), path)]


def read_npz(path: Path, key: str | None) -> list[Column]:
    """Reads the array named `key`, or the only one.

    Raises:
        ValueError: Also when the key is absent, or None where there are several arrays; the error lists them.
    """
    with _open_array(path) as found:
        if isinstance(found, np.ndarray):
            raise source_error("a .npz file", path, "It holds one array: name it .npy.")
        name = _choose_key(key, found.files, path)
        return array_columns(_read_member(found, name, path), of=f" of {path}")


def array_columns(values: Any, *, of: str = "") -> list[Column]:
    """Splits an array-like, [n] or [n, dims], into columns called "lengths"."""
    raw = as_numbers(values, of=of)
    place = sequence_place(raw, of)
    dims = 1 if raw.ndim == 1 else raw.shape[1]
    return [_column(raw.reshape(len(raw), dims), dim, place) for dim in range(dims)]


def _column(table: NDArray[Any], dim: int, place: Any) -> Column:
    dims = table.shape[1]
    # A place counts along the rows: row 2 of dimension 1 of 3 is the flat index 7.
    return Column(name="lengths", values=table[:, dim], place=lambda row: place(row * dims + dim))


@contextlib.contextmanager
def _open_array(path: Path) -> Iterator[Any]:
    # Opened here, because np.load forgets to close what turns out to be no archive.
    with open(path, "rb") as file:
        try:
            found = np.load(file, allow_pickle=False)
        except Exception as error:  # whatever the parser raises that a damaged byte confuses: zip, zlib, ast, ...
            raise _damage_error(path, error) from error
        yield found


def _read_member(archive: Any, key: str, path: Path) -> NDArray[Any]:
    try:
        return archive[key]
    except Exception as error:
        raise _damage_error(path, error) from error


def _choose_key(key: str | None, keys: Sequence[str], path: Path) -> str:
    if key is None and len(keys) == 1:
        return keys[0]
    if key is not None and key in keys:
        return key
    # All of them, the likeliest first.
    names = ", ".join(difflib.get_close_matches(key or "", keys, n=max(1, len(keys)), cutoff=0.0)) or "no arrays"
    remedy = "Give the array to read (on the command line: FILE:KEY)."
    raise value_error("key", f"one of {names}", key, remedy, at=str(path))


def _damage_error(path: Path, error: Exception) -> ValueError:
    # The only sign of NumPy that the file would have to be unpickled.
    if "Object arrays" in str(error):
        remedy = "Save whole numbers: `np.save(path, np.asarray(lengths, dtype=np.int64))`."
        return source_error("an array of numbers, not of Python objects", path, remedy)
    remedy = "Write it anew with `np.save` or `np.savez`, or give it the suffix of what it is."
    return source_error(f"a {path.suffix} file", path, remedy)

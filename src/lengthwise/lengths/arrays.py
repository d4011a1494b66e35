"""Lengths from arrays in memory and from .npy files. Files are read or mapped, and never unpickled.

A mapped file needs little memory: each part is read on use. Mapped lengths are pickled as their path, and a process
that unpickles them maps the file itself.

Shapes: n sequences with dims lengths each, such as 2 for source and target. One dimension is [n], several are
[n, dims].
"""

from __future__ import annotations

import hashlib
import itertools
import mmap
import numbers
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import files
from lengthwise.checks import refuse_masked, sentence, source_error, type_error, value_error
from lengthwise.lengths.columns import Column, Wanted, choose_dimensions
from lengthwise.lengths.rules import MOST_DIMS, Place, check_dims, freeze, whole_lengths

_COUNT_THEM = "Give the length of each sequence, as `[len(sequence) for sequence in sequences]`."

_HASHED = 1 << 16  # lengths to hash at a time, which fit into the cache of a core
_SAMPLED = 64  # places in the sample by which mapped lengths are named
_SAMPLE = 1024  # lengths read at each of those places


def as_lengths(values: ArrayLike) -> NDArray[np.int64]:
    """Checks lengths, and returns them as int64.

    A length is a whole number from 1 to 2**63 - 1. Two mistakes are common. Seconds are not lengths: turn them into
    frames, as by `read_lengths(values, frame_shift=0.01)`. Sequences are not lengths: count their tokens. In a list of
    rows, each row has one or two numbers, because a row such as [5, 6, 7] is most likely tokens. In an array, a row may
    have up to eight.

    Args:
        values: [n] or [n, dims] integers, or whole floats (in float64, below 2**53): a NumPy array, a list, a torch
            tensor, a pyarrow array. n may be 0.

    Returns:
        [n] or [n, dims], always int64, read-only, and never a view of `values`.

    Raises:
        ValueError: A value is below 1, not finite, not whole or too large. Rows differ in width. Or the shape is
            neither [n] nor [n, dims].
        TypeError: The values are booleans, texts or other objects, or a generator, a dict or a set.

    >>> as_lengths([3, 1, 2.0])
    array([3, 1, 2])
    >>> as_lengths([3, -1, 4])
    Traceback (most recent call last):
    ValueError: `lengths` must be at least 1, but is -1 at sequence 1. Drop the sequence or repair its length.
    """
    raw = as_numbers(values)
    check_dims(1 if raw.ndim == 1 else raw.shape[1])
    remedy = "If these are seconds, turn them into frames: `read_lengths(seconds, frame_shift=0.01)`."
    lengths = whole_lengths(raw.ravel(), name="lengths", place=sequence_place(raw), remedy=remedy)
    return freeze(lengths.reshape(raw.shape))


def view_lengths(values: ArrayLike) -> NDArray[np.int64]:
    """Checks lengths like `as_lengths`, but returns a read-only view of an int64 array instead of a copy."""
    array: Any = values
    is_plain = type(array) is np.ndarray and array.dtype == np.int64 and array.flags.c_contiguous
    is_shaped = is_plain and (array.ndim == 1 or (array.ndim == 2 and 1 <= array.shape[1] <= MOST_DIMS))
    # `as_lengths` converts other types, and raises the errors.
    return freeze(array.view()) if is_shaped and array.min(initial=1) >= 1 else as_lengths(values)


def as_numbers(values: ArrayLike, *, of: str = "") -> NDArray[Any]:
    """Turns an array-like into an array of integers or floats, [n] or [n, dims].

    Args:
        values: [n] or [n, dims].
        of: The end of a place in an error: with " of a.npy", the error names "sequence 3 of a.npy".

    Raises:
        ValueError: The shape is not [n] or [n, dims] with dims >= 1. Or rows of a list differ in width, or have more
            than two numbers.
        TypeError: The values are booleans, texts or other objects.
    """
    raw = _as_array(values)
    # A dict, a generator or a path is one object to NumPy.
    if raw.ndim == 0 and raw.dtype.kind in "OSU":
        raise type_error("lengths", "a list or an array", type(values), _list_remedy(values))
    if raw.ndim not in (1, 2) or raw.shape[1:] == (0,):
        remedy = "Give one number, or one row of numbers, for each sequence."
        raise value_error("lengths", "an array of shape [n] or [n, dims]", raw.shape, remedy)
    if raw.size == 0:
        return np.zeros(raw.shape, dtype=np.int64)
    # NumPy turns [3, "a"] into texts, and [3, True] into integers. As objects, the values keep their types.
    if raw.dtype.kind in "US" or (isinstance(values, Sequence) and _holds_bools(values, raw)):
        raw = np.array(values, dtype=object)
    place = sequence_place(raw, of)
    if raw.dtype.kind == "O":
        return _from_objects(raw, place)
    if raw.dtype.kind not in "iuf":
        raise TypeError(sentence("lengths", "whole numbers", raw.flat[0].item(), _COUNT_THEM, at=place(0)))
    # Rows of a list may be tokens; an array has its shape on purpose.
    if isinstance(values, Sequence) and raw.ndim == 2 and raw.shape[1] > 2:
        remedy = "Count tokens by `[len(row) for row in rows]`. Give rows of more than two lengths as a NumPy array."
        raise value_error("lengths", "a list of numbers or of pairs", values[0], remedy, at="sequence 0")
    return raw


def _holds_bools(values: Sequence[Any], raw: NDArray[Any]) -> bool:
    flat = values if raw.ndim == 1 else itertools.chain.from_iterable(values)
    return not {bool, np.bool_}.isdisjoint(map(type, flat))


def _list_remedy(values: object) -> str:
    if isinstance(values, Mapping):
        return "Give its values in the order of the sequences: `list(lengths.values())`."
    if isinstance(values, str | bytes | os.PathLike):
        return "Read the lengths of a file with `read_lengths(path)`."
    return "Put its numbers in a list: `list(lengths)`." if isinstance(values, Iterable) else _COUNT_THEM


def sequence_place(raw: NDArray[Any], of: str = "") -> Place:
    """Returns a function that names the sequence, and its dimension, at a flat index of `raw`.

    >>> sequence_place(np.ones((4, 2)))(5)
    'sequence 2, dimension 1'
    """
    dims, part = (1, "") if raw.ndim == 1 else (raw.shape[1], ", dimension {}")
    return lambda at: f"sequence {at // dims}{part.format(at % dims)}{of}"


def _as_array(values: ArrayLike) -> NDArray[Any]:
    refuse_masked("lengths", values)
    try:
        return np.asarray(values)
    except ValueError as error:
        remedy = "Count tokens by `[len(row) for row in rows]`."
        raise value_error("lengths", "a list of numbers, or of rows of the same width", values, remedy) from error
    except (TypeError, RuntimeError) as error:  # a tensor on a GPU, with a gradient, or of a dtype NumPy lacks
        remedy = f"Convert it to a NumPy array first ({error})."
        raise type_error("lengths", "an array of whole numbers", type(values), remedy) from error


def _from_objects(raw: NDArray[np.object_], place: Place) -> NDArray[Any]:
    flat = raw.ravel().tolist()
    integral = True
    for at, value in enumerate(flat):
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
            raise TypeError(sentence("lengths", "whole numbers", value, _COUNT_THEM, at=place(at)))
        size: Any = abs(value)
        if size >= 2**63 and not isinstance(value, float):  # also Fraction(10**400), which no float holds
            raise value_error("lengths", "from 1 to 2**63 - 1", value, "Repair its length.", at=place(at))
        # As in NumPy, all values become floats if one is not an integer.
        integral = integral and isinstance(value, numbers.Integral)
    return np.array(flat, dtype=np.int64 if integral else np.float64).reshape(raw.shape)


def array_columns(values: Any, *, of: str = "") -> list[Column]:
    """Splits an array-like, [n] or [n, dims], into columns called "lengths"."""
    raw = as_numbers(values, of=of)
    place, dims = sequence_place(raw, of), 1 if raw.ndim == 1 else raw.shape[1]
    # `place` takes a flat index: among 3 dimensions, row 2 of dimension 1 is at 7.
    return [
        Column(name="lengths", values=values, place=lambda row, dim=dim: place(row * dims + dim))
        for dim, values in enumerate(raw.reshape(-1, dims).T)
    ]


def fingerprint(lengths: ArrayLike) -> str:
    """Names lengths by 16 hex digits, the same on every platform.

    Any change of the lengths or of their order changes the name. The digits are a BLAKE2b hash of the shape, as
    little-endian int64, and then of the lengths, as little-endian unsigned integers. An integer has 1, 2, 4 or 8 bytes,
    the fewest that hold the longest length.

    Args:
        lengths: [n] or [n, dims], as for `as_lengths`.

    >>> fingerprint([1, 2, 3])
    'b7589102dda1c9e6'
    """
    return name_checked(as_lengths(lengths))


def name_checked(lengths: NDArray[np.int64]) -> str:
    """Returns the `fingerprint` of checked lengths, without a copy."""
    flat = lengths.reshape(-1)
    narrow = np.min_scalar_type(int(flat.max(initial=0))).newbyteorder("<")
    return _digest(lengths.shape, flat, range(0, len(flat), _HASHED), _HASHED, narrow)


def name_sample(lengths: NDArray[Any]) -> str:
    """Names lengths by 16 hex digits, a hash of their shape and of a sample: 1,024 neighbours at each of 64 places.

    Up to 65,536 sequences are hashed whole.
    """
    count = len(lengths)
    if count <= _SAMPLED * _SAMPLE:
        return _digest(lengths.shape, np.asarray(lengths), [0], count, "<i8")
    # From the first to the last length, evenly.
    starts = np.linspace(0, count - _SAMPLE, _SAMPLED).astype(np.int64).tolist()
    return _digest(lengths.shape, np.asarray(lengths), starts, _SAMPLE, "<i8")


def _digest(shape: tuple[int, ...], values: NDArray[Any], starts: Iterable[int], size: int, dtype: Any) -> str:
    """Hashes a shape, and `size` values from each of the `starts`."""
    digest = hashlib.blake2b(np.array(shape, dtype="<i8").tobytes(), digest_size=8)
    for start in starts:
        digest.update(np.ascontiguousarray(values[start : start + size], dtype).data)
    return digest.hexdigest()


def read_numpy(path: Path, column: Wanted, *_: Any) -> Iterator[list[Column]]:
    """Reads the array in a .npy file, [n] or [n, dims]; `column` chooses dimensions, as "1" or "0,2".

    Raises:
        ValueError: The file is damaged, or an archive of arrays. The array holds Python objects, or its shape is
            neither [n] nor [n, dims]. Or the dimension does not exist.
        TypeError: The values are not integers or floats, but booleans or texts, for example.
    """
    with open(path, "rb") as file:
        try:
            content = np.lib.format.read_array(file, allow_pickle=False)
        except Exception as error:  # a damaged byte may raise any error of ast, tokenize, ...
            rule, remedy = _refuse(path, error)
            raise source_error(rule, path, remedy) from error
    columns = array_columns(content, of=f" of {path}")
    yield [columns[dim] for dim in choose_dimensions(column, len(columns), path)]


def _refuse(path: str | os.PathLike[str], error: Exception) -> tuple[str, str]:
    """Returns the rule that a file breaks which NumPy cannot read, and the remedy."""
    # NumPy has no error class for a file of pickled objects: only its words tell.
    if any(words in str(error) for words in ("Object arrays", "Python objects")):
        remedy = "Save whole numbers: `np.save(path, np.asarray(lengths, dtype=np.int64))`."
        return "an array of numbers, not of Python objects", remedy
    if zipfile.is_zipfile(path):
        return "a .npy file", "Give one array of the archive, as `np.load(path)['lengths']`."
    return "a .npy file", "Write it again by `np.save`, or correct its suffix."


class MappedLengths(np.memmap):
    """A `numpy.memmap` that is pickled as its path: a process that unpickles it maps the same file."""

    def __deepcopy__(self, memo: dict[int, Any] | None, /) -> Any:
        # The map is read-only; `numpy.ndarray` would copy the whole file into memory.
        return self if _is_whole(self) else super().__deepcopy__(memo)

    def __reduce__(self) -> Any:
        if not _is_whole(self):  # a slice, or a computed array
            return np.asarray(self).__reduce__()
        path, *how = _describe(self)
        return _map_again, (name_sample(self), os.path.abspath(os.fspath(path)), *how)


def map_file(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Maps a `.npy` file, read-only.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file is not a `.npy` file, or it is damaged.
    """
    with files.refusals(path, "read"):
        files.check_regular(path)
        try:
            return keep_mapped(np.lib.format.open_memmap(os.fspath(path), mode="r"))
        except OSError:
            raise
        except Exception as error:  # as in `read_numpy`
            rule, remedy = _refuse(path, error)
            raise value_error("lengths", f"the path of {rule}", os.fspath(path), remedy) from error


def keep_mapped(array: NDArray[Any]) -> NDArray[Any]:
    """Returns `MappedLengths` of the same file if the array maps a whole file, else the array as it is."""
    with suppress(OSError, ValueError):  # the file has since been removed or cut: keep the old map
        if isinstance(array, np.memmap) and not isinstance(array, MappedLengths) and _is_whole(array):
            return MappedLengths(*_describe(array))
    return array


def _is_whole(array: Any) -> bool:
    """Tells if the array maps a whole file, with the values of the file."""
    # The base of a view is another array, and not the map. In mode "c", changed values are not written to the file.
    return isinstance(array.base, mmap.mmap) and array.filename is not None and array.mode != "c"


def _describe(array: Any) -> tuple[Any, ...]:
    """Returns the arguments for `MappedLengths` to map the same file."""
    return array.filename, array.dtype.str, "r", array.offset, array.shape, "C" if array.flags.c_contiguous else "F"


def _map_again(name: str, path: str, *how: Any) -> NDArray[Any]:
    remedy = "Give every process the same file, unchanged."
    try:
        lengths = MappedLengths(path, *how)
    except (OSError, ValueError) as error:
        raise value_error("lengths", f"a file that can be mapped ({error})", path, remedy) from error
    if name_sample(lengths) != name:
        raise value_error("lengths", "a file that has not changed since another process mapped it", path, remedy)
    return lengths

"""Lengths from arrays in memory, and their fingerprint.

Shapes: n sequences; dims lengths for each (2 for source and target). One dimension is [n], several are [n, dims].
"""

from __future__ import annotations

import hashlib
import itertools
import numbers
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import sentence, type_error, value_error
from lengthwise.lengths.columns import Column
from lengthwise.lengths.rules import MOST_DIMS, Place, check_dims, freeze, whole_lengths

_COUNT_THEM = "Give the length of each sequence, as `[len(sequence) for sequence in sequences]`."

_HASHED = 1 << 16  # lengths that are narrowed at a time: few enough to stay in the cache of a core


def as_lengths(values: ArrayLike) -> NDArray[np.int64]:
    """Checks that these are lengths and returns them as int64.

    Every length is a whole number from 1 to 2**63 - 1. Two things go wrong in use. Seconds are no lengths: turn them
    into frames with `read_lengths(values, frame_shift=0.01)`. Sequences are no lengths: count their tokens. Rows in a
    list hold at most two numbers, so that token lists such as [[5, 6, 7], [1, 2, 3]] are refused. An array of shape
    [n, dims] has up to eight.

    Args:
        values: [n] or [n, dims] integers, or floats that are whole and below 2**53: a NumPy array, a list, a torch
            tensor, a pyarrow array. No sequences at all (n = 0) are legal.

    Returns:
        [n] or [n, dims], always int64, read-only, and never a view of `values`.

    Raises:
        ValueError: A value below 1, not finite, not whole or too large; rows of different widths; another shape.
        TypeError: Booleans, text or other objects; a generator, a dict or a set.

    >>> as_lengths([3, 1, 2.0])
    array([3, 1, 2])
    >>> as_lengths([3, 0, -1])
    Traceback (most recent call last):
    ValueError: `lengths` must be at least 1, but is 0 at sequence 1. Drop the sequence or repair its length.
    """
    raw = as_numbers(values)
    check_dims(1 if raw.ndim == 1 else raw.shape[1])
    remedy = "If these are seconds, turn them into frames: `read_lengths(seconds, frame_shift=0.01)`."
    lengths = whole_lengths(raw.ravel(), name="lengths", place=sequence_place(raw), remedy=remedy)
    return freeze(lengths.reshape(raw.shape))


def view_lengths(values: ArrayLike) -> NDArray[np.int64]:
    """Checks lengths as `as_lengths` does, without a copy of int64 arrays: for callers in which they do not change."""
    array: Any = values
    plain = type(array) is np.ndarray and array.dtype == np.int64 and array.flags.c_contiguous
    shaped = plain and (array.ndim == 1 or (array.ndim == 2 and 1 <= array.shape[1] <= MOST_DIMS))
    # Of other types and shapes `as_lengths` says what is wrong.
    return freeze(array.view()) if shaped and array.min(initial=1) >= 1 else as_lengths(values)


def as_numbers(values: ArrayLike, *, of: str = "") -> NDArray[Any]:
    """Turns an array-like into an array of integers or floats with a shape that lengths may have.

    Args:
        values: [n] or [n, dims].
        of: The end of a place in an error, as " of a.npy".

    Raises:
        ValueError: Rows of different widths, a shape other than [n] and [n, dims] with dims >= 1, or rows of more
            than two numbers in a list.
        TypeError: Booleans, text or other objects.
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
    if raw.dtype.kind in "US":  # a list of numbers and text becomes all text: look at what was given
        raw = np.array(values, dtype=object)
    if raw.dtype.kind == "O":
        return _from_objects(raw, sequence_place(raw, of))
    if raw.dtype.kind not in "iuf":
        raise _not_a_number(raw.flat[0].item(), sequence_place(raw, of)(0))
    # A list alone: an array says by itself what its dtype and its shape are.
    if isinstance(values, Sequence):
        _check_rows(values, raw, sequence_place(raw, of))
    return raw


def _check_rows(values: Sequence[Any], raw: NDArray[Any], place: Place) -> None:
    """Refuses lists that NumPy reads silently: token lists of equal length, and True among integers."""
    if raw.ndim == 2 and raw.shape[1] > 2:
        rule = "a list of numbers or of pairs"
        remedy = "Count lists of tokens: `[len(row) for row in rows]`; give more lengths a sequence as a NumPy array."
        raise value_error("lengths", rule, values[0], remedy, at="sequence 0")
    # NumPy makes integers of [3, True]: what was given must be looked at, not what came out.
    flat = values if raw.ndim == 1 else list(itertools.chain.from_iterable(values))
    if not {bool, np.bool_}.isdisjoint(map(type, flat)):
        at = next(k for k, value in enumerate(flat) if isinstance(value, bool | np.bool_))
        raise _not_a_number(flat[at], place(at))


def _list_remedy(values: object) -> str:
    if isinstance(values, Mapping):
        return "Give its values in the order of the sequences: `list(lengths.values())`."
    if isinstance(values, str | bytes | os.PathLike):
        return "Read the lengths of a file with `read_lengths(path)`."
    return "Put its numbers in a list: `list(lengths)`." if isinstance(values, Iterable) else _COUNT_THEM


def sequence_place(raw: NDArray[Any], of: str = "") -> Place:
    """Says which sequence, and which dimension of it, stands at a flat index of `raw`.

    >>> sequence_place(np.ones((4, 2)))(5)
    'sequence 2, dimension 1'
    """
    if raw.ndim == 1:
        return lambda at: f"sequence {at}{of}"
    dims = raw.shape[1]
    return lambda at: f"sequence {at // dims}, dimension {at % dims}{of}"


def _as_array(values: ArrayLike) -> NDArray[Any]:
    # numpy.ma takes a while to import, and without it no array is masked.
    if "numpy.ma" in sys.modules and np.ma.is_masked(values):
        remedy = "Drop the masked sequences first, as by `values.compressed()`."
        raise value_error("lengths", "an array without masked values", "masked", remedy)
    try:
        return np.asarray(values)
    except ValueError as error:
        rule = "one number, or as many numbers as for the others, for each sequence"
        remedy = "Count lists of tokens: `[len(row) for row in rows]`."
        raise value_error("lengths", rule, values, remedy) from error
    except (TypeError, RuntimeError) as error:  # a tensor on a GPU, with a gradient, or of a dtype NumPy lacks
        remedy = f"Convert it to a NumPy array first ({error})."
        raise type_error("lengths", "an array of whole numbers", type(values), remedy) from error


def _from_objects(raw: NDArray[np.object_], place: Place) -> NDArray[Any]:
    flat = raw.ravel().tolist()
    whole = True
    for at, value in enumerate(flat):
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
            raise _not_a_number(value, place(at))
        if abs(value) >= 2**63 and not isinstance(value, float):  # also Fraction(10**400), which no float holds
            raise value_error("lengths", "from 1 to 2**63 - 1", value, "Repair its length.", at=place(at))
        # One fraction among Python integers makes all of them floats, as NumPy does.
        whole = whole and isinstance(value, numbers.Integral)
    return np.array(flat, dtype=np.int64 if whole else np.float64).reshape(raw.shape)


def _not_a_number(value: object, at: str) -> TypeError:
    return TypeError(sentence("lengths", "whole numbers", value, _COUNT_THEM, at=at))


def array_columns(values: Any, *, of: str = "") -> list[Column]:
    """Splits an array-like, [n] or [n, dims], into columns called "lengths"."""
    raw = as_numbers(values, of=of)
    place, dims = sequence_place(raw, of), 1 if raw.ndim == 1 else raw.shape[1]
    # A place counts along the rows: row 2 of dimension 1 of 3 is the flat index 7.
    return [
        Column(name="lengths", values=values, place=lambda row, dim=dim: place(row * dims + dim))
        for dim, values in enumerate(raw.reshape(-1, dims).T)
    ]


def fingerprint(lengths: ArrayLike) -> str:
    """Names lengths by 16 hex digits: the same on every platform, and others after any change, also of the order.

    BLAKE2b over the shape, as little-endian int64, and then the lengths, as little-endian unsigned integers of 1, 2, 4
    or 8 bytes: the fewest that hold the longest. Bytes are what hashing takes its time for.

    Args:
        lengths: [n] or [n, dims], as `as_lengths` takes them.

    >>> fingerprint([1, 2, 3])
    'b7589102dda1c9e6'
    """
    return name_checked(as_lengths(lengths))


def name_checked(lengths: NDArray[np.int64]) -> str:
    """Returns the `fingerprint` of lengths that were checked before, without a copy of them."""
    digest = hashlib.blake2b(np.array(lengths.shape, dtype="<i8").tobytes(), digest_size=8)
    flat = lengths.reshape(-1)
    narrow = np.min_scalar_type(int(flat.max(initial=0))).newbyteorder("<")
    for start in range(0, len(flat), _HASHED):
        digest.update(np.ascontiguousarray(flat[start : start + _HASHED], narrow).data)
    return digest.hexdigest()

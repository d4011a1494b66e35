"""The fields of samples: they are taken apart, batched one by one, and put together again.

A sample is a field, or a tuple, NamedTuple, list or dict of fields, nested at any depth.

    sequence   a tensor or NumPy array [T, ...], or a list of numbers such as tokens
    number     a Python or NumPy number, or a tensor or array without axes
    object     anything else: text, None
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from lengthwise import _samples, checks

_NUMBERS = (int, float, complex, np.number, np.bool_)
_ALIKE = "Make them alike in the data set's __getitem__."
_TIME_FIRST = (
    "Make them alike in the data set's __getitem__, and time first: squeeze(0) a waveform [1, T], transpose features "
    "[F, T]."
)


@dataclass(slots=True)
class Sequences:
    """One sequence field of B samples, which differ only in length.

    Attributes:
        name: Its name in a sample, such as "audio" or "1.labels"; empty if the sample is one field.
        entries: B arrays [T, ...], or tensors if NumPy cannot view one of them, as on a GPU.
        lengths: The length T of each entry.
        dtype: The dtype of all entries.
    """

    name: str
    entries: Sequence[Any]
    lengths: list[int]
    dtype: torch.dtype

    def lay(self, shape: Sequence[int], places: Iterable[Any], padding: tuple[float, torch.dtype]) -> Tensor:
        """Makes a tensor [*shape, ...] of the padding value, and writes entry i at index places[i]."""
        first, (value, dtype) = self.entries[0], padding
        whole_shape = (*shape, *first.shape[1:])
        if isinstance(first, Tensor):
            target = values = torch.full(whole_shape, value, dtype=dtype, device=first.device)
        else:  # NumPy copies short entries five times as fast as PyTorch
            target = np.full(whole_shape, value, _as_numpy(dtype))
            values = torch.from_numpy(target)
        for place, entry in zip(places, self.entries, strict=True):
            target[place] = entry
        return values


Field: TypeAlias = Sequences | Tensor | list[Any]
"""One field of B samples: sequences, numbers stacked to a tensor [B], or a list of B objects."""


def take_apart(samples: Sequence[Any]) -> tuple[Any, list[str], list[Field]]:
    """Returns the structure of a sample (with the index of each field in its place), the names, and the fields.

    Raises:
        TypeError: `samples` is not a list of samples.
        ValueError: There are no samples, or their fields differ in name, kind, dtype or shape of a frame.

    >>> samples = [{"text": "ab", "pair": (1, [5, 5])}, {"text": "c", "pair": (2, [5])}]
    >>> structure, names, fields = take_apart(samples)
    >>> structure, names
    ({'text': 0, 'pair': (1, 2)}, ['text', 'pair.0', 'pair.1'])
    >>> fields[0], fields[1].tolist(), fields[2].lengths
    (['ab', 'c'], [1, 2], [2, 1])
    """
    checks.check_samples(samples)
    names, fields = list[str](), list[Field]()
    try:
        return _take(samples, "", names, fields), names, fields
    except RecursionError as error:
        raise _samples.nested_error(samples[0]) from error


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """Applies `function` to every leaf of `tree`, and returns the same structure.

    >>> map_leaves(["ab", "c"].__getitem__, {"text": 1, "pair": (0, 1)})
    {'text': 'c', 'pair': ('ab', 'c')}
    """
    if not isinstance(tree, Mapping | tuple | list):
        return function(tree)
    return _with_parts(tree, {key: map_leaves(function, part) for key, part in _parts(tree).items()})


def move(batch: Any, device: torch.device | str | int, *, non_blocking: bool = False) -> Any:
    """Returns the tensors of a batch on `device`, in the same structure; numbers and objects as they are."""

    def move_leaf(leaf: Any) -> Any:
        return leaf.to(device, non_blocking=non_blocking) if isinstance(leaf, Tensor) else leaf

    return map_leaves(move_leaf, batch)


def pad_with(
    value: _samples.Value, name: str, dtype: torch.dtype, *, labels: str | None = None
) -> tuple[float, torch.dtype]:
    """Returns the padding value of a field, and the dtype of its batch: int64 for unsigned labels, else its own.

    Raises:
        ValueError: The dtype cannot hold the value.
    """
    is_integer = is_whole(dtype)
    padding = _samples.padding_value(value, name, is_integer=is_integer, labels=labels)
    is_label = padding == _samples.IGNORED or _samples.is_name_of(name, labels)
    if is_label and is_integer and not dtype.is_signed:  # tokens are often uint16
        dtype = torch.int64
    limits = (0, 1)
    if dtype != torch.bool:
        info = torch.iinfo(dtype) if is_integer else torch.finfo(dtype)
        limits = (info.min, info.max)
    _samples.check_fits(padding, dtype, limits, is_integer=is_integer or dtype == torch.bool, at=_samples.place(name))
    return padding, dtype


def is_whole(dtype: torch.dtype) -> bool:
    """Tells if an array of this dtype holds whole numbers; bool does not count."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)


def _take(samples: Sequence[Any], name: str, names: list[str], fields: list[Field]) -> Any:
    """Adds the names and fields of `samples`, and returns their structure."""
    types = set(map(type, samples))
    if (kind := _kind_of_all(samples, types, name)) != "a structure":
        names.append(name)
        fields.append(_field(kind, samples, types, name))
        return len(fields) - 1
    # Depth first, in the order of the first sample: {"a": (x, y), "b": z} gives the fields a.0, a.1 and b.
    parts = samples if types == {dict} else list(map(_parts, samples))
    keys = parts[0].keys()
    if any(part.keys() != keys for part in parts):
        _same("set of fields", [sorted(part, key=str) for part in parts], name)
    prefix = f"{name}." if name else ""
    structure = {key: _take([part[key] for part in parts], f"{prefix}{key}", names, fields) for key in keys}
    return _with_parts(samples[0], structure)


def _parts(structure: Any) -> Mapping[Any, Any]:
    if isinstance(structure, Mapping):
        return structure
    # A NamedTuple by its names; a tuple or list by its places: (x, y) is {0: x, 1: y}.
    return structure._asdict() if hasattr(structure, "_fields") else dict(enumerate(structure))


def _with_parts(structure: Any, parts: dict[Any, Any]) -> Any:
    """Returns a structure of the same kind with `parts` in place of its own."""
    if isinstance(structure, Mapping):
        return parts
    if isinstance(structure, list):
        return list(parts.values())
    return type(structure)(**parts) if hasattr(structure, "_fields") else tuple(parts.values())


def _kind_of_all(samples: Sequence[Any], types: set[type], name: str) -> str:
    kinds = {_kind_of_type(kind) for kind in types}
    if kinds == {"an array"} and min([array.ndim for array in samples]):
        return "a sequence"
    # Refuses a tensor in one sample and None in another. Samples of one type have one kind, except arrays and lists.
    alike = len(types) == 1 and not kinds & {"an array", "a list"}
    return _same("kind", list(map(_kind, samples[:1] if alike else samples)), name)


def _kind(entry: Any) -> str:
    kind = _kind_of_type(type(entry))
    if kind == "an array":
        return "a sequence" if entry.ndim else "a number"
    # A list of numbers is a sequence, and so is an empty list, such as an empty transcript.
    if kind == "a list":
        return "a sequence" if all(issubclass(part, _NUMBERS) for part in set(map(type, entry))) else "a structure"
    return kind


@lru_cache
def _kind_of_type(kind: type) -> str:
    kinds = {"an array": (np.ndarray, Tensor), "a number": _NUMBERS, "a list": list, "a structure": (Mapping, tuple)}
    return next((name for name, types in kinds.items() if issubclass(kind, types)), "an object")


def _convert_list(entry: Any) -> Any:
    if not isinstance(entry, list):
        return entry
    if not entry:  # such as an empty transcript: it counts as tokens, and not as PyTorch's default of floats
        return np.empty(0, np.int64)
    with suppress(ValueError, TypeError, OverflowError):
        array = np.array(entry)  # eight times as fast as PyTorch, which says what is wrong with other lists
        if array.dtype in (np.int64, np.bool_):
            return array
    return torch.tensor(entry)


def _field(kind: str, entries: Sequence[Any], types: set[type], name: str) -> Field:
    if kind == "an object":
        return list(entries)
    if kind == "a number":
        if len(types) == 1 and types <= {int, float, bool}:
            return torch.tensor(entries)
        tensors = list(map(torch.as_tensor, entries))
        _same_dtype(tensors, name)
        return torch.stack(tensors)
    arrays = entries if list not in types else list(map(_convert_list, entries))
    dtype = _same_dtype(arrays, name)
    shapes = [array.shape for array in arrays]
    if len({shape[1:] for shape in shapes}) > 1:
        _same("shape of a frame", [tuple(shape[1:]) for shape in shapes], name, remedy=_TIME_FIRST)
    if types != {np.ndarray}:
        with suppress(TypeError, RuntimeError):  # NumPy cannot view tensors on a GPU, of bfloat16, or with gradients
            arrays = [array if isinstance(array, np.ndarray) else array.numpy() for array in arrays]
    return Sequences(name, arrays, [shape[0] for shape in shapes], dtype)


def _same_dtype(arrays: Sequence[Any], name: str) -> torch.dtype:
    if len(dtypes := {array.dtype for array in arrays}) == 1:
        return _as_torch(*dtypes, name, 0)
    return _same("dtype", [_as_torch(array.dtype, name, sample) for sample, array in enumerate(arrays)], name)


@lru_cache
def _as_numpy(dtype: torch.dtype) -> np.dtype[Any]:
    return torch.empty(0, dtype=dtype).numpy().dtype


@lru_cache
def _as_torch(dtype: Any, name: str, sample: int) -> torch.dtype:
    if isinstance(dtype, torch.dtype):
        return dtype
    try:
        # An empty array is enough to ask for the dtype, in the machine's byte order: PyTorch refuses the other.
        return torch.from_numpy(np.empty(0, dtype.newbyteorder("="))).dtype
    except TypeError as error:
        remedy, at = "Convert it in the data set's __getitem__.", _samples.place(name, sample=sample)
        raise checks.value_error("samples", "of a dtype that PyTorch has", str(dtype), remedy, at=at) from error


def _same(attribute: str, values: list[Any], name: str, *, remedy: str = _ALIKE) -> Any:
    """Returns the value that all samples share; refuses the first sample with another value."""
    if values.count(values[0]) < len(values):
        sample, value = next((sample, value) for sample, value in enumerate(values) if value != values[0])
        rule = f"of the same {attribute} in every sample, {values[0]} as in sample 0"
        raise checks.value_error("samples", rule, value, remedy, at=_samples.place(name, sample=sample))
    return values[0]

"""The fields of samples: taken apart, batched one by one, and put together again.

A sample is what a data set's `__getitem__` gives: a field, or a tuple, NamedTuple, list or dict of them, in any depth.

    a sequence   a tensor or NumPy array [T, ...], or a list of numbers: tokens, often
    a number     of Python or NumPy, or a tensor or array []
    an object    anything else: text, None
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from lengthwise import _samples, checks

_NUMBERS = (int, float, complex, np.number, np.bool_)
# Numbers of Python that NumPy converts at once, and their dtype there.
_OF_PYTHON: dict[type, type[np.generic]] = {int: np.int64, float: np.float64, bool: np.bool_}
_ALIKE = "Make them alike in the data set's __getitem__."
_TIME_FIRST = (
    "Make them alike in the data set's __getitem__, and time first: squeeze(0) a waveform [1, T], transpose features "
    "[F, T]."
)


@dataclass(slots=True)
class Sequences:
    """One sequence field of B samples: alike in all but length.

    Attributes:
        name: Where it stands in a sample, such as "audio" or "1.labels"; empty if it is the whole sample.
        entries: B arrays [T, ...]; tensors if NumPy has no view of one, as of a GPU's.
        lengths: T of each entry.
        dtype: Of every entry.
    """

    name: str
    entries: Sequence[Any]
    lengths: list[int]
    dtype: torch.dtype

    def lay(self, shape: Sequence[int], places: Iterable[Any], padding: tuple[float, torch.dtype]) -> Tensor:
        """Copies each entry to its place, an index, in a new tensor [*shape, ...] of `padding`: a value and dtype."""
        first, (value, dtype) = self.entries[0], padding
        whole_shape = (*shape, *first.shape[1:])
        if isinstance(first, Tensor):
            target = values = torch.full(whole_shape, value, dtype=dtype, device=first.device)
        else:  # NumPy copies a short entry in a fifth of the time that PyTorch takes
            target = np.full(whole_shape, value, _as_numpy(dtype))
            values = torch.from_numpy(target)
        for place, entry in zip(places, self.entries, strict=True):
            target[place] = entry
        return values


Field: TypeAlias = Sequences | Tensor | list[Any]
"""One field of B samples: sequences, numbers stacked to a tensor [B], or a list of B objects."""


def take_apart(samples: Sequence[Any]) -> tuple[Any, list[str], list[Field]]:
    """Returns the structure of a sample, with the number of each field in its place; and their names and fields.

    Raises:
        TypeError: `samples` is one sample, or anything else that is no list.
        ValueError: No samples; or samples whose fields differ, in name, kind, dtype or shape of a frame.

    >>> samples = [{"text": "ab", "pair": (1, [5, 5])}, {"text": "c", "pair": (2, [5])}]
    >>> structure, names, fields = take_apart(samples)
    >>> structure, names
    ({'text': 0, 'pair': (1, 2)}, ['text', 'pair.0', 'pair.1'])
    >>> fields[0], fields[1].tolist(), fields[2].lengths
    (['ab', 'c'], [1, 2], [2, 1])
    """
    checks.check_samples(samples)
    names, fields = list[str](), list[Field]()
    return _take(samples, "", names, fields), names, fields


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """Returns a structure like `tree`, with what `function` makes of each part that is no structure.

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


def place(name: str, *, sample: int | None = None) -> str:
    """Names a place in a batch, for an error.

    >>> place("audio", sample=3), place("", sample=3), place("audio")
    ('sample 3, field audio', 'sample 3', 'field audio')
    """
    words = ("" if sample is None else f"sample {sample}", f"field {name}" if name else "")
    return ", ".join(filter(None, words))


def pad_with(
    value: _samples.Value, name: str, dtype: torch.dtype, *, labels: str | None = None
) -> tuple[float, torch.dtype]:
    """Returns what the padding of a field holds, and the dtype that holds it: int64 for labels of unsigned numbers.

    Raises:
        ValueError: The dtype does not hold the value.
    """
    whole = is_whole(dtype)
    held = _samples.padding_value(value, name, whole=whole, labels=labels)
    is_label = held == _samples.IGNORED or _samples.is_name_of(name, labels)
    if is_label and whole and not dtype.is_signed:  # tokens are often uint16
        dtype = torch.int64
    limits = (0, 1)
    if dtype != torch.bool:
        info = torch.iinfo(dtype) if whole else torch.finfo(dtype)
        limits = (info.min, info.max)
    _samples.check_held(held, dtype, limits, whole=whole or dtype == torch.bool, at=place(name))
    return held, dtype


def is_whole(dtype: torch.dtype) -> bool:
    """Tells if an array of this dtype holds whole numbers; bool does not count."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)


def _take(samples: Sequence[Any], name: str, names: list[str], fields: list[Field]) -> Any:
    """Adds the names and fields of `samples`, and returns their structure."""
    types = set(map(type, samples))
    field = _convert_lists(samples, name) if types == {list} else None
    if field is None and (kind := _kind_of_all(samples, types, name)) != "a structure":
        field = _field(kind, samples, types, name)
    if field is not None:
        names.append(name)
        fields.append(field)
        return len(fields) - 1
    # Depth first, in the order of the first sample: {"a": (x, y), "b": z} gives the fields a.0, a.1 and b.
    parts = samples if types == {dict} else list(map(_parts, samples))
    keys = parts[0].keys()
    if any(part.keys() != keys for part in parts):
        _same("set of fields", [sorted(part, key=str) for part in parts], name)
    before = f"{name}." if name else ""
    structure = {key: _take([part[key] for part in parts], f"{before}{key}", names, fields) for key in keys}
    return _with_parts(samples[0], structure)


def _parts(structure: Any) -> Mapping[Any, Any]:
    if isinstance(structure, Mapping):
        return structure
    # A NamedTuple by its names; a tuple or list by its places: (x, y) is {0: x, 1: y}.
    return structure._asdict() if hasattr(structure, "_fields") else dict(enumerate(structure))


def _with_parts(structure: Any, parts: dict[Any, Any]) -> Any:
    """Returns a structure of the same kind with other `parts`, as `_parts` gives them."""
    if isinstance(structure, Mapping):
        return parts
    if isinstance(structure, list):
        return list(parts.values())
    return type(structure)(**parts) if hasattr(structure, "_fields") else tuple(parts.values())


def _kind_of_all(samples: Sequence[Any], types: set[type], name: str) -> str:
    kinds = {_kind_of_type(kind) for kind in types}
    if kinds == {"an array"} and min([array.ndim for array in samples]):
        return "a sequence"
    # A tensor in one sample and None in another are refused here by name. Of some types the first sample tells all.
    alike = len(types) == 1 and not kinds & {"an array", "a list"}
    return _same("kind", list(map(_kind, samples[:1] if alike else samples)), name)


def _kind(entry: Any) -> str:
    kind = _kind_of_type(type(entry))
    if kind == "an array":
        return "a sequence" if entry.ndim else "a number"
    # Lists of numbers alone; an empty one counts as one of them, an empty transcript say.
    if kind == "a list":
        return "a sequence" if all(issubclass(part, _NUMBERS) for part in set(map(type, entry))) else "a structure"
    return kind


@lru_cache
def _kind_of_type(kind: type) -> str:
    kinds = {"an array": (np.ndarray, Tensor), "a number": _NUMBERS, "a list": list, "a structure": (Mapping, tuple)}
    return next((name for name, types in kinds.items() if issubclass(kind, types)), "an object")


def _convert_lists(entries: Sequence[list[Any]], name: str) -> Sequences | None:
    """Converts lists of one type of Python's numbers all at once; None for other entries."""
    kinds = set(map(type, chain.from_iterable(entries)))
    dtype = _OF_PYTHON.get(*kinds) if len(kinds) == 1 else None
    # A list that is empty counts as whole numbers, which differ from floats.
    if dtype is None or (dtype is not np.int64 and not all(entries)):
        return None
    lengths = list(map(len, entries))
    flat = np.fromiter(chain.from_iterable(entries), dtype, sum(lengths))
    kept = torch.get_default_dtype() if dtype is np.float64 else _as_torch(flat.dtype, name, 0)
    arrays = [flat[start:stop] for start, stop in pairwise(accumulate(lengths, initial=0))]
    return Sequences(name, arrays, lengths, kept)


def _convert_list(entry: Any) -> Any:
    # A list that is empty holds token numbers too, but says no dtype: an empty transcript, for example.
    return torch.tensor(entry, dtype=None if entry else torch.int64) if isinstance(entry, list) else entry


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
        with suppress(TypeError, RuntimeError):  # of tensors on a GPU, of bfloat16, or with gradients
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
        # An empty array is enough to ask for the dtype; PyTorch refuses one in the other byte order.
        return torch.from_numpy(np.empty(0, dtype.newbyteorder("="))).dtype
    except TypeError as error:
        remedy, at = "Convert it in the data set's __getitem__.", place(name, sample=sample)
        raise checks.value_error("samples", "of a dtype that PyTorch has", str(dtype), remedy, at=at) from error


def _same(what: str, values: list[Any], name: str, *, remedy: str = _ALIKE) -> Any:
    """Returns the value that all samples have, refusing the first that has another."""
    if values.count(values[0]) < len(values):
        sample, value = next((sample, value) for sample, value in enumerate(values) if value != values[0])
        rule = f"of one {what} in every sample, {values[0]} as in sample 0"
        raise checks.value_error("samples", rule, value, remedy, at=place(name, sample=sample))
    return values[0]

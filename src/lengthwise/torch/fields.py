"""The fields of samples: taken apart, batched one by one, and put together again.

A sample is what a data set's `__getitem__` gives: a field, or a tuple, NamedTuple, list or dict of them, in any depth.

    a sequence   a tensor or NumPy array [T, ...], or a list of numbers: tokens, often
    a number     of Python or NumPy, or a tensor or array []
    an object    anything else: text, None
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from lengthwise import checks

_NUMBERS = (int, float, complex, np.number, np.bool_)
# Numbers of Python that NumPy converts at once, and their dtype there.
_OF_PYTHON: dict[type, type[np.generic]] = {int: np.int64, float: np.float64, bool: np.bool_}

_ALIKE = "Make them alike in the data set's __getitem__."
_TIME_FIRST = (
    "Make them alike in the data set's __getitem__, and time first: squeeze(0) a waveform [1, T], transpose features "
    "[F, T]."
)


@dataclass(frozen=True, slots=True)
class Sequences:
    """One sequence field of B samples: alike in all but length.

    Attributes:
        name: Where it stands in a sample, such as "audio" or "1.labels"; empty if it is the whole sample.
        entries: B arrays [T, ...]; tensors if NumPy has no view of one, as of a GPU's.
        lengths: T of each entry.
        dtype: Of every entry, or another to convert them to.
    """

    name: str
    entries: Sequence[Any]
    lengths: list[int]
    dtype: torch.dtype

    def lay(self, shape: Sequence[int], places: Iterable[Any], value: float) -> Tensor:
        """Copies each entry to its place, an index, in a new tensor [*shape, ...] of `value`."""
        first = self.entries[0]
        device = first.device if isinstance(first, Tensor) else None
        values = torch.full((*shape, *first.shape[1:]), value, dtype=self.dtype, device=device)
        # NumPy copies a short entry in a fifth of the time that PyTorch takes.
        target: Any = values if isinstance(first, Tensor) else values.numpy()
        for place, entry in zip(places, self.entries, strict=True):
            target[place] = entry
        return values


Field: TypeAlias = Sequences | Tensor | list[Any]
"""One field of B samples: sequences, numbers stacked to a tensor [B], or a list of B objects."""


def take_apart(samples: Sequence[Any]) -> tuple[list[str], list[Field]]:
    """Returns the names and the fields of a batch of samples, in the order of the sample.

    Raises:
        TypeError: `samples` is one sample, or anything else that is no list.
        ValueError: No samples; or samples whose fields differ, in name, kind, dtype or shape of a frame.

    >>> names, fields = take_apart([{"text": "ab", "pair": (1, [5, 5])}, {"text": "c", "pair": (2, [5])}])
    >>> names, fields[0], fields[1].tolist(), fields[2].lengths
    (['text', 'pair.0', 'pair.1'], ['ab', 'c'], [1, 2], [2, 1])
    """
    checks.check_samples(samples)
    names, fields = zip(*_fields(samples, ""), strict=True)
    return list(names), list(fields)


def put_together(sample: Any, fields: Iterable[Field], batched: Iterable[Any]) -> Any:
    """The batch in the structure of `sample`; the k-th sequence field is replaced by the k-th of `batched`.

    >>> sample = {"text": "ab", "frames": [5, 5]}
    >>> put_together(sample, take_apart([sample])[1], ["padded"])
    {'text': ['ab'], 'frames': 'padded'}
    """
    rest = iter(batched)
    return _whole(sample, (next(rest) if isinstance(field, Sequences) else field for field in fields))


def move(batch: Any, device: torch.device | str | int, *, non_blocking: bool = False) -> Any:
    """The tensors of a batch on `device`, in the same structure; numbers and objects as they are."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=non_blocking)
    if not isinstance(batch, Mapping | tuple | list):
        return batch
    moved = {key: move(part, device, non_blocking=non_blocking) for key, part in _parts(batch).items()}
    return _with_parts(batch, moved)


def place(name: str, *, sample: int | None = None) -> str:
    """Where in a batch, for an error.

    >>> place("audio", sample=3), place("", sample=3), place("audio")
    ('sample 3, field audio', 'sample 3', 'field audio')
    """
    words = ("" if sample is None else f"sample {sample}", f"field {name}" if name else "")
    return ", ".join(filter(None, words))


def _fields(samples: Sequence[Any], name: str) -> Iterator[tuple[str, Field]]:
    types = set(map(type, samples))
    if types == {list} and (tokens := _convert_lists(samples)) is not None:
        yield name, _field("a sequence", tokens, name)
        return
    # A tensor in one sample and None in another are refused here by name. Of some types the first sample tells all.
    alike = len(types) == 1 and _kind_of_type(*types) not in ("an array", "a list")
    kind = _same("kind", list(map(_kind, samples[:1] if alike else samples)), name)
    if kind != "a structure":
        yield name, _field(kind, samples, name)
        return
    # Depth first, in the order of the first sample: {"a": (x, y), "b": z} gives the fields a.0, a.1 and b.
    parts = samples if types == {dict} else list(map(_parts, samples))
    keys = parts[0].keys()
    if any(part.keys() != keys for part in parts):
        _same("set of fields", [sorted(part, key=str) for part in parts], name)
    for key in keys:
        yield from _fields([part[key] for part in parts], _join(name, key))


def _join(name: str, key: Any) -> str:
    return f"{name}.{key}" if name else str(key)


def _whole(sample: Any, leaves: Iterator[Any]) -> Any:
    if _kind(sample) != "a structure":
        return next(leaves)
    # The same walk again: each leaf of the sample takes the next field.
    return _with_parts(sample, {key: _whole(part, leaves) for key, part in _parts(sample).items()})


def _with_parts(structure: Any, parts: dict[Any, Any]) -> Any:
    """A structure of the same kind with other `parts`, as `_parts` gives them."""
    if isinstance(structure, Mapping):
        return parts
    if isinstance(structure, list):
        return list(parts.values())
    return type(structure)(**parts) if hasattr(structure, "_fields") else tuple(parts.values())


def _kind(entry: Any) -> str:
    kind = _kind_of_type(type(entry))
    if kind == "an array":
        return "a sequence" if entry.ndim else "a number"
    # Lists of numbers alone; an empty one counts as one of them, an empty transcript say.
    if kind == "a list":
        return "a sequence" if all(issubclass(each, _NUMBERS) for each in set(map(type, entry))) else "a structure"
    return kind


@lru_cache
def _kind_of_type(kind: type) -> str:
    kinds = {"an array": (np.ndarray, Tensor), "a number": _NUMBERS, "a list": list, "a structure": (Mapping, tuple)}
    return next((name for name, types in kinds.items() if issubclass(kind, types)), "an object")


def _parts(sample: Any) -> Mapping[Any, Any]:
    if isinstance(sample, Mapping):
        return sample
    # A NamedTuple by its names; a tuple or list by its places: (x, y) is {0: x, 1: y}.
    return sample._asdict() if hasattr(sample, "_fields") else dict(enumerate(sample))


def _convert_lists(entries: Sequence[list[Any]]) -> Sequence[Tensor] | None:
    """Converts lists of one type of Python's numbers all at once; None for other entries."""
    kinds = set(map(type, chain.from_iterable(entries)))
    dtype = _OF_PYTHON.get(*kinds) if len(kinds) == 1 else None
    # A list that is empty counts as whole numbers, which differ from floats.
    if dtype is None or (dtype is not np.int64 and not all(entries)):
        return None
    lengths = list(map(len, entries))
    flat = torch.from_numpy(np.fromiter(chain.from_iterable(entries), dtype, sum(lengths)))
    return (flat.to(torch.get_default_dtype()) if flat.is_floating_point() else flat).split(lengths)


def _field(kind: str, entries: Sequence[Any], name: str) -> Field:
    if kind == "an object":
        return list(entries)
    if kind == "a number":
        if len(types := set(map(type, entries))) == 1 and types <= _OF_PYTHON.keys():
            return torch.tensor(entries)
        tensors = list(map(torch.as_tensor, entries))
        _same_dtype(tensors, name)
        return torch.stack(tensors)
    # A list that is empty holds token numbers too, but says no dtype: an empty transcript, for example.
    arrays = [
        torch.tensor(entry, dtype=None if entry else torch.int64) if isinstance(entry, list) else entry
        for entry in entries
    ]
    dtype = _same_dtype(arrays, name)
    with suppress(TypeError, RuntimeError):  # of tensors on a GPU, of bfloat16, or with gradients
        arrays = [array.numpy() if isinstance(array, Tensor) else array for array in arrays]
    shapes = [array.shape for array in arrays]
    if max(map(len, shapes)) > 1:
        _same("shape of a frame", [tuple(shape[1:]) for shape in shapes], name, remedy=_TIME_FIRST)
    return Sequences(name, arrays, [shape[0] for shape in shapes], dtype)


def _same_dtype(arrays: Sequence[Any], name: str) -> torch.dtype:
    dtypes = [array.dtype for array in arrays]
    if dtypes.count(dtypes[0]) == len(dtypes):
        del dtypes[1:]
    return _same("dtype", [_as_torch(dtype, name, sample) for sample, dtype in enumerate(dtypes)], name)


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

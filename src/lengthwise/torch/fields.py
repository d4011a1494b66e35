"""The fields of samples: taken apart, batched one by one, and put together again.

A sample is what a data set's `__getitem__` gives: a field, or a tuple, NamedTuple, list or dict of them, in any depth.

    a sequence   a tensor or NumPy array [T, ...], or a list of numbers: tokens, often
    a number     of Python or NumPy, or a tensor or array []
    an object    anything else: text, None
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lengthwise import checks

_NUMBERS = (int, float, complex, np.number, np.bool_)

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
        entries: B tensors or arrays [T, *frame].
        dtype: Of every entry.
        frame: Shape of one frame.
    """

    name: str
    entries: list[Tensor | NDArray[Any]]
    dtype: torch.dtype
    frame: tuple[int, ...]

    @property
    def lengths(self) -> list[int]:
        """T of each entry."""
        return [len(entry) for entry in self.entries]

    @property
    def device(self) -> torch.device:
        first = self.entries[0]
        return first.device if isinstance(first, Tensor) else torch.device("cpu")

    def allocate(self, *axes: int) -> Tensor:
        """Memory [*axes, *frame] that nothing is written to yet."""
        return torch.empty(*axes, *self.frame, dtype=self.dtype, device=self.device)

    def copy_to(self, places: Iterable[Tensor]) -> None:
        """Copies each entry once, straight to its place [T, *frame]."""
        for target, entry in zip(places, self.entries, strict=True):
            if isinstance(entry, Tensor):
                target.copy_(entry)
            else:
                # PyTorch makes no tensor of an array that is read-only, reversed or of another byte order.
                target.numpy()[...] = entry


Field: TypeAlias = Sequences | Tensor | list[Any]
"""One field of B samples: sequences, numbers stacked to a tensor [B], or a list of B objects."""


def take_apart(samples: Sequence[Any]) -> list[Field]:
    """The fields of a batch of samples, in the order of the sample.

    Raises:
        TypeError: `samples` is one sample, or anything else that is no list.
        ValueError: No samples; or samples whose fields differ, in name, kind, dtype or shape of a frame.

    >>> fields = take_apart([{"text": "ab", "frames": [5, 5]}, {"text": "c", "frames": [5]}])
    >>> fields[0], fields[1].name, fields[1].lengths
    (['ab', 'c'], 'frames', [2, 1])
    """
    checks.check_samples(samples)
    return list(_fields(samples, ""))


def put_together(sample: Any, fields: Iterable[Field], batched: Iterable[Any]) -> Any:
    """The batch in the structure of `sample`; the k-th sequence field is replaced by the k-th of `batched`.

    >>> sample = {"text": "ab", "frames": [5, 5]}
    >>> put_together(sample, take_apart([sample]), ["padded"])
    {'text': ['ab'], 'frames': 'padded'}
    """
    rest = iter(batched)
    return _whole(sample, (next(rest) if isinstance(field, Sequences) else field for field in fields))


def name_fields(sample: Any, name: str = "") -> list[str]:
    """The name of each field of a sample, in the order of `take_apart`.

    >>> name_fields({"text": "ab", "pair": (1.5, [5, 5])})
    ['text', 'pair.0', 'pair.1']
    """
    if _kind(sample) != "a structure":
        return [name]
    parts = _parts(sample).items()
    return [each for key, part in parts for each in name_fields(part, _join(name, key))]


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


def _fields(samples: Sequence[Any], name: str) -> Iterator[Field]:
    # Of all samples, not of the first: a tensor in one and None in another are refused here by name.
    kind = _same("kind", [_kind(sample) for sample in samples], name)
    if kind != "a structure":
        yield _field(kind, samples, name)
        return
    # Depth first, in the order of the first sample: {"a": (x, y), "b": z} gives the fields a.0, a.1 and b.
    parts = [_parts(sample) for sample in samples]
    _same("set of fields", [sorted(part, key=str) for part in parts], name)
    for key in parts[0]:
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
    if isinstance(entry, Tensor | np.ndarray):
        return "a sequence" if entry.ndim else "a number"
    if isinstance(entry, _NUMBERS):
        return "a number"
    # Lists of numbers alone; an empty one counts as one of them, an empty transcript say.
    if isinstance(entry, list) and all(issubclass(kind, _NUMBERS) for kind in set(map(type, entry))):
        return "a sequence"
    return "a structure" if isinstance(entry, Mapping | tuple | list) else "an object"


def _parts(sample: Any) -> dict[Any, Any]:
    if isinstance(sample, Mapping):
        return dict(sample)
    # A NamedTuple by its names; a tuple or list by its places: (x, y) is {0: x, 1: y}.
    return sample._asdict() if hasattr(sample, "_fields") else dict(enumerate(sample))


def _field(kind: str, entries: Sequence[Any], name: str) -> Field:
    if kind == "an object":
        return list(entries)
    arrays = [_array(entry) for entry in entries]
    dtype = _same("dtype", [_dtype(array, place(name, sample=sample)) for sample, array in enumerate(arrays)], name)
    frame = _same("shape of a frame", [tuple(array.shape[1:]) for array in arrays], name, remedy=_TIME_FIRST)
    if kind == "a sequence":
        return Sequences(name, arrays, dtype, frame)
    return torch.stack([array if isinstance(array, Tensor) else torch.tensor(array) for array in arrays])


def _array(entry: Any) -> Tensor | NDArray[Any]:
    if isinstance(entry, Tensor | np.ndarray):
        return entry
    # A list that is empty holds token numbers too, but says no dtype: an empty transcript, for example.
    return torch.tensor(entry, dtype=torch.int64 if isinstance(entry, list) and not entry else None)


def _dtype(array: Tensor | NDArray[Any], at: str) -> torch.dtype:
    if isinstance(array, Tensor):
        return array.dtype
    try:
        # An empty array is enough to ask for the dtype; PyTorch refuses one in the other byte order.
        return torch.from_numpy(np.empty(0, array.dtype.newbyteorder("="))).dtype
    except TypeError as error:
        remedy = "Convert it in the data set's __getitem__."
        raise checks.value_error("samples", "of a dtype that PyTorch has", str(array.dtype), remedy, at=at) from error


def _same(what: str, values: list[Any], name: str, *, remedy: str = _ALIKE) -> Any:
    """Returns the value that all samples have, refusing the first that has another."""
    for sample, value in enumerate(values):
        if value != values[0]:
            rule = f"of one {what} in every sample, {values[0]} as in sample 0"
            raise checks.value_error("samples", rule, value, remedy, at=place(name, sample=sample))
    return values[0]

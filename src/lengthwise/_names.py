"""Names of what users bring, such as a cost function: the same in every process, so that a checkpoint knows its own.

    def cost(counts, padded_lengths)      train:cost
    partial(cost, 3, per_batch=0.5)       functools:partial   functools.partial(train:cost, 3, per_batch=0.5)
    Attention(heads=8), a dataclass       train:Attention     Attention(heads=8)
    Model().cost                          train:Model.cost    train:Model
    an object of another class            train:Model

The third column is what the name leaves open. Addresses (`<function cost at 0x7f...>`) never stand in it.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")


def name_of(value: Any) -> str:
    """Module and name of a function or a class; of any other object, those of its class."""
    if isinstance(value, np.ufunc):  # those of NumPy below 2 have neither
        return f"{np.__name__}:{value.__name__}"
    named = value if isinstance(getattr(value, "__qualname__", None), str) else type(value)
    module = getattr(named, "__module__", None) or type(value).__module__
    # A spawned process runs the training script anew, under a name of its own.
    return f"{'__main__' if module == '__mp_main__' else module}:{named.__qualname__}"


def parts_of(thing: Any) -> str:
    """What the name of a partial, a method or a dataclass leaves open; "" for all else."""
    if isinstance(thing, partial):
        arguments = [_text(value) for value in thing.args] + [
            f"{key}={_text(thing.keywords[key])}" for key in thing.keywords
        ]
        return f"functools.partial({', '.join([_text(thing.func), *arguments])})"
    if inspect.ismethod(thing):
        return _text(thing.__self__)
    if is_dataclass(thing) and not isinstance(thing, type):
        shown = [f"{field.name}={_text(getattr(thing, field.name))}" for field in fields(thing) if field.repr]
        return f"{type(thing).__qualname__}({', '.join(shown)})"
    return ""


def _text(value: Any) -> str:
    """A value within a name, in the same words in every process."""
    if isinstance(value, np.ndarray):
        return _array_text(value)
    if isinstance(value, np.generic):  # np.float64(3.0) or 3.0, by the version of NumPy
        return _text(value.item())
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_text(key)}: {_text(item)}' for key, item in value.items())}}}"
    if isinstance(value, set | frozenset):  # in another order in every process
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    if isinstance(value, list | tuple):
        listed = ", ".join(map(_text, value))
        return f"[{listed}]" if isinstance(value, list) else f"({listed}{',' * (len(value) == 1)})"
    if inspect.ismethod(value):
        return f"{_text(value.__self__)}.{value.__name__}"
    if isinstance(getattr(value, "__qualname__", None), str):
        return name_of(value)
    return parts_of(value) or _own_text(value)


def _array_text(array: NDArray[Any]) -> str:
    # The bytes of Python objects are addresses: their values are named one by one.
    if array.dtype.hasobject:
        return _text(array.tolist())
    content = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return f"array({array.dtype.name}, {array.shape}, {hashlib.blake2b(content, digest_size=8).hexdigest()})"


def _own_text(value: Any) -> str:
    text = repr(value)
    # repr(object()) is "<object object at 0x7f...>", another text in every process.
    return name_of(value) if _ADDRESS.search(text) else text

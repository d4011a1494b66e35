"""Names of a user's objects, such as a cost function, that are the same in every process and checkpoint.

    def cost(counts, padded_lengths)      train:cost
    partial(cost, 3, per_batch=0.5)       functools:partial   functools.partial(train:cost, 3, per_batch=0.5)
    Attention(heads=8), a dataclass       train:Attention     Attention(heads=8)
    Model().cost                          train:Model.cost    train:Model
    an object of another class            train:Model

The second column is from `name_of`, the third from `parts_of`. They have no addresses (`<function cost at 0x7f...>`).
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
    """Returns module and name of a function or a class; for any other object, those of its class."""
    if isinstance(value, np.ufunc):  # before NumPy 2, they have no name
        return f"{np.__name__}:{value.__name__}"
    owner = value if isinstance(getattr(value, "__qualname__", None), str) else type(value)
    module = getattr(owner, "__module__", None) or type(value).__module__
    # A spawned process runs the training script again, under the name `__mp_main__`.
    return f"{'__main__' if module == '__mp_main__' else module}:{owner.__qualname__}"


def parts_of(owner: Any) -> str:
    """Returns the arguments of a partial, the object of a method, or the fields of a dataclass; else ""."""
    if isinstance(owner, partial):
        arguments = [_text(value) for value in owner.args] + [
            f"{key}={_text(owner.keywords[key])}" for key in owner.keywords
        ]
        return f"functools.partial({', '.join([_text(owner.func), *arguments])})"
    if inspect.ismethod(owner):
        return _text(owner.__self__)
    if is_dataclass(owner) and not isinstance(owner, type):
        shown = [f"{field.name}={_text(getattr(owner, field.name))}" for field in fields(owner) if field.repr]
        return f"{type(owner).__qualname__}({', '.join(shown)})"
    return ""


def _text(value: Any) -> str:
    """Returns the text of a value, the same in every process."""
    if isinstance(value, np.ndarray):
        return _array_text(value)
    if isinstance(value, np.generic):  # its text depends on the version of NumPy
        return _text(value.item())
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_text(key)}: {_text(item)}' for key, item in value.items())}}}"
    if isinstance(value, set | frozenset):  # the order differs between processes
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    if isinstance(value, list | tuple):
        items = ", ".join(map(_text, value))
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})"
    if inspect.ismethod(value):
        return f"{_text(value.__self__)}.{value.__name__}"
    if isinstance(getattr(value, "__qualname__", None), str):
        return name_of(value)
    return parts_of(value) or _own_text(value)


def _array_text(array: NDArray[Any]) -> str:
    # The bytes of Python objects are addresses: an array of objects is written as a list.
    if array.dtype.hasobject:
        return _text(array.tolist())
    content = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return f"array({array.dtype.name}, {array.shape}, {hashlib.blake2b(content, digest_size=8).hexdigest()})"


def _own_text(value: Any) -> str:
    text = repr(value)
    # repr(object()) is "<object object at 0x7f...>", which differs between processes.
    return name_of(value) if _ADDRESS.search(text) else text

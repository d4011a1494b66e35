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
from types import CellType, CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")


def name_of(thing: Any) -> str:
    """Module and name of a function or a class; of any other object, those of its class."""
    if isinstance(thing, np.ufunc):  # those of NumPy below 2 have neither
        return f"{np.__name__}:{thing.__name__}"
    named = thing if isinstance(getattr(thing, "__qualname__", None), str) else type(thing)
    module = getattr(named, "__module__", None) or type(thing).__module__
    # A spawned process runs the training script anew, under a name of its own.
    return f"{'__main__' if module == '__mp_main__' else module}:{named.__qualname__}"


def parts_of(thing: Any) -> str:
    """What the name of a partial, a method or a dataclass leaves open; "" for all else."""
    if isinstance(thing, partial):
        given = [_text(value) for value in thing.args] + [
            f"{key}={_text(thing.keywords[key])}" for key in thing.keywords
        ]
        return f"functools.partial({', '.join([_text(thing.func), *given])})"
    if inspect.ismethod(thing):
        return _text(thing.__self__)
    if is_dataclass(thing) and not isinstance(thing, type):
        shown = [f"{field.name}={_text(getattr(thing, field.name))}" for field in fields(thing) if field.repr]
        return f"{type(thing).__qualname__}({', '.join(shown)})"
    return ""


def name_with_code(function: Any) -> str:
    """Names a function, by what it computes too: an edited one must not go on where another stopped."""
    texts = _texts_of(function, set())
    written = hashlib.blake2b(" ".join(texts).encode(), digest_size=8).hexdigest() if texts else ""
    return " ".join(filter(None, (name_of(function), parts_of(function), written)))


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


def _texts_of(function: Any, seen: set[int]) -> list[str]:
    """Its code, and what it holds: values by default, values of the function around it, and other functions.

    Of `def length(batch, hop=160)` it holds 160. Of values, numbers and texts alone are told: others may be large.
    """
    if isinstance(function, partial):
        return _texts_of(function.func, seen)  # what is given besides stands in its name
    if not hasattr(function, "__code__"):
        function = type(function).__call__  # an object that can be called
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None or id(function) in seen:
        return []
    seen.add(id(function))
    held = [*(getattr(function, "__defaults__", None) or ())]
    held += (getattr(function, "__kwdefaults__", None) or {}).values()
    held += [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if cell != CellType()]
    texts = [repr(value) for value in held if isinstance(value, int | float | str | bytes)]
    return [_code_text(code), *texts, *(text for value in held if callable(value) for text in _texts_of(value, seen))]


def _code_text(code: CodeType) -> str:
    # Without lines and paths: a comment above the function changes nothing that it computes.
    constants = [_constant_text(each) for each in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def _constant_text(value: Any) -> str:
    if isinstance(value, CodeType):
        return _code_text(value)
    # Of `x in {"a", "b"}`: a set of texts has another order in every process.
    return str(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)

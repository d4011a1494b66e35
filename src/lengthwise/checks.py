"""The error sentences, and the checks that raise them.

An error about one value reads: "`name` must be <rule>, but is <value>[ at <place>]. <What to do>." An error about a
state, or about arguments that exclude each other, reads: "<What is so>. <What to do>." Your own order, cut or recipe
may use these functions too.
"""

from __future__ import annotations

import importlib
import inspect
import math
import numbers
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

_Error = TypeVar("_Error", bound=Exception)

# Packages that may call us between the user's line and a warning: functools by cached properties, importlib when names
# are imported, and PyTorch's loaders when they read a sampler.
_PASSED_OVER = ("lengthwise", "functools", "importlib", "torch")


def sentence(name: str, rule: str, value: object, remedy: str, *, at: str = "") -> str:
    """Returns the sentence of an error about one value.

    >>> sentence("budget", "at least 1", 0, "Give the padded frames that fit in memory.")
    '`budget` must be at least 1, but is 0. Give the padded frames that fit in memory.'
    >>> sentence("lengths", "positive", -3, "Drop it.", at="sequence 7")
    '`lengths` must be positive, but is -3 at sequence 7. Drop it.'
    """
    place = f" at {at}" if at else ""
    return make_visible(f"`{name}` must be {rule}, but is {show_value(value)}{place}. {remedy}")


def source_sentence(rule: str, path: str | os.PathLike[str], remedy: str) -> str:
    """Returns the sentence about a file or a folder, with the whole path.

    >>> source_sentence("a .npy file", "a.npy", "Write it again.")
    "`source` must be a .npy file, but is 'a.npy'. Write it again."
    """
    return make_visible(f"`source` must be {rule}, but is '{os.fspath(path)}'. {remedy}")


def refuse_masked(name: str, values: object) -> None:
    """Refuses a masked array: its hidden values would be read as data."""
    # numpy.ma is slow to import. As long as nobody has imported it, no array is masked.
    masked = sys.modules.get("numpy.ma")
    if masked is not None and masked.is_masked(values):
        remedy = "Drop the masked sequences first, as by `values.compressed()`."
        raise value_error(name, "an array without masked values", "masked", remedy)


def brief(error: BaseException, most: int = 160) -> str:
    """Returns the text of an error in one line of at most `most` characters, without a final full stop."""
    return " ".join(str(error).split())[:most].rstrip(".")


def source_error(rule: str, path: str | os.PathLike[str], remedy: str) -> ValueError:
    """Returns the error about a file or a folder, to be raised; see `source_sentence`."""
    return ValueError(source_sentence(rule, path, remedy))


def load_package(name: str, purpose: str, remedy: str = "") -> Any:
    """Imports a package that is not always installed; by default the remedy names it.

    Raises:
        ModuleNotFoundError: The package, or a C library that it needs, is not installed.
    """
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:
        remedy = remedy or f"Install it: pip install {name.partition('.')[0]}."
        raise ModuleNotFoundError(sentence(name, f"installed to {purpose}", "missing", remedy)) from error


def make_visible(text: str, *, lines: bool = False) -> str:
    r"""Returns a text with its invisible characters escaped: the name of a file may hold codes that clear a terminal.

    Args:
        text: The text to show.
        lines: If True, keeps line breaks.

    >>> make_visible("\x1b[31mred.csv")
    '\\x1b[31mred.csv'
    """
    if text.isprintable():
        return text
    shown = (letter.isprintable() or (lines and letter == "\n") for letter in text)
    return "".join(letter if seen else repr(letter)[1:-1] for letter, seen in zip(text, shown, strict=True))


def value_error(name: str, rule: str, value: object, remedy: str, *, at: str = "") -> ValueError:
    """Returns the error for a value that breaks its rule, to be raised; see `sentence`."""
    return ValueError(sentence(name, rule, value, remedy, at=at))


def state_error(state: str, remedy: str, kind: type[_Error] = ValueError) -> _Error:
    """Returns the error for a state, or for arguments that exclude each other, to be raised.

    >>> str(state_error("Two loops over this loader are open", "End one of them."))
    'Two loops over this loader are open. End one of them.'
    """
    return kind(make_visible(f"{state}. {remedy}"))


def check_one(owner: str, arguments: Mapping[str, object], *, remedy: str = "Choose one of them.") -> str:
    """Returns the name of the one argument of `owner` that is not None.

    >>> check_one("Bucketed", {"size": 8, "edges": None})
    'size'
    """
    names = [name for name, value in arguments.items() if value is not None]
    if len(names) != 1:
        given = " and ".join(f"`{name}`" for name in names) or "none"
        choices = ", ".join(f"`{name}`" for name in arguments)
        raise state_error(f"{owner} takes one of {choices}, but has {given}", remedy)
    return names[0]


def type_error(name: str, rule: str, value: object, remedy: str) -> TypeError:
    """Returns the error for a value of the wrong type, to be raised; see `sentence`."""
    return TypeError(sentence(name, rule, value, remedy))


def check_whole(name: str, value: object, *, minimum: int, remedy: str, maximum: int = 2**63 - 1) -> int:
    """Returns `value` as an int; refuses fractions, booleans, and numbers out of range."""
    # True is 1 in Python, and batch_size=True is a mistake.
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise type_error(name, "a whole number", value, remedy)
    number = int(value)
    if not minimum <= number <= maximum:
        rule = f"at least {minimum}" if number < minimum else f"at most {maximum}"
        raise value_error(name, rule, number, remedy)
    return number


def check_number(
    name: str, value: object, *, remedy: str, minimum: float = 0.0, maximum: float = math.inf, above: bool = False
) -> float:
    """Returns `value` as a finite float within [minimum, maximum], or (minimum, maximum] if `above`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise type_error(name, "a number", value, remedy)
    number = _as_float(value)
    low = number > minimum if above else number >= minimum
    if not (low and number <= maximum and math.isfinite(number)):
        lower = f"above {minimum:g}" if above else f"at least {minimum:g}"
        rule = f"finite and {lower}" if maximum == math.inf else f"{lower} and at most {maximum:g}"
        raise value_error(name, rule, value, remedy)
    return number


def _as_float(value: numbers.Real) -> float:
    """Returns the nearest float; infinity for a whole number beyond all floats, such as 10**400."""
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Returns `value` if it is one of the words in `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise value_error(name, "one of " + ", ".join(choices), value, "Choose one of these words.")
    return value


def check_text(name: str, value: object, *, remedy: str) -> str:
    """Returns `value` if it is a text."""
    if not isinstance(value, str):
        raise type_error(name, "a text", value, remedy)
    return value


def check_samples(samples: Any) -> int:
    """Returns the number of samples; refuses a single sample, as from a loader without batches."""
    try:
        is_one = isinstance(samples, str | Mapping) or hasattr(samples, "shape")
        count = -1 if is_one else len(samples)
    except TypeError:  # None, a number, a tensor without an axis
        count = -1
    if count < 0:
        remedy = (
            "Give the loader batch_sampler=sampler, so that it makes lists. A wrapper that makes loaders anew, as "
            "prepare_data_loader of Ray, leaves it out. For one sample alone, give [sample]."
        )
        raise type_error("samples", "a list of samples", samples, remedy)
    if not count:
        raise value_error("samples", "at least one", samples, "Leave empty batches out.")
    return count


def keep(choice: object, **checked: object) -> None:
    """Stores checked values in a frozen dataclass: Python's numbers in place of NumPy's, for JSON."""
    for name, value in checked.items():
        # A frozen dataclass refuses `choice.name = value`, even in `__post_init__`.
        object.__setattr__(choice, name, value)


def keep_whole(
    choice: object, name: str, *, remedy: str, minimum: int = 1, maximum: int = 2**63 - 1, optional: bool = False
) -> None:
    """Checks the field `name` of a frozen dataclass by `check_whole`, and stores it; None is allowed if `optional`."""
    value = getattr(choice, name)
    if value is not None or not optional:
        keep(choice, **{name: check_whole(name, value, minimum=minimum, maximum=maximum, remedy=remedy)})


def check_flag(name: str, value: object) -> bool:
    """Returns `value` if it is True or False."""
    if not isinstance(value, bool):
        raise type_error(name, "True or False", value, "Choose one of the two.")
    return value


def show_value(value: object) -> str:
    """Returns a value as text for a sentence; a long one is cut in the middle, so that a path keeps its file."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of more than 4,300 digits
        text = "a number of thousands of digits"
    except RecursionError:  # lists nested too deep
        text = "a list of hundreds of levels"
    text = " ".join(line.strip() for line in text.splitlines())  # arrays and tensors have several lines
    return text if len(text) <= 80 else f"{text[:47]}...{text[-30:]}"


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the user's line that led here, not at a line of this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED_OVER:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)

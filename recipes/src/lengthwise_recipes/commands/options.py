"""The parts that several commands share: missing packages, folders, and lists of numbers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from lengthwise.checks import sentence, value_error

Number = TypeVar("Number", int, float)


@contextmanager
def explain_missing(user: str) -> Iterator[None]:
    """Says how to install a package whose import fails in this context; `user` needs it, such as "a study"."""
    try:
        yield
    except ModuleNotFoundError as error:
        remedy = "In a clone: pip install ./recipes."
        raise ModuleNotFoundError(sentence(str(error.name), f"installed for {user}", None, remedy)) from error


def check_folder(name: str, path: str) -> Path:
    """Returns the folder of an option; it need not exist yet."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise value_error(name, "a folder", path, "Name another.")
    return folder


def numbers(kind: Callable[[str], Number], example: str) -> Callable[[str], tuple[Number, ...]]:
    """Returns a reader of numbers with commas between; `example` names some, such as "whole numbers such as 1,2"."""

    def read(text: str) -> tuple[Number, ...]:
        try:
            return tuple(map(kind, text.split(",")))
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"must be {example}, but is {text!r}") from error

    return read


def add_machine(group: Any) -> None:
    """Adds the threads and the device of a study."""
    group.add_argument("--threads", type=int, default=1, help="threads of a CPU operation (%(default)s)")
    group.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="(%(default)s)")


wholes = numbers(int, "whole numbers such as 1,2")

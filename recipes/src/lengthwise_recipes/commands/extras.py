"""Packages that only some commands need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lengthwise.checks import sentence


@contextmanager
def explain_missing(what: str) -> Iterator[None]:
    """Says how to install what is imported here, where it is missing.

    Args:
        what: Needs it, such as "a study".

    Raises:
        ModuleNotFoundError: In one sentence, with the command that installs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        remedy = "Install it: pip install lengthwise-recipes."
        raise ModuleNotFoundError(sentence(str(error.name), f"installed for {what}", None, remedy)) from error

"""Packages that only some commands need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lengthwise.checks import sentence


@contextmanager
def explain_missing(user: str) -> Iterator[None]:
    """Explains how to install a package whose import fails in this context.

    Args:
        user: The part that needs the package, such as "a study".

    Raises:
        ModuleNotFoundError: In one sentence, with the command that installs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        remedy = "Install it: pip install lengthwise-recipes."
        raise ModuleNotFoundError(sentence(str(error.name), f"installed for {user}", None, remedy)) from error

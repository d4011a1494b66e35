"""The error sentence about a whole file or folder, whose path is never cut short."""

from __future__ import annotations

import os

from lengthwise.checks import make_visible


def source_sentence(rule: str, path: str | os.PathLike[str], remedy: str) -> str:
    """Writes the sentence of `lengthwise.checks` for a path, which that one would cut after 80 characters.

    >>> source_sentence("a .npy file", "a.npy", "Write it anew.")
    "`source` must be a .npy file, but is 'a.npy'. Write it anew."
    """
    return make_visible(f"`source` must be {rule}, but is '{os.fspath(path)}'. {remedy}")


def brief(error: BaseException, most: int = 160) -> str:
    """What an error says, in one line of at most so many characters, without a full stop at its end."""
    return " ".join(str(error).split())[:most].rstrip(".")


def source_error(rule: str, path: str | os.PathLike[str], remedy: str) -> ValueError:
    return ValueError(source_sentence(rule, path, remedy))

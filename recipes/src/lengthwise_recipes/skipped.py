"""Collects the data that a reader leaves out, one sentence each; or raises the first as an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

NO_OPTION = "No option keeps these data: repair them as the sentences say."


class Skipped:
    """A list of complaints about bad data; with `strict` it raises the first.

    A run with bad data reports it at the start and continues without it.
    """

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._sentences: list[str] = []

    def add(self, error: ValueError) -> None:
        if self._strict:
            raise error
        self._sentences.append(str(error))

    def extend(self, errors: Iterable[ValueError]) -> None:
        for error in errors:
            self.add(error)

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(self._sentences)


def tell(data: Mapping[str, Any]) -> list[str]:
    """Returns sentences on the data that a task left out: their number, the first complaint, and advice.

    The advice is that of `data`, or `NO_OPTION` if there is none.

    >>> tell({"skipped": ["`text` must be there, but is 'missing' at a.wav. Write it."]})[0]
    "1 left out, the first: `text` must be there, but is 'missing' at a.wav. Write it."
    """
    skipped = data["skipped"]
    if not skipped:
        return []
    return [f"{len(skipped):,} left out, the first: {skipped[0]}", *(data.get("advice") or [NO_OPTION])]

"""What a reader leaves out: one sentence each, or the first of them as an error; and what would keep it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

NO_OPTION = "No option keeps what was left out: mend the data as these sentences say."


class Skipped:
    """Keeps the complaints about bad data, or raises the first of them where `strict`.

    A run that starts with bad data then says so in its first second and goes on without it.
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
    """What a user reads of the data that were left out, from a task's description; nothing where all were kept.

    The advice of the description is taken where it has one, `NO_OPTION` where it has none.

    >>> tell({"skipped": ["`text` must be there, but is 'missing' at a.wav. Write it."]})[0]
    "1 left out, the first: `text` must be there, but is 'missing' at a.wav. Write it."
    """
    skipped = data["skipped"]
    if not skipped:
        return []
    return [f"{len(skipped):,} left out, the first: {skipped[0]}", *(data.get("advice") or [NO_OPTION])]

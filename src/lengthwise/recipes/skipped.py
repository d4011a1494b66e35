"""What a reader leaves out: one sentence each, or the first of them as an error."""

from __future__ import annotations

from collections.abc import Iterable


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

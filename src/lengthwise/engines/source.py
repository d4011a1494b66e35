"""What an engine offers: a data set in pieces, and the lengths of each of them in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from lengthwise.engines.parts import Piece
from lengthwise.engines.rows import Block, Rule


class Source(Protocol):
    """A data set in pieces.

    Attributes:
        pieces: In the order of its rows.
        facts: What it is beside its pieces, as JSON.
        resumes: Whether a piece can be read without those before it, in another process too.
    """

    pieces: list[Piece]
    facts: dict[str, Any]
    resumes: bool

    def names(self, column: str | None) -> tuple[str, ...]:
        """The columns that are meant, which are there."""
        ...

    def measure(self, numbers: Sequence[int], rule: Rule) -> Iterator[Iterable[Block]]:
        """Yields the blocks of each of these pieces, in order."""
        ...

"""Advice: what `advise` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lengthwise.advice.row import AdviceRow


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Advice:
    """What to train with, why, and what else was tried. `print` shows the sentence.

    Attributes:
        candidates: All that was tried, by rising price.
        best: The one that is recommended, one of the candidates.
        more_mixed: One of the candidates that mixes far more, for at most 20 % more than the least price; None where
            there is none.
        sentence: Which it is, by which rule, and what it saves.
        code: The lines of Python that train with it, for code that has `lengths`, `dataset` and `epochs`.
        limit: The most mixing that any batch can have at the padding of the best: `lw.mixing_limit`; None where
            sequences have several lengths, a step has several batches, or there are no sequences.
        unit: What prices are in: "frames", computed for one useful frame; "seconds" an epoch; or "cost", the
            unit of another cost, for an epoch.
        sequences: How many there are.
        measured: How many were measured: all, or a random sample.
        world_size: Ranks of the run.
        micro_batches: Batches of a rank in a step.
    """

    candidates: tuple[AdviceRow, ...]
    best: AdviceRow
    more_mixed: AdviceRow | None
    sentence: str
    code: str
    limit: float | None
    unit: str
    sequences: int
    measured: int
    world_size: int
    micro_batches: int

    def __repr__(self) -> str:
        # Without the candidates: a notebook would show all measures of dozens of them.
        return (
            f"Advice({self.best.label!r} of {len(self.candidates)} candidates, "
            f"measured on {self.measured} of {self.sequences} sequences)"
        )

    def __str__(self) -> str:
        return self.sentence

    @property
    def front(self) -> tuple[AdviceRow, ...]:
        """The candidates that no other beats: none costs less and mixes as much. By rising price."""
        return tuple(row for row in self.candidates if row.on_front)

    @property
    def shipped(self) -> tuple[AdviceRow, ...]:
        """What trainers ship, by rising price."""
        return tuple(row for row in self.candidates if row.ships_in)

    def as_dict(self) -> dict[str, Any]:
        """The advice by name, JSON-ready; the best and the rows of the front are marked."""
        names = ("sentence", "code", "limit", "unit", "sequences", "measured", "world_size", "micro_batches")
        rows = [{**row.as_dict(), "best": row is self.best} for row in self.candidates]
        labels = {"best": self.best.label, "more_mixed": self.more_mixed and self.more_mixed.label}
        return {**{name: getattr(self, name) for name in names}, **labels, "candidates": rows}

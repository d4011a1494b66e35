"""The answer first: one sentence with its numbers, and the few numbers that matter as pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lengthwise.report import words

Row = Mapping[str, Any]


class Tile(NamedTuple):
    """One number of the first strategy and of the last, and what it is."""

    name: str
    before: str
    after: str
    meaning: str


def write_headline(rows: Mapping[str, Row], *, packed: bool, unit: str = "frames") -> str:
    """The sentence that the report begins with.

    >>> rows = {"random": {"padding_share": 0.655}, "max-entropy:0.1": {"padding_share": 0.099}}
    >>> write_headline(rows, packed=False)
    'Random batches compute 2.90 frames for each frame of data; max-entropy:0.1 computes 1.11.'
    """
    if not rows:
        return "The lengths, without a plan."
    first, last = next(iter(rows)), list(rows)[-1]
    one = unit.removesuffix("s")
    if packed:
        fills = [f"{100 * rows[label]['fill']:.2f} %" for label in (first, last)]
        told = f"Rows of {first} are {fills[0]} data"
        if first == last:
            return f"{told}."
        return f"{told}, as those of {last} are." if fills[0] == fills[1] else f"{told}; those of {last} {fills[1]}."
    told = words.capitalise(words.name_of(first)) if first == "random" else first
    computed = [words.computed(rows[label]["padding_share"]) for label in (first, last)]
    told += f" compute{words.number_of_verb(first)} {computed[0]} {unit}"
    told += f" for each {one} of data"
    if first == last:
        return f"{told}."
    return f"{told}, as {last} does." if computed[0] == computed[1] else f"{told}; {last} computes {computed[1]}."


def tiles(rows: Mapping[str, Row], *, slots: int, ranks: int, packed: bool, seconds: Mapping[str, float]) -> list[Tile]:
    """The numbers that matter, of the first strategy and of the last; of one alone, `before` is empty."""
    if not rows:
        return []
    first, last = next(iter(rows)), list(rows)[-1]

    def tile(name: str, write: Callable[[str], str], meaning: str) -> Tile:
        before, after = write(first), write(last)
        return Tile(name, "" if before == after else before, after, meaning)

    def share(field: str) -> Callable[[str], str]:
        return lambda label: words.percent(rows[label][field])

    def number(field: str) -> Callable[[str], str]:
        return lambda label: f"{rows[label][field]:.2f}"

    found = [tile("padding", share("padding_share"), "of all that is computed")]
    if packed:
        found.append(tile("pair mixing", number("pair_mixing"), "1: sequences of a row tell nothing of each other"))
    elif slots > 1:
        found.append(tile("step mixing", number("step_mixing"), "1: a step tells nothing of the lengths in it"))
    else:
        found.append(tile("mixing", number("mixing"), "1: a batch tells nothing of the lengths in it"))
    if ranks > 1:
        # Full rows have equally many frames, so the waiting depends on how the cost counts attention.
        counted = ", by the cost of the plan" if packed else ""
        found.append(tile("waiting", share("straggler_waste"), f"of the time of all ranks{counted}"))
    if len(seconds) > 1 and first in seconds and last in seconds:
        found.append(tile("seconds", lambda label: f"{seconds[label]:.3g}", "of an epoch, measured"))
    found.append(tile("steps", lambda label: f"{rows[label]['steps']:,}", "of an epoch"))
    return found

"""Parses a UNIPEN 1.0 file and its included files into sets of components, and segments.

A line that begins with a dot starts a keyword. Its arguments are all lines up to the next keyword. So numbers below
`.PEN_DOWN` are points, and those below `.COMMENT` are not. `.DT`, the time of a resting pen, does not end a component:
points may follow its number.

We wrote this parser ourselves, since we know no Python package that reads the format.

References:
    Guyon 1994, UNIPEN 1.0 format definition (unipen.def): sections A and B. Deviations: keywords and levels may be in
    small letters; included files may include others; their paths start from the folder of the including file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lengthwise import files
from lengthwise_recipes.handwriting.ink_files import bad_file

KEYWORD = re.compile(r"^\.([A-Za-z_]+)[ \t]*(.*)$")
SEGMENT = re.compile(r'^(\S+)(?:\s+([^\s"]+))?(?:\s+[^\s"]+)?\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)


class Statement(NamedTuple):
    """A keyword in capitals, the lines of its arguments, and its place in the file."""

    keyword: str
    lines: list[str]
    place: str


@dataclass(frozen=True, slots=True)
class Component:
    """The points between two keywords: the numbers of each line, and their names if `.COORD` gave any."""

    down: bool
    coordinates: tuple[str, ...]
    rows: list[list[str]]
    place: str


class Segment(NamedTuple):
    """A segment: the level in capitals, its delineation or "?", and its label or "".

    `set` is the index of its set in `Ink.sets`; `after` counts the components of that set before the segment.
    """

    level: str
    where: str
    label: str
    set: int
    after: int
    place: str


@dataclass(slots=True)
class Ink:
    """The content of a file and its included files.

    `sets` are lists of non-empty components; `.START_SET` begins a set. `levels` are the hierarchy, the outermost
    first. `pen` is the component that receives points while a file is read.
    """

    coordinates: tuple[str, ...] = ()
    levels: list[str] = field(default_factory=list)
    sets: list[list[Component]] = field(default_factory=lambda: [[]])
    segments: list[Segment] = field(default_factory=list)
    pen: Component | None = None


def read_unipen_file(path: Path) -> Ink:
    """Reads a file and its included files.

    Raises:
        ValueError: One of them is missing, or `.COORD` lacks X or Y.
    """
    ink = Ink()
    _read_into(ink, path, (path,))
    return ink


def _read_into(ink: Ink, path: Path, chain: tuple[Path, ...]) -> None:
    """Reads a file; `chain` has the files that include it, and itself."""
    for statement in _statements(path):
        keyword, lines, place = statement
        if keyword == "DT":
            _draw(ink, lines[1:])
            continue
        ink.pen = None
        if keyword in ("PEN_DOWN", "PEN_UP"):
            ink.pen = Component(keyword == "PEN_DOWN", ink.coordinates, [], place)
            _draw(ink, lines)
        elif keyword == "INCLUDE":
            _include(ink, " ".join(lines).strip(), chain)
        else:
            _note(ink, statement)


def _draw(ink: Ink, lines: list[str]) -> None:
    """Adds points to the pen's component. The component enters the current set with its first point."""
    rows = [line.split() for line in lines if line.strip()]
    if ink.pen is None or not rows:
        return
    if not ink.pen.rows:
        ink.sets[-1].append(ink.pen)
    ink.pen.rows.extend(rows)


def _note(ink: Ink, statement: Statement) -> None:
    """Records levels, coordinates, sets and segments; ignores all other keywords."""
    keyword, lines, place = statement
    value = "\n".join(lines).strip()
    if keyword == "HIERARCHY":
        ink.levels = value.upper().split()
    elif keyword == "COORD":
        ink.coordinates = tuple(value.upper().split())
        if not {"X", "Y"} <= set(ink.coordinates):
            raise bad_file(place, "with .COORD of X and Y", value)
    elif keyword == "START_SET" and ink.sets[-1]:
        ink.sets.append([])
    elif keyword == "SEGMENT":
        ink.segments.append(_segment(ink, value, place))


def _segment(ink: Ink, value: str, place: str) -> Segment:
    """Reads the arguments of `.SEGMENT`: level, delineation, quality and label. Only the level is required."""
    match = SEGMENT.match(value)
    if match is None and '"' in value:
        raise bad_file(place, 'with .SEGMENT of a level, a delineation, a quality and a "label"', value)
    level, where, label = match.groups() if match else (*f"{value} ? ?".split()[:2], "")
    text = " ".join(re.sub(r"\\(.)", _unescape, label, flags=re.DOTALL).split())
    return Segment(level.upper(), where or "?", text, len(ink.sets) - 1, len(ink.sets[-1]), place)


def _unescape(escape: re.Match[str]) -> str:
    return " " if escape[1] in "nt" else escape[1]


def _include(ink: Ink, name: str, chain: tuple[Path, ...]) -> None:
    """Reads an included file: the first one found in the folder of the including file, then in each folder above.

    In each folder, its subfolder `include` is tried first.
    """
    path = chain[-1]
    candidates = (folder / place / name for folder in path.parents for place in ("include", ""))
    included = next((file for file in candidates if file.is_file()), None)
    if included is None or included in chain:
        raise bad_file(path, "with .INCLUDE of files that exist and do not include this file", name)
    _read_into(ink, included, (*chain, included))


def _statements(path: Path) -> Iterator[Statement]:
    """Yields the keywords of a file in their order; skips lines before the first."""
    statement = None
    # `splitlines` would also break at the byte 0x85, which is an ellipsis in Windows-1252.
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if keyword := KEYWORD.match(line):
            if statement is not None:
                yield statement
            statement = Statement(keyword[1].upper(), [keyword[2]], f"line {number} of {path}")
        elif statement is not None:
            statement.lines.append(line)
    if statement is not None:
        yield statement


def _text(path: Path) -> str:
    try:
        files.check_regular(path)
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # most UNIPEN data are older than UTF-8; Latin-1 reads every byte
            return path.read_text(encoding="latin-1")
    except OSError as error:
        raise bad_file(path, "a UNIPEN file", error.strerror or str(error)) from error

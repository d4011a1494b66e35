"""What a UNIPEN 1.0 file says: its components, in sets, and its segments, those of the files that it includes as well.

A line that begins with a dot starts a keyword; what follows, up to the next, are its arguments, on as many lines as it
likes. So numbers below `.PEN_DOWN` are points, and those below `.COMMENT` are not. `.DT`, the time of a pen that rests,
ends no component: points may follow its one number.

By hand, since we know of no package for Python that reads the format.

References:
    Guyon 1994, UNIPEN 1.0 format definition (unipen.def): sections A and B. Deviations: keywords and levels may be in
    small letters; included files may include others; a file is sought from the folder of the one that includes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lengthwise import files
from lengthwise.checks import sentence

KEYWORD = re.compile(r"^\.([A-Za-z_]+)[ \t]*(.*)$")
SEGMENT = re.compile(r'^(\S+)(?:\s+([^\s"]+))?(?:\s+[^\s"]+)?\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)


class Statement(NamedTuple):
    """A keyword in capitals, its arguments line by line, and where it stands."""

    keyword: str
    lines: list[str]
    place: str


@dataclass(frozen=True, slots=True)
class Component:
    """What the pen drew between two keywords: the numbers of each line, and what `.COORD` called them, if anything."""

    down: bool
    coordinates: tuple[str, ...]
    rows: list[list[str]]
    place: str


class Segment(NamedTuple):
    """A segment: the level in capitals, its delineation or "?", and its label, "" where it has none.

    `set` is the number of its set, and `after` how many components of the set were read before it.
    """

    level: str
    where: str
    label: str
    set: int
    after: int
    place: str


@dataclass(slots=True)
class Ink:
    """What a file and those that it includes hold.

    `sets` are lists of components, none of them empty: `.START_SET` counts them from 0 again. `levels` are the
    hierarchy, the outermost first. `pen` is the component that points belong to while a file is read.
    """

    coordinates: tuple[str, ...] = ()
    levels: list[str] = field(default_factory=list)
    sets: list[list[Component]] = field(default_factory=lambda: [[]])
    segments: list[Segment] = field(default_factory=list)
    pen: Component | None = None


def read_unipen_file(path: Path) -> Ink:
    """Reads a file and those that it includes.

    Raises:
        ValueError: Where one of them is not there, or `.COORD` lacks X or Y; the sentence names it.
    """
    ink = Ink()
    _read_into(ink, path, (path,))
    return ink


def bad(place: str | Path, rule: str, value: str) -> ValueError:
    """The complaint about a file."""
    return ValueError(sentence("data", rule, value, "Mend the file or leave it out.", at=str(place)))


def _read_into(ink: Ink, path: Path, within: tuple[Path, ...]) -> None:
    """Reads a file; `within` are those that include it, and itself."""
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
            _include(ink, " ".join(lines).strip(), within)
        else:
            _note(ink, statement)


def _draw(ink: Ink, lines: list[str]) -> None:
    """Adds points to the component of the pen, which is counted from its first point on."""
    rows = [line.split() for line in lines if line.strip()]
    if ink.pen is None or not rows:
        return
    if not ink.pen.rows:
        ink.sets[-1].append(ink.pen)
    ink.pen.rows.extend(rows)


def _note(ink: Ink, statement: Statement) -> None:
    """Keeps what a keyword says of levels, coordinates, sets and segments; others say nothing of the ink."""
    keyword, lines, place = statement
    value = "\n".join(lines).strip()
    if keyword == "HIERARCHY":
        ink.levels = value.upper().split()
    elif keyword == "COORD":
        ink.coordinates = tuple(value.upper().split())
        if not {"X", "Y"} <= set(ink.coordinates):
            raise bad(place, "with .COORD of X and Y", value)
    elif keyword == "START_SET" and ink.sets[-1]:
        ink.sets.append([])
    elif keyword == "SEGMENT":
        ink.segments.append(_segment(ink, value, place))


def _segment(ink: Ink, value: str, place: str) -> Segment:
    """Reads the arguments of `.SEGMENT`: level, delineation, quality and label, of which only the level must stand."""
    found = SEGMENT.match(value)
    if found is None and '"' in value:
        raise bad(place, 'with .SEGMENT of a level, a delineation, a quality and a "label"', value)
    level, where, label = found.groups() if found else (*f"{value} ? ?".split()[:2], "")
    text = " ".join(re.sub(r"\\(.)", _unescape, label, flags=re.DOTALL).split())
    return Segment(level.upper(), where or "?", text, len(ink.sets) - 1, len(ink.sets[-1]), place)


def _unescape(escape: re.Match[str]) -> str:
    return " " if escape[1] in "nt" else escape[1]


def _include(ink: Ink, name: str, within: tuple[Path, ...]) -> None:
    """Reads an included file, sought from the folder of the file that includes it upwards, there or in include."""
    path = within[-1]
    sought = (folder / place / name for folder in path.parents for place in ("include", ""))
    found = next((file for file in sought if file.is_file()), None)
    if found is None or found in within:
        raise bad(path, "with .INCLUDE of other files that are there", name)
    _read_into(ink, found, (*within, found))


def _statements(path: Path) -> Iterator[Statement]:
    """The keywords of a file in their order; what stands before the first is passed over."""
    statement = None
    for number, line in enumerate(_text(path).split("\n"), start=1):  # splitlines would break at 0x85 too, an ellipsis
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
        except UnicodeDecodeError:  # most of the data are older than UTF-8; every byte is a character of Latin-1
            return path.read_text(encoding="latin-1")
    except OSError as error:
        raise bad(path, "a UNIPEN file", error.strerror or str(error)) from error

"""Reading UNIPEN 1.0: the pen-down strokes of a file, and its labelled segments as samples.

A line that begins with a dot is a keyword with its arguments; numbers below `.PEN_DOWN` are points. Of the levels of
segments (a page, a word, a character) the outermost that is labelled is read, one sample for each of its segments.

References:
    Guyon, Schomaker, Plamondon, Liberman and Janet 1994, UNIPEN project of on-line data exchange and recognizer
    benchmarks, ICPR; UNIPEN 1.0 format definition. Deviations: components are the pen-down strokes, numbered from 0,
    ink while the pen is up being passed over; coordinates are taken as they stand, whatever their origin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lengthwise._checks import sentence
from lengthwise.recipes.handwriting.ink_files import Segments, read_ink
from lengthwise.recipes.handwriting.pen import FARTHEST, Sample, Stroke, within_reach

SUFFIXES = (".dat", ".unp", ".unipen", ".upn")
KEYWORD = re.compile(r"^\.([A-Z_]+)[ \t]*(.*)$")
SEGMENT = re.compile(r'^(\S+)[ \t]+([\d:,-]+)[ \t]+(?:[^\s"]+[ \t]+)?"((?:[^"\\]|\\.)*)"')


@dataclass(slots=True)
class Ink:
    """What a file and those that it includes hold: rows of points, and (level, strokes, label) of each segment."""

    columns: tuple[int, int] = (0, 1)
    levels: list[str] = field(default_factory=list)
    strokes: list[list[list[str]]] = field(default_factory=list)
    segments: list[tuple[str, str, str]] = field(default_factory=list)


def read_unipen(
    path: str | Path, *, count: int | None = None, strict: bool = False
) -> tuple[list[Sample], list[str], list[str]]:
    """Reads a UNIPEN file, or those of a folder and below it, sorted by path.

    Args:
        path: A file, or a folder with files that end in one of `SUFFIXES`. Folders named include hold what others
            include, and are not read by themselves.
        count, strict: As `ink_files.read_ink` takes them, which says what is returned and raised.
    """
    return read_ink(unipen_files(path), parse_unipen, source=path, kind="UNIPEN", count=count, strict=strict)


def unipen_files(path: str | Path) -> list[Path]:
    """The UNIPEN files of a folder and below it by name, or the file itself."""
    place = Path(path)
    if not place.is_dir():
        return [place]
    found = (file for file in place.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
    return sorted(file for file in found if "include" not in file.relative_to(place).parts[:-1])


def parse_unipen(path: str | Path) -> Segments:
    """Reads the strokes, each float64 [K, 2], and the label of each segment of the outermost labelled level.

    Raises:
        ValueError: Where a file is not there, has no labelled segment, names strokes that are not there or points that
            are not of plain numbers; the sentence names it.
    """
    ink = Ink()
    _read_into(ink, Path(path), (Path(path),))
    if not ink.segments:
        raise _bad(path, "of segments with labels", "without")
    strokes = [_points(rows, ink.columns, path) for rows in ink.strokes]
    present = {level for level, _, _ in ink.segments}
    first = next((level for level in ink.levels if level in present), ink.segments[0][0])
    return [(_delineated(strokes, where, path), label) for level, where, label in ink.segments if level == first]


def _read_into(ink: Ink, path: Path, within: tuple[Path, ...]) -> None:
    """Reads a file; `within` are those that include it, and itself."""
    down = False
    for number, line in _lines(path):
        keyword = KEYWORD.match(line)
        if keyword is None:
            if down and line.strip():
                ink.strokes[-1].append(line.split())
            continue
        name, value = keyword[1], keyword[2].strip()
        down = name == "PEN_DOWN" or (down and name not in ("PEN_UP", "SEGMENT", "INCLUDE"))
        if name == "PEN_DOWN":
            ink.strokes.append([])
        elif name == "INCLUDE":
            _include(ink, value, within)
        else:
            _note(ink, name, value, f"line {number} of {path}")


def _note(ink: Ink, name: str, value: str, place: str) -> None:
    """Keeps what a keyword says of levels, columns and segments; others say nothing of the ink."""
    if name == "HIERARCHY":
        ink.levels = value.split()
    elif name == "COORD":
        names = value.upper().split()
        if not {"X", "Y"} <= set(names):
            raise _bad(place, "with .COORD of X and Y", value)
        ink.columns = names.index("X"), names.index("Y")
    elif name == "SEGMENT" and (segment := SEGMENT.match(value)):
        label = " ".join(re.sub(r"\\(.)", _unescaped, segment[3]).split())
        if label:
            ink.segments.append((segment[1], segment[2], label))


def _unescaped(escape: re.Match[str]) -> str:
    return " " if escape[1] in "nt" else escape[1]


def _include(ink: Ink, name: str, within: tuple[Path, ...]) -> None:
    """Reads an included file, sought from the folder of the file that includes it upwards, there or in include."""
    path = within[-1]
    sought = (folder / place / name for folder in path.parents for place in ("include", ""))
    found = next((file for file in sought if file.is_file()), None)
    if found is None or found in within:
        raise _bad(path, "with .INCLUDE of other files that are there", name)
    _read_into(ink, found, (*within, found))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # most of the data are older than UTF-8; every byte is a character of Latin-1
            text = path.read_text(encoding="latin-1")
    except OSError as error:
        raise _bad(path, "a UNIPEN file", error.strerror or str(error)) from error
    return enumerate(text.split("\n"), start=1)  # splitlines would break at more: 0x85, the dots of Windows, is one


def _points(rows: list[list[str]], columns: tuple[int, int], path: str | Path) -> Stroke:
    if not rows:
        return np.zeros((0, 2))
    try:
        points = np.array([[float(row[column]) for column in columns] for row in rows])
    except (ValueError, IndexError) as error:
        raise _bad(path, "of strokes of plain numbers", " ".join(rows[0])[:40]) from error
    if not within_reach(points).all():
        raise _bad(path, f"of finite points below {FARTHEST:g} in size", " ".join(rows[0])[:40])
    return points


def _delineated(strokes: list[Stroke], where: str, path: str | Path) -> list[Stroke]:
    """The strokes of a segment: 0-2 are strokes 0 to 2; 1:5-2:8 is from point 5 of stroke 1 to point 8 of stroke 2."""
    taken: list[Stroke] = []
    for part in where.split(","):
        span = re.fullmatch(r"(\d+)(?::(\d+))?(?:-(\d+)(?::(\d+))?)?", part)
        if span is None or int(span[3] or span[1]) >= len(strokes) or int(span[3] or span[1]) < int(span[1]):
            raise _bad(path, f"of segments within its strokes, 0 to {len(strokes) - 1}", where)
        first, last = int(span[1]), int(span[3] or span[1])
        pieces = strokes[first : last + 1]
        until = span[4] if span[3] else span[2]
        if until:  # first the end, so that places in a stroke that is first and last stay right
            pieces[-1] = pieces[-1][: int(until) + 1]
        pieces[0] = pieces[0][int(span[2] or 0) :]
        taken += [piece for piece in pieces if len(piece)]
    if not taken:
        raise _bad(path, "of segments with at least one point", where)
    return taken


def _bad(path: str | Path, rule: str, value: str) -> ValueError:
    return ValueError(sentence("data", rule, value, "Mend the file or leave it out.", at=str(path)))

"""Reads UNIPEN 1.0: the labelled segments of a file as samples.

Segments have levels (a page, a word, a character). The outermost labelled level is read, one sample per segment. A
segment names its ink by numbers of components: the pen down is one component, the pen up the next. Components without
points are not counted. In

    .PEN_DOWN      component 0
    1 2
    .PEN_UP        no component: no points
    .PEN_DOWN      component 1
    3 4
    .PEN_UP        component 2
    5 6
    .PEN_DOWN      component 3
    7 8
    .SEGMENT WORD 1-3 ? "a"

the word has the ink of 1 and 3; the pen was up in 2. Numbers run on through included files, and start from 0 after
`.START_SET`.

References:
    Guyon, Schomaker, Plamondon, Liberman and Janet 1994, UNIPEN project of on-line data exchange and recognizer
    benchmarks, ICPR. Guyon 1994, UNIPEN 1.0 format definition (unipen.def): `.SEGMENT` ("Components are numbered in
    order of apparition in the present data set, starting from zero", "empty pen streams are NOT counted"),
    `.START_SET`, and the delineation A:M-B:N,C of section C. Deviations: ink while the pen is up is skipped; the
    origin of coordinates is ignored.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import numpy as np

from lengthwise_recipes.handwriting.ink_files import Segments, bad_file, read_ink, read_points
from lengthwise_recipes.handwriting.pen import Sample, Stroke
from lengthwise_recipes.handwriting.unipen_file import Component, Ink, Segment, read_unipen_file

SUFFIXES = (".dat", ".unp", ".unipen", ".upn")
SPAN = re.compile(r"(\d+)(?::(\d+))?(?:-(\d+)(?::(\d+))?)?")
NO_INK = np.zeros((0, 2))


def read_unipen(
    path: str | Path, *, count: int | None = None, seed: int = 0, strict: bool = False
) -> tuple[list[Sample], list[str], list[str]]:
    """Reads a UNIPEN file, or all in and below a folder, by path; see `ink_files.read_ink` for results and errors.

    Args:
        path: A file, or a folder with files that end in one of `SUFFIXES`. Files in folders named include are only
            read where another file includes them.
        count, seed, strict: See `ink_files.read_ink`.
    """
    paths = unipen_files(path)
    return read_ink(paths, parse_unipen, source=path, kind="UNIPEN", count=count, seed=seed, strict=strict)


def unipen_files(path: str | Path) -> list[Path]:
    """Returns the UNIPEN files in and below a folder by name, or the file itself."""
    place = Path(path)
    if not place.is_dir():
        return [place]
    candidates = (file for file in place.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
    return sorted(file for file in candidates if "include" not in file.relative_to(place).parts[:-1])


def parse_unipen(path: str | Path) -> Segments:
    """Reads the strokes, each float64 [K, 2], and the label of each segment of the outermost labelled level.

    Raises:
        ValueError: A file is missing, has no labelled segment, names missing components, or has points that are not
            numbers.
    """
    ink = read_unipen_file(Path(path))
    present = {segment.level for segment in ink.segments if segment.label}
    if not present:
        raise bad_file(path, "of segments with labels", "without labels")
    level = next((level for level in ink.levels if level in present), None)
    level = level or next(segment.level for segment in ink.segments if segment.label)
    strokes = [[_points(component) for component in components] for components in ink.sets]
    return [
        (_ink(ink, number, strokes[segment.set]), segment.label)
        for number, segment in enumerate(ink.segments)
        if segment.label and segment.level == level
    ]


def _ink(ink: Ink, number: int, strokes: list[Stroke]) -> list[Stroke]:
    """Returns the strokes of a segment; `strokes` are the components of its set."""
    segment = ink.segments[number]
    pieces = _find_components(ink, number, strokes) if segment.where == "?" else _cut_pieces(segment, strokes)
    pieces = [piece for piece in pieces if len(piece)]
    if not pieces:
        raise bad_file(segment.place, "of segments with at least one point", segment.where)
    return pieces


def _cut_pieces(segment: Segment, strokes: list[Stroke]) -> list[Stroke]:
    """Returns the pieces that a delineation names.

    0-2 are components 0 to 2; 1:5-2:8 is from point 5 of component 1 to point 8 of component 2; 0,2 is 0 and 2.
    """
    named: list[Stroke] = []
    for part in segment.where.split(","):
        span = SPAN.fullmatch(part)
        if span is None or not int(span[1]) <= int(span[3] or span[1]) < len(strokes):
            limits = f"0 to {len(strokes) - 1}" if strokes else "of which it has none"
            raise bad_file(segment.place, f"of segments within its components, {limits}", segment.where)
        pieces = strokes[int(span[1]) : int(span[3] or span[1]) + 1]
        start, until = int(span[2] or 0), span[4] if span[3] else span[2]
        stop = int(until) + 1 if until else len(pieces[-1])
        if 0 < len(pieces[0]) <= start or 0 < len(pieces[-1]) < stop:
            raise bad_file(segment.place, "of segments within the points of its components", segment.where)
        pieces[-1] = pieces[-1][:stop]  # the end first, since the last component may also be the first
        pieces[0] = pieces[0][start:]
        named += pieces
    return named


def _find_components(ink: Ink, number: int, strokes: list[Stroke]) -> list[Stroke]:
    """Returns the components of a segment without a delineation.

    They reach from the segment to the next one of the same or an outer level. If its set has no other such segment,
    they are all components of the set.
    """
    segment = ink.segments[number]
    ranks = {level: rank for rank, level in enumerate(ink.levels)}

    def ends(neighbour: Segment) -> bool:
        outer = ranks.get(neighbour.level, len(ranks)) < ranks.get(segment.level, len(ranks))
        return neighbour.set == segment.set and (outer or neighbour.level == segment.level)

    following = next(filter(ends, islice(ink.segments, number + 1, None)), None)
    if following is not None:
        return strokes[segment.after : following.after]
    alone = not any(map(ends, islice(ink.segments, number)))
    return strokes if alone else strokes[segment.after :]


def _points(component: Component) -> Stroke:
    """Returns the points [K, 2] of a component, empty if the pen is up."""
    if not component.down:
        return NO_INK
    names = component.coordinates or ("X", "Y")
    columns = names.index("X"), names.index("Y")
    rule, shown = "of strokes of plain numbers", " ".join(component.rows[0])[:40]
    return read_points(_rows(component), columns, rule=rule, shown=shown, place=component.place)


def _rows(component: Component) -> list[list[str]]:
    """Returns the numbers of each point.

    If every line has the numbers of one point by `.COORD`, each line is a point. Otherwise all numbers are cut into
    points: below .COORD X Y, a line "1 2 3 4" is two points.
    """
    width = len(component.coordinates)
    if not width or all(width <= len(row) < 2 * width for row in component.rows):
        return component.rows
    numbers = [number for row in component.rows for number in row]
    return [numbers[place : place + width] for place in range(0, len(numbers), width)]

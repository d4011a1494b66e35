"""Columns of a source: their choice by name, their units, and the conversion of their numbers to lengths.

A reader yields parts, which are consecutive rows. A part is a list of columns of cells; `arrow.count_cells` turns cells
into numbers, and `to_lengths` turns numbers into lengths.

The name of a column may tell its unit: duration_ms is in milliseconds. A frame shift, from one frame to the next, has
the unit of its column. A shift below 1 is in seconds, and is refused for a column in milliseconds.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import keep, value_error
from lengthwise.lengths.rules import Place, check_dims, freeze, has_fractions, whole_lengths

Kind = Literal["numbers", "lists", "texts", "untyped", "unnamed"]
Unit = Literal["seconds", "milliseconds", "samples", "counts", "unknown"]
Wanted = str | tuple[str, ...] | None  # columns, as a user writes them, or as names; None for the only one

_LIKELY = re.compile("frame|length|dur|token|sample|seq|text|sentence|transcript")  # in the name of a column of lengths
_MOST_NAMES, _LONGEST_NAME = 20, 40  # the most names in an error, and their characters

_WORDS: dict[Unit, str] = {
    "seconds": "seconds secs sec s",
    "milliseconds": "milliseconds millis msecs msec ms",
    "samples": "samples",
    "counts": "frames tokens words characters chars",
}
_UNITS: dict[str, Unit] = {word: unit for unit, words in _WORDS.items() for word in words.split()}
_PER_SECOND: dict[Unit, int] = {"seconds": 1, "milliseconds": 1_000, "samples": 16_000}


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Column:
    """A column of n rows: cells as they were read, or numbers, not yet checked.

    Attributes:
        name: The name in the file, or "lengths".
        values: [n] cells, as a list or an array of Arrow; or [n] numbers of any integer or floating dtype.
        place: Names the place of value k: "line 8 of train.csv".
        unit: The unit from the format, else from the name.
        kind: The kind of the cells, once they are numbers: for "lists" and "texts", the values are their counts. Before
            that it is "untyped" for texts that are not counted if they are numbers, as in a table of several columns;
            "unnamed" for the only column of a table, if no name was given; "texts" for texts that are always counted.
        remedy: The advice for a cell that is not a number.
    """

    name: str
    values: Any
    place: Place
    unit: Unit = "unknown"
    kind: Kind = "numbers"
    remedy: str = "Put a number there or drop the sequence."

    def __post_init__(self) -> None:
        if self.unit == "unknown":
            keep(self, unit=unit_of(self.name))


def to_lengths(columns: Sequence[Column], frame_shift: float | None) -> NDArray[np.int64]:
    """Turns columns into lengths, [n] for one column and [n, dims] for several.

    `frame_shift` applies to a single column, unless the column has counts. Among several columns, the shift applies to
    those in seconds or milliseconds, to those named duration or dur, and to those with fractions. A shift of 1 or more
    also applies to those in samples. A shift is in the unit of its column: 0.01 for seconds, 160 for samples.

    Raises:
        ValueError: A value cannot be a length. A column in seconds or milliseconds has no `frame_shift`. Or no column
            takes the shift, or the shift has another unit than its column.
    """
    check_dims(len(columns))
    shifts = choose_shifts(columns, frame_shift)
    parts = [_column_lengths(column, shift) for column, shift in zip(columns, shifts, strict=True)]
    # One length a sequence is always [n], and never [n, 1].
    return freeze(parts[0] if len(parts) == 1 else np.stack(parts, axis=1))


def choose_shifts(columns: Sequence[Column], frame_shift: float | None, *, by_type: bool = False) -> list[float | None]:
    """Returns the frame shift of each column, or None for a column of lengths; see `to_lengths`.

    Args:
        columns: All columns of one source.
        frame_shift: As in `read_lengths`.
        by_type: True if the columns are parts of longer ones. Floats then count as fractions, because later parts may
            have fractions.
    """
    if frame_shift is None:
        for column in columns:
            if column.unit in ("seconds", "milliseconds"):
                shift = f"{0.01 * _PER_SECOND[column.unit]:g}"
                remedy = f"Give the {column.unit} from one frame to the next, as {shift} "
                remedy += f"(on the command line: --frame-shift {shift})."
                raise value_error("frame_shift", f"given, because {column.name} is in {column.unit}", None, remedy)
        return [None] * len(columns)
    alone = len(columns) == 1
    time_columns = [column for column in columns if _takes_shift(column, frame_shift, alone=alone, by_type=by_type)]
    if not time_columns:
        names = ", ".join(column.name for column in columns)
        remedy = f"It does not apply to counts ({names}): leave it out, or name a column of durations."
        raise value_error("frame_shift", "given for durations only", frame_shift, remedy)
    for column in time_columns:
        # The unit of a shift is that of its column, but a shift below 1 is in seconds.
        if frame_shift < 1 and column.unit in ("milliseconds", "samples"):
            remedy = f"Give {frame_shift * _PER_SECOND[column.unit]:g} for {frame_shift:g} s"
            remedy += " at 16 kHz." if column.unit == "samples" else "."
            raise value_error("frame_shift", f"in {column.unit}, as {column.name} is", frame_shift, remedy)
    return [frame_shift if column in time_columns else None for column in columns]


def _column_lengths(column: Column, frame_shift: float | None) -> NDArray[np.int64]:
    values = column.values
    lengths = whole_lengths(values, frame_shift, name=column.name, place=column.place)
    # Otherwise every sequence would have one frame, as a sequence of 1.5 seconds with a shift of 160.
    if frame_shift is not None and frame_shift >= 1 and values.size and values.max() < frame_shift:
        remedy = "Give it in the unit of the durations: 0.01 for seconds, 160 for samples at 16 kHz."
        raise value_error("frame_shift", f"at most the longest duration, {values.max():g}", frame_shift, remedy)
    return lengths


def _takes_shift(column: Column, frame_shift: float, *, alone: bool, by_type: bool) -> bool:
    """Tells if a frame shift applies to a column: always to a single column, unless it has counts."""
    if column.unit == "samples" and not alone:
        return frame_shift >= 1
    if column.unit != "unknown" or alone:
        return column.unit != "counts"
    is_fractional = column.values.dtype.kind == "f" if by_type else has_fractions(column.values)
    # Columns of these names are most likely in seconds.
    return column.name.rpartition(".")[2] in ("duration", "seconds", "dur") or is_fractional


def check_kinds(known: dict[int, str], new: Iterable[tuple[str, str]], at: str) -> None:
    """Adds the kinds of columns to the `known` ones; refuses numbers that become lists, texts or seconds in later rows.

    Args:
        known: The kinds in the rows before, by the index of the column.
        new: The name and the kind of each column; "" for a column without values.
        at: The place of the rows in an error.
    """
    for dim, (name, kind) in enumerate(new):
        if kind and kind != known.setdefault(dim, kind):
            remedy = "Write the column again, as one type."
            raise value_error(name, f"{known[dim]}, as in the rows before", kind, remedy, at=at)


def unit_of(name: str) -> Unit:
    """Returns the unit of a column by the last word of its name.

    >>> unit_of("duration[ms]"), unit_of("features.numFrames"), unit_of("duration"), unit_of("len_s")
    ('milliseconds', 'counts', 'unknown', 'unknown')
    """
    # "durationMs" and "Duration (ms)" are both the words "duration" and "ms".
    *front, last = [word.lower() for word in re.findall("[A-Z]?[a-z]+|[A-Z]+|\\d+", name)] or [""]
    # "len_s" and a lone "ms" may mean anything, and "frames_10_ms" are not milliseconds.
    is_sure = front[-1] in ("duration", "dur", "time", "audio") if last == "s" and front else len(last) > 3 or front
    return _UNITS.get(last, "unknown") if is_sure and not (front and front[-1].isdigit()) else "unknown"


def choose_columns(
    column: Wanted, names: Sequence[str], *, at: str, nested: bool = False, default: Sequence[str] = ()
) -> list[str]:
    """Returns the names in `column`, separated by commas; if `column` is None, the default or the only column.

    Args:
        column: The wanted columns; a tuple of names is not split.
        names: The names of all columns.
        at: The place in an error: "line 1 of train.csv".
        nested: True if a name may be a field within a column, as audio.frames; False for a table.
        default: The names if `column` is None.

    Raises:
        ValueError: A wanted column is missing in `names`, or is there twice. Or `column` is None, and there are several
            columns. The error lists the columns, the closest match first.

    >>> choose_columns("source, target", ["id", "source", "target"], at="line 1 of a.csv")
    ['source', 'target']
    """
    if column is None:
        if default or len(names) == 1:
            return list(default or names)
        short = [name for name in names if len(name) <= _LONGEST_NAME]
        likely = next(iter([*filter(_LIKELY.search, short), *short]), "NAME")
        remedy = f'Give column="{likely}" (on the command line: FILE:{likely}), several as "source,target".'
        remedy += "" if nested else ' Without a header, give their numbers, as column="0".'
        raise value_error("column", f"one of {_list_names(names)}", None, remedy, at=at)
    chosen = split_names(column, names)
    for top in tops_of(chosen, names) if nested else [part for name in chosen for part in split_sum(name, names)]:
        if names.count(top) != 1:
            raise missing_column(top, names, at=at)
    return chosen


def top_of(name: str, names: Sequence[str]) -> str:
    """Returns the column of `name`: itself, or for a nested name the part before its first dot."""
    head = name.partition(".")[0]
    # A column may have a dot in its own name.
    return name if name in names or head not in names else head


def tops_of(chosen: Sequence[str], names: Sequence[str]) -> list[str]:
    """Returns the columns that the `chosen` names are in, each once."""
    return list(dict.fromkeys(top_of(part, names) for name in chosen for part in split_sum(name, names)))


def split_sum(name: str, names: Sequence[str]) -> list[str]:
    """Splits a sum of columns at its plus signs, unless a column has such a name.

    >>> split_sum("input + output", ["input", "output"])
    ['input', 'output']
    """
    is_name = any("+" in column and name.startswith(column) for column in names)
    return [name] if is_name else [part.strip() for part in name.split("+")]


def split_names(column: str | tuple[str, ...], names: Sequence[str]) -> list[str]:
    """Splits `column` at its commas, but not within the name of a column.

    >>> split_names("id, x,y.max", ["id", "x", "x,y"])
    ['id', 'x,y.max']
    """
    if not isinstance(column, str):
        return list(column)
    # Hides the commas of names, of the longest first: "a,b,c" before "a,b".
    for name in sorted(names, key=len, reverse=True):
        column = column.replace(name, name.replace(",", "\0"))
    parts = [part.replace("\0", ",") for part in column.split(",")]
    return [part if part in names else part.strip() for part in parts]


def choose_dimensions(column: Wanted, dims: int, path: Path) -> list[int]:
    """Returns the dimensions of a file without names: all, or the numbers in `column`, such as "0,2".

    Raises:
        ValueError: A dimension does not exist.
    """
    names = [str(dim) for dim in range(dims)]
    return list(map(int, choose_columns(column, names, at=str(path), default=names)))


def missing_column(name: str, names: Sequence[str], *, at: str) -> ValueError:
    """Returns the error for a name that no column or several have; it lists the columns, the closest match first."""
    if names.count(name) > 1:
        remedy = f"{names.count(name)} columns have this name: rename them."
        return value_error("column", "the name of one column", name, remedy, at=at)
    # A cutoff of 0 sorts all names by likeness. The default cutoff returns a name only if it is likely.
    close = difflib.get_close_matches(name, names, n=len(names) or 1, cutoff=0.0)
    likely = difflib.get_close_matches(name, names, n=1)
    remedy = f"Did you mean {likely[0]!r}?" if likely else "Give one of these, or check the path."
    return value_error("column", f"one of {_list_names(close)}", name, remedy, at=at)


def _list_names(names: Sequence[str]) -> str:
    short = [name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..." for name in names[:_MOST_NAMES]]
    return ", ".join(short) + ", ..." * (len(names) > _MOST_NAMES) or "no names"

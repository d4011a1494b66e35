"""Columns of numbers as the files hold them, and how they become lengths.

Every reader returns columns; `to_lengths` alone decides what is seconds, what is a count, and what is refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lengthwise._checks import value_error
from lengthwise.lengths.rules import Place, frames_from_seconds, frozen, has_fractions, whole_lengths

Unit = Literal["seconds", "counts", "unknown"]

SECONDS_NAMES = ("duration", "seconds", "dur")
COUNT_NAMES = ("num_frames",)
MOST_NAMES = 20  # that an error lists


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Column:
    """Numbers that were read and not yet judged.

    Attributes:
        name: What the file calls them, or "lengths".
        values: [n] of any integer or floating dtype.
        place: Says where the k-th stands: "line 8 of train.csv".
        unit: "seconds" or "counts" where the format says so, else "unknown".
    """

    name: str
    values: NDArray[Any]
    place: Place
    unit: Unit = "unknown"


def to_lengths(columns: Sequence[Column], frame_shift: float | None) -> NDArray[np.int64]:
    """Turns columns into lengths, [n] for one column and [n, dims] for several.

    `frame_shift` applies to one column of seconds or of unknown unit, whatever its values, because it was asked for.
    Among several columns it applies to seconds, to those named duration, seconds or dur, and to those with
    fractions: the token counts beside a duration stay what they are.

    Raises:
        ValueError: A value that cannot be a length; seconds without `frame_shift`; `frame_shift` without seconds.
    """
    parts = [
        _column_lengths(column, shift) for column, shift in zip(columns, _shifts(columns, frame_shift), strict=True)
    ]
    return frozen(parts[0] if len(parts) == 1 else np.stack(parts, axis=1))


def _column_lengths(column: Column, frame_shift: float | None) -> NDArray[np.int64]:
    if frame_shift is None:
        return whole_lengths(column.values, name=column.name, place=column.place)
    return frames_from_seconds(column.values, frame_shift, name=column.name, place=column.place)


def _shifts(columns: Sequence[Column], frame_shift: float | None) -> list[float | None]:
    if frame_shift is None:
        _refuse_seconds(columns)
        return [None] * len(columns)
    timed = [_takes_shift(column, alone=len(columns) == 1) for column in columns]
    if not any(timed):
        names = ", ".join(column.name for column in columns)
        remedy = f"It does not apply to counts ({names}): leave it out, or name a column of seconds."
        raise value_error("frame_shift", "given for seconds only", frame_shift, remedy)
    return [frame_shift if each else None for each in timed]


def _refuse_seconds(columns: Sequence[Column]) -> None:
    for column in columns:
        if column.unit == "seconds":
            remedy = "Give the seconds from one frame to the next, as 0.01 (on the command line: --frame-shift 0.01)."
            raise value_error("frame_shift", f"given, because {column.name} is in seconds", None, remedy)


def _takes_shift(column: Column, *, alone: bool) -> bool:
    if column.unit != "unknown" or alone:
        return column.unit != "counts"
    return last_part(column.name) in SECONDS_NAMES or has_fractions(column.values)


def unit_of(name: str) -> Unit:
    """Tells what is sure from a column's name: num_frames counts frames.

    >>> unit_of("features.num_frames"), unit_of("duration")
    ('counts', 'unknown')
    """
    return "counts" if last_part(name) in COUNT_NAMES else "unknown"


def last_part(name: str) -> str:
    return name.rpartition(".")[2]


def parse_numbers(
    texts: Sequence[str], *, name: str, place: Place, remedy: str = "Put a number there or drop the line."
) -> NDArray[Any]:
    """Reads [n] texts as int64 if all are whole, else as float64.

    Raises:
        ValueError: At the first text that is not a number.

    >>> parse_numbers(["3", "1.5"], name="dur", place=str)
    array([3. , 1.5])
    """
    for parse, dtype in ((int, np.int64), (float, np.float64)):
        try:
            return np.fromiter(map(parse, texts), dtype=dtype, count=len(texts))
        except (ValueError, OverflowError):
            continue
    at = next(k for k, text in enumerate(texts) if not is_number(text))
    raise value_error(name, "a number", texts[at], remedy, at=place(at))


def not_a_number(value: object, *, name: str, at: str) -> ValueError:
    return value_error(name, "a number", value, "Put a number there or drop the sequence.", at=at)


def is_number(text: str) -> bool:
    """Says whether `parse_numbers` takes a text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def choose_columns(column: str | None, names: Sequence[str], *, at: str) -> list[str]:
    """Finds which columns are meant: one name, or several separated by commas, or none where there is only one.

    Args:
        column: What was asked for; a name that itself holds a comma is found first.
        names: The columns that are there.
        at: What an error calls the place: "line 1 of train.csv".

    Raises:
        ValueError: A column that is absent or there twice; no `column` where there are several. The error lists
            the columns, the closest match first.

    >>> choose_columns("source, target", ["id", "source", "target"], at="line 1 of a.csv")
    ['source', 'target']
    """
    if column is None:
        if len(names) == 1:
            return list(names)
        remedy = 'Give `column` (on the command line: FILE:COLUMN), several as "source,target".'
        raise value_error("column", f"one of {_listed(names)}", None, remedy, at=at)
    wanted = wanted_columns(column, names)
    for name in wanted:
        if names.count(name) != 1:
            raise missing_column(name, names, at=at)
    return wanted


def wanted_columns(column: str, names: Container[str]) -> list[str]:
    """Splits `column` at its commas, unless it is a name as it stands."""
    return [column] if column in names else [part.strip() for part in column.split(",")]


def chosen_dimensions(column: str | None, dims: int, path: Path) -> range:
    """Finds which dimensions of a file without names are meant: all of them, or where `column` is "0", "1", ... that.

    Raises:
        ValueError: `column` is not the number of one.
    """
    if column is None:
        return range(dims)
    names = [str(dim) for dim in range(dims)]
    if column not in names:
        remedy = "Give the number of a dimension, counted from 0, or leave it out to read all."
        raise value_error("column", f"one of {_listed(names)}", column, remedy, at=str(path))
    return range(int(column), int(column) + 1)


def missing_column(name: str, names: Sequence[str], *, at: str) -> ValueError:
    """Writes the error for a column that is not there, or there twice, with those that are, the closest first."""
    if names.count(name) > 1:
        return value_error("column", "there once", name, f"Rename one of the {names.count(name)}.", at=at)
    close = difflib.get_close_matches(name, names, n=len(names) or 1, cutoff=0.0)
    if not close:
        return value_error("column", "there", name, "No column is: is this the right file?", at=at)
    likely = difflib.get_close_matches(name, names, n=1)
    remedy = f"Did you mean {likely[0]!r}?" if likely else "Give one of these."
    return value_error("column", f"one of {_listed(close)}", name, remedy, at=at)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + ", ..." * (len(names) > MOST_NAMES) or "no names"

"""Columns of numbers as the files hold them, and how they become lengths.

Every reader returns columns; `to_lengths` alone decides what is seconds, what is a count, and what is refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import value_error
from lengthwise.lengths.counts import COUNT_REMEDY, TextCount, are_turns, turn_field
from lengthwise.lengths.rules import (
    LONGEST,
    Place,
    check_dims,
    frames_from_seconds,
    freeze,
    has_fractions,
    not_a_length,
    whole_lengths,
)
from lengthwise.lengths.units import (
    SECONDS_NAMES,
    Unit,
    last_part,
    refuse_times,
    shifts_in_samples,
    shifts_in_seconds,
    takes_shift,
    unit_of,
)

Kind = Literal["numbers", "lists", "texts"]

_MOST_NAMES = 20  # that an error lists
MOST_SECONDS = 7200  # of a whole number that nothing says is in seconds: 48,000 is more likely a count of samples
_DROP_LINE = "Put a number there or drop the line."
DROP_SEQUENCE = "Put a number there or drop the sequence."


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Column:
    """Numbers as they were read, not checked yet.

    Attributes:
        name: What the file calls them, or "lengths".
        values: [n] of any integer or floating dtype.
        place: Says where the k-th stands: "line 8 of train.csv".
        unit: Where the format or the name says it, else "unknown".
        kind: The cells that were read: "numbers", or "lists" or "texts", of which the values are the counts.
    """

    name: str
    values: NDArray[Any]
    place: Place
    unit: Unit = "unknown"
    kind: Kind = "numbers"


def to_lengths(
    columns: Sequence[Column], frame_shift: float | None, sample_rate: float | None = None
) -> NDArray[np.int64]:
    """Turns columns into lengths, [n] for one column and [n, dims] for several.

    `frame_shift` applies to one column of seconds or of unknown unit, whatever its values, because it was asked for.
    Among several columns it applies to seconds, to those named duration, seconds or dur, and to those with
    fractions: the token counts beside a duration stay what they are. It is in the unit of its column: 0.01 for
    seconds, 160 for samples. With `sample_rate` it is in seconds, and the column counts samples.

    Raises:
        ValueError: A value that cannot be a length; seconds without `frame_shift`; `frame_shift` without seconds, or
            in another unit than its column; `sample_rate` without samples.
    """
    check_dims(len(columns))
    shifts = choose_shifts(columns, frame_shift, sample_rate)
    parts = [_column_lengths(column, shift) for column, shift in zip(columns, shifts, strict=True)]
    # One length a sequence is [n] and never [n, 1], whatever it was read from.
    return freeze(parts[0] if len(parts) == 1 else np.stack(parts, axis=1))


def choose_shifts(
    columns: Sequence[Column], frame_shift: float | None, sample_rate: float | None, *, by_type: bool = False
) -> list[float | None]:
    """Finds what each column is divided by; see `to_lengths`.

    Args:
        columns: All columns of one source.
        frame_shift: As in `read_lengths`.
        sample_rate: As in `read_lengths`.
        by_type: Whether the columns are a batch of longer ones. Then floats are fractions, whatever they are.
    """
    if frame_shift is None:
        for column in columns:
            refuse_times(column.name, column.unit)
    names = [column.name for column in columns]
    if sample_rate is not None:
        units: list[Unit] = [column.unit if by_type else _unit_seen(column) for column in columns]
        return shifts_in_samples(names, units, frame_shift, sample_rate)
    if frame_shift is None:
        return [None] * len(columns)
    timed = []
    for column in columns:
        fractions = column.values.dtype.kind == "f" if by_type else has_fractions(column.values)
        timed.append(takes_shift(column.name, column.unit, alone=len(columns) == 1, fractions=fractions))
    return shifts_in_seconds(names, timed, frame_shift)


def _column_lengths(column: Column, frame_shift: float | None) -> NDArray[np.int64]:
    if frame_shift is None:
        return whole_lengths(column.values, name=column.name, place=column.place)
    frames = frames_from_seconds(column.values, frame_shift, name=column.name, place=column.place)
    _check_unit(column, frame_shift)
    return frames


def _check_unit(column: Column, frame_shift: float) -> None:
    """Refuses a shift in seconds for samples, 48000 / 0.01, and one in samples for seconds, 1.5 / 160."""
    values = column.values
    if not values.size:
        return
    # Every sequence would be one frame long.
    if frame_shift >= 1 and values.max() < frame_shift:
        remedy = "Give it in the unit of the durations: 0.01 for seconds, 160 for samples at 16 kHz."
        raise value_error("frame_shift", f"at most the longest duration, {values.max():g}", frame_shift, remedy)
    unsure = column.unit == "unknown" and last_part(column.name) not in SECONDS_NAMES and not has_fractions(values)
    if frame_shift < 1 and unsure and values.max() > MOST_SECONDS:
        at = int(np.argmax(values > MOST_SECONDS))
        rule = f"at most {MOST_SECONDS} seconds in whole numbers, with `frame_shift` in seconds"
        remedy = (
            "If these are samples, give the shift in samples too, as 160 for 0.01 s at 16 kHz (on the command line: "
            "--frame-shift 160); if they are seconds, divide them by the shift first."
        )
        raise value_error(column.name, rule, values[at].item(), remedy, at=column.place(at))


def _unit_seen(column: Column) -> Unit:
    """The unit of a column, which its values may tell: samples and frames have no fractions."""
    return "seconds" if column.unit in ("unknown", "samples") and has_fractions(column.values) else column.unit


def parse_numbers(texts: Sequence[str], *, name: str, place: Place, remedy: str = _DROP_LINE) -> NDArray[Any]:
    """Reads [n] texts as int64 if all are whole, else as float64.

    Texts that only Python reads as numbers are refused: 1_000, and the digits of other scripts.

    Raises:
        ValueError: At the first text that is not a number, or a whole one beyond 64 bits.

    >>> parse_numbers(["3", "1.5"], name="dur", place=str)
    array([3. , 1.5])
    """
    # One look at all of them together is much quicker than one at each.
    if _plain("".join(texts)):
        try:
            return np.fromiter(map(int, texts), dtype=np.int64, count=len(texts))
        except OverflowError as error:
            raise beyond_64_bits(map(int, texts), name=name, place=place) from error
        except ValueError:
            # Not whole: perhaps they are seconds. What is no number either is found below.
            with suppress(ValueError):
                return np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
    at = next(k for k, text in enumerate(texts) if not (_plain(text) and is_number(text)))
    raise not_a_number(texts[at], name=name, at=place(at), remedy=remedy)


def read_cells(
    texts: Sequence[str], *, name: str, place: Place, count: TextCount | None, alone: bool, remedy: str = _DROP_LINE
) -> Column:
    """Makes a column of [n] texts: their counts, or the numbers that they are.

    Where texts are counted, the one column there is holds texts, whatever they look like. Of several, numbers stay
    numbers.
    """
    if count is not None and (alone or not all(_plain(text) and is_number(text) for text in texts)):
        return Column(name=name, values=count(texts), place=place, unit="counts", kind="texts")
    values = parse_numbers(texts, name=name, place=place, remedy=remedy)
    return Column(name=name, values=values, place=place, unit=unit_of(name))


def check_counted(counted: Iterable[bool], count: TextCount | None) -> None:
    """Refuses `count` where no column holds texts.

    Raises:
        ValueError: There is none.
    """
    if count is not None and not any(counted):
        remedy = "Leave it out, or name a column of texts."
        raise value_error("count", "given for texts only", count.count, remedy)


def _plain(text: str) -> bool:
    return text.isascii() and "_" not in text


def beyond_64_bits(values: Iterable[float], *, name: str, place: Place) -> ValueError:
    """Writes the error for the first of the numbers that int64 does not hold."""
    at, value = next((at, value) for at, value in enumerate(values) if abs(value) > LONGEST)
    return not_a_length(value, name=name, at=place(at))


def not_a_number(value: object, *, name: str, at: str, remedy: str = DROP_SEQUENCE) -> ValueError:
    """Writes the error for a value that is no number, with advice for a text, a list and an object."""
    if isinstance(value, dict) and value:
        remedy = f"Name one of its fields, as {name}.{turn_field(value) or next(iter(value))}."
    elif isinstance(value, str) and is_number(value):
        plain = "Write it as a number, without quotes." if _plain(value) else ""  # "7" beside numbers in JSON
        remedy = plain or "Write it in the digits 0 to 9, without underscores."
    elif isinstance(value, str) and is_number(value.replace(",", ".")):  # 1,25 in a table whose cells end at semicolons
        remedy = "Write fractions with a point, as 1.25, and thousands without a comma, as 1250."
    elif isinstance(value, str) and any(map(str.isalpha, value)):
        remedy = f"{remedy.removesuffix('.')}; if these are texts, {COUNT_REMEDY}."
    return value_error(name, "a number", value, remedy, at=at)


def nested_lists(value: object, *, name: str, at: str, item: object = None) -> ValueError:
    """Writes the error for a list whose count is a guess: turns of a chat, sentences of tokens, features [80, 3000].

    Args:
        value: The list, or its type.
        name: Of the column.
        at: Where it stands.
        item: One of its items, which decides the advice.
    """
    remedy = "Write a column with the length that you mean, and name that."
    field = turn_field(item) if isinstance(item, dict) else None
    if field is not None:
        name_of_texts = f"{name}.*.{field}"
        remedy = (
            f'Count the texts in it: column="{name_of_texts}", count="words" (on the command line: '
            f'"FILE:{name_of_texts}" --count words).'
        )
    elif isinstance(item, str) or are_turns(name):
        remedy = f"These are texts: {COUNT_REMEDY}."
    return value_error(name, "a list of single items, which are counted", value, remedy, at=at)


def is_number(text: str) -> bool:
    """Says whether Python reads a text as a number; `parse_numbers` is stricter."""
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
        raise value_error("column", f"one of {_list_names(names)}", None, remedy, at=at)
    wanted = select_columns(column, names)
    for name in wanted:
        if names.count(name) != 1:
            raise missing_column(name, names, at=at)
    return wanted


def choose_known(column: str | None, names: Sequence[str], *, at: str) -> list[str]:
    """As `choose_columns`, but of a nested one, audio.frames, the column that holds it: its field is found later."""
    if column is None or column in names:
        return choose_columns(column, names, at=at)
    wanted = select_columns(column, names)
    for name in wanted:
        choose_columns(top_of(name, names), names, at=at)
    return wanted


def top_of(name: str, names: Sequence[str]) -> str:
    """Returns the column that holds `name`: itself, or the part before its first dot if it is nested."""
    head = name.partition(".")[0]
    # A column may have a dot in its own name, and then it is itself.
    return name if name in names or head not in names else head


def select_columns(column: str, names: Container[str]) -> list[str]:
    """Splits `column` at its commas, unless it is a name as it stands."""
    # "source, target" is two columns, unless one of them has that very name.
    return [column] if column in names else [part.strip() for part in column.split(",")]


def choose_dimensions(column: str | None, dims: int, path: Path) -> range:
    """Finds which dimensions of a file without names are meant: all of them, or where `column` is "0", "1", ... that.

    Raises:
        ValueError: `column` is not the number of one.
    """
    if column is None:
        return range(dims)
    names = [str(dim) for dim in range(dims)]
    if column not in names:
        remedy = "Give the number of a dimension, counted from 0, or leave it out to read all."
        raise value_error("column", f"one of {_list_names(names)}", column, remedy, at=str(path))
    return range(int(column), int(column) + 1)


def missing_column(name: str, names: Sequence[str], *, at: str) -> ValueError:
    """Writes the error for a column that is missing or there twice; it lists the columns, the closest first."""
    if names.count(name) > 1:
        return value_error("column", "there once", name, f"Rename one of the {names.count(name)}.", at=at)
    # A cutoff of 0 sorts all of them; the usual one says whether one is likely.
    close = difflib.get_close_matches(name, names, n=len(names) or 1, cutoff=0.0)
    likely = difflib.get_close_matches(name, names, n=1)
    remedy = f"Did you mean {likely[0]!r}?" if likely else "Give one of these, or is this another file?"
    return value_error("column", f"one of {_list_names(close)}", name, remedy, at=at)


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMES]) + ", ..." * (len(names) > _MOST_NAMES) or "no names"

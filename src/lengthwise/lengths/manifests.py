"""JSON manifests: one record a line (.jsonl, or .json of NeMo), or one array of records. They may be packed as .gz.

Without a `column`, the field `num_frames` of Lhotse's features is read, or `duration` of NeMo and Lhotse, in seconds.
The duration of Lhotse's mixed cuts is the end of their last track.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from lengthwise.checks import value_error
from lengthwise.lengths.cells import TextCount, column_of_cells
from lengthwise.lengths.columns import Column, Unit, choose_columns, missing_column, split_names
from lengthwise.lengths.rules import Place
from lengthwise.lengths.text import open_text

Record = dict[str, Any]
_KNOWN_UNITS: dict[str, Unit] = {
    "num_frames": "counts",
    "duration": "seconds",
}  # the first field that a record has is read
_ABSENT = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)  # the errors of a missing field
_TOGETHER = 4096  # records to read at once
_ONE_EACH = "Give one object, or the length, for each sequence."


def read_manifest(path: Path, column: str | None, count: TextCount | None = None) -> list[Column]:
    """Reads fields of JSON records. A field may be nested, as `supervisions.0.duration`; a list gives its length.

    Args:
        path: The file.
        column: A field, or several separated by commas. None for manifests of NeMo and Lhotse, for records of one
            field, and for lines of numbers.
        count: The function that counts texts, or None.

    Raises:
        ValueError: The JSON is invalid, a record lacks the field, or a value is neither a number, nor a list, nor a
            counted text. Or the only record of a .json file has a list.
    """
    names, cells, places = list[str](), list[list[Any]](), list[str]()
    unit: Unit = "unknown"
    for records, part in iterate_records(path, _TOGETHER):
        if not names:
            names, unit = _fields(records[0], column, part[0])
            cells = [[] for _ in names]
        for name, values in zip(names, cells, strict=True):
            values += pick_cells(records, name, part.__getitem__)
        places += part
    for name, values in zip(names, cells, strict=True):
        # The list may be a column of lengths, and not one sequence.
        if _is_alone(places, path) and type(values[0]) is list:
            remedy = (
                "Give one record or number for each sequence, as [5, 6]; if the list is one sequence, name the file "
                ".jsonl."
            )
            raise value_error(name, "a number in the only record of a .json file", values[0], remedy, at=places[0])
    return [
        column_of_cells(name, values, places.__getitem__, count, unit=unit)
        for name, values in zip(names, cells, strict=True)
    ]


def iterate_records(
    path: Path, size: int, opener: Callable[..., Any] = open
) -> Iterator[tuple[list[Record], list[str]]]:
    """Yields `size` records at a time, and their places: "line 8 of train.jsonl"."""
    records = _records(path, opener)
    while part := list(itertools.islice(records, size)):
        yield [record for _, record in part], [f"{place} of {path}" for place, _ in part]


def pick_cells(records: Iterable[Record], name: str, place: Place | None = None) -> list[Any]:
    """Returns a field, which may be nested, of each record.

    Raises:
        ValueError: A record lacks the field, and `place` is given. Without a `place`, the cell of that record is None.
    """
    pick = _picker(name)
    cells: list[Any] = []
    for row, record in enumerate(records):
        try:
            cells.append(pick(record))
        except _ABSENT as error:
            if place is not None:
                raise missing_column(name, list(record), at=place(row)) from error
            cells.append(None)
    return cells


def _records(path: Path, opener: Callable[..., Any]) -> Iterator[tuple[str, Record]]:
    """Yields "line k" or "item k", and its record."""
    with open_text(path, opener) as file:
        lines = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
        start, first = next(lines, (0, ""))
        # The first line decides: an array, one object over several lines, or one record a line.
        if first.lstrip().startswith("["):
            items = _items(first, file.read(), start, path)
            yield from ((f"item {at}", _as_record(item, f"item {at} of {path}")) for at, item in enumerate(items))
            return
        if first.strip() == "{":  # one record over several lines
            yield f"line {start}", _as_record(_loads(first + file.read(), start, path), f"line {start} of {path}")
            return
        for number, line in itertools.chain([(start, first)] if first else [], lines):
            yield f"line {number}", _as_record(_loads(line, number, path), f"line {number} of {path}")


def _items(first: str, later_lines: str, start: int, path: Path) -> list[Any]:
    """Returns the items of one array; refuses one array a line, which may be the tokens of a sequence."""
    try:
        items = json.loads(first)
    except (ValueError, RecursionError):
        return _loads(first + later_lines, start, path)
    if later_lines.strip() or not (_is_document(path) or all(isinstance(item, dict) for item in items)):
        remedy = f"{_ONE_EACH[:-1]}; if the file is one array of lengths, name it .json."
        raise value_error("source", "JSON objects or numbers", items, remedy, at=f"line {start} of {path}")
    return items


def _is_document(path: Path) -> bool:
    """Tells if a file is named .json, and so may be one object or one array."""
    return path.name.lower().endswith((".json", ".json.gz"))


def _is_alone(places: Sequence[str], path: Path) -> bool:
    """Tells if a file has one object, and is named .json."""
    return len(places) == 1 and places[0].startswith("line") and _is_document(path)


def _loads(text: str, number: int, path: Path) -> Any:
    text = text.rstrip()  # so that an error at the end is on the last line
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        remedy = f"Repair or drop it: {error.msg} at character {error.colno}."
        at = f"line {number + error.lineno - 1} of {path}"
        line = text.split("\n")[error.lineno - 1].strip()
        raise value_error("source", "valid JSON", line, remedy, at=at) from error
    except (RecursionError, ValueError) as error:  # hundreds of levels; a number of thousands of digits
        raise value_error("source", "valid JSON", text, "Drop it.", at=f"line {number} of {path}") from error


def _as_record(item: Any, at: str) -> Record:
    if isinstance(item, dict):
        return item
    if isinstance(item, int | float) and not isinstance(item, bool):
        return {"lengths": item}
    raise value_error("source", "JSON objects or numbers", item, _ONE_EACH, at=at)


def _fields(record: Record, column: str | None, at: str) -> tuple[list[str], Unit]:
    if column is not None:
        return split_names(column, record), "unknown"
    for name, unit in _KNOWN_UNITS.items():
        if name in record or (name == "duration" and _is_mixed(record)):
            return [name], unit
    return choose_columns(None, list(record), at=at), "unknown"


def _picker(name: str) -> Callable[[Record], Any]:
    """Returns a function that reads a field of a record, which may be nested.

    >>> _picker("supervisions.0.duration")({"supervisions": [{"duration": 1.5}]})
    1.5
    """
    if name == "duration":
        return _duration
    if "." not in name:
        return itemgetter(name)
    # {"a.b": 5} comes before {"a": {"b": 5}}.
    return lambda record: record[name] if name in record else _follow(record, name.split("."))


def _follow(value: Any, parts: list[str]) -> Any:
    """Follows the parts of a nested name: a field of an object, an index of a list, or `*` for every item of a list.

    >>> _follow({"messages": [{"content": "hello"}, {"content": "and you"}]}, ["messages", "*", "content"])
    ['hello', 'and you']
    """
    for at, part in enumerate(parts):
        if value is None:
            break  # a null has no fields, and is refused later
        if part == "*" and isinstance(value, list):
            return [_follow(item, parts[at + 1 :]) for item in value]
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def _is_mixed(record: Record) -> bool:
    return record.get("type") == "MixedCut" and "duration" not in record


def _duration(record: Record) -> Any:
    """Returns the duration; for a mixed cut the end of its last track, to eight decimals as in Lhotse.

    >>> _duration({"type": "MixedCut", "tracks": [{"cut": {"duration": 2}}, {"cut": {"duration": 1.5}, "offset": 1}]})
    2.5
    """
    if not _is_mixed(record):
        return record["duration"]
    return round(max(track.get("offset", 0) + track["cut"]["duration"] for track in record["tracks"]), 8)

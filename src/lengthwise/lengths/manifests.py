"""JSON manifests: one record a line (.jsonl, or .json of NeMo), or one array of records. They may be packed as .gz.

Without a `column`, the field `num_frames` of Lhotse's features is read, or `duration` of NeMo and Lhotse, in seconds.
The duration of Lhotse's mixed cuts is the end of their last track.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from lengthwise.checks import value_error
from lengthwise.lengths.columns import Absent, Unit, Wanted, choose_columns
from lengthwise.lengths.text import Opener, Parts, open_text, split_rows

Record = dict[str, Any]
_KNOWN_UNITS: dict[str, Unit] = {"num_frames": "counts", "duration": "seconds"}  # the first one of a record is read
_ONE_EACH = "Give one object, or the length, for each sequence."
# The errors of an absent field; the last is that of a column of hundreds of parts.
_ABSENT = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


def read_records(path: Path, column: Wanted, size: int | None = None, opener: Opener = None) -> Parts:
    """Reads fields of JSON records. A field may be nested, as `supervisions.0.duration`; a list gives its length.

    Args:
        path: The file.
        column: A field, or several separated by commas. None for manifests of NeMo and Lhotse, for records of one
            field, and for lines of numbers. Only names in a tuple may be absent in the first record.
        size: The most records of a part.
        opener: Opens the file.

    Raises:
        ValueError: The JSON is invalid, or the first record lacks the field. Or the only record of a .json file has a
            list.
    """
    with open_text(path, opener) as file:
        word, records = _records(file, path)
        first = next(records, None)
        if first is None:
            return
        names, unit = _fields(first[1], column, f"{word} {first[0]} of {path}")
        picks = [(name, partial(pick, name)) for name in names]
        for columns in split_rows(itertools.chain([first], records), picks, path, size, word=word, unit=unit):
            for cells in columns:
                # The list may be a column of lengths, and not one sequence.
                if len(cells.values) == 1 and word == "line" and _is_document(path) and type(cells.values[0]) is list:
                    rule, at = "a number in the only record of a .json file", cells.place(0)
                    remedy = "Give one record or number for each sequence, as [5, 6]; if the list is one sequence, "
                    raise value_error(cells.name, rule, cells.values[0], f"{remedy}name the file .jsonl.", at=at)
            yield columns


def _fields(record: Record, column: Wanted, at: str) -> tuple[list[str], Unit]:
    if isinstance(column, tuple):
        return list(column), "unknown"
    fields = [*record, *["duration"] * _is_mixed(record)]
    known = [name for name in _KNOWN_UNITS if name in fields][:1]
    names = choose_columns(column, fields, at=at, nested=True, default=known)
    return names, _KNOWN_UNITS[known[0]] if column is None and known else "unknown"


def pick(name: str, record: Record) -> Any:
    """Returns a field of a record, which may be nested, or `Absent`.

    >>> pick("supervisions.0.duration", {"supervisions": [{"duration": 1.5}]})
    1.5
    """
    try:
        if name in record:  # {"a.b": 5} comes before {"a": {"b": 5}}
            return record[name]
        if name == "duration" and _is_mixed(record):
            # To eight decimals, as in Lhotse.
            return round(max(track.get("offset", 0) + track["cut"]["duration"] for track in record["tracks"]), 8)
        return _follow(record, name.split("."))
    except _ABSENT:
        return Absent(name, list(record))


def _is_mixed(record: Record) -> bool:
    return record.get("type") == "MixedCut" and "duration" not in record


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


def _records(file: TextIO, path: Path) -> tuple[str, Iterator[tuple[int, Record]]]:
    """Returns "line" or "item", and the records with their numbers."""
    lines = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    # The first line decides: an array, one object over several lines, or one record a line.
    start, first = next(lines, (0, ""))
    if first.lstrip().startswith("["):
        items = enumerate(_items(first, file.read(), start, path))
        return "item", ((at, _as_record(item, "item", at, path)) for at, item in items)
    if first.strip() == "{":
        first += file.read()
    texts = itertools.chain([(start, first)] if first else [], lines)
    return "line", ((at, _as_record(_loads(text, at, path), "line", at, path)) for at, text in texts)


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


def _as_record(item: Any, word: str, at: int, path: Path) -> Record:
    if isinstance(item, dict):
        return item
    if isinstance(item, int | float) and not isinstance(item, bool):
        return {"lengths": item}
    raise value_error("source", "JSON objects or numbers", item, _ONE_EACH, at=f"{word} {at} of {path}")

"""JSON manifests: one record a line (.jsonl, or .json of NeMo), or one array of records. They may be packed as .gz.

Without a `column`, the field `num_frames` of Lhotse's features is read, or `duration` of NeMo and Lhotse, in seconds.
The duration of Lhotse's mixed cuts is the end of their last track.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from lengthwise.checks import value_error
from lengthwise.lengths.columns import Unit, Wanted, choose_columns
from lengthwise.lengths.text import Numbered, Rows

_KNOWN_UNITS: dict[str, Unit] = {"num_frames": "counts", "duration": "seconds"}  # the first one of a record is read
_ONE_EACH = "Give one object, or the length, for each sequence."
# The errors of an absent field; the last is that of a column of hundreds of parts.
_ABSENT = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


def parse_records(file: TextIO, path: Path, column: Wanted) -> Rows:
    """Finds JSON records. A field may be nested, as `supervisions.0.duration`; a list gives its length.

    Without a `column`, it finds the lengths of NeMo's and Lhotse's manifests, of records of one field, and of lines of
    numbers. Only fields of a tuple may be absent in the first record.

    Raises:
        ValueError: The JSON is invalid, or the first record lacks the field. Or the only record of a .json file has a
            list.
    """
    word, rows = _records(file, path)
    head = list(itertools.islice(rows, 2))
    if not head:
        return Rows(rows, [], {})
    number, record = head[0]
    at = f"{word} {number} of {path}"
    known = [name for name in _KNOWN_UNITS if name in record or (name == "duration" and _is_mixed(record))][:1]
    fields = list(dict.fromkeys([*record, *known]))
    fixed = isinstance(column, tuple)
    names = list(column) if fixed else choose_columns(column, fields, at=at, nested=True, default=known)
    unit = _KNOWN_UNITS[known[0]] if known and column is None else "unknown"
    # A list in the only record may be a column of lengths, and not one sequence.
    is_alone = len(head) == 1 and word == "line" and _is_document(path)
    for name, cell in [(name, pick(name, record)) for name in names if is_alone]:
        if isinstance(cell, list):
            remedy = "Give one record or number for each sequence, as [5, 6]; if the list is one sequence, name the "
            raise value_error(name, "a number in the only record of a .json file", cell, f"{remedy}file .jsonl.", at=at)
    picks = [(name, partial(pick, name)) for name in names]
    return Rows(itertools.chain(head, rows), picks, {"unit": unit}, word)


def pick(name: str, record: dict[str, Any]) -> Any:
    """Returns a field of a record, which may be nested; or, if it is absent, the error to raise.

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
        return KeyError(name, list(record))


def _is_mixed(record: dict[str, Any]) -> bool:
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


def _records(file: TextIO, path: Path) -> tuple[str, Numbered]:
    """Returns "line" or "item", and the records with their numbers."""
    lines = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    # The first line decides: an array, one object over several lines, or one record a line.
    start, first = next(lines, (0, ""))
    if first.lstrip().startswith("["):
        return "item", _check_records("item", enumerate(_items(first, file.read(), start, path)), path)
    if first.strip() == "{":
        first += file.read()
    texts = itertools.chain([(start, first)] if first else [], lines)
    return "line", _check_records("line", ((number, _loads(text, number, path)) for number, text in texts), path)


def _check_records(word: str, values: Iterable[tuple[int, Any]], path: Path) -> Numbered:
    for number, value in values:
        if isinstance(value, dict):
            yield number, value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield number, {"lengths": value}
        else:
            raise value_error("source", "JSON objects or numbers", value, _ONE_EACH, at=f"{word} {number} of {path}")


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

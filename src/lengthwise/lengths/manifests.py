"""JSON manifests: one record a line (.jsonl, or .json as NeMo has it), or one array of records; all also as .gz.

Known without `column`: NeMo's and Lhotse's `duration`, in seconds, and the `num_frames` of Lhotse's features.
Lhotse's mixed cuts hold no `duration`: it is when the last of their tracks ends.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise._checks import value_error
from lengthwise.lengths.columns import (
    Column,
    Unit,
    choose_columns,
    missing_column,
    not_a_number,
    parse_numbers,
    unit_of,
    wanted_columns,
)
from lengthwise.lengths.rules import Place
from lengthwise.lengths.text import open_text

KNOWN_UNITS: dict[str, Unit] = {"num_frames": "counts", "duration": "seconds"}  # the first that is there

Record = dict[str, Any]


def read_manifest(path: Path, column: str | None) -> list[Column]:
    """Reads fields of JSON records; a field may be nested, as `supervisions.0.duration`; a list gives its length.

    Args:
        path: The file.
        column: A field, several separated by commas, or None for a known manifest, for records of one field and
            for lines that are bare numbers.

    Raises:
        ValueError: Invalid JSON, a record without the field, a value that is neither a number nor a list, or a list in
            the only record of a .json file.
    """
    records = _records(path)
    first = next(records, None)
    if first is None:
        return []
    place, record = first
    names, unit = _fields(record, column, f"{place} of {path}")
    values, places = _gather(itertools.chain([first], records), names, path)
    if places == [place] and place.startswith("line") and path.name.lower().endswith((".json", ".json.gz")):
        _refuse_lists(names, values, f"{place} of {path}")
    return [
        _column(name, cells, lambda row: f"{places[row]} of {path}", unit)
        for name, cells in zip(names, values, strict=True)
    ]


def _records(path: Path) -> Iterator[tuple[str, Record]]:
    """Yields "line k" or "item k", and the record that stands there."""
    with open_text(path) as file:
        lines = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
        start, first = next(lines, (0, ""))
        if first.lstrip().startswith("["):
            items = _loads(first + file.read(), start, path)
            yield from ((f"item {at}", _as_record(item, f"item {at} of {path}")) for at, item in enumerate(items))
            return
        for number, line in itertools.chain([(start, first)] if first else [], lines):
            yield f"line {number}", _as_record(_loads(line, number, path), f"line {number} of {path}")


def _loads(text: str, number: int, path: Path) -> Any:
    text = text.rstrip()  # so that an error at the end is on the last line, not on the one after
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        remedy = f"Repair or drop it: {error.msg} at character {error.colno}."
        at = f"line {number + error.lineno - 1} of {path}"
        line = text.split("\n")[error.lineno - 1].strip()
        raise value_error("source", "valid JSON", line, remedy, at=at) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a hundred thousand brackets
        raise value_error("source", "valid JSON", text, "Drop it.", at=f"line {number} of {path}") from error


def _as_record(item: Any, at: str) -> Record:
    if isinstance(item, dict):
        return item
    if isinstance(item, int | float) and not isinstance(item, bool):
        return {"lengths": item}
    raise value_error("source", "JSON objects or numbers", item, "Give one object for each sequence.", at=at)


def _fields(record: Record, column: str | None, at: str) -> tuple[list[str], Unit]:
    if column is None:
        for name, unit in KNOWN_UNITS.items():
            if name in record or (name == "duration" and _is_mixed(record)):
                return [name], unit
        return choose_columns(None, list(record), at=at), "unknown"
    return wanted_columns(column, record), "unknown"


def _gather(records: Iterable[tuple[str, Record]], names: list[str], path: Path) -> tuple[list[list[Any]], list[str]]:
    values: list[list[Any]] = [[] for _ in names]
    places: list[str] = []
    picks = [(cells.append, _picker(name), name) for cells, name in zip(values, names, strict=True)]
    for place, record in records:
        places.append(place)
        for append, pick, name in picks:
            try:
                append(pick(record))
            except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
                raise missing_column(name, list(record), at=f"{place} of {path}") from error
    return values, places


def _picker(name: str) -> Callable[[Record], Any]:
    """Returns what takes a field out of a record; a field whose own name has dots comes before a nested one.

    >>> _picker("supervisions.0.duration")({"supervisions": [{"duration": 1.5}]})
    1.5
    """
    if name == "duration":
        return _duration
    if "." not in name:
        return itemgetter(name)

    def pick(record: Any) -> Any:
        if name in record:
            return record[name]
        for part in name.split("."):
            record = record[int(part)] if isinstance(record, list) else record[part]
        return record

    return pick


def _refuse_lists(names: list[str], values: list[list[Any]], at: str) -> None:
    """Refuses a list in the only record of a .json file, which may be the column of a table, not one sequence."""
    for name, (value,) in zip(names, values, strict=True):
        if type(value) is list:
            rule = "a number in the only record of a .json file"
            remedy = "Give one record, or one number, for each sequence; if it is one sequence, name the file .jsonl."
            raise value_error(name, rule, value, remedy, at=at)


def _is_mixed(record: Record) -> bool:
    return record.get("type") == "MixedCut" and "duration" not in record


def _duration(record: Record) -> Any:
    """Returns the duration; of a mixed cut when its last track ends, to eight decimals as in Lhotse.

    >>> _duration({"type": "MixedCut", "tracks": [{"cut": {"duration": 2}}, {"cut": {"duration": 1.5}, "offset": 1}]})
    2.5
    """
    if not _is_mixed(record):
        return record["duration"]
    return round(max(track.get("offset", 0) + track["cut"]["duration"] for track in record["tracks"]), 8)


def _column(name: str, cells: list[Any], place: Place, known: Unit) -> Column:
    if type(cells[0]) is list:
        return Column(name=name, values=_list_lengths(cells, name, place), place=place, unit="counts")
    unit = known if known != "unknown" else unit_of(name)
    return Column(name=name, values=_numbers(cells, name, place), place=place, unit=unit)


def _list_lengths(cells: list[Any], name: str, place: Place) -> NDArray[np.int64]:
    for at, cell in enumerate(cells):
        if type(cell) is not list:
            remedy = "Put a list there or drop the sequence."
            raise value_error(name, "a list, as at the first sequence", cell, remedy, at=place(at))
    return np.fromiter(map(len, cells), dtype=np.int64, count=len(cells))


def _numbers(cells: list[Any], name: str, place: Place) -> NDArray[Any]:
    kinds = set(map(type, cells))
    if kinds == {str}:
        return parse_numbers(cells, name=name, place=place)
    for at, cell in enumerate(cells if kinds - {int, float} else ()):
        if type(cell) not in (int, float):
            raise not_a_number(cell, name=name, at=place(at))
    try:
        return np.array(cells, dtype=np.int64 if kinds == {int} else np.float64)
    except OverflowError:  # whole numbers beyond int64, which are refused as such later
        return np.array([float(max(min(cell, 2**64), -(2**64))) for cell in cells])

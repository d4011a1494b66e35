"""JSON manifests: one record a line (.jsonl, or .json as NeMo has it), or one array of records; all also as .gz.

A .json file may also be one object of lengths by name.

Known without `column`: NeMo's and Lhotse's `duration`, in seconds, and the `num_frames` of Lhotse's features.
Lhotse's mixed cuts hold no `duration`: it is when the last of their tracks ends.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import value_error
from lengthwise.lengths.columns import (
    DROP_SEQUENCE,
    Column,
    Unit,
    beyond_64_bits,
    choose_columns,
    missing_column,
    nested_lists,
    not_a_number,
    parse_numbers,
    select_columns,
    unit_of,
)
from lengthwise.lengths.counts import TextCount, are_sentences, are_turns, count_items, turn_field
from lengthwise.lengths.rules import Place
from lengthwise.lengths.text import open_text

_KNOWN_UNITS: dict[str, Unit] = {"num_frames": "counts", "duration": "seconds"}  # the first that is there

Record = dict[str, Any]
_ABSENT = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)  # what a missing field raises
_NUMBERS = {int, float, NoneType}  # types of the values of an object of lengths by name
_SINGLE = {int, float, bool, NoneType}  # types of the items of a list that is counted, beside texts


def read_manifest(path: Path, column: str | None, count: TextCount | None = None) -> list[Column]:
    """Reads fields of JSON records; a field may be nested, as `supervisions.0.duration`; a list gives its length.

    Args:
        path: The file.
        column: A field, several separated by commas, or None for a known manifest, for records of one field and
            for lines that are bare numbers; also for a .json file of one object of lengths by name, {"a": 5, "b": 6}.
        count: What is counted of texts.

    Raises:
        ValueError: Invalid JSON, a record without the field, a value that is neither a number nor a list, or a list in
            the only record of a .json file.
    """
    records = _records(path)
    # Two, because a .json file of one record may mean something else than a line of many: see `_refuse_lists`.
    head = list(itertools.islice(records, 2))
    if not head:
        return []
    place, record = head[0]
    at = f"{place} of {path}"
    alone = len(head) == 1 and place.startswith("line") and _is_document(path)
    if alone and column is None:
        _refuse_twins(path)
    if alone and column is None and _is_by_name(record):
        sequences = list(record)
        return [_number_column("lengths", list(record.values()), lambda row: f"{sequences[row]} of {path}", "unknown")]
    names, unit = _fields(record, column, at)
    values, places = _gather(itertools.chain(head, records), names, path)
    for name, cells in zip(names, values, strict=True):
        # The column of a table, perhaps, and not one sequence.
        if alone and type(cells[0]) is list:
            rule = "a number in the only record of a .json file"
            remedy = (
                "Give one record or number for each sequence, as [5, 6]; if it is one sequence, name the file .jsonl."
            )
            raise value_error(name, rule, cells[0], remedy, at=at)
    return [
        column_of_cells(name, cells, lambda row: f"{places[row]} of {path}", unit, count)
        for name, cells in zip(names, values, strict=True)
    ]


def _refuse_twins(path: Path) -> None:
    """Refuses an object of lengths by name in which a name stands twice: Python would keep the last alone."""
    with open_text(path) as file:
        pairs = json.load(file, object_pairs_hook=list)
    names = Counter(name for name, _ in pairs) if isinstance(pairs, list) else {}  # {}: one number alone
    for name, count in names.items():
        if count > 1:
            remedy = "Drop or rename one: the last alone would count."
            raise value_error("source", "an object whose names stand once each", name, remedy, at=str(path))


def iterate_records(
    path: Path, size: int, opener: Callable[..., Any] = open
) -> Iterator[tuple[list[Record], list[str]]]:
    """Yields `size` records after another, and where each of them stands: "line 8 of train.jsonl"."""
    records = _records(path, opener)
    while part := list(itertools.islice(records, size)):
        yield [record for _, record in part], [f"{place} of {path}" for place, _ in part]


def pick_cells(records: Iterable[Record], name: str) -> list[Any]:
    """Takes a field, which may be nested, out of each record; None where it is absent."""
    pick = _picker(name)
    cells: list[Any] = []
    for record in records:
        try:
            cells.append(pick(record))
        except _ABSENT:
            cells.append(None)
    return cells


def _records(path: Path, opener: Callable[..., Any] = open) -> Iterator[tuple[str, Record]]:
    """Yields "line k" or "item k", and the record that stands there."""
    with open_text(path, opener) as file:
        lines = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
        start, first = next(lines, (0, ""))
        # The first character decides: an array, one object over several lines, or one record on each line.
        if first.lstrip().startswith("["):
            items = _items(first, file.read(), start, path)
            yield from ((f"item {at}", _as_record(item, f"item {at} of {path}")) for at, item in enumerate(items))
            return
        if first.strip() == "{":  # one record written over several lines
            yield f"line {start}", _as_record(_loads(first + file.read(), start, path), f"line {start} of {path}")
            return
        for number, line in itertools.chain([(start, first)] if first else [], lines):
            yield f"line {number}", _as_record(_loads(line, number, path), f"line {number} of {path}")


def _items(first: str, rest: str, start: int, path: Path) -> list[Any]:
    """Returns the items of one array; refuses an array on each line, which may be the tokens of one sequence."""
    try:
        items = json.loads(first)
    except (ValueError, RecursionError):
        return _loads(first + rest, start, path)
    if rest.strip() or not (_is_document(path) or all(isinstance(item, dict) for item in items)):
        remedy = "Give one object, or the length, for each sequence; name a file .json that is one array of lengths."
        raise value_error("source", "JSON objects or numbers", items, remedy, at=f"line {start} of {path}")
    return items


def _is_document(path: Path) -> bool:
    """Says whether a file is named .json, and so may be one object or one array."""
    return path.name.lower().endswith((".json", ".json.gz"))


def _loads(text: str, number: int, path: Path) -> Any:
    text = text.rstrip()  # so that an error at the end is on the last line, not on the one after
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
    raise value_error(
        "source", "JSON objects or numbers", item, "Give one object, or the length, for each sequence.", at=at
    )


def _fields(record: Record, column: str | None, at: str) -> tuple[list[str], Unit]:
    if column is None:
        for name, unit in _KNOWN_UNITS.items():
            if name in record or (name == "duration" and _is_mixed(record)):
                return [name], unit
        return choose_columns(None, list(record), at=at), "unknown"
    return select_columns(column, record), "unknown"


def _gather(records: Iterable[tuple[str, Record]], names: list[str], path: Path) -> tuple[list[list[Any]], list[str]]:
    values: list[list[Any]] = [[] for _ in names]
    places: list[str] = []
    picks = [(cells.append, _picker(name), name) for cells, name in zip(values, names, strict=True)]
    for place, record in records:
        places.append(place)
        for append, pick, name in picks:
            try:
                # Bound methods, because this line runs for each of millions of records.
                append(pick(record))
            except _ABSENT as error:
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
    # {"a.b": 5} is asked before {"a": {"b": 5}}.
    return lambda record: record[name] if name in record else _follow(record, name.split("."))


def _follow(value: Any, parts: list[str]) -> Any:
    """Follows names into objects and numbers into lists; `*` follows the rest into every item.

    >>> _follow({"messages": [{"content": "hello"}, {"content": "and you"}]}, ["messages", "*", "content"])
    ['hello', 'and you']
    """
    for at, part in enumerate(parts):
        if value is None:
            break  # a null has no fields, and is refused as a null
        if part == "*" and isinstance(value, list):
            return [_follow(item, parts[at + 1 :]) for item in value]
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def _is_by_name(record: Record) -> bool:
    """Says whether the only record of a .json file is lengths by the names of their sequences, {"a": 5, "b": 6}."""
    # What is no number among many that are is refused by its name later.
    others = sum(type(value) not in _NUMBERS for value in record.values())
    return len(record) > 1 and _KNOWN_UNITS.keys().isdisjoint(record) and others <= len(record) // 10


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


def column_of_cells(name: str, cells: list[Any], place: Place, known: Unit, count: TextCount | None) -> Column:
    """Makes a column of values as JSON holds them: numbers, lists, or texts that are counted.

    Raises:
        ValueError: A value of another kind than the first, or of none that has a length.
    """
    # The first record decides. A later one of another kind is refused by its line.
    kind = type(cells[0])
    if kind is list or (kind is str and count is not None):
        for at, cell in enumerate(cells):
            if type(cell) is not kind:
                rule = f"a {'list' if kind is list else 'text'}, as at the first sequence"
                raise value_error(name, rule, cell, "Put one there or drop the sequence.", at=place(at))
    if kind is list:
        return _list_column(cells, name, place, count)
    if kind is str and count is not None:
        return Column(name=name, values=count(cells), place=place, unit="counts", kind="texts")
    return _number_column(name, cells, place, known if known != "unknown" else unit_of(name))


def _list_column(cells: list[Any], name: str, place: Place, count: TextCount | None) -> Column:
    """Counts the items of each list, or the texts in it where `count` says how."""
    # The first item that there is decides. Lists of items of another kind are refused by their line.
    item = next((item for cell in cells for item in cell if item is not None), None)
    field = turn_field(item) if count is not None and type(item) is dict else None
    if field is not None:
        name, item = f"{name}.*.{field}", ""
        cells = [[turn.get(field) if type(turn) is dict else turn for turn in cell] for cell in cells]
    if count is not None and type(item) is str:
        counts = count_items(cells, name=name, place=place, count=count)
        return Column(name=name, values=counts, place=place, unit="counts", kind="texts")
    single = {str, NoneType} if type(item) is str else _SINGLE
    for at, cell in enumerate(cells):
        if not single.issuperset(map(type, cell)):
            raise nested_lists(cell, name=name, at=place(at), item=item)
    turns = are_turns(name) and any(cells) and isinstance(item, str | None)
    if turns or (type(item) is str and are_sentences(list(itertools.chain.from_iterable(cells)))):
        raise nested_lists(cells[0], name=name, at=place(0), item=item)
    lengths = np.fromiter(map(len, cells), dtype=np.int64, count=len(cells))
    return Column(name=name, values=lengths, place=place, unit="counts", kind="lists")


def _number_column(name: str, cells: list[Any], place: Place, unit: Unit) -> Column:
    return Column(name=name, values=_numbers(cells, name, place), place=place, unit=unit)


def _numbers(cells: list[Any], name: str, place: Place) -> NDArray[Any]:
    kinds = set(map(type, cells))
    if kinds == {str}:
        return parse_numbers(cells, name=name, place=place, remedy=DROP_SEQUENCE)
    # Looked at one by one only where some cell is no number: the set of types has told.
    for at, cell in enumerate(cells if kinds - {int, float} else ()):
        if type(cell) not in (int, float):
            raise not_a_number(cell, name=name, at=place(at))
    try:
        return np.array(cells, dtype=np.int64 if kinds == {int} else np.float64)
    except OverflowError as error:
        raise beyond_64_bits(cells, name=name, place=place) from error

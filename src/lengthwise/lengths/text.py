"""Text files, also as .gz: lines of numbers, tables, and records of JSON.

In a .tsv, quotes have no meaning, nor between pipes. A .csv is split at commas, or, if its header has none, at
semicolons or tabs; at pipes if its first two lines have equally many.

JSON has one record a line (.jsonl, or .json of NeMo), or one array of records. Without a `column`, the field
`num_frames` of Lhotse's features is read, or `duration` of NeMo and Lhotse, in seconds. The duration of Lhotse's mixed
cuts is the end of their last track.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from lengthwise.checks import brief, source_error, value_error
from lengthwise.lengths.cells import is_number
from lengthwise.lengths.columns import Column, Unit, Wanted, choose_columns, choose_dimensions, split_names, split_sum

Opener = Callable[..., Any] | None  # opens a file for reading bytes, as `open(path, "rb")`; None for a file on a disk
Parts = Iterator[list[Column]]
Numbered = Iterator[tuple[int, Any]]  # rows or values, each with the number of its line

_REPAIR = "Repair or drop the line."
NOT_TEXT = f"{_REPAIR} For lines of text, give `count` (on the command line: --count words)."
_NUMBER = "Put a number there. Lines of `id value` are read from utt2num_frames and utt2dur, tables from .csv and .tsv."
_WORDS = re.compile(r"[^ \t\r\n]+")  # str.split would also split "1\xa0234", a number with a no-break space
_ONE_EACH = "Give one object, or the length, for each sequence."
_KNOWN_UNITS: dict[str, Unit] = {"num_frames": "counts", "duration": "seconds"}  # the first one of a record is read
# The errors of an absent field; the last is that of a column of hundreds of parts.
_ABSENT = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
_WIDEST = 2**31 - 1  # characters of a cell: the limit of csv on every system


class Rows(NamedTuple):
    """The rows of a text file, and what is taken from them.

    Attributes:
        rows: The number of each row in its file, and the row.
        picks: The name of each column, and the function that takes its cell from a row.
        fields: Other fields of the columns, such as the unit.
        word: The word for a row in an error: "line 8 of train.csv".
    """

    rows: Numbered
    picks: Sequence[tuple[str, Callable[[Any], Any]]]
    fields: dict[str, Any]
    word: str = "line"


@contextmanager
def open_text(path: Path, opener: Opener = None) -> Iterator[TextIO]:
    """Opens UTF-8 text, and unpacks a .gz file.

    Raises:
        ValueError: A line is not UTF-8, or the gzip file is damaged or ends early.
    """
    try:
        # "utf-8-sig" skips the byte order mark of spreadsheets. csv needs the original line ends.
        with (opener or open)(path, "rb") as raw:
            content = gzip.GzipFile(fileobj=raw) if path.suffix.lower() == ".gz" else raw
            with io.TextIOWrapper(content, encoding="utf-8-sig", newline="") as file:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise source_error("a whole gzip file", path, f"Write it again ({brief(error)}).") from error
    except UnicodeDecodeError as error:
        remedy = "Save it as UTF-8, or correct its suffix."
        snippet = error.object[max(error.start - 20, 0) : error.start + 20]
        raise value_error("source", "UTF-8 text", snippet, remedy, at=str(path)) from error


def read_text(
    parse: Callable[..., Rows], path: Path, column: Wanted, size: int | None = None, opener: Opener = None
) -> Parts:
    """Yields the wanted columns of a text file, part by part.

    Args:
        parse: The function that finds the rows and the columns of an open file, such as `parse_table`.
        path: The file.
        column: The wanted columns.
        size: The most rows of a part; None takes all rows at once.
        opener: Opens the file.

    Raises:
        ValueError: As `open_text` and `parse`.
    """
    with open_text(path, opener) as file:
        rows, picks, fields, word = parse(file, path, column)
        while True:
            lines = list[int]()
            columns = [
                Column(name=name, values=[], place=lambda row, lines=lines: f"{word} {lines[row]} of {path}", **fields)
                for name, _ in picks
            ]
            # Bound methods, because the loop below runs for millions of rows.
            adds = [(cells.values.append, pick) for cells, (_, pick) in zip(columns, picks, strict=True)]
            for line, row in itertools.islice(rows, size):
                lines.append(line)
                for add, pick in adds:
                    add(pick(row))
            if not lines:
                return
            yield columns


def line_error(rule: str, value: object, number: int, path: Path, remedy: str, *, word: str = "line") -> ValueError:
    """Returns the error for a line, or an item, that a file must not have."""
    return value_error("source", rule, value, remedy, at=f"{word} {number} of {path}")


def parse_lines(file: TextIO, path: Path, column: Wanted) -> Rows:
    """Finds lines of numbers separated by white space, without a header: one column, or several for [n, dims].

    Lines that begin with # are comments. A `column` of "0", "1", ... takes one number of each line.

    Raises:
        ValueError: A line has another number of columns than the first, or the column does not exist.
    """
    rows = ((number, words) for number, words in split_words(file) if not words[0].startswith("#"))
    for first in rows:
        rows = itertools.chain([first], rows)
        width = len(first[1])
        picks = [("lengths", itemgetter(dim)) for dim in choose_dimensions(column, width, path)]
        return Rows(check_widths(rows, width, path, NOT_TEXT), picks, {"remedy": _NUMBER})
    return Rows(rows, [], {})


def split_words(file: TextIO) -> Numbered:
    return ((number, words) for number, line in enumerate(file, start=1) if (words := _WORDS.findall(line)))


def check_widths(rows: Numbered, width: int, path: Path, remedy: str = _REPAIR) -> Numbered:
    """Yields the rows; refuses one of another width."""
    for line, row in rows:
        if len(row) != width:
            raise line_error(f"{width} column{'s' * (width > 1)} on every line", row, line, path, remedy)
        yield line, row


def parse_table(file: TextIO, path: Path, column: Wanted, mark: str = "") -> Rows:
    """Finds the rows of a table. Its first line is the header, unless the columns are given by number, as "1".

    A manifest of fairseq has a folder in its first line, and then lines of a path and its samples.

    Args:
        file: The file.
        path: Its path.
        column: The wanted columns.
        mark: The separator; by default, it is found in the first lines.

    Raises:
        ValueError: The first line has numbers, and so seems to be data. The column does not exist. A row is wider or
            narrower than the header. Or quotes are broken.
    """
    rows = _split_cells(file, path, mark)
    line, first = next(((line, row) for line, row in rows if any(map(str.strip, row))), (0, []))
    header, second = [cell.strip() for cell in first], list(itertools.islice(rows, 1))
    records, at = itertools.chain(second, rows), f"line {line} of {path}"
    cells = second[0][1] if second and len(header) == 1 and re.search(r"[/\\]|^\.{1,2}$", header[0]) else []
    if len(cells) > 1 and is_number(cells[-1]):
        header = ["path", *(str(number) for number in range(1, len(cells) - 1)), "samples"]
        names = choose_columns(column, header, at=at, default=["samples"])
    elif column and _are_numbers(column, header):
        header, records = [str(number) for number in range(len(header))], itertools.chain([(line, first)], records)
        names = choose_columns(column, header, at=at)
    else:
        names = _choose_names(column, header, at) if header else []
    picks = [(name, itemgetter(*map(header.index, split_sum(name, header)))) for name in names]
    # One column of texts without a name may have no header.
    kind = "untyped" if len(names) > 1 else "numbers" if column else "unnamed"
    return Rows(check_widths(records, len(header), path), picks, {"kind": kind})


def _are_numbers(column: Wanted, header: list[str]) -> bool:
    """Tells if columns are given by number, so that there is no header; not if they are named 0, 1, 2, ...

    >>> _are_numbers("1", ["so it begins", "3"]), _are_numbers("1", ["", "0", "1"])
    (True, False)
    """
    names = [name for name in header if name]
    parts = [part for name in split_names(column or (), header) for part in split_sum(name, header)]
    return all(map(str.isdecimal, parts)) and names != [str(number) for number in range(len(names))]


def _split_cells(file: TextIO, path: Path, mark: str) -> Numbered:
    """Yields the cells of each line that is not empty."""
    csv.field_size_limit(_WIDEST)  # for the whole process: cells may have transcripts of more than 131,072 characters
    # Reads two lines to find the separator, and then puts them back, with the empty lines above them.
    head = [file.readline()]
    while head[-1].isspace():
        head.append(file.readline())
    head.append(file.readline())
    mark = "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else mark
    delimiter = mark or _delimiter(*head[-2:])
    # A transcript in a .tsv may have a lone quote, which would join all rows up to the next quote. For .csv, strict
    # makes an open quote an error instead of one long last cell.
    quotes: dict[str, Any] = {"quoting": csv.QUOTE_NONE} if mark or delimiter == "|" else {"strict": True}
    reader = csv.reader(itertools.chain(head, file), delimiter=delimiter, **quotes)
    try:
        yield from ((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        raise line_error("a table that can be read", str(error), reader.line_num, path, "Repair the line.") from error


def _delimiter(first: str, second: str) -> str:
    """Returns the separator of a table, outside of quotes; a pipe only if both lines have equally many.

    >>> _delimiter('id;"length, in frames"', "a;3"), _delimiter("LJ001|in being|in being", "LJ002|so, it|so, it")
    (';', '|')
    """
    if first.count("|") == second.count("|") > 0:
        return "|"
    bare = re.sub(r'"[^"]*("|$)', "", first)
    return next((mark for mark in ",;\t" if mark in bare), ",")


def _choose_names(column: Wanted, header: list[str], at: str) -> list[str]:
    """Returns the names to read, as `choose_columns`; refuses a header of numbers."""
    names = [name for name in header if not is_number(name)]
    # A header "12, 7" is most likely the first row, and would be lost. It is allowed if all wanted names are words.
    if len(names) < len(header) and not (column and set(split_names(column, header)) <= set(names)):
        remedy = (
            'Put a line with their names, not numbers, above it; or, if it is a record, give numbers, as column="0".'
        )
        raise value_error("source", "a table with a header", header, remedy, at=at)
    return choose_columns(column, header, at=at)


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
    # A list in the only record may be a column of lengths, and not one sequence; several fields, lengths by their id.
    is_alone = len(head) == 1 and word == "line" and _is_document(path)
    if is_alone and column is None and not known and len(fields) > 1:
        remedy = "Write an array, as [310, 87]; if it is one sequence, name its column."
        raise line_error("an array of numbers or objects", record, number, path, remedy)
    fixed = isinstance(column, tuple)  # later files may lack a field
    names = list(column) if fixed else choose_columns(column, fields, at=at, nested=True, default=known)
    unit = _KNOWN_UNITS[known[0]] if known and column is None else "unknown"
    for name, cell in [(name, pick(name, record)) for name in names if is_alone]:
        if isinstance(cell, list | dict):
            remedy = "Give one record or number for each sequence, as [5, 6]; if the list is one sequence, name the "
            raise value_error(name, "a number in the only record of a .json file", cell, f"{remedy}file .jsonl.", at=at)
    return Rows(itertools.chain(head, rows), [(name, partial(pick, name)) for name in names], {"unit": unit}, word)


def pick(name: str, record: dict[str, Any]) -> Any:
    """Returns a field of a record, which may be nested; the parts of a sum; or, if one is absent, the error to raise.

    >>> pick("supervisions.0.duration", {"supervisions": [{"duration": 1.5}]})
    1.5
    """
    try:
        if name in record:  # {"a.b": 5} comes before {"a": {"b": 5}}
            return record[name]
        if "+" in name and len(parts := split_sum(name, list(record))) > 1:
            cells = tuple(pick(part, record) for part in parts)
            return next((cell for cell in cells if isinstance(cell, KeyError)), cells)
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
            raise line_error("JSON objects or numbers", value, number, path, _ONE_EACH, word=word)


def _items(first: str, later_lines: str, start: int, path: Path) -> list[Any]:
    """Returns the items of one array; refuses one array a line, which may be the tokens of a sequence."""
    try:
        items = json.loads(first)
    except (ValueError, RecursionError):
        return _loads(first + later_lines, start, path)
    if later_lines.strip() or not (_is_document(path) or all(isinstance(item, dict) for item in items)):
        remedy = f"{_ONE_EACH[:-1]}; if the file is one array of lengths, name it .json."
        raise line_error("JSON objects or numbers", items, start, path, remedy)
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
        line = text.split("\n")[error.lineno - 1].strip()
        raise line_error("valid JSON", line, number + error.lineno - 1, path, remedy) from error
    except (RecursionError, ValueError) as error:  # hundreds of levels; a number of thousands of digits
        raise line_error("valid JSON", text, number, path, "Drop it.") from error

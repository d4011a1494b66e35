"""Text files, also as .gz: lines of numbers, lines of one value, and tables with a header.

In a .tsv, quotes have no meaning. A .csv is split at commas, or, if its header has none, at semicolons or tabs.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO

from lengthwise.checks import brief, source_error, value_error
from lengthwise.lengths.cells import is_number, parse_numbers
from lengthwise.lengths.columns import Column, Unit, Wanted, choose_columns, choose_dimensions, split_names

Opener = Callable[..., Any] | None  # opens a file for reading bytes, as `open(path, "rb")`; None for a file on a disk
Parts = Iterator[list[Column]]
Parse = Callable[[TextIO, Path], Iterable[tuple[int, Any]]]  # yields the number of a line, and the value on it

_REPAIR_LINE = "Repair or drop the line."
_LINES_OF_TEXT = "For lines of text, give `count` (on the command line: --count words)."
_NUMBERS_REMEDY = (
    "Put a number there. Lines of `id value` are read from files named utt2num_frames or utt2dur, tables with a header "
    "from .csv and .tsv."
)
_WORDS = re.compile(r"[^ \t\r\n]+")  # str.split would also split "1\xa0234", a number with a no-break space
_WIDEST = 2**31 - 1  # characters of a cell: the limit of csv on every system


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


def split_rows(
    rows: Iterable[tuple[int, Any]],
    picks: Sequence[tuple[str, Callable[[Any], Any]]],
    path: Path,
    size: int | None,
    *,
    word: str = "line",
    **fields: Any,
) -> Parts:
    """Yields the columns of `size` rows at a time; None takes all rows at once.

    Args:
        rows: The number of each row in its file, and the row.
        picks: The name of each column, and the function that takes its cell from a row.
        path: The file.
        size: The most rows of a part.
        word: The word for a row in an error: "line 8 of train.csv".
        fields: Other fields of the columns.
    """
    rows = iter(rows)
    while True:
        columns: list[list[Any]] = [[] for _ in picks]
        # Bound methods, because the loop below runs for millions of rows.
        adds = [(cells.append, pick) for cells, (_, pick) in zip(columns, picks, strict=True)]
        lines = list[int]()
        for line, row in itertools.islice(rows, size):
            lines.append(line)
            for add, pick in adds:
                add(pick(row))
        if not lines:
            return
        place = _line_place(lines, word, path)
        yield [
            Column(name=name, values=cells, place=place, **fields)
            for cells, (name, _) in zip(columns, picks, strict=True)
        ]


def _line_place(lines: Sequence[int], word: str, path: Path) -> Callable[[int], str]:
    return lambda row: f"{word} {lines[row]} of {path}"


def read_numbers(path: Path, column: Wanted, size: int | None = None, opener: Opener = None) -> Parts:
    """Reads lines of numbers separated by white space, without a header: one column, or several for [n, dims].

    Args:
        path: The file. Lines that begin with # are comments.
        column: "0", "1", ... for one column only.
        size: The most rows of a part.
        opener: Opens the file.

    Raises:
        ValueError: A text is not a number, a line has another number of columns than the first, or the column does not
            exist.
    """
    with open_text(path, opener) as file:
        rows = _split_words(file, path)
        first = next(rows, None)
        if first is None:
            return
        picks = [("lengths", itemgetter(dim)) for dim in choose_dimensions(column, len(first[1]), path)]
        for columns in split_rows(itertools.chain([first], rows), picks, path, size):
            yield [replace(cells, values=parse_numbers(cells, remedy=_NUMBERS_REMEDY)) for cells in columns]


def read_values(
    parse: Parse, name: str, unit: Unit, path: Path, column: Wanted, size: int | None = None, opener: Opener = None
) -> Parts:
    """Reads a format of one column, `name`, whose values `parse` finds.

    Raises:
        ValueError: A `column` is given. Or `parse` raises.
    """
    if isinstance(column, str):
        remedy = f"It does not apply to {path}, which has one column."
        raise value_error("column", "left out here", column, remedy)
    with open_text(path, opener) as file:
        yield from split_rows(parse(file, path), [(name, lambda value: value)], path, size, unit=unit)


def text_lines(file: TextIO, _: Path) -> Iterator[tuple[int, str]]:
    """Yields the text of each line."""
    return ((number, line.rstrip("\r\n")) for number, line in enumerate(file, start=1))


def kaldi_values(file: TextIO, path: Path) -> Iterator[tuple[int, str]]:
    """Yields the value on each line of `id value`."""
    return ((number, words[1]) for number, words in _split_words(file, path, 2))


def _split_words(file: TextIO, path: Path, width: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Yields the words of each line, `width` of them. If that is 0, the first line decides, and # begins a comment."""
    comment = "" if width else "#"
    for number, line in enumerate(file, start=1):
        words = _WORDS.findall(line)
        if not words or (comment and words[0].startswith(comment)):
            continue
        width = width or len(words)
        if len(words) != width:
            rule, at = f"{width} column{'s' * (width > 1)} on every line", f"line {number} of {path}"
            raise value_error("source", rule, line.strip(), f"{_REPAIR_LINE} {_LINES_OF_TEXT}", at=at)
        yield number, words


def read_table(path: Path, column: Wanted, size: int | None = None, opener: Opener = None) -> Parts:
    """Reads the named columns of a .csv or .tsv file with a header line.

    Args:
        path: The file; .tsv and .tsv.gz are split at tabs.
        column: A name, or several separated by commas; None for the only column.
        size: The most rows of a part.
        opener: Opens the file.

    Raises:
        ValueError: The first line has numbers, and so seems to be data. The column does not exist. A row is wider or
            narrower than the header. Or quotes are broken.
    """
    csv.field_size_limit(_WIDEST)  # for the whole process: cells may have transcripts of more than 131,072 characters
    with open_text(path, opener) as file:
        reader = _reader(file, path)
        try:
            header = next(filter(any, ([name.strip() for name in row] for row in reader)), [])
            names = _choose_names(column, header, f"line {reader.line_num} of {path}") if header else []
            picks = [(name, itemgetter(header.index(name))) for name in names]
            kind = "untyped" if len(names) > 1 else "numbers"
            yield from split_rows(_check_widths(reader, len(header), path), picks, path, size, kind=kind)
        except csv.Error as error:
            at = f"line {reader.line_num} of {path}"
            raise value_error("source", "a table that can be read", str(error), "Repair the line.", at=at) from error


def _reader(file: TextIO, path: Path) -> Any:
    # A transcript in a .tsv may have a lone quote, which would join all rows up to the next quote. For .csv, strict
    # makes an open quote an error instead of one long last cell.
    if path.name.lower().endswith((".tsv", ".tsv.gz")):
        return csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    # Reads the header to find its separator, and then puts it back, with the empty lines above it.
    head = list[str]()
    for line in file:
        head.append(line)
        if line.strip():
            break
    return csv.reader(itertools.chain(head, file), delimiter=_delimiter(head[-1] if head else ""), strict=True)


def _delimiter(header: str) -> str:
    """Returns the separator of a header line, outside of quotes.

    >>> _delimiter('id;"length, in frames"')
    ';'
    """
    bare = re.sub(r'"[^"]*("|$)', "", header)
    return next((mark for mark in ",;\t" if mark in bare), ",")


def _choose_names(column: Wanted, header: list[str], at: str) -> list[str]:
    """Returns the names to read, as `choose_columns`; refuses a header of numbers."""
    names = [name for name in header if not is_number(name)]
    # A header "12, 7" is most likely the first row, and would be lost. It is allowed if all wanted names are words.
    if len(names) < len(header) and not (column and set(split_names(column, header)) <= set(names)):
        remedy = "Put a line with the names of the columns above it, or rename columns that are named by numbers."
        raise value_error("source", "a table with a header", header, remedy, at=at)
    return choose_columns(column, header, at=at)


def _check_widths(reader: Any, width: int, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows with their lines; refuses a row of another width than the header."""
    for row in reader:
        if len(row) == width:
            yield reader.line_num, row
        elif row:  # an empty line is not a row
            rule = f"{width} column{'s' * (width > 1)} on every line, as in the header"
            raise value_error("source", rule, row, _REPAIR_LINE, at=f"line {reader.line_num} of {path}")

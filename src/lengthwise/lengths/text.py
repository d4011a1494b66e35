"""Text files, also as .gz: plain columns of numbers, Kaldi's tables of `id value` lines, and tables with a header.

In a .tsv, quotes have no meaning. A .csv is split at commas, or, if its header has none, at semicolons or tabs.
"""

from __future__ import annotations

import csv
import functools
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from lengthwise.checks import brief, source_error, value_error
from lengthwise.lengths.cells import TextCount, column_of_cells, is_number, parse_numbers
from lengthwise.lengths.columns import Column, Unit, choose_columns, choose_dimensions, split_names
from lengthwise.lengths.rules import Place

# Kaldi's tables have no column names.
KALDI_UNITS: dict[str, Unit] = {"utt2num_frames": "counts", "utt2dur": "seconds"}

_REPAIR_LINE = "Repair or drop the line."
_LINES_OF_TEXT = "For lines of text, give `count` (on the command line: --count words)."
_WORDS = re.compile(r"[^ \t\r\n]+")  # str.split would also split "1\xa0234", a number with a no-break space
_WIDEST = 2**31 - 1  # characters of a cell: the limit of csv on every system


@contextmanager
def open_text(path: Path, opener: Callable[..., Any] = open) -> Iterator[TextIO]:
    """Opens UTF-8 text, and unpacks a .gz file.

    Args:
        path: The file.
        opener: Opens the file for reading bytes, as `open(path, "rb")`; for example the `open` of an object store.

    Raises:
        ValueError: A line is not UTF-8, or the gzip file is damaged or ends early.
    """
    try:
        # "utf-8-sig" skips the byte order mark of spreadsheets. csv needs the original line ends.
        with opener(path, "rb") as raw:
            content = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            with io.TextIOWrapper(content, encoding="utf-8-sig", newline="") as file:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise source_error("a whole gzip file", path, f"Write it again ({brief(error)}).") from error
    except UnicodeDecodeError as error:
        remedy = "Save it as UTF-8, or correct its suffix."
        snippet = error.object[max(error.start - 20, 0) : error.start + 20]
        raise value_error("source", "UTF-8 text", snippet, remedy, at=str(path)) from error


def read_plain(path: Path, column: str | None = None) -> list[Column]:
    """Reads lines of numbers separated by white space, without a header: one column, or several for [n, dims].

    Args:
        path: The file. Lines that begin with # are comments.
        column: "0", "1", ... for one column only.

    Raises:
        ValueError: A text is not a number, a line has another number of columns than the first, or the column does not
            exist.
    """
    words, width, place = _read_words(path, None)
    remedy = (
        "Put a number there. Lines of `id value` are read from files named utt2num_frames or utt2dur, tables with a "
        "header from .csv and .tsv."
    )
    # `words` joins all lines: in lines of 3, the second column has the words 1, 4, 7, ...
    return [
        Column(
            name="lengths",
            values=parse_numbers(words[dim::width], name="lengths", place=place, remedy=remedy),
            place=place,
        )
        for dim in choose_dimensions(column, width, path)
    ]


def read_lines(path: Path, count: TextCount) -> list[Column]:
    """Counts the text on each line."""
    with open_text(path) as file:
        texts = [line.rstrip("\r\n") for line in file]
    place = _line_place(range(1, len(texts) + 1), path)
    return [Column(name="lines", values=count(texts), place=place, unit="counts", kind="texts")]


def read_kaldi(path: Path) -> list[Column]:
    """Reads lines of `id value`: utt2num_frames in frames, utt2dur in seconds."""
    name = kaldi_name(path)
    words, _, place = _read_words(path, 2)
    values = parse_numbers(words[1::2], name=name, place=place)
    return [Column(name=name, values=values, place=place, unit=KALDI_UNITS[name])]


def kaldi_name(path: Path) -> str:
    """Returns the file's name up to its first dot if this is the name of a table of Kaldi, else "".

    >>> kaldi_name(Path("data/train/utt2num_frames.1.gz"))
    'utt2num_frames'
    """
    stem = path.name.partition(".")[0]
    return stem if stem in KALDI_UNITS else ""


def _read_words(path: Path, width: int | None) -> tuple[list[str], int, Place]:
    """Returns all words in one list, the number of words on each line, and the places of the lines.

    If `width` is None, the first line decides it, and lines that begin with # are skipped.
    """
    words: list[str] = []
    lines: list[int] = []
    comments = width is None
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            line_words = _WORDS.findall(line)
            if not line_words or (comments and line_words[0].startswith("#")):
                continue
            width = width or len(line_words)
            if len(line_words) != width:
                rule, at = f"{width} column{'s' * (width > 1)} on every line", f"line {number} of {path}"
                raise value_error("source", rule, line.strip(), f"{_REPAIR_LINE} {_LINES_OF_TEXT}", at=at)
            words += line_words
            lines.append(number)
    return words, width or 1, _line_place(lines, path)


def _line_place(lines: Sequence[int], path: Path) -> Place:
    """Returns a function that names the line of row k."""
    return lambda row: f"line {lines[row]} of {path}"


def read_table(path: Path, column: str | None, count: TextCount | None = None) -> list[Column]:
    """Reads the named columns of a .csv or .tsv file with a header line.

    Args:
        path: The file; .tsv and .tsv.gz are split at tabs.
        column: A name, or several separated by commas; None for the only column.
        count: The function that counts texts, or None.

    Raises:
        ValueError: The first line has numbers, and so seems to be data. The column does not exist. A row is wider or
            narrower than the header. Quotes are broken. Or a text is not a number.
    """
    for names, texts, place in iterate_table(path, functools.partial(choose_names, column)):
        return [
            column_of_cells(name, cells, place, count, in_table=len(names) > 1)
            for name, cells in zip(names, texts, strict=True)
        ]
    return []


def iterate_table(
    path: Path,
    choose: Callable[[list[str], str], list[str]],
    size: int | None = None,
    opener: Callable[..., Any] = open,
) -> Iterator[tuple[list[str], list[list[str]], Place]]:
    """Yields the names of the columns, their cells, and their places, for `size` rows at a time.

    Args:
        path: The file.
        choose: Takes the names in the header and its place, and returns the names to read.
        size: The rows to read at once; None reads all.
        opener: Opens the file for reading bytes, as `open(path, "rb")`.

    Raises:
        ValueError: As `read_table`, except for the numbers.
    """
    csv.field_size_limit(_WIDEST)  # for the whole process: cells may have transcripts of more than 131,072 characters
    with open_text(path, opener) as file:
        reader = _reader(file, path)
        try:
            header = next(filter(any, ([name.strip() for name in row] for row in reader)), [])
            names = choose(header, f"line {reader.line_num} of {path}") if header else []
            indices = [header.index(name) for name in names]
            while header:
                texts, lines = _pick(reader, indices, len(header), path, size)
                yield names, texts, _line_place(lines, path)
                if len(lines) != size:
                    return
        except csv.Error as error:
            at = f"line {reader.line_num} of {path}"
            raise value_error("source", "a table that can be read", str(error), "Repair the line.", at=at) from error


def _reader(file: Any, path: Path) -> Any:
    # A transcript in a .tsv may have a lone quote, which would join all rows up to the next quote. For .csv, strict
    # makes an open quote an error instead of one long last cell.
    if path.name.lower().endswith((".tsv", ".tsv.gz")):
        return csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    # Reads the header to find its separator, and then puts it back.
    head = list(_through_header(file))
    return csv.reader(itertools.chain(head, file), delimiter=_delimiter(head[-1]) if head else ",", strict=True)


def _through_header(file: Iterable[str]) -> Iterator[str]:
    """Yields the empty lines at the beginning, and the header line."""
    for line in file:
        yield line
        if line.strip():
            return


def _delimiter(header: str) -> str:
    """Returns the separator of a header line, outside of quotes.

    >>> _delimiter('id;"length, in frames"')
    ';'
    """
    bare = re.sub(r'"[^"]*("|$)', "", header)
    return next((mark for mark in ",;\t" if mark in bare), ",")


def choose_names(column: str | None, header: list[str], at: str) -> list[str]:
    """Returns the names to read, as `choose_columns`; refuses a header of numbers."""
    names = [name for name in header if not is_number(name)]
    # A header "12, 7" is most likely the first row, and would be lost. It is allowed if all wanted names are words.
    if len(names) < len(header) and not (column and set(split_names(column, header)) <= set(names)):
        remedy = "Put a line with the names of the columns above it, or rename columns that are named by numbers."
        raise value_error("source", "a table with a header", header, remedy, at=at)
    return choose_columns(column, header, at=at)


def _pick(
    reader: Any, indices: Sequence[int], width: int, path: Path, size: int | None
) -> tuple[list[list[str]], list[int]]:
    texts: list[list[str]] = [[] for _ in indices]
    # Bound methods, because the loop below runs for millions of rows.
    picks = [(cells.append, index) for cells, index in zip(texts, indices, strict=True)]
    lines: list[int] = []
    for row in reader:
        if len(row) != width:
            # An empty line is not a row.
            if not row:
                continue
            rule = f"{width} column{'s' * (width > 1)} on every line, as in the header"
            raise value_error("source", rule, row, _REPAIR_LINE, at=f"line {reader.line_num} of {path}")
        for append, index in picks:
            append(row[index])
        lines.append(reader.line_num)
        if len(lines) == size:
            break
    return texts, lines

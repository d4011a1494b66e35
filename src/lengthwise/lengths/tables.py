"""Tables with a header: .csv, and .tsv in which quotes mean nothing; both also as .gz.

The columns of a .csv are separated by commas; where its header has none, by semicolons, or by tabs.
"""

from __future__ import annotations

import csv
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lengthwise.checks import value_error
from lengthwise.lengths.columns import Column, choose_columns, is_number, read_cells, select_columns
from lengthwise.lengths.counts import TextCount
from lengthwise.lengths.rules import Place
from lengthwise.lengths.text import line_place, open_text

_WIDEST = 2**31 - 1  # characters of a cell: the most that csv takes on every system


def read_table(path: Path, column: str | None, count: TextCount | None = None) -> list[Column]:
    """Reads the named columns of a .csv or .tsv file with a header line.

    Args:
        path: The file; .tsv before a .gz decides for tabs.
        column: A name, several separated by commas, or None where there is one column only.
        count: What is counted of texts.

    Raises:
        ValueError: A first line that seems to be data, because a column wanted is not a name in it but a number, or
            absent beside numbers; no such column, a row wider or narrower than the header, broken quotes, text for
            a number.
    """
    for names, texts, place in iterate_table(path, functools.partial(choose_names, column)):
        return [
            read_cells(cells, name=name, place=place, count=count, alone=len(names) == 1)
            for name, cells in zip(names, texts, strict=True)
        ]
    return []


def iterate_table(
    path: Path,
    choose: Callable[[list[str], str], list[str]],
    size: int | None = None,
    opener: Callable[..., Any] = open,
) -> Iterator[tuple[list[str], list[list[str]], Place]]:
    """Yields the names of the columns, the cells of each, and where a row stands: of `size` rows after another, or all.

    Args:
        path: The file.
        choose: Takes the names in the header, and where it stands; returns those of the columns to read.
        size: Rows that are read at once; None reads all.
        opener: Opens the file for reading bytes, as `open(path, "rb")` does.

    Raises:
        ValueError: As `read_table` does, for all but the numbers.
    """
    csv.field_size_limit(_WIDEST)  # of the whole process: cells may hold transcripts of more than 131,072 characters
    with open_text(path, opener) as file:
        reader = _reader(file, path)
        try:
            header = next(filter(any, ([name.strip() for name in row] for row in reader)), [])
            names = choose(header, f"line {reader.line_num} of {path}") if header else []
            # Of all columns, also those whose names stand twice; chosen names stand once.
            indices = range(len(header)) if names is header else [header.index(name) for name in names]
            while header:
                texts, lines = _pick(reader, indices, len(header), path, size)
                yield names, texts, line_place(lines, path)
                if len(lines) != size:
                    return
        except csv.Error as error:
            at = f"line {reader.line_num} of {path}"
            raise value_error("source", "a table that can be read", str(error), "Repair the line.", at=at) from error


def _reader(file: Any, path: Path) -> Any:
    # Speech .tsv files carry lone quotes in their transcripts, which would swallow the rows up to the next quote;
    # for .csv, strict makes an open quote at the end an error instead of one long last cell.
    if path.name.lower().endswith((".tsv", ".tsv.gz")):
        return csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    # Read ahead to see what separates the names, and then put back before the rest.
    head = list(_through_header(file))
    return csv.reader(itertools.chain(head, file), delimiter=_delimiter(head[-1]) if head else ",", strict=True)


def _through_header(file: Iterable[str]) -> Iterator[str]:
    """Yields the empty lines at the beginning, and the header."""
    for line in file:
        yield line
        if line.strip():
            return


def _delimiter(header: str) -> str:
    """Finds what separates the names of a header line, outside of quotes.

    >>> _delimiter('id;"length, in frames"')
    ';'
    """
    bare = re.sub(r'"[^"]*("|$)', "", header)
    return next((mark for mark in ",;\t" if mark in bare), ",")


def choose_names(column: str | None, header: list[str], at: str) -> list[str]:
    """Finds which columns of a header are meant, as `choose_columns`; refuses a header of numbers."""
    names = [name for name in header if not is_number(name)]
    # A header of "12, 7" is most likely the first row, and would be lost. Names in words can be meant beside numbers.
    if len(names) < len(header) and not (column and set(select_columns(column, header)) <= set(names)):
        remedy = "Put a line with the names of the columns above it, or name by words what is named by numbers."
        raise value_error("source", "a table with a header", header, remedy, at=at)
    return choose_columns(column, header, at=at)


def _pick(
    reader: Any, indices: Sequence[int], width: int, path: Path, size: int | None
) -> tuple[list[list[str]], list[int]]:
    texts: list[list[str]] = [[] for _ in indices]
    # Bound once: the loop below runs for each of millions of rows.
    picks = [(cells.append, index) for cells, index in zip(texts, indices, strict=True)]
    lines: list[int] = []
    for row in reader:
        if len(row) != width:
            # An empty line is no row, wherever it stands.
            if not row:
                continue
            rule = f"{width} column{'s' * (width > 1)} on every line, as in the header"
            at = f"line {reader.line_num} of {path}"
            raise value_error("source", rule, row, "Repair or drop the line.", at=at)
        for append, index in picks:
            append(row[index])
        lines.append(reader.line_num)
        if len(lines) == size:
            break
    return texts, lines

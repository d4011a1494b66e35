"""Text formats with one value for each sequence: lines of text, tables of Kaldi and ESPnet, FASTA and FASTQ.

Each function yields the number of a line, and the value that begins there: a number, or a text to count.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from lengthwise.checks import value_error
from lengthwise.lengths.cells import is_number
from lengthwise.lengths.columns import Kind, Unit, Wanted
from lengthwise.lengths.text import NOT_TEXT, Numbered, Rows, check_widths, split_words

# As utt1, 84-121123-0000 and spk_a, and unlike most words that begin a sentence. A number before a text is no id.
_ID = re.compile(r"(?![\d.]+\s)\S*[\d_-]")


def one_column(
    name: str, unit: Unit, values: Callable[[TextIO, Path], Numbered], kind: Kind = "untyped"
) -> Callable[..., Rows]:
    """Returns the function that finds the rows of a format of one column; `read_text` takes it.

    Args:
        name: The name of the column.
        unit: The unit of its values.
        values: The function that yields the values of an open file; it takes the path, too.
        kind: "untyped" for numbers, "numbers" for texts that need `count`, "texts" for those that are always counted.
    """

    def parse(file: TextIO, path: Path, column: Wanted) -> Rows:
        if isinstance(column, str):
            raise value_error("column", "left out here", column, f"It does not apply to {path}, which has one column.")
        return Rows(values(file, path), [(name, lambda value: value)], {"unit": unit, "kind": kind})

    return parse


def text_lines(file: TextIO, _: Path) -> Numbered:
    """Yields the text of each line."""
    return ((number, line.rstrip("\r\n")) for number, line in enumerate(file, start=1))


def kaldi_values(file: TextIO, path: Path) -> Numbered:
    """Yields the value on each line of `id value`."""
    return ((number, words[1]) for number, words in check_widths(split_words(file), 2, path, NOT_TEXT))


def espnet_shapes(file: TextIO, path: Path) -> Numbered:
    """Yields the first number of the shape on each line, as 1234 of `id 1234,80`."""
    return ((number, value.partition(",")[0]) for number, value in kaldi_values(file, path))


def kaldi_segments(file: TextIO, path: Path) -> Numbered:
    """Yields the seconds on each line of `id recording start end`, to eight decimals; or a time that is no number."""
    for number, (_, _, start, end) in check_widths(split_words(file), 4, path):
        bad = [time for time in (start, end) if not is_number(time)]
        yield number, bad[0] if bad else round(float(end) - float(start), 8)


def kaldi_texts(file: TextIO, path: Path) -> Numbered:
    """Yields the text on each line of `id text`; refuses a line without a new id."""
    ids = set[str]()
    for number, line in enumerate(file, start=1):
        name, *text = line.split(maxsplit=1) or [""]
        if not _ID.match(name) or name in ids:
            remedy = "Repair or drop the line; if the file has texts alone, name it .txt."
            raise value_error("source", "an id and a text on every line", line, remedy, at=f"line {number} of {path}")
        ids.add(name)
        yield number, "".join(text).rstrip()


def has_ids(lines: Sequence[str]) -> bool:
    """Tells if lines of texts begin with ids, each another one.

    >>> has_ids(["utt1 so it begins", "utt2 and ends"]), has_ids(["2 cats", "2 dogs"]), has_ids(["C1CC1", "C1CCC1"])
    (True, False, False)
    """
    names = {line.split()[0] for line in lines if _ID.match(line)}
    return len(names) == len(lines) and any(" " in line for line in lines)


def fasta_texts(file: TextIO, path: Path) -> Numbered:
    """Yields the letters below each line that begins with `>`; lines that begin with `;` are comments."""
    start, letters = 0, list[str]()
    for number, line in enumerate(itertools.chain(file, ">"), start=1):
        if line.startswith(">"):
            if start:
                yield start, "".join(letters)
            start, letters = number, []
        elif line.strip() and not line.startswith(";"):
            if not start:
                remedy = "If these are lines of text, name the file .txt."
                raise value_error("source", "FASTA, which begins with >", line, remedy, at=f"line {number} of {path}")
            letters += line.split()


def fastq_texts(file: TextIO, path: Path) -> Numbered:
    """Yields the bases of each record of four lines; refuses other records."""
    lines = ((number, line.strip()) for number, line in enumerate(file, start=1))
    for number, head in lines:
        record = [head, *(line for _, line in itertools.islice(lines, 3))]
        if [line[:1] for line in record[::2]] != ["@", "+"] or list(map(len, record[1::2])) != 2 * [len(record[1])]:
            remedy = "Write a record on four lines: @name, bases, +, as many qualities."
            raise value_error("source", "FASTQ", head, remedy, at=f"line {number} of {path}")
        yield number, record[1]

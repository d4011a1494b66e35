"""Text files: plain columns of numbers, and Kaldi's tables of `id value` lines; all of them also as .gz."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from lengthwise.checks import brief, source_error, value_error
from lengthwise.lengths.columns import Column, Unit, choose_dimensions, parse_numbers
from lengthwise.lengths.rules import Place

# Kaldi names the file, not the column. reco2dur and reco2num_frames are the same for whole recordings.
_KALDI_UNITS: dict[str, Unit] = {
    "utt2num_frames": "counts",
    "reco2num_frames": "counts",
    "utt2dur": "seconds",
    "reco2dur": "seconds",
}

KALDI_FILES = ("utt2num_frames", "utt2dur")  # of a data folder, the first that is there

_WORDS = re.compile(r"[^ \t\r\n]+")  # str.split would also part "1\xa0234", one number with a space that does not break


@contextmanager
def open_text(path: Path, opener: Callable[..., Any] = open) -> Iterator[TextIO]:
    """Opens UTF-8 text, gzip by its suffix, and says in one sentence what is wrong with its bytes.

    Args:
        path: The file.
        opener: Opens it for reading bytes, as `open(path, "rb")` does; that of a store of objects, for example.

    Raises:
        ValueError: When a line that is read is not UTF-8, or the gzip file is damaged or ends early.
    """
    try:
        # Spreadsheets begin files with a byte order mark, which "utf-8-sig" skips. csv wants line ends as they are.
        with opener(path, "rb") as raw:
            content = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            with io.TextIOWrapper(content, encoding="utf-8-sig", newline="") as file:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise source_error("a whole gzip file", path, f"Write it anew ({brief(error)}).") from error
    except UnicodeDecodeError as error:
        remedy = "Save it as UTF-8, or give it the suffix of what it is."
        bad = error.object[max(error.start - 20, 0) : error.start + 20]
        raise value_error("source", "UTF-8 text", bad, remedy, at=str(path)) from error


def read_plain(path: Path, column: str | None = None) -> list[Column]:
    """Reads lines of numbers separated by white space: one column, or several for [n, dims]. No header.

    Args:
        path: The file. Lines that begin with # are comments.
        column: "0", "1", ... for that column alone.

    Raises:
        ValueError: Text for a number, another count of columns than on the first line, or no such column.
    """
    words, width, place = _read_words(path, None, comments=True)
    remedy = (
        "Put a number there; lines of `id value` are read from files named utt2num_frames or utt2dur, tables with a "
        "header from .csv and .tsv."
    )
    return [
        Column(
            name="lengths",
            # Words of all lines in a row: of lines of 3, the second column is words 1, 4, 7, ...
            values=parse_numbers(words[dim::width], name="lengths", place=place, remedy=remedy),
            place=place,
        )
        for dim in choose_dimensions(column, width, path)
    ]


def read_kaldi(path: Path) -> list[Column]:
    """Reads lines of `id value`: utt2num_frames and reco2num_frames in frames, utt2dur and reco2dur in seconds."""
    name = kaldi_name(path)
    words, _, place = _read_words(path, 2)
    values = parse_numbers(words[1::2], name=name, place=place)
    return [Column(name=name, values=values, place=place, unit=_KALDI_UNITS[name])]


def kaldi_file(folder: Path) -> Path | None:
    """Finds the file with the lengths of a Kaldi data folder: utt2num_frames, else utt2dur."""
    return next((folder / name for name in KALDI_FILES if (folder / name).is_file()), None)


def kaldi_name(path: Path) -> str:
    """Returns which of Kaldi's tables a file is by its name before the first dot, as utt2dur.gz; else "".

    >>> kaldi_name(Path("data/train/utt2num_frames.1.gz"))
    'utt2num_frames'
    """
    stem = path.name.partition(".")[0]
    return stem if stem in _KALDI_UNITS else ""


def line_place(lines: Sequence[int], path: Path) -> Place:
    """Says on which line the k-th row stands."""
    return lambda row: f"line {lines[row]} of {path}"


def _read_words(path: Path, width: int | None, *, comments: bool = False) -> tuple[list[str], int, Place]:
    """Returns all words in one list, how many stand on each line (None: as on the first), and where."""
    words: list[str] = []
    lines: list[int] = []
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            found = _WORDS.findall(line)
            if not found or (comments and found[0].startswith("#")):
                continue
            # The first line of words says how many each line has.
            width = width or len(found)
            if len(found) != width:
                rule, at = f"{width} column{'s' * (width > 1)} on every line", f"line {number} of {path}"
                raise value_error("source", rule, line.strip(), "Repair or drop the line.", at=at)
            words += found
            lines.append(number)
    return words, width or 1, line_place(lines, path)

"""The formats of files, in one table, and `read_lengths`.

To add a format, write its line in `FORMATS`, and a function. For a format of text with one value a sequence, the
function yields the number of each line and its value: see `kaldi_values` of `text`. For others it finds the rows and
the columns: see `parse_table`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.lengths import arrow, audio, text
from lengthwise.lengths.arrays import array_columns, as_lengths, read_numpy
from lengthwise.lengths.cells import TextCount, check_counted, check_options
from lengthwise.lengths.columns import Column, Wanted, check_kinds, to_lengths
from lengthwise.lengths.text import Parts, one_column


class Format(NamedTuple):
    """A format of files.

    Attributes:
        name: Its name for people.
        endings: The suffixes of its files; or, without a dot, their names up to the first dot.
        read: The function that yields the columns of a file, part by part. It takes a path, the wanted columns, the
            most rows of a part, and a function that opens the file; see `read_text`.
        is_text: True if files may be packed as .gz.
        is_large: True if `write_lengths` reads it too.
    """

    name: str
    endings: tuple[str, ...]
    read: Callable[..., Parts]
    is_text: bool = True
    is_large: bool = False


def _refuse_audio(path: Path, *_: object) -> Parts:
    raise checks.source_error("a table, an array or a folder of audio files", path, "Give the folder it is in.")


def _refuse_packed(path: Path, *_: object) -> Parts:
    rule = f"a {path.with_suffix('').suffix.lower()} file that is not packed"
    raise checks.source_error(rule, path, f"Unpack it: gunzip {path}.")


FORMATS = (
    Format("NumPy", (".npy", ".npz"), read_numpy, is_text=False),
    Format(
        "Parquet or Arrow", (".parquet", ".pq", ".arrow", ".feather"), arrow.read_arrow, is_text=False, is_large=True
    ),
    Format("CSV or TSV", (".csv", ".tsv"), partial(text.read_text, text.parse_table), is_large=True),
    Format("JSON lines", (".jsonl", ".ndjson"), partial(text.read_text, text.parse_records), is_large=True),
    Format("JSON", (".json",), partial(text.read_text, text.parse_records)),
    Format("frames of Kaldi", ("utt2num_frames",), one_column("utt2num_frames", "counts", text.kaldi_values)),
    Format("durations of Kaldi", ("utt2dur",), one_column("utt2dur", "seconds", text.kaldi_values)),
    Format("audio", audio.AUDIO_SUFFIXES, _refuse_audio, is_text=False),
)
# Files of other names.
NUMBERS = Format("lines of numbers", (), partial(text.read_text, text.parse_lines))
TEXTS = Format("lines of text", (), one_column("lines", "unknown", text.text_lines))
PACKED = Format("packed", (), _refuse_packed)

BY_ENDING = {
    ending + packing: PACKED if packing and not format.is_text else format
    for format in FORMATS
    for ending in format.endings
    for packing in ("", ".gz")
}


def find_format(path: str | PurePath) -> Format:
    """Returns the format of a file, by its name.

    >>> find_format("a.CSV.gz").name, find_format("utt2dur.1").name
    ('CSV or TSV', 'durations of Kaldi')
    """
    name = PurePath(path).name
    suffix = "".join(PurePath(name.lower()).suffixes[-2 if name.lower().endswith(".gz") else -1 :])
    return BY_ENDING.get(suffix) or BY_ENDING.get(name.partition(".")[0], NUMBERS)


def read_lengths(
    source: ArrayLike | str | os.PathLike[str],
    *,
    column: str | None = None,
    frame_shift: float | None = None,
    count: str | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    cache: bool = True,
    progress: bool = False,
) -> NDArray[np.int64]:
    """Reads the length of every sequence, in the order of the source.

    Durations become max(1, round(duration / frame_shift)) frames, with halves rounded up. The common mistake is the
    unit. Without `frame_shift`, fractions and columns in a unit of time raise an error, but other whole numbers are
    taken as lengths.

    Args:
        source: An array [n] or [n, dims], or the path of a file or folder. Text formats may also be .gz.

            - .npy: `column` "0", "1", ... takes one dimension.
            - .csv and .tsv with a header line. A .csv without commas in its header is split at semicolons or tabs.
            - .jsonl, .ndjson and .json: one record a line, or one array.
            - .parquet, .pq, .arrow and .feather.
            - NeMo manifests and Lhotse cuts, recordings and supervisions need no `column`. Their `duration` is in
              seconds: give `frame_shift`. Lhotse features have `num_frames`.
            - Kaldi's utt2num_frames and utt2dur, by the name of the file.
            - Any other file: numbers separated by white space, one line for each sequence. `column` "0", "1", ... takes
              one number of each line. Lines that begin with # are comments. With `count`, the text on each line is
              counted.
            - A folder that `save_to_disk` of Hugging Face `datasets` wrote, with `column`.
            - A folder of audio files, and the folders below it. Lengths are samples, or with `frame_shift` frames.
              Files of different sampling rates need `frame_shift`. `audio_files` lists the files in the order of the
              lengths.
        column: The column or field. Several, as "source,target", give [n, dims]. Nested ones are written as
            "supervisions.0.duration", or "messages.*.content" for all items of a list. A column of lists of numbers
            gives their lengths; other lists are refused. Texts need `count`.
        frame_shift: The shift from one frame to the next, in the unit of the column: 0.01 for seconds, 160 for samples,
            10 for milliseconds. The shift applies to a single column, unless the column has counts. Among several
            columns, the shift applies to those in seconds or milliseconds, to those named duration or dur, and to those
            with fractions. A shift of 1 or more also applies to those in samples. A shift below 1 is in seconds, and is
            refused for a column in another unit, such as duration_ms.
        count: The unit of texts: "characters", "words" or "tokens". Among several columns, those with texts are
            counted. In lists of texts and in chats, all texts are counted.
        tokenizer: The path of a tokenizer.json, for tokens. It needs the package `tokenizers`. Special tokens are
            counted; padding and truncation are turned off.
        cache: For audio folders: if True, keeps the headers in `.lengthwise-cache.json` in the folder.
        progress: For audio folders: if True, shows a progress bar.

    Returns:
        [n] or [n, dims] int64, read-only.

    Raises:
        FileNotFoundError: The file or folder does not exist.
        ModuleNotFoundError: pyarrow, soundfile or tokenizers is needed and not installed.
        ValueError: A value is not a length; the error names its file, line or row. The file is damaged, empty, of
            unknown format, a device or a named pipe. Or an option does not apply.
        TypeError: As `as_lengths`, or `column` is not a text.

    >>> read_lengths([0.5, 1.25], frame_shift=0.01)
    array([ 50, 125])
    """
    frame_shift, counted = check_options(column, frame_shift, count, tokenizer)
    if not isinstance(source, str | os.PathLike):
        _refuse_option("column", column, "an array in memory")
        _refuse_option("count", count, "an array in memory")
        return as_lengths(source) if frame_shift is None else to_lengths(array_columns(source), frame_shift)
    if not os.path.exists(source):
        remedy = "Check the path. Name a column by `column`, on the command line as FILE:COLUMN."
        raise FileNotFoundError(checks.source_sentence("a file or folder that exists", source, remedy))
    path, seconds = Path(source), frame_shift is not None
    if not path.is_dir():
        parts = _read_file(path, column, counted)
    elif arrow.is_saved_dataset(path):
        parts = arrow.read_saved_dataset(path, column)
    else:
        _refuse_option("column", column, f"the folder {path}")
        parts = audio.read_audio_folder(path, seconds=seconds, cache=cache, progress=progress)
    columns = _join_parts(parts, counted)
    # An array in memory may be empty, after a filter. An empty file is more likely the wrong file.
    if not columns or not len(columns[0].values):
        raise checks.source_error("a file with sequences", path, "It has none: is this the right file?")
    check_counted(columns, counted)
    return to_lengths(columns, frame_shift)


def _read_file(path: Path, column: Wanted, count: TextCount | None) -> Parts:
    # Devices and named pipes may never end. A pipe that the shell has opened does, as `<(command)`.
    opened = path.is_fifo() and os.path.realpath(path).startswith(("/proc/", "/dev/fd/"))
    if not (path.is_file() or opened):
        remedy = "Write its output to a file, or on the command line give the command itself: <(command)."
        raise checks.source_error("a file or folder, not a device or a named pipe", path, remedy)
    format = find_format(path)
    return (TEXTS if format is NUMBERS and count is not None else format).read(path, column)


def _join_parts(parts: Parts, count: TextCount | None) -> list[Column]:
    """Counts the cells of each part, and returns the whole columns."""
    counted, kinds = list[list[Column]](), dict[int, str]()
    for part in parts:
        columns = [arrow.count_cells(column, count) for column in part]
        check_kinds(kinds, [(column.name, column.kind) for column in columns], columns[0].place(0))
        counted.append(columns)
    # The places of the first part count on in the later ones.
    wholes = zip(*counted, strict=True)
    return [replace(whole[0], values=np.concatenate([part.values for part in whole])) for whole in wholes]


def split_source(text: str) -> tuple[str, str | None]:
    r"""Splits FILE:COLUMN at its last colon, unless this colon belongs to an existing path or to a drive letter.

    Raises:
        ValueError: There is nothing before or after the colon.

    >>> split_source("train.jsonl:supervisions.0.duration")
    ('train.jsonl', 'supervisions.0.duration')
    >>> split_source(r"C:\data\train.csv")
    ('C:\\data\\train.csv', None)
    """
    colons = [at for at, letter in enumerate(text) if letter == ":"]
    if not colons or os.path.exists(text):
        return text, None
    # "a:b.csv:frames" has the path "a:b.csv", if that file exists.
    existing = [at for at in colons if os.path.exists(text[:at])]
    at = existing[-1] if existing else colons[-1]
    path, column = text[:at], text[at + 1 :]
    # C:\data has a drive letter, and "/tmp:x/lengths" is most likely a misspelt path: neither has a column.
    if not existing and ((len(path) == 1 and path.isalpha()) or "/" in column or "\\" in column):
        return text, None
    if not path or not column:
        raise checks.value_error("source", "FILE or FILE:COLUMN", text, "Name both, or leave out the colon.")
    return path, column


def _refuse_option(name: str, value: object, source: str) -> None:
    if value is not None:
        raise checks.value_error(name, "left out here", value, f"It does not apply to {source}.")

"""Lengths from files and folders: the choice of the reader."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import check_number, check_text, source_error, source_sentence, value_error
from lengthwise.lengths.arrays import array_columns, as_lengths, read_numpy
from lengthwise.lengths.arrow import is_saved_dataset, read_arrow, read_saved_dataset
from lengthwise.lengths.audio import AUDIO_SUFFIXES, read_audio_folder
from lengthwise.lengths.cells import TextCount, check_count, check_counted
from lengthwise.lengths.columns import Column, to_lengths
from lengthwise.lengths.manifests import read_manifest
from lengthwise.lengths.text import kaldi_name, read_kaldi, read_lines, read_plain, read_table

_NUMPY, _ARROW = (".npy", ".npz"), (".parquet", ".pq", ".arrow", ".feather")  # not read as .gz
_OPENED = ("/proc/", "/dev/fd/")  # the real paths of pipes that a shell has opened


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
    if frame_shift is not None:
        frame_shift = check_number("frame_shift", frame_shift, remedy="Give seconds, as 0.01.", above=True)
    counted = check_count(count, tokenizer)
    if not isinstance(source, str | os.PathLike):
        _refuse_option("column", column, "an array in memory")
        _refuse_option("count", count, "an array in memory")
        return as_lengths(source) if frame_shift is None else to_lengths(array_columns(source), frame_shift)
    if column is not None:
        check_text("column", column, remedy='Write a dimension as "0", several columns as "source,target".')
    path = Path(source)
    if not os.path.exists(source):
        remedy = "Check the path. Name a column by `column`, on the command line as FILE:COLUMN."
        raise FileNotFoundError(source_sentence("a file or folder that exists", source, remedy))
    if path.is_dir():
        seconds = frame_shift is not None
        columns = _read_folder(path, column, counted, seconds=seconds, cache=cache, progress=progress)
    else:
        _refuse_devices(path)
        columns = _read_file(path, column, counted)
    # An array in memory may be empty, after a filter. An empty file is more likely the wrong file.
    if not columns or not len(columns[0].values):
        raise source_error("a file with sequences", path, "It has none: is this the right file?")
    check_counted((column.kind == "texts" for column in columns), counted)
    return to_lengths(columns, frame_shift)


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
        raise value_error("source", "FILE or FILE:COLUMN", text, "Name both, or leave out the colon.")
    return path, column


def _read_folder(
    folder: Path, column: str | None, count: TextCount | None, *, seconds: bool, cache: bool, progress: bool
) -> list[Column]:
    if is_saved_dataset(folder):
        return read_saved_dataset(folder, column, count)
    _refuse_option("column", column, f"the folder {folder}")
    return read_audio_folder(folder, seconds=seconds, cache=cache, progress=progress)


def _read_file(path: Path, column: str | None, count: TextCount | None) -> list[Column]:
    # The suffix is the format: .csv for a.CSV and for a.csv.gz.
    suffix = (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()
    if path.suffix == ".gz" and suffix in (*_NUMPY, *_ARROW):
        raise source_error(f"a {suffix} file that is not packed", path, f"Unpack it: gunzip {path}.")
    if suffix in _NUMPY:
        return read_numpy(path, column)
    if suffix in _ARROW:
        return read_arrow([path], column, count, source=path)
    if suffix in (".csv", ".tsv"):
        return read_table(path, column, count)
    if suffix in (".json", ".jsonl", ".ndjson"):
        return read_manifest(path, column, count)
    if suffix in AUDIO_SUFFIXES:
        remedy = "Give the folder it is in."
        raise source_error("a table, an array or a folder of audio files", path, remedy)
    if count is not None:
        _refuse_option("column", column, f"{path}, whose lines are counted")
        return read_lines(path, count)
    if not kaldi_name(path):
        return read_plain(path, column)
    _refuse_option("column", column, f"{path}, which has one column of numbers")
    return read_kaldi(path)


def _refuse_devices(path: Path) -> None:
    """Refuses devices and named pipes, which may never end; allows a pipe of the shell, as `<(command)`."""
    opened = path.is_fifo() and os.path.realpath(path).startswith(_OPENED)
    if not (path.is_file() or opened):
        remedy = "Write its output to a file, or on the command line give the command itself: <(command)."
        raise source_error("a file or folder, not a device or a named pipe", path, remedy)


def _refuse_option(name: str, value: object, source: str) -> None:
    if value is not None:
        raise value_error(name, "left out here", value, f"It does not apply to {source}.")

"""Lengths from files and folders: chooses the reader."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import check_number, check_text, source_error, source_sentence, value_error
from lengthwise.lengths.arrays import array_columns, as_lengths, read_numpy
from lengthwise.lengths.arrow import is_saved_dataset, read_arrow, read_saved_dataset
from lengthwise.lengths.audio import AUDIO_SUFFIXES, has_audio, read_audio_folder
from lengthwise.lengths.cells import TextCount, check_count, check_counted
from lengthwise.lengths.columns import Column, to_lengths
from lengthwise.lengths.manifests import read_manifest
from lengthwise.lengths.text import kaldi_file, kaldi_name, read_kaldi, read_plain, read_table

_NUMPY, _ARROW = (".npy", ".npz"), (".parquet", ".pq", ".arrow", ".feather")  # of which there are none as .gz
_OPENED = ("/proc/", "/dev/fd/")  # where, links followed, the pipes are that a shell has opened


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

    Durations become frames: max(1, duration / frame_shift, rounded half away from zero). What goes wrong in use is
    the unit: whole numbers are taken as lengths, in whatever unit they are; fractions need `frame_shift`.

    Args:
        source: An array, [n] or [n, dims], or the path of one of these; the text formats also as .gz:

            - .npy, of which `column` "0", "1", ... takes one dimension; .npz, of which it names one array;
            - .csv and .tsv with a header line (a .csv without commas in it: semicolons or tabs); .jsonl, .ndjson and
              .json, one record a line or one array; a .json of lengths by name, {"a": 310, "b": 87}; .parquet and .pq;
              .arrow and .feather;
            - known without `column`: NeMo manifests and Lhotse cuts, recordings and supervisions (`duration`, in
              seconds, so give `frame_shift`) and Lhotse features (`num_frames`);
            - Kaldi's utt2num_frames and utt2dur, known by the name of the file;
            - any other file: numbers separated by white space, one line for each sequence, of which `column` takes
              one as of .npy; lines that begin with # are comments;
            - a folder saved by Hugging Face `datasets` with `save_to_disk`, with `column`;
            - a folder of audio files, and of folders of them: samples, or frames with `frame_shift`, which must be
              given where the sampling rates differ. The k-th length is that of the k-th file, sorted by its path
              within the folder, with `/` between its parts: A/b.wav, B.wav, a.wav;
            - a Kaldi data folder, without audio files: its utt2num_frames, or else its utt2dur, in the order of the
              file.
        column: The column or field; several as "source,target" give [n, dims]; nested ones as
            "supervisions.0.duration", or "messages.*.content" for all items of a list. A column of lists of numbers
            gives their lengths; other lists are refused. Texts need `count`.
        frame_shift: From one frame to the next, in the unit of the column: 0.01 for seconds, 160 for samples, 10 for
            milliseconds. Applies to the one column whatever it holds, but is refused for counts of frames and of list
            items. With several columns it applies to those named duration, seconds or dur, to those in a unit of time
            and to those with fractions. A shift below 1 is in seconds: with it, another unit in the name of the column
            is refused (duration_ms), and whole numbers above 7200 are, unless the source says that they are seconds:
            they are more likely samples than hours.
        count: The count of texts: "characters", "words" or "tokens". With several columns, in those that hold
            texts. Of lists of texts, and of the turns of a chat, all texts are counted.
        tokenizer: The path of a tokenizer.json, for tokens. It needs the package `tokenizers`. The special tokens that
            it adds count; its padding and truncation do not.
        cache: For audio folders: whether to keep the headers in `.lengthwise-cache.json` in the folder.
        progress: For audio folders: whether to show a bar.

    Returns:
        [n] or [n, dims] int64, read-only.

    Raises:
        FileNotFoundError: No such file or folder.
        ModuleNotFoundError: pyarrow, soundfile or tokenizers is needed and not installed.
        ValueError: A bad value, named with its file, line or row; a damaged, empty or unknown file; a device or a
            named pipe; an option that does not apply.
        TypeError: As `as_lengths`; a `column` that is not text.

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
        remedy = "Check the path; a column of a file is given as `column`, on the command line as FILE:COLUMN."
        raise FileNotFoundError(source_sentence("a file or folder that is there", source, remedy))
    if path.is_dir():
        seconds = frame_shift is not None
        columns = _read_folder(path, column, counted, seconds=seconds, cache=cache, progress=progress)
    else:
        _refuse_devices(path)
        columns = _read_file(path, column, counted)
    # An array in memory may be empty: a filter may have left nothing. An empty file is more likely the wrong one.
    if not columns or not len(columns[0].values):
        raise source_error("a file with sequences", path, "It has none: is this the right file?")
    check_counted((column.kind == "texts" for column in columns), counted)
    return to_lengths(columns, frame_shift)


def split_source(text: str) -> tuple[str, str | None]:
    r"""Splits FILE:COLUMN at its last colon; a colon in a path that is there, or after a drive letter, stays.

    Raises:
        ValueError: Nothing before or after the colon.

    >>> split_source("train.jsonl:supervisions.0.duration")
    ('train.jsonl', 'supervisions.0.duration')
    >>> split_source(r"C:\data\train.csv")
    ('C:\\data\\train.csv', None)
    """
    colons = [at for at, letter in enumerate(text) if letter == ":"]
    if not colons or os.path.exists(text):
        return text, None
    # Of "a:b.csv:frames" the path is "a:b.csv", if that file is there.
    existing = [at for at in colons if os.path.exists(text[:at])]
    at = existing[-1] if existing else colons[-1]
    path, column = text[:at], text[at + 1 :]
    # C:\data is a drive, and "/tmp:x/lengths" most likely a path that is misspelt: both have no column.
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
    table = kaldi_file(folder)
    # With audio beside it, the file may be of other recordings, and the audio says its own lengths.
    if table and not has_audio(folder):
        return read_kaldi(table)
    return read_audio_folder(folder, seconds=seconds, cache=cache, progress=progress)


def _read_file(path: Path, column: str | None, count: TextCount | None) -> list[Column]:
    # The suffix says what a file holds: .csv for a.CSV and for a.csv.gz.
    suffix = (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()
    if path.suffix == ".gz" and suffix in (*_NUMPY, *_ARROW):
        raise source_error(f"a {suffix} file as it stands, not packed", path, f"Unpack it: gunzip {path}.")
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
    if not kaldi_name(path):
        return read_plain(path, column)
    _refuse_option("column", column, f"{path}, which has one column of numbers")
    return read_kaldi(path)


def _refuse_devices(path: Path) -> None:
    """Refuses devices and named pipes, which may never end or begin; reads a pipe of the shell, as `<(command)`."""
    opened = path.is_fifo() and os.path.realpath(path).startswith(_OPENED)
    if not (path.is_file() or opened):
        remedy = "Write what it gives to a file, or on the command line give the command that writes it: <(command)."
        raise source_error("a file or folder, not a device or a named pipe", path, remedy)


def _refuse_option(name: str, value: object, source: str) -> None:
    if value is not None:
        raise value_error(name, "left out here", value, f"It does not apply to {source}.")

"""`read_lengths`, and the sources it takes: an array, a file, a folder, a pattern or a URL."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.checks import brief, load_package, source_error, source_sentence, type_error, value_error, warn
from lengthwise.lengths import arrow, audio
from lengthwise.lengths.arrays import array_columns, as_lengths
from lengthwise.lengths.cells import TextCount, check_counted, check_options
from lengthwise.lengths.columns import Column, Wanted, check_kinds, to_lengths
from lengthwise.lengths.formats import FORMATS, NUMBERS, TEXTS, Format, find_format
from lengthwise.lengths.text import Opener, Parts

_LARGE = [ending for format in FORMATS if format.is_large for ending in format.endings]
_OTHERS = f"Known are {', '.join(_LARGE)}; text also .gz. Read others one by one; a pyarrow Dataset by `write_lengths`."


def read_lengths(
    source: ArrayLike | str | os.PathLike[str],
    *,
    column: str | None = None,
    frame_shift: float | None = None,
    count: str | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> NDArray[np.int64]:
    """Reads the length of every sequence, in the order of the source.

    Durations become max(1, round(duration / frame_shift)) frames, with halves rounded up. The common mistake is the
    unit. Without `frame_shift`, fractions and columns in a unit of time raise an error, but other whole numbers are
    taken as lengths.

    Args:
        source: An array [n] or [n, dims], or the path of a file or folder. Text formats may also be .gz.

            - .npy: `column` "0", "1", ... takes one dimension.
            - .csv and .tsv with a header line, or without it, if `column` is a number: "1" is the second column. A
              .csv without commas in its header is split at semicolons or tabs, or at pipes, as in LJSpeech.
            - .jsonl, .ndjson and .json: one record a line, or one array.
            - .parquet, .pq, .arrow and .feather.
            - NeMo manifests and Lhotse cuts, recordings and supervisions need no `column`. Their `duration` is in
              seconds: give `frame_shift`. Lhotse features have `num_frames`.
            - Kaldi's utt2num_frames, utt2dur, segments and text, and the shapes of ESPnet, by the name of the file;
              .tsv manifests of fairseq.
            - .fasta and .fastq: the letters of each sequence are counted, unless `count` says otherwise.
            - Any other file: numbers separated by white space, one line for each sequence. `column` "0", "1", ... takes
              one number of each line. Lines that begin with # are comments. With `count`, the text on each line is
              counted. Tables and JSON are known by their first lines.
            - A folder of Parquet, Arrow, CSV, JSON lines, FASTA or FASTQ, a pattern such as "tokens/*.parquet", or a
              URL, as for `write_lengths`. In a folder with audio too, give `column` or `count`.
            - A folder that `save_to_disk` of Hugging Face `datasets` wrote, with `column`.
            - A folder of audio files, and the folders below it. Lengths are samples, or with `frame_shift` frames.
              Files of different sampling rates need `frame_shift`. `audio_files` lists the files in the order of the
              lengths.
        column: The column or field. Several, as "source,target", give [n, dims]. Nested ones are written as
            "supervisions.0.duration", or "messages.*.content" for all items of a list. A sum, as
            "instruction+input+output", adds up; an empty text counts 0. A column of lists of numbers gives their
            lengths; other lists are refused. Texts need `count`.
        frame_shift: The shift from one frame to the next, in the unit of the column: 0.01 for seconds, 160 for samples,
            10 for milliseconds. The shift applies to a single column, unless the column has counts. Among several
            columns, the shift applies to those in seconds or milliseconds, to those named duration or dur, and to those
            with fractions. A shift of 1 or more also applies to those in samples. A shift below 1 is in seconds, and is
            refused for a column in another unit, such as duration_ms.
        count: The unit of texts: "characters", "words" or "tokens". Among several columns, those with texts are
            counted. In lists of texts and in chats, all texts are counted.
        tokenizer: The path of a tokenizer.json, or of a folder with one, for tokens. It needs the package `tokenizers`.
            Special tokens are counted; padding and truncation are turned off.
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
    is_search = not os.path.exists(source) and (glob.has_magic(os.fspath(source)) or "://" in os.fspath(source))
    if not (is_search or os.path.exists(source)):
        remedy = "Check the path. Name a column by `column`, on the command line as FILE:COLUMN."
        raise FileNotFoundError(source_sentence("a file or folder that exists", source, remedy))
    path, seconds = Path(source), frame_shift is not None
    if path.is_dir() and arrow.is_saved_dataset(path):
        parts = arrow.read_arrow(path, column)
    elif not (path.is_dir() or is_search):
        parts = _read_file(path, column, counted)
    elif is_search or has_tables(path, column or count):
        parts = read_files(source, column)
    else:
        _refuse_option("column", column, f"the folder {path}")
        parts = audio.read_audio_folder(path, seconds=seconds, progress=progress)
    columns = _join_parts(parts, counted)
    # An array in memory may be empty, after a filter. An empty file is more likely the wrong file.
    if not columns or not len(columns[0].values):
        raise source_error("a file with sequences", source, "It has none: is this the right file?")
    check_counted(columns, counted)
    lengths = to_lengths(columns, frame_shift)
    if count == "words" and len(lengths) > 1 and lengths.max() == 1:
        warn("Each text is one word, so all lengths are 1. Count the characters, if these are proteins or URLs.")
    return lengths


def has_tables(folder: Path, choice: str | None) -> bool:
    """Tells if a folder is read as tables. One with audio is, if `choice` names a column or the unit of texts."""
    tables = any(find_format(name).is_large for name in input_files(os.fspath(folder)))
    return tables and not arrow.is_saved_dataset(folder) and bool(choice or not any(audio.audio_names(folder, [])))


def _read_file(path: Path, column: Wanted, count: TextCount | None) -> Parts:
    # Devices and named pipes may never end. A pipe that the shell has opened does, as `<(command)`.
    opened = path.is_fifo() and os.path.realpath(path).startswith(("/proc/", "/dev/fd/"))
    if not (path.is_file() or opened):
        remedy = "Write its output to a file, or on the command line give the command itself: <(command)."
        raise source_error("a file or folder, not a device or a named pipe", path, remedy)
    format = find_format(path)
    return (TEXTS if format is NUMBERS and count is not None else format).read(path, column)


def _join_parts(parts: Parts, count: TextCount | None) -> list[Column]:
    """Counts the cells of each part, and returns the whole columns."""
    counted, kinds = list[list[Column]](), dict[int, str]()
    for part in parts:
        columns = [arrow.count_cells(column, count) for column in part]
        check_kinds(kinds, [(column.name, column.kind) for column in columns], columns[0].place(0))
        counted.append(columns)
    return [
        replace(whole[0], values=np.concatenate([part.values for part in whole]), place=partial(_place, whole))
        for whole in zip(*counted, strict=True)
    ]


def _place(parts: Sequence[Column], at: int) -> str:
    """Names the place of a row among all parts: in parts of 3 and 2 rows, row 4 is row 1 of the second."""
    rows = ((part, row) for part in parts for row in range(len(part.values)))
    part, row = next(itertools.islice(rows, at, None))
    return part.place(row)


def read_files(source: Any, column: Wanted, size: int | None = None) -> Parts:
    """Yields the wanted columns of the files one after the other, part by part; the first file decides the columns.

    Args:
        source: As for `find_files`.
        column: The wanted columns.
        size: The most rows of a part.

    Raises:
        ValueError: As `find_files`, and as the reader of the format.
    """
    opener, paths, format = find_files(source)
    for path in paths:
        for columns in format.read(path, column, size, opener):
            column = tuple(cells.name for cells in columns)
            yield columns


def find_files(source: Any) -> tuple[Opener, list[Path], Format]:
    """Returns the function that opens the files, or None on a disk; their paths; and their format.

    Raises:
        FileNotFoundError: There is no such file or folder.
        ValueError: There are no files of a known format, or files of several formats.
        TypeError: `source` is not a path, or a list of paths.
        ModuleNotFoundError: fsspec, or the file system of a URL, is not installed.
    """
    sources = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(sources, list | tuple) or not all(isinstance(name, str | os.PathLike) for name in sources):
        rule = "a path, a list of paths, or a data set of pyarrow, datasets, Ray or Dask"
        raise type_error("source", rule, type(source), "`read_lengths` takes arrays, too.")
    lists = [list_files(name) for name in map(os.fspath, sources)]
    stores, paths = [store for store, _ in lists], [path for _, files in lists for path in files]
    formats = list(dict.fromkeys(map(find_format, paths)))
    if others := [path for path in paths if not find_format(path).is_large] if paths else [str(source)]:
        raise source_error("a file or folder of a known format", others[0], _OTHERS)
    if len(formats) > 1:
        rule = f"files of one format, not {' and '.join(format.name for format in formats)}"
        raise source_error(rule, str(source), "Name the files of one format, as tokens/*.parquet.")
    if any(store != stores[0] for store in stores):
        raise source_error("on one file system", str(source), "Write one lengths file for each file system.")
    # A file on a disk is opened by its path: PyArrow maps it, so that other columns are never read.
    opener = None if "file" in stores[0].protocol else lambda path, _: stores[0].open(path=str(path), mode="rb")
    return opener, list(map(Path, paths)), formats[0]


def _open_store(name: str) -> tuple[Any, str]:
    core = load_package("fsspec.core", "find files")
    try:
        # abspath("") would be the current folder.
        return core.url_to_fs(os.path.abspath(name) if name and "://" not in name else name)
    except ImportError as error:  # s3fs, for example
        rule = "at a URL whose file system is installed"
        raise ModuleNotFoundError(source_sentence(rule, name, f"{brief(error)}.")) from error
    except ValueError as error:
        raise source_error("at a URL that fsspec knows", name, f"Check the URL ({brief(error)}).") from error


def list_files(name: str) -> tuple[Any, list[str]]:
    """Returns the file system, and the files that a name stands for, sorted by their paths as texts."""
    store, path = _open_store(name)
    # An existing file comes first: its name may have brackets, and a web address may have a question mark.
    if name and store.isfile(path):
        return store, [path]
    parts = PurePosixPath(path).parts
    if name and store.isdir(path):
        if "file" in store.protocol:
            audio.warn_links(path)
            if arrow.is_saved_dataset(Path(path)):
                return store, list(map(str, arrow.saved_shards(Path(path))))
        root, pattern, paths = path, (), [file for file in store.find(path) if find_format(file).is_large]
    else:
        # Names before the first * are not part of the pattern: a _folder is allowed there.
        fixed = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        root, pattern = str(PurePosixPath(*parts[:fixed])), parts[fixed:]
        facts = store.glob(path, detail=True) if pattern else {}
        # fsspec calls a link neither a file nor a folder.
        paths = [file for file, fact in facts.items() if fact["type"] == "file" or os.path.isfile(file)]
        if not paths:
            remedy = "Check the path; a pattern, as tokens/*.parquet, must match files."
            raise FileNotFoundError(source_sentence("a file or folder that exists", name, remedy))
    hidden = tuple({".", "_"} - {part[0] for part in pattern})
    below = {str(PurePosixPath(file).relative_to(root)): file for file in paths}
    return store, [below[key] for key in sorted(below) if not any(part.startswith(hidden) for part in key.split("/"))]


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


def input_files(text: str) -> list[str]:
    """Returns the existing files that FILE[:COLUMN] stands for; in a folder, those that are read or kept there."""
    path = split_source(text)[0]
    if not os.path.isdir(path):
        return [path] if os.path.exists(path) else glob.glob(path, recursive=True)
    names = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    endings, is_saved = (*audio.AUDIO_SUFFIXES, "tokenizer.json"), arrow.is_saved_dataset(Path(path))
    return [name for name in names if is_saved or find_format(name).is_large or name.lower().endswith(endings)]


def _refuse_option(name: str, value: object, source: str) -> None:
    if value is not None:
        raise value_error(name, "left out here", value, f"It does not apply to {source}.")

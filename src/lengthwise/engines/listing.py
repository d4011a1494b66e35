"""Which files a path, a pattern, a URL, or a list of them names, and in which order."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any, NamedTuple

from lengthwise.checks import sentence, show_value, type_error
from lengthwise.lengths.arrow import load_pyarrow
from lengthwise.lengths.sources import brief, source_error, source_sentence

_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".orc": "orc",
}
_TEXT_BLOCK = 2**24  # bytes of CSV or JSON lines that are read at once
_FEW = 2**10  # bytes of a file that may be blank
_OTHERS = f"Known are {', '.join(_FORMATS)}; files of other kinds are given as a `pyarrow.dataset.Dataset`."


class Listed(NamedTuple):
    """The files of one path.

    Attributes:
        filesystem: Of pyarrow.
        root: The folder that they are below, or "".
        paths: In order.
    """

    filesystem: Any
    root: str
    paths: list[str]


def open_files(source: Any) -> Any:
    """Opens files as one `pyarrow.dataset.Dataset`.

    Files of a folder or a pattern are sorted by their paths; those of a list keep its order. Names that begin with a
    dot or an underscore are passed over, unless the pattern has such a name; so are, in a folder, those of no known
    suffix. Links to folders are not followed. A folder `year=2024` gives the rows below it a column `year`.

    Raises:
        FileNotFoundError: Nothing is there.
        ValueError: No files that can be read, files of several formats, or files that do not fit together.
        TypeError: No path.
        ModuleNotFoundError: pyarrow, or fsspec for a URL, is not installed.
    """
    load_pyarrow()
    from pyarrow import ArrowException, dataset

    given = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(given, list | tuple) or not all(isinstance(each, str | os.PathLike) for each in given):
        rule = "a path, a list of paths, or a data set of pyarrow, datasets, Ray or Dask"
        raise type_error("source", rule, type(source), "`read_lengths` takes arrays, and files of other formats.")
    listed = [_list_files(os.fspath(each)) for each in given]
    paths = [path for each in listed for path in each.paths]
    kind = _format(paths, source)
    if any(each.filesystem != listed[0].filesystem for each in listed):
        raise source_error("on one file system", _show(source), "Write the lengths of each by itself.")
    if kind == "json":
        has_rows(listed[0].filesystem, paths[0], json=True)
    try:
        return dataset.dataset(
            paths,
            format=_reader(kind),
            filesystem=listed[0].filesystem,
            partitioning="hive",
            partition_base_dir=listed[0].root if len(listed) == 1 and listed[0].root else None,
        )
    except (ArrowException, OSError, UnicodeError) as error:
        # A link to nothing, an empty first file, or a folder x=1 above files with another column x.
        remedy = f"Mend or leave out the one that is told of ({brief(error, 400)})."
        if kind == "arrow" and "Not an Arrow file" in str(error):
            remedy = (
                "If it is an Arrow stream, as `datasets` saves them, it cannot be read in parts: give"
                f" datasets.load_from_disk(folder); else write it anew ({brief(error, 400)})."
            )
        raise source_error("of files that can be read together", _show(source), remedy) from error


def _reader(kind: str) -> Any:
    """How pyarrow reads files of a format: of lines of text, rows longer than its 1 MiB too."""
    from pyarrow import csv, dataset, json

    # A row must fit into a block, and the types of columns are those of the first block.
    if kind == "csv":
        # Without the second, a text of two lines at the border of two blocks would be two rows.
        return dataset.CsvFileFormat(
            read_options=csv.ReadOptions(block_size=_TEXT_BLOCK),
            parse_options=csv.ParseOptions(newlines_in_values=True),
        )
    if kind == "json":
        return dataset.JsonFileFormat(read_options=json.ReadOptions(block_size=_TEXT_BLOCK))
    return kind


def has_rows(filesystem: Any, path: str, *, json: bool) -> bool:
    """Whether a file of text holds more than blanks; pyarrow takes one that does not for a damaged one.

    Raises:
        ValueError: It is a file of JSON lines, and its first block holds no whole line: then pyarrow reads each row of
            it as null.
    """
    from pyarrow.fs import FileType

    (info,) = filesystem.get_file_info([path])
    if info.type != FileType.File or (not json and info.size > _FEW):
        return True  # a pipe must not be read, and pyarrow says what is wrong
    with filesystem.open_input_stream(path) as file:
        block = file.read(_TEXT_BLOCK)
    rows = block.lstrip()
    if json and rows and b"\n" not in rows:
        if len(block) < _TEXT_BLOCK:
            raise source_error("of lines that end with a newline", path, "Add one at its end, or write Parquet.")
        rule = f"of rows of less than {_TEXT_BLOCK} bytes, where they are the first of a file"
        raise source_error(rule, path, "Put a shorter row first, or write Parquet.")
    return bool(rows)


def _list_files(text: str) -> Listed:
    if "://" in text:
        return _list_remote(text)
    from pyarrow import fs

    # Of an empty text abspath would make the folder we are in.
    path = os.path.abspath(text) if text else ""
    if os.path.isdir(path):
        names = (os.path.join(folder, name) for folder, _, found in os.walk(path) for name in found)
        return Listed(fs.LocalFileSystem(), path, _data_files(names, path))
    found = [path] if os.path.exists(path) else _shown(filter(os.path.isfile, glob.glob(path, recursive=True)), path)
    return Listed(fs.LocalFileSystem(), "", found or _refuse(text))


def _list_remote(url: str) -> Listed:
    """The files of a URL, as fsspec lists them: s3://, gs://, memory:// and all others that it knows."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        remedy = 'Install it: pip install "lengthwise[io]".'
        raise ModuleNotFoundError(sentence("fsspec", "installed to read URLs", None, remedy)) from error
    from pyarrow import fs

    try:
        store, path = url_to_fs(url)
    except ImportError as error:  # s3fs, for example
        told = source_sentence("at a URL whose file system is installed", url, f"{brief(error)}.")
        raise ModuleNotFoundError(told) from error
    except ValueError as error:
        raise source_error("at a URL that fsspec knows", url, f"Check it ({brief(error)}).") from error
    wrapped = fs.PyFileSystem(fs.FSSpecHandler(store))
    # What is there first: a name may have brackets in it, and an address of the web a question mark.
    if store.isfile(path):
        return Listed(wrapped, "", [path])
    if store.exists(path):
        return Listed(wrapped, path, _data_files(store.find(path), path))
    matched = store.glob(path, detail=True) if glob.has_magic(path) else {}
    found = [name for name, facts in matched.items() if facts["type"] == "file"]
    return Listed(wrapped, "", _shown(found, path) or _refuse(url))


def _shown(paths: Iterable[str], pattern: str) -> list[str]:
    """What a pattern matches, sorted, but for names that begin with . or _ where the pattern has none of these."""
    parts = PurePath(pattern).parts
    # The part before the first * is no pattern: a _folder may be named there.
    fixed = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    hidden = tuple({".", "_"} - {part[0] for part in parts[fixed:]})
    return sorted(path for path in paths if not any(part.startswith(hidden) for part in PurePath(path).parts[fixed:]))


def _data_files(paths: Iterable[str], root: str) -> list[str]:
    """Those of a known suffix, below a folder, that are not hidden; sorted by their path, with / between its parts."""
    below = {PurePath(path).relative_to(root).as_posix(): path for path in paths}
    shown = [name for name in below if not any(part.startswith((".", "_")) for part in name.split("/"))]
    return [below[name] for name in sorted(shown) if PurePath(name).suffix.lower() in _FORMATS]


def _format(paths: list[str], source: object) -> str:
    kinds = dict.fromkeys(_FORMATS.get(PurePath(path).suffix.lower(), "") for path in paths)
    if not paths or "" in kinds:
        unknown = next((path for path in paths if PurePath(path).suffix.lower() not in _FORMATS), source)
        raise source_error("a file or folder of a known format", str(unknown), _OTHERS)
    if len(kinds) > 1:
        remedy = f"Name those of one kind, as {PurePath('tokens') / '*.parquet'}."
        raise source_error(f"of files of one format, and not of {' and '.join(kinds)}", _show(source), remedy)
    return next(iter(kinds))


def _show(source: object) -> str:
    return os.fspath(source) if isinstance(source, str | os.PathLike) else show_value(source)


def _refuse(text: str) -> list[str]:
    remedy = "Check the path; a pattern, as tokens/*.parquet, must match files."
    raise FileNotFoundError(source_sentence("a file or folder that is there", text, remedy))

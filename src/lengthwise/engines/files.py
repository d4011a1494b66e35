"""Files: Parquet, Arrow, CSV, TSV and JSON lines, on a disk or in a store of objects, one after the other."""

from __future__ import annotations

import functools
import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from lengthwise.checks import brief, sentence, source_error, source_sentence, type_error
from lengthwise.engines.rule import Block, Rule
from lengthwise.lengths.arrow import load_pyarrow, open_batches, open_parquet, row_place
from lengthwise.lengths.columns import Column, read_cells
from lengthwise.lengths.manifests import column_of_cells, iterate_records, pick_cells
from lengthwise.lengths.rules import Place
from lengthwise.lengths.tables import choose_names, iterate_table

_FORMATS = {"parquet": "parquet", "pq": "parquet", "arrow": "arrow", "feather": "arrow", "csv": "table", "tsv": "table"}
_FORMATS |= {"jsonl": "records", "ndjson": "records"}
_NAME = re.compile(rf"\.({'|'.join(_FORMATS)})(\.(?:gz|bz2|xz|zst))?$", re.IGNORECASE)


class Files(NamedTuple):
    """Files of one format.

    Attributes:
        store: The file system of fsspec that they are in.
        paths: In order.
        kind: "parquet", "arrow", "table" or "records".
    """

    store: Any
    paths: list[str]
    kind: str


def open_files(source: Any) -> Files:
    """Finds the files that a path, a pattern, a URL, or a list of them names.

    Files of a folder or a pattern are sorted by their paths; those of a list keep its order. Names that begin with a
    dot or an underscore are passed over, unless the pattern has such a name; so are, in a folder, those of no known
    suffix.

    Raises:
        FileNotFoundError: Nothing is there.
        ValueError: No files that can be read, or files of several formats.
        TypeError: No path.
        ModuleNotFoundError: fsspec, or the file system of a URL, is not installed.
    """
    names = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(names, list | tuple) or not all(isinstance(name, str | os.PathLike) for name in names):
        rule = "a path, a list of paths, or a data set of pyarrow, datasets, Ray or Dask"
        raise type_error("source", rule, type(source), "`read_lengths` takes arrays, and files of other formats.")
    stores, paths = [], []
    for name in [os.fspath(name) for name in names]:
        store, path = _open_store(name)
        stores.append(store)
        paths += _list_files(store, path, name)
    kinds = list(dict.fromkeys(map(_kind_of, paths)))
    if not kinds:
        raise source_error("a file or folder of a known format", str(source), _OTHERS)
    if len(kinds) > 1:
        rule = f"of files of one format, and not of {' and '.join(kinds)}"
        raise source_error(rule, str(source), "Name those of one kind, as tokens/*.parquet.")
    if any(store != stores[0] for store in stores):
        raise source_error("on one file system", str(source), "Write the lengths of each by itself.")
    return Files(stores[0], paths, kinds[0])


_OTHERS = f"Known are .{', .'.join(_FORMATS)}, those of text also as .gz; give others as a `pyarrow.dataset.Dataset`."


def _open_store(name: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        remedy = 'Install it: pip install "lengthwise[io]".'
        raise ModuleNotFoundError(sentence("fsspec", "installed to find files", None, remedy)) from error
    try:
        # Of an empty text abspath would make the folder we are in.
        return url_to_fs(os.path.abspath(name) if name and "://" not in name else name)
    except ImportError as error:  # s3fs, for example
        rule = "at a URL whose file system is installed"
        raise ModuleNotFoundError(source_sentence(rule, name, f"{brief(error)}.")) from error
    except ValueError as error:
        raise source_error("at a URL that fsspec knows", name, f"Check it ({brief(error)}).") from error


def _list_files(store: Any, path: str, name: str) -> list[str]:
    """Returns the files that a name stands for, sorted by their paths as texts."""
    # What is there first: a name may have brackets in it, and an address of the web a question mark.
    if name and store.isfile(path):
        return [path]
    parts = PurePosixPath(path).parts
    if name and store.isdir(path):
        root, pattern, paths = path, (), [file for file in store.find(path) if _NAME.search(file)]
    else:
        # The part before the first * is no pattern: a _folder may be named there.
        fixed = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        root, pattern = str(PurePosixPath(*parts[:fixed])), parts[fixed:]
        facts = store.glob(path, detail=True) if pattern else {}
        paths = [file for file, fact in facts.items() if fact["type"] == "file"]
        if not paths:
            remedy = "Check the path; a pattern, as tokens/*.parquet, must match files."
            raise FileNotFoundError(source_sentence("a file or folder that is there", name, remedy))
    hidden = tuple({".", "_"} - {part[0] for part in pattern})
    below = {PurePosixPath(file).relative_to(root): file for file in paths}
    shown = [key for key in below if not any(part.startswith(hidden) for part in key.parts)]
    return [below[key] for key in sorted(shown, key=str)]


def _kind_of(path: str) -> str:
    match = _NAME.search(path)
    if match is None:
        raise source_error("a file or folder of a known format", path, _OTHERS)
    kind = _FORMATS[match[1].lower()]
    if match[2] and (match[2] != ".gz" or kind in ("parquet", "arrow")):
        raise source_error(
            f"a .{match[1]} file as it stands, not packed", path, "Unpack it; texts may be packed as .gz."
        )
    return kind


def column_names(files: Files) -> list[str]:
    """Returns the names of the columns of the first file, or the fields of its first record."""
    path, opener = _opened(files, files.paths[0])
    if files.kind == "parquet":
        with open_parquet(path, opener) as file:
            return file.schema_arrow.names
    if files.kind == "arrow":
        with open_batches(path, opener) as (schema, _):
            return schema.names
    if files.kind == "table":
        return next((names for names, _, _ in iterate_table(path, _choose_all, 1, opener)), [])
    return next((list(records[0]) for records, _ in iterate_records(path, 1, opener)), [])


def blocks(files: Files, rule: Rule, size: int) -> Iterator[Block]:
    """Yields the lengths of the rows, file by file."""
    measure = {"table": _table_blocks, "records": _record_blocks}.get(files.kind, _binary_blocks)
    for name in files.paths:
        yield from measure(*_opened(files, name), rule, size)


def _opened(files: Files, name: str) -> tuple[Path, Any]:
    """Returns the path of a file, and the function that opens it; None maps the file into memory."""
    # Columns that are not asked for are then not read.
    if files.kind == "arrow" and "file" in files.store.protocol:
        return Path(name), None
    return Path(name), lambda _, mode: files.store.open(name, mode)


def _binary_blocks(path: Path, opener: Any, rule: Rule, size: int) -> Iterator[Block]:
    first = 0
    for batch in _batches(path, opener, rule, size):
        yield rule.measure(batch, row_place(path, first))
        first += batch.num_rows


def _batches(path: Path, opener: Any, rule: Rule, size: int) -> Iterator[Any]:
    if _kind_of(str(path)) == "parquet":
        with open_parquet(path, opener) as file:
            yield from file.iter_batches(batch_size=size, columns=rule.columns(file.schema_arrow.names, str(path)))
        return
    with open_batches(path, opener) as (_, batches):
        for batch in batches:
            yield from (batch.slice(start, size) for start in range(0, batch.num_rows, size))


def _table_blocks(path: Path, opener: Any, rule: Rule, size: int) -> Iterator[Block]:
    choose = _choose_all if rule.length is not None else functools.partial(choose_names, ",".join(rule.names))
    read = functools.partial(_read_texts, rule=rule)
    for names, cells, place in iterate_table(path, choose, size, opener):
        if rule.length is None:
            yield rule.measure_cells(cells, read, place)
        elif cells[0]:
            pyarrow = load_pyarrow()
            arrays = [pyarrow.array(texts) for texts in cells]
            yield rule.measure(pyarrow.RecordBatch.from_arrays(arrays, names), place)


def _record_blocks(path: Path, opener: Any, rule: Rule, size: int) -> Iterator[Block]:
    def read(name: str, cells: list[Any], place: Place) -> Column:
        return column_of_cells(name, cells, place, "unknown", rule.count)

    for records, places in iterate_records(path, size, opener):
        if rule.length is None:
            cells = [pick_cells(records, name) for name in rule.names]
            yield rule.measure_cells(cells, read, places.__getitem__)
        else:
            yield rule.measure(_batch_of(records, places[0]), places.__getitem__)


def _batch_of(records: list[Any], place: str) -> Any:
    pyarrow = load_pyarrow()
    try:
        return pyarrow.RecordBatch.from_struct_array(pyarrow.array(records))
    except pyarrow.ArrowException as error:
        remedy = f"Give `column` in place of `length`, or write Parquet ({brief(error)})."
        raise source_error("of fields of one type each", place, remedy) from error


def _choose_all(header: list[str], _at: str) -> list[str]:
    return header


def _read_texts(name: str, cells: list[str], place: Place, rule: Rule) -> Column:
    return read_cells(cells, name=name, place=place, count=rule.count, alone=len(rule.names) == 1)

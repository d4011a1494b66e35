"""Files of Parquet, Arrow, CSV, TSV or JSON lines, on a disk or in an object store, read one after the other."""

from __future__ import annotations

import functools
import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from lengthwise.checks import brief, load_package, source_error, source_sentence, type_error, value_error
from lengthwise.engines.rule import Block, Rule
from lengthwise.lengths.arrow import open_batches, row_place
from lengthwise.lengths.manifests import iterate_records, pick_cells
from lengthwise.lengths.text import choose_names, iterate_table

_ARROW, _TABLE, _RECORDS = "Parquet or Arrow", "CSV or TSV", "JSON lines"
_FORMATS = {"parquet": _ARROW, "pq": _ARROW, "arrow": _ARROW, "feather": _ARROW}
_FORMATS |= {"csv": _TABLE, "tsv": _TABLE, "jsonl": _RECORDS, "ndjson": _RECORDS}
_NAME = re.compile(r"\.(?:(parquet|pq|arrow|feather)|(csv|tsv|jsonl|ndjson)(?:\.gz)?)$", re.IGNORECASE)
_OTHERS = (
    f"Known are .{', .'.join(_FORMATS)}, and .gz of the last four. Give other formats as a `pyarrow.dataset.Dataset`."
)


class Files:
    """Files of one format, found by a path, a pattern, a URL, or a list of these.

    Files of a folder or a pattern are sorted by their paths; those of a list keep its order. Names that begin with a
    dot or an underscore are skipped, unless the pattern has such a name. In a folder, files with an unknown suffix are
    skipped too.

    Attributes:
        names: The columns of the first file, or the fields of its first record.

    Raises:
        FileNotFoundError: There is no such file or folder.
        ValueError: There are no files of a known format, or files of several formats.
        TypeError: `source` is not a path or a list of paths.
        ModuleNotFoundError: fsspec, or the file system of a URL, is not installed.
    """

    def __init__(self, source: Any) -> None:
        sources = [source] if isinstance(source, str | os.PathLike) else source
        if not isinstance(sources, list | tuple) or not all(isinstance(name, str | os.PathLike) for name in sources):
            rule = "a path, a list of paths, or a data set of pyarrow, datasets, Ray or Dask"
            raise type_error("source", rule, type(source), "`read_lengths` takes arrays, and files of other formats.")
        stores, self._paths = [], list[str]()
        for name in [os.fspath(name) for name in sources]:
            store, path = _open_store(name)
            stores.append(store)
            self._paths += _list_files(store, path, name)
        kinds = list(dict.fromkeys(map(_kind_of, self._paths)))
        if not kinds:
            raise source_error("a file or folder of a known format", str(source), _OTHERS)
        if len(kinds) > 1:
            rule = f"files of one format, not {' and '.join(kinds)}"
            raise source_error(rule, str(source), "Name the files of one format, as tokens/*.parquet.")
        if any(store != stores[0] for store in stores):
            raise source_error("on one file system", str(source), "Write one lengths file for each file system.")
        self._store, self._kind = stores[0], kinds[0]
        self.names: list[str] = self._first_names()

    def blocks(self, rule: Rule, size: int) -> Iterator[Block]:
        """Yields the lengths of the rows, file by file."""
        if rule.length is not None and self._kind != _ARROW:
            remedy = 'Give the files as `pyarrow.dataset.dataset(source, format="csv")`, or "json".'
            raise value_error("length", f"left out for files of {self._kind}", rule.length, remedy)
        measure = {_ARROW: _arrow_blocks, _TABLE: _table_blocks, _RECORDS: _record_blocks}[self._kind]
        for path in self._paths:
            yield from measure(Path(path), self._opener(), rule, size)

    def _opener(self) -> Any:
        """Returns the function that opens a file, or None to map an Arrow file on a disk."""
        # In a mapped file, other columns are never read.
        if self._kind == _ARROW and "file" in self._store.protocol:
            return None
        return lambda path, mode: self._store.open(str(path), mode)

    def _first_names(self) -> list[str]:
        path, opener = Path(self._paths[0]), self._opener()
        if self._kind == _ARROW:
            with open_batches(path, opener) as (names, _):
                return names
        if self._kind == _TABLE:
            return next((names for names, _, _ in iterate_table(path, lambda header, _: header, 1, opener)), [])
        return next((list(records[0]) for records, _ in iterate_records(path, 1, opener)), [])


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


def _list_files(store: Any, path: str, name: str) -> list[str]:
    """Returns the files that a name stands for, sorted by their paths as texts."""
    # An existing file comes first: its name may have brackets, and a web address may have a question mark.
    if name and store.isfile(path):
        return [path]
    parts = PurePosixPath(path).parts
    if name and store.isdir(path):
        root, pattern, paths = path, (), [file for file in store.find(path) if _NAME.search(file)]
    else:
        # Names before the first * are not part of the pattern: a _folder is allowed there.
        fixed = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        root, pattern = str(PurePosixPath(*parts[:fixed])), parts[fixed:]
        facts = store.glob(path, detail=True) if pattern else {}
        paths = [file for file, fact in facts.items() if fact["type"] == "file"]
        if not paths:
            remedy = "Check the path; a pattern, as tokens/*.parquet, must match files."
            raise FileNotFoundError(source_sentence("a file or folder that exists", name, remedy))
    hidden = tuple({".", "_"} - {part[0] for part in pattern})
    below = {PurePosixPath(file).relative_to(root): file for file in paths}
    shown = [key for key in below if not any(part.startswith(hidden) for part in key.parts)]
    return [below[key] for key in sorted(shown, key=str)]


def _kind_of(path: str) -> str:
    match = _NAME.search(path)
    if match is None:
        raise source_error("a file or folder of a known format", path, _OTHERS)
    return _FORMATS[(match[1] or match[2]).lower()]


def _arrow_blocks(path: Path, opener: Any, rule: Rule, size: int) -> Iterator[Block]:
    first = 0
    with open_batches(path, opener) as (names, batches):
        for batch in batches(rule.columns(names, str(path)), size):
            yield rule.measure(batch, row_place(path, first))
            first += batch.num_rows


def _table_blocks(path: Path, opener: Any, rule: Rule, size: int) -> Iterator[Block]:
    choose = functools.partial(choose_names, ",".join(rule.names))
    for _, cells, place in iterate_table(path, choose, size, opener):
        yield rule.measure_cells(cells, place, table=True)


def _record_blocks(path: Path, opener: Any, rule: Rule, size: int) -> Iterator[Block]:
    for records, places in iterate_records(path, size, opener):
        cells = [pick_cells(records, name) for name in rule.names]
        yield rule.measure_cells(cells, places.__getitem__, table=False)

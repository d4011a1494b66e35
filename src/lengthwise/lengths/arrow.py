"""Columns of .parquet and .arrow files: numbers, or lists, which give their lengths.

Read batch by batch, Arrow from a memory map, so that hundreds of gigabytes of token lists need little memory.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import sentence
from lengthwise.lengths.columns import (
    DROP_SEQUENCE,
    Column,
    choose_columns,
    missing_column,
    nested_lists,
    not_a_number,
    parse_numbers,
    unit_of,
)
from lengthwise.lengths.counts import TextCount
from lengthwise.lengths.sources import brief, source_error


def read_parquet(path: Path, column: str | None, count: TextCount | None = None) -> list[Column]:
    """Reads columns of a .parquet file: numbers, texts that are numbers, or lists, which give their lengths.

    Args:
        path: The file.
        column: A name, several separated by commas, nested ones as `audio.frames`; None where there is one only.
        count: What is counted of texts.

    Raises:
        ValueError: No such column, a null, text or booleans, or a file that is not Parquet.
    """
    pyarrow = load_pyarrow()
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            names = select_names(column, file.schema_arrow, path)
            # Parquet reads whole columns: of "audio.frames" and "audio.rate", audio is read once.
            tops = dict.fromkeys(top_of(name, file.schema_arrow.names) for name in names)
            return _gather(file.iter_batches(columns=list(tops)), names, path, count)
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        raise _damage_error(path, "a Parquet file", error) from error


def read_arrow(
    files: Sequence[Path], column: str | None, count: TextCount | None = None, *, source: Path
) -> list[Column]:
    """Reads columns of Arrow files, stream or random access, one after the other; see `read_parquet`."""
    # The first file says which columns there are; a later one without them is refused when it is read.
    with _open_batches(files[0]) as (schema, _):
        names = select_names(column, schema, source)

    def batches() -> Iterator[Any]:
        for path in files:
            with _open_batches(path) as (_, found):
                yield from found

    return _gather(batches(), names, source, count)


@contextlib.contextmanager
def _open_batches(path: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
    pyarrow = load_pyarrow()
    try:
        with pyarrow.memory_map(str(path)) as file:
            magic = file.read(6)
            file.seek(0)
            # The random access form begins with its name. A stream has no name.
            if magic == b"ARROW1":
                reader = pyarrow.ipc.open_file(file)
                yield reader.schema, (reader.get_batch(k) for k in range(reader.num_record_batches))
            else:
                reader = pyarrow.ipc.open_stream(file)
                yield reader.schema, iter(reader)
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        raise _damage_error(path, "an Arrow file", error) from error


def select_names(column: str | None, schema: Any, source: str | os.PathLike[str]) -> list[str]:
    """Finds which columns of a schema are meant, as `choose_columns`; nested ones are found when they are read."""
    if column is None or column in schema.names:
        return choose_columns(column, schema.names, at=str(source))
    names = [part.strip() for part in column.split(",")]
    for name in names:
        choose_columns(top_of(name, schema.names), schema.names, at=str(source))
    return names


def top_of(name: str, names: list[str]) -> str:
    """Returns the column that holds `name`: itself, or the part before its first dot if it is nested."""
    head = name.partition(".")[0]
    # A column may have a dot in its own name, and then it is itself.
    return name if name in names or head not in names else head


def _gather(batches: Iterator[Any], names: list[str], source: Path, count: TextCount | None) -> list[Column]:
    parts: list[list[NDArray[Any]]] = [[] for _ in names]
    kinds = [""] * len(names)
    first = 0
    for batch in batches:
        for k, name in enumerate(names):
            array = take_field(batch, name, source)
            kind = _kind(array.type, count)
            # Files of one folder may differ: the lengths of lists must not stand beside numbers.
            if parts[k] and kinds[k] != kind:
                remedy = f"Write it anew: {name} holds {kinds[k]} in one part and {kind} in another."
                raise source_error("of one type in each column", source, remedy)
            kinds[k] = kind
            parts[k].append(_numbers(array, name, first, source, count))
        first += batch.num_rows
    return [
        Column(
            name=name,
            values=np.concatenate(found) if found else np.zeros(0, dtype=np.int64),
            place=lambda row: f"row {row} of {source}",
            unit="counts" if kind in ("lists", "texts") else unit_of(name),
            texts=kind == "texts",
        )
        for name, found, kind in zip(names, parts, kinds, strict=True)
    ]


def take_field(batch: Any, name: str, source: str | os.PathLike[str]) -> Any:
    """Takes a column, or a field within one, `audio.frames`, of a record batch or a table."""
    top = top_of(name, batch.schema.names)
    if top not in batch.schema.names:
        raise missing_column(name, batch.schema.names, at=str(source))
    array = batch.column(top)
    for part in name[len(top) + 1 :].split(".") if name != top else ():
        names = [field.name for field in array.type] if load_pyarrow().types.is_struct(array.type) else []
        if part not in names:
            raise missing_column(part, names, at=f"{top} of {source}")
        array = load_compute().struct_field(array, part)
    return array


def _kind(kind: Any, count: TextCount | None) -> str:
    """What a column holds: lists; texts, where these are counted; or single values."""
    if load_pyarrow().types.is_dictionary(kind):
        kind = kind.value_type
    if is_list(kind):
        return "lists"
    return "texts" if count is not None and is_text(kind) else "single values"


def _numbers(array: Any, name: str, first: int, source: Path, count: TextCount | None) -> NDArray[Any]:
    types = load_pyarrow().types

    def place(row: int) -> str:
        return f"row {first + row} of {source}"

    if types.is_dictionary(array.type):
        # A column of few distinct values may be stored as indices, which are no lengths.
        array = array.dictionary_decode()
    if array.null_count:
        raise not_a_number(None, name=name, at=place(load_compute().index(array.is_null(), True).as_py()))
    if is_list(array.type):
        # Features [80, 3000] stored as lists: 80 or 3,000 might be meant.
        if is_list(array.type.value_type):
            raise nested_lists(array[0].as_py() if len(array) else str(array.type), name=name, at=place(0))
        return load_compute().list_value_length(array).to_numpy(zero_copy_only=False)
    if is_text(array.type) and count is not None:
        return count(array.to_pylist())
    if is_text(array.type):
        return parse_numbers(array.to_pylist(), name=name, place=place, remedy=DROP_SEQUENCE)
    if types.is_decimal(array.type):
        # A float holds whole numbers below 2**53 exactly; larger ones are refused later.
        array = array.cast("float64")
    if not (types.is_integer(array.type) or types.is_floating(array.type)):
        value = array[0].as_py() if len(array) else str(array.type)
        raise not_a_number(value, name=name, at=place(0))
    return array.to_numpy(zero_copy_only=False)


def is_list(kind: Any) -> bool:
    """Says whether an Arrow type is a list, of whatever kind."""
    types = load_pyarrow().types
    views = str(kind).startswith(("list_view<", "large_list_view<"))  # PyArrow 15 has no test for views
    return views or types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def is_text(kind: Any) -> bool:
    """Says whether an Arrow type is text, of whatever kind."""
    types = load_pyarrow().types
    return types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"


def _damage_error(path: Path, rule: str, error: Exception) -> ValueError:
    return source_error(rule, path, f"Write it anew, or give it the suffix of what it is ({brief(error)}).")


def load_compute() -> Any:
    """Imports `pyarrow.compute`, or says how to install it."""
    load_pyarrow()
    import pyarrow.compute

    return pyarrow.compute


def load_pyarrow() -> Any:
    """Imports `pyarrow`, or says how to install it."""
    try:
        import pyarrow
        import pyarrow.types
    except ImportError as error:
        remedy = 'Install it: pip install "lengthwise[io]".'
        raise ModuleNotFoundError(sentence("pyarrow", "installed to read this source", None, remedy)) from error
    return pyarrow

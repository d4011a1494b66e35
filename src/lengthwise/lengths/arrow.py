"""Columns of .parquet and .arrow files: numbers, or lists, which give their lengths.

Read batch by batch, Arrow from a memory map, so that hundreds of gigabytes of token lists need little memory.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import sentence
from lengthwise.lengths.columns import (
    DROP_SEQUENCE,
    Column,
    Kind,
    choose_columns,
    missing_column,
    nested_lists,
    not_a_number,
    parse_numbers,
    unit_of,
)
from lengthwise.lengths.counts import TextCount
from lengthwise.lengths.rules import Place
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
    with open_batches(files[0]) as (schema, _):
        names = select_names(column, schema, source)

    def batches() -> Iterator[Any]:
        for path in files:
            with open_batches(path) as (_, found):
                yield from found

    return _gather(batches(), names, source, count)


@contextlib.contextmanager
def open_batches(path: Path, opener: Callable[..., Any] | None = None) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Opens an Arrow file, stream or random access: its schema, and its record batches.

    Args:
        path: The file.
        opener: Opens it for reading bytes, as `open(path, "rb")` does; None maps it into memory.
    """
    pyarrow = load_pyarrow()
    try:
        with pyarrow.memory_map(str(path)) if opener is None else opener(path, "rb") as file:
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
    parts: list[list[Column]] = [[] for _ in names]
    first = 0
    for batch in batches:
        for name, columns in zip(names, parts, strict=True):
            array = decode_array(take_field(batch, name, source), name)
            column = column_of_array(name, array, row_place(source, first), count)
            # Files of one folder may differ: the lengths of lists must not stand beside numbers.
            check_kinds(name, [*columns[:1], column], source)
            columns.append(column)
        first += batch.num_rows
    return [
        Column(
            name=name,
            values=np.concatenate([column.values for column in columns]) if columns else np.zeros(0, dtype=np.int64),
            place=row_place(source, 0),
            unit=columns[0].unit if columns else "unknown",
            kind=columns[0].kind if columns else "numbers",
        )
        for name, columns in zip(names, parts, strict=True)
    ]


def row_place(source: str | os.PathLike[str], first: int) -> Place:
    """Says which row of a file the k-th of a batch is, whose first is row `first`."""
    return lambda row: f"row {first + row} of {source}"


def check_kinds(name: str, columns: Sequence[Column], source: str | os.PathLike[str]) -> None:
    """Refuses a column that holds numbers in one part and lists or texts, which are counted, in another."""
    kinds = list(dict.fromkeys(column.kind for column in columns))
    if len(kinds) > 1:
        remedy = f"Write it anew: {name} holds {kinds[0]} in one part and {kinds[1]} in another."
        raise source_error("of one type in each column", source, remedy)


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


def decode_array(array: Any, name: str) -> Any:
    """Makes an array of plain values of one that stores them as views, indices or an extension."""
    if str(array.type) in ("string_view", "binary_view"):  # as Polars writes them; PyArrow 26 drops no nulls of views
        return array.cast(f"large_{array.type}".removesuffix("_view"))
    pyarrow = load_pyarrow()
    if isinstance(array.type, pyarrow.BaseExtensionType):
        return decode_array(_take_tensors(array, name), name)
    # A column of few distinct values may be stored as indices, which are no lengths.
    return array.dictionary_decode() if pyarrow.types.is_dictionary(array.type) else array


def _take_tensors(array: Any, name: str) -> Any:
    """Tensors of one dimension as lists: Ray keeps NumPy arrays so. Of any other extension what it is stored as."""
    storage, kind = array.storage, array.type
    if max(getattr(kind, "ndim", None) or 0, len(getattr(kind, "shape", None) or ())) > 1:
        raise nested_lists(str(kind), name=name, at="its type")
    if getattr(kind, "extension_name", "") == "arrow.bool8":
        raise not_a_number(str(kind), name=name, at="its type")
    if load_pyarrow().types.is_struct(storage.type) and storage.type.get_field_index("data") >= 0:
        return load_compute().struct_field(storage, "data")
    return storage


def column_of_array(name: str, array: Any, place: Place, count: TextCount | None) -> Column:
    """Makes a column of a decoded array: numbers, texts that are numbers, lists, or texts that are counted.

    Raises:
        ValueError: A null, or a value that is none of these.
    """
    values = _numbers(array, name, place, count)
    if is_list(array.type) or (count is not None and is_text(array.type)):
        kind: Kind = "lists" if is_list(array.type) else "texts"
        return Column(name=name, values=values, place=place, unit="counts", kind=kind)
    return Column(name=name, values=values, place=place, unit=unit_of(name))


def _numbers(array: Any, name: str, place: Place, count: TextCount | None) -> NDArray[Any]:
    types = load_pyarrow().types
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

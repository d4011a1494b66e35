"""Columns of .parquet and .arrow files, and of saved data sets of Hugging Face `datasets`.

Files are read batch by batch, so that hundreds of gigabytes of token lists need little memory.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lengthwise.checks import brief, load_package, source_error
from lengthwise.lengths.cells import TextCount, column_of_cells, nested_lists, not_a_number
from lengthwise.lengths.columns import Column, choose_columns, missing_column, top_of, unit_of
from lengthwise.lengths.manifests import pick_cells
from lengthwise.lengths.rules import Place

_BUFFER = 2**22  # bytes of a column of a Parquet file to read at once
_ROWS = 2**16  # rows of Parquet to read at once

Batches = Callable[[Sequence[str] | None, int], Iterator[Any]]  # takes columns (None for all), and the most rows


def read_arrow(files: Sequence[Path], column: str | None, count: TextCount | None, *, source: Path) -> list[Column]:
    """Reads columns of Parquet or Arrow files: numbers, texts to count, or lists.

    Args:
        files: The files.
        column: A name, or several separated by commas; nested ones as `audio.frames`. None for the only column.
        count: The function that counts texts, or None.
        source: The path to name in errors.

    Raises:
        ValueError: The column does not exist, or has nulls, booleans or uncounted texts. Or a file is neither Parquet
            nor Arrow.
    """
    names = list[str]()
    parts: list[list[Column]] = []
    first = 0
    for path in files:
        with open_batches(path) as (names_of_file, batches):
            # The first file decides the columns. A later file without them is refused when it is read.
            names = names or choose_columns(column, names_of_file, at=str(source), nested=True)
            for batch in batches(list(dict.fromkeys(top_of(name, names_of_file) for name in names)), _ROWS):
                place = row_place(source, first)
                columns = [(name, take_cells(batch, name, source, place)) for name in names]
                parts.append([column_of_array(name, cells, place, count) for name, cells in columns])
                first += batch.num_rows
    return [_join(columns, source) for columns in zip(*parts, strict=True)]


def _join(columns: Sequence[Column], source: Path) -> Column:
    first, kinds = columns[0], list(dict.fromkeys(column.kind for column in columns))
    if len(kinds) > 1:  # lengths of lists and numbers do not mix
        remedy = f"Write it again: {first.name} holds {kinds[0]} in one part and {kinds[1]} in another."
        raise source_error("of one type in each column", source, remedy)
    values = np.concatenate([column.values for column in columns])
    return Column(name=first.name, values=values, place=row_place(source, 0), unit=first.unit, kind=first.kind)


def is_saved_dataset(folder: Path) -> bool:
    """Tells if `save_to_disk` of a Dataset or a DatasetDict wrote a folder."""
    return (folder / "dataset_dict.json").is_file() or (
        (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()
    )


def read_saved_dataset(folder: Path, column: str | None, count: TextCount | None = None) -> list[Column]:
    """Reads columns of a saved Dataset; see `read_arrow`.

    Raises:
        ValueError: As `read_arrow`. The folder holds a DatasetDict, the dataset has an indices mapping, or a file is
            missing or damaged.
    """
    if (folder / "dataset_dict.json").is_file():
        splits = ", ".join(sorted(state.parent.name for state in folder.glob("*/state.json")))
        raise source_error("one split", folder, f"Give {folder}/SPLIT, where SPLIT is one of: {splits}.")
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        shards = [folder / entry["filename"] for entry in state["_data_files"]]
        # A filtered or shuffled dataset keeps its old files, and stores the indices of its rows.
        index_files = state.get("_indices_files") or state.get("_indices_data_files")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        remedy = f"Save it again, because its state.json lists no files ({brief(error)})."
        raise source_error("a saved dataset", folder, remedy) from error
    if index_files:
        remedy = "Call `flatten_indices()` and save it again, because its rows are not in the order of its files."
        raise source_error("a dataset without an indices mapping", folder, remedy)
    return read_arrow(shards, column, count, source=folder)


@contextlib.contextmanager
def open_batches(path: Path, opener: Callable[..., Any] | None = None) -> Iterator[tuple[list[str], Batches]]:
    """Opens a Parquet or an Arrow file: yields the names of its columns, and its record batches.

    Args:
        path: The file.
        opener: Opens the file for reading bytes, as `open(path, "rb")`; None maps it into memory.

    Raises:
        ValueError: The file is neither Parquet nor Arrow, or it is damaged.
    """
    pyarrow = load_pyarrow()
    parquet = load_package("pyarrow.parquet", "read this source")
    try:
        with pyarrow.memory_map(str(path)) if opener is None else opener(path, "rb") as file:
            magic = file.read(6)
            file.seek(0)
            if magic.startswith(b"PAR1"):
                # Without a buffer, PyArrow reads a whole column of a row group.
                with parquet.ParquetFile(file, buffer_size=_BUFFER) as table:
                    yield (
                        table.schema_arrow.names,
                        lambda columns, size: table.iter_batches(batch_size=size, columns=columns),
                    )
            # Arrow files begin with ARROW1; streams do not.
            elif magic == b"ARROW1":
                reader = pyarrow.ipc.open_file(file)
                record_batches = (reader.get_batch(k) for k in range(reader.num_record_batches))
                yield reader.schema.names, lambda _, size: _slices(record_batches, size)
            else:
                reader = pyarrow.ipc.open_stream(file)
                yield reader.schema.names, lambda _, size: _slices(reader, size)
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        remedy = f"Write it again, or correct its suffix ({brief(error)})."
        raise source_error("a Parquet or an Arrow file", path, remedy) from error


def _slices(batches: Iterator[Any], size: int) -> Iterator[Any]:
    for batch in batches:
        yield from (batch.slice(start, size) for start in range(0, batch.num_rows, size))


def row_place(source: str | os.PathLike[str], first: int) -> Place:
    """Returns a function that names row k of a batch, whose first row is row `first` of the file."""
    return lambda row: f"row {first + row} of {source}"


def take_cells(batch: Any, name: str, source: str | os.PathLike[str], place: Place) -> Any:
    """Returns a column of a record batch, or a field within one, such as `audio.frames`.

    Returns:
        An Arrow array of plain values; a Python list for a field of list items, such as `messages.*.content`.

    Raises:
        ValueError: The column or field does not exist.
    """
    top = top_of(name, batch.schema.names)
    if top not in batch.schema.names:
        raise missing_column(name, batch.schema.names, at=str(source))
    array = batch.column(top)
    parts = name[len(top) + 1 :].split(".") if name != top else []
    if "*" in parts:
        return pick_cells(batch.select([top]).to_pylist(), name, place)
    for part in parts:
        fields = [field.name for field in array.type] if load_pyarrow().types.is_struct(array.type) else []
        if part not in fields:
            raise missing_column(part, fields, at=f"{top} of {source}")
        array = load_compute().struct_field(array, part)
    return _decode(array, name)


def _decode(array: Any, name: str) -> Any:
    """Converts an array of views, indices or an extension type to plain values."""
    types = load_pyarrow().types
    if str(array.type) in ("string_view", "binary_view"):  # Polars writes views; PyArrow 26 cannot drop their nulls
        return array.cast(f"large_{array.type}".removesuffix("_view"))
    if isinstance(array.type, load_pyarrow().BaseExtensionType):
        storage, kind = array.storage, array.type
        if max(getattr(kind, "ndim", None) or 0, len(getattr(kind, "shape", None) or ())) > 1:
            raise nested_lists(str(kind), name=name, at="its type")
        # Tensors of one dimension become lists: Ray stores NumPy arrays as tensors.
        tensor = types.is_struct(storage.type) and storage.type.get_field_index("data") >= 0
        return _decode(load_compute().struct_field(storage, "data") if tensor else storage, name)
    # A column of few distinct values may be stored as these values and their indices.
    return array.dictionary_decode() if types.is_dictionary(array.type) else array


def column_of_array(name: str, cells: Any, place: Place, count: TextCount | None, *, in_table: bool = False) -> Column:
    """Makes a column from the result of `take_cells`: its numbers, or the counts of its lists or texts.

    Raises:
        ValueError: The cells have a null, texts without `count`, objects, or lists of objects or lists.
    """
    if isinstance(cells, list):
        return column_of_cells(name, cells, place, count, in_table=in_table)
    types = load_pyarrow().types
    if not len(cells):
        return Column(name=name, values=np.zeros(0), place=place, unit=unit_of(name))
    if cells.null_count:
        raise not_a_number(None, name=name, at=place(load_compute().index(cells.is_null(), True).as_py()))
    if types.is_decimal(cells.type):
        # A float holds whole numbers below 2**53 exactly; larger ones are refused later.
        cells = cells.cast("float64")
    if types.is_integer(cells.type) or types.is_floating(cells.type):
        return Column(name=name, values=cells.to_numpy(zero_copy_only=False), place=place, unit=unit_of(name))
    if _is_list(cells.type) and _is_single(cells.type.value_type):
        counts = load_compute().list_value_length(cells).to_numpy(zero_copy_only=False)
        return Column(name=name, values=counts, place=place, unit="counts", kind="lists")
    if count is not None:
        return column_of_cells(name, cells.to_pylist(), place, count)
    if _is_list(cells.type):
        items = load_compute().list_flatten(cells).drop_null()[:1].to_pylist()
        raise nested_lists(cells[0].as_py(), name=name, at=place(0), item=items[0] if items else None)
    raise not_a_number(cells[0].as_py(), name=name, at=place(0))


def _is_single(kind: Any) -> bool:
    types = load_pyarrow().types
    return types.is_primitive(kind) or types.is_null(kind) or types.is_decimal(kind)


def _is_list(kind: Any) -> bool:
    """Tells if an Arrow type is any kind of list."""
    types = load_pyarrow().types
    views = str(kind).startswith(("list_view<", "large_list_view<"))  # PyArrow 15 has no test for views
    return views or types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def load_compute() -> Any:
    """Imports `pyarrow.compute`; an error says how to install it."""
    return load_package("pyarrow.compute", "read this source")


def load_pyarrow() -> Any:
    """Imports `pyarrow`; an error says how to install it."""
    load_package("pyarrow.types", "read this source")
    return load_package("pyarrow", "read this source")

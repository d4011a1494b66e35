"""Columns of .parquet and .arrow files, and of saved data sets of Hugging Face `datasets`.

Files are read batch by batch, so that hundreds of gigabytes of token lists need little memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lengthwise.checks import brief, load_package, source_error
from lengthwise.lengths.cells import TextCount, count_list, nested_lists, not_a_number
from lengthwise.lengths.columns import Column, Wanted, choose_columns, missing_column, top_of
from lengthwise.lengths.manifests import pick
from lengthwise.lengths.rules import Place
from lengthwise.lengths.text import Opener, Parts

_BUFFER = 2**22  # bytes of a column of a Parquet file to read at once
_ROWS = 2**16  # rows of Parquet to read at once


def read_arrow(path: Path, column: Wanted, size: int | None = None, opener: Opener = None) -> Parts:
    """Reads columns of a Parquet or an Arrow file: numbers, texts or lists.

    Args:
        path: The file.
        column: A name, or several separated by commas; nested ones as `audio.frames`. None for the only column.
        size: The most rows of a part.
        opener: Opens the file; None maps it into memory.

    Raises:
        ValueError: As `read_batches` and `take_columns`.
    """
    for names, batch, place in read_batches(path, column, size, opener):
        yield take_columns(batch, names, place, source=str(path))


def read_batches(
    path: Path,
    column: Wanted,
    size: int | None = None,
    opener: Opener = None,
    *,
    source: Path | None = None,
    first: int = 0,
) -> Iterator[tuple[list[str], Any, Place]]:
    """Yields the names in `column`, record batches with these columns, or with all for (), and their places.

    Args:
        path: The file.
        column: As for `read_arrow`; () for all columns.
        size: The most rows of a batch.
        opener: Opens the file; None maps it into memory.
        source: The path to name in errors, if it is not `path`.
        first: The number of the first row in the source.

    Raises:
        ValueError: The file is neither Parquet nor Arrow, or it is damaged. Or a column does not exist.
    """
    pyarrow, parquet = load_pyarrow(), load_pyarrow(".parquet")
    size, source = size or _ROWS, source or path
    try:
        with pyarrow.memory_map(str(path)) if opener is None else opener(path, "rb") as file:
            magic = file.read(6)
            file.seek(0)
            batches: Iterator[Any]
            if magic.startswith(b"PAR1"):
                # Without a buffer, PyArrow reads a whole column of a row group.
                table = parquet.ParquetFile(file, buffer_size=_BUFFER)
                names = choose_columns(column, table.schema_arrow.names, at=str(source), nested=True)
                tops = list(dict.fromkeys(top_of(name, table.schema_arrow.names) for name in names))
                batches = table.iter_batches(batch_size=size, columns=tops or None)
            else:
                # Arrow files begin with ARROW1; streams do not.
                is_file = magic == b"ARROW1"
                reader = pyarrow.ipc.open_file(file) if is_file else pyarrow.ipc.open_stream(file)
                names = choose_columns(column, reader.schema.names, at=str(source), nested=True)
                wholes = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
                batches = (whole.slice(start, size) for whole in wholes for start in range(0, whole.num_rows, size))
            for batch in batches:
                yield names, batch, _row_place(source, first)
                first += batch.num_rows
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        remedy = f"Write it again, or correct its suffix ({brief(error)})."
        raise source_error("a Parquet or an Arrow file", path, remedy) from error


def is_saved_dataset(folder: Path) -> bool:
    """Tells if `save_to_disk` of a Dataset or a DatasetDict wrote a folder."""
    return (folder / "dataset_dict.json").is_file() or (
        (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()
    )


def read_saved_dataset(folder: Path, column: Wanted) -> Parts:
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
    first = 0
    for shard in shards:
        for names, batch, place in read_batches(shard, column, source=folder, first=first):
            column = tuple(names)  # the first file decides
            yield take_columns(batch, names, place, source=str(folder))
            first += batch.num_rows


def _row_place(source: Path, first: int) -> Place:
    """Returns a function that names row k of a batch, whose first row is row `first` of the source."""
    return lambda row: f"row {first + row} of {source}"


def take_columns(batch: Any, names: Sequence[str], place: Place, *, source: str) -> list[Column]:
    """Returns columns of a record batch, or fields within them, such as `audio.frames`.

    The cells are an Arrow array of plain values, or a Python list for fields of list items, as `messages.*.content`.

    Raises:
        ValueError: A column or a field does not exist, or has a type without lengths.
    """
    return [Column(name=name, values=_take_cells(batch, name, source), place=place) for name in names]


def _take_cells(batch: Any, name: str, source: str) -> Any:
    top = top_of(name, batch.schema.names)
    parts = name[len(top) + 1 :].split(".") if name != top else []
    if "*" in parts:
        return [pick(name, row) for row in batch.select([top]).to_pylist()]
    array = batch.column(top)
    for part in parts:
        fields = [field.name for field in array.type] if load_pyarrow().types.is_struct(array.type) else []
        if part not in fields:
            raise missing_column(part, fields, at=f"{top} of {source}")
        array = load_pyarrow(".compute").struct_field(array, part)
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
        return _decode(load_pyarrow(".compute").struct_field(storage, "data") if tensor else storage, name)
    # A column of few distinct values may be stored as these values and their indices.
    return array.dictionary_decode() if types.is_dictionary(array.type) else array


def count_cells(column: Column, count: TextCount | None) -> Column:
    """Turns cells into numbers: the numbers themselves, or the counts of lists or texts.

    Raises:
        ValueError: The cells have a null, texts without `count`, objects, or lists of objects or lists.
    """
    name, cells, place = column.name, column.values, column.place
    if isinstance(cells, np.ndarray):
        return column
    if isinstance(cells, list):
        return count_list(column, count)
    types = load_pyarrow().types
    if not len(cells):
        return replace(column, values=np.zeros(0))
    if cells.null_count:
        raise not_a_number(column, load_pyarrow(".compute").index(cells.is_null(), True).as_py(), None)
    if types.is_decimal(cells.type):
        # A float holds whole numbers below 2**53 exactly; larger ones are refused later.
        cells = cells.cast("float64")
    if types.is_integer(cells.type) or types.is_floating(cells.type):
        return replace(column, values=cells.to_numpy(zero_copy_only=False))
    if _is_list(cells.type) and _is_single(cells.type.value_type):
        counts = load_pyarrow(".compute").list_value_length(cells).to_numpy(zero_copy_only=False)
        return replace(column, values=counts, unit="counts", kind="lists")
    if count is not None:
        return count_list(replace(column, values=cells.to_pylist()), count)
    if _is_list(cells.type):
        items = load_pyarrow(".compute").list_flatten(cells).drop_null()[:1].to_pylist()
        raise nested_lists(cells[0].as_py(), name=name, at=place(0), item=items[0] if items else None)
    raise not_a_number(column, 0, cells[0].as_py())


def _is_single(kind: Any) -> bool:
    types = load_pyarrow().types
    return types.is_primitive(kind) or types.is_null(kind) or types.is_decimal(kind)


def _is_list(kind: Any) -> bool:
    """Tells if an Arrow type is any kind of list."""
    types = load_pyarrow().types
    views = str(kind).startswith(("list_view<", "large_list_view<"))  # PyArrow 15 has no test for views
    return views or types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def load_pyarrow(module: str = "") -> Any:
    """Imports `pyarrow`, or a module of it, such as ".compute"; an error says how to install it."""
    return load_package(f"pyarrow{module}", "read this source")

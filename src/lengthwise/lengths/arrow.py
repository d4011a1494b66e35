"""Columns of .parquet and .arrow files, and of saved data sets of Hugging Face `datasets`.

Files are read batch by batch, so that hundreds of gigabytes of token lists need little memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lengthwise.checks import brief, load_package, source_error
from lengthwise.lengths.cells import TextCount, count_list, nested_lists, not_a_number
from lengthwise.lengths.columns import Column, Wanted, choose_columns, missing_column, split_sum, top_of, tops_of
from lengthwise.lengths.rules import Place
from lengthwise.lengths.text import Opener, Parts, pick

_BUFFER = 2**22  # bytes of a column of a Parquet file to read at once
_ROWS = 2**16  # rows of Parquet to read at once


def read_arrow(path: Path, column: Wanted, size: int | None = None, opener: Opener = None) -> Parts:
    """Yields columns of a Parquet or an Arrow file, or of a saved Dataset: numbers, texts or lists.

    Args:
        path: The file, or the folder of the Dataset.
        column: A name, or several separated by commas; nested ones as `audio.frames`. None for the only column.
        size: The most rows of a part.
        opener: Opens the file; None maps it into memory.

    Raises:
        ValueError: As `read_batches`, `take_columns` and `saved_shards`.
    """
    shards = saved_shards(path) if path.is_dir() else [path]
    for names, batch, place in read_batches(shards, column, path, size, opener):
        yield take_columns(batch, names, place, source=path)


def read_batches(
    files: Sequence[Path], column: Wanted, source: Path, size: int | None = None, opener: Opener = None
) -> Iterator[tuple[list[str], Any, Place]]:
    """Yields the names in `column`, record batches with these columns, and their places.

    Args:
        files: The files. The first one decides the names.
        column: As for `read_arrow`; () for batches with all columns.
        source: The path to name in errors.
        size: The most rows of a batch.
        opener: As for `read_arrow`.

    Raises:
        ValueError: A file is neither Parquet nor Arrow, or it is damaged. Or a column does not exist.
    """
    first = 0
    for path in files:
        try:
            with load_pyarrow().memory_map(str(path)) if opener is None else opener(path, "rb") as file:
                all_names, slices = _open(file)
                names = choose_columns(column, all_names, at=str(source), nested=True)
                column = tuple(names)
                for batch in slices(tops_of(names, all_names), size or _ROWS):
                    yield names, batch, lambda row, first=first: f"row {first + row} of {source}"
                    first += batch.num_rows
        except (load_pyarrow().ArrowException, OSError, UnicodeError) as error:
            remedy = f"Write it again, or correct its suffix ({brief(error)})."
            raise source_error("a Parquet or an Arrow file", path, remedy) from error


def _open(file: Any) -> tuple[list[str], Callable[[list[str], int], Iterator[Any]]]:
    """Returns the names of all columns, and the function that yields batches of some columns and some rows."""
    pyarrow, magic = load_pyarrow(), file.read(6)
    file.seek(0)
    if magic.startswith(b"PAR1"):
        # Without a buffer, PyArrow reads a whole column of a row group.
        table = load_pyarrow(".parquet").ParquetFile(file, buffer_size=_BUFFER)
        return table.schema_arrow.names, lambda tops, size: table.iter_batches(batch_size=size, columns=tops or None)
    # Arrow files begin with ARROW1; streams do not.
    is_file = magic == b"ARROW1"
    reader = pyarrow.ipc.open_file(file) if is_file else pyarrow.ipc.open_stream(file)
    wholes = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
    return reader.schema.names, lambda _, size: (
        whole.slice(start, size) for whole in wholes for start in range(0, whole.num_rows, size)
    )


def is_saved_dataset(folder: Path) -> bool:
    """Tells if `save_to_disk` of a Dataset or a DatasetDict wrote a folder."""
    names = ("state.json", "dataset_info.json")
    return (folder / "dataset_dict.json").is_file() or all((folder / name).is_file() for name in names)


def saved_shards(folder: Path) -> list[Path]:
    """Returns the files of a saved Dataset, in their order; `map` may have left other files beside them.

    Raises:
        ValueError: The folder holds a DatasetDict, the dataset has an indices mapping, or its state is damaged.
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
    return shards


def take_columns(batch: Any, names: Sequence[str], place: Place, *, source: str | Path) -> list[Column]:
    """Returns columns of a record batch, or fields within them, such as `audio.frames`.

    The cells are an Arrow array of plain values; a Python list for fields of list items, as `messages.*.content`; or a
    list of tuples for a sum.

    Raises:
        ValueError: A field does not exist, or has a type without lengths.
    """
    return [Column(name=name, values=_take_cells(batch, name, source), place=place) for name in names]


def _take_cells(batch: Any, name: str, source: str | Path) -> Any:
    if len(sum_parts := split_sum(name, batch.schema.names)) > 1:
        columns = [_take_cells(batch, part, source) for part in sum_parts]
        return list(zip(*(cells if isinstance(cells, list) else cells.to_pylist() for cells in columns), strict=True))
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
    cells = column.values
    if isinstance(cells, np.ndarray):
        return column
    if isinstance(cells, list):
        return count_list(column, count)
    types, compute = load_pyarrow().types, load_pyarrow(".compute")
    if not len(cells):
        return replace(column, values=np.zeros(0))
    if cells.null_count:
        raise not_a_number(column, compute.index(cells.is_null(), True).as_py(), None)
    if types.is_decimal(cells.type):
        # A float holds whole numbers below 2**53 exactly; larger ones are refused later.
        cells = cells.cast("float64")
    if types.is_integer(cells.type) or types.is_floating(cells.type):
        return replace(column, values=cells.to_numpy(zero_copy_only=False))
    is_list = hasattr(cells.type, "value_field")
    item = cells.type.value_type if is_list else None
    if is_list and (types.is_primitive(item) or types.is_null(item) or types.is_decimal(item)):
        counts = compute.list_value_length(cells).to_numpy(zero_copy_only=False)
        return replace(column, values=counts, unit="counts", kind="lists")
    if is_list or count is not None:
        return count_list(replace(column, values=cells.to_pylist()), count)
    raise not_a_number(column, 0, cells[0].as_py())


def load_pyarrow(module: str = "") -> Any:
    """Imports `pyarrow`, or a module of it, such as ".compute"; an error says how to install it."""
    return load_package(f"pyarrow{module}", "read this source")

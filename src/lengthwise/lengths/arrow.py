"""Columns of .parquet and .arrow files, and of data sets that Hugging Face `datasets` saves as the latter.

Read batch by batch, Arrow from a memory map, so that hundreds of gigabytes of token lists need little memory.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import brief, sentence, source_error
from lengthwise.lengths.columns import (
    Column,
    Kind,
    choose_known,
    missing_column,
    nested_lists,
    not_a_number,
    top_of,
    unit_of,
)
from lengthwise.lengths.counts import TextCount, are_sentences, are_turns, count_items, turn_field
from lengthwise.lengths.rules import Place

_BUFFER = 2**22  # bytes of a Parquet file that are asked of a disk or a store at once, for each column


def read_parquet(path: Path, column: str | None, count: TextCount | None = None) -> list[Column]:
    """Reads columns of a .parquet file: numbers, texts that are numbers, or lists, which give their lengths.

    Args:
        path: The file.
        column: A name, several separated by commas, nested ones as `audio.frames`; None where there is one only.
        count: What is counted of texts.

    Raises:
        ValueError: No such column, a null, text or booleans, or a file that is not Parquet.
    """
    with open_parquet(path) as file:
        names = choose_known(column, file.schema_arrow.names, at=str(path))
        # Parquet reads whole columns: of "audio.frames" and "audio.rate", audio is read once.
        tops = dict.fromkeys(top_of(name, file.schema_arrow.names) for name in names)
        return _gather(file.iter_batches(columns=list(tops)), names, path, count)


def read_arrow(
    files: Sequence[Path], column: str | None, count: TextCount | None = None, *, source: Path
) -> list[Column]:
    """Reads columns of Arrow files, stream or random access, one after the other; see `read_parquet`."""
    # The first file says which columns there are; a later one without them is refused when it is read.
    with open_batches(files[0]) as (schema, _):
        names = choose_known(column, schema.names, at=str(source))

    def batches() -> Iterator[Any]:
        for path in files:
            with open_batches(path) as (_, found):
                yield from found

    return _gather(batches(), names, source, count)


def is_saved_dataset(folder: Path) -> bool:
    """Says whether a folder was written by `save_to_disk`, of a Dataset or of a DatasetDict."""
    return (folder / "dataset_dict.json").is_file() or (
        (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()
    )


def read_saved_dataset(folder: Path, column: str | None, count: TextCount | None = None) -> list[Column]:
    """Reads columns of a saved Dataset; a list column, as `input_ids`, gives the length of each list.

    Args:
        folder: Where `state.json` is.
        column: A name, several separated by commas, or None where there is one only.
        count: What is counted of texts.

    Raises:
        ValueError: The folder of a DatasetDict, a dataset with an indices mapping, a file that is absent or
            damaged, and what `read_parquet` refuses.
    """
    if (folder / "dataset_dict.json").is_file():
        splits = ", ".join(sorted(state.parent.name for state in folder.glob("*/state.json")))
        raise source_error("one split", folder, f"Give {folder}/SPLIT with one of its splits: {splits}.")
    state = _load(folder / "state.json")
    # A dataset that was filtered or shuffled keeps its old files, and says by indices which rows are left.
    if state.get("_indices_files") or state.get("_indices_data_files"):
        remedy = "Call `flatten_indices()` and save it again, because its rows are not in the order of its files."
        raise source_error("a dataset without an indices mapping", folder, remedy)
    try:
        shards = [folder / entry["filename"] for entry in state["_data_files"]]
    except (KeyError, TypeError) as error:
        raise source_error("a saved dataset", folder, "Its state.json lists no files.") from error
    # No shards: a dataset without rows.
    return read_arrow(shards, column, count, source=folder) if shards else []


def _load(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # RecursionError: a hundred thousand brackets
        raise source_error("a saved dataset", path, f"Save it again ({error}).") from error
    return content if isinstance(content, dict) else {}


@contextlib.contextmanager
def open_parquet(path: Path, opener: Callable[..., Any] | None = None) -> Iterator[Any]:
    """Opens a `pyarrow.parquet.ParquetFile`; see `open_batches`."""
    pyarrow = load_pyarrow()
    from pyarrow import parquet

    try:
        opened = contextlib.nullcontext(path) if opener is None else opener(path, "rb")
        # Without a buffer, a column of a row group is read whole.
        with opened as source, parquet.ParquetFile(source, buffer_size=_BUFFER) as file:
            yield file
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        raise _damage_error(path, "a Parquet file", error) from error


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
    parts = name[len(top) + 1 :].split(".") if name != top else []
    return _follow(batch.column(top), parts, f"{top} of {source}")


def _follow(array: Any, parts: Sequence[str], at: str) -> Any:
    """Follows names into structs; `*` follows the rest into every item of lists: `messages.*.content`."""
    for k, part in enumerate(parts):
        if part == "*" and is_list(array.type):
            return _with_items(array, _follow(load_compute().list_flatten(array), parts[k + 1 :], at))
        names = [field.name for field in array.type] if load_pyarrow().types.is_struct(array.type) else []
        if part not in names:
            raise missing_column(part, names, at=at)
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


def _with_items(lists: Any, items: Any) -> Any:
    """Makes lists of other items, as many in each."""
    pyarrow = load_pyarrow()
    counts = load_compute().list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False)
    # [["a", "b"], null, ["c"]] has the offsets [0, null, 2, 3]: a null offset is a list that is null.
    nulls = np.append(lists.is_null().to_numpy(zero_copy_only=False), False)
    offsets = pyarrow.array(np.concatenate([[0], np.cumsum(counts)]), pyarrow.int64(), mask=nulls)
    return pyarrow.LargeListArray.from_arrays(offsets, items)


def column_of_array(name: str, array: Any, place: Place, count: TextCount | None) -> Column:
    """Makes a column of a decoded array: its numbers, or what is counted of its lists and texts.

    Raises:
        ValueError: A null; texts without `count`; objects; lists of objects or of lists, of which no count is sure.
    """
    if array.null_count:
        raise not_a_number(None, name=name, at=place(load_compute().index(array.is_null(), True).as_py()))
    kind: Kind = "lists" if is_list(array.type) else "numbers"
    if count is not None and _holds_texts(array.type):
        kind = "texts"
    values = _measure_cells(array, name, place, count)
    unit = unit_of(name) if kind == "numbers" else "counts"
    return Column(name=name, values=values, place=place, unit=unit, kind=kind)


def _measure_cells(array: Any, name: str, place: Place, count: TextCount | None) -> NDArray[Any]:
    types = load_pyarrow().types
    if is_list(array.type):
        return _measure_lists(array, name, place, count)
    if is_text(array.type) and count is not None:
        return count(array.to_pylist())
    if types.is_decimal(array.type):
        # A float holds whole numbers below 2**53 exactly; larger ones are refused later.
        array = array.cast("float64")
    if not (types.is_integer(array.type) or types.is_floating(array.type)):
        raise not_a_number(array[0].as_py() if len(array) else str(array.type), name=name, at=place(0))
    return array.to_numpy(zero_copy_only=False)


def _measure_lists(array: Any, name: str, place: Place, count: TextCount | None) -> NDArray[Any]:
    compute = load_compute()
    field = _turn_field(array.type)
    if count is not None and field is not None:
        array, name = _follow(array, ["*", field], name), f"{name}.*.{field}"
    texts = is_text(_plain(array.type.value_type))
    if count is not None and (texts or field is not None):
        return count_items(array.to_pylist(), name=name, place=place, count=count)
    single = texts or _is_single(array.type.value_type)
    turns = are_turns(name) and (texts or load_pyarrow().types.is_null(array.type.value_type))
    if not single or turns or (texts and are_sentences(compute.list_flatten(array).to_pylist())):
        value = array[0].as_py() if len(array) else str(array.type)
        items = compute.list_flatten(array).drop_null()[:1].to_pylist()
        raise nested_lists(value, name=name, at=place(0), item=items[0] if items else None)
    return compute.list_value_length(array).to_numpy(zero_copy_only=False)


def _holds_texts(kind: Any) -> bool:
    """Says whether an Arrow type holds texts to count: texts, lists of texts, turns of a chat."""
    if is_list(kind):
        return is_text(_plain(kind.value_type)) or _turn_field(kind) is not None
    return is_text(kind)


def _turn_field(kind: Any) -> str | None:
    """Returns which field holds the texts of a type of lists of structs, or None."""
    is_struct = load_pyarrow().types.is_struct(kind.value_type)
    return turn_field([field.name for field in kind.value_type]) if is_struct else None


def _is_single(kind: Any) -> bool:
    types = load_pyarrow().types
    return types.is_primitive(kind) or types.is_null(kind) or types.is_decimal(kind)


def _plain(kind: Any) -> Any:
    """Returns the type of the values of a dictionary, and any other type itself."""
    return kind.value_type if load_pyarrow().types.is_dictionary(kind) else kind


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

"""Data sets of files that pyarrow reads: Parquet, Arrow, CSV and JSON lines, on a disk or in a store of objects.

A piece is a file. Files of a folder are in the order of their paths, which is that of `pyarrow.dataset.dataset` too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lengthwise.checks import value_error
from lengthwise.engines.listing import has_rows, open_files
from lengthwise.engines.parts import Piece
from lengthwise.engines.rows import Block, Rule
from lengthwise.lengths.arrow import select_names, top_of
from lengthwise.lengths.sources import brief, source_error

_BUFFER = 2**22  # bytes of a Parquet file that are asked of a disk or a store at once, for each column
_READ_AHEAD = 2  # batches of files of other formats that are read before they are measured

InOrder = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]


class ArrowSource:
    """The files of a `pyarrow.dataset.Dataset`, in the order of its rows.

    Args:
        dataset: A `pyarrow.dataset.Dataset`; a path, a pattern or a URL; or a list of them.
        batch_size: The most rows that are read at once.
        spread: Runs a function over pieces elsewhere, in order; None reads them here.

    Raises:
        ValueError: No files, files of several formats, or a data set that was filtered.
    """

    def __init__(self, dataset: Any, *, batch_size: int, spread: InOrder | None) -> None:
        self._dataset = dataset if _is_dataset(dataset) else open_files(dataset)
        self._batch_size = batch_size
        self._spread = spread
        self._fragments = _fragments(self._dataset)
        self.pieces: list[Piece] = _pieces(self._dataset, self._fragments)
        # By nothing is it seen that what is in memory has changed: it is read anew.
        self.resumes: bool = all(piece.stamp for piece in self.pieces)
        self.facts: dict[str, Any] = {"schema": _schema_text(self._dataset.schema)}

    def names(self, column: str | None) -> tuple[str, ...]:
        """The columns that are meant, which are there."""
        return tuple(select_names(column, self._dataset.schema, "the data set"))

    def measure(self, numbers: Sequence[int], rule: Rule) -> Iterator[Iterable[Block]]:
        """Yields the blocks of each of these pieces, in order."""
        tops = [top_of(name, self._dataset.schema.names) for name in rule.names]
        columns = None if rule.length is not None else list(dict.fromkeys(tops))
        # Which of several columns are seconds is told by their types, which must then be those of the first file.
        own_types = rule.frame_shift is None or len(rule.names) == 1
        read = functools.partial(
            _read, schema=self._dataset.schema, own_types=own_types, columns=columns, batch_size=self._batch_size
        )
        if self._spread is None:
            return (_measure(self._fragments[number], read, rule) for number in numbers)
        gather = functools.partial(_gather, read=read, rule=rule)
        return self._spread(gather, [self._fragments[number] for number in numbers])


def _is_dataset(source: Any) -> bool:
    """Says whether this is a `pyarrow.dataset.Dataset`, without an import of pyarrow."""
    return any(kind.__module__ == "pyarrow._dataset" and kind.__name__ == "Dataset" for kind in type(source).__mro__)


def _measure(fragment: Any, read: Callable[[Any], Iterator[Any]], rule: Rule) -> Iterator[Block]:
    return (block for batch in read(fragment) for block in rule.blocks(batch))


def _gather(fragment: Any, read: Callable[[Any], Iterator[Any]], rule: Rule) -> list[Block]:
    # What travels back are lengths alone: of a file of a million rows 8 MB.
    return list(_measure(fragment, read, rule))


def _read(fragment: Any, *, schema: Any, own_types: bool, columns: list[str] | None, batch_size: int) -> Iterator[Any]:
    from pyarrow import ArrowException, dataset

    try:
        kind = getattr(getattr(fragment, "format", None), "default_extname", "")
        if kind in ("csv", "json") and not has_rows(fragment.filesystem, fragment.path, json=kind == "json"):
            return
        target = _widen(schema, fragment.physical_schema) if own_types else schema
        if isinstance(fragment, dataset.ParquetFileFragment):
            yield from _read_parquet(fragment, target, columns or schema.names, batch_size)
            return
        # Threads would read on while rows are measured, as far as a whole file.
        yield from fragment.to_batches(
            schema=target, columns=columns, batch_size=batch_size, batch_readahead=_READ_AHEAD, use_threads=False
        )
    except (ArrowException, OSError, UnicodeError) as error:
        advice = "Write it anew, with the types of the first file"
        if isinstance(error, FileNotFoundError):
            advice = "Let every process that reads see the same files"
        remedy = f"{advice}, and call again: what is done is kept ({brief(error)})."
        raise source_error("of files that can be read", getattr(fragment, "path", "in memory"), remedy) from error


def _read_parquet(fragment: Any, schema: Any, columns: list[str], batch_size: int) -> Iterator[Any]:
    """The batches of a Parquet file, as `to_batches` gives them. That decodes row groups whole, which may be large."""
    from pyarrow import RecordBatch, dataset, nulls, parquet, repeat, scalar
    from pyarrow import schema as make_schema

    wanted = make_schema([schema.field(name) for name in columns])
    # What the path says, as year=2024, and what this file lacks.
    constant = dataset.get_partition_keys(fragment.partition_expression)
    own = [name for name in columns if name in fragment.physical_schema.names and name not in constant]

    def take(batch: Any, field: Any) -> Any:
        if field.name in own:
            return batch.column(field.name).cast(field.type)
        if field.name not in constant:
            return nulls(batch.num_rows, field.type)
        return repeat(scalar(constant[field.name]), batch.num_rows).cast(field.type)

    with fragment.open() as opened:
        file = parquet.ParquetFile(opened, metadata=fragment.metadata, pre_buffer=False, buffer_size=_BUFFER)
        for group in fragment.row_groups:
            for batch in file.iter_batches(batch_size=batch_size, row_groups=[group.id], columns=own):
                if not batch.schema.equals(wanted):
                    batch = RecordBatch.from_arrays([take(batch, field) for field in wanted], schema=wanted)
                yield batch


def _widen(schema: Any, own: Any) -> Any:
    """The columns of the first file, in types that hold those of this file too: nulls and int8 give way to int64."""
    from pyarrow import ArrowException, unify_schemas
    from pyarrow import schema as make_schema

    shared = [field for field in own if schema.get_field_index(field.name) >= 0]
    if all(schema.field(field.name).type == field.type for field in shared):
        return schema
    try:
        return unify_schemas([schema, make_schema(shared)], promote_options="permissive")
    except ArrowException:  # texts and numbers, for example: reading says what does not fit
        return schema


def _fragments(dataset: Any) -> list[Any]:
    try:
        return list(dataset.get_fragments())
    except ValueError as error:
        remedy = "Give the data set as it was before `filter`, and let `length` answer for its rows."
        raise value_error("source", "a data set without a filter", type(dataset), remedy) from error


def _pieces(dataset: Any, fragments: list[Any]) -> list[Piece]:
    """Names the fragments, and says by what a change of them is seen: their size, and when they were written."""
    paths = [getattr(fragment, "path", "") for fragment in fragments]
    filesystem = getattr(dataset, "filesystem", None)
    if filesystem is not None and all(paths):
        # All at once: a store of objects is asked for thousands at a time.
        return [Piece(*each) for each in zip(paths, _stamps(filesystem, paths), strict=True)]
    return [_piece(*each) for each in enumerate(fragments)]


def _piece(number: int, fragment: Any) -> Piece:
    """A fragment of a union of data sets, which may be in memory."""
    path = getattr(fragment, "path", "")
    if not path:
        return Piece(f"fragment {number}", "")
    return Piece(path, *_stamps(fragment.filesystem, [path]))


def _stamps(filesystem: Any, paths: list[str]) -> list[str]:
    remote = getattr(getattr(filesystem, "handler", None), "fs", None)
    if remote is not None:
        # What fsspec says of a file: that of a store of objects has its ETag in it.
        return [str(remote.ukey(path)) for path in paths]
    return [f"{info.size} bytes, written at {info.mtime_ns} ns" for info in filesystem.get_file_info(paths)]


def _schema_text(schema: Any) -> str:
    return schema.remove_metadata().to_string(truncate_metadata=True)

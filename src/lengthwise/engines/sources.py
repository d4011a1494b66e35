"""The rule by which rows become lengths, and the data sets whose rows it measures, each in its own order.

A row without a length, such as a null, raises no error: it gets the length 1 and a reason.

    tokens [[5, 6], None, [], [7]]    lengths [2, 1, 1, 1]    reasons {1: "`tokens` must be given, ...", 2: ...}

Files are found on a disk or in an object store, and read one after the other. A data set of pyarrow, Hugging Face
`datasets`, Dask or Ray is read by the engine of its package, in `ENGINES`, which may measure in other processes.

Shapes: k rows of a batch; dims lengths for each. One dimension is [k], several are [k, dims].
"""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import brief, source_error, value_error
from lengthwise.lengths.arrow import count_cells, load_pyarrow, read_arrow, read_batches, take_columns
from lengthwise.lengths.cells import TextCount, check_counted
from lengthwise.lengths.columns import Column, choose_columns, choose_shifts, tops_of
from lengthwise.lengths.read import find_files, read_files
from lengthwise.lengths.rules import Place, bad_value, check_dims, convert

_READ_AHEAD = 2  # batches of pyarrow that are read before they are measured
_TOGETHER = 128  # partitions of Dask that are computed at once, so that few lengths wait in memory


Measure = Callable[[Any], Any]


class Block(NamedTuple):
    """The lengths of consecutive rows.

    Attributes:
        lengths: [k] or [k, dims] int64; 1 for a row without a length.
        reasons: The reason for each row without a length, by the number of the row in the block.
        kinds: The name and the kind of each column: "numbers", "seconds" for numbers that take the frame shift, "lists"
            or "texts"; "" if no row has a value.
    """

    lengths: NDArray[np.int64]
    reasons: dict[int, str]
    kinds: list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The rule that gives each row its length.

    Attributes:
        column: The columns that are measured, separated by commas; None for the only one.
        length: In place of `column`: a function of a `pyarrow.RecordBatch` of k rows that returns [k] or [k, dims]
            numbers; or None.
        frame_shift: The divisor of durations, or None.
        count: The function that counts texts, or None.
    """

    column: str | None = None
    length: Measure | None = None
    frame_shift: float | None = None
    count: TextCount | None = None

    def choose(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Returns the columns to measure, and the columns to read for them, of all `names` of a data set.

        Raises:
            ValueError: A column does not exist.
        """
        if self.length is not None:
            return [], list(names)
        chosen = choose_columns(self.column, names, at="the data set", nested=True)
        return chosen, tops_of(chosen, names)

    def measure_batches(self, batches: Any, names: Sequence[str], place: Place = lambda _: "") -> list[Block]:
        """Measures the columns `names` of each `pyarrow.RecordBatch`, or calls the function.

        Args:
            batches: The batches.
            names: The columns to measure, as from `choose`.
            place: Names the place of row k of a batch.
        """
        rows = (batch for batch in batches if batch.num_rows)
        if self.length is not None:
            return [self.measure(_ask(self.length, batch, place)) for batch in rows]
        return [self.measure(take_columns(batch, names, place, source="the data set")) for batch in rows]

    def measure(self, columns: Sequence[Column]) -> Block:
        """Measures rows by the cells of their columns.

        Raises:
            ValueError: A column has a type without lengths. A single bad number never raises: its row gets a reason.
        """
        check_dims(len(columns))
        rows_present, present = zip(*map(_drop_missing, columns), strict=True)
        numbers = [count_cells(column, self.count) for column in present]
        check_counted(numbers, self.count)
        shifts = choose_shifts(numbers, self.frame_shift, by_type=True)
        count, reasons = len(columns[0].values), dict[int, str]()
        lengths = np.ones((count, len(columns)), dtype=np.int64)
        # Go backwards: the reason of an earlier column replaces that of a later one.
        for dim in reversed(range(len(columns))):
            rows, column, shift = rows_present[dim], numbers[dim], shifts[dim]
            lengths[rows, dim], good = convert(column.values, shift)
            for row in set(range(count)).difference(rows):
                place = columns[dim].place(row)
                reasons[row] = str(value_error(column.name, "given", None, "Fill it in, or drop the row.", at=place))
            for at in np.flatnonzero(~good).tolist():
                error = bad_value(column.values, at, shift, name=column.name, place=column.place)
                reasons[rows[at]] = str(error)
        # A row is bad as a whole: (7, 0) becomes (1, 1).
        lengths[list(reasons)] = 1
        kinds = [
            (column.name, ("seconds" if shift else column.kind) if len(column.values) else "")
            for column, shift in zip(numbers, shifts, strict=True)
        ]
        return Block(lengths[:, 0] if len(columns) == 1 else lengths, dict(sorted(reasons.items())), kinds)


def _drop_missing(column: Column) -> tuple[Sequence[int], Column]:
    """Returns the rows of the cells that are not null, empty or absent, and these cells."""
    cells = column.values
    if isinstance(cells, np.ndarray):
        return range(len(cells)), column
    if isinstance(cells, list):
        rows = [row for row, cell in enumerate(cells) if not (cell is None or cell == "" or type(cell) is KeyError)]
        cells = [cells[row] for row in rows]
    else:
        rows = np.flatnonzero(cells.is_valid().to_numpy(zero_copy_only=False)).tolist()
        cells = cells.drop_null()
    # Without the missing cell of [5, None, 0], value 1 is row 2 of the batch.
    return rows, replace(column, values=cells, place=lambda at: column.place(rows[at]))


def _ask(length: Measure, batch: Any, place: Place) -> list[Column]:
    """Calls the user's function with a batch, and returns each dimension of the answer as a column."""
    returned, count = length(batch), batch.num_rows
    try:
        answer = np.asarray(returned)
    except ValueError:  # rows of several widths
        answer = np.array(None)
    if answer.dtype.kind not in "iuf" or answer.shape[:1] != (count,) or answer.ndim > 2 or answer.shape[1:] == (0,):
        rule = f"a function that returns [{count}] or [{count}, dims] numbers for {count} rows"
        remedy = "Return one number, or one row of numbers, for each row of the batch; NaN for a row without a length."
        raise value_error("length", rule, f"{answer.dtype} {list(answer.shape)}", remedy)
    return [Column(name="length", values=values, place=place) for values in answer.reshape(count, -1).T]


def read_blocks(source: Any, rule: Rule, size: int) -> Iterator[Block]:
    """Yields the lengths of the rows of a data set, in their order, as `rule` measures at most `size` rows at once.

    Raises:
        FileNotFoundError: There is no such file or folder.
        ValueError: There are no files of a known format, or files of several formats; or the data set is of a kind that
            its engine does not read.
        TypeError: `source` is not a data set, a path, or a list of paths.
        ModuleNotFoundError: fsspec, or the file system of a URL, is not installed.
    """
    packages = [kind.__module__.partition(".")[0] for kind in type(source).__mro__]
    read = next((ENGINES[package] for package in packages if package in ENGINES), _file_blocks)
    return itertools.chain.from_iterable(read(source, rule, size))


def _check_kind(source: Any, kind: str, remedy: str) -> None:
    """Refuses other objects of a package than the data sets of the class `kind`, such as "ray.data.Dataset"."""
    package, *_, name = kind.split(".")
    if (package, name) not in [(base.__module__.partition(".")[0], base.__name__) for base in type(source).__mro__]:
        raise value_error("source", f"a {kind}", type(source).__name__, remedy)


def _pyarrow_blocks(source: Any, rule: Rule, size: int) -> Iterator[list[Block]]:
    """Measures the fragments in their order."""
    _check_kind(source, "pyarrow.dataset.Dataset", "Make one by `pyarrow.dataset.dataset`, which takes tables too.")
    names, columns = rule.choose(source.schema.names)
    # With threads, pyarrow would read up to a whole file ahead.
    options: dict[str, Any] = {"batch_readahead": _READ_AHEAD, "fragment_readahead": 1, "use_threads": False}
    for batch in source.to_batches(columns=columns, batch_size=size, **options):
        yield rule.measure_batches([batch], names)


def _hugging_face_blocks(source: Any, rule: Rule, size: int) -> Iterator[list[Block]]:
    """Measures the rows in their order."""
    remedy = "Give one split of a DatasetDict; for a stream, use `lengthwise.torch.StreamBatches`."
    _check_kind(source, "datasets.Dataset", remedy)
    if source.format["type"] == "custom":  # rows would be measured as stored, before the transform
        remedy = "Its rows change only when they are read: give `map` the transform, and measure the result."
        raise value_error("source", "a data set without with_transform", "one with a transform", remedy)
    names, columns = rule.choose(source.column_names)
    # The other columns are not selected, so that their audio and images are not decoded.
    for table in source.select_columns(columns).with_format("arrow").iter(size):
        # Of a shuffled data set, each row is a chunk.
        yield rule.measure_batches(table.combine_chunks().to_batches(max_chunksize=size), names)


def _dask_blocks(source: Any, rule: Rule, size: int) -> Iterator[list[Block]]:
    """Measures the partitions in their order, by the current scheduler of Dask."""
    from dask.base import compute
    from dask.delayed import delayed

    remedy = "Turn a bag into a data frame by `to_dataframe`, and a series by `to_frame`."
    _check_kind(source, "dask.dataframe.DataFrame", remedy)
    names, columns = rule.choose([str(name) for name in source.columns])
    parts = source[columns].to_delayed()
    measure = delayed(_measure_frame, pure=False)
    for start in range(0, len(parts), _TOGETHER):
        yield from compute(*(measure(part, rule, names, size) for part in parts[start : start + _TOGETHER]))


def _measure_frame(frame: Any, rule: Rule, names: list[str], size: int) -> list[Block]:
    pyarrow = load_pyarrow()
    try:
        table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    except pyarrow.ArrowException as error:
        remedy = f"Give each column one type first ({brief(error)})."
        raise source_error("of columns of one type each", "a partition", remedy) from error
    return rule.measure_batches(table.to_batches(max_chunksize=size), names)


def _ray_blocks(source: Any, rule: Rule, size: int) -> Iterator[list[Block]]:
    """Measures the blocks in their order on the cluster: only lengths come back."""
    _check_kind(source, "ray.data.Dataset", "Read one by `ray.data`.")
    names, columns = rule.choose(source.columns() or [])
    chosen = source if rule.length else source.select_columns(columns)
    measure = functools.partial(_measure_pickled, rule=rule, names=names, size=size)
    measured = chosen.map_batches(measure, batch_format="pyarrow", batch_size=size, zero_copy_batch=True)
    options = measured.context.execution_options
    keeps_order = options.preserve_order
    options.preserve_order = True  # by default, blocks come in another order in every run
    try:
        for table in measured.iter_batches(batch_format="pyarrow", batch_size=None):
            for pickled in table.column("blocks").to_pylist():
                answer = pickle.loads(pickled)
                if isinstance(answer, Exception):
                    raise answer
                yield answer
    finally:
        options.preserve_order = keeps_order


def _measure_pickled(table: Any, rule: Rule, names: list[str], size: int) -> Any:
    try:
        answer = pickle.dumps(rule.measure_batches(table.to_batches(max_chunksize=size), names))
    except (ValueError, TypeError) as error:
        answer = pickle.dumps(type(error)(str(error)))  # Ray would add pages to an error raised in a worker
    return load_pyarrow().table({"blocks": [answer]})


def _file_blocks(source: Any, rule: Rule, size: int) -> Iterator[list[Block]]:
    """Measures files of one format, one after the other: of a path, a pattern, a URL, or a list of these.

    Files of a folder or a pattern are sorted by their paths; those of a list keep its order. Names that begin with a
    dot or an underscore are skipped, unless the pattern has such a name. In a folder, files with an unknown suffix are
    skipped too.
    """
    if rule.length is None:
        yield from ([rule.measure(columns)] for columns in read_files(source, rule.column, size))
        return
    opener, paths, format = find_files(source)
    if format.read is not read_arrow:
        remedy = 'Give the files as `pyarrow.dataset.dataset(source, format="csv")`, or "json".'
        raise value_error("length", f"left out for files of {format.name}", rule.length, remedy)
    for path in paths:
        for _, batch, place in read_batches([path], (), path, size, opener):
            yield rule.measure_batches([batch], (), place)


ENGINES = {"pyarrow": _pyarrow_blocks, "datasets": _hugging_face_blocks, "dask": _dask_blocks, "ray": _ray_blocks}

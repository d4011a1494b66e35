"""The rule by which rows become lengths, the same under every engine and in other processes.

A row without a length, such as a null, raises no error: it gets the length 1 and a reason.

    tokens [[5, 6], None, [], [7]]    lengths [2, 1, 1, 1]    reasons {1: "`tokens` must be given, ...", 2: ...}

Shapes: k rows of a batch; dims lengths for each. One dimension is [k], several are [k, dims].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import value_error
from lengthwise.lengths.arrow import column_of_array, take_cells, top_of
from lengthwise.lengths.cells import TextCount, check_counted
from lengthwise.lengths.columns import Column, choose_shifts, missing_column
from lengthwise.lengths.rules import Place, bad_value, check_dims, convert

Measure = Callable[[Any], Any]


class Block(NamedTuple):
    """The lengths of consecutive rows.

    Attributes:
        lengths: [k] or [k, dims] int64; 1 for a row without a length.
        reasons: The reason for each row without a length, by the number of the row in the block.
        kinds: The kind of each column: "numbers", "seconds" for numbers that take the frame shift, "lists" or "texts";
            "" if no row has a value.
    """

    lengths: NDArray[np.int64]
    reasons: dict[int, str]
    kinds: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The rule that gives each row its length.

    Attributes:
        names: The columns that are measured; () if there is a `length`.
        length: A function of a `pyarrow.RecordBatch` of k rows that returns [k] or [k, dims] numbers; or None.
        frame_shift: The divisor of durations, or None.
        count: The function that counts texts, or None.
    """

    names: tuple[str, ...] = ()
    length: Measure | None = None
    frame_shift: float | None = None
    count: TextCount | None = None

    def columns(self, names: list[str], at: str = "the data set") -> list[str]:
        """Returns the columns to read, of all `names`; `at` is the place in an error.

        Raises:
            ValueError: A column does not exist.
        """
        tops = [top_of(name, names) for name in self.names] if self.length is None else names
        if absent := set(tops).difference(names):
            raise missing_column(min(absent), names, at=at)
        return list(dict.fromkeys(tops))

    def measure_table(self, table: Any, size: int) -> list[Block]:
        """Measures a `pyarrow.Table`, at most `size` rows at once."""
        return [self.measure(batch) for batch in table.to_batches(max_chunksize=size) if batch.num_rows]

    def measure(self, batch: Any, place: Place = lambda _: "") -> Block:
        """Measures a `pyarrow.RecordBatch`, whose row k is at `place(k)`.

        Raises:
            ValueError: A column does not exist or has a type without lengths, or the user's function returns another
                shape. A single bad number never raises: its row gets a reason.
        """
        rows = range(batch.num_rows)
        if self.length is not None:
            return self._settle([(rows, column) for column in _ask(self.length, batch, place)], place, len(rows))
        cells = [take_cells(batch, name, place(0) or "the data set", place) for name in self.names]
        return self._measure_columns(cells, place, len(rows))

    def measure_cells(self, cells: Sequence[list[Any]], place: Place, *, table: bool) -> Block:
        """Measures [dims, k] cells: values of JSON, or, if `table` is True, the texts of a CSV or TSV file."""
        return self._measure_columns(cells, place, len(cells[0]), in_table=table and len(cells) > 1)

    def _measure_columns(self, columns: Sequence[Any], place: Place, count: int, *, in_table: bool = False) -> Block:
        """Measures columns, which are lists or Arrow arrays, without their missing cells."""
        present: list[tuple[Sequence[int], Column]] = []
        for name, cells in zip(self.names, columns, strict=True):
            if isinstance(cells, list):
                rows = [row for row, cell in enumerate(cells) if cell is not None and cell != ""]
                values = [cells[row] for row in rows]
            else:
                rows = np.flatnonzero(cells.is_valid().to_numpy(zero_copy_only=False)).tolist()
                values = cells.drop_null()
            where = _place_among(rows, place)
            present.append((rows, column_of_array(name, values, where, self.count, in_table=in_table)))
        return self._settle(present, place, count)

    def _settle(self, columns: Sequence[tuple[Sequence[int], Column]], place: Place, count: int) -> Block:
        """Makes a block from columns, each with the rows of its values."""
        check_counted((column.kind == "texts" or not rows for rows, column in columns), self.count)
        shifts = choose_shifts([column for _, column in columns], self.frame_shift, by_type=True)
        lengths = np.ones((count, len(columns)), dtype=np.int64)
        reasons: dict[int, str] = {}
        # Go backwards: the reason of an earlier column replaces that of a later one.
        for dim in reversed(range(len(columns))):
            (rows, column), shift = columns[dim], shifts[dim]
            lengths[rows, dim], good = convert(column.values, shift)
            for row in set(range(count)).difference(rows):
                error = value_error(column.name, "given", None, "Fill it in, or drop the row.", at=place(row))
                reasons[row] = str(error)
            for at in np.flatnonzero(~good).tolist():
                error = bad_value(column.values, at, shift, name=column.name, place=column.place)
                reasons[rows[at]] = str(error)
        # A row is bad as a whole: (7, 0) becomes (1, 1).
        lengths[list(reasons)] = 1
        kinds = [
            "seconds" if shift else column.kind if len(column.values) else ""
            for (_, column), shift in zip(columns, shifts, strict=True)
        ]
        return Block(lengths[:, 0] if len(columns) == 1 else lengths, dict(sorted(reasons.items())), tuple(kinds))


def _place_among(rows: Sequence[int], place: Place) -> Place:
    # Without the missing cell of [5, None, 0], value 1 is row 2 of the batch.
    return lambda at: place(rows[at])


def _ask(length: Measure, batch: Any, place: Place) -> list[Column]:
    """Calls the user's function with a batch, and returns each dimension of the answer as a column."""
    answer = np.asarray(length(batch))
    count = batch.num_rows
    if answer.dtype.kind not in "iuf" or answer.shape[:1] != (count,) or answer.ndim > 2 or answer.shape[1:] == (0,):
        rule = f"a function that returns [{count}] or [{count}, dims] numbers for {count} rows"
        remedy = "Return one number, or one row of numbers, for each row of the batch; NaN for a row without a length."
        raise value_error("length", rule, f"{answer.dtype} {list(answer.shape)}", remedy)
    table = answer.reshape(count, -1)
    check_dims(table.shape[1])
    return [Column(name="length", values=values, place=place) for values in table.T]

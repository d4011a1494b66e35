"""The rule by which rows become lengths, the same under every engine and in other processes.

A row without a length, such as a null, raises no error: it gets the length 1 and a reason.

    tokens [[5, 6], None, [], [7]]    lengths [2, 1, 1, 1]    reasons {1: "`tokens` must be given, ...", 2: ...}

Shapes: k rows of a batch; dims lengths for each. One dimension is [k], several are [k, dims].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import value_error
from lengthwise.lengths.arrow import count_cells, take_columns
from lengthwise.lengths.cells import TextCount, check_counted
from lengthwise.lengths.columns import Column, choose_columns, choose_shifts, top_of
from lengthwise.lengths.rules import Place, bad_value, check_dims, convert

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
        return chosen, list(dict.fromkeys(top_of(name, names) for name in chosen))

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

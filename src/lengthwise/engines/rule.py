"""The rule by which rows become lengths: the same under every engine, also in other processes.

A row that has no length, a null, for example, stops nothing. It has the length 1 and a reason:

    tokens [[5, 6], None, [], [7]]    lengths [2, 1, 1, 1]    reasons {1: "tokens is missing", 2: ...}

Shapes: k rows of a batch; dims lengths for each. One dimension is [k], several are [k, dims].
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import make_visible, value_error
from lengthwise.lengths.arrow import column_of_array, decode_array, take_field, top_of
from lengthwise.lengths.columns import MOST_SECONDS, Column, check_counted, choose_shifts, missing_column
from lengthwise.lengths.counts import TextCount
from lengthwise.lengths.rules import Place, broken_rule, check_dims, exact_bits, is_length, round_frames
from lengthwise.lengths.units import (
    SECONDS_NAMES,
    last_part,
    unit_of,
)

Measure = Callable[[Any], Any]


class Block(NamedTuple):
    """The lengths of some rows in a row.

    Attributes:
        lengths: [k] or [k, dims] int64; 1 at a row that has none.
        reasons: Why it has none, by the number of the row in the block.
        kinds: What each column holds: "numbers", "seconds", "lists" or "texts"; "" where all its rows are missing.
    """

    lengths: NDArray[np.int64]
    reasons: dict[int, str]
    kinds: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The rule by which a row has its length.

    Attributes:
        names: The columns that are measured; () where `length` answers.
        length: Takes a `pyarrow.RecordBatch` of k rows, returns [k] or [k, dims] numbers; or None.
        frame_shift: What a duration is divided by, or None.
        sample_rate: Samples in a second, where columns count samples; or None.
        count: What is counted of texts, or None.
    """

    names: tuple[str, ...] = ()
    length: Measure | None = None
    frame_shift: float | None = None
    sample_rate: float | None = None
    count: TextCount | None = None

    def columns(self, names: list[str], at: str = "the data set") -> list[str]:
        """Returns those of the columns of a data set, or of the file `at`, that must be read.

        Raises:
            ValueError: One of them is absent.
        """
        tops = [top_of(name, names) for name in self.names] if self.length is None else names
        if absent := set(tops).difference(names):
            raise missing_column(min(absent), names, at=at)
        return list(dict.fromkeys(tops))

    def measure_table(self, table: Any, size: int) -> list[Block]:
        """Measures a `pyarrow.Table`, at most `size` rows at once."""
        return [self.measure(batch) for batch in table.to_batches(max_chunksize=size) if batch.num_rows]

    def measure(self, batch: Any, place: Place | None = None) -> Block:
        """Measures a `pyarrow.RecordBatch`, whose k-th row stands at `place(k)`.

        Raises:
            ValueError: A column that is absent or of a type that has no length; a function that answers in another
                shape. One number alone never raises: its row has a reason.
        """
        if self.length is not None:
            return self._settle([(range(batch.num_rows), column) for column in _ask(self.length, batch)], place)
        columns: list[tuple[Sequence[int], Column]] = []
        for name in self.names:
            at = "the data set" if place is None else place(0)
            array = decode_array(take_field(batch, name, at), name)
            rows = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False)).tolist()
            read = functools.partial(column_of_array, name, array.drop_null(), count=self.count)
            columns.append(_column(name, rows, read, place))
        return self._settle(columns, place, batch.num_rows)

    def measure_cells(self, cells: Sequence[Sequence[Any]], read: Callable[..., Column], place: Place) -> Block:
        """Measures [dims, k] cells of a file of text, which `read(name, cells, place)` makes columns of."""
        columns: list[tuple[Sequence[int], Column]] = []
        for name, values in zip(self.names, cells, strict=True):
            rows = [row for row, value in enumerate(values) if value is not None and value != ""]
            columns.append(_column(name, rows, functools.partial(read, name, [values[row] for row in rows]), place))
        return self._settle(columns, place, len(cells[0]))

    def _settle(
        self, columns: list[tuple[Sequence[int], Column]], place: Place | None, count: int | None = None
    ) -> Block:
        """Makes a block of columns and the rows that they have values of."""
        count = len(columns[0][0]) if count is None else count
        check_counted((column.kind == "texts" or not rows for rows, column in columns), self.count)
        shifts = choose_shifts([column for _, column in columns], self.frame_shift, self.sample_rate, by_type=True)
        lengths = np.ones((count, len(columns)), dtype=np.int64)
        reasons: dict[int, str] = {}
        # Backwards, so that the first column says why a row is bad.
        for dim in reversed(range(len(columns))):
            rows, column = columns[dim]
            values, wrong = self._check_values(column, shifts[dim])
            lengths[rows, dim] = values
            reasons |= dict.fromkeys(set(range(count)).difference(rows), f"{column.name} is missing")
            reasons |= {rows[at]: reason for at, reason in wrong.items()}
        # A row is bad as a whole: of (7, 0) nothing is left.
        lengths[list(reasons)] = 1
        ends = {row: f" at {place(row)}" if place else "" for row in reasons}
        reasons = {row: make_visible(reason + ends[row]) for row, reason in reasons.items()}
        kinds = [
            "seconds" if shift else column.kind if len(column.values) else ""
            for (_, column), shift in zip(columns, shifts, strict=True)
        ]
        return Block(lengths[:, 0] if len(columns) == 1 else lengths, dict(sorted(reasons.items())), tuple(kinds))

    def _check_values(self, column: Column, shift: float | None) -> tuple[NDArray[np.int64], dict[int, str]]:
        """Returns lengths where the numbers are lengths or durations, and a reason for every other number."""
        values, numbers = column.values, column.values
        good = np.ones(len(values), dtype=np.bool_)
        sampled = self.sample_rate is not None
        if shift is not None:
            good = np.isfinite(values) & (values > 0) & (np.equal(values, np.rint(values)) if sampled else True)
            numbers = np.ones(len(values))
            numbers[good] = round_frames(values[good], shift)
            # As `read_lengths` does, but by the type alone: of a batch of whole seconds nothing says what is whole.
            if shift < 1 and column.unit == "unknown" and last_part(column.name) not in SECONDS_NAMES:
                good &= (values <= MOST_SECONDS) | (values.dtype.kind == "f")
        good &= is_length(numbers)
        lengths = np.ones(len(values), dtype=np.int64)
        lengths[good] = numbers[good]
        bits = exact_bits(values)
        return lengths, {
            row: f"{column.name} must be {_broken_rule(values[row].item(), bits, shift is not None, sampled)}"
            for row in np.flatnonzero(~good).tolist()
        }


def _column(
    name: str, rows: Sequence[int], read: Callable[..., Column], place: Place | None
) -> tuple[Sequence[int], Column]:
    """Returns the rows that have values, and the column that `read` makes of their cells."""
    if not rows:  # no value tells their type
        return rows, Column(name=name, values=np.zeros(0), place=str, unit=unit_of(name))
    # Of cells [5, None, 0] row 1 of the values is row 2 of the batch.
    return rows, read(place=lambda at: f"row {rows[at]} of a batch" if place is None else place(rows[at]))


def _broken_rule(value: float, bits: int, timed: bool, sampled: bool) -> str:
    if timed and not (math.isfinite(value) and value > 0):
        return f"finite and above 0, but is {value}"
    if timed and sampled and value != round(value):
        return f"a whole number of samples, but is {value}"
    if timed and isinstance(value, int) and value > MOST_SECONDS:
        return f"at most {MOST_SECONDS} seconds in whole numbers, but is {value}: samples need `sample_rate`"
    rule = broken_rule(value, bits=bits)
    return f"{rule}, but is {value}" + ": seconds need `frame_shift`" * (rule == "a whole number")


def _ask(length: Measure, batch: Any) -> list[Column]:
    """Asks the function of the user about a batch: a column for each dimension of its answer."""
    answer = np.asarray(length(batch))
    count = batch.num_rows
    if answer.dtype.kind not in "iuf" or answer.shape[:1] != (count,) or answer.ndim > 2 or answer.shape[1:] == (0,):
        rule = f"a function that returns [{count}] or [{count}, dims] numbers for {count} rows"
        remedy = "Return one number, or one row of numbers, for each row of the batch; NaN for a row without a length."
        raise value_error("length", rule, f"{answer.dtype} {list(answer.shape)}", remedy)
    table = answer.reshape(count, -1)
    check_dims(table.shape[1])
    return [Column(name="length", values=values, place=str) for values in table.T]

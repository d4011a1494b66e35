"""How a batch of rows becomes lengths: the same rule under every engine.

A row that has no length, a null, for example, stops nothing. It has the length 0 and a reason until all rows are read:

    tokens [[5, 6], None, [], [7]]    lengths [2, 0, 0, 1]    reasons {1: "tokens is null", 2: ...}

Shapes: k rows of a batch; dims lengths for each. One dimension is [k], several are [k, dims].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise._names import name_with_code
from lengthwise.checks import show_value, value_error
from lengthwise.lengths.arrow import is_list, is_text, load_compute, load_pyarrow, take_field
from lengthwise.lengths.columns import (
    SECONDS_NAMES,
    Unit,
    check_counted,
    last_part,
    nested_lists,
    shifts_in_samples,
    shifts_in_seconds,
    text_without_count,
    unit_of,
)
from lengthwise.lengths.counts import TextCount
from lengthwise.lengths.rules import broken_rule, check_dims, exact_bits, is_length, round_frames

_ANSWER = "Return an array of one number, or one row of numbers, for each row of the batch."

Measure = Callable[[Any], Any]


class Block(NamedTuple):
    """The lengths of some rows in a row.

    Attributes:
        lengths: [k] or [k, dims] int64; 0 at a row that has none.
        reasons: Why it has none, by the number of the row in the block.
    """

    lengths: NDArray[np.int64]
    reasons: dict[int, str]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What the length of a row is. It travels to other processes.

    Attributes:
        names: The columns whose numbers, or lists, are the lengths; () where `length` answers.
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

    def blocks(self, table: Any) -> Iterator[Block]:
        """The lengths of a `pyarrow.Table` or a record batch, part by part.

        Raises:
            ValueError: A column that is absent or of a type that has no length; a function that answers in another
                shape. One row alone never raises: it has a reason.
        """
        pyarrow = load_pyarrow()
        batches = [table] if isinstance(table, pyarrow.RecordBatch) else table.to_batches()
        return (self._block(batch) for batch in batches if batch.num_rows)

    def _block(self, batch: Any) -> Block:
        if self.length is not None:
            return _ask(self.length, batch)
        arrays = [_decode(take_field(batch, name, "the data set"), name) for name in self.names]
        # A batch of nulls alone may have lost the type of its column.
        types = load_pyarrow().types
        check_counted((is_text(array.type) or types.is_null(array.type) for array in arrays), self.count)
        shifts = self._choose_shifts(arrays)
        parts = [self._column(*each) for each in zip(arrays, self.names, shifts, strict=True)]
        reasons = {row: reason for part in reversed(parts) for row, reason in part.reasons.items()}
        lengths = parts[0].lengths if len(parts) == 1 else np.stack([part.lengths for part in parts], axis=1)
        # A row is bad as a whole: of (7, 0) nothing is left.
        lengths[list(reasons)] = 0
        return Block(lengths, reasons)

    def _choose_shifts(self, arrays: list[Any]) -> list[float | None]:
        """What each column is divided by: of seconds, as `read_lengths` would choose, but by their types alone.

        A type is the same in every batch. A column that has fractions somewhere may have none in the first batch.
        """
        if self.frame_shift is None:
            return [None] * len(arrays)
        units: list[Unit] = [*map(_unit, arrays, self.names)]
        if self.sample_rate is not None:
            return shifts_in_samples(self.names, units, self.frame_shift, self.sample_rate)
        floating, alone = load_pyarrow().types.is_floating, len(arrays) == 1
        timed = [
            unit != "counts" and (alone or last_part(name) in SECONDS_NAMES or floating(array.type))
            for array, name, unit in zip(arrays, self.names, units, strict=True)
        ]
        return shifts_in_seconds(self.names, timed, self.frame_shift)

    def _column(self, array: Any, name: str, shift: float | None) -> Block:
        known = array.drop_null() if array.null_count else array
        whole = self.sample_rate is not None  # samples, in whatever type they are
        block = _check_values(self._values(known, name), name, shift, whole=whole)
        if not array.null_count:
            return block
        nulls = array.is_null().to_numpy(zero_copy_only=False)
        lengths = np.zeros(len(array), dtype=np.int64)
        # Of [5, null, 0] the lengths of rows 0 and 2 are known, and row 1 of the known is row 2.
        rows = np.flatnonzero(~nulls)
        lengths[rows] = block.lengths
        reasons = dict.fromkeys(np.flatnonzero(nulls).tolist(), f"{name} is null")
        return Block(lengths, reasons | {int(rows[row]): reason for row, reason in block.reasons.items()})

    def _values(self, array: Any, name: str) -> NDArray[Any]:
        """The numbers of a column without nulls; of lists and texts their counts."""
        types = load_pyarrow().types
        if types.is_null(array.type):
            return np.zeros(0, dtype=np.int64)
        if is_list(array.type):
            if is_list(array.type.value_type):
                raise nested_lists(str(array.type), name=name, at="its type")
            return load_compute().list_value_length(array).to_numpy(zero_copy_only=False)
        if is_text(array.type):
            if self.count is None:
                raise text_without_count(name)
            return self.count(array.to_pylist())
        if types.is_decimal(array.type):
            array = array.cast("float64")
        if not (types.is_integer(array.type) or types.is_floating(array.type)):
            raise value_error(name, "a column of numbers, lists or texts", str(array.type), "Name another column.")
        return array.to_numpy(zero_copy_only=False)

    @property
    def facts(self) -> dict[str, Any]:
        """What the lengths depend on beside the rows, as JSON."""
        return {
            "column": ",".join(self.names) or None,
            "length": None if self.length is None else name_with_code(self.length),
            "frame_shift": self.frame_shift,
            "count": None if self.count is None else self.count.facts,
            # Left out where it is not given, so that files that were written without it are found to be the same.
            **({} if self.sample_rate is None else {"sample_rate": self.sample_rate}),
        }


def pack_blocks(blocks: Iterable[Block]) -> Any:
    """The blocks of one batch as a `pyarrow.Table`, which Ray and `datasets` carry: a list of lengths, and a reason."""
    pyarrow = load_pyarrow()
    lengths: list[Any] = []
    reasons: list[str | None] = []
    for block in blocks:
        lengths += block.lengths.reshape(len(block.lengths), -1).tolist()
        reasons += [block.reasons.get(row) for row in range(len(block.lengths))]
    found = {
        "lengths": pyarrow.array(lengths, pyarrow.list_(pyarrow.int64())),
        "reason": pyarrow.array(reasons, pyarrow.string()),
    }
    return pyarrow.table(found)


def unpack_blocks(table: Any) -> Iterator[Block]:
    """The blocks of what `pack_blocks` made, of whatever tables were joined since: one for each run of rows alike."""
    for batch in table.to_batches():
        lists, reasons = batch.column("lengths"), batch.column("reason").to_pylist()
        widths = load_compute().list_value_length(lists).to_numpy(zero_copy_only=False)
        # A row without an answer has one 0, whatever the others have: widths [2, 2, 1, 2] are three runs.
        borders = [0, *(np.flatnonzero(np.diff(widths)) + 1).tolist(), len(widths)]
        for start, stop in itertools.pairwise(borders):
            if start < stop:
                flat = lists.slice(start, stop - start).flatten().to_numpy(zero_copy_only=False)
                lengths = flat.reshape((stop - start, int(widths[start])) if widths[start] > 1 else (-1,))
                told = {row: reason for row, reason in enumerate(reasons[start:stop]) if reason is not None}
                yield Block(lengths, told)


def _decode(array: Any, name: str) -> Any:
    if str(array.type) in ("string_view", "binary_view"):  # as Polars writes them; PyArrow 26 drops no nulls of views
        return array.cast(f"large_{array.type}".removesuffix("_view"))
    pyarrow = load_pyarrow()
    if isinstance(array.type, pyarrow.BaseExtensionType):
        return _decode(_take_tensors(array, name), name)
    # A column of few distinct values may be stored as indices, which are no lengths.
    return array.dictionary_decode() if pyarrow.types.is_dictionary(array.type) else array


def _take_tensors(array: Any, name: str) -> Any:
    """Tensors of one dimension as lists: Ray keeps NumPy arrays so. Of any other extension what it is stored as."""
    storage, kind = array.storage, array.type
    if max(getattr(kind, "ndim", None) or 0, len(getattr(kind, "shape", None) or ())) > 1:
        raise nested_lists(str(kind), name=name, at="its type")
    if getattr(kind, "extension_name", "") == "arrow.bool8":
        raise value_error(name, "a column of numbers, lists or texts", str(kind), "Name another column.")
    if load_pyarrow().types.is_struct(storage.type) and storage.type.get_field_index("data") >= 0:
        return load_compute().struct_field(storage, "data")
    return storage


def _unit(array: Any, name: str) -> Unit:
    """The unit of a column that its type or its name tells: of lists and texts what is counted."""
    return "counts" if is_list(array.type) or is_text(array.type) else unit_of(name)


def _check_values(values: NDArray[Any], name: str, frame_shift: float | None, *, whole: bool = False) -> Block:
    """Lengths where the numbers are lengths, or durations, `whole` or not; a reason for every other number."""
    lengths = np.zeros(len(values), dtype=np.int64)
    numbers, good = values, np.ones(len(values), dtype=np.bool_)
    if frame_shift is not None:
        good = np.isfinite(values) & (values > 0)
        good &= np.equal(values, np.rint(values)) if whole else True
        numbers = np.ones(len(values))
        numbers[good] = round_frames(values[good], frame_shift)
    good &= is_length(numbers)
    lengths[good] = numbers[good]
    timed = frame_shift is not None
    bad = np.flatnonzero(~good).tolist()
    return Block(lengths, {row: _reason(values[row].item(), name, values, timed, timed and whole) for row in bad})


def _reason(value: float, name: str, values: NDArray[Any], timed: bool, whole: bool) -> str:
    if timed and not (math.isfinite(value) and value > 0):
        return f"{name} must be finite and above 0, but is {value}"
    if whole and value != round(value):
        return f"{name} must be a whole number of samples, but is {value}"
    rule = broken_rule(value, bits=exact_bits(values))
    seconds = ": seconds need `frame_shift`" if rule == "a whole number" else ""
    return f"{name} must be {rule}, but is {value}{seconds}"


def _ask(length: Measure, batch: Any) -> Block:
    """What the function of the user says of a batch; of a batch at which it raises, row by row."""
    try:
        answer = length(batch)
    except Exception as error:
        if batch.num_rows == 1:
            # One line, and no page of it: the reasons of several rows stand in one error.
            told = " ".join(f"{type(error).__name__}: {error}".split())[:160].rstrip(": ")
            return Block(np.zeros(1, dtype=np.int64), {0: f"length raised {told}"})
        return _join([_ask(length, batch.slice(row, 1)) for row in range(batch.num_rows)])
    return _check_answer(answer, batch.num_rows)


def _check_answer(answer: Any, count: int) -> Block:
    values, reasons = _as_numbers(answer)
    if values.ndim not in (1, 2) or len(values) != count or values.shape[1:] == (0,):
        rule = f"a function that returns [{count}] or [{count}, dims] numbers for {count} rows"
        raise value_error("length", rule, values.shape, _ANSWER)
    check_dims(1 if values.ndim == 1 else values.shape[1])
    flat = _check_values(values.reshape(-1), "length", None)
    dims = values[:1].size or 1
    # Flat index 7 of rows of 3 is row 2; where two numbers of a row are bad, the first is told.
    reasons = {at // dims: reason for at, reason in reversed((flat.reasons | reasons).items())}
    # One length a row is [k] and never [k, 1], as everywhere.
    lengths = flat.lengths.reshape(values.shape if dims > 1 else (count,))
    lengths[list(reasons)] = 0
    return Block(lengths, reasons)


def _as_numbers(answer: Any) -> tuple[NDArray[Any], dict[int, str]]:
    """An array of numbers, and a reason at each flat place where there is none."""
    pyarrow = load_pyarrow()
    if isinstance(answer, pyarrow.Array | pyarrow.ChunkedArray):
        answer = answer.to_pylist() if answer.null_count else answer.to_numpy(zero_copy_only=False)
    try:
        raw = np.asarray(answer)
    except (ValueError, TypeError) as error:
        raise value_error("length", "a function that returns numbers", type(answer), _ANSWER) from error
    if raw.dtype.kind in "iuf":
        return raw, {}
    wrong: dict[int, str] = {}
    values = np.ones(raw.size, dtype=np.float64)
    for at, value in enumerate(np.asarray(answer, dtype=object).reshape(-1).tolist()):
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
            wrong[at] = f"length must be a number, but is {show_value(value)}"
        else:
            values[at] = value
    return values.reshape(raw.shape), wrong


def _join(blocks: list[Block]) -> Block:
    """One block of blocks of one row each. Rows without an answer have as many lengths as those with one.

    Raises:
        ValueError: Two rows with an answer have different numbers of lengths.
    """
    shapes = list(dict.fromkeys(block.lengths.shape[1:] for block in blocks if not block.reasons))
    if len(shapes) > 1:
        rule = f"a function that returns as many numbers at each row, {shapes[0]}"
        raise value_error("length", rule, shapes[1], "Return one row of numbers for each row.")
    shape = shapes[0] if shapes else ()
    lengths = np.zeros((len(blocks), *shape), dtype=np.int64)
    for row, block in enumerate(blocks):
        if not block.reasons:
            lengths[row] = block.lengths[0]
    return Block(lengths, {row: block.reasons[0] for row, block in enumerate(blocks) if block.reasons})

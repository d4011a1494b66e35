"""Labels, padding, shapes and rows of samples: the common part of the collate functions of PyTorch and JAX.

A sample is one sequence of a data set: an array, or a tuple or dict of arrays.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.choices.rows import check_in_row, find_places, number_frames, row_offsets

# The label that `cross_entropy` of PyTorch and the models of Hugging Face ignore.
IGNORED = -100

Value = float | Mapping[str, float]
"""The padding value: one number for all fields but labels and `attention_mask`, or numbers by field name."""


def nested_error(sample: object) -> ValueError:
    """Returns the error for a sample whose levels cannot be counted."""
    rule, remedy = "of a few levels, none of which holds itself", "Leave that part out in the data set's __getitem__."
    return checks.value_error("samples", rule, sample, remedy)


def check_value(value: Any) -> float | dict[str, float]:
    """Returns the padding values as floats."""
    if isinstance(value, Mapping):
        return {str(name): _check_number(number) for name, number in value.items()}
    return _check_number(value)


def _check_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        remedy = 'Give one number, or a dict of numbers by field name, such as {"labels": -1}; in a tuple {"1": -1}.'
        raise checks.type_error("value", "a number", value, remedy)
    return float(value)


def check_names(value: Value, names: Iterable[str], *, argument: str = "value") -> None:
    """Refuses a value for a field that is not padded; `argument` is the name of `value` in the error."""
    for name in value if isinstance(value, Mapping) else ():
        if name not in names:
            rule = f"a dict by the names of padded fields ({', '.join(names)})"
            raise checks.value_error(argument, rule, name, "Write the name as the samples have it, or leave it out.")


def padding_value(value: Value, name: str, *, is_integer: bool, labels: str | None = None) -> float:
    """Returns the padding value of a field: its number in a dict, 0 for a mask, -100 for labels, or the common number.

    Args:
        value: The value of all fields, or values by name.
        name: The name of the field, such as "text.labels" in a nested sample.
        is_integer: True if the field has whole numbers. A loss ignores -100 only in these.
        labels: Another name of labels, in addition to "labels" and "label".

    >>> padding_value(9.0, "text.labels", is_integer=True), padding_value(9.0, "labels", is_integer=False)
    (-100, 9.0)
    """
    by_name = isinstance(value, Mapping)
    if by_name and name in value:
        return value[name]
    last = name.rpartition(".")[2]
    if last == "attention_mask":
        return 0
    if is_integer and (last in ("labels", "label") or is_name_of(name, labels)):
        return IGNORED
    return 0.0 if by_name else value


def check_fits(value: float, dtype: object, limits: tuple[float, float], *, is_integer: bool, at: str) -> None:
    """Refuses a value that an array of this dtype cannot hold, such as 0.5 for tokens.

    Args:
        value: The padding value.
        dtype: The dtype, for the error.
        limits: The least and the greatest number of the dtype.
        is_integer: True if the dtype has whole numbers only.
        at: The field, for the error.
    """
    # Every float dtype holds NaN, and infinities to mask attention scores. But float16 does not hold 1e5.
    is_within = limits[0] <= value <= limits[1]
    if not (is_within and float(value).is_integer() if is_integer else is_within or not math.isfinite(value)):
        rule = f"a {'whole ' if is_integer else ''}number that {dtype} holds"
        remedy = "Give a number that fits, or a dict of numbers by field name."
        raise checks.value_error("value", rule, value, remedy, at=at)


def check_shapes(shapes: Any) -> tuple[tuple[int, ...], ...]:
    """Returns the shapes as whole numbers, sorted by the sum of the padded lengths, the lengths, and the rows."""
    remedy = "Give what lw.batch_shapes gives: [(16, 100), (8, 200)], for example."
    try:
        rows = [list(shape) for shape in shapes]
    except TypeError as error:  # a number, or an array without an axis
        raise checks.type_error("shapes", "rows of whole numbers", shapes, remedy) from error
    checked = [tuple(checks.check_whole("shapes", size, minimum=1, remedy=remedy) for size in row) for row in rows]
    for shape in checked or [()]:
        if len(shape) < 2 or len(shape) != len(checked[0]):
            raise checks.value_error("shapes", "rows of equally many numbers, at least 2", shape, remedy)
    # (8, 200), (16, 100), (8, 100) become (8, 100), (16, 100), (8, 200).
    return tuple(sorted(checked, key=lambda shape: (sum(shape[1:]), shape[1:], shape[0])))


def place(name: str, *, sample: int | None = None) -> str:
    """Names a place in a batch, for an error.

    >>> place("audio", sample=3), place("", sample=3), place("audio")
    ('sample 3, field audio', 'sample 3', 'field audio')
    """
    words = ("" if sample is None else f"sample {sample}", f"field {name}" if name else "")
    return ", ".join(filter(None, words))


@dataclass(frozen=True, slots=True)
class RowOptions:
    """The options of a collate function that packs samples into rows, checked; `RowCollate` describes them."""

    capacity: int
    _: KW_ONLY
    rows: int | None = None
    value: float | Mapping[str, float] = dataclasses.field(default=0.0, hash=False)
    labels: str | None = "labels"
    inputs: str = "input_ids"
    next_token: bool = True
    max_in_row: int | None = None

    def __post_init__(self) -> None:
        checks.keep_whole(self, "capacity", remedy="Give the tokens of a row, as in lw.Rows.")
        checks.keep_whole(self, "rows", remedy="Give the rows of a batch, as in lw.Rows.", optional=True)
        checks.keep(self, value=check_value(self.value), max_in_row=check_in_row(self.max_in_row))
        checks.check_flag("next_token", self.next_token)
        # `labels=False` would copy the inputs to a field named False.
        if self.labels is not None:
            checks.check_text("labels", self.labels, remedy="Give the name of a field, or None for no labels.")
        checks.check_text("inputs", self.inputs, remedy="Give the name of the field that labels are copied from.")

    def check_lengths(self, lengths: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Returns the length of each sample, after checking that it fits, and that all its fields have it.

        Args:
            lengths: [samples], by the names of the fields that are sequences.
        """
        if not lengths:
            remedy = "Give samples with a sequence field: tokens, for example."
            raise checks.value_error("samples", "of at least one sequence field", 0, remedy)
        (first_name, first), *others = lengths.items()
        if (wrong := (first < 1) | (first > self.capacity)).any():
            rule, remedy = f"1 to {self.capacity} frames long", "Plan with the lengths of these samples."
            at = place(first_name, sample=int(wrong.argmax()))
            raise checks.value_error("samples", rule, int(first[wrong][0]), remedy, at=at)
        for name, sizes in others:
            if (wrong := sizes != first).any():
                remedy = "Cut them alike in the data set's __getitem__, or collate one of them by itself."
                rule, at = f"{first[wrong][0]} long, as field {first_name} is", place(name, sample=int(wrong.argmax()))
                raise checks.value_error("samples", rule, int(sizes[wrong][0]), remedy, at=at)
        return first

    def find_places(self, lengths: NDArray[np.int64], rows: int | None) -> tuple[int, NDArray[np.int64], list[Any]]:
        """Returns the number of rows, the first frame of each sample, and the arrays of `number_frames`.

        Args:
            lengths: [samples].
            rows: The rows of the batch; None for as many as the samples fill.
        """
        starts = row_offsets(lengths, np.array([0, len(lengths)]), self.capacity, self.max_in_row)
        count = len(starts) - 1
        if count > (rows or count):
            remedy = "Give the capacity and the rows of the plan, and samples in its order."
            raise checks.value_error("samples", f"at most {rows} row(s) of {self.capacity} frames", count, remedy)
        count = rows or count
        if count * self.capacity >= 2**31:  # before arrays of that size are made
            rule, remedy = "below 2**31 frames in all, which int32 offsets can count", "Plan fewer rows in a batch."
            raise checks.value_error("samples", rule, count * self.capacity, remedy)
        places = find_places(lengths, starts, self.capacity)
        return count, places, list(number_frames(lengths, places, starts, count, self.capacity))

    def hides_first(self, name: str, *, is_integer: bool) -> bool:
        """Tells if a field hides the first place of each sequence, as labels do if the model shifts them."""
        # No loss ignores -100 in labels of floats. So their first places are hidden only if `value` names them.
        named = isinstance(self.value, Mapping) and name in self.value
        return self.next_token and is_name_of(name, self.labels) and (named or is_integer)


def copies_labels(sample: Any, labels: str | None, inputs: str) -> bool:
    """Tells if the labels of a sample are copied from `inputs`: the sample is a dict with `inputs` but without labels.

    >>> copies_labels({"ids": [5, 6]}, "labels", "ids"), copies_labels({"ids": [5, 6], "labels": 1}, "labels", "ids")
    (True, False)
    """
    return isinstance(sample, Mapping) and labels not in (None, *sample) and inputs in sample


def is_name_of(field: str, labels: str | None) -> bool:
    """Tells if a field is the labels, by its name or, in a nested sample, by the last part of its name.

    >>> is_name_of("labels", "labels"), is_name_of("text.labels", "labels"), is_name_of("text.tags", "labels")
    (True, True, False)
    """
    return labels is not None and labels in (field, field.rpartition(".")[2])

"""Samples as collate functions take them, under PyTorch and JAX alike: their labels, and what padding holds.

A sample is what a data set gives for one sequence: an array, or a tuple or dict of them.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

from lengthwise import checks

# The label that counts in no loss: `cross_entropy` of PyTorch and the models of Hugging Face leave it out.
IGNORED = -100

Value = float | Mapping[str, float]
"""What padding holds: one number for all fields but labels and `attention_mask`, or numbers by the names of fields."""


def check_value(value: Any) -> float | dict[str, float]:
    """Returns what padding holds as floats."""
    if isinstance(value, Mapping):
        return {str(name): _check_number(number) for name, number in value.items()}
    return _check_number(value)


def _check_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        remedy = 'Give one number, or numbers by the names of fields, such as {"labels": -1}; in a tuple {"1": -1}.'
        raise checks.type_error("value", "a number", value, remedy)
    return float(value)


def check_names(value: Value, names: Iterable[str], *, what: str = "value") -> None:
    """Refuses a value for a field that is not among those that are padded; `what` names the argument."""
    for name in value if isinstance(value, Mapping) else ():
        if name not in names:
            rule = f"by the names of fields that are padded ({', '.join(names)})"
            raise checks.value_error(what, rule, name, "Write the name as the samples have it, or leave it out.")


def padding_value(value: Value, name: str, *, whole: bool, labels: str | None = None) -> float:
    """Returns what padding holds in a field: the value of its name, 0 for a mask, -100 for labels, or the common value.

    Args:
        value: Of all fields, or by name.
        name: Of the field; within a sample in a sample "text.labels".
        whole: Whether the field has whole numbers. Of floats and of bool, no loss leaves -100 out.
        labels: A name of labels beside "labels" and "label".

    >>> padding_value(9.0, "text.labels", whole=True), padding_value(9.0, "labels", whole=False)
    (-100, 9.0)
    """
    by_name = isinstance(value, Mapping)
    if by_name and name in value:
        return value[name]
    last = name.rpartition(".")[2]
    if last == "attention_mask":
        return 0
    if whole and (last in ("labels", "label") or is_name_of(name, labels)):
        return IGNORED
    return 0.0 if by_name else value


def check_held(value: float, dtype: object, limits: tuple[float, float], *, whole: bool, at: str) -> None:
    """Refuses a value that an array of this dtype does not hold, such as half a token.

    Args:
        value: What padding holds.
        dtype: For the error.
        limits: The least and the greatest number of the dtype.
        whole: Whether the dtype is one of whole numbers.
        at: The field, for the error.
    """
    # Every dtype of floats holds NaN and infinities, by which scores are masked; float16 does not hold 1e5.
    held = limits[0] <= value <= limits[1]
    if not (held and float(value).is_integer() if whole else held or not math.isfinite(value)):
        rule = f"a {'whole ' if whole else ''}number that {dtype} holds"
        remedy = "Give one that it holds; if other fields need another, by name, as a dict."
        raise checks.value_error("value", rule, value, remedy, at=at)


def check_names_of_labels(labels: object, inputs: object) -> None:
    """Refuses names of fields that are none: a field `False` would be a copy of the inputs, and no label."""
    if labels is not None:
        checks.check_text("labels", labels, remedy="Give the name of a field, or None for no labels.")
    checks.check_text("inputs", inputs, remedy="Give the name of the field that labels are copied from.")


def copies_labels(sample: Any, labels: str | None, inputs: str) -> bool:
    """Tells if the field `inputs` is copied as labels: the sample is a dict that has it, and no labels.

    >>> copies_labels({"ids": [5, 6]}, "labels", "ids"), copies_labels({"ids": [5, 6], "labels": 1}, "labels", "ids")
    (True, False)
    """
    return isinstance(sample, Mapping) and labels not in (None, *sample) and inputs in sample


def is_name_of(field: str, labels: str | None) -> bool:
    """Tells if a field is the labels: it has their name, or has it last, in a sample within a sample.

    >>> is_name_of("labels", "labels"), is_name_of("text.labels", "labels"), is_name_of("text.tags", "labels")
    (True, True, False)
    """
    return labels is not None and labels in (field, field.rpartition(".")[2])

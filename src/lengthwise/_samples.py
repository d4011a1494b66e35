"""The labels and the padding value of samples, for the collate functions of PyTorch and JAX.

A sample is one sequence of a data set: an array, or a tuple or dict of arrays.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

from lengthwise import checks

# The label that `cross_entropy` of PyTorch and the models of Hugging Face ignore.
IGNORED = -100

Value = float | Mapping[str, float]
"""The padding value: one number for all fields but labels and `attention_mask`, or numbers by the names of fields."""


def check_value(value: Any) -> float | dict[str, float]:
    """Returns the padding values as floats."""
    if isinstance(value, Mapping):
        return {str(name): _check_number(number) for name, number in value.items()}
    return _check_number(value)


def _check_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        remedy = 'Give one number, or numbers by the names of fields, such as {"labels": -1}; in a tuple {"1": -1}.'
        raise checks.type_error("value", "a number", value, remedy)
    return float(value)


def check_names(value: Value, names: Iterable[str], *, argument: str = "value") -> None:
    """Refuses a value for a field that is not padded; `argument` is its name in the error."""
    for name in value if isinstance(value, Mapping) else ():
        if name not in names:
            rule = f"by the names of fields that are padded ({', '.join(names)})"
            raise checks.value_error(argument, rule, name, "Write the name as the samples have it, or leave it out.")


def padding_value(value: Value, name: str, *, is_integer: bool, labels: str | None = None) -> float:
    """Returns the padding value of a field: its own, 0 for a mask, -100 for labels, or the common value.

    Args:
        value: The value of all fields, or values by name.
        name: The name of the field, such as "text.labels" in a nested sample.
        is_integer: True if the field has whole numbers. For floats and bool, no loss ignores -100.
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


def check_held(value: float, dtype: object, limits: tuple[float, float], *, is_integer: bool, at: str) -> None:
    """Refuses a value that an array of this dtype cannot hold, such as 0.5 for tokens.

    Args:
        value: The padding value.
        dtype: The dtype, for the error.
        limits: The least and the greatest number of the dtype.
        is_integer: True if the dtype has whole numbers only.
        at: The field, for the error.
    """
    # Every float dtype holds NaN and infinities, which mask scores; float16 does not hold 1e5.
    is_within = limits[0] <= value <= limits[1]
    if not (is_within and float(value).is_integer() if is_integer else is_within or not math.isfinite(value)):
        rule = f"a {'whole ' if is_integer else ''}number that {dtype} holds"
        remedy = "Give one that it holds; if other fields need another, by name, as a dict."
        raise checks.value_error("value", rule, value, remedy, at=at)


def check_names_of_labels(labels: object, inputs: object) -> None:
    """Refuses names that are not texts: `labels=False` would make a field False of copied inputs."""
    if labels is not None:
        checks.check_text("labels", labels, remedy="Give the name of a field, or None for no labels.")
    checks.check_text("inputs", inputs, remedy="Give the name of the field that labels are copied from.")


def copies_labels(sample: Any, labels: str | None, inputs: str) -> bool:
    """Tells if the labels of a sample are copied from `inputs`: it is a dict with `inputs` and without labels.

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

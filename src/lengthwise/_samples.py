"""Samples as collate functions take them, under PyTorch and JAX alike: their labels, and what padding holds.

A sample is what a data set gives for one sequence: an array, or a tuple or dict of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lengthwise import checks

# The label that counts in no loss: `cross_entropy` of PyTorch and the models of Hugging Face leave it out.
IGNORED = -100
# What padding holds in fields of these names, whatever the others hold: labels that a loss leaves out, and what
# attention must not look at.
_BY_NAME = {"labels": IGNORED, "label": IGNORED, "attention_mask": 0}


def padding_value(value: float | Mapping[str, float], name: str, *, ignores: bool) -> float:
    """What padding holds in a field of this name.

    Args:
        value: One number for all fields but labels and `attention_mask`; or numbers by the names of fields.
        name: Of the field; within a sample in a sample "text.labels".
        ignores: Whether losses leave labels of its dtype out where they are -100: no floats, and bool does not hold it.

    >>> padding_value(9.0, "text.labels", ignores=True), padding_value(9.0, "labels", ignores=False)
    (-100, 9.0)
    """
    by_name = isinstance(value, Mapping)
    if by_name and name in value:
        return value[name]
    usual = 0.0 if by_name else value
    own = _BY_NAME.get(name.rpartition(".")[2], usual)
    return own if ignores or own != IGNORED else usual


def check_names_of_labels(labels: object, inputs: object) -> None:
    """Refuses names of fields that are none: a field `False` would be a copy of the inputs, and no label."""
    if labels is not None:
        checks.check_text("labels", labels, remedy="Give the name of a field, or None for no labels.")
    checks.check_text("inputs", inputs, remedy="Give the name of the field that labels are copied from.")


def copy_labels(samples: Sequence[Any], labels: str | None, inputs: str) -> list[Any]:
    """The samples, with the field `inputs` as their `labels` where they are dicts without labels.

    If some have labels and others do not, none is copied, and whoever compares their fields refuses them: a copy would
    learn a prompt that the others hide.

    >>> copy_labels([{"ids": [5, 6]}], "labels", "ids")
    [{'ids': [5, 6], 'labels': [5, 6]}]
    """
    dicts = all(isinstance(sample, Mapping) for sample in samples)
    if labels is None or not dicts or any(labels in sample for sample in samples):
        return list(samples)
    return [{**sample, labels: sample[inputs]} if inputs in sample else sample for sample in samples]


def is_name_of(field: str, labels: str | None) -> bool:
    """Whether a field is the labels: it has their name, or has it last, in a sample within a sample.

    >>> is_name_of("labels", "labels"), is_name_of("text.labels", "labels"), is_name_of("text.tags", "labels")
    (True, True, False)
    """
    return labels is not None and labels in (field, field.rpartition(".")[2])

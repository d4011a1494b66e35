"""Data sets of Hugging Face, in the order of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import datasets  # pyright: ignore[reportMissingImports] - an extra of few

from lengthwise.checks import value_error
from lengthwise.engines.rule import Block, Rule


def column_names(dataset: Any) -> list[str]:
    """Returns the names of the columns.

    Raises:
        ValueError: A dict of data sets, a stream, or a data set with a transform.
    """
    if not isinstance(dataset, datasets.Dataset):
        remedy = "Name one of its splits; lengths of a stream are planned by `lengthwise.torch.StreamBatches`."
        raise value_error("source", "a datasets.Dataset", type(dataset).__name__, remedy)
    if dataset.format["type"] == "custom":  # its rows would be measured as they are stored
        remedy = "Its rows change only when they are read: give `map` the transform, and measure the result."
        raise value_error("source", "a data set without with_transform", "one with a transform", remedy)
    return dataset.column_names


def blocks(dataset: Any, rule: Rule, size: int) -> Iterator[Block]:
    """Yields the lengths of the rows, in order."""
    # Columns that are not read are not decoded: of audio or images nothing is.
    shown = dataset.select_columns(rule.columns(dataset.column_names)).with_format("arrow")
    for table in shown.iter(size):
        yield from rule.measure_table(table, size)

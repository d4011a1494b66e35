"""Data sets of pyarrow, in the order of their fragments; files by their paths are read by `files`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lengthwise.checks import value_error
from lengthwise.engines.rule import Block, Rule

_READ_AHEAD = 2  # batches that are read before they are measured


def column_names(dataset: Any) -> list[str]:
    """Returns the names of the columns.

    Raises:
        ValueError: Another object of pyarrow.
    """
    if not hasattr(dataset, "get_fragments"):
        remedy = "Make one by `pyarrow.dataset.dataset`, which takes tables too."
        raise value_error("source", "a pyarrow.dataset.Dataset", type(dataset).__name__, remedy)
    return dataset.schema.names


def blocks(dataset: Any, rule: Rule, size: int) -> Iterator[Block]:
    """Yields the lengths of the rows, in order."""
    columns = rule.columns(dataset.schema.names)
    # Threads would read on while rows are measured, as far as a whole file.
    for batch in dataset.to_batches(
        columns=columns, batch_size=size, batch_readahead=_READ_AHEAD, fragment_readahead=1, use_threads=False
    ):
        if batch.num_rows:
            yield rule.measure(batch)

"""Data sets of Ray, in the order of their blocks, which are measured on the cluster: only lengths come back."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterator
from typing import Any

from lengthwise.checks import value_error
from lengthwise.engines.rule import Block, Rule
from lengthwise.lengths.arrow import load_pyarrow


def column_names(dataset: Any) -> list[str]:
    """Returns the names of the columns.

    Raises:
        ValueError: Another object of Ray.
    """
    if not hasattr(dataset, "map_batches"):
        raise value_error("source", "a ray.data.Dataset", type(dataset).__name__, "Read one by `ray.data`.")
    return list(dataset.columns() or [])


def blocks(dataset: Any, rule: Rule, size: int) -> Iterator[Block]:
    """Yields the lengths of the rows, in order."""
    chosen = dataset if rule.length is not None else dataset.select_columns(rule.columns(column_names(dataset)))
    measured = chosen.map_batches(
        functools.partial(_measure, rule=rule, size=size), batch_format="pyarrow", batch_size=size, zero_copy_batch=True
    )
    options = measured.context.execution_options
    keeps_order = options.preserve_order
    options.preserve_order = True  # by default blocks come as they are done, in another order in every run
    try:
        for table in measured.iter_batches(batch_format="pyarrow", batch_size=None):
            for pickled in table.column("blocks").to_pylist():
                answer = pickle.loads(pickled)
                if isinstance(answer, Exception):
                    raise answer
                yield from answer
    finally:
        options.preserve_order = keeps_order


def _measure(table: Any, rule: Rule, size: int) -> Any:
    answer: list[Block] | Exception
    try:
        answer = rule.measure_table(table, size)
    except (ValueError, TypeError) as error:
        answer = type(error)(str(error))  # raised here, Ray would show pages of its own frames around one sentence
    return load_pyarrow().table({"blocks": [pickle.dumps(answer)]})

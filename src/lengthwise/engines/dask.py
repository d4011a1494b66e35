"""Data frames of Dask, in the order of their partitions, which are measured by the scheduler that is set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dask.base import compute
from dask.delayed import delayed

from lengthwise.checks import brief, source_error, value_error
from lengthwise.engines.rule import Block, Rule
from lengthwise.lengths.arrow import is_text, load_compute, load_pyarrow

_TOGETHER = 128  # partitions that are computed at once, so that the lengths that wait here stay few


def column_names(frame: Any) -> list[str]:
    """Returns the names of the columns.

    Raises:
        ValueError: Another collection of Dask.
    """
    if type(frame).__name__ != "DataFrame":
        remedy = "Turn a bag into one by `to_dataframe`, and a series by `to_frame`."
        raise value_error("source", "a dask.dataframe.DataFrame", type(frame).__name__, remedy)
    return list(map(str, frame.columns))


def blocks(frame: Any, rule: Rule, size: int) -> Iterator[Block]:
    """Yields the lengths of the rows, in order; all of a partition are in memory."""
    parts = frame[rule.columns(column_names(frame))].to_delayed()
    measure = delayed(_measure, pure=False)
    for start in range(0, len(parts), _TOGETHER):
        for measured in compute(*(measure(part, rule, size) for part in parts[start : start + _TOGETHER])):
            yield from measured


def _measure(frame: Any, rule: Rule, size: int) -> list[Block]:
    pyarrow = load_pyarrow()
    try:
        table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    except pyarrow.ArrowException as error:
        remedy = f"Convert it first ({brief(error)})."
        raise source_error("of columns of one type each", "a partition", remedy) from error
    if rule.length is None:
        _refuse_written_lists(table)
    return rule.measure_table(table, size)


def _refuse_written_lists(table: Any) -> None:
    """Refuses lists that Dask has turned into texts, as it does by default: their words are not counted for items."""
    compute = load_compute()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if is_text(column.type) and compute.all(compute.match_substring_regex(column, r"(?s)^\[.*\]$")).as_py():
            remedy = 'Set dask.config.set({"dataframe.convert-string": False}) before you make the data frame.'
            raise value_error(name, "a column of lists, not of lists written as texts", column[0].as_py(), remedy)

"""Dask: files that are measured by its scheduler, and data frames of Dask, whose pieces are their partitions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from dask.base import compute
from dask.delayed import delayed
from dask.system import CPU_COUNT
from dask.tokenize import tokenize

from lengthwise.checks import value_error
from lengthwise.engines.parts import Piece
from lengthwise.engines.rows import Block, Rule
from lengthwise.lengths.arrow import load_pyarrow, top_of
from lengthwise.lengths.columns import choose_known
from lengthwise.lengths.sources import brief, source_error

_OPENED = "_dataset_info_cache"  # the operand of Parquet files that holds the data set, open


class PartitionedSource:
    """The partitions of a `dask.dataframe.DataFrame`, in their order.

    Args:
        frame: The data frame.

    Raises:
        ValueError: Another collection of Dask.
    """

    resumes = True

    def __init__(self, frame: Any) -> None:
        if type(frame).__name__ != "DataFrame":
            remedy = "Turn a bag into one by `to_dataframe`, and a series by `to_frame`."
            raise value_error("source", "a dask.dataframe.DataFrame", type(frame).__name__, remedy)
        self._frame = frame
        name = _token(frame.expr)
        self.pieces: list[Piece] = [Piece(f"partition {k}", name) for k in range(frame.npartitions)]
        self.facts: dict[str, Any] = {"frame": name}

    def names(self, column: str | None) -> tuple[str, ...]:
        """The columns that are meant, which are there."""
        return tuple(choose_known(column, self._columns(), at="the data frame"))

    def measure(self, numbers: Sequence[int], rule: Rule) -> Iterator[Iterable[Block]]:
        """Yields the blocks of each of these pieces, in order."""
        columns = self._columns()
        tops = list(dict.fromkeys(top_of(name, columns) for name in rule.names))
        parts = [self._part(number, tops if rule.length is None else columns) for number in numbers]
        return map_in_order(functools.partial(_measure, rule=rule), parts)

    def _columns(self) -> list[str]:
        for name in self._frame.columns:
            if not isinstance(name, str):
                remedy = "Rename them: frame.rename(columns=str)."
                raise value_error("source", "a data frame whose columns have texts as names", name, remedy)
        return list(self._frame.columns)

    def _part(self, number: int, columns: list[str]) -> Any:
        # Taken out before it is optimised: of the whole frame Dask would join partitions of small files.
        (part,) = self._frame.partitions[number][columns].to_delayed()
        return part


def _token(operand: Any) -> str:
    """A name of all that an expression is computed from: also of the paths, sizes and times of files.

    Dask's own name of Parquet files is another in every process, because it is made of an open data set too. And it
    stays as it was when the files have changed (dask 2026.8).
    """
    if isinstance(operand, list | tuple):
        return tokenize([_token(each) for each in operand])
    if not (hasattr(operand, "operands") and hasattr(operand, "_parameters")):
        return tokenize(operand)
    # Functions of any number of arguments have more operands than named ones.
    names = [*operand._parameters, *[""] * len(operand.operands)]
    named = [(name, each) for name, each in zip(names, operand.operands, strict=False) if name != _OPENED]
    checksum = ""
    if _OPENED in names and hasattr(operand, "checksum"):  # the files are looked at anew
        checksum = type(operand)(
            *[None if name == _OPENED else each for name, each in zip(names, operand.operands, strict=False)]
        ).checksum
    return tokenize(type(operand).__name__, checksum, [_token(each) for _, each in named])


def map_in_order(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Runs a function over items by the scheduler that is set, and yields what it returns, in their order.

    Four items for each worker are computed together, so that what waits here stays small.
    """
    task = delayed(function, pure=False, traverse=False)
    together = 4 * _workers()
    for start in range(0, len(items), together):
        yield from compute(*(task(item) for item in items[start : start + together]))


def _workers() -> int:
    with suppress(ImportError, ValueError):  # not installed, or no client is connected
        from distributed import default_client  # pyright: ignore[reportMissingImports]

        return max(1, sum(default_client().nthreads().values()))
    return CPU_COUNT


def _measure(frame: Any, rule: Rule) -> list[Block]:
    pyarrow = load_pyarrow()
    try:
        table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    except pyarrow.ArrowException as error:
        remedy = f"Convert it first ({brief(error)})."
        raise source_error("of columns of one type each", "a partition", remedy) from error
    return list(rule.blocks(table))

"""Ray: files that are measured on a cluster, and data sets of Ray Data."""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ray
from ray.exceptions import RayTaskError

from lengthwise.checks import value_error
from lengthwise.engines.parts import Piece
from lengthwise.engines.rows import Block, Rule, pack_blocks, unpack_blocks
from lengthwise.lengths.arrow import load_compute, load_pyarrow
from lengthwise.lengths.columns import choose_known


class StreamedSource:
    """A `ray.data.Dataset`, in the order of its blocks: one piece, because it cannot be read from its middle.

    Args:
        dataset: The data set.
        batch_size: The rows that are measured at once.

    Raises:
        ValueError: Another object of Ray.
    """

    resumes = False

    def __init__(self, dataset: Any, *, batch_size: int) -> None:
        if not hasattr(dataset, "map_batches"):
            raise value_error("source", "a ray.data.Dataset", type(dataset).__name__, "Read one by `ray.data`.")
        self._dataset = dataset
        self._batch_size = batch_size
        self.pieces: list[Piece] = [Piece("the Ray data set", "")]
        self.facts: dict[str, Any] = {}

    def names(self, column: str | None) -> tuple[str, ...]:
        """The columns that are meant, which are there."""
        return tuple(choose_known(column, self._dataset.columns() or [], at="the data set"))

    def measure(self, numbers: Sequence[int], rule: Rule) -> Iterator[Iterable[Block]]:
        """Yields the blocks of each of these pieces, in order."""
        return (self._stream(rule) for _ in numbers)

    def _stream(self, rule: Rule) -> Iterator[Block]:
        found = self._dataset.map_batches(
            functools.partial(_measure, rule=rule), batch_format="pyarrow", batch_size=self._batch_size
        )
        with _keep_order(found):
            for table in found.iter_batches(batch_format="pyarrow", batch_size=None):
                _raise_refusal(table)
                yield from unpack_blocks(table)


def map_in_order(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Runs a function over items on the cluster, and yields what it returns, in their order.

    Twice as many items as there are processors are on their way, so that what waits here stays small.
    """
    task = ray.remote(_apply)
    if not ray.is_initialized():
        ray.init()
    shared = ray.put(function)
    most = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting: deque[Any] = deque()
    left = iter(items)
    try:
        with _raise_causes():
            while True:
                waiting.extend(task.remote(shared, item) for item in itertools.islice(left, most - len(waiting)))
                if not waiting:
                    return
                yield ray.get(waiting.popleft())
    finally:
        for each in waiting:
            ray.cancel(each)


def _apply(function: Callable[[Any], Any], item: Any) -> Any:
    return function(item)


def _measure(table: Any, rule: Rule) -> Any:
    try:
        return pack_blocks(rule.blocks(table))
    except (ValueError, TypeError) as error:
        # A sentence about all rows travels as a row without a list: Ray would show pages of its own frames around it.
        pyarrow = load_pyarrow()
        none = pyarrow.array([None], pyarrow.list_(pyarrow.int64()))
        return pyarrow.table({"lengths": none, "reason": [str(error)]})


def _raise_refusal(table: Any) -> None:
    if nulls := table.column("lengths").null_count:
        told = table.filter(load_compute().is_null(table.column("lengths")))
        raise ValueError(told.column("reason")[nulls - 1].as_py())


@contextmanager
def _keep_order(dataset: Any) -> Iterator[None]:
    """Keeps the order of rows: by default Ray yields the blocks as they are done, another order in every run."""
    options = dataset.context.execution_options
    before = options.preserve_order
    options.preserve_order = True
    try:
        yield
    finally:
        options.preserve_order = before


@contextmanager
def _raise_causes() -> Iterator[None]:
    """Raises what a task raised itself, without the pages that Ray writes around it."""
    try:
        yield
    except RayTaskError as error:
        raise (error.cause or error) from None

"""Data sets of packages: pyarrow, Hugging Face `datasets`, Dask and Ray. Each is read in its own order.

`ENGINES` has a class for each package. The class takes the data set, and has two members:

    names               the names of the columns
    blocks(rule, size)  yields the lengths of the rows in their order, as `rule` measures `size` rows at once
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterator
from typing import Any

from lengthwise.checks import brief, source_error, value_error
from lengthwise.engines.rule import Block, Rule
from lengthwise.lengths.arrow import load_pyarrow

_READ_AHEAD = 2  # batches of pyarrow that are read before they are measured
_TOGETHER = 128  # partitions of Dask that are computed at once, so that few lengths wait in memory


class Pyarrow:
    """A data set of pyarrow, in the order of its fragments."""

    def __init__(self, source: Any) -> None:
        if not hasattr(source, "get_fragments"):
            remedy = "Make one by `pyarrow.dataset.dataset`, which takes tables too."
            raise value_error("source", "a pyarrow.dataset.Dataset", type(source).__name__, remedy)
        self._source = source
        self.names: list[str] = list(source.schema.names)

    def blocks(self, rule: Rule, size: int) -> Iterator[Block]:
        # With threads, pyarrow would read up to a whole file ahead.
        options: dict[str, Any] = {"batch_readahead": _READ_AHEAD, "fragment_readahead": 1, "use_threads": False}
        for batch in self._source.to_batches(columns=rule.columns(self.names), batch_size=size, **options):
            if batch.num_rows:
                yield rule.measure(batch)


class HuggingFace:
    """A data set of Hugging Face, in the order of its rows."""

    def __init__(self, source: Any) -> None:
        import datasets

        if not isinstance(source, datasets.Dataset):
            remedy = "Give one split of a DatasetDict; for a stream, use `lengthwise.torch.StreamBatches`."
            raise value_error("source", "a datasets.Dataset", type(source).__name__, remedy)
        if source.format["type"] == "custom":  # rows would be measured as stored, before the transform
            remedy = "Its rows change only when they are read: give `map` the transform, and measure the result."
            raise value_error("source", "a data set without with_transform", "one with a transform", remedy)
        self._source: Any = source
        self.names: list[str] = list(source.column_names)

    def blocks(self, rule: Rule, size: int) -> Iterator[Block]:
        # The other columns are not selected, so that their audio and images are not decoded.
        for table in self._source.select_columns(rule.columns(self.names)).with_format("arrow").iter(size):
            yield from rule.measure_table(table, size)


class Dask:
    """A data frame of Dask, in the order of its partitions. The current scheduler of Dask measures them."""

    def __init__(self, source: Any) -> None:
        if type(source).__name__ != "DataFrame":
            remedy = "Turn a bag into a data frame by `to_dataframe`, and a series by `to_frame`."
            raise value_error("source", "a dask.dataframe.DataFrame", type(source).__name__, remedy)
        self._source = source
        self.names: list[str] = list(map(str, source.columns))

    def blocks(self, rule: Rule, size: int) -> Iterator[Block]:
        from dask.base import compute
        from dask.delayed import delayed

        parts = self._source[rule.columns(self.names)].to_delayed()
        measure = delayed(_measure_frame, pure=False)
        for start in range(0, len(parts), _TOGETHER):
            for blocks in compute(*(measure(part, rule, size) for part in parts[start : start + _TOGETHER])):
                yield from blocks


def _measure_frame(frame: Any, rule: Rule, size: int) -> list[Block]:
    pyarrow = load_pyarrow()
    try:
        table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    except pyarrow.ArrowException as error:
        remedy = f"Give each column one type first ({brief(error)})."
        raise source_error("of columns of one type each", "a partition", remedy) from error
    return rule.measure_table(table, size)


class Ray:
    """A data set of Ray, in the order of its blocks, which are measured on the cluster: only lengths come back."""

    def __init__(self, source: Any) -> None:
        if not hasattr(source, "map_batches"):
            raise value_error("source", "a ray.data.Dataset", type(source).__name__, "Read one by `ray.data`.")
        self._source = source
        self.names: list[str] = list(source.columns() or [])

    def blocks(self, rule: Rule, size: int) -> Iterator[Block]:
        source = self._source if rule.length else self._source.select_columns(rule.columns(self.names))
        measure = functools.partial(_measure_batch, rule=rule, size=size)
        measured = source.map_batches(measure, batch_format="pyarrow", batch_size=size, zero_copy_batch=True)
        options = measured.context.execution_options
        keeps_order = options.preserve_order
        options.preserve_order = True  # by default, blocks come in another order in every run
        try:
            for table in measured.iter_batches(batch_format="pyarrow", batch_size=None):
                for pickled in table.column("blocks").to_pylist():
                    answer = pickle.loads(pickled)
                    if isinstance(answer, Exception):
                        raise answer
                    yield from answer
        finally:
            options.preserve_order = keeps_order


def _measure_batch(table: Any, rule: Rule, size: int) -> Any:
    answer: list[Block] | Exception
    try:
        answer = rule.measure_table(table, size)
    except (ValueError, TypeError) as error:
        answer = type(error)(str(error))  # Ray would add pages to an error raised in a worker
    return load_pyarrow().table({"blocks": [pickle.dumps(answer)]})


ENGINES: dict[str, Any] = {"pyarrow": Pyarrow, "datasets": HuggingFace, "dask": Dask, "ray": Ray}

"""Which engine reads a source: told by what was given, and for files by `engine`."""

from __future__ import annotations

from typing import Any

from lengthwise.checks import check_choice, check_whole, sentence, value_error
from lengthwise.engines.arrow import ArrowSource
from lengthwise.engines.source import Source

_ENGINES = ("ray", "dask")


def open_source(source: Any, *, engine: str | None, workers: int | None, batch_size: int, resume: bool) -> Source:
    """Opens a data set in the engine it belongs to; one that keeps a cache takes from it where `resume`.

    Raises:
        TypeError: It belongs to none.
        ValueError: An option that does not apply.
    """
    batch_size = check_whole("batch_size", batch_size, minimum=1, remedy="Give rows that fit in memory, such as 4096.")
    home = type(source).__module__.partition(".")[0]
    if engine is not None:
        check_choice("engine", engine, _ENGINES)
        if home in ("datasets", "ray", "dask"):
            raise value_error("engine", "left out here", engine, f"A data set of {home} is read by {home}.")
    if home != "datasets" and workers is not None:
        remedy = 'It is for data sets of Hugging Face; files are read by several processes with engine="dask".'
        raise value_error("workers", "left out here", workers, remedy)
    if home == "datasets":
        from lengthwise.engines.datasets import MappedSource

        return MappedSource(source, batch_size=batch_size, workers=workers, resume=resume)
    if home == "ray":
        from lengthwise.engines.ray import StreamedSource

        return StreamedSource(source, batch_size=batch_size)
    if home == "dask":
        from lengthwise.engines.dask import PartitionedSource

        return PartitionedSource(source)
    return ArrowSource(source, batch_size=batch_size, spread=_spread(engine))


def _spread(engine: str | None) -> Any:
    """What runs a function over files elsewhere, in order; None to run it here."""
    if engine is None:
        return None
    try:
        if engine == "ray":
            from lengthwise.engines.ray import map_in_order
        else:
            from lengthwise.engines.dask import map_in_order
    except ImportError as error:
        packages = {"ray": "ray[data]", "dask": "dask[dataframe]"}
        remedy = f'Install it: pip install "{packages[engine]}".'
        raise ModuleNotFoundError(sentence("engine", "installed", engine, remedy)) from error
    return map_in_order

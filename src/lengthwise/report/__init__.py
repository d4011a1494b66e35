"""Charts for pages of HTML, notebooks and files.

A chart is an `altair.Chart`: a notebook shows it, `save_chart` writes it as .svg, .png or .pdf, and `save_page` puts it
into one self-contained page.

    histogram      the lengths, and the edges of buckets
    padding        data and padding of each strategy
    trade_off      randomness against padding of each strategy
    batches        the sequences of some batches, with their padding
    waiting        the work of each rank in some steps, and its waiting
    memory         the costliest batch of each step, and the budget
    shapes         padding by the number of padded shapes
    save_chart     writes one chart
    save_page      writes one page about plans
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lengthwise.report.batch_charts import batches, memory, waiting
    from lengthwise.report.length_charts import histogram, shapes
    from lengthwise.report.page import save_page
    from lengthwise.report.strategy_charts import padding, trade_off
    from lengthwise.report.style import save_chart

__all__ = ["batches", "histogram", "memory", "padding", "save_chart", "save_page", "shapes", "trade_off", "waiting"]

_FILES = {
    "batch_charts": ("batches", "memory", "waiting"),
    "length_charts": ("histogram", "shapes"),
    "page": ("save_page",),
    "strategy_charts": ("padding", "trade_off"),
    "style": ("save_chart",),
}
_DOORS = {name: file for file, names in _FILES.items() for name in names}


def __getattr__(name: str) -> Any:
    # Altair takes a third of a second to load, so it is loaded for the first chart.
    if name in _DOORS:
        return getattr(importlib.import_module(f"lengthwise.report.{_DOORS[name]}"), name)
    raise AttributeError(f"module 'lengthwise.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_DOORS, *(name for name in globals() if name.startswith("__"))])

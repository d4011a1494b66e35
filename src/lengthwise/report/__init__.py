"""Charts for pages of HTML, notebooks and files.

A chart is an `altair.Chart`: a notebook shows it, `save_chart` writes it as .svg, .png or .pdf, and `save_page` puts it
into one self-contained page. In notebooks, Altair loads scripts from the network; after
`altair.renderers.enable("svg")`, charts are drawn without it.

    histogram      the lengths, and the edges of buckets
    padding        data and padding of each strategy
    batches        the sequences of some batches, with their padding
    save_chart     writes one chart
    save_page      writes one page about plans
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lengthwise.report.charts import batches, histogram, padding
    from lengthwise.report.page import save_page
    from lengthwise.report.style import save_chart

__all__ = ["batches", "histogram", "padding", "save_chart", "save_page"]

_FILES = {"save_chart": "style", "save_page": "page"}  # all other names are charts


def __getattr__(name: str) -> Any:
    # Altair takes a third of a second to load, so it is loaded for the first chart.
    if name in __all__:
        return getattr(importlib.import_module(f"lengthwise.report.{_FILES.get(name, 'charts')}"), name)
    raise AttributeError(f"module 'lengthwise.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])

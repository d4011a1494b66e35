"""Reports: one self-contained page of HTML about plans; jinja2, here and nowhere else, and only when one is written.

A page loads nothing: its charts are drawn in SVG by its template, from the marks that the chart functions give.

    save                        writes the report of some plans

    contents, reports, pages    what is told, gathered by section, put into the template
    headline, tables, settings  the answer first; the measures; the code
    marks, labels, words        what charts are made of; `epochs` is what they read
    all others                  a chart each
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lengthwise.report.reports import save as save

_ROOMS = {"save": "reports"}


def __getattr__(name: str) -> Any:
    # jinja2 need not be installed where no report is written.
    if name in _ROOMS:
        return getattr(importlib.import_module(f"lengthwise.report.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'lengthwise.report' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_ROOMS, *(name for name in globals() if name.startswith("__"))])

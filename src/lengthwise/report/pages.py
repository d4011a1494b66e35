"""The page: the only importer of jinja2, which puts what was drawn into the template."""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np

import lengthwise as lw
from lengthwise.report.contents import Code, Section
from lengthwise.report.headline import Tile

try:
    import jinja2
except ImportError as _error:
    raise ImportError(
        'A report needs jinja2. Install it with: pip install "lengthwise[report]"', name="jinja2"
    ) from _error


class Page(NamedTuple):
    """All that the template shows.

    Attributes:
        title: What the lengths are.
        answer: The headline.
        labels: Of the first plan and of the last.
        tiles: The numbers below the headline.
        sections: The parts.
        code: The settings.
        command: What wrote the page.
    """

    title: str
    answer: str
    labels: tuple[str, str]
    tiles: Sequence[Tile]
    sections: Sequence[Section]
    code: Code | None
    command: str


def render(page: Page) -> str:
    """The page as HTML."""
    script = _read("report.js").strip()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    versions = f"Lengthwise {lw.__version__}, Python {platform.python_version()}, NumPy {np.__version__}"
    text = _template().render(
        page=page, style=_read("report.css"), script=script, script_hash=digest, versions=versions
    )
    # The name of a file may hold bytes that are no UTF-8; each stands there as a question mark.
    return text.encode("utf-8", "replace").decode()


@cache
def _template() -> jinja2.Template:
    # All that users give is escaped: a file may be named "<script>".
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("report.html")


def _read(name: str) -> str:
    return (resources.files("lengthwise.report") / "template" / name).read_text(encoding="utf-8")

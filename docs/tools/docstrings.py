"""Extension of griffe: readies docstrings for the site, which reads them as Markdown.

Examples become blocks of code: elsewhere than below a heading "Examples" they would be taken for quotations. Brackets
in prose, as in dp[i][k], would be taken for links.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)
_CODE = re.compile(r"(^ *```.*?^ *```$|`[^`]*`)", re.MULTILINE | re.DOTALL)


class Examples(Extension):
    """Rewrites the docstring of every object that is not an import of another."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called once for each object."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """The docstring with its examples in blocks of code, and its brackets as they are written."""
    fenced = _EXAMPLE.sub(lambda found: f"{found[1]}```pycon\n{found[0]}\n{found[1]}```", docstring)
    parts = _CODE.split(fenced)  # prose and code in turn
    return "".join(part if at % 2 else part.replace("][", "]\\[") for at, part in enumerate(parts))

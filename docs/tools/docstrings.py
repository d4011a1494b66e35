"""Extension of griffe: prepares docstrings and signatures for the site.

Docstrings are read as Markdown there. Examples become blocks of code, because Markdown would make quotations of them.
Brackets in prose, as in dp[i][k], are escaped, because they would be links. Paths of pages become links.

In a signature, a default shows the value of its constant. Fields that are not public are left out.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from typing import Any

from griffe import Class, Extension, Function, Module, Object, Parameters

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", re.MULTILINE)
_CODE = re.compile(r"(^ *```.*?^ *```$|`[^`]*`)", re.MULTILINE | re.DOTALL)
_PAGE = re.compile(r"\bdocs/([\w/-]+)\.md\b")
_GIVES = re.compile(r"^ *(?:Returns|Yields):\n +", re.MULTILINE)
_ITERATOR = re.compile(r"Iterator\[(.*)\]")
_CONSTANT = re.compile(r"""(_?[A-Z][A-Z_]+)(?:\[["'](\w+)["']\])?""")
PLACE = "reference"  # the folder of the pages that show docstrings, within docs/


class Readable(Extension):
    """Rewrites the docstring of every object that is not an import of another, and every signature."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrites the docstring of an object."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Rewrites all signatures, once those of dataclasses are read."""
        for function in _functions(pkg):
            show_signature(function)
            if function.docstring and function.returns is not None:
                function.docstring.value = with_type(function.docstring.value, str(function.returns))
            owner = function.parent
            # The docstring of a class says what it yields.
            if function.name == "__iter__" and isinstance(owner, Class) and owner.docstring:
                owner.docstring.value = with_type(owner.docstring.value, str(function.returns))


def as_markdown(docstring: str) -> str:
    """Puts the examples of a docstring into blocks of code, escapes its brackets, and links its pages.

    >>> as_markdown("See docs/theory.md.")
    'See [the page on theory](../theory.md).'
    """
    fenced = _EXAMPLE.sub(lambda match: f"{match[1]}```pycon\n{match[0]}\n{match[1]}```", docstring)
    parts = _CODE.split(fenced)  # alternately prose and code
    return "".join(part if at % 2 else _link(part.replace("][", "]\\[")) for at, part in enumerate(parts))


def with_type(docstring: str, returns: str) -> str:
    """Writes the type before the text of `Returns:` or `Yields:`.

    Otherwise griffe takes the words up to a colon for the type.

    >>> with_type("Finds edges.\\n\\nReturns:\\n    [k, 2]: rows and lengths.", "Array")
    'Finds edges.\\n\\nReturns:\\n    Array: [k, 2]: rows and lengths.'
    >>> with_type("Takes turns.\\n\\nYields:\\n    A rank.", "Iterator[int]")
    'Takes turns.\\n\\nYields:\\n    int: A rank.'
    """

    def write(match: re.Match[str]) -> str:
        iterator = _ITERATOR.fullmatch(returns) if "Yields" in match[0] else None
        return f"{match[0]}{iterator[1] if iterator else returns}: "

    return _GIVES.sub(write, docstring)


def _link(prose: str) -> str:
    return _PAGE.sub(lambda match: f"[the page on {match[1]}]({posixpath.relpath(match[1], PLACE)}.md)", prose)


def _functions(owner: Module | Class) -> Iterator[Function]:
    for member in owner.members.values():
        if member.is_alias:
            continue
        if isinstance(member, Function):
            yield member
        elif isinstance(member, Module | Class):
            yield from _functions(member)


def show_signature(function: Function) -> None:
    """Leaves out fields that are not public, and shows the values of constants that are defaults."""
    hides = function.name == "__init__"
    shown = [parameter for parameter in function.parameters if not (hides and parameter.name.startswith("_"))]
    for parameter in shown:
        if (value := _constant_value(str(parameter.default), function.module)) is not None:
            parameter.default = value
    function.parameters = Parameters(*shown)


def _constant_value(default: str, module: Module) -> str | None:
    """Returns the value of a constant of the module, or of an entry of one; None if the default is no constant."""
    match = _CONSTANT.fullmatch(default)
    constant: Any = module.members.get(match[1]) if match else None
    if match is None or constant is None or constant.is_alias or not constant.is_attribute:
        return None
    if not match[2]:
        return str(constant.value)
    entries: Any = ast.parse(str(constant.value), mode="eval").body
    items = zip(entries.keys, entries.values, strict=True)
    return next(ast.unparse(value) for key, value in items if ast.literal_eval(key) == match[2])

"""Extension of griffe: readies docstrings and signatures for the site.

Docstrings are read as Markdown there. Examples become blocks of code: elsewhere than below a heading "Examples" they
would be taken for quotations. Brackets in prose, as in dp[i][k], would be taken for links. Paths of pages become links.

A signature names what its module holds by another name: a default becomes what it stands for, and fields that are not
public are left out.
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
        """Called once for each object."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Called once, when all is read, also the signatures of dataclasses."""
        for function in _functions(pkg):
            show_signature(function)
            if function.docstring and function.returns is not None:
                function.docstring.value = with_type(function.docstring.value, str(function.returns))
            owner = function.parent
            # What a class yields stands in its own docstring.
            if function.name == "__iter__" and isinstance(owner, Class) and owner.docstring:
                owner.docstring.value = with_type(owner.docstring.value, str(function.returns))


def as_markdown(docstring: str) -> str:
    """The docstring with its examples in blocks of code, its brackets as they are written, and links to pages.

    >>> as_markdown("See docs/theory.md.")
    'See [the page on theory](../theory.md).'
    """
    fenced = _EXAMPLE.sub(lambda found: f"{found[1]}```pycon\n{found[0]}\n{found[1]}```", docstring)
    parts = _CODE.split(fenced)  # prose and code in turn
    return "".join(part if at % 2 else _link(part.replace("][", "]\\[")) for at, part in enumerate(parts))


def with_type(docstring: str, returns: str) -> str:
    """The docstring with the type before what it returns or yields.

    Without it, words up to a colon would be taken for the type.

    >>> with_type("Finds edges.\\n\\nReturns:\\n    [k, 2]: rows and lengths.", "Array")
    'Finds edges.\\n\\nReturns:\\n    Array: [k, 2]: rows and lengths.'
    >>> with_type("Takes turns.\\n\\nYields:\\n    A rank.", "Iterator[int]")
    'Takes turns.\\n\\nYields:\\n    int: A rank.'
    """

    def write(found: re.Match[str]) -> str:
        each = _ITERATOR.fullmatch(returns) if "Yields" in found[0] else None
        return f"{found[0]}{each[1] if each else returns}: "

    return _GIVES.sub(write, docstring)


def _link(prose: str) -> str:
    return _PAGE.sub(lambda found: f"[the page on {found[1]}]({posixpath.relpath(found[1], PLACE)}.md)", prose)


def _functions(owner: Module | Class) -> Iterator[Function]:
    for member in owner.members.values():
        if member.is_alias:
            continue
        if isinstance(member, Function):
            yield member
        elif isinstance(member, Module | Class):
            yield from _functions(member)


def show_signature(function: Function) -> None:
    """Leaves out fields that are not public, and writes out defaults that stand in the module under a name."""
    shown = [each for each in function.parameters if not (function.name == "__init__" and each.name.startswith("_"))]
    for parameter in shown:
        if (value := _stands_for(str(parameter.default), function.module)) is not None:
            parameter.default = value
    function.parameters = Parameters(*shown)


def _stands_for(default: str, module: Module) -> str | None:
    """What a constant of the module is, or an entry of one; None for all else."""
    found = _CONSTANT.fullmatch(default)
    constant = module.members.get(found[1]) if found else None
    if found is None or constant is None or constant.is_alias or not constant.is_attribute:
        return None
    if not found[2]:
        return str(constant.value)
    entries: Any = ast.parse(str(constant.value), mode="eval").body
    named = zip(entries.keys, entries.values, strict=True)
    return next(ast.unparse(value) for key, value in named if ast.literal_eval(key) == found[2])

"""Writes docs/reference/command-line.md: the options of every command, from the parsers themselves.

python docs/tools/command_line.py
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from lengthwise import cli, files
from lengthwise.cli.parser import Parser

# What is code already; options, and names that Python has. Code is never broken at a hyphen.
_CODE = re.compile(r"`[^`]+`|(?<![\w-])--[a-z][a-z-]*|\blengthwise(?:\.\w+)+")
PAGE = Path(__file__).parents[1] / "reference" / "command-line.md"
HEAD = """# Command line

`lengthwise COMMAND --help` says the same as this page. A file is written `FILE` or `FILE:COLUMN`; the
[page on files](../files.md) lists what can be read. `lengthwise study` and `lengthwise reproduce` come with the
[recipes](../../recipes/README.md).
"""


def main() -> None:
    """Writes the page."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    files.write(PAGE, page())


def page() -> str:
    """What the page should say."""
    return "\n".join([HEAD, *(_section(name, parser) for name, parser in _parsers().items())])


def _parsers() -> dict[str, argparse.ArgumentParser]:
    """The commands of the library; those of other packages are told there."""
    commands = Parser(prog="lengthwise").add_subparsers()
    for command in cli.COMMANDS.values():
        command.add(commands)
    return dict(commands.choices)


def _section(name: str, parser: argparse.ArgumentParser) -> str:
    rows = [row for group in parser._action_groups for row in _rows(group)]
    table = "\n".join(["| option | what it is |", "|---|---|", *rows])
    epilog = f"\n```text\n{textwrap.dedent(parser.epilog).strip()}\n```\n" if parser.epilog else ""
    return f"## `lengthwise {name}`\n\n{parser.description}\n\n{table}\n{epilog}"


def _rows(group: argparse._ArgumentGroup) -> Iterator[str]:
    for action in group._group_actions:
        if action.dest != "help":
            text = re.sub(r"([|\[])", r"\\\1", (action.help or "") % vars(action))
            told = _CODE.sub(lambda found: f"`{found[0].strip('`')}`", text)
            yield f"| {_written(action)} | {told} |"


def _written(action: argparse.Action) -> str:
    """An option as it is written: each name in a piece of code of its own, the value behind the last."""
    value = action.metavar or f"{{{','.join(action.choices or ())}}}"
    *others, last = sorted(action.option_strings, key=len) or [""]
    words = " ".join(filter(None, (last, "" if action.nargs == 0 else str(value))))
    return ", ".join(f"`{name}`" for name in (*others, words))


if __name__ == "__main__":
    main()

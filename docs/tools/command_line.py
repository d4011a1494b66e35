"""Writes docs/reference/command-line.md: the options of every command, from the parsers themselves.

python docs/tools/command_line.py
"""

from __future__ import annotations

import argparse
import re
import textwrap
from pathlib import Path

from lengthwise import cli, files
from lengthwise.cli.parser import Parser

# Code in backticks, options, and Python names.
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
    """Returns the page: the options of every command once, then those of each."""
    parsers = _parsers()
    rows = {name: _rows(parser) for name, parser in parsers.items()}
    groups: dict[tuple[str, ...], list[str]] = {}  # the rows by the commands that have them
    for row in dict.fromkeys(row for options in rows.values() for row in options):
        groups.setdefault(tuple(name for name, options in rows.items() if row in options), []).append(row)
    shared = sorted((names for names in groups if len(names) > 1), key=len, reverse=True)
    sections = [_section(_title(names, len(rows)), None, groups[names]) for names in shared]
    for name, parser in parsers.items():
        further_rows = groups.get((name,), [])
        sections.append(_section(f"`lengthwise {name}`", parser.description, further_rows, parser.epilog))
    return "\n".join([HEAD, *sections])


def _title(names: tuple[str, ...], count: int) -> str:
    """Returns the title of the options that several commands share."""
    return "Every command" if len(names) == count else ", ".join(f"`{name}`" for name in names)


def _parsers() -> dict[str, argparse.ArgumentParser]:
    """Returns the parsers of the library's commands, without those of other packages."""
    commands = Parser(prog="lengthwise").add_subparsers()
    for command in cli.COMMANDS.values():
        command.add(commands)
    return dict(commands.choices)


def _section(title: str, description: str | None, rows: list[str], epilog: str | None = None) -> str:
    table = "\n".join(["| option | meaning |", "|---|---|", *rows])
    names = f"\n```text\n{textwrap.dedent(epilog).strip()}\n```\n" if epilog else ""
    return "\n\n".join(filter(None, (f"## {title}", description, f"{table}\n{names}")))


def _rows(parser: argparse.ArgumentParser) -> list[str]:
    """Returns a row of the table for each option but --help."""
    actions = (action for group in parser._action_groups for action in group._group_actions if action.dest != "help")
    return [f"| {_usage(action)} | {_meaning(action)} |" for action in actions]


def _meaning(action: argparse.Action) -> str:
    """Returns the help of an option in Markdown, with code in backticks."""
    text = re.sub(r"([|\[])", r"\\\1", (action.help or "") % vars(action))
    return _CODE.sub(lambda match: f"`{match[0].strip('`')}`", text)


def _usage(action: argparse.Action) -> str:
    """Returns the names of an option in backticks, with its value behind the last name."""
    value = action.metavar or f"{{{','.join(action.choices or ())}}}"
    *short_names, last_name = sorted(action.option_strings, key=len) or [""]
    last = " ".join(filter(None, (last_name, "" if action.nargs == 0 else str(value))))
    return ", ".join(f"`{name}`" for name in (*short_names, last))


if __name__ == "__main__":
    main()

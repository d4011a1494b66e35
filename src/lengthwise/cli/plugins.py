"""Commands of other packages, which the command line finds by their entry points.

    [project.entry-points."lengthwise.commands"]
    tokenize = "my_package.tokenize"

The name is the command: `lengthwise tokenize`. The entry point names a module or another object with a function `add`,
as the commands of this package have. It adds a parser of that name, whose default `run` does the work.

    def add(subparsers):
        parser = subparsers.add_parser("tokenize", description="Counts the tokens of texts.")
        parser.add_argument("texts")
        parser.set_defaults(run=run)  # run(arguments) returns the exit status

A `ValueError`, `TypeError`, `OSError` or `ImportError` that `run` raises is shown as one sentence. A command may use
`cuts`, `parser`, `show` and `source` of `lengthwise.cli`. Errors about misplaced words use two names, if a command sets
them: the default `file_option` is the option that takes a file, and the destination `subcommand` that of parsers below.

The package is imported only when its command is named: `lengthwise --help` shows just the name. Those of our recipes
have a line here.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

_GROUP = "lengthwise.commands"
RECIPES = "lengthwise-recipes"
COMMANDS_OF_RECIPES = {
    "study": "train under several batching strategies and compare time and loss",
    "reproduce": "rerun a paper: its numbers beside ours",
}
_INSTALL = f"pip install {RECIPES}"


def find(taken: Sequence[str]) -> dict[str, EntryPoint]:
    """The commands of installed packages by name, in alphabetical order, without the names in `taken`."""
    # A name twice: the package that comes last has it. The names of this package are not to be had.
    found = {entry.name: entry for entry in entry_points(group=_GROUP)}
    return {name: found[name] for name in sorted(found) if name not in taken}


def add(subparsers: Any, entry: EntryPoint, *, load: bool) -> None:
    """Adds one command: with all its options where `load` is true, else its name and its package only.

    Raises:
        ImportError: It cannot be loaded, or does not add the command that it is named for.
    """
    if not load:
        package = _package(entry)
        told = COMMANDS_OF_RECIPES.get(entry.name) if package == RECIPES else None
        subparsers.add_parser(entry.name, help=told or f"a command of {package}")
        return
    try:
        entry.load().add(subparsers)
    except Exception as error:  # of another package: whatever it raises, its command alone cannot be used
        # In one line, whatever the other package wrote.
        told = " ".join(f"{type(error).__name__}: {error}".split())
        raise ImportError(_complaint(entry, f"raises {told}")) from error
    # Else argparse would say that there is no such command, though the help lists it.
    if entry.name not in subparsers.choices:
        raise ImportError(_complaint(entry, "adds no parser of that name"))


def recipes_hint(found: dict[str, EntryPoint]) -> str:
    """How to get the commands of the recipes, for the help; nothing where they are installed."""
    missing = [name for name in COMMANDS_OF_RECIPES if name not in found]
    return f"More commands, {' and '.join(missing)}: {_INSTALL}" if missing else ""


def check_installed(command: str | None, found: dict[str, EntryPoint]) -> None:
    """Refuses a command of the recipes where they are not installed.

    Raises:
        ImportError: With the command that installs them.
    """
    if command in COMMANDS_OF_RECIPES and command not in found:
        raise ImportError(
            f"`{RECIPES}` must be installed for `lengthwise {command}`, but is not. Install it: {_INSTALL}"
        )


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.module


def _complaint(entry: EntryPoint, fault: str) -> str:
    package = _package(entry)
    return f"`{entry.name}` of {package} must be a command that can be loaded, but {fault}. Install {package} anew."

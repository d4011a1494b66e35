"""The parser of every command: an error of the command line is one sentence, too."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path
from typing import Any, NoReturn

from lengthwise.checks import make_visible
from lengthwise.choices.cut import BUDGET_REMEDY

# What argparse says, and the same in the grammar of all other errors. {0} is the option.
_SENTENCES = {
    r"argument (\S+): not allowed with argument (\S+)": "`{0}` must be left out beside {1}",
    r"argument (\S+): expected one argument": "`{0}` must be followed by a value",
    r"argument (\S+): invalid choice: (.+) \(choose from (.+)\)": "`{0}` must be one of {2}, but is {1}",
    r"argument (\S+): (must .+)": "`{0}` {1}",
}


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` whose errors are one sentence without the usage, and that guesses no options."""

    def __init__(self, **choices: Any) -> None:
        # Abbreviations would make every new option a breaking change: --sub is --subset until there is --subject.
        super().__init__(allow_abbrev=False, **choices)
        # In place of argparse's "invalid int value: '1e3'".
        self.register("type", int, _whole)
        self.register("type", float, _number)

    def error(self, message: str) -> NoReturn:
        message = _reword(message)
        remedy = f"`{self.prog} --help` lists what there is."
        if message.startswith("`--budget` ") and "left out" not in message:
            remedy = f"{BUDGET_REMEDY} `lengthwise inspect FILE` counts them."
        if message.endswith("required: --buckets"):
            remedy = f"Write `{self.prog} --buckets 8`, for example."
        self.exit(2, make_visible(f"{self.prog}: {message}. {remedy}\n", lines=True))


def _reword(message: str) -> str:
    """The message of argparse in the grammar of all other errors.

    >>> _reword("argument --tail: invalid choice: 'x' (choose from 'split', 'drop')")
    "`--tail` must be one of split, drop, but is 'x'"
    """
    before, choices, after = message.partition(" (choose from ")
    message = before + choices + after.replace("'", "")  # some versions of Python write quotes
    for pattern, told in _SENTENCES.items():
        if found := re.fullmatch(pattern, message, re.DOTALL):
            return told.format(*found.groups())
    return message


def command() -> str:
    """The name of this program; that of `python -m lengthwise` is the same as of the script."""
    # The recipes write it into their results, where it must be the line that can be typed again.
    name = Path(sys.argv[0]).name
    return shlex.join(["lengthwise" if name == "__main__.py" else name, *sys.argv[1:]])


def _whole(word: str) -> int:
    try:
        return int(word)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a whole number, but is {word!r}") from error


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be a number, but is {word!r}") from error

"""The command line: `lengthwise advise | inspect | compare | plan | buckets | lengths`, and commands of other packages.

Other packages add commands by entry points, here `lengthwise tokenize`:

    [project.entry-points."lengthwise.commands"]
    tokenize = "my_package.tokenize"

The module has a function `add`, and is imported only when its command is used.

    def add(subparsers):
        parser = subparsers.add_parser("tokenize", description="Counts the tokens of texts.")
        parser.add_argument("texts")
        parser.set_defaults(run=run)  # run(arguments) returns the exit status

If your command takes its file by an option, set the default `file_option` to the name of that option, such as
"--data". A file without the option then raises an error that names the option.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from functools import cache, partial
from importlib.metadata import entry_points

import lengthwise as lw
from lengthwise._compile import listen
from lengthwise.checks import make_visible, sentence
from lengthwise.cli import advise, buckets, compare, inspect, lengths, plan
from lengthwise.cli.parser import Parser

COMMANDS = {module.__name__.rpartition(".")[2]: module for module in (advise, inspect, compare, plan, buckets, lengths)}
_NO_MEMORY = "There is not enough memory for this. Give fewer sequences, or smaller numbers."


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. An error is one sentence on standard error, and exit status 2."""
    # Before any file is opened, and before anything is printed.
    _open_closed_streams()
    # An error before the arguments are parsed names no command.
    parsed = argparse.Namespace(command="")
    try:
        # The inner `try` flushes, so that the outer one catches the error of a closed pipe.
        try:
            parsed = _parse(arguments)
            warn_once = cache(partial(_tell, parsed.command))
            compiling = partial(warn_once, "compiling, once for this installation: some seconds")
            with warnings.catch_warnings(), listen(lambda: compiling() if sys.stderr.isatty() else None):
                warnings.showwarning = lambda message, *_place, **_options: warn_once(str(message))
                status = parsed.run(parsed)
            return status
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _give_up_output()
        return 1  # as rich exits if its output is closed
    except (ValueError, TypeError, OSError, ImportError) as error:
        complaint, status = _complaint(error), 2
    except MemoryError:
        complaint, status = _NO_MEMORY, 2
    except KeyboardInterrupt:
        # 128 + 2, the number of SIGINT, as in shells.
        complaint, status = "stopped", 130
    _tell(parsed.command, complaint)
    _give_up_output()
    return status


_BEGIN = (
    "Begin with `lengthwise inspect train.csv:frames`, where `frames` is the column of lengths. Its output names the "
    "next command. Without a file, commands take an example."
)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    words = sys.argv[1:] if arguments is None else arguments
    text = "Plans the batches for training on sequences of different lengths."
    entries = {entry.name: entry for entry in sorted(entry_points(group="lengthwise.commands"))}
    epilog = "" if "study" in entries else "More commands, study and reproduce: pip install ./recipes, in a clone"
    parser = Parser(prog="lengthwise", description=f"{text} {_BEGIN}", epilog=epilog)
    parser.add_argument("-V", "--version", action="version", version=f"lengthwise {lw.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS.values():
        command.add(commands)
    # Imports a package only if its command is used.
    named = next((word for word in words if not word.startswith("-")), None)
    for name, entry in entries.items():
        if name == named and name not in COMMANDS:
            entry.load().add(commands)
        elif name not in COMMANDS:
            commands.add_parser(name, help=f"a command of {entry.dist.name if entry.dist else entry.module}")
    parsed = parser.parse_args(words or ["--help"])
    if not parsed.command:
        # Some versions of argparse accept a lone `--`.
        parser.error("there is no -- here")
    return parsed


def _tell(command: str, text: str) -> None:
    """Prints a warning or an error as one line on standard error, above a progress bar."""
    line = f"{f'lengthwise {command}'.strip()}: {make_visible(text)}"
    if "tqdm" in sys.modules:
        from tqdm import tqdm

        tqdm.write(line, file=sys.stderr)
    else:
        print(line, file=sys.stderr)


def _complaint(error: Exception) -> str:
    """Returns the sentence of an error; for an error of the system, a sentence with the system's reason."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    remedy = f"The system says: {error.strerror}."
    # No file to name, as for a full disk.
    if error.filename is None:
        return remedy
    return sentence("path", "a file that can be read or written", error.filename, remedy)


def _open_closed_streams() -> None:
    """Opens standard streams that the caller closed (`>&-`), and discards their output.

    Otherwise the first opened file would get the free descriptor, and messages could end up in a saved plan.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


def _give_up_output() -> None:
    """Discards the output that cannot be written: the reader has left, as `head` does, or the disk is full.

    Otherwise the interpreter would try again when it exits, and print an error.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

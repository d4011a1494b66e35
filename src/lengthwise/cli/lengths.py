"""`lengthwise lengths`: writes the lengths of a data set of any size into one file, for plans and other commands."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

import lengthwise as lw
from lengthwise.checks import value_error
from lengthwise.cli import show
from lengthwise.cli.parser import Input, add_reading, read_file, reading_options
from lengthwise.engines.write import save_lengths
from lengthwise.lengths.formats import find_format
from lengthwise.lengths.read import has_tables


def add(subparsers: Any) -> None:
    """Adds `lengths`."""
    text = "write the lengths of a data set of any size into one file"
    parser = subparsers.add_parser("lengths", help=text, description=f"{text.capitalize()}.")
    text = "file, folder or pattern, with the column if there are several"
    parser.add_argument("source", type=Input, metavar="FILE[:COLUMN]", help=text)
    parser.add_argument("--output", "-o", required=True, metavar="PATH", help="the file to write (.npy)")
    add_reading(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Writes the file, and prints the next command."""
    show.check(arguments)
    path = arguments.output
    if Path(path).suffix != ".npy":
        raise value_error("output", "the path of a .npy file", path, "Name it lengths.npy, for example.")
    lengths = read_file(arguments.source, read=_write, output=path, **reading_options(arguments))
    longest = " x ".join(f"{most:,}" for most in lengths.reshape(len(lengths), -1).max(axis=0).tolist())
    show.say(f"Sequences: {len(lengths):,}. The longest: {longest}. Written: {path}. Next:\n")
    show.program(f"    lengthwise advise {shlex.quote(path)}")
    return 0


def _write(source: str, *, output: str, **options: Any) -> Any:
    """Writes the lengths of a source, and returns them. Only those that `write_lengths` takes may exceed the memory."""
    path, choice = Path(source), options["column"] or options.get("count")
    is_large = has_tables(path, choice) if path.is_dir() else find_format(path).is_large
    if is_large or not path.exists():  # a pattern or a URL
        return lw.write_lengths(source, output, **options).lengths
    lengths = lw.read_lengths(source, **options, progress=True)
    save_lengths(lengths, output)
    return lengths

"""`lengthwise lengths`: writes the lengths of a data set of any size into one file, for plans and other commands."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

import lengthwise as lw
from lengthwise.cli import show
from lengthwise.cli.parser import Input, add_reading, read_file, reading_options
from lengthwise.engines.write import save_lengths
from lengthwise.lengths.formats import find_format
from lengthwise.lengths.read import has_tables


def add(subparsers: Any) -> None:
    """Adds `lengths`."""
    text = "write the lengths of a data set of any size into one file"
    parser = subparsers.add_parser("lengths", help=text, description=f"{text.capitalize()}.")
    parser.add_argument("source", type=Input, metavar="FILE[:COLUMN]", help="file, folder or pattern, and its column")
    parser.add_argument("--output", "-o", required=True, metavar="PATH", help="the file to write (.npy)")
    text = "rows without a length, such as empty texts: an error (by default), or counted as 1 each"
    parser.add_argument("--bad", choices=("error", "one"), default="error", help=text)
    add_reading(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Writes the file, and prints the next command."""
    show.check(arguments)
    path = arguments.output
    lengths = read_file(arguments.source, read=_write, output=path, bad=arguments.bad, **reading_options(arguments))
    longest = " x ".join(f"{most:,}" for most in lengths.reshape(len(lengths), -1).max(axis=0).tolist())
    show.say(f"Sequences: {len(lengths):,}. The longest: {longest}. Written: {path}. Next:\n")
    show.program(f"    lengthwise advise {shlex.quote(path)}")
    return 0


def _write(source: str, *, output: str, bad: str, **options: Any) -> Any:
    """Writes the lengths of a source, and returns them. Only those that `write_lengths` takes may exceed the memory."""
    path, choice = Path(source), options["column"] or options.get("count")
    is_large = has_tables(path, choice) if path.is_dir() else find_format(path).is_large
    if is_large or bad == "one" or not path.exists():  # a pattern or a URL
        written = lw.write_lengths(source, output, bad=bad, **options)
        if written.bad_rows:
            show.say(f"Rows without a length, counted as 1: {len(written.bad_rows):,}.")
        return written.lengths
    lengths = lw.read_lengths(source, **options, progress=True)
    save_lengths(lengths, output)
    return lengths

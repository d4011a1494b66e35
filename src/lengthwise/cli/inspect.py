"""`lengthwise inspect`: a description of lengths, and the padding of their random batches."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.advice.candidates import BATCH_SIZE, describe_longest, first_budget
from lengthwise.advice.code import describe_cut
from lengthwise.choices.batching import DEFAULT_PADDING
from lengthwise.cli import show
from lengthwise.cli.parser import add_batches, add_lengths, choose_cut, read_lengths, write_code, write_words
from lengthwise.lengths.description import bar_starts, has_long_tail
from lengthwise.report import tables

_BARS, _WIDTH = 16, 48  # bars of a histogram, and columns of its longest bar


def add(subparsers: Any) -> None:
    """Adds `inspect`."""
    text = "describe lengths, and what random batches of them would waste"
    parser = subparsers.add_parser("inspect", help=text, description=f"{text.capitalize()}.")
    add_lengths(parser)
    add_batches(parser, default=f"{BATCH_SIZE} sequences")
    show.add(parser, html="the lengths and random batches")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the description, a histogram, and the padding of random batches."""
    show.check(arguments)
    cut = choose_cut(arguments) or lw.FixedSize(BATCH_SIZE)
    lengths, name = read_lengths(arguments)
    plan = lw.make_plan(lengths, lw.Batching(cut=cut, order=lw.Shuffled()), seed=arguments.seed)
    measures = lw.measure(plan, lengths).as_dict()
    show.write_json({"lengths": lw.describe(lengths).as_dict(), "random_batches": measures}, arguments.json)
    options = {"title": f"{name}: {describe_cut(cut)}", "loading": write_code(arguments)}
    show.write_html(arguments.html, lengths, {"random": plan}, {"random": measures}, **options)
    if show.fills_output(arguments):
        return 0
    facts = tables.facts(lengths)
    show.print_table(facts, title=name)
    for head, column in zip(facts.heads[1:], lengths.reshape(len(lengths), -1).T, strict=True):
        note = "Bars further down cover more lengths, because few sequences are long." if has_long_tail(column) else ""
        show.print_table(tables.Table((head, "", "sequences"), _histogram(column), words=2, note=note))
    share = measures["padding_share"]
    show.say(
        f"\nRandom {describe_cut(cut)} would be {show.percent(share)} padding: "
        f"{1 / (1 - share):.2f} frames computed for every frame of data."
    )
    size = cut.batch_size if isinstance(cut, lw.FixedSize) else BATCH_SIZE
    budget = first_budget(lengths, size)
    show.say(
        f"A first budget: {budget:,} padded frames a batch, {size} x the mean length / "
        f"{1 - DEFAULT_PADDING:g}, or the longest length if that is more."
    )
    if isinstance(cut, lw.FixedSize) and (longest := describe_longest(lengths, cut.batch_size)):
        show.say(longest)
    show.say("\nNext, see which batches waste less:\n")
    command = "compare" if isinstance(cut, lw.Rows) else "advise"
    show.program(f"    lengthwise {command} {write_words(arguments)}".rstrip())
    return 0


def _histogram(lengths: NDArray[np.int64]) -> list[tuple[str, str, str]]:
    """Returns the rows of a text histogram: the lengths of each bar, the bar, its count."""
    starts = bar_starts(lengths, most=_BARS)
    # Lengths [2, 3, 7] in bars of 3 from 2: starts [2, 5, 8], counts [2, 1].
    counts = np.diff(np.searchsorted(np.sort(lengths), starts))
    mark = "█" if (sys.stdout.encoding or "utf-8").lower().startswith("utf") else "#"
    widths = np.rint(_WIDTH * counts / counts.max()).astype(int).tolist()
    return [
        (f"{first:,}" if last == first else f"{first:,}-{last:,}", mark * width, f"{count:,}")
        for first, last, width, count in zip(starts, starts[1:] - 1, widths, counts, strict=False)
    ]

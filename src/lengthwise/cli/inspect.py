"""`lengthwise inspect`: what lengths look like, and what random batches of them would waste."""

from __future__ import annotations

import argparse
import shlex
import sys
import textwrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.advice.snippet import write_batching
from lengthwise.cli import cuts, show, source
from lengthwise.lengths.description import bar_starts, has_long_tail

_BARS = " ▏▎▍▌▋▊▉█"
_WIDTH = 48  # of the longest bar, in columns
_SHOWN = (  # of the measures
    "batches",
    "padding_share",
    "zero_padding_rate",
    "largest_cost",
    "dropped",
    "over_max_cost",
)


def add(subparsers: Any) -> None:
    """Adds `inspect`."""
    text = "describe lengths, and what random batches of them would waste"
    parser = subparsers.add_parser("inspect", help=text, description=f"{text.capitalize()}.")
    source.add(parser)
    cuts.add(parser)
    show.add(parser, html="them")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the description, a histogram, and the padding of random batches."""
    show.check(arguments)
    cut = cuts.choose_cut(arguments)
    lengths, name = source.read(arguments)
    plan = lw.make_plan(lengths, lw.Batching(cut=cut, order=lw.Shuffled()), seed=arguments.seed)
    measures = lw.measure(plan, lengths).as_dict()
    facts = lw.describe(lengths).as_dict()
    random = {key: measures[key] for key in _SHOWN}
    show.write_json({"lengths": facts, "random_batches": random}, arguments.json)
    told = {"title": f"{name}: {cuts.describe_cut(cut)}", "loading": source.write_code(arguments)}
    show.write_html(arguments.html, lengths, {"random": plan}, {"random": measures}, **told)
    if show.fills_output(arguments):
        return 0
    # One column for each dimension, also if there is but one.
    table = lengths.reshape(len(lengths), -1)
    heads = ["length"] if facts["dims"] == 1 else [f"length {dim + 1}" for dim in range(facts["dims"])]
    show.table(("", *heads), _facts(facts), title=show.sentence_of(lengths, name))
    for head, column in zip(heads, table.T, strict=True):
        notes = (
            ("Bars are wider further down: few sequences are far longer than most.",) if has_long_tail(column) else ()
        )
        show.table((head, "", "sequences"), _histogram(column), notes=notes, words=2)
    show.say(f"\n{_suggest_budget(table)}")
    share = measures["padding_share"]
    show.say(
        f"Random {cuts.describe_cut(cut)} would be {show.percent(share)} padding: "
        f"{1 / (1 - share):.2f} frames computed for every frame of data."
    )
    if measures["dropped"]:
        show.say(f"They would leave {measures['dropped']:,} sequences out.")
    if measures["over_max_cost"]:
        over = f"{measures['over_max_cost']:,} of {measures['batches']:,} batches"
        show.say(f"{over} would cost more than the cut allows.")
    _print_next(arguments, cut)
    return 0


def _suggest_budget(table: NDArray[np.int64]) -> str:
    """What a batch of 16 of the mean length costs, and so which budget to begin with: [n, dims]."""
    frames = cuts.BATCH_SIZE * float(table.sum(axis=1).mean())
    usual = frames if frames < 100 else float(f"{frames:.3g}")  # 12,834 is about 12,800
    said = f"{cuts.BATCH_SIZE} sequences of the mean length have about {usual:,.0f} frames"
    longest, begin = int(table.sum(axis=1).max()), ": a --budget to begin with."
    # Any sequence over its budget by itself is an error.
    return f"{said}; the longest alone has {longest:,}, the least --budget." if longest > usual else f"{said}{begin}"


def _print_next(arguments: argparse.Namespace, cut: lw.Cut) -> None:
    """The command to type next, and what the library does where nobody chooses."""
    packed = isinstance(cut, lw.Rows)
    words = [*source.write_words(arguments), *cuts.write_words(arguments)]
    show.say(f"\nNext, see {'which packing fills more' if packed else 'which batches waste less'}:\n")
    show.program(f"    lengthwise {'compare' if packed else 'advise'} {shlex.join(words)}")
    show.say(f"\nIn Python, {'in random order' if packed else 'by a budget of padded frames alone'}:\n")
    batching = write_batching(lw.Batching(cut=cut))
    plan = f"plan = lw.make_plan(lengths, {batching})\nprint(lw.measure(plan, lengths))"
    show.program(textwrap.indent(f"import lengthwise as lw\n{source.write_code(arguments)}\n{plan}", "    "))


def _facts(facts: dict[str, Any]) -> list[tuple[str, ...]]:
    """A row for each fact, one cell for each dimension."""
    # Each dimension has the same percentages: those of the first name the rows.
    shares = facts["quantiles"][0]
    rows = [
        ("shortest", facts["min"]),
        *((f"{share} % are at most", [each[share] for each in facts["quantiles"]]) for share in shares),
        ("longest", facts["max"]),
        ("mean", facts["mean"]),
        ("total", facts["total"]),
    ]
    digits = {"mean": ".1f"}
    return [(name, *(format(value, "," + digits.get(name, "")) for value in values)) for name, values in rows]


def _histogram(lengths: NDArray[np.int64], bars: int = 16) -> list[tuple[str, str, str]]:
    """Rows of a histogram drawn in characters: the lengths of each bar, the bar, its count."""
    starts = bar_starts(lengths, most=bars)
    # Lengths [2, 3, 7] in bars of 3 from 2: starts [2, 5, 8], counts [2, 1].
    counts = np.diff(np.searchsorted(np.sort(lengths), starts))
    drawn = [_bar(share) for share in counts / counts.max()]
    return [
        (f"{first:,}" if last == first else f"{first:,}-{last:,}", bar, f"{count:,}")
        for first, last, bar, count in zip(starts, starts[1:] - 1, drawn, counts, strict=False)
    ]


def _bar(share: float) -> str:
    """A bar in eighths of a column, or in whole columns if standard output cannot show eighths.

    >>> _bar(1 / 16)
    '███'
    """
    # A share of 1/16 is 3 of 48 columns, which are 24 eighths.
    eighths = round(share * _WIDTH * 8)
    if not (sys.stdout.encoding or "utf-8").lower().startswith("utf"):
        return "#" * (eighths // 8)
    return "█" * (eighths // 8) + _BARS[eighths % 8].strip()

"""`lengthwise compare`: the padding, randomness and cost of strategies on the same lengths."""

from __future__ import annotations

import argparse
import textwrap
import warnings
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

import lengthwise as lw
from lengthwise.advice.candidates import BATCH_SIZE, name_decided
from lengthwise.advice.code import describe_cut, describe_world
from lengthwise.choices.deal import check_world
from lengthwise.cli import show, strategies
from lengthwise.cli.parser import (
    add_batches,
    add_lengths,
    add_ranks,
    choose_balance,
    choose_budget,
    read_lengths,
    write_code,
)
from lengthwise.cli.strategies import PACKINGS, STRATEGIES, Strategy, parse_strategies
from lengthwise.measures.metrics import epochs_to_pool, measure_epochs
from lengthwise.report import tables

DEFAULT = "random,sorted,semi-sorted:0.02,bucketed:1024,alternated:58,optimal:8,max-entropy:0.05,max-entropy:0.1"
DEFAULT_OF_ROWS = "best-fit,pool:1,pool:16,pool:128,pool:1024,pool:8192"
ATTENTION = lw.Quadratic(linear=0.0, quadratic=1.0)  # rows have the same number of frames, so only attention differs
# Columns to leave out on a narrow terminal, in this order.
_SPARE = ("batches", "computed / useful", "batch size", "largest cost")


def add(subparsers: Any) -> None:
    """Adds `compare`."""
    parser = subparsers.add_parser(
        "compare",
        help="compare batching strategies on lengths",
        description="Plan some epochs by every strategy, and show padding, randomness and cost.",
        epilog=_names(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_lengths(parser)
    add_batches(parser, default="the budget that `lengthwise inspect` names")
    text = "the strategies to compare; names and defaults are below"
    parser.add_argument_group("plans").add_argument("--strategies", metavar="A,B:VALUE,...", help=text)
    add_ranks(parser)
    plot = "padding and randomness of every strategy"
    show.add(parser, plot=plot, html="all strategies, and the best beside the first")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints one row for every strategy."""
    show.check(arguments)
    world = check_world(arguments.world_size, arguments.micro_batches)
    lengths, name = read_lengths(arguments)
    cut = choose_budget(arguments, lengths)
    packed = isinstance(cut, lw.Rows)
    cost = ATTENTION if packed else lw.Padded()
    balance = choose_balance(arguments)
    pool = epochs_to_pool(len(lengths))
    options = {"seed": arguments.seed, **world._asdict()}
    usual = lw.make_plan(lengths, lw.Batching(cut=cut, cost=cost, balance=balance), **options)
    named = arguments.strategies or _list_strategies(lw.Batching.from_json(usual.batching), world.slots, lengths.ndim)
    batchings = parse_strategies(named, cut=cut, cost=cost)
    if arguments.strategies is None and not isinstance(cut, lw.FixedSize) and not packed:
        random = replace(batchings.pop("random"), cut=lw.FixedSize(BATCH_SIZE), deal=lw.InTurn())
        batchings = {f"random of {BATCH_SIZE}": random} | batchings
    plans, rows = {}, {}
    with warnings.catch_warnings():
        if arguments.strategies is None:  # the table shows which default strategies miss their padding
            warnings.filterwarnings("ignore", message="`padding` must be within")
        for label, batching in show.progress(batchings.items()):
            # Counts and padding are those of the first epoch; randomness is measured over all epochs.
            batching = replace(batching, balance=balance)
            epochs = [lw.make_plan(lengths, batching, epoch=epoch, **options) for epoch in range(pool)]
            plans[label] = epochs[0]
            rows[label] = measure_epochs(epochs, lengths).as_dict()
    best = next((label for label, plan in plans.items() if _are_equal(plan, usual)), "")
    document = [{"strategy": label, **row} for label, row in rows.items()]
    show.write_json({"lengths": show.summary(lengths), "rows": document}, arguments.json)
    show.write_chart(arguments.plot, lambda: lw.report.padding(rows, best=best))
    heading = f"{describe_cut(cut)}{describe_world(world)}"
    page = {"title": f"{name}: {heading}", "loading": write_code(arguments), "best": best}
    show.write_html(arguments.html, lengths, plans, rows, **page)
    if not show.fills_output(arguments):
        table = tables.measures(rows, steps=world.slots > 1, packed=packed, best=best)
        show.print_table(table, title=f"{show.sentence_of(lengths, name)}\n{heading}", spare=_SPARE)
    return 0


def _are_equal(plan: lw.Plan, reference: lw.Plan) -> bool:
    """Tells if two plans have the same batches, which may come from different batchings."""
    return all(np.array_equal(getattr(plan, name), getattr(reference, name)) for name in ("numbers", "offsets", "grid"))


def _list_strategies(decided: lw.Batching, slots: int, dims: int) -> str:
    """Returns the default strategies that the cut and the lengths allow, the decided one among them."""
    names = (DEFAULT_OF_ROWS if isinstance(decided.cut, lw.Rows) else DEFAULT).split(",")
    if dims == 2:  # no optimal edges for pairs of lengths
        names = [name for name in names if name != "optimal:8"]
    # Random steps matter only if a step has several batches, and some cuts cannot make them.
    with suppress(ValueError):
        lw.RandomSteps().check_cut(decided.cut)
        names += ["random-steps"] if slots > 1 else []
    # A key=value belongs to the name before it: "max-entropy:0.05,deal=balanced" is one name.
    return ",".join(dict.fromkeys([*names, *filter(None, [name_decided(decided)])]))


def _names() -> str:
    """Returns the help on strategies, within 80 columns: a line for each, and the defaults."""
    lines = [_indent(f"  {_write(name, kind):21s}", kind.help) for name, kind in STRATEGIES.items()]
    keys = [
        f"arrange={' | '.join(strategies.ARRANGEMENTS)}",
        f"deal={' | '.join(strategies.DEALS)}",
        "and tail=split | repeat | drop",
    ]
    packings = [_indent(f"  {_write(name, kind):21s}", kind.help) for name, kind in PACKINGS.items()]
    # Blanks are added to break the lines, and then removed, so that the list can be copied.
    default, of_rows = (
        _indent("  ", names.replace(",", ", ")).replace(", ", ",") for names in (DEFAULT, DEFAULT_OF_ROWS)
    )
    return "\n".join(
        [
            *(
                "strategies, each with [,key=value...]:",
                *lines,
                _indent("  every one also takes ", ", ".join(keys)),
                "",
            ),
            *("with --cut rows also:", *packings, ""),
            *("without --strategies these and the default:", default, "and with --cut rows:", of_rows),
        ]
    )


def _write(name: str, kind: Strategy) -> str:
    return f"{name}:{kind.value}" if kind.value else name


def _indent(head: str, text: str) -> str:
    """Returns `head` and `text`, with further lines indented to the start of `text`."""
    return textwrap.fill(text, 79, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)

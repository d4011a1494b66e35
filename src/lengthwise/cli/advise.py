"""`lengthwise advise`: the batching to train with, its savings, and its code."""

from __future__ import annotations

import argparse
from typing import Any

import lengthwise as lw
from lengthwise.advice.answer import Advice
from lengthwise.advice.code import describe_cut, describe_world
from lengthwise.cli import show
from lengthwise.cli.parser import (
    Input,
    add_batches,
    add_lengths,
    add_ranks,
    choose_balance,
    choose_cut,
    read_lengths,
    write_code,
)
from lengthwise.report import tables
from lengthwise.report.tables import Table

# Columns to leave out on a narrow terminal, in this order.
_SPARE = ("largest cost", "randomness")
_PRICES = {"seconds": "seconds an epoch", "cost": "cost of an epoch"}
_MEANINGS = {
    "frames": "computed / useful, divided by the share of time without waiting",
    "work": "work for each unit that the data need, waiting included",
}


def add(subparsers: Any) -> None:
    """Adds `advise`."""
    text = "recommend batches for these lengths, with the code"
    description = (
        "Measure random batches of these lengths, the default batches of Lengthwise, and those of trainers, and "
        "recommend one kind."
    )
    parser = subparsers.add_parser("advise", help=text, description=description)
    add_lengths(parser)
    add_batches(parser, default="16 sequences; give those that you train with now")
    add_ranks(parser)
    group = parser.add_argument_group("padding and cost")
    text = "the padding of batches, as a share of computed frames (0.05, or less to cost no more than group_by_length)"
    group.add_argument("--padding", type=float, metavar="SHARE", help=text)
    text = "a file of lengthwise.StepCost.save, with the seconds of a step; without it, all frames cost the same"
    group.add_argument("--cost", type=Input, metavar="PATH", help=text)
    show.add(parser, plot="padding and randomness", html="the recommended batches and the measures")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the measures, the recommendation, and the code."""
    show.check(arguments)
    cut = choose_cut(arguments) or lw.FixedSize(16)
    options = {name: getattr(arguments, name) for name in ("padding", "world_size", "micro_batches", "seed")}
    cost = None if arguments.cost is None else lw.StepCost.load(arguments.cost)
    lengths, name = read_lengths(arguments)
    advice = lw.advise(lengths, cut, cost=cost, balance=choose_balance(arguments), **options)
    program = f"import lengthwise as lw\n\n{write_code(arguments)}\n{advice.code}"
    document = {"lengths": show.summary(lengths), **advice.as_dict(), "code": program}
    show.write_json(document, arguments.json)
    show.write_chart(arguments.plot, lambda: lw.report.padding(_measures(advice), best=advice.best.label))
    heading = (
        f"{describe_cut(advice.random.batching.cut)}{describe_world(lw.World(advice.world_size, advice.micro_batches))}"
    )
    _write_page(arguments, advice, lengths, title=f"{name}: {heading}")
    if not show.fills_output(arguments):
        show.print_table(_table(advice), title=f"{show.sentence_of(lengths, name)}\n{heading}", spare=_SPARE)
        show.say(f"\n{advice}\n")
        show.program(program)
    return 0


def _measures(advice: Advice) -> dict[str, dict[str, Any]]:
    return {row.label: row.measures.as_dict() for row in advice.candidates}


def _table(advice: Advice) -> Table:
    """Returns the table of all measures, for the terminal and for the page."""
    steps = advice.world_size * advice.micro_batches > 1
    columns = ("padding", "computed / useful", "waiting", "randomness", "largest cost")
    measured = tables.measures(_measures(advice), steps=steps, columns=columns)
    prices = [f"{row.price:,.2f}" if row.price < 1000 else f"{row.price:,.0f}" for row in advice.candidates]
    heads, meanings = ("strategy", "ships in", *measured.heads[1:]), list(measured.meanings)
    if steps or advice.unit != "frames":  # else the price is the column "computed / useful"
        heads += (_PRICES.get(advice.unit, "price"),)
        meanings += [("price", _MEANINGS[advice.unit])] if advice.unit in _MEANINGS else []
    cells = zip(measured.rows, advice.candidates, prices, strict=True)
    rows = [(label, row.ships_in, *texts, price)[: len(heads)] for (label, *texts), row, price in cells]
    return Table(heads, rows, "What was measured", words=2, meanings=meanings, best=advice.best.label)


def _write_page(arguments: argparse.Namespace, advice: Advice, lengths: Any, *, title: str) -> None:
    """Writes the page: random batches, the recommended batches, and all measures."""
    if arguments.html is None:
        return
    plans, rows = {}, {advice.random.label: {}} | _measures(advice)  # random batches first
    world = lw.World(advice.world_size, advice.micro_batches)
    for row in (advice.random, advice.best):
        plan = lw.make_plan(lengths, row.batching, seed=arguments.seed, **world._asdict())
        plans[row.label] = plan
        # The measures may be those of a sample of the lengths.
        rows[row.label] |= {"steps": plan.steps, "batches": len(plan.costs)}
    *lead, _code = advice.sentence.split("\n")
    page: dict[str, Any] = {
        "title": title,
        "loading": write_code(arguments),
        "lead": " ".join([*lead, advice.attention]).strip(),
        "measured": _table(advice),
    }
    show.write_html(arguments.html, lengths, plans, rows, **page)

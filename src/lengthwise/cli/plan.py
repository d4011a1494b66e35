"""`lengthwise plan`: makes one plan, measures it, and saves it."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import lengthwise as lw
from lengthwise.advice.candidates import BATCH_SIZE
from lengthwise.advice.code import describe_cut, describe_world
from lengthwise.choices.batching import write_batching
from lengthwise.cli import show
from lengthwise.cli.parser import (
    add_batches,
    add_lengths,
    add_ranks,
    choose_balance,
    choose_budget,
    read_lengths,
    write_code,
)
from lengthwise.cli.strategies import parse_strategy
from lengthwise.measures.metrics import epochs_to_pool, measure_epochs
from lengthwise.report import tables


def add(subparsers: Any) -> None:
    """Adds `plan`."""
    text = "plan one epoch for every rank, and save it"
    parser = subparsers.add_parser("plan", help=text, description=f"{text.capitalize()}.")
    add_lengths(parser)
    add_batches(parser, default="the budget that `lengthwise inspect` names")
    group = parser.add_argument_group("plan")
    text = "a strategy of `lengthwise compare --help` (default: that of `lengthwise.Batching`)"
    group.add_argument("--strategy", metavar="NAME[:VALUE]", help=text)
    group.add_argument("--epoch", type=int, default=0, metavar="E", help="the epoch to plan (%(default)s)")
    group.add_argument("--chunk", type=int, metavar="FRAMES", help="cut sequences into chunks of this length first")
    group.add_argument("--output", "-o", metavar="PATH", help="save the plan (.npz); lengthwise.Plan.load reads it")
    add_ranks(parser)
    show.add(parser, html="the plan beside random batches")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Makes the plan, saves it, and prints its measures."""
    show.check(arguments)
    lengths, name = read_lengths(arguments)
    cut = choose_budget(arguments, lengths)
    batching = parse_strategy(arguments.strategy, cut=cut) if arguments.strategy else lw.Batching(cut=cut)
    chunks = None if arguments.chunk is None else lw.Chunks(arguments.chunk)
    batching = replace(batching, chunks=chunks, balance=choose_balance(arguments))
    options = {key: getattr(arguments, key) for key in ("seed", "epoch", "world_size", "micro_batches")}
    plan = lw.make_plan(lengths, batching, **options)
    # The plan is saved first: an error in measuring or printing does not lose it.
    if arguments.output is not None:
        plan.save(arguments.output)
        show.name_file(arguments.output)
    measures = _measure(plan, lengths, batching, options)
    exceptions = {key: getattr(plan, key)().tolist() for key in ("dropped", "repeated", "over_max_cost")}
    facts = {key: getattr(plan, key) for key in ("batching", "seed", "epoch", "world_size")}
    facts["fingerprint"] = plan.fingerprint()
    document = {"lengths": show.summary(lengths), "plan": facts, "measures": measures, "report": exceptions}
    show.write_json(document, arguments.json)
    chunks = "" if arguments.chunk is None else f"; chunks of at most {arguments.chunk:,} frames"
    heading = f"{describe_cut(batching.cut)}{chunks}{describe_world(lw.World(plan.world_size, plan.micro_batches))}"
    if arguments.html is not None:
        size, label = arguments.batch_size or BATCH_SIZE, arguments.strategy or "the default"
        shuffled = replace(batching, cut=lw.FixedSize(size), order=lw.Shuffled(), deal=lw.InTurn())
        random = lw.make_plan(lengths, shuffled, **options)
        plans = {f"random of {size}": random, label: plan}
        rows = {f"random of {size}": _measure(random, lengths, shuffled, options), label: measures}
        page = {"title": f"{name}: {heading}", "loading": write_code(arguments)}
        show.write_html(arguments.html, lengths, plans, rows, **page)
    if not show.fills_output(arguments):
        resolved = lw.Batching.from_json(plan.batching)
        title = f"{show.sentence_of(lengths, name)}\n{heading}\nplan {plan.fingerprint()}, {write_batching(resolved)}"
        show.print_table(_table(plan, measures), title=title)
    return 0


def _measure(plan: lw.Plan, lengths: Any, batching: lw.Batching, options: dict[str, Any]) -> dict[str, Any]:
    """Measures the plan; its randomness and waiting over the next epochs too, as `compare` does."""
    epochs = range(plan.epoch + 1, plan.epoch + epochs_to_pool(len(lengths)))
    later = [lw.make_plan(lengths, batching, **options | {"epoch": epoch}) for epoch in epochs]
    return measure_epochs([plan, *later], lengths).as_dict()


def _table(plan: lw.Plan, measures: dict[str, Any]) -> tables.Table:
    """Returns the measures of one plan, a line for each."""
    several, packed = plan.world_size * plan.micro_batches > 1, plan.row_offsets is not None
    row = tables.measures({"plan": measures}, steps=several, packed=packed)
    counts = [(name, f"{measures[name]:,}") for name in ("sequences", "steps")]
    cells = [*counts, *zip(row.heads[1:], row.rows[0][1:], strict=True)]
    return tables.Table(("measure", "value"), cells, meanings=row.meanings, note=row.note)

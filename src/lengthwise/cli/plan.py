"""`lengthwise plan`: makes one plan, says what it is worth, and saves it."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import check_whole, value_error
from lengthwise.choices.deal import TAILS
from lengthwise.cli import cuts, show, source
from lengthwise.cli.strategies import DEFAULT_STRATEGY, parse_strategy
from lengthwise.report import words
from lengthwise.report.tables import choose_columns, meanings

DEALS: dict[str, type[lw.RandomSteps | lw.Stratified | lw.Balanced | lw.Mixed | lw.InTurn]] = {
    "random-steps": lw.RandomSteps,
    "stratified": lw.Stratified,
    "balanced": lw.Balanced,
    "mixed": lw.Mixed,
    "in-turn": lw.InTurn,
}


def add(subparsers: Any) -> None:
    """Adds `plan`."""
    text = "plan one epoch for every rank, and save it"
    parser = subparsers.add_parser("plan", help=text, description=f"{text.capitalize()}.")
    source.add(parser)
    cuts.add(parser)
    group = parser.add_argument_group("plan")
    text = f"one of those that `lengthwise compare --help` lists ({DEFAULT_STRATEGY})"
    group.add_argument("--strategy", metavar="NAME[:VALUE]", help=text)
    group.add_argument("--epoch", type=int, default=0, metavar="E", help="the epoch to plan (%(default)s)")
    group.add_argument("--world-size", type=int, default=1, metavar="R", help="ranks (%(default)s)")
    text = "batches that each rank takes in one step (%(default)s)"
    group.add_argument("--micro-batches", type=int, default=1, metavar="M", help=text)
    text = f"which batches share a step: {', '.join(DEALS)} or portions (what the strategy names)"
    group.add_argument("--deal", choices=[*DEALS, "portions"], metavar="DEAL", help=text)
    text = "what becomes of a last step that is not full (split, or what the strategy names)"
    group.add_argument("--tail", choices=TAILS, help=text)
    group.add_argument("--chunk", type=int, metavar="FRAMES", help="cut sequences into chunks of this length first")
    group.add_argument(
        "--chunk-step", type=int, metavar="FRAMES", help="from the start of a chunk to the next (the chunk size)"
    )
    show.add(parser, html="it beside random batches")
    output = parser.add_argument_group("more output")
    text = "list the K costliest batches (%(default)s)"
    output.add_argument("--costliest", type=int, default=3, metavar="K", help=text)
    output.add_argument("--output", "-o", metavar="PATH", help="save the plan (.npz); lengthwise.Plan.load reads it")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Makes the plan, saves it, and prints its measures and its costliest batches."""
    show.check(arguments)
    check_whole("costliest", arguments.costliest, minimum=0, remedy="Give how many batches to list.")
    batching = _batching(arguments)
    lengths, name = source.read(arguments)
    plan = lw.make_plan(
        lengths,
        batching,
        seed=arguments.seed,
        epoch=arguments.epoch,
        world_size=arguments.world_size,
        micro_batches=arguments.micro_batches,
    )
    # Saved before it is measured: whatever goes wrong in printing, the plan is there.
    if arguments.output is not None:
        plan.save(arguments.output)
    document = _document(plan, lw.measure(plan, lengths), arguments.costliest)
    show.write_json({"lengths": show.summary(lengths), **document}, arguments.json)
    chunks = "" if arguments.chunk is None else f"; chunks of at most {arguments.chunk:,} frames"
    world = cuts.describe_world(lw.World(plan.world_size, plan.micro_batches))
    made = f"{cuts.describe_cut(batching.cut)}{chunks}{world}"
    if arguments.html is not None:
        title = f"{name}: {made}"
        _write_report(arguments, lengths, {_label(arguments, plan): plan}, batching, title)
    if not show.fills_output(arguments):
        title = f"{show.sentence_of(lengths, name)}\n{made}"
        _print(document, title, packed=plan.row_offsets is not None)
    return 0


def _label(arguments: argparse.Namespace, plan: lw.Plan) -> str:
    """The strategy, as it is written; without one, what the plan is made by."""
    return arguments.strategy or ("random" if plan.row_offsets is not None else DEFAULT_STRATEGY)


def _write_report(
    arguments: argparse.Namespace,
    lengths: NDArray[np.int64],
    planned: dict[str, lw.Plan],
    batching: lw.Batching,
    title: str,
) -> None:
    """Writes the report of the plan, beside a plan of random batches of the same cut for the same ranks."""
    random = lw.Batching(cut=batching.cut, order=lw.Shuffled(), cost=batching.cost, chunks=batching.chunks)
    options = {name: getattr(arguments, name) for name in ("seed", "epoch", "world_size", "micro_batches")}
    # Of the label "random" it is the plan itself that stays.
    plans = {"random": lw.make_plan(lengths, random, **options), **planned}
    rows = {label: lw.measure(plan, lengths).as_dict() for label, plan in plans.items()}
    show.write_html(arguments.html, lengths, plans, rows, title=title, loading=source.write_code(arguments))


def _batching(arguments: argparse.Namespace) -> lw.Batching:
    cut = cuts.choose_cut(arguments)
    named = lw.Batching(cut=cut) if arguments.strategy is None else parse_strategy(arguments.strategy, cut=cut)
    deal = _deal(arguments, named.deal)
    chunks = None if arguments.chunk is None else lw.Chunks(arguments.chunk, step=arguments.chunk_step)
    if chunks is None and arguments.chunk_step is not None:
        raise value_error("chunk-step", "given with --chunk", arguments.chunk_step, "Give the chunk size too.")
    # The cost stays the padded frames, in which the budget of the command line is counted.
    order = None if arguments.strategy is None else named.order  # that of the deal
    return lw.Batching(cut=named.cut, order=order, arrange=named.arrange, deal=deal, chunks=chunks)


def _deal(arguments: argparse.Namespace, named: Any) -> Any:
    """The deal that was asked for, or that of the strategy, which may set the tail too."""
    if named is None and arguments.deal is None:  # the lengths and the ranks decide
        if arguments.tail is not None:
            rule, remedy = "given with --deal or --strategy", "Add --deal random-steps, for example."
            raise value_error("tail", rule, arguments.tail, remedy)
        return None
    tail = arguments.tail or getattr(named, "tail", "split")
    if arguments.deal is None:
        # The strategy's own deal, mxnet's with drop=true say, and only another tail.
        return replace(cast(Any, named), tail=tail)
    if arguments.deal != "portions":
        return DEALS[arguments.deal](tail=tail)
    # Portions have no tail to choose: a rank with fewer batches splits its largest.
    if tail != "split":
        raise value_error("tail", "split with --deal portions", tail, "Leave it out, and drop=true of a strategy.")
    return lw.Portions()


def _document(plan: lw.Plan, measures: lw.Measures, count: int) -> dict[str, Any]:
    costliest = [
        {
            "batch": int(number),
            "sequences": int(plan.batch_sizes[number]),
            "padded_length": plan.padded_lengths[number].tolist(),
            "cost": float(plan.costs[number]),
        }
        for number in plan.costliest(count)
    ]
    report = {
        "dropped": plan.dropped().tolist(),
        "repeated": plan.repeated().tolist(),
        "over_max_cost": plan.over_max_cost().tolist(),
    }
    facts = {"fingerprint": plan.fingerprint(), "seed": plan.seed, "epoch": plan.epoch, "world_size": plan.world_size}
    return {"plan": facts, "measures": measures.as_dict(), "report": report, "costliest": costliest}


def _print(document: dict[str, Any], title: str, *, packed: bool) -> None:
    measures = document["measures"]
    several = document["plan"]["world_size"] > 1 or measures["steps"] < measures["batches"]
    columns = choose_columns(steps=several, packed=packed)
    told = {head: write(measures) for head, write in columns.items() if head != "planned in ms"}
    rows = [(name, f"{measures[name]:,}") for name in ("sequences", "steps")]
    rows += [*told.items(), ("repeated", f"{measures['repeated']:,}")]
    bins = measures["mixing_bins"]
    note = (
        f"Mixing is estimated in {bins} bins on this epoch alone; below about {1 / bins:.2g} it cannot be told from 0. "
        "`lengthwise compare` prints another number for short data: it pools epochs, 32 at most, to fill 256 bins."
    )
    if packed:
        note = (
            "Pair mixing is estimated on this epoch alone, where `lengthwise compare` pools epochs. Costs, their "
            "spread and waiting count frames of data; `lengthwise compare` counts attention."
        )
    more = "Lengths and costs are in frames. --json has more measures, which help(lengthwise.Measures) explains."
    notes = (*(f"{head}: {text}." for head, text in meanings(list(told))), note, more)
    show.table(("measure", "value"), rows, title=f"{title}\nplan {document['plan']['fingerprint']}", notes=notes)
    if document["costliest"]:
        heads = ("costliest batch", "sequences", "padded to", "cost")
        show.table(heads, [_costliest_row(batch) for batch in document["costliest"]], words=0)
    for name, numbers in document["report"].items():
        if numbers:
            what = words.count(len(numbers), *(("batch", "batches") if name == "over_max_cost" else ("sequence",)))
            # Twenty are enough to look at; --json has all of them.
            listed = ", ".join(map(str, numbers[:20])) + (" ..." if len(numbers) > 20 else "")
            show.say(f"\n{name.replace('_', ' ')}: {what}: {listed}")


def _costliest_row(batch: dict[str, Any]) -> tuple[str, ...]:
    # Two lengths a sequence: "812 x 90".
    padded = " x ".join(f"{length:,}" for length in batch["padded_length"])
    return f"{batch['batch']}", f"{batch['sequences']:,}", padded, f"{batch['cost']:,.16g}"

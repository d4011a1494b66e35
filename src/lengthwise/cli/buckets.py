"""`lengthwise buckets`: the padded shapes that cost least in an epoch, with their code."""

from __future__ import annotations

import argparse
from typing import Any

import lengthwise as lw
from lengthwise.advice.code import describe_cut, wrap_call
from lengthwise.choices.arithmetic import one_length
from lengthwise.choices.batching import write_batching
from lengthwise.cli import show
from lengthwise.cli.parser import add_batches, add_lengths, choose_budget, read_lengths, write_code
from lengthwise.planning.few_shapes import count_in_shapes, shape_costs, useful_frames
from lengthwise.report.tables import Table

_MOST_EDGES = 64  # the most edges to print as code


def add(subparsers: Any) -> None:
    """Adds `buckets`."""
    text = "find the shapes (rows, padded length) of batches that pad least"
    parser = subparsers.add_parser("buckets", help=text, description=f"{text.capitalize()}.")
    add_lengths(parser)
    group = parser.add_argument_group("buckets")
    group.add_argument("--buckets", type=int, default=8, metavar="Q", help="the most shapes (%(default)s)")
    add_batches(parser, default="the budget that `lengthwise inspect` names")
    show.add(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the shapes, and the code of their batches."""
    show.check(arguments)
    lengths, name = read_lengths(arguments)
    lengths = one_length(lengths)
    cut = choose_budget(arguments, lengths)
    shapes = lw.optimal_shapes(lengths, arguments.buckets, cut)
    costs = shape_costs(lengths, arguments.buckets, cut)[: len(shapes)].tolist()
    shares = [1.0 - useful_frames(lengths, cut) / cost for cost in costs]
    facts = {"shapes": shapes.tolist(), "computed": int(costs[-1]), "padding_share": shares[-1]}
    show.write_json({**facts, "padding_by_shapes": shares}, arguments.json)
    if show.fills_output(arguments):
        return 0
    counts, used = count_in_shapes(lengths, shapes, cut)
    batches = -(-counts // shapes[:, 0])
    padding = 1.0 - used / (batches * shapes.prod(axis=1))
    rows = [
        (f"{size:,}", f"{edge:,}", f"{count:,}", f"{number:,}", show.percent(share, 2))
        for (size, edge), count, number, share in zip(shapes.tolist(), counts, batches, padding, strict=True)
    ]
    share = show.percent(shares[-1], 2)
    note = f"{costs[-1]:,.0f} frames when every batch is padded to its shape, {share} of them padding."
    if left := len(lengths) - int(counts.sum()):
        note += f" {left:,} of {len(lengths):,} sequences are over the budget, and left out."
    table = Table(("rows", "up to", "sequences", "batches", "padding"), rows, words=0, note=note)
    shown = "1 shape" if len(shapes) == 1 else f"{len(shapes):,} shapes"
    show.print_table(table, title=f"{show.sentence_of(lengths, name)}\n{shown} of {describe_cut(cut)}")
    if len(shapes) <= _MOST_EDGES:
        order = lw.Bucketed(edges=tuple(shapes[:, 1].tolist()), pad_to_edge=True)
        batching = wrap_call(f"batching = {write_batching(lw.Batching(cut=cut, order=order))}")
        collate = wrap_call(f"collate_fn = lw.torch.PadCollate(shapes={list(map(tuple, shapes.tolist()))})")
        show.program(f"\nimport lengthwise as lw\n\n{write_code(arguments)}\n{batching}\n{collate}")
    return 0

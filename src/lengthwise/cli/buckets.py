"""`lengthwise buckets`: the edges of Q buckets, and what padding to them costs; or Q shapes, under a cut."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.advice.code import describe_cut, wrap_call, write_batching
from lengthwise.choices.buckets import find_bucket, one_length, padded_frames
from lengthwise.choices.cut import Cut
from lengthwise.cli import show
from lengthwise.cli.parser import add_batches, add_lengths, choose_cut, read_lengths, write_code
from lengthwise.planning.few_shapes import sequences_of, shape_costs, useful_frames
from lengthwise.report.tables import Table

_MOST_EDGES = 64  # whose code is printed


def add(subparsers: Any) -> None:
    """Adds `buckets`."""
    text = "find the edges of buckets, and what padding to them costs"
    more = "With --budget, --batch-size or --cut: the Q shapes (rows, padded length) under which an epoch costs least."
    parser = subparsers.add_parser("buckets", help=text, description=f"{text.capitalize()}. {more}")
    add_lengths(parser)
    group = parser.add_argument_group("buckets")
    group.add_argument("--buckets", type=int, required=True, metavar="Q", help="how many, at most")
    add_batches(parser, default="edges alone")
    show.add(parser, plot="the histogram of lengths with the buckets; with a cut, padding by the number of shapes")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the buckets."""
    show.check(arguments)
    cut = choose_cut(arguments)
    lengths, name = read_lengths(arguments)
    lengths = one_length(lengths)
    document, table, edges = (
        _find_edges(lengths, arguments.buckets) if cut is None else _find_shapes(lengths, arguments.buckets, cut)
    )
    show.write_json(document, arguments.json)
    if cut is None:
        show.write_chart(arguments.plot, lambda: lw.report.histogram(lengths, edges=edges))
    else:
        show.write_chart(arguments.plot, lambda: lw.report.shapes(lengths, cut, most=arguments.buckets))
    if show.fills_output(arguments):
        return 0
    show.print_table(table, title=f"{show.sentence_of(lengths, name)}\n{table.title}")
    if cut is not None and len(edges) <= _MOST_EDGES:
        order = lw.Bucketed(edges=tuple(edges.tolist()), pad_to_edge=True)
        batching = wrap_call(f"batching = {write_batching(lw.Batching(cut=cut, order=order))}")
        show.program(f"\nimport lengthwise as lw\n\n{write_code(arguments)}\n{batching}")
    return 0


def _find_edges(lengths: NDArray[np.int64], most: int) -> tuple[dict[str, Any], Table, NDArray[np.int64]]:
    """The edges as JSON, as a table, and themselves."""
    edges = lw.optimal_edges(lengths, most)
    padded = padded_frames(lengths, edges)
    share = 1.0 - int(lengths.sum()) / padded
    # Edges (10, 20): the lengths 9, 10 and 11 are in the buckets 0, 0 and 1.
    bucket = find_bucket(lengths, edges)
    counts = np.bincount(bucket, minlength=len(edges))
    shares = 1.0 - np.bincount(bucket, weights=lengths, minlength=len(edges)) / (counts * edges)
    rows = [
        (f"{edge:,}", f"{count:,}", show.percent(each, 2))
        for edge, count, each in zip(edges, counts, shares, strict=True)
    ]
    title = "1 bucket" if len(edges) == 1 else f"{len(edges):,} buckets that pad least"
    note = f"{padded:,} frames when every sequence is padded to its edge, {show.percent(share, 2)} of them padding."
    document = {"edges": edges.tolist(), "padded": padded, "padding_share": share}
    return document, Table(("up to", "sequences", "padding"), rows, title, words=0, note=note), edges


def _find_shapes(lengths: NDArray[np.int64], most: int, cut: Cut) -> tuple[dict[str, Any], Table, NDArray[np.int64]]:
    """The shapes of least cost as JSON, as a table, and their edges."""
    shapes = lw.optimal_shapes(lengths, most, cut)
    useful = useful_frames(lengths, cut)
    costs = shape_costs(lengths, most, cut)[: len(shapes)].tolist()
    shares = [1.0 - useful / cost for cost in costs]
    counts, used = sequences_of(lengths, shapes, cut)
    batches = -(-counts // shapes[:, 0])
    padding = 1.0 - used / (batches * shapes.prod(axis=1))
    rows = [
        (f"{held:,}", f"{edge:,}", f"{count:,}", f"{number:,}", show.percent(share, 2))
        for (held, edge), count, number, share in zip(shapes.tolist(), counts, batches, padding, strict=True)
    ]
    share = show.percent(shares[-1], 2)
    note = f"{costs[-1]:,.0f} frames when every batch is padded to its shape, {share} of them padding."
    if left := len(lengths) - int(counts.sum()):
        note += f" {left:,} of {len(lengths):,} sequences are over the budget, and left out."
    document = {"shapes": shapes.tolist(), "computed": int(costs[-1]), "padding_share": shares[-1]}
    title = f"{len(shapes):,} shapes of {describe_cut(cut)}"
    heads = ("rows", "up to", "sequences", "batches", "padding")
    table = Table(heads, rows, title, words=0, note=note)
    return {**document, "padding_by_shapes": shares}, table, shapes[:, 1]

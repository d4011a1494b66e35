"""`lengthwise buckets`: the edges of Q buckets, and what padding to them costs; or Q shapes, under a cut."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.advice.snippet import write_batching
from lengthwise.checks import value_error
from lengthwise.choices.buckets import EDGES, find_bucket, one_length, padded_frames
from lengthwise.cli import cuts, show, source
from lengthwise.planning.few_shapes import sequences_of, shape_costs, useful_frames

_SHOWN = (1, 2, 4, 8, 16, 32, 64)  # numbers of shapes whose padding is written out


def add(subparsers: Any) -> None:
    """Adds `buckets`."""
    text = "find the edges of buckets, and what padding to them costs"
    more = "With --budget, --batch-size or --cut: the Q shapes (rows, padded length) under which an epoch costs least."
    parser = subparsers.add_parser("buckets", help=text, description=f"{text.capitalize()}. {more}")
    source.add(parser)
    group = parser.add_argument_group("buckets")
    group.add_argument("--buckets", type=int, required=True, metavar="Q", help="how many, at most")
    group.add_argument("--edges", choices=list(EDGES), help="how they are found (optimal); not for shapes")
    cuts.add(parser, default=False)
    show.add(parser, plot="the histogram of lengths with the buckets; with a cut, padding by the number of shapes")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the buckets."""
    show.check(arguments)
    lengths, name = source.read(arguments)
    lengths = one_length(lengths)
    if cuts.is_given(arguments):
        return _run_shapes(arguments, lengths, name)
    by = arguments.edges or "optimal"
    edges = EDGES[by](lengths, arguments.buckets)
    padded = padded_frames(lengths, edges)
    share = 1.0 - int(lengths.sum()) / padded
    document = {"edges": edges.tolist(), "padded": padded, "padding_share": share}
    show.write_json(document, arguments.json)
    if arguments.plot is not None:
        lw.report.save_chart(lw.report.histogram(lengths, edges=edges), arguments.plot)
    if arguments.json != "-":
        title = f"{show.sentence_of(lengths, name)}\n{_bucket_count(edges)} with {by} edges"
        padding = f"{show.percent(share, 2)} of them padding"
        note = f"{padded:,} frames when every sequence is padded to its edge, {padding}."
        show.table(("up to", "sequences", "padding"), _rows(lengths, edges), title=title, notes=(note,))
    return 0


def _run_shapes(arguments: argparse.Namespace, lengths: NDArray[np.int64], name: str) -> int:
    """Prints the shapes of least cost, and what fewer of them pad."""
    if arguments.edges is not None:
        raise value_error("edges", "left out beside a cut", arguments.edges, "Its shapes are optimal.")
    cut = cuts.choose_cut(arguments)
    shapes = lw.optimal_shapes(lengths, arguments.buckets, cut)
    costs = shape_costs(lengths, arguments.buckets, cut)[: len(shapes)]
    useful = useful_frames(lengths, cut)
    shares = [1.0 - useful / float(cost) for cost in costs]
    document = {"shapes": shapes.tolist(), "computed": int(costs[-1]), "padding_share": shares[-1]}
    show.write_json({**document, "padding_by_shapes": shares}, arguments.json)
    if arguments.plot is not None:
        lw.report.save_chart(lw.report.shapes(lengths, cut, most=arguments.buckets), arguments.plot)
    if arguments.json != "-":
        title = f"{show.sentence_of(lengths, name)}\n{len(shapes):,} shapes of {cuts.describe_cut(cut)}"
        padding = f"{show.percent(shares[-1], 2)} of them padding"
        computed = f"{document['computed']:,} frames when every batch is padded to its shape, {padding}."
        fewer = [count for count in _SHOWN if count < len(shapes)]
        said = ", ".join(f"{count}: {show.percent(shares[count - 1])}" for count in fewer)
        notes = (computed, f"Padding by fewer shapes: {said}.") if fewer else (computed,)
        counts, used = sequences_of(lengths, shapes, cut)
        if dropped := len(lengths) - int(counts.sum()):
            notes += (f"{dropped:,} of {len(lengths):,} sequences are over the budget, and left out.",)
        heads = ("rows", "up to", "sequences", "batches", "padding")
        show.table(heads, _shape_rows(shapes, counts, used), title=title, notes=notes, words=0)
        if len(shapes) <= _SHOWN[-1]:
            show.say("\nIn Python, batches of these shapes:\n")
            show.program(_write_code(arguments, shapes, cut))
    return 0


def _write_code(arguments: argparse.Namespace, shapes: NDArray[np.int64], cut: lw.Cut) -> str:
    """The lines of Python that make such batches."""
    order = lw.Bucketed(edges=tuple(shapes[:, 1].tolist()), pad_to_edge=True)
    lines = ["import lengthwise as lw", source.write_code(arguments)]
    lines.append(f"batching = {write_batching(lw.Batching(cut=cut, order=order))}")
    return textwrap.indent("\n".join(lines), "    ")


def _shape_rows(shapes: NDArray[np.int64], counts: NDArray[np.int64], used: NDArray[np.int64]) -> list[tuple[str, ...]]:
    """Returns a row for each shape: how many sequences it holds, in how many batches, and what these pad."""
    batches = -(-counts // shapes[:, 0])
    computed = batches * shapes.prod(axis=1)
    padding = [show.percent(share, 2) for share in 1.0 - used / computed]
    return [
        (f"{rows:,}", f"{edge:,}", f"{count:,}", f"{number:,}", share)
        for (rows, edge), count, number, share in zip(shapes.tolist(), counts, batches, padding, strict=True)
    ]


def _bucket_count(edges: NDArray[np.int64]) -> str:
    return "1 bucket" if len(edges) == 1 else f"{len(edges):,} buckets"


def _rows(lengths: NDArray[np.int64], edges: NDArray[np.int64]) -> list[tuple[str, str, str]]:
    # Edges (10, 20): the lengths 9, 10 and 11 are in the buckets 0, 0 and 1.
    bucket = find_bucket(lengths, edges)
    counts = np.bincount(bucket, minlength=len(edges))
    used = np.bincount(bucket, weights=lengths, minlength=len(edges))
    # A bucket that no sequence is in, as uniform edges may have, shows no share.
    shares = 1.0 - used / np.maximum(counts * edges, 1)
    return [
        (f"{edge:,}", f"{count:,}", show.percent(share, 2) if count else "")
        for edge, count, share in zip(edges, counts, shares, strict=True)
    ]

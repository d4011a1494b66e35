"""`lengthwise buckets`: the edges of Q buckets, and what padding to them costs."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import value_error
from lengthwise.choices.buckets import EDGES, find_bucket
from lengthwise.cli import show, source


def add(subparsers: Any) -> None:
    """Adds `buckets`."""
    text = "find the edges of buckets, and what padding to them costs"
    parser = subparsers.add_parser("buckets", help=text, description=f"{text.capitalize()}.")
    source.add(parser)
    group = parser.add_argument_group("buckets")
    group.add_argument("--buckets", type=int, required=True, metavar="Q", help="how many, at most")
    group.add_argument("--edges", choices=list(EDGES), default="optimal", help="how they are found (%(default)s)")
    show.add(parser, plot="the histogram of lengths with the buckets")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the buckets."""
    show.check(arguments)
    lengths, name = source.read(arguments)
    if arguments.plot is not None and lengths.ndim == 2:
        raise value_error("plot", "left out for several lengths", arguments.plot, "Draw one of them: FILE:0, say.")
    edges = EDGES[arguments.edges](lengths, arguments.buckets)
    padded = lw.padded_frames(lengths, edges)
    share = 1.0 - int(lengths.sum()) / padded
    document = {"edges": edges.tolist(), "padded": padded, "padding_share": share}
    show.write_json(document, arguments.json)
    if arguments.plot is not None:
        from lengthwise import plot

        plot.save(plot.bucket_histogram(lengths, edges), arguments.plot)
    if arguments.json != "-":
        title = f"{show.sentence_of(lengths, name)}\n{_bucket_count(edges)} with {arguments.edges} edges"
        to_edges = "its edge" if lengths.ndim == 1 else "the edges of its bucket"
        padding = f"{show.percent(share, 2)} of them padding"
        note = f"{padded:,} frames when every sequence is padded to {to_edges}, {padding}."
        show.table(("up to", "sequences", "padding"), _rows(lengths, edges), title=title, notes=(note,))
    return 0


def _bucket_count(edges: NDArray[np.int64]) -> str:
    return "1 bucket" if len(edges) == 1 else f"{len(edges):,} buckets"


def _rows(lengths: NDArray[np.int64], edges: NDArray[np.int64]) -> list[tuple[str, str, str]]:
    # Edges (10, 20): the lengths 9, 10 and 11 are in the buckets 0, 0 and 1.
    bucket = find_bucket(lengths, edges)
    counts = np.bincount(bucket, minlength=len(edges))
    used = np.bincount(bucket, weights=lengths.reshape(len(lengths), -1).sum(axis=1), minlength=len(edges))
    rows = edges.reshape(len(edges), -1)
    # A bucket that no sequence is in, as uniform edges may have, shows no share.
    shares = 1.0 - used / np.maximum(counts * rows.sum(axis=1), 1)
    return [
        (" x ".join(f"{edge:,}" for edge in row), f"{count:,}", show.percent(share, 2) if count else "")
        for row, count, share in zip(rows, counts, shares, strict=True)
    ]

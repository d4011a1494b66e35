"""`lengthwise buckets`: the edges of Q buckets, and what padding to them costs."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.choices.buckets import EDGES
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
        note = f"{padded:,} frames when every sequence is padded to its edge, {show.percent(share, 2)} of them padding."
        show.table(("up to", "sequences", "padding"), _rows(lengths, edges), title=title, notes=(note,))
    return 0


def _bucket_count(edges: NDArray[np.int64]) -> str:
    return "1 bucket" if len(edges) == 1 else f"{len(edges):,} buckets"


def _rows(lengths: NDArray[np.int64], edges: NDArray[np.int64]) -> list[tuple[str, str, str]]:
    # Edges (10, 20): the lengths 9, 10 and 11 are in the buckets 0, 0 and 1.
    bucket = np.searchsorted(edges, lengths)
    counts = np.bincount(bucket, minlength=len(edges))
    used = np.bincount(bucket, weights=lengths, minlength=len(edges))
    # A bucket that no sequence is in, as uniform edges may have, shows no share.
    shares = 1.0 - used / np.maximum(counts * edges, 1)
    return [
        (f"{edge:,}", f"{count:,}", show.percent(share, 2) if count else "")
        for edge, count, share in zip(edges, counts, shares, strict=True)
    ]

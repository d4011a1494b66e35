"""Boxes: the buckets of sequences of several lengths, each with an edge for every length.

    lengths   [n, dims]
    edges     [buckets, dims]   what each length of a bucket's sequences is padded to: one row for each bucket

Rows rise by their sum, and rows of one sum by their edges from the first on. A sequence is in the first bucket that
holds it, which is the one that pads it least. In the rows (9, 4), (5, 9) and (9, 9), the sequence (5, 4) is in the
first, (5, 8) in the second, and (6, 8) in the third.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise._random import Key

Divide = Callable[[NDArray[np.int64], int], NDArray[np.int64]]  # (lengths [n], buckets) to edges [at most buckets]

_MOST_LEVELS, _MOST_CELLS = 64, 2_500  # what optimal rows are sought on: finer, Multi30k and GSM8K pad no less
_STARTS = 8  # of up to 16 buckets; of more, each takes longer and saves less: from 64 on they are 2
_MOST_MOVED = 128  # buckets


class Cells(NamedTuple):
    """Cells of a grid: what their sequences are rounded up to, [cells, dims], and how many these are, [cells]."""

    edges: NDArray[np.int64]
    counts: NDArray[np.int64]


def sort_rows(edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows in the order of this file, each once.

    >>> sort_rows(np.array([[9, 9], [5, 9], [9, 4], [5, 9]])).tolist()
    [[9, 4], [5, 9], [9, 9]]
    """
    rows = np.unique(edges, axis=0)  # by their edges from the first on
    return rows[np.argsort(rows.sum(axis=1), kind="stable")]


def find_boxes(lengths: NDArray[np.int64] | NDArray[np.float64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bucket of each sequence, [n]: the number of its row; as many as there are rows where none holds it."""
    whole = np.ceil(lengths).astype(np.int64)
    found = np.empty(len(lengths), np.int64)
    _kernels.find_boxes(np.ascontiguousarray(whole), np.ascontiguousarray(edges, np.int64), found)
    return found


def cross_edges(lengths: NDArray[np.int64], buckets: int, divide: Divide) -> NDArray[np.int64]:
    """Rows of a grid: each length divided by itself, and of the products those that a sequence is in.

    From one bucket for all, the length whose next edge saves most frames is given it, as long as the grid has no more
    cells than `buckets`.
    """
    dims = lengths.shape[1]
    parts = [1] * dims
    edges = [divide(lengths[:, dim], 1) for dim in range(dims)]
    while True:
        cells = int(np.prod([float(part) for part in parts]))
        finer = {
            dim: divide(lengths[:, dim], parts[dim] + 1)
            for dim in range(dims)
            if cells // parts[dim] * (parts[dim] + 1) <= buckets
        }
        grown = {dim: found for dim, found in finer.items() if len(found) > len(edges[dim])}
        if not grown:
            return sort_rows(_round_up(lengths, edges).edges)
        dim = max(grown, key=lambda dim: _frames(lengths[:, dim], edges[dim]) - _frames(lengths[:, dim], grown[dim]))
        parts[dim], edges[dim] = parts[dim] + 1, grown[dim]


def optimal_rows(lengths: NDArray[np.int64], buckets: int, divide: Divide) -> NDArray[np.int64]:
    """At most `buckets` rows that pad little, and no more than a grid; see `optimal_edges`, whose search this is.

    Args:
        lengths: [n, dims].
        buckets: How many rows at most.
        divide: Edges that pad one length least.
    """
    if lengths.shape[1] == 1:
        return divide(lengths[:, 0], buckets)[:, None]
    if buckets >= max(len(np.unique(column)) for column in lengths.T):
        distinct = sort_rows(lengths)
        if len(distinct) <= buckets:
            return distinct
    levels = _choose_levels(lengths, divide)
    cells, counts = _round_up(lengths, levels)
    found = _search(cells, counts, levels, min(buckets, len(cells)))
    both = [_draw_in(lengths, rows) for rows in (found, cross_edges(lengths, buckets, divide))]
    return min(both, key=lambda rows: int(rows.sum(axis=1)[find_boxes(lengths, rows)].sum()))


def _draw_in(lengths: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows with no edge longer than the longest in their bucket, and without empty buckets."""
    longest = np.zeros_like(rows)
    np.maximum.at(longest, find_boxes(lengths, rows), lengths)
    return sort_rows(longest[longest[:, 0] > 0])


def _choose_levels(lengths: NDArray[np.int64], divide: Divide) -> list[NDArray[np.int64]]:
    """The edges that rows may have, of each length: all of its values where these are few, else optimal edges."""
    most = _MOST_LEVELS
    while True:
        levels = [divide(column, most) for column in lengths.T]
        # Of 64 x 64 cells few are filled where lengths go together.
        if most <= 4 or len(_round_up(lengths, levels).edges) <= _MOST_CELLS:
            return levels
        most = most * 3 // 4


def _search(
    cells: NDArray[np.int64], counts: NDArray[np.int64], levels: list[NDArray[np.int64]], buckets: int
) -> NDArray[np.int64]:
    """The best of several starts, each with its rows moved until no move of one saves frames."""
    starts = [_split(cells, counts, buckets)]
    if buckets > _MOST_MOVED:
        return sort_rows(starts[0])
    few = min(_STARTS, max(2, _STARTS * 16 // buckets))
    starts += [_draw(cells, counts, buckets, Key(stage="edges", lane=lane)) for lane in range(1, few)]
    sizes = np.array([len(each) for each in levels])
    padded = np.zeros((len(levels), sizes.max()), np.int64)
    for row, each in zip(padded, levels, strict=True):
        row[: len(each)] = each
    frames = [_kernels.move_boxes(cells, counts, padded, sizes, start) for start in starts]
    return sort_rows(starts[int(np.argmin(frames))])


def _split(cells: NDArray[np.int64], counts: NDArray[np.int64], buckets: int) -> NDArray[np.int64]:
    """One box for all is cut in two, then always the box whose cut saves most."""
    parts = [np.arange(len(cells))]
    cuts = [_best_cut(cells, counts)]
    while len(parts) < buckets:
        number = max(range(len(parts)), key=lambda number: cuts[number][0])
        saved, dim, end = cuts[number]
        if not saved:
            break
        below = cells[parts[number], dim] <= end
        halves = [parts[number][below], parts[number][~below]]
        parts[number : number + 1] = halves
        cuts[number : number + 1] = [_best_cut(cells[half], counts[half]) for half in halves]
    return np.array([cells[part].max(axis=0) for part in parts])


def _best_cut(cells: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[int, int, int]:
    """The cut of a box that saves most: (frames, dimension, the longest length below the cut); no frames of none."""
    best, whole = (0, 0, 0), int(counts.sum() * cells.max(axis=0).sum())
    for dim in range(cells.shape[1]):
        order = np.argsort(cells[:, dim], kind="stable")
        along, of_each = cells[order], counts[order]
        # Cells (1, 9), (2, 3), (4, 4): the boxes that end at each are (1, 9), (2, 9), (4, 9), those that begin there
        # (4, 9), (4, 4), (4, 4).
        below = np.cumsum(of_each) * np.maximum.accumulate(along).sum(axis=1)
        above = (np.cumsum(of_each[::-1]) * np.maximum.accumulate(along[::-1]).sum(axis=1))[::-1]
        ends = np.flatnonzero(np.diff(along[:, dim]))  # equal lengths stay together
        saved = whole - below[ends] - above[ends + 1]
        if len(ends) and saved.max() > best[0]:
            at = int(saved.argmax())
            best = (int(saved[at]), dim, int(along[ends[at], dim]))
    return best


def _draw(cells: NDArray[np.int64], counts: NDArray[np.int64], buckets: int, key: Key) -> NDArray[np.int64]:
    """Rows at random: the lengths of some sequences, and one row that holds them all."""
    reached = np.cumsum(counts)
    drawn = (key.uniform(buckets - 1) * float(reached[-1])).astype(np.int64)
    return np.concatenate([cells[np.searchsorted(reached, drawn, side="right")], cells.max(axis=0)[None]])


def _round_up(lengths: NDArray[np.int64], edges: Sequence[NDArray[np.int64]]) -> Cells:
    """The cells of a grid that sequences are in, each length rounded up to the next of its edges.

    With the edges (3, 9) and (5,), the sequences (1, 4), (4, 5) and (2, 5) are in the cells (3, 5), twice, and (9, 5).
    """
    shape = tuple(len(each) for each in edges)
    places = tuple(np.searchsorted(each, column) for each, column in zip(edges, lengths.T, strict=True))
    numbers, counts = np.unique(np.ravel_multi_index(places, shape), return_counts=True)
    columns = [each[place] for each, place in zip(edges, np.unravel_index(numbers, shape), strict=True)]
    return Cells(np.stack(columns, axis=1), counts)


def _frames(lengths: NDArray[np.int64], edges: NDArray[np.int64]) -> int:
    return int(edges[np.searchsorted(edges, lengths)].sum())

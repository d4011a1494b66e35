"""Buckets of sequences of several lengths: boxes that hold them, moved until they hold them in fewer frames.

cells   [cells, dims]    the lengths of one or more sequences alike
counts  [cells]          how many sequences each cell stands for
boxes   [boxes, dims]    the edges of each box: it holds the cells that are no longer in any dimension
levels  [dims, most]     the edges that a box may have, rising; of dimension d the first `sizes[d]`
"""

from __future__ import annotations

import numpy as np

from lengthwise._compile import kernel


@kernel
def find_boxes(lengths, boxes, found):
    """found[n] = the first of `boxes` that holds sequence n of `lengths` [n, dims]; as many as there are, of none."""
    for number in range(len(lengths)):
        found[number] = len(boxes)
        for box in range(len(boxes)):
            held = True
            for dim in range(lengths.shape[1]):
                held = held and lengths[number, dim] <= boxes[box, dim]
            if held:
                found[number] = box
                break


@kernel
def hold_cells(cells, boxes, without, held):
    """held[c] = the least sum of the edges of a box that holds cell c, of all boxes but `without`; -1 of none."""
    for cell in range(len(cells)):
        held[cell] = -1
        for box in range(len(boxes)):
            frames = 0
            for dim in range(cells.shape[1]):
                if cells[cell, dim] > boxes[box, dim]:
                    frames = -1
                    break
                frames += boxes[box, dim]
            if box != without and frames >= 0 and (held[cell] < 0 or frames < held[cell]):
                held[cell] = frames


@kernel
def place_box(cells, counts, held, box, first, second, levels, sizes):
    """The two edges of `box` under which all cells take the fewest frames: (frames, edge of `first`, of `second`).

    Its other edges stay, and `held` says what each cell takes without it. For an edge a of the first dimension, all
    edges b of the second are tried in one pass. A cell enters the box once b reaches it, and leaves once a + b is what
    it takes elsewhere; a cell that no other box holds never leaves. So both are differences at two places of `levels`.
    """
    rest = 0
    for dim in range(box.size):
        if dim != first and dim != second:
            rest += box[dim]
    least_first, least_second, elsewhere = 0, 0, 0
    for cell in range(len(cells)):
        if held[cell] < 0:
            least_first = max(least_first, cells[cell, first])
            least_second = max(least_second, cells[cell, second])
        else:
            elsewhere += counts[cell] * held[cell]
    edges = levels[second, : sizes[second]]
    # Where a cell enters and leaves, among `edges`. The longer the other edge, the sooner it leaves.
    enters, leaves = np.full(len(cells), edges.size), np.full(len(cells), edges.size)
    for cell in range(len(cells)):
        fits = True
        for dim in range(box.size):
            fits = fits and (dim in (first, second) or cells[cell, dim] <= box[dim])
        if fits:
            enters[cell] = np.searchsorted(edges, cells[cell, second])
    sequences, spared = np.empty(edges.size + 1, np.int64), np.empty(edges.size + 1, np.int64)
    best, best_first, best_second = np.int64(2**62), box[first], box[second]
    for edge in levels[first, : sizes[first]]:
        if edge < least_first:
            continue
        sequences[:], spared[:] = 0, 0
        for cell in range(len(cells)):
            if cells[cell, first] > edge:
                continue
            start, end = enters[cell], leaves[cell]
            while held[cell] >= 0 and end > start and edges[end - 1] >= held[cell] - edge - rest:
                end -= 1
            leaves[cell] = end
            if end > start:
                sequences[start] += counts[cell]
                sequences[end] -= counts[cell]
                frames = counts[cell] * max(held[cell], 0)
                spared[start] += frames
                spared[end] -= frames
        inside, saved = 0, 0
        for place in range(edges.size):
            inside += sequences[place]
            saved += spared[place]
            frames = elsewhere - saved + inside * (edge + edges[place] + rest)
            if edges[place] >= least_second and frames < best:
                best, best_first, best_second = frames, edge, edges[place]
    return best, best_first, best_second


@kernel
def move_boxes(cells, counts, levels, sizes, boxes):
    """Places one box after another anew, by two of its edges at a time, until none saves any frames.

    Returns the frames that all cells then take. Some box must hold each cell when it begins. The frames fall with every
    move, so there is an end; dimensions come in pairs, because a single edge is often held fast by the other.
    """
    held = np.empty(len(cells), np.int64)
    hold_cells(cells, boxes, np.int64(-1), held)  # no literal: it would be compiled twice
    frames = np.sum(counts * held)
    moved = True
    while moved:
        moved = False
        for box in range(len(boxes)):
            hold_cells(cells, boxes, box, held)
            for first in range(cells.shape[1]):
                for second in range(first + 1, cells.shape[1]):
                    fewer, edge, other = place_box(cells, counts, held, boxes[box], first, second, levels, sizes)
                    if fewer < frames:
                        frames, moved = fewer, True
                        boxes[box, first], boxes[box, second] = edge, other
    return frames

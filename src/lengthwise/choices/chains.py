"""Chains: buckets of several lengths, each within the next, so that a batch of several has the shape of the last.

    boxes   (9, 4) (5, 9)     a batch of both is padded to (9, 9), which neither is
    chain   (9, 4) (9, 9)     a batch of both is padded to the second

    edges    [boxes, dims]    rising by their sum
    inside   [boxes]          how many sequences each box holds

Buckets of one length are a chain. Where lengths go together, as those of a sentence and its translation, the boxes that
pad least nearly are one: on Multi30k the best chain pads as little as the best boxes up to 16 of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import _exact, _kernels
from lengthwise.choices.boxes import Divide, sort_rows

MOST_BOXES = 4_096  # that are tried: the time grows with their square


class Boxes(NamedTuple):
    """Boxes that a chain may be made of, and how many sequences each holds; the last holds all."""

    edges: NDArray[np.int64]
    inside: NDArray[np.int64]

    def within(self, box: int) -> NDArray[np.int64]:
        """The boxes that may come before this one in a chain, counted from 1; and 0 for none."""
        if self.edges.shape[1] == 1:
            return np.arange(box + 1)
        return np.append(0, 1 + np.flatnonzero((self.edges[:box] <= self.edges[box]).all(axis=1)))

    def left(self, box: int, within: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many sequences the box holds that those `within` it do not: [k]."""
        return self.inside[box] - np.where(within > 0, self.inside[within - 1], 0)


# What so many sequences cost in a box: (box, counts [k]) to costs [k].
Price = Callable[[int, NDArray[np.int64]], NDArray[np.float64]]


def nest(edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """The chain that boxes make when each is widened to hold those before it.

    >>> nest(np.array([[9, 4], [5, 9], [12, 12]])).tolist()
    [[9, 4], [9, 9], [12, 12]]
    """
    return sort_rows(np.maximum.accumulate(sort_rows(edges), axis=0))


def tight_boxes(lengths: NDArray[np.int64], divide: Divide, most: int) -> Boxes:
    """Boxes that the sequences in them fill: at least one is as long as the box, in each dimension.

    Args:
        lengths: [n, dims].
        divide: Which edges are tried, of a dimension that has too many lengths to try all.
        most: How many boxes at most, about.
    """
    dims = lengths.shape[1]
    along = round(_exact.exp(_exact.log(most) / dims))
    along -= math.prod([along] * dims) > most  # the root, rounded down
    levels = [_levels(column, divide, max(2, along)) for column in lengths.T]
    places = tuple(np.searchsorted(each, column) for each, column in zip(levels, lengths.T, strict=True))
    shape = tuple(len(each) for each in levels)
    cells, longest = np.zeros(shape, np.int64), np.zeros((dims, *shape), np.int64)
    np.add.at(cells, places, 1)
    for dim, (each, place) in enumerate(zip(levels, places, strict=True)):
        longest[dim][places] = each[place]
    for axis in range(dims):
        cells = cells.cumsum(axis=axis)
        longest = np.maximum.accumulate(longest, axis=axis + 1)
    edges = np.stack(np.meshgrid(*levels, indexing="ij"), axis=-1).reshape(-1, dims)
    tight = (edges == longest.reshape(dims, -1).T).all(axis=1)
    order = np.argsort(edges[tight].sum(axis=1), kind="stable")
    return Boxes(edges[tight][order], cells.reshape(-1)[tight][order])


def _levels(column: NDArray[np.int64], divide: Divide, most: int) -> NDArray[np.int64]:
    values = np.unique(column)
    return values if len(values) <= most else divide(column, most)


def best_costs(boxes: Boxes, price: Price, most: int) -> NDArray[np.float64]:
    """best[i + 1, k]: the least that the sequences of box i cost by a chain of k boxes, the last of them i.

    Infinite where there is no such chain; best[0] stands for no boxes.
    """
    count = len(boxes.edges)
    best = np.full((count + 1, min(most, count) + 1), np.inf)
    best[0, 0] = 0.0
    for box in range(count):
        within = boxes.within(box)
        _kernels.add_box(price(box, boxes.left(box, within)), within, box + 1, best)
    return best


def best_chain(boxes: Boxes, price: Price, best: NDArray[np.float64], most: int) -> list[tuple[int, int]]:
    """The boxes of the cheapest chain of at most `most`, the fewest that cost so little: (box, sequences) of each."""
    end, left = len(boxes.edges), int(best[-1, : most + 1].argmin())
    found: list[tuple[int, int]] = []
    while left:
        within = boxes.within(end - 1)
        counts = boxes.left(end - 1, within)
        begin = int((best[within, left - 1] + price(end - 1, counts)).argmin())
        found.append((end - 1, int(counts[begin])))
        end, left = int(within[begin]), left - 1
    return found[::-1]


def optimal_chain(lengths: NDArray[np.int64], buckets: int, divide: Divide) -> NDArray[np.int64]:
    """The chain of at most `buckets` boxes that pads least, [k, dims]: exact, where no length has more than 64 values.

    Dynamic programming over all boxes that sequences fill, as Khomenko's over the lengths (2016, section III.A).
    """
    boxes = tight_boxes(lengths, divide, MOST_BOXES)
    frames = boxes.edges.sum(axis=1).astype(np.float64)

    def price(box: int, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        return counts * frames[box]

    chain = best_chain(boxes, price, best_costs(boxes, price, buckets), buckets)
    return boxes.edges[[box for box, _ in chain]]

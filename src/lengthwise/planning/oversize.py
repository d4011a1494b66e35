"""Oversize: sequences that are over the budget by themselves leave before the order is fitted to the others.

A giant would widen the noise, stretch the buckets, and leave a short batch on either side of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.batching import Batching
from lengthwise.cost import costs_alone


class Kinds(NamedTuple):
    """Which of the sequences are `ordered`, and which stand `alone`, [n] each; those that are neither are dropped."""

    ordered: NDArray[np.bool_]
    alone: NDArray[np.bool_]


def sort_out(items: NDArray[np.int64], batching: Batching) -> Kinds:
    """Sorts out the sequences that a cut with `oversize` "alone" or "drop" will not share a batch with others.

    Where batches are padded to the edges of buckets, one that stands alone is padded to an edge too. So there it stays
    with the others, and has its part in where the edges are.
    """
    everything, nothing = np.ones(len(items), bool), np.zeros(len(items), bool)
    policy = getattr(batching.cut, "oversize", "error")
    padded_to_edge = getattr(batching.order, "pad_to_edge", False)
    if policy == "error" or (policy == "alone" and padded_to_edge) or not len(items):
        return Kinds(everything, nothing)
    over = costs_alone(batching.cost, items) > batching.cut.limit(batching.cost, items.max(axis=0))
    return Kinds(~over, over if policy == "alone" else nothing)

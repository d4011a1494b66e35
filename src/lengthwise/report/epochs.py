"""An epoch as the charts read it: a plan, and what its batches hold and compute.

taken      [m]         the length of each entry of `plan.sequences`; several lengths a sequence count by their sum
used       [batches]   frames of data in each batch
computed   [batches]   frames in each batch, padding and all
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise.measures.epochs import read_epochs
from lengthwise.planning.plan import Plan


class Epoch(NamedTuple):
    """See the top of this file."""

    label: str
    plan: Plan
    taken: NDArray[np.int64]
    used: NDArray[np.int64]
    computed: NDArray[np.int64]

    @property
    def largest_cost(self) -> float:
        return float(self.plan.costs.max(initial=0.0))

    @property
    def item(self) -> str:
        """What a batch holds several of."""
        return "sequence" if self.plan.spans is None else "chunk"

    @property
    def slots(self) -> int:
        """Batches of a step."""
        return self.plan.micro_batches * self.plan.world_size


def read(plans: Mapping[str, Plan], lengths: NDArray[np.int64]) -> list[Epoch]:
    """The epoch of every plan, in their order.

    Raises:
        ValueError: `lengths` are not those of a plan.
    """
    return [_epoch(label, plan, lengths) for label, plan in plans.items()]


def both_ends(epochs: list[Epoch]) -> list[Epoch]:
    """The first, with which the others are compared, and the last, which is put forward; one where there is one."""
    return [epochs[0], epochs[-1]] if len(epochs) > 1 else epochs[:1]


def spread(count: int, most: int) -> NDArray[np.int64]:
    """At most `most` of the numbers below `count`, evenly apart.

    >>> spread(10, 3), spread(2, 3)
    (array([1, 5, 8]), array([0, 1]))
    """
    if count <= most:
        return np.arange(count)
    return ((np.arange(most) + 0.5) * count / most).astype(np.int64)


def _epoch(label: str, plan: Plan, lengths: NDArray[np.int64]) -> Epoch:
    epochs = read_epochs(plan, lengths)
    taken = epochs.taken[0].astype(np.int64, copy=False)
    return Epoch(label, plan, taken, epochs.used, plan.row_counts * epochs.padded)

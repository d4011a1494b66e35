"""Steps of packed rows: the rows of a step stand as they come, and its batches share them so that all cost the same.

    rows      9 1 5 4 | 6 2 3 2              their costs, in two steps, for 2 batches of 2 rows each
    batches   (9 1) (5 4) | (6 2) (3 2)

Rows come from the order, so that steps are random in rows where the order is. The cut packs the same rows as for any
other deal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels
from lengthwise.choices.arithmetic import longest_of
from lengthwise.choices.cost import Cost, costs_of_rows
from lengthwise.choices.cut import Cuts
from lengthwise.choices.deal import RandomSteps
from lengthwise.choices.rows import Rows
from lengthwise.planning.cutter import split_largest
from lengthwise.planning.random_steps import spread

_NO_BOUNDARIES = np.empty(0, np.int64)


def form_row_steps(
    needed: NDArray[np.int64], cut: Rows, deal: RandomSteps, slots: int, *, cost: Cost, steps: int | None = None
) -> Cuts | None:
    """Packs sequences into rows, and shares out the rows of each step to its batches.

    Only the last steps may have fewer rows. What a batch holds is laid so that its sequences alone say where
    rows end. For that a row begins with its longest. If all sequences of a row fit into what an earlier row of its
    batch has left, some of them join that row.

    Args:
        needed: [m, 1], in the order's order.
        cut: How rows are packed, and how many of them a batch holds at most.
        deal: What becomes of the last step.
        slots: Batches of a step.
        cost: What a batch costs.
        steps: The steps to fill; None for the fewest.

    Returns:
        Batches step by step, `slots` of them each, unless sequences are too few. None if `steps` are too few for the
        rows, or, where the tail drops, if the rows fill fewer.

    Raises:
        OversizeError: A sequence is longer than a row.
    """
    # A batch as large as a step: the packer then puts whole steps of rows one after another.
    packed = replace(cut, rows=slots * cut.rows)(needed, _NO_BOUNDARIES, cost=cost, longest=longest_of(needed))
    positions = np.arange(len(needed)) if packed.kept is None else packed.kept
    lengths = needed[positions]
    starts = cut.find_rows(lengths, packed.offsets)
    rows, of_step = len(starts) - 1, slots * cut.rows
    if deal.tail == "drop":
        if rows // of_step < (steps or 0):
            return None
        counts = np.full(rows // of_step if steps is None else steps, of_step)
    else:
        if steps is not None and rows > steps * of_step:
            return None
        wanted = -(-rows // of_step) if steps is None else steps
        starts = split_largest(starts, slots * wanted)  # a row for each batch, where sequences are enough
        counts = spread(np.clip(len(starts) - 1 - of_step * np.arange(wanted), 0, of_step), slots)
    batch = _share(lengths, starts, counts, slots, cut, cost)
    # The rows batch by batch, those of a batch in the order in which they were filled.
    rows = np.argsort(batch, kind="stable")
    places = np.empty(starts[len(batch)], np.int64)
    _kernels.lay_rows(lengths[:, 0], starts, rows, places)
    sizes = np.bincount(batch, weights=np.diff(starts[: len(batch) + 1])).astype(np.int64)
    return Cuts(positions[places], np.concatenate([[0], np.cumsum(sizes[sizes > 0])]))


def _share(
    lengths: NDArray[np.int64],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
    slots: int,
    cut: Rows,
    cost: Cost,
) -> NDArray[np.int64]:
    """Returns the batch of each row, numbered over all steps: [rows of all steps]."""
    count = int(counts.sum())
    costs = costs_of_rows(cost, lengths, starts, cut.capacity)[:count]
    step = np.repeat(np.arange(len(counts)), counts)
    batch = np.empty(count, np.int64)
    _kernels.share_rows(costs, np.lexsort((-costs, step)), counts, slots, cut.rows, batch)
    return slots * step + batch

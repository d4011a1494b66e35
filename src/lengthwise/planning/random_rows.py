"""Steps of packed rows: each step takes the next rows, and shares them out so that its batches cost about the same.

    rows      9 1 5 4 | 6 2 3 2              costs of the rows of two steps, for 2 batches of 2 rows each
    batches   (9 1) (5 4) | (6 2) (3 2)

The cut packs the same rows as for any other deal. If the order is random, a step is a random sample of rows.
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

    Only the last steps may have fewer rows. A collate function finds the rows from the order of the samples: a row ends
    before the first sequence that does not fit. So each row begins with its longest sequence. If even the longest fits
    into the row before, sequences join that row until one does not fit.

    Args:
        needed: [m, 1], the length that each sequence must be padded to, in order.
        cut: The cut, which packs rows.
        deal: Its policy for the last step.
        slots: Batches of a step.
        cost: The cost of a batch.
        steps: The steps to fill; None for the fewest.

    Returns:
        Batches step by step, `slots` in each step, unless sequences are too few. None if the rows need more than
        `steps`, or fill fewer and the tail drops.

    Raises:
        OversizeError: A sequence is longer than a row.
    """
    # Packed for a batch as large as a step: the rows then follow step by step.
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
        starts = split_largest(starts, slots * wanted)  # a row for each batch, if sequences are enough
        counts = spread(np.clip(len(starts) - 1 - of_step * np.arange(wanted), 0, of_step), slots)
    batch = _share(lengths, starts, counts, slots, cut, cost)
    # Rows batch by batch; within a batch, in the order in which they were filled.
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

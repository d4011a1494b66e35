"""Steps: their batches shared out to ranks, and what an arrangement sees of them."""

from __future__ import annotations

import numpy as np

from lengthwise._compile import compile_kernel


def share_out_at_once(steps, costs, ranks, shared):
    """`share_out` by NumPy, which sorts a step of many batches sooner than they are put in order one by one."""
    ranked = np.take_along_axis(steps, np.argsort(-costs[steps], axis=1, kind="stable"), axis=1)
    grid = ranked.reshape(len(steps), steps.shape[1] // ranks, ranks)  # -1 is refused where there are no steps
    # Who has the costliest batch of one row has the cheapest of the next. NumPy copies first what it would overwrite.
    grid[:, 1::2] = grid[:, 1::2, ::-1]
    shared[:] = grid.reshape(steps.shape)


@compile_kernel(linear=True, in_python=share_out_at_once)
def share_out(steps, costs, ranks, shared):
    """Writes the batches of each step by falling cost, equal ones as they stand, in rows of `ranks`.

    Every other row stands backwards: the costs 9 7 4 1 on two ranks are 9 7, 1 4.

    Args:
        steps: [steps, slots] batch numbers, of few slots.
        costs: [batches].
        shared: [steps, slots], is written to.
    """
    slots = steps.shape[1]
    ranked = np.empty(slots, np.int64)
    for step in range(steps.shape[0]):
        for slot in range(slots):
            number, place = steps[step, slot], slot
            while place > 0 and costs[ranked[place - 1]] < costs[number]:
                ranked[place] = ranked[place - 1]
                place -= 1
            ranked[place] = number
        for slot in range(slots):
            row, rank = slot // ranks, slot % ranks
            shared[step, row * ranks + (ranks - 1 - rank if row % 2 else rank)] = ranked[slot]


def _look_at_steps_at_once(steps, costs, lengths, costliest, means):
    """`look_at_steps` by NumPy."""
    costliest[:] = costs[steps].max(axis=1, initial=0.0)
    means[:] = lengths[steps].sum(axis=1) / steps.shape[1]


@compile_kernel(linear=True, in_python=_look_at_steps_at_once)
def look_at_steps(steps, costs, lengths, costliest, means):
    """Writes the cost of the costliest batch of each step, and the mean length of its batches, both [steps].

    `lengths` [batches] are whole numbers, whose sums are exact in any order.
    """
    for step in range(steps.shape[0]):
        most = total = 0.0
        for slot in range(steps.shape[1]):
            most = max(most, costs[steps[step, slot]])
            total += lengths[steps[step, slot]]
        costliest[step], means[step] = most, total / steps.shape[1]

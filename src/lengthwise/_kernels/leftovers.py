"""The cheapest chains of boxes that pass their leftovers on: sequences that fill no batch go to the next box.

costs    [boxes + 1, shapes + 1, labels]   what chains of so many boxes cost, the last of which is this one; box 0: none
carried  [boxes + 1, shapes + 1, labels]   how many sequences each of them passes on
before   [..., 2]                          the box before the last, and which of its labels the chain goes on from

A label is worth keeping if none of the same place costs no more and passes on no more. Of too many, the cheapest stay.
"""

from __future__ import annotations

import numpy as np

from lengthwise._compile import compile_kernel


@compile_kernel
def _keep_label(cost, carry, box, label, costs, carried, before):
    """Keeps a label of one place, [labels], unless another is as good."""
    worst = 0
    for known in range(costs.size):
        if costs[known] <= cost and carried[known] <= carry:
            return
        if costs[known] > costs[worst]:
            worst = known
    # One that the new label beats in both leaves; else the costliest does.
    for known in range(costs.size):
        if cost <= costs[known] and carry <= carried[known] and costs[known] < np.inf:
            costs[known] = np.inf
            worst = known
    if cost < costs[worst]:
        costs[worst], carried[worst] = cost, carry
        before[worst, 0], before[worst, 1] = box, label


@compile_kernel
def pass_on(added, within, end, rows, full, costs, carried, before):
    """The labels of box `end`, which holds `added` [m] sequences that the boxes `within` [m] do not.

    A batch of the box has `rows` rows, and costs `full`. One batch that is not full, the only one of its box, has no
    more rows than sequences, and is taken to cost in proportion.
    """
    none = np.int64(0)  # no literal: `_keep_label` would be compiled twice
    for number in range(within.size):
        begin = within[number]
        for count in range(1, costs.shape[1]):
            for label in range(costs.shape[2]):
                known = costs[begin, count - 1, label]
                if known == np.inf:
                    continue
                held = added[number] + carried[begin, count - 1, label]
                place = (end, count)
                batches = held // rows
                left = held - batches * rows
                if left > 0 and batches > 0:
                    _keep_label(known + batches * full, left, begin, label, costs[place], carried[place], before[place])
                closed = known + (held * full / rows if batches == 0 else -(-held // rows) * full)
                _keep_label(closed, none, begin, label, costs[place], carried[place], before[place])

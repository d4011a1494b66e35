"""Window steps: the steps of windows, by the batches that their sequences would fill without padding.

without padding    69     70     72    107      steps of trial windows, those of the fewest and the most among them
filled             77     78     80    115      steps that they fill
by the line        78     79     81    116      steps that they get, and every window with as many batches
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.choices.arithmetic import longest_of, round_up
from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import costs_of
from lengthwise.choices.cut import Budget, oversize_of
from lengthwise.choices.names import is_custom
from lengthwise.choices.order import Sorted, pads_to_edge
from lengthwise.choices.rows import Rows
from lengthwise.planning.make import NoStepError
from lengthwise.planning.portion import Settled
from lengthwise.planning.settle import round_steps

_Steps = NDArray[np.float64]
_DEVIATIONS = 6.0  # standard deviations: no epoch has so many windows that one needs more steps
_LARGEST = 2.0**40  # sequences: no batch is larger


class StepLine(NamedTuple):
    """The line by which the steps of a window follow from its batches, and the choices of all windows.

    Attributes:
        settled: The choices, and the steps of every epoch.
        slope: Steps for each step that a window would fill without padding.
        base: Steps that are added, with a margin: no window needs more, or fills fewer if the tail drops.
    """

    settled: Settled
    slope: float
    base: float

    def count_steps(self, unpadded: _Steps) -> NDArray[np.int64]:
        """Returns the steps of windows, [windows], by those that each would fill without padding."""
        steps = np.round(self.base + self.slope * unpadded, 6)  # 256.0000000001 steps are 256
        if self.settled.batching.deal.tail == "drop":
            return np.floor(steps).astype(np.int64)
        # If all sequences of a window are dropped, it has no step.
        return (np.maximum(1.0, np.ceil(steps)) * (unpadded > 0.0)).astype(np.int64)

    def share_steps(self, unpadded: _Steps) -> NDArray[np.int64]:
        """Shares out the steps of an epoch to its windows, [windows]."""
        steps = self.count_steps(unpadded)
        spare = (self.settled.steps or 0) - int(steps.sum())
        each, extra = divmod(abs(spare), len(steps))
        # The windows of most steps feel one step least.
        steps[np.argsort(-steps, kind="stable")[:extra]] += np.sign(spare)
        return steps + each * np.sign(spare)


def fit_line(unpadded: _Steps, filled: _Steps, epochs: Sequence[_Steps], settled: Settled) -> StepLine:
    """Fits the line to trial windows, and counts the steps of every epoch.

    Args:
        unpadded: [trials], rising: the steps that each window would fill without padding.
        filled: [trials], the steps that each window fills.
        epochs: For some epochs, the steps that each of their windows would fill without padding.
        settled: The choices of all windows.

    Raises:
        NoStepError: All sequences of a window are dropped.
    """
    batching, half = settled.batching, len(filled) // 2
    # Through the means of both halves: a window with a rare block of long sequences then lies on the line, too.
    run, rise = (float(steps[half:].mean() - steps[:half].mean()) for steps in (unpadded, filled))
    slope = rise / run if run else 0.0
    bases, sign = filled - slope * unpadded, -1.0 if batching.deal.tail == "drop" else 1.0
    line = StepLine(settled, slope, float(bases.mean()) + sign * _DEVIATIONS * float(np.std(bases)))
    counts = [line.count_steps(epoch) for epoch in epochs]
    if min(map(np.min, counts)) < 1:
        remedy = "Give larger windows, smaller batches, or tail='split'."
        raise NoStepError(checks.sentence("steps", "at least 1 in every window", 0, remedy))
    totals = [float(steps.sum()) for steps in counts]
    total = round_steps(totals, batching, margin=_DEVIATIONS * float(np.std(totals)))
    return line._replace(settled=settled._replace(steps=max(total, len(counts[0]))))


def shares_of_batch(lengths: NDArray[np.int64], batching: Batching) -> NDArray[np.float64]:
    """Returns the share of a batch that each of `lengths` [n, dims] fills, among sequences as long as itself: [n].

    If ten sequences of 100 fill a batch, the share of each is 0.1. A sequence over the budget fills a batch if it
    stands alone, and none if it is dropped. If it is refused, its share is infinite.
    """
    cut, longest = batching.cut, longest_of(lengths)
    if lengths.shape[1] == 1 and len(lengths) > longest[0]:  # computes the share of each length once
        return shares_of_batch(np.arange(1, longest[0] + 1)[:, None], batching)[lengths[:, 0] - 1]
    if isinstance(cut, Budget):
        needed = round_up(lengths, cut.multiple_of)
        one, two = (costs_of(batching.cost, np.full(len(needed), count), needed) for count in (1, 2))
        budget = cut.max_cost(batching.cost, longest)
        over = one > budget
        # Costs of 30 and 50 for one and two sequences: a budget of 100 has room for three more.
        sizes = 1.0 + np.floor((budget - one) / np.maximum(two - one, budget / _LARGEST))
        sizes = np.clip(sizes, 1.0, cut.max_sequences)
    else:
        over = lengths.max(axis=1) > cut.capacity if isinstance(cut, Rows) else np.zeros(len(lengths), bool)
        sizes = cut.batch_sizes(lengths, cost=batching.cost, longest=longest)
    return np.where(over, {"alone": 1.0, "drop": 0.0}.get(oversize_of(cut), np.inf), 1.0 / sizes)


def fill_fewest_steps(settled: Settled) -> Settled:
    """Returns choices by which a window fills the fewest steps, for one that fills more than it has by the line.

    Batches that are padded to edges, and the order of a user, stay as they are.
    """
    batching = settled.batching
    if is_custom(batching.order) or pads_to_edge(batching.order):
        return settled
    if batching.takes_random_steps:  # sorted ones may be fewer than the window has
        batching = replace(batching, deal=replace(batching.deal, tail="split"))
    return settled._replace(batching=batching, fitted_order=Sorted())

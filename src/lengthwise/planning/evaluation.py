"""Evaluation plans: sorted batches, each sequence once, and the way back to the order of the data set.

outputs  [ranks] lists, an output for every sequence of a rank, in the order of its batches
weights  [n]     the weight of each sequence in the mean: 1, or the number of its tokens
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.arrange import CostliestFirst
from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import Cost, Padded
from lengthwise.choices.cut import Cut
from lengthwise.choices.deal import Balanced
from lengthwise.choices.order import Shuffled, Sorted
from lengthwise.choices.rows import Rows
from lengthwise.planning import make_plan
from lengthwise.planning.loss import batch_weights
from lengthwise.planning.plan import Plan


def evaluation_plan(
    lengths: ArrayLike, cut: Cut, *, cost: Cost | None = None, balance: Cost | None = None, world_size: int = 1
) -> Plan:
    """Plans an evaluation: sorted by length, the costliest step first, each sequence once, equal steps on every rank.

    Sequences of several lengths are sorted in bands. `Rows(by="pool")` takes sequences in a random order, always the
    same, because sorted ones leave rows emptier.

    If the batches do not fill the last step, the cheapest are taken twice. The second time has weight 0 in
    `evaluation_weights`, and `restore_order` leaves it out.

    Args:
        lengths: [n] or [n, dims].
        cut: The cut into batches: `Budget(20_000)`, `FixedSize(32)`.
        cost: The cost of a batch; by default padded frames.
        balance: The cost that ranks share evenly, as in `Batching`; by default `cost`.
        world_size: The number of ranks.

    Returns:
        The same plan every time: there is no epoch and no seed.

    >>> from lengthwise.choices.cut import FixedSize
    >>> [batch.tolist() for batch in evaluation_plan([5, 9, 2, 4], FixedSize(2)).batches()]
    [[0, 1], [2, 3]]
    """
    batching = Batching(
        cut=cut,
        # A pool of similar lengths has no short sequence for the gaps of long ones. In the long-tailed example,
        # rows of 4,096 are 89.1 % full in sorted order, and 99.8 % in a random one.
        order=Shuffled() if type(cut) is Rows and cut.by == "pool" else Sorted(),
        deal=Balanced(tail="repeat"),
        arrange=CostliestFirst(steps=None),
        cost=cost or Padded(),
        balance=balance,
    )
    return make_plan(lengths, batching, world_size=world_size)


def evaluation_weights(plan: Plan, weights: ArrayLike | None = None) -> NDArray[np.float64]:
    """Returns the weight that the mean of each batch has in the mean over all sequences of the plan.

    The exact average of a loss is the sum, over all batches of all ranks, of weight x mean of the batch. Most loops
    report the mean of batch means, in which the sequences of small batches count more.

    If all sequences of a batch weigh 0, its weighted mean is 0/0, and 0 times NaN is NaN. Leave out batches of weight
    0.

    Args:
        plan: The plan that is evaluated.
        weights: [n], as for `loss_scales`: 1 each for a mean over sequences, their tokens for a mean over tokens.

    Returns:
        [steps, micro_batches, ranks] float64, 0 for batches that only keep the ranks in step. The weights sum to 1.

    Raises:
        ValueError: `weights` as in `loss_scales`.

    >>> from lengthwise.choices.cut import FixedSize
    >>> evaluation_weights(evaluation_plan([5, 9, 2], FixedSize(2)))
    array([[[0.66666667]],
           [[0.33333333]]])
    """
    # Batches of [2, 1] sequences weigh 2/3 and 1/3. A plan without batches has no weights.
    sums = batch_weights(plan, weights)
    return np.divide(sums, sums.sum(), out=np.zeros_like(sums), where=sums.sum() > 0)


def restore_order(plan: Plan, outputs: Sequence[Sequence[Any]]) -> list[Any]:
    """Brings the outputs of all ranks back into the order of the data set.

    Args:
        plan: The plan of the evaluation.
        outputs: One list for each rank, an output for every sequence of its batches, batch after batch.

    Returns:
        n outputs, the first of each sequence; None for a sequence that the plan does not take. For a plan of chunks,
        one for each chunk.

    Raises:
        ValueError: A rank has more or fewer outputs than it took sequences.

    >>> from lengthwise.choices.cut import FixedSize
    >>> lengths = [5, 9, 2, 4]
    >>> plan = evaluation_plan(lengths, FixedSize(2))
    >>> restore_order(plan, [[lengths[number] for batch in plan.batches() for number in batch]])
    [5, 9, 2, 4]
    """
    remedy = "Give one list for each rank, with one output for each sequence of its batches."
    if len(outputs) != plan.world_size:
        rule = f"of {plan.world_size} list(s), one for each rank"
        raise checks.value_error("outputs", rule, len(outputs), remedy)
    restored: list[Any] = [None] * plan.population
    missing = np.ones(plan.population, bool)
    members = np.split(plan.numbers, plan.offsets[1:-1])
    for rank, rank_outputs in enumerate(outputs):
        places = zip(plan.grid[:, :, rank].flat, plan.first_taken[:, :, rank].flat, strict=True)
        taken = [(number, is_first) for batch, is_first in places for number in members[batch].tolist()]
        if len(rank_outputs) != len(taken):
            rule = f"{len(taken)} outputs, one for each sequence of the rank"
            raise checks.value_error("outputs", rule, len(rank_outputs), remedy, at=f"rank {rank}")
        for (number, is_first), output in zip(taken, rank_outputs, strict=True):
            # The second output of a batch that is taken twice is dropped, and so is that of a second copy.
            if is_first and missing[number]:
                restored[number] = output
                missing[number] = False
    return restored

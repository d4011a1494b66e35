"""Level: batches under a budget are cut a little smaller, so that as many as fill the last step cost about the same.

14 batches of 100, for steps of 4     16 places
halved by the tail                    12 of 100 and 4 of 50: ranks wait in the steps that have these
cut at 88                             16 of about 88
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lengthwise import _exact
from lengthwise.choices.batching import Batching
from lengthwise.choices.columns import longest_of
from lengthwise.choices.cost import Cost, cost_of_one, costs_alone, prices_of, split_price
from lengthwise.choices.cut import Budget, DynamicSize
from lengthwise.choices.deal import RandomSteps
from lengthwise.choices.greedy import cut_greedily
from lengthwise.choices.multiples import count_multiple, most_sequences
from lengthwise.planning.draft import Draft

_WORTH = 0.01  # of the places of all steps: filling fewer saves less than the cut of a batch moves by chance
_ROUNDS = 12  # tries, at most
_NEAREST = 2.0**-11  # of a budget: so near to the least one, batches hardly change any more
_MANY = 1_000  # places. A try cuts all sequences anew: tens of thousands, or millions
_NEAR = 200  # of many places, one in so many may stay free: then one or two tries are enough


def level(draft: Draft, batching: Batching, slots: int, *, beside: int) -> Draft:
    """The draft, cut by the least budget under which its batches fill no more steps than they do.

    Only where the tail splits batches to fill the last step, and where steps are so few that this costs.

    Args:
        draft: In order, and cut by the batching.
        batching: The choices.
        slots: Batches of a step.
        beside: Batches that will stand beside those of the draft.
    """
    cut, batches = batching.cut, len(draft.offsets) - 1
    # 14 batches and 1 beside them, in steps of 4: 16 places, of which these fill 15.
    places = -(-(batches + beside) // slots) * slots - beside
    hard = isinstance(cut, Budget) or (isinstance(cut, DynamicSize) and cut.rule == "hard")
    if not hard or batching.deal.tail != "split" or isinstance(batching.deal, RandomSteps):
        return draft
    if not batches or places - batches < _WORTH * places:
        return draft
    high = cut.max_cost(batching.cost, longest_of(draft.needed))
    near = places // _NEAR if places >= _MANY else 0
    # A tenth less budget makes about a tenth more batches: 14 by 100 are 16 by 88. Few batches go in jumps.
    guess = high * batches / (places - near / 2.0) if near else 0.0
    # No sequence is to be over the smaller budget, which is sought near the guess.
    low = _costliest_alone(draft.needed, batching.cost, high, enough=guess / 2.0)
    if not near:  # batches that pad nothing would need so much each
        low = max(low, _cost_unpadded(draft.needed, batching.cost, high) / places)
    offsets, in_order = draft.offsets, (draft.needed, draft.boundaries)
    limits = {
        "cost": batching.cost,
        "most": most_sequences(cut),
        "multiple": count_multiple(cut),
    }
    # The smaller the budget, the more batches. `offsets` are always of a budget that fills no more than the places.
    for _ in range(_ROUNDS):
        middle = guess if low < guess < high else (low + high) / 2.0
        found = cut_greedily(*in_order, budget=middle, **limits)
        free = places - (len(found) - 1)
        if free < 0:
            low = middle
        else:
            high, offsets = middle, found
        # Of equal batches, one sequence more or less in each is a leap from too few to too many.
        if 0 <= free < near or high - low < high * max(near / places, _NEAREST):
            break
        guess = middle * (places - free) / (places - near / 2.0) if near else 0.0
    return draft._replace(offsets=np.asarray(offsets))


def _costliest_alone(needed: NDArray[np.int64], cost: Cost, budget: float, *, enough: float) -> float:
    """The most that a sequence costs by itself, of those within the budget; or a bound of it that is `enough`."""
    if prices_of(cost, needed.shape[1]) is not None:
        # A cost of this package does not fall as lengths rise: if the longest is within the budget, it is the one. Of
        # several lengths, the longest of each may be of two sequences, of which neither costs as much.
        longest = longest_of(needed)
        most = cost_of_one(cost, 1, longest)
        if most <= (budget if len(longest) == 1 else enough):
            return most
    alone = costs_alone(cost, needed)
    return float(alone[alone <= budget].max(initial=0.0))


def _cost_unpadded(needed: NDArray[np.int64], cost: Cost, budget: float) -> float:
    """The least that the sequences within the budget may cost, were none padded: 0 of a cost that is called."""
    if (prices := prices_of(cost, needed.shape[1])) is None:
        return 0.0
    once, each = split_price(prices, needed.astype(np.float64))
    return _exact.dot(each, once + each <= budget)

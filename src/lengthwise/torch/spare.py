"""A sample for ranks that have nothing of a window.

They take it again and again, scaled by 0, so that they stay in step.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np

from lengthwise import checks
from lengthwise.torch.measured import tell
from lengthwise.torch.ranks import OwnRank
from lengthwise.torch.window import Deliveries, Window


def share_spare(found: Deliveries, window: Window, held: Mapping[int, Any], own_rank: OwnRank) -> list[Any]:
    """A sample for ranks that must keep the others company; a collective if some have nothing of a window.

    The shortest that this rank has in the plan: one that the plan dropped may be over the budget.
    """
    planned = [number for number in found.members[found.plan.sequences].tolist() if number in held]
    shortest = sorted(planned, key=lambda number: int(window.lengths[number].sum()))[:1]
    own = [held[number] for number in shortest]
    if len(np.unique(found.owners)) in (0, own_rank.world_size):
        return own
    told = own_rank.gather(own if (refusal := _find_refusal(own)) is None else refusal)
    spare = next((each for each in told if each and not isinstance(each, str)), None)
    if spare is None:
        refusal = next(each for each in told if each)
        remedy = "Give samples that other processes can read, or as many shards of equal size as there are ranks."
        rule = "of samples that can be pickled, for ranks that have nothing of a window"
        raise checks.type_error("shards", rule, refusal, remedy)
    return spare


def _find_refusal(samples: list[Any]) -> str | None:
    """Why samples cannot go to other ranks: asked here, because a rank that fails within a collective leaves them."""
    try:
        pickle.dumps(samples)
    except Exception as error:  # of any class: a sample may have a `__reduce__` of its own
        return tell(error)
    return None

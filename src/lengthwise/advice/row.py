"""AdviceRow: one batching that was tried, and what it is worth.

prices   [batches]                       what each batch costs, in seconds or padded frames
grid     [steps, micro_batches, ranks]   batch numbers, as a plan has them
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import Cost, costs_of
from lengthwise.measures.metrics import Measures
from lengthwise.planning.plan import Plan


@dataclass(frozen=True, kw_only=True, slots=True)
class AdviceRow:
    """One batching that `advise` tried, and what it is worth.

    Attributes:
        label: The strategy, as `lengthwise compare` writes it. What tells it from others of that name follows:
            "deal=balanced" for sorted batches whose steps hold like ones, "cut=budget" beside a fixed size.
        batching: To train with.
        ships_in: Whose default or option it models, such as "Lightning, Trainer"; "" where nobody ships it.
        measures: Of some epochs together.
        price: Without a cost, the frames that the slowest rank of each step computes, for one useful frame of a rank's
            share: 1 without padding and waiting. With a cost, what an epoch costs, in its unit.
        of_random: The price, as a share of that of random batches.
        on_front: No other row costs less and mixes as much.
    """

    label: str
    batching: Batching
    ships_in: str
    measures: Measures
    price: float
    of_random: float
    on_front: bool

    @property
    def mixing(self) -> float:
        """The mixing of steps, which the gradient sees; that of batches where a step is one."""
        return self.measures.step_mixing

    def as_dict(self) -> dict[str, Any]:
        """The row by name, JSON-ready."""
        own = {name: getattr(self, name) for name in ("price", "of_random", "on_front", "ships_in")}
        return {"strategy": self.label, "batching": self.batching.to_json(), **own, **asdict(self.measures)}


def epoch_price(plan: Plan, cost: Cost) -> float:
    """What an epoch costs: the sum over its steps of the costliest rank."""
    prices = costs_of(cost, plan.batch_sizes, plan.padded_lengths)
    # Ranks of [3, 1] and [2, 4] in two steps: the epoch takes 3 + 4, for each step waits for its slowest rank.
    return float(prices[plan.grid].sum(axis=1).max(axis=1, initial=0.0).sum())


def relative(value: float, reference: float) -> float:
    """`value` over `reference`; 1 where both are 0, as of no sequences."""
    return value / reference if reference else 1.0 if not value else np.inf

"""Answer: what `advise` returns, a row for each batching that was tried; and the rule by which one is put forward.

The rule takes nearly the least price, and of these the most mixing:

price        1.09   1.14   1.24   4.91   of which 1.09 is the least; 5 % more is 1.14, and 15 % more is 1.25
mixing       0.05   0.09   1.00   1.00
taken                      *             for it mixes far more than 0.09
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import Cost, costs_of
from lengthwise.measures.metrics import Measures
from lengthwise.planning.plan import Plan

WITHIN = 0.05  # of the least price
FURTHER = 0.15  # of the least price, where that buys a leap
LEAP = 0.5  # of mixing: so much more than all within WITHIN
NOTHING = 0.01  # of the least price: random batches that cost no more than this above it have nothing to gain


def affordable(prices: Sequence[float], within: float) -> list[int]:
    """The places of the prices that are at most `within` above the least.

    >>> affordable([1.02, 1.0, 1.2], 0.05)
    [0, 1]
    """
    most = min(prices) * (1 + within)
    return [place for place, price in enumerate(prices) if price <= most]


def choose(prices: Sequence[float], mixing: Sequence[float], *, random: int | None = None) -> int:
    """The place of the one to put forward: as `lw.advise` chooses.

    Args:
        prices: Of at least one batching.
        mixing: Of the same. Of those that mix alike, the least price counts.
        random: The place of random batches, which stay where nothing costs clearly less.

    >>> choose([2.9, 1.01, 1.05, 1.11], [0.84, 0.01, 0.06, 0.13], random=0)
    2
    >>> choose([2.9, 1.01, 1.05, 1.11], [0.84, 0.01, 0.06, 0.71], random=0)
    3
    >>> choose([1.02, 1.01], [0.9, 0.9])
    1
    """
    if random is not None and prices[random] <= min(prices) * (1 + NOTHING):
        return random
    near, far = (
        max(affordable(prices, within), key=lambda place: (mixing[place], -prices[place]))
        for within in (WITHIN, FURTHER)
    )
    return far if mixing[far] >= mixing[near] + LEAP else near


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
    prices = costs_of(cost, plan.row_counts, plan.padded_lengths)
    # Ranks of [3, 1] and [2, 4] in two steps: the epoch takes 3 + 4, for each step waits for its slowest rank.
    return float(prices[plan.grid].sum(axis=1).max(axis=1, initial=0.0).sum())


def relative(value: float, reference: float) -> float:
    """`value` over `reference`; 1 where both are 0, as of no sequences."""
    return value / reference if reference else 1.0 if not value else np.inf


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Advice:
    """What to train with, why, and what else was tried. `print` shows the sentence.

    Attributes:
        candidates: All that was tried, by rising price.
        best: The one that is recommended, one of the candidates.
        more_mixed: One of the candidates that mixes far more, for at most 20 % more than the least price; None where
            there is none.
        sentence: Which it is, by which rule, and what it saves.
        code: The lines of Python that train with it, for code that has `lengths`, `dataset` and `epochs`.
        limit: The most mixing that any batch can have at the padding of the best: `lw.mixing_limit`; None where
            sequences have several lengths, a step has several batches, or there are no sequences.
        unit: What prices are in: "frames", computed for one useful frame; "seconds" an epoch; or "cost", the
            unit of another cost, for an epoch.
        sequences: How many there are.
        measured: How many were measured: all, or a random sample.
        world_size: Ranks of the run.
        micro_batches: Batches of a rank in a step.
    """

    candidates: tuple[AdviceRow, ...]
    best: AdviceRow
    more_mixed: AdviceRow | None
    sentence: str
    code: str
    limit: float | None
    unit: str
    sequences: int
    measured: int
    world_size: int
    micro_batches: int

    def __repr__(self) -> str:
        # Without the candidates: a notebook would show all measures of dozens of them.
        return (
            f"Advice({self.best.label!r} of {len(self.candidates)} candidates, "
            f"measured on {self.measured} of {self.sequences} sequences)"
        )

    def __str__(self) -> str:
        return self.sentence

    @property
    def front(self) -> tuple[AdviceRow, ...]:
        """The candidates that no other beats: none costs less and mixes as much. By rising price."""
        return tuple(row for row in self.candidates if row.on_front)

    @property
    def shipped(self) -> tuple[AdviceRow, ...]:
        """What trainers ship, by rising price."""
        return tuple(row for row in self.candidates if row.ships_in)

    def as_dict(self) -> dict[str, Any]:
        """The advice by name, JSON-ready; the best and the rows of the front are marked."""
        names = ("sentence", "code", "limit", "unit", "sequences", "measured", "world_size", "micro_batches")
        rows = [{**row.as_dict(), "best": row is self.best} for row in self.candidates]
        labels = {"best": self.best.label, "more_mixed": self.more_mixed and self.more_mixed.label}
        return {**{name: getattr(self, name) for name in names}, **labels, "candidates": rows}

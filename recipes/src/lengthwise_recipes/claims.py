"""Claims of a paper, our number under each seed, and a verdict.

By our numbers the whole claim holds, a part of it, or none. The verdict also depends on the regime and on the seeds:

- outside the regime of the paper: not comparable
- one run: agrees, partly or differs, in one run
- seeds too far apart to show the effect of the paper: not comparable
- else: reproduced, partly, not reproduced
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lengthwise.checks import check_choice, value_error
from lengthwise_recipes.intervals import Interval, interval

WHOLE, PART, NONE = HOLDS = ("whole", "part", "none")
NOT_COMPARABLE = "not comparable"
OF_SEEDS = {WHOLE: "reproduced", PART: "partly", NONE: "not reproduced"}
OF_ONE_RUN = {WHOLE: "agrees, in one run", PART: "partly, in one run", NONE: "differs, in one run"}
LEAST_SHARE = 0.1  # of the training of the paper: less is another regime

RULE = (
    "Verdicts: *reproduced*, *partly* and *not reproduced* need two seeds or more, runs in the regime of the paper, "
    "and an effect that these runs could show. Otherwise a claim is *not comparable*. A single run *agrees* or "
    "*differs*. *Could tell apart* is the smallest effect that our seeds would show in 4 of 5 tries (80 % power, "
    "two-sided 5 %, Student's t over the seeds). A smaller effect may exist."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Regime:
    """A condition of a claim, in one number: that of the paper and ours.

    Attributes:
        what: Its name and unit, such as "steps of training".
        ours, paper: Our number and that of the paper.
        least: The share of the paper's number that ours must reach to be comparable.
        digits: Digits of both numbers after the point.
    """

    what: str
    ours: float
    paper: float
    least: float = LEAST_SHARE
    digits: int = 0

    @property
    def comparable(self) -> bool:
        return self.ours >= self.least * self.paper

    def __str__(self) -> str:
        return f"{self.what}: {self.ours:,.{self.digits}f}, in the paper {self.paper:,.{self.digits}f}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One claim of a paper.

    Attributes:
        claim: The claim of the paper, in words.
        where: Section or figure.
        paper: The number of the paper, as text; some claims have none.
        ours: Our number under each seed.
        holds: The part of the claim that holds by our numbers, one of `HOLDS`.
        why: The reason, a sentence or two.
        no_effect: The number without an effect: 0 for differences, 1 for ratios.
        effect: The difference of the paper's number from `no_effect`. For a claim of equality, the tolerated
            difference. None if the paper prints no number.
        regime: None if the claim is about any data and any training.
        unit: The unit of `ours`: "" for a plain number, "%" for shares in percent.

    >>> faster = Claim(
    ...     claim="4 times as fast", where="4", paper="4", ours=[2.0, 2.1], no_effect=1, effect=3, holds="part", why=""
    ... )
    >>> faster.verdict
    'partly'
    """

    claim: str
    where: str
    paper: str
    ours: Sequence[float]
    holds: str
    why: str
    no_effect: float = 0.0
    effect: float | None = None
    regime: Regime | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        if not self.ours:
            raise value_error("ours", "at least one number", list(self.ours), "Train under one seed or more.")
        check_choice("holds", self.holds, HOLDS)

    @property
    def seeds(self) -> int:
        return len(self.ours)

    @property
    def mean(self) -> float:
        return sum(self.ours) / self.seeds

    @property
    def effects(self) -> Interval:
        """The differences of our numbers from no effect."""
        return interval([value - self.no_effect for value in self.ours])

    @property
    def tells(self) -> bool:
        """True if the seeds show an effect, or would show one of the paper's size."""
        effects = self.effects
        if effects.unknown:
            return False
        return effects.excludes_zero or (self.effect is not None and effects.smallest_difference <= self.effect)

    @property
    def verdict(self) -> str:
        """The verdict, by the rule at the top of this file."""
        if self.regime is not None and not self.regime.comparable:
            return NOT_COMPARABLE
        if self.seeds == 1:
            return OF_ONE_RUN[self.holds]
        return OF_SEEDS[self.holds] if self.tells else NOT_COMPARABLE

    @property
    def reason(self) -> str:
        """The reason why it is not comparable, if so, and then `why`."""
        if self.verdict != NOT_COMPARABLE:
            return self.why
        if self.regime is not None and not self.regime.comparable:
            return f"Another regime ({self.regime}). {self.why}"
        if not math.isfinite(self.mean):
            return f"A run diverged. {self.why}"
        sought = "whether there is an effect" if self.effect is None else f"an effect of {self.effect:.2f}{self._unit}"
        return f"These {self.seeds} seeds cannot tell {sought}. {self.why}"

    @property
    def could_tell(self) -> str:
        """The smallest difference from no effect that the seeds would show, as text."""
        smallest = self.effects.smallest_difference
        return f"{smallest:.2f}{self._unit}" if math.isfinite(smallest) else "nothing"

    @property
    def _unit(self) -> str:
        return f" {self.unit}" if self.unit else ""


def extent(*, whole: bool, part: bool) -> str:
    """Returns the part of a claim that holds, one of `HOLDS`.

    >>> extent(whole=False, part=True)
    'part'
    """
    return WHOLE if whole else PART if part else NONE

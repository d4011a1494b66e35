"""Claims: what a paper says, what came out here under each seed, and a verdict that claims no more than the runs can.

How much of a claim holds is read off our numbers: the whole, a part or none. What that is worth depends on the regime
and on the seeds, which every claim states:

    outside the paper's regime                               not comparable
    one run                                                  agrees, partly or differs, in one run
    seeds too far apart to tell the paper's effect from none not comparable
    else                                                     reproduced, partly, not reproduced
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
LEAST_SHARE = 0.1  # of the paper's training: what is less is another regime

RULE = (
    "Verdicts: *reproduced*, *partly* and *not reproduced* need two seeds or more, runs in the paper's regime, and an "
    "effect that these runs could tell from none. Without one of these a claim is *not comparable*; one run alone "
    "*agrees* or *differs*. *Could tell apart* is the smallest effect that our seeds would show in 4 of 5 tries (80 % "
    "power, two-sided 5 %, Student's t over the seeds): a smaller one may be there and was not seen."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Regime:
    """What a claim depends on, in one number: of the paper's and of ours.

    Attributes:
        what: Its name and unit, such as "steps of training".
        ours, paper: How much of it there was.
        least: The share of the paper's that ours must reach to be comparable.
        digits: Of either number, after the point.
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
        claim: What the paper says, in words.
        where: Section or figure.
        paper: Its number, as text: some claims have none.
        ours: Our number under each seed.
        holds: How much of it holds of our numbers, one of `HOLDS`.
        why: A sentence or two.
        no_effect: What our number would be without the effect: 0 of differences, 1 of ratios.
        effect: By how much the paper's number differs from `no_effect`; where it says that two are alike, by how much
            ours may differ. None where it prints no size.
        regime: None where the claim is of any data and any training.
        unit: Of ours: "" for a plain number, "%" for shares that are written in percent.

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
        """By how much ours differs from no effect."""
        return interval([each - self.no_effect for each in self.ours])

    @property
    def tells(self) -> bool:
        """Whether the seeds tell ours from no effect, or would tell an effect of the paper's size."""
        found = self.effects
        if found.unknown:
            return False
        return found.excludes_zero or (self.effect is not None and found.smallest_difference <= self.effect)

    @property
    def verdict(self) -> str:
        """By the rule at the top of this file."""
        if self.regime is not None and not self.regime.comparable:
            return NOT_COMPARABLE
        if self.seeds == 1:
            return OF_ONE_RUN[self.holds]
        return OF_SEEDS[self.holds] if self.tells else NOT_COMPARABLE

    @property
    def reason(self) -> str:
        """Why it is not comparable, where it is not, and then what was seen."""
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
        """The smallest difference from no effect that the seeds could have told apart, as text."""
        smallest = self.effects.smallest_difference
        return f"{smallest:.2f}{self._unit}" if math.isfinite(smallest) else "nothing"

    @property
    def _unit(self) -> str:
        return f" {self.unit}" if self.unit else ""


def extent(*, whole: bool, part: bool) -> str:
    """How much of a claim holds: the whole, else a part where one does.

    >>> extent(whole=False, part=True)
    'part'
    """
    return WHOLE if whole else PART if part else NONE

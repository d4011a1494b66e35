"""Claims of a paper, our number in each run, and a verdict, by the rule in recipes/README.md.

By our numbers the whole claim holds, a part of it, or none of it. The verdict also depends on size and runs:

- on losses, with less than a tenth of the data of the paper: not comparable
- one run: agrees, partly or differs, in one run
- runs too far apart to show the effect of the paper: undecided
- else: reproduced, partly, not reproduced
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lengthwise.checks import check_choice, value_error
from lengthwise_recipes.intervals import Interval, interval

WHOLE, PART, NONE = HOLDS = ("whole", "part", "none")
UNDECIDED, NOT_COMPARABLE = "undecided", "not comparable"
OF_SEEDS = {WHOLE: "reproduced", PART: "partly", NONE: "not reproduced"}
OF_ONE_RUN = {WHOLE: "agrees, in one run", PART: "partly, in one run", NONE: "differs, in one run"}
LEAST_SHARE = 0.1  # of the frames that the paper trains on, for a claim that depends on size
CLOSE = 0.15  # our effect may miss the paper's by this share of it, on either side


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """The training data of a rerun and of its paper, in frames.

    Attributes:
        ours, paper: The frames of one epoch without padding.
        source: How the paper's number is known.
    """

    ours: int
    paper: int
    source: str

    @property
    def is_enough(self) -> bool:
        return self.ours >= LEAST_SHARE * self.paper

    @property
    def percent(self) -> str:
        """Ours in percent of the paper's, to two digits."""
        return f"{100 * self.ours / self.paper:.2g} %"

    def __str__(self) -> str:
        return f"{self.ours:,} frames of training data, {self.percent} of the paper's {self.paper:,} ({self.source})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One claim of a paper.

    Attributes:
        claim: The claim of the paper, in words.
        where: Section or figure.
        paper: The number of the paper, as text; some claims have none.
        ours: Our number in each run: under each seed, or in each epoch timed after training.
        holds: The part of the claim that holds by our numbers, one of `HOLDS`.
        why: The reason, a sentence or two.
        no_effect: The number without an effect: 0 for differences, 1 for ratios.
        effect: The difference of the paper's number from `no_effect`. For a likeness, the tolerated difference.
            None if the paper prints no number.
        likeness: True if the claim is one of likeness.
        size: Our size, if the claim depends on it, as on losses.
        unit: The unit of `ours`: "" for a plain number, "%" for shares in percent.
        kind: Such as "speed". The head of a page gives the smallest differences of each kind; "" leaves the claim out.

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
    likeness: bool = False
    size: Size | None = None
    unit: str = ""
    kind: str = ""

    def __post_init__(self) -> None:
        if not self.ours:
            raise value_error("ours", "at least one number", list(self.ours), "Train under one seed or more.")
        check_choice("holds", self.holds, HOLDS)

    @property
    def runs(self) -> int:
        return len(self.ours)

    @property
    def mean(self) -> float:
        return sum(self.ours) / self.runs

    @property
    def effects(self) -> Interval:
        """The differences of our numbers from no effect."""
        return interval([value - self.no_effect for value in self.ours])

    @property
    def tells(self) -> bool:
        """True if the runs show an effect, or a difference beyond the tolerance, or would show the paper's effect."""
        effects, effect = self.effects, self.effect or 0.0
        if effects.unknown:
            return False
        beyond = max(effects.low, -effects.high) > (effect if self.likeness else 0.0)
        return beyond or effects.smallest_difference <= effect

    @property
    def verdict(self) -> str:
        """The verdict, by the rule at the top of this file."""
        return NOT_COMPARABLE if self.size is not None and not self.size.is_enough else self.at_our_size

    @property
    def at_our_size(self) -> str:
        """What the runs show, whatever the size."""
        if self.runs == 1:
            return OF_ONE_RUN[self.holds]
        return OF_SEEDS[self.holds] if self.tells else UNDECIDED

    @property
    def sized_verdict(self) -> str:
        """The verdict, with the size if the claim depends on it."""
        if self.size is None or self.size.is_enough:
            return self.verdict
        return f"{self.verdict}, with {self.size.percent} of the data; at our size {self.at_our_size}"

    @property
    def reason(self) -> str:
        """The reason why it is undecided, if so, and then `why`."""
        if self.at_our_size != UNDECIDED:
            return self.why
        if not math.isfinite(self.mean):
            return f"A run diverged. {self.why}"
        sought = "whether there is an effect" if self.effect is None else f"an effect of {self.effect:.2f}{self._unit}"
        verb = "cannot tell" if self.effect is None else "could not show"
        return f"These {self.runs} runs {verb} {sought}. {self.why}"

    @property
    def could_tell(self) -> str:
        """The smallest difference from no effect that the runs would show, as text."""
        smallest = self.effects.smallest_difference
        return f"{smallest:.2f}{self._unit}" if math.isfinite(smallest) else "nothing"

    @property
    def _unit(self) -> str:
        return f" {self.unit}" if self.unit else ""


def of_effect(ours: Sequence[float], paper: float, *, no_effect: float = 0.0) -> str:
    """Returns the part that holds of a claim of an effect, one of `HOLDS`, by the rule.

    >>> of_effect([1.45, 1.48], 1.46, no_effect=1), of_effect([1.23, 1.24], 1.46, no_effect=1)
    ('whole', 'part')
    """
    shares = [(value - no_effect) / (paper - no_effect) for value in ours]
    close = abs(sum(shares) / len(shares) - 1.0) <= CLOSE
    return extent(whole=close and min(shares) > 0.0, part=tells_greater(shares, 0.0))


def of_order(*pairs: tuple[ArrayLike, ArrayLike]) -> str:
    """Returns the part that holds of a claim of an order, one of `HOLDS`, by the rule.

    Args:
        pairs: The greater and the less by the claim, each [seeds]. The first pair is the one in the table.

    >>> of_order(([2.0, 2.1], 1.0), ([2.0, 2.1], [2.3, 1.7]))
    'part'
    """
    told = [tells_greater(*pair) for pair in pairs]
    return extent(whole=all(told), part=told[0])


def of_likeness(tolerance: float, *differences: ArrayLike) -> str:
    """Returns the part that holds of a claim of likeness, one of `HOLDS`, by the rule.

    The differences, each [seeds], count as alike up to the tolerance.

    >>> of_likeness(0.5, [0.1, 0.2, 0.0]), of_likeness(0.5, [0.4, 0.6, 0.0])
    ('whole', 'part')
    """
    bounds = [interval(np.atleast_1d(difference)) for difference in differences]
    alike = all(abs(bound.mean) <= tolerance for bound in bounds)
    inside = all(bound.runs == 1 or -tolerance <= bound.low <= bound.high <= tolerance for bound in bounds)
    return extent(whole=alike and inside, part=alike)


def tells_greater(greater: ArrayLike, less: ArrayLike) -> bool:
    """Returns True if the seeds tell that `greater` is above `less`, both [seeds]; for a single run, if it is above."""
    bounds = interval(np.atleast_1d(np.subtract(greater, less)))
    return (bounds.low if bounds.runs > 1 else bounds.mean) > 0.0


def of_each(*holds: str) -> str:
    """Returns the part that holds of a claim with several parts, or under several choices of ours.

    >>> of_each("whole", "none"), of_each("whole", "whole"), of_each("none", "none")
    ('part', 'whole', 'none')
    """
    return extent(whole=set(holds) == {WHOLE}, part=set(holds) != {NONE})


def extent(*, whole: bool, part: bool) -> str:
    """Returns the part of a claim that holds, one of `HOLDS`.

    >>> extent(whole=False, part=True)
    'part'
    """
    return WHOLE if whole else PART if part else NONE


def listing(values: ArrayLike, form: str = ".2f") -> str:
    """Lists numbers [n], or the means over the seeds of [n, seeds].

    >>> listing([0.5, 2.0]), listing([[0.5, 1.5], [2.0, 4.0]])
    ('0.50, 2.00', '1.00, 3.00')
    """
    array = np.asarray(values, np.float64)
    return ", ".join(format(value, form) for value in (array.mean(axis=1) if array.ndim == 2 else array))

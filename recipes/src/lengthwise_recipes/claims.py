"""Claims: what a paper says in a number, what came out here over the seeds, and a plain verdict with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from lengthwise.checks import check_choice, value_error

VERDICTS = ("reproduced", "partly", "not")


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One claim of a paper.

    Attributes:
        claim: What the paper says, in words.
        where: Section or figure.
        paper: Its number, as text: some claims have none.
        mean, least, greatest: Ours, over the seeds.
        unit: Of ours: "" for a plain number, "%" for shares that are written in percent.
        verdict: One of `VERDICTS`.
        why: One sentence.
    """

    claim: str
    where: str
    paper: str
    mean: float
    least: float
    greatest: float
    unit: str
    verdict: str
    why: str

    def __post_init__(self) -> None:
        check_choice("verdict", self.verdict, VERDICTS)


def claim(text: str, *, where: str, paper: str, ours: Sequence[float], verdict: str, why: str, unit: str = "") -> Claim:
    """Makes a claim of what came out under each seed.

    >>> claim("4 times", where="4", paper="4", ours=[3.0, 5.0], verdict="partly", why="The seeds differ.").mean
    4.0
    """
    if not ours:
        raise value_error("ours", "at least one number", list(ours), "Train under one seed or more.")
    return Claim(
        claim=text,
        where=where,
        paper=paper,
        mean=fmean(ours),
        least=min(ours),
        greatest=max(ours),
        unit=unit,
        verdict=verdict,
        why=why,
    )


def judged(*, whole: bool, part: bool) -> str:
    """The verdict: reproduced where the claim holds whole, else partly where a part of it does.

    >>> judged(whole=False, part=True)
    'partly'
    """
    return VERDICTS[0] if whole else VERDICTS[1] if part else VERDICTS[2]

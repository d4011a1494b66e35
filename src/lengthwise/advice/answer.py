"""Answer: what `advise` returns, a row for each batching that was measured, and four lines that say what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lengthwise.advice.code import describe_cut, write_batching
from lengthwise.choices.batching import Batching
from lengthwise.measures.metrics import Measures

_CLEAR = 0.05  # of the price of random batches: who saves less has nothing to gain
ATTENTION = (
    "Attention also costs the square of the length. If your model has it, take cost=lw.Quadratic(linear=1, "
    "quadratic=0.002), with a budget in that cost: ranks then wait less."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AdviceRow:
    """One batching that `advise` measured, and what it is worth.

    Attributes:
        label: The strategy, as `lengthwise compare` writes it.
        batching: To train with.
        ships_in: Whose default or option it models, such as "Lightning, Trainer"; "" where nobody ships it.
        measures: Of some epochs together.
        price: Without a cost, the frames that the slowest rank of each step computes, for one useful frame of a rank's
            share: 1 without padding and waiting. With a cost, what an epoch costs, in its unit.
    """

    label: str
    batching: Batching
    ships_in: str
    measures: Measures
    price: float

    @property
    def mixing(self) -> float:
        """The mixing of steps, which the gradient sees; that of batches where a step is one."""
        return self.measures.step_mixing

    def as_dict(self) -> dict[str, Any]:
        """The row by name, JSON-ready."""
        facts = {"price": self.price, "ships_in": self.ships_in}
        return {"strategy": self.label, "batching": self.batching.to_json(), **facts, **asdict(self.measures)}


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Advice:
    """The batching to train with, what it saves, and what was measured beside it. `print` shows the sentence.

    Attributes:
        candidates: All that was measured, by rising price.
        best: The one that is recommended, one of the candidates.
        random: Random batches, as most people train: one of the candidates.
        sentence: Four lines: what you compute, what you would compute, the largest batch, and the code.
        code: The lines of Python that train with it, for code that has `lengths`, `dataset` and `epochs`.
        unit: What prices are in: "frames", computed for one useful frame; "seconds" an epoch; or "cost", the
            unit of another cost, for an epoch.
        sequences: How many there are.
        measured: How many were measured: all, or a random sample.
        world_size: Ranks of the run.
        micro_batches: Batches of a rank in a step.
    """

    candidates: tuple[AdviceRow, ...]
    best: AdviceRow
    random: AdviceRow
    sentence: str
    code: str
    unit: str
    sequences: int
    measured: int
    world_size: int
    micro_batches: int

    def __repr__(self) -> str:
        # Without the candidates: a notebook would show all measures of each.
        return (
            f"Advice({self.best.label!r} of {len(self.candidates)} candidates, "
            f"measured on {self.measured} of {self.sequences} sequences)"
        )

    def __str__(self) -> str:
        return self.sentence

    def as_dict(self) -> dict[str, Any]:
        """The advice by name, JSON-ready; the best row is marked."""
        names = ("sentence", "code", "unit", "sequences", "measured", "world_size", "micro_batches")
        rows = [{**row.as_dict(), "best": row is self.best} for row in self.candidates]
        return {**{name: getattr(self, name) for name in names}, "best": self.best.label, "candidates": rows}


def saves(ours: AdviceRow, random: AdviceRow) -> bool:
    """Says that a batching costs clearly less than random batches: otherwise nobody need change anything."""
    return ours.price < random.price * (1 - _CLEAR)


def write_sentence(best: AdviceRow, random: AdviceRow, *, padding: float, unit: str, slots: int) -> str:
    """Writes the lines of an advice: what is computed now, what would be, the largest batch, and the code."""
    verb, measure = _VERBS[unit]
    waiting = ", waiting included" if slots > 1 else ""
    now = f"Random {describe_cut(random.batching.cut)} {verb} {_write(random.price, unit)} {measure}{waiting}."
    if best is random:
        return f"{now}\nYou have nothing to gain: no batches cost clearly less. Shuffle."
    ours = describe_cut(best.batching.cut)
    if best.label == "random-steps":
        ours = f"Steps that are random samples, each sorted into {ours},"
    else:
        ours = f"{ours.capitalize()}, as random as {100 * padding:.3g} % padding allows,"
    steps = [row.measures.steps // row.measures.epochs for row in (random, best)]
    costs = [row.measures.largest_cost for row in (random, best)]
    return "\n".join(
        [
            now,
            f"{ours} {verb} {_write(best.price, unit)}: {100 * (1 - best.price / random.price):.0f} % less.",
            f"The largest batch: {costs[0]:,.0f} padded frames now, {costs[1]:,.0f} then. "
            f"Steps of an epoch: {steps[0]:,} now, {steps[1]:,} then.",
            f"The code: lw.torch.BatchSampler(lengths, {write_batching(best.batching)})",
        ]
    )


_VERBS = {
    "frames": ("compute", "frames for each frame of data"),
    "seconds": ("take", "seconds an epoch"),
    "cost": ("cost", "an epoch"),
}


def _write(price: float, unit: str) -> str:
    return f"{price:.2f}" if unit == "frames" else f"{price:,.3g}"

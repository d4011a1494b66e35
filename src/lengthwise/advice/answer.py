"""The answer of `advise`: a row for each batching, and a few lines of advice."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from lengthwise._html import write_table
from lengthwise.advice.code import describe_cut
from lengthwise.choices.batching import Batching, write_batching
from lengthwise.choices.cost import Quadratic
from lengthwise.choices.deal import Balanced
from lengthwise.choices.names import write_choice
from lengthwise.measures.metrics import Measures

MISSED = 0.02  # above the padding that was asked for: then a sentence says so
_CLEAR = 0.05  # a change must save 5 % of the price of random batches
ATTENTION = Quadratic(quadratic=0.001)  # of common networks: at 1,000 frames, attention costs as much as all else
BALANCE = f"balance={write_choice(ATTENTION)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class AdviceRow:
    """One batching that `advise` measured.

    Attributes:
        label: The strategy, as in `lengthwise compare`.
        batching: The batching.
        ships_in: The libraries that ship the batching as a default or an option, such as "Lightning, Trainer"; "" if
            none does.
        measures: The measures of one epoch. Randomness and waiting are estimated over several epochs.
        price: Without a cost: the computed frames for each frame of data, divided by the share of the time in which
            ranks do not wait. The least is 1. With a balance: the same for its unit. With a cost: the cost of an epoch.
    """

    label: str
    batching: Batching
    ships_in: str
    measures: Measures
    price: float

    def as_dict(self) -> dict[str, Any]:
        """Returns the row by name, for JSON."""
        facts = {"price": self.price, "ships_in": self.ships_in}
        return {"strategy": self.label, "batching": self.batching.to_json(), **facts, **asdict(self.measures)}


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Advice:
    """The batching to train with, its savings, and all measured batchings. `print` shows the sentences.

    A notebook shows the candidates, too.

    Attributes:
        candidates: All measured batchings, by rising price.
        best: The recommended candidate.
        random: The candidate with random batches, as most people train.
        sentence: Six lines: what random batches, those of `group_by_length` and the best compute; the largest batch
            and the steps of them; the code. Two lines if you have nothing to gain.
        attention: The waiting of the best if the model has attention, with the remedy. "" with a balance or a cost, on
            one rank, or if you have nothing to gain.
        longest: A sentence on sequences that are longer than the budget would be without them; "" if there are none.
        code: The lines of Python to train with the best, for code that has `lengths`, `dataset` and `epochs`.
        unit: The unit of prices: "frames" (for each frame of data), "work" (by the balance, for each unit that the data
            need), "seconds" or "cost" (of an epoch).
        sequences: The number of sequences.
        measured: The number of measured sequences: all, or a random sample.
        world_size: The ranks of the run.
        micro_batches: The batches of a rank in a step.
    """

    candidates: tuple[AdviceRow, ...]
    best: AdviceRow
    random: AdviceRow
    sentence: str
    attention: str
    longest: str
    code: str
    unit: str
    sequences: int
    measured: int
    world_size: int
    micro_batches: int

    def __repr__(self) -> str:
        # The measures of all candidates would fill a notebook, so they are left out.
        return (
            f"Advice({self.best.label!r} of {len(self.candidates)} candidates, "
            f"measured on {self.measured} of {self.sequences} sequences)"
        )

    def __str__(self) -> str:
        return "\n\n".join(filter(None, [self.sentence, self.attention, self.longest]))

    def _repr_html_(self) -> str:
        """Returns the sentences and a table of the candidates, for notebooks."""
        measured = {"padding": "padding_share"} | ({"waiting": "straggler_waste"} if self.world_size > 1 else {})
        heads = ("strategy", "ships in", *measured, "randomness", "largest batch", f"price ({self.unit})")
        rows = []
        for row in self.candidates:
            label = f"{row.label} (recommended)" if row is self.best else row.label
            shares = (f"{100 * getattr(row.measures, name):.1f} %" for name in measured.values())
            numbers = (f"{row.measures.randomness:.2f}", f"{row.measures.largest_cost:,.0f}", f"{row.price:,.2f}")
            rows.append((label, row.ships_in, *shares, *numbers))
        return write_table(rows, heads=heads, numbers=range(2, len(heads)), text=str(self))

    def as_dict(self) -> dict[str, Any]:
        """Returns the advice by name, for JSON, with the best row marked."""
        names = [field.name for field in fields(self) if field.name not in ("candidates", "best", "random")]
        rows = [{**row.as_dict(), "best": row is self.best} for row in self.candidates]
        return {**{name: getattr(self, name) for name in names}, "best": self.best.label, "candidates": rows}


def saves(ours: AdviceRow, random: AdviceRow) -> bool:
    """Tells if a batching costs over 5 % less than random batches."""
    return ours.price < random.price * (1 - _CLEAR)


def write_sentence(
    random: AdviceRow, grouped: AdviceRow, best: AdviceRow, *, decided: Batching, unit: str, slots: int, sampled: float
) -> str:
    """Returns the lines of the advice; see `Advice.sentence`.

    `grouped` is the row of `group_by_length`, `decided` the batching of the best with its order and deal, `sampled` the
    share of the sequences that was measured.
    """
    now = f"Random {describe_cut(random.batching.cut)} {_describe(random, unit, slots, is_first=True)}."
    if best is random:
        return f"{now}\nYou have nothing to gain: no batches cost clearly less. Shuffle."
    ours = describe_cut(best.batching.cut)
    if decided.takes_random_steps:
        ours = f"Steps that are random samples, each sorted into {ours},"
    else:
        alike = " and of similar cost in each step" if slots > 1 and isinstance(decided.deal, Balanced) else ""
        padding = decided.order.padding
        kept = f"as random as {100 * padding:.3g} % padding allows{alike}"
        is_kept = best.measures.padding_share <= padding + MISSED
        ours = f"{ours.capitalize()}, {kept if is_kept else f'too few to keep to {100 * padding:.3g} % of padding'},"
    steps = [round(row.measures.steps / sampled) for row in (random, best)]
    costs = [row.measures.largest_cost for row in (random, grouped, best)]
    return "\n".join(
        [
            now,
            f"The Trainer's group_by_length {_describe(grouped, unit, slots, s='s')}.",
            f"{ours} {_describe(best, unit, slots)}.",
            f"The largest batch: {costs[0]:,.0f} padded frames now, which fit; {costs[1]:,.0f} by group_by_length, "
            f"{costs[2]:,.0f} then.",
            f"Steps of an epoch: {steps[0]:,} now, {steps[1]:,} then.",
            f"The code, for lw.torch.BatchSampler or PlannedTrainer: {write_batching(best.batching)}",
        ]
    )


def describe_attention(waiting: float) -> str:
    """Returns a clause on the waiting of ranks under the cost `ATTENTION`.

    >>> describe_attention(0.123)
    'With attention, if L frames cost L (1 + 0.001 L), ranks wait 12.3 % of the time'
    """
    return f"With attention, if L frames cost L (1 + 0.001 L), ranks wait {100 * waiting:.1f} % of the time"


def write_attention(waiting: float, balanced: float) -> str:
    """Returns two sentences on the waiting under the cost `ATTENTION`, and on that of ranks that balance it."""
    remedy = f"With {BALANCE} in lw.Batching, they wait {100 * balanced:.1f} %, and the budget still holds."
    return f"{describe_attention(waiting)}. {remedy}"


_VERBS = {"work": ("compute", "times the work of the data"), "seconds": ("take", "seconds an epoch")}


def _describe(row: AdviceRow, unit: str, slots: int, *, s: str = "", is_first: bool = False) -> str:
    """Returns a clause on what a row computes, with the verb's ending `s`; only the first clause names the units."""
    measures = row.measures
    waiting = f"wait{s} {100 * measures.straggler_waste:.1f} %{' of the time' if is_first else ''}"
    if unit == "frames":
        padding, computed = f"pad{s} {100 * measures.padding_share:.1f} %", f"compute{s} {1 / measures.fill:.2f}"
        computed += " frames for each frame of data" if is_first else ""
        return f"{padding}, {computed}, and {waiting}" if slots > 1 else f"{padding} and {computed}"
    verb, measure = _VERBS.get(unit, ("cost", "an epoch"))
    price = f"{row.price:.2f}" if unit == "work" else f"{row.price:,.3g}"
    included = ", waiting included" if slots > 1 else ""
    return f"{verb}{s} {price} {measure}{included}" if is_first else f"{verb}{s} {price}"

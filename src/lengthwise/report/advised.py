"""What `advise` recommends: its candidates between price and mixing, and those that count in a table.

A candidate has a label, `ships_in`, `measures`, `price`, `mixing`, and whether it is `on_front`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from lengthwise.report import words
from lengthwise.report.contents import Section
from lengthwise.report.front import Spot, draw_spots
from lengthwise.report.marks import Table

_PRICES = {
    "frames": "frames computed for each frame of data",
    "seconds": "seconds of an epoch, as predicted",
    "cost": "cost of an epoch",
}
_HEADS = {"frames": "computed / useful", "seconds": "seconds an epoch", "cost": "cost of an epoch"}
_NAMED = 6  # of the front, evenly, beside the best and what trainers ship


class Advised(Protocol):
    """What is read of the answer of `advise`."""

    @property
    def candidates(self) -> Sequence[Any]: ...
    @property
    def best(self) -> Any: ...
    @property
    def unit(self) -> str: ...
    @property
    def sentence(self) -> str: ...


def advice_section(advice: Advised, *, write_cut: Callable[[Any], str] | None = None) -> Section:
    """The chart of all candidates, those of the front and what trainers ship by name, and the table of these.

    Args:
        advice: The answer.
        write_cut: How a candidate is cut, in a word; None where all are cut alike.
    """
    price = _PRICES.get(advice.unit, advice.unit)
    named = {id(row) for row in _named(advice)}
    spots = [
        Spot(
            row.label,
            row.price,
            row.mixing,
            f"{row.price:,.3g} {advice.unit}, mixing {row.mixing:.3f}",
            id(row) in named,
        )
        for row in advice.candidates
        if row is not advice.best
    ]
    best = advice.best
    spots.append(
        Spot(best.label, best.price, best.mixing, f"{best.price:,.3g} {advice.unit}, mixing {best.mixing:.3f}")
    )
    chart = draw_spots(
        spots,
        title="What was tried",
        cost=price,
        caption="Up and left is better. Named: the recommended one, what trainers ship, and some that nothing beats.",
    )
    return Section("advice", "What is recommended", [chart], _table(advice, write_cut), lead=advice.sentence)


def _named(advice: Advised) -> list[Any]:
    """The best, what trainers ship, and some of the front."""
    front = [row for row in advice.candidates if row.on_front]
    some = front[:: max(1, -(-len(front) // _NAMED))]
    kept = {id(row) for row in [advice.best, *some, *(row for row in advice.candidates if row.ships_in)]}
    return [row for row in advice.candidates if id(row) in kept]


def _table(advice: Advised, write_cut: Callable[[Any], str] | None) -> Table:
    rows = [
        (
            f"{row.label} (recommended)" if row is advice.best else row.label,
            row.ships_in,
            *([] if write_cut is None else [write_cut(row)]),
            words.percent(row.measures.padding_share),
            words.percent(row.measures.straggler_waste),
            f"{row.mixing:.3f}",
            words.number(row.price),
        )
        for row in _named(advice)
    ]
    price = _HEADS.get(advice.unit, advice.unit)
    heads = ("strategy", "ships in", *([] if write_cut is None else ["cut"]), "padding", "waiting", "mixing", price)
    return Table(heads, rows, words=2 + (write_cut is not None))

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
    @property
    def world_size(self) -> int: ...
    @property
    def micro_batches(self) -> int: ...


_CAPTION = "Up and left is better. Named: the recommended one, what trainers ship, and some that nothing beats."
# The headline counts the frames of all ranks.
_SLOWEST = (
    " Here and in the table every rank counts as the slowest of its step, so the numbers are above the headline's."
)


def advice_section(advice: Advised, *, write_cut: Callable[[Any], str] | None = None) -> Section:
    """The chart of all candidates, those of the front and what trainers ship by name, and the table of these.

    Args:
        advice: The answer.
        write_cut: How a candidate is cut, in a word; None where all are cut alike.
    """
    price = _PRICES.get(advice.unit, advice.unit) + (", of the slowest rank" if advice.world_size > 1 else "")
    mixing = _mixing(advice)
    named = {id(row) for row in _named(advice)}
    spots = [
        Spot(
            row.label,
            row.price,
            row.mixing,
            f"{_write(row.price)} {advice.unit}, {mixing} {row.mixing:.3f}",
            id(row) in named,
        )
        for row in (*(row for row in advice.candidates if row is not advice.best), advice.best)
    ]
    chart = draw_spots(
        spots,
        title="What was tried",
        cost=price,
        mixing=mixing,
        caption=_CAPTION + (_SLOWEST if advice.world_size > 1 and advice.unit == "frames" else ""),
    )
    return Section("advice", "What is recommended", [chart], _table(advice, write_cut), lead=advice.sentence)


def _named(advice: Advised) -> list[Any]:
    """The best, what trainers ship, and some of the front."""
    front = [row for row in advice.candidates if row.on_front]
    some = front[:: max(1, -(-len(front) // _NAMED))]
    kept = {id(row) for row in [advice.best, *some, *(row for row in advice.candidates if row.ships_in)]}
    return [row for row in advice.candidates if id(row) in kept]


def _mixing(advice: Advised) -> str:
    return "step mixing" if advice.world_size * advice.micro_batches > 1 else "mixing"


def _write(price: float) -> str:
    """A price, with as many digits as its neighbours in a table.

    >>> _write(1.2), _write(12_345.6)
    ('1.20', '12,346')
    """
    return f"{price:,.2f}" if price < 1000 else f"{price:,.0f}"


def _table(advice: Advised, write_cut: Callable[[Any], str] | None) -> Table:
    columns: dict[str, Callable[[Any], str]] = {
        "strategy": lambda row: f"{row.label} (recommended)" if row is advice.best else row.label,
        "ships in": lambda row: row.ships_in,
    }
    if write_cut is not None:
        columns["cut"] = write_cut
    texts = len(columns)
    columns["padding"] = lambda row: words.percent(row.measures.padding_share)
    if advice.world_size > 1:
        columns["waiting"] = lambda row: words.percent(row.measures.straggler_waste)
    columns[_mixing(advice)] = lambda row: f"{row.mixing:.3f}"
    columns[_HEADS.get(advice.unit, advice.unit)] = lambda row: _write(row.price)
    rows = [tuple(write(row) for write in columns.values()) for row in _named(advice)]
    return Table(tuple(columns), rows, words=texts)

"""Tables of the lengths in a few numbers, and of the measures of strategies, as in `lengthwise compare`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from lengthwise.lengths import describe
from lengthwise.report import words

Row = Mapping[str, Any]

_COLUMNS: dict[str, Callable[[Row], str]] = {
    "batches": lambda row: f"{row['batches']:,}",
    "batch size": lambda row: _sizes(row),
    "padding": lambda row: words.percent(row["padding_share"]),
    "computed / useful": lambda row: words.computed(row["padding_share"]),
    "rows": lambda row: f"{row['rows']:,}",
    "fill": lambda row: f"{100 * row['fill']:.2f} %",
    "randomness": lambda row: f"{row['randomness']:.2f}",
    "cost spread": lambda row: words.percent(row["cost_spread"]),
    "waiting": lambda row: words.percent(row["straggler_waste"]),
    "largest cost": lambda row: f"{row['largest_cost']:,.0f}",
    "dropped": lambda row: f"{row['dropped']:,}",
    "over the budget": lambda row: f"{row['over_max_cost']:,}",
    "repeated": lambda row: f"{row['repeated']:,}",
}
_MEANINGS = {
    "padding": "the share of all computed frames that are padding",
    "computed / useful": "frames computed for each frame of data",
    "fill": "the share of computed frames that are data",
    "randomness": "1 if steps are random samples of the data, near 0 if all sequences of a step are equally long",
    "cost spread": "the standard deviation of the costs of batches, as a share of their mean",
    "waiting": "the share of time that ranks wait for the costliest rank",
    "largest cost": "padded frames of the costliest batch",
}
_OF_STEPS = ("waiting",)
_OF_ROWS = ("rows", "fill", "cost spread")
_NOT_OF_ROWS = ("padding", "computed / useful", "largest cost")


class Table(NamedTuple):
    """Rows of text below heads.

    The first `words` columns hold words, the others numbers. `meanings` explain heads, and `note` stands below the
    table. The row whose first cell is `best` stands out.
    """

    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    title: str = ""
    words: int = 1
    meanings: Sequence[tuple[str, str]] = ()
    note: str = ""
    best: str = ""


def measures(
    rows: Mapping[str, Row], *, steps: bool, packed: bool = False, best: str = "", columns: Sequence[str] = ()
) -> Table:
    """Returns a table with a line for each strategy. Columns that do not apply are left out.

    Args:
        rows: The measures of each strategy by its label.
        steps: True if a step has several batches.
        packed: True if rows are packed.
        best: The label of the recommended strategy.
        columns: The heads of the columns; by default all.
    """
    hidden = {*(() if steps else _OF_STEPS), *(_NOT_OF_ROWS if packed else _OF_ROWS)}
    for name, field in (("dropped", "dropped"), ("over the budget", "over_max_cost"), ("repeated", "repeated")):
        if not any(row[field] for row in rows.values()):
            hidden.add(name)  # a column of zeros
    heads = [head for head in columns or _COLUMNS if head not in hidden]
    cells = [(label, *(_COLUMNS[head](row) for head in heads)) for label, row in rows.items()]
    meanings = [(head, _MEANINGS[head]) for head in heads if head in _MEANINGS]
    return Table(("strategy", *heads), cells, "All measures", meanings=meanings, best=best)


class Tile(NamedTuple):
    """A number of the first strategy and of the best, with its name and meaning."""

    name: str
    before: str
    after: str
    meaning: str


def choose_tiles(rows: Mapping[str, Row], best: str, *, slots: int, seconds: Mapping[str, float]) -> list[Tile]:
    """Returns the main numbers of the first strategy and of the best. If both are the same, `before` is empty."""
    if not rows:
        return []
    first = next(iter(rows))
    names = ["padding", "randomness", *(["waiting"] if slots > 1 else [])]
    texts = {name: (_COLUMNS[name](rows[first]), _COLUMNS[name](rows[best]), _MEANINGS[name]) for name in names}
    if len(seconds) > 1 and first in seconds and best in seconds:
        texts["seconds"] = (f"{seconds[first]:.3g}", f"{seconds[best]:.3g}", "of an epoch, measured")
    texts["steps"] = (f"{rows[first]['steps']:,}", f"{rows[best]['steps']:,}", "of an epoch")
    return [Tile(name, "" if before == after else before, after, why) for name, (before, after, why) in texts.items()]


def facts(lengths: NDArray[Any]) -> Table:
    """Returns a table of the lengths in a few numbers, a column for each length of a sequence."""
    facts = describe(lengths).as_dict()
    names = ("lengths",) if facts["dims"] == 1 else tuple(f"length {dim + 1}" for dim in range(facts["dims"]))
    rows = [("sequences", *[f"{facts['count']:,}"] * len(names))]
    if facts["count"]:
        rows += [
            ("shortest", *_write(facts["min"])),
            *(
                (f"{share} % are at most", *_write(lengths[share] for lengths in facts["quantiles"]))
                for share in ("5", "50", "95")
            ),
            ("longest", *_write(facts["max"])),
            ("mean", *(f"{mean:,.1f}" for mean in facts["mean"])),
            ("total", *_write(facts["total"])),
        ]
    rows.append(("fingerprint", facts["fingerprint"], *[""] * (len(names) - 1)))
    return Table(("", *names), rows, "The lengths")


def _write(values: Any) -> list[str]:
    return [f"{value:,}" for value in values]


def _sizes(row: Row) -> str:
    low, high = row["smallest_batch"], row["largest_batch"]
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"

"""Helpers of the sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lengthwise_recipes.pages import table


def folded(
    heads: Sequence[str],
    rows: Iterable[tuple[str, ...]],
    shown: Callable[[tuple[str, ...]], bool],
    columns: Sequence[int] = (),
) -> str:
    """Returns the shown rows and columns of a table, with the whole table behind a click."""
    rows = list(rows)
    columns = columns or range(len(heads))
    short_rows = [[row[column] for column in columns] for row in rows if shown(row)]
    short_table = table([heads[column] for column in columns], short_rows)
    return f"{short_table}\n\n{behind_a_click(table(heads, rows), len(rows))}"


def behind_a_click(text: str, rows: int) -> str:
    """Returns a table of `rows` rows that opens on a click, on the site and on GitHub."""
    return f'<details markdown="1">\n<summary>All rows ({rows})</summary>\n\n{text}\n\n</details>'


def saving(share: float) -> str:
    """Writes a small share."""
    return f"{100 * share:.2f} %"


def processor(machine: dict[str, Any]) -> str:
    """Returns the processor or GPU, and the number of threads."""
    where = machine.get("device_name") or machine.get("processor") or machine.get("cpu")
    threads = f", {machine['threads']} thread{'s' * (machine['threads'] > 1)}" if "threads" in machine else ""
    return f"{where}{threads}"

"""What several sections write alike."""

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
    """Some rows of a long table, and some columns of a wide one; and all of it below, behind a click."""
    rows = list(rows)
    columns = columns or range(len(heads))
    some = table([heads[at] for at in columns], [[row[at] for at in columns] for row in rows if shown(row)])
    return f"{some}\n\n{behind_a_click(table(heads, rows), len(rows))}"


def behind_a_click(text: str, rows: int) -> str:
    """A table of so many rows that is shown when it is asked for, on the site and on GitHub."""
    return f'<details markdown="1">\n<summary>All rows ({rows})</summary>\n\n{text}\n\n</details>'


def saving(share: float) -> str:
    """A small share."""
    return f"{100 * share:.2f} %"


def processor(machine: dict[str, Any]) -> str:
    """What computed, and in how many threads."""
    where = machine.get("device_name") or machine.get("processor") or machine.get("cpu")
    threads = f", {machine['threads']} thread{'s' * (machine['threads'] > 1)}" if "threads" in machine else ""
    return f"{where}{threads}"

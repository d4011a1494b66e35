"""The section on the table of Ge et al. 2021."""

from __future__ import annotations

from typing import Any

from lengthwise_recipes.ge2021.table1 import read_row, tally


def ge2021_table1(document: dict[str, Any]) -> tuple[str, ...]:
    """Counts the numbers of the paper that ours agree with."""
    first, _, _ = tally(list(map(read_row, document["rows"]))).partition(". ")
    page = "The [page of the paper](/recipes/docs/papers/ge2021.md#table-1-the-knobs) has the table."
    return (f"{first}. Ours are means over {len(document['seeds'])} training sets of 10,480 clips. {page}",)

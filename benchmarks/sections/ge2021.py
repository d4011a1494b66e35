"""The section on the table of Ge et al. 2021."""

from __future__ import annotations

from typing import Any

from lengthwise_recipes.ge2021.table1 import read_row, tally


def ge2021_table1(document: dict[str, Any]) -> tuple[str, ...]:
    """Counts the numbers of the paper that ours agree with."""
    rows = document["rows"]
    answer = tally(list(map(read_row, rows)))
    note = (
        "The [page of the paper](/recipes/docs/papers/ge2021.md#table-1-the-knobs) has such a table. Each number is a "
        f"mean over {len(document['seeds'])} random training sets of 10,480 clips. The choice of the clips changes the "
        f"average batch length by about {abl_swing(rows):.0f} frames either way. So a single run of `lengthwise "
        "compare --subset 10480` may miss the paper by more than the mean does."
    )
    return answer, note


def abl_swing(rows: list[dict[str, Any]]) -> float:
    """Returns half of the range of the average batch length over the training sets, mean over the strategies."""
    swings = [(row["greatest"] - row["least"]) / 2 for row in rows if row["quantity"] == "abl"]
    return sum(swings) / len(swings)

"""The section on the table of Ge et al. 2021."""

from __future__ import annotations

from typing import Any

from lengthwise_recipes.ge2021.table1 import describe_tolerances
from lengthwise_recipes.intervals import interval
from lengthwise_recipes.pages import table


def ge2021_table1(document: dict[str, Any]) -> tuple[str, ...]:
    """Compares the numbers of the paper with ours."""
    digits = {"batches": 0, "zpr": 2, "abl": 1}
    rows = [
        (
            f"`{row['strategy']}`",
            row["sizes"],
            row["quantity"],
            *(f"{row[name]:.{digits[row['quantity']]}f}" for name in ("paper", "mean", "least", "greatest")),
            f"{interval(row['values']).smallest_difference:.2g}",
            "reproduced" if row["reproduced"] else "not",
        )
        for row in document["rows"]
    ]
    heads = ("strategy", "batch size", "quantity", "paper", "ours", "least", "greatest", "could tell", "verdict")
    reproduced = sum(row["reproduced"] for row in document["rows"])
    answer = f"{reproduced} of {len(rows)} numbers of the paper are reproduced: our mean is {describe_tolerances()}."
    note = (
        f"Each row is of {len(document['seeds'])} random training sets of 10,480 clips. The choice of the "
        f"clips changes the average batch length by about {abl_swing(document['rows']):.0f} frames either way. So a "
        "single run of `lengthwise compare --subset 10480` may miss the paper by more than the mean does. *Could "
        "tell*: the smallest difference of our mean from the number of the paper that these training sets would show "
        "in 4 of 5 tries (80 % power), in the unit of the quantity."
    )
    return answer, table(heads, rows), note


def abl_swing(rows: list[dict[str, Any]]) -> float:
    """Returns half of the range of the average batch length over the training sets, mean over the strategies."""
    swings = [(row["greatest"] - row["least"]) / 2 for row in rows if row["quantity"] == "abl"]
    return sum(swings) / len(swings)

"""The section on random steps."""

from __future__ import annotations

from typing import Any

from lengthwise_recipes.pages import percent, table


def steps(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns the padding of random steps by their number of batches."""
    by = {(row["data"], row["ranks"]): row for row in document["rows"] if row["way"] == "random steps"}
    data, ranks = (list(dict.fromkeys(case[place] for case in by)) for place in (0, 1))
    padded = [(name, *(percent(by[name, count]["padding_share"]) for count in ranks)) for name in data]
    budgets = ", ".join(f"{budget:,} on {name}" for name, budget in document["budgets"].items())
    answer = (
        f"Random steps pad less if a step has more batches: on {data[0]} lengths {padded[0][1]} with {ranks[0]} batch "
        f"and {padded[0][-1]} with {ranks[-1]}."
    )
    note = f"Under a budget of {budgets}. The JSON has other deals."
    return answer, table(("batches in a step", *map(str, ranks)), padded), note

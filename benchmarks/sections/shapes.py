"""The section on few shapes."""

from __future__ import annotations

from typing import Any

from lengthwise_recipes.pages import percent, table
from sections.shared import some_rows


def shapes(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns the padding of few shapes by their choice, and the waiting caused by multiples of counts."""
    one = document["shapes"]
    counts = document["shape_counts"]
    names = ("lengths", "padded lengths", f"{counts[0]} shape", *map(str, counts[1:]))
    padded = [
        (
            row["data"] + (f", multiples of {row['multiple']}" if row.get("multiple", 1) > 1 else ""),
            f"`{row['way']}`" if "_" in row["way"] else row["way"],
            *map(percent, row["padding"]),
        )
        for row in one
    ]
    last = {row["way"]: row["padding"][-1] for row in one if row["data"] == "long-tailed" and row["multiple"] == 1}
    answer = (
        f"{counts[-1]} shapes of `optimal_shapes` pad {percent(last['optimal_shapes'])} on long-tailed lengths. "
        f"{counts[-1]} edges of `optimal_edges` pad {percent(last['optimal_edges'])}, and powers of two "
        f"{percent(last['powers of two'])}."
    )
    budgets = ", ".join(f"{budget:,} on {name}" for name, budget in document["budgets"].items())
    note = (
        "The share of computed frames without data, by the number of shapes; each batch is padded to its shape. "
        f"Empty rows in the last batch of a shape count too. Budgets: {budgets}."
    )
    return answer, some_rows(names, padded, is_shown), note, *multiples(document)


def is_shown(row: tuple[str, ...]) -> bool:
    return row[0] == "long-tailed" and not row[1].startswith(("equal", "quantiles"))


def multiples(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns the waiting of ranks if batches hold multiples."""
    rows = document["multiples"]
    counts = sorted({row["multiple"] for row in rows})
    rows_by_case = {(row["data"], row["budget"], row["multiple"]): row for row in rows}
    heads = ("lengths", "budget", *(f"multiples of {count}" if count > 1 else "any count" for count in counts))
    table_rows = [
        (data, f"{budget:,}", *(percent(rows_by_case[data, budget, count]["waiting"]) for count in counts))
        for data, budget in dict.fromkeys((row["data"], row["budget"]) for row in rows)
    ]
    least, most = (rows_by_case["long-tailed", 20_000, count]["waiting"] for count in (counts[0], counts[-1]))
    answer = (
        f"Counts in multiples of {counts[-1]} make {document['ranks']} ranks wait {percent(most)} of the time in "
        f"random steps of long-tailed lengths under 20,000 frames, in place of {percent(least)}. "
        "A larger budget lowers it."
    )
    note = f"Waiting of `RandomSteps` by `count_multiple_of`, {document['epochs']} epochs."
    return answer, table(heads, table_rows), note

"""Padding and mixing of batches: at equal padding, and of streams."""

from __future__ import annotations

from typing import Any

from lengthwise_recipes.pages import percent, table
from sections.shared import some_rows


def mixing(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns the mixing of max-entropy over that of each strategy."""
    kinds = list(dict.fromkeys(point["strategy"].partition(":")[0] for point in data_points(document)))
    answer = (
        f"Max-entropy batching mixed more than {len(kinds)} other strategies at equal padding: at "
        f"{document['max_entropy_ahead']} of {document['points']} settings between 2 and 20 % padding. The table "
        "gives the ratios."
    )
    times = [(name, *(times_mixed(data["points"], kind) for kind in kinds)) for name, data in document["data"].items()]
    note = f"*Mixed more*: all {len(document['seeds'])} seeds are above all seeds of the other strategy."
    return answer, table(("lengths", *(f"`{kind}`" for kind in kinds)), times), note


def data_points(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the settings of all data sets."""
    return [point for data in document["data"].values() for point in data["points"]]


def times_mixed(points: list[dict[str, Any]], kind: str) -> str:
    """Returns the range of the mixing of max-entropy over that of a strategy."""
    settings = [point for point in points if point["strategy"].startswith(f"{kind}:")]
    times = [point["max_entropy_mixing"] / point["mixing"] for point in settings]
    return f"{min(times):.2f} to {max(times):.2f}"


def streams(document: dict[str, Any]) -> tuple[str, str, str]:
    """Returns a row for each data set, way and buffer."""
    rows = document["rows"]
    cells = [
        (
            row["data"],
            row["way"],
            "all" if row["buffer"] is None else f"{row['buffer']:,}",
            percent(row["padding_share"]),
            f"{row['mixing']:.3f}",
            f"{row['largest_cost'] / document['budgets'][row['data']]:.2f}",
        )
        for row in rows
    ]
    heads = ("lengths", "way", "sees", "padding", "mixing", "costliest / budget")
    stream_rows = [row for row in rows if row["way"] == "stream, 10%" and row["buffer"] == 4_096]
    plans = {row["data"]: row for row in rows if row["way"] == "plan of all, 10%"}
    answer = "A stream that sees 4,096 sequences at a time pads and mixes nearly like a plan of all: " + "; ".join(
        f"on {row['data']} {percent(row['padding_share'])} padding and mixing {row['mixing']:.3f}, against "
        f"{percent(plans[row['data']]['padding_share'])} and {plans[row['data']]['mixing']:.3f}"
        for row in stream_rows
    )
    note = (
        "*Sees*: sequences in the buffer. Budgets are "
        + ", ".join(f"{budget:,} ({name})" for name, budget in document["budgets"].items())
        + f". lhotse is {document['lhotse']}: it may exceed its budget, and in a small buffer few buckets are full. "
        f"Mixing in {document['bins']} bins; means over {len(document['seeds'])} seeds of {document['epochs']} epochs."
    )
    return (
        f"{answer}.",
        some_rows(heads, cells, lambda row: row[2] in ("4,096", "all") and "2%" not in row[1]),
        note,
    )

"""Padding and mixing of batches: at equal padding, near the limits, of streams, and by the cut."""

from __future__ import annotations

import math
from typing import Any

from lengthwise_recipes.pages import percent, table
from sections.shared import behind_a_click, folded


def mixing(document: dict[str, Any]) -> tuple[str, ...]:
    """At 5, 10 and 20 % padding or the nearest that a strategy has, its mixing beside max-entropy's and the limit."""
    rows = []
    for name, data in document["data"].items():
        kinds = dict.fromkeys(point["strategy"].partition(":")[0] for point in data["points"])
        for kind in kinds:
            points = [point for point in data["points"] if point["strategy"].startswith(f"{kind}:")]
            for share in (0.05, 0.10, 0.20):
                near = min(points, key=lambda point: abs(point["padding_share"] - share))
                rows.append((name, *mixing_row(near)))
    heads = ("lengths", "strategy", "padding", "mixing", "max-entropy's mixing", "at padding", "limit")
    kinds = list(dict.fromkeys(point["strategy"].partition(":")[0] for point in data_points(document)))
    answer = (
        f"Max-entropy batching mixed more than {len(kinds)} other strategies at equal padding: at "
        f"{document['max_entropy_ahead']} of {document['points']} settings between 2 and 20 % padding. The first table "
        "says how many times as much. Below 2 % padding it may mix less: see the next section."
    )
    times = [(name, *(times_mixed(data["points"], kind) for kind in kinds)) for name, data in document["data"].items()]
    note = (
        f"*Mixed more*: every one of {len(document['seeds'])} seeds lies above every seed of the other. By chance "
        f"alone that comes once in {math.comb(2 * len(document['seeds']), len(document['seeds']))} settings. All rows "
        "are those nearest to 5, 10 and 20 % padding."
    )
    every = behind_a_click(table(heads, dict.fromkeys(rows)), len(dict.fromkeys(rows)))
    return answer, table(("lengths", *(f"`{kind}`" for kind in kinds)), times), every, note


def data_points(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings of all lengths."""
    return [point for data in document["data"].values() for point in data["points"]]


def times_mixed(points: list[dict[str, Any]], kind: str) -> str:
    """How many times the mixing of a strategy max-entropy batching has, from least to greatest."""
    own = [point for point in points if point["strategy"].startswith(f"{kind}:")]
    times = [point["max_entropy_mixing"] / point["mixing"] for point in own]
    return f"{min(times):.2f} to {max(times):.2f}"


def mixing_row(point: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"`{point['strategy']}`",
        percent(point["padding_share"]),
        f"{point['mixing']:.3f}",
        f"{point['max_entropy_mixing']:.3f}",
        percent(point["max_entropy_padding_share"]),
        f"{point['limit']:.3f}",
    )


def mixing_digits(document: dict[str, Any]) -> tuple[str, ...]:
    """Optimal buckets and max-entropy batching of the same padding, each beside the limit."""
    rows = [
        (
            f"`{each['theirs']['strategy']}`",
            *(cell for side in ("theirs", "ours") for cell in digits_cells(each[side])),
            "less" if each["behind"] else "more" if each["ours"]["least"] > each["theirs"]["greatest"] else "not told",
        )
        for each in document["rows"]
    ]
    heads = ("buckets", "padding", "mixing", "of the limit", "max-entropy's padding", "mixing", "of the limit", "mixes")
    behind = [each["theirs"]["padding_share"] for each in document["rows"] if each["behind"]]
    ahead = [
        each["theirs"]["padding_share"]
        for each in document["rows"]
        if each["ours"]["least"] > each["theirs"]["greatest"]
    ]
    answer = (
        "Where little is padded, optimal buckets can mix more than max-entropy batching: on spoken digits up to "
        f"{percent(max(behind))} padding. From {percent(min(ahead))} on max-entropy mixes more."
    )
    note = (
        f"*Mixes*: max-entropy less or more, where every one of {len(document['seeds'])} seeds lies on that side of "
        f"every seed of the other. Data: {document['sequences']:,} spoken digits (Free Spoken Digit Dataset), lengths "
        "in samples at 8 kHz, batches of 16."
    )
    return answer, table(heads, rows), note


def streams(document: dict[str, Any]) -> tuple[str, str, str]:
    """One row for each data set, way and buffer."""
    rows = document["rows"]
    cells = [
        (
            row["data"],
            row["way"],
            "all" if row["buffer"] is None else f"{row['buffer']:,}",
            percent(row["padding_share"]),
            f"{row['mixing']:.3f}",
            f"{row['largest_cost'] / document['budgets'][row['data']]:.2f}",
            f"{row['mean_batch']:.1f}",
        )
        for row in rows
    ]
    heads = ("lengths", "way", "sees", "padding", "mixing", "costliest / budget", "batch size")
    far = [row for row in rows if row["way"] == "stream, 10%" and row["buffer"] == 4_096]
    near = [next(own for own in rows if own["data"] == row["data"] and own["way"] == "plan of all, 10%") for row in far]
    answer = "A stream that sees 4,096 sequences at a time pads and mixes nearly as a plan of all: " + "; ".join(
        f"on {row['data']} {percent(row['padding_share'])} padding and mixing {row['mixing']:.3f}, against "
        f"{percent(all_of['padding_share'])} and {all_of['mixing']:.3f}"
        for row, all_of in zip(far, near, strict=True)
    )
    note = (
        "*Sees*: sequences in the buffer. Budgets are "
        + ", ".join(f"{budget:,} ({name})" for name, budget in document["budgets"].items())
        + f". lhotse is {document['lhotse']}: it may exceed its budget, and in a small buffer few buckets are full. "
        f"Mixing in {document['bins']} bins; means over {len(document['seeds'])} seeds of {document['epochs']} epochs."
    )
    return (
        f"{answer}.",
        folded(heads, cells, lambda row: "2%" not in row[1] and row[2] in ("256", "4,096", "all")),
        note,
    )


def digits_cells(found: dict[str, Any]) -> tuple[str, ...]:
    return percent(found["padding_share"]), f"{found['mixing']:.3f}", f"{found['share_of_limit']:.2f}"

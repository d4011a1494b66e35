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


def limits(document: dict[str, Any]) -> tuple[str, ...]:
    """For each data set and cut: the shares of the padding of random batches, and what comes near each."""
    rows = []
    for name, cut in dict.fromkeys((row["lengths"], cut_of(row)) for row in document["rows"]):
        points = [row for row in document["rows"] if (row["lengths"], cut_of(row)) == (name, cut)]
        most = next(row["padding_share"] for row in points if row["strategy"] == "random")
        shown = [row for share in SHARES_OF_RANDOM for row in nearest(points, share * most)]
        ends = [row for row in points if row["strategy"] in ("sorted", "random")]
        rows += [(name, cut, *limits_row(row)) for row in (ends[1], *shown, ends[0])]
    of_each = (
        cell for of in ("endless batches", "such batches", "such epochs") for cell in (f"limit of {of}", "of it")
    )
    heads = ("lengths", "batch", "strategy", "padding", "mixing", *of_each)
    ours = [row for row in document["rows"] if row["strategy"].startswith("max-entropy")]
    by_size, by_budget = ([row for row in ours if kind in row] for kind in ("batch_size", "budget"))
    near, near_in_budget = (
        sum(row["mixing"] >= 0.95 * row["epoch_limit"] for row in own) for own in (by_size, by_budget)
    )
    least = min(row["mixing"] / row["epoch_limit"] for row in by_budget)
    answer = (
        "An epoch takes each sequence once, which lowers the limit of mixing. In batches of a fixed size, max-entropy "
        f"has at least 95 % of this lower limit at {near} of {len(by_size)} settings. The other {len(by_size) - near} "
        f"ask for less padding than sorted batches have. Under a budget it has at least 95 % at {near_in_budget} of "
        f"{len(by_budget)} settings, and {100 * least:.0f} % at the worst."
    )
    note = (
        "*Limit of such epochs*: `mixing_limit(batch_size=..., batches=...)`, which knows that each sequence is taken "
        "once, by so many batches; under a budget `mixing_limit(budget=..., empty_places=...)`, by batches that leave "
        "so many places empty. All rows have two more limits. That of endless batches is the highest. That of such "
        "batches, `mixing_limit(batch_size=...)` or `mixing_limit(budget=...)`, knows that one sequence of a batch is "
        "as long as the batch is padded to. The rows lie within a quarter of 2, 5, 10, 20, 50 and 90 % of the padding "
        "of random batches. At each stands max-entropy, and the best of semi-sorted, alternated, bucketed and optimal "
        "buckets, by the share of the limit. The JSON has every setting. Many buckets can pad less than sorting does, "
        "in more batches, because the last batch of a bucket is smaller. Mixing is estimated in "
        f"{document['bins']:,} bins on {document['sequences']:,} sequences of one seed's epochs."
    )
    first = rows[0][:2]
    columns = (0, 1, 2, 3, 4, 9, 10)
    return answer, folded(heads, dict.fromkeys(rows), lambda row: row[:2] == first, columns), note


def best_pools(document: dict[str, Any]) -> tuple[str, ...]:
    """One row for each small set under each cut."""
    near, rows = 0.95, []
    for name, cut in dict.fromkeys((row["lengths"], cut_of(row)) for row in document["rows"]):
        own = [row for row in document["rows"] if (row["lengths"], cut_of(row)) == (name, cut)]
        reached, least = shares_of_best(own, near)
        many = f"{max(row['batchings'] for row in own):,}"
        rows.append((name, cut, many, f"{len(own)}", f"{reached}", f"{least:.2f}"))
    reached, least = shares_of_best(document["rows"], near)
    count = len(document["rows"])
    out_of_reach = sum(row["bound"] < near * row["limit"] for row in document["rows"])
    answer = (
        f"Of small sets all batchings can be looked through. At {reached} of {count} settings the best pool of them "
        f"has at least 95 % of the limit of epochs. At {out_of_reach} no pool has: the limit is too high there. At the "
        f"worst, nothing has more than {100 * least:.0f} % of it."
    )
    note = (
        "A pool is any mixture of batchings, as of many epochs. *Batchings*: those that differ in how many sequences "
        "of each length are padded to each length, the most of all settings of the row. A setting is a number of "
        "batches, or of empty places, and a padding. *Least share*: of the limit, which no pool passes there. The "
        "limit leaves out that batches and sequences are whole. That counts most where few batchings are possible: at "
        "the least padding and at the most."
    )
    heads = ("lengths", "batch", "batchings", "settings", "within 5 %", "least share")
    return answer, folded(heads, rows, lambda row: row[0] == rows[0][0]), note


def shares_of_best(rows: list[dict[str, Any]], near: float) -> tuple[int, float]:
    """At how many of the rows the best pool has a share of `near` of the limit, and the least share of a bound."""
    reached = sum(row["mixing"] >= near * row["limit"] for row in rows)
    return reached, min(row["bound"] / row["limit"] for row in rows)


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


SHARES_OF_RANDOM = (0.02, 0.05, 0.1, 0.2, 0.5, 0.9)


def nearest(points: list[dict[str, Any]], padding: float) -> list[dict[str, Any]]:
    """Of the rows within a quarter of this padding: max-entropy's nearest, and the others' best by share of limit."""
    near = [row for row in points if abs(row["padding_share"] - padding) <= 0.25 * padding]
    near = [row for row in near if row["strategy"] not in ("random", "sorted")]
    ours = [row for row in near if row["strategy"].startswith("max-entropy")]
    others = [row for row in near if row not in ours]
    best = sorted(ours, key=lambda row: abs(row["padding_share"] - padding))[:1]
    return best + sorted(others, key=lambda row: -row["mixing"] / row["batch_limit"])[:1]


def limits_row(row: dict[str, Any]) -> tuple[str, ...]:
    limits = [row.get(name) for name in ("limit", "batch_limit", "epoch_limit")]
    shares = ((f"{limit:.3f}", f"{row['mixing'] / limit:.2f}") if limit else ("", "") for limit in limits)
    cells = [cell for pair in shares for cell in pair]
    return f"`{row['strategy']}`", percent(row["padding_share"]), f"{row['mixing']:.3f}", *cells


def cut_of(row: dict[str, Any]) -> str:
    """The cut of a row, in words."""
    return str(row["batch_size"]) if "batch_size" in row else f"{row['budget']:,.0f} frames"


def digits_cells(found: dict[str, Any]) -> tuple[str, ...]:
    return percent(found["padding_share"]), f"{found['mixing']:.3f}", f"{found['share_of_limit']:.2f}"

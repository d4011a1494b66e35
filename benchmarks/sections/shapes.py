"""Packed rows, bucket edges and few shapes."""

from __future__ import annotations

from statistics import median
from typing import Any

from lengthwise_recipes.pages import percent, table
from sections.shared import folded


def packing(document: dict[str, Any]) -> tuple[str, ...]:
    """How full and how mixed the rows of each packer are, and how many sequences it packs a second."""
    rows = [packing_row(row) for row in document["rows"]]
    heads = ("lengths", "sequences", "packer", "rows", "fill", "pair mixing", "attention spread")
    hard = {row["method"]: row for row in document["rows"] if (row["data"], row["sequences"]) == HARD}
    pool, best = hard["pool of 1,024"], hard["best-fit"]
    answer = (
        f"Rows that are filled from a pool of 1,024 sequences are {percent(pool['fill'])} full, and rows by best fit "
        f"{percent(best['fill'])} (lengths of mean 1,400). How random are the lengths in a row? Pair mixing is 1 where "
        f"they are random. It is {pool['pair_mixing']:.2f} with the pool and {best['pair_mixing']:.2f} by best fit."
    )
    note = (
        f"Rows of {document['capacity']:,}. *Mean*: log-normal lengths of that mean, sigma {document['sigma']:g}, cut "
        "off at the capacity. GSM8K: questions with answers; HH harmless: chosen answers; both in tokens. All packers "
        "get the same lengths in the same random order. *Fill*: the share of computed tokens that are data. *Pair "
        "mixing*: 1 where a sequence tells nothing about the length of another in its row. *Attention spread*: the "
        "standard deviation of the sum of squared lengths of a row, as a share of the mean. *Sequences / s*: the "
        f"packing alone, in processor time, the median of {document['repeats']} interleaved repeats. *In a plan*: all "
        f"of `make_plan`. Ours, in bold, are compiled. TRL {document['trl']} packs an Arrow table and copies its "
        "tokens. The others are written in Python for this benchmark."
    )
    hardest = folded((*heads, "sequences / s", "in a plan"), rows, lambda row: row[:2] == (HARD[0], f"{HARD[1]:,}"))
    return answer, hardest, note, *packing_deals(document)


def packing_deals(document: dict[str, Any]) -> tuple[str, str, str]:
    """What ranks wait and how much steps vary, by each deal of the same rows."""
    rows = [
        (
            row["data"],
            str(row["ranks"]),
            str(row["rows_of_batch"]),
            f"`{row['deal']}`",
            f"{100 * row['straggler_waste']:.2f} %",
            f"{row['step_length_variance']:.2f}",
            percent(row["step_cost_spread"]),
            f"{100 * row['fill']:.2f} %",
            f"{row['pair_mixing']:.3f}",
        )
        for row in document["deals"]
    ]
    heads = ("lengths", "ranks", "rows", "deal", "waiting", "steps vary", "steps cost", "fill", "pair mixing")
    of = {row["deal"]: row for row in document["deals"] if (row["data"], row["ranks"], row["rows_of_batch"]) == EIGHT}
    balanced, steps = of["Balanced"], of["RandomSteps"]
    answer = (
        f"On lengths of mean 1,400, 8 ranks of 8 rows wait {100 * steps['straggler_waste']:.2f} % with `RandomSteps` "
        f"and {100 * balanced['straggler_waste']:.2f} % with `Balanced`. With `RandomSteps` the mean length of steps "
        f"varies {steps['step_length_variance']:.1f} times as much as that of random samples, with `Balanced` "
        f"{balanced['step_length_variance']:.1f} times as much."
    )
    note = (
        "*Rows*: those of a batch. *Waiting*: the share of time that ranks wait for the slowest of their step, if "
        "attention alone cost time. *Steps vary*: how much the mean length of steps varies, 1 as that of random "
        "samples does. *Steps cost*: the standard deviation of what a whole step costs, as a share of the mean. "
        "`Balanced` lets batches of similar cost share a step, and `Mixed` random ones. `RandomSteps` shares out the "
        "rows of a random step."
    )
    shown = tuple(map(str, EIGHT))
    return answer, folded(heads, rows, lambda row: row[:3] == shown), note


HARD = ("mean 1,400", 100_000)  # lengths that leave room in a row, and how many


EIGHT = ("mean 1,400", 8, 8)  # lengths, ranks, and rows of a batch


def packing_row(row: dict[str, Any]) -> tuple[str, ...]:
    number = row["sequences"]

    def rate(seconds: list[float]) -> str:
        return f"{float(f'{number / median(seconds):.2g}'):,.0f}"

    return (
        row["data"],
        f"{row['sequences']:,}",
        f"**{row['method']}**" if row["ours"] else row["method"],
        f"{row['rows']:,}",
        f"{100 * row['fill']:.2f} %",
        f"{row['pair_mixing']:.3f}",
        percent(row["cost_spread"]),
        rate(row["seconds"]),
        rate(row["plan_seconds"]) if "plan_seconds" in row else "",
    )


def edges(document: dict[str, Any]) -> tuple[str, ...]:
    """Seconds for optimal edges against the paper's recurrence."""
    rows = [
        (
            f"{row['distinct_lengths']:,}",
            f"{row['seconds']:.4f}",
            f"{row['recurrence_seconds']:.4f}" if "recurrence_seconds" in row else "",
            {True: "yes", False: "NO", None: ""}[row.get("same_optimum")],
        )
        for row in document["rows"]
    ]
    heads = ("distinct lengths", "`optimal_edges`, s", "the paper's recurrence, s", "same optimum")
    last = document["rows"][-1]
    answer = (
        f"One core finds the edges of {document['buckets']} buckets for {last['distinct_lengths']:,} distinct lengths "
        f"in {last['seconds']:.2f} seconds."
    )
    note = "Where a cell is empty, the recurrence was not tried."
    return answer, table(heads, rows), note


def shapes(document: dict[str, Any]) -> tuple[str, ...]:
    """What few shapes pad, by how they are chosen; what multiples of counts cost."""
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
        f"{counts[-1]} shapes of `optimal_shapes` pad {percent(last['optimal_shapes'])} on long-tailed lengths. As "
        f"many of `optimal_edges` pad {percent(last['optimal_edges'])}, powers of two {percent(last['powers of two'])}."
    )
    budgets = ", ".join(f"{budget:,} on {name}" for name, budget in document["budgets"].items())
    note = (
        "The share of computed frames without data, where each batch is padded to its shape, by the number of shapes. "
        f"Rows that stay empty in the last batch of a shape count. Budgets: {budgets}. *Multiples of 8*: padded "
        "lengths and rows. *Powers of two*: the longest ones needed, so many at most."
    )
    return answer, table(names, padded), note, *multiples(document)


def multiples(document: dict[str, Any]) -> tuple[str, ...]:
    """How long ranks wait where batches hold multiples."""
    rows = document["multiples"]
    wanted = sorted({row["multiple"] for row in rows})
    found = {(row["data"], row["budget"], row["multiple"]): row for row in rows}
    heads = ("lengths", "budget", *(f"multiples of {each}" if each > 1 else "any count" for each in wanted))
    table_rows = [
        (data, f"{budget:,}", *(percent(found[data, budget, each]["waiting"]) for each in wanted))
        for data, budget in dict.fromkeys((row["data"], row["budget"]) for row in rows)
    ]
    least, most = (found["long-tailed", 20_000, each]["waiting"] for each in (wanted[0], wanted[-1]))
    answer = (
        f"Counts in multiples of {wanted[-1]} make {document['ranks']} ranks wait {percent(most)} of the time in "
        f"random steps of long-tailed lengths under 20,000 frames, in place of {percent(least)}. "
        "A larger budget lowers it."
    )
    note = f"Waiting of `RandomSteps` by `count_multiple_of`, {document['epochs']} epochs."
    return answer, table(heads, table_rows), note

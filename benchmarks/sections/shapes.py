"""The sections on packed rows, bucket edges and few shapes."""

from __future__ import annotations

from statistics import median
from typing import Any

from lengthwise_recipes.pages import percent, table
from sections.shared import some_rows


def packing(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns fill and randomness of the rows of each packer, and its sequences per second."""
    rows = [packing_row(row) for row in document["rows"]]
    heads = ("lengths", "sequences", "packer", "rows", "fill", "randomness", "attention spread")
    hard = {row["method"]: row for row in document["rows"] if (row["data"], row["sequences"]) == HARD}
    pool, best = hard["pool of 1,024"], hard["best-fit"]
    answer = (
        f"Rows from a pool of 1,024 sequences are {percent(pool['fill'])} full, and rows by best fit "
        f"{percent(best['fill'])} (lengths of mean 1,400). Randomness is 1 if the lengths in a row are random. It is "
        f"{pool['row_randomness']:.2f} with the pool and {best['row_randomness']:.2f} by best fit."
    )
    note = (
        f"Rows of {document['capacity']:,}. *Mean*: log-normal lengths of that mean, sigma {document['sigma']:g}, cut "
        "off at the capacity. GSM8K: questions with answers; HH harmless: chosen answers; both in tokens. All packers "
        "get the same lengths in the same random order. *Fill*: the share of computed tokens that are data. "
        "*Randomness*: 1 if the lengths of two sequences of a row are independent. *Attention spread*: the standard "
        "deviation of the sum of squared lengths of a row, as a share of the mean. *Sequences / s*: the "
        f"packing alone, in processor time, the median of {document['repeats']} interleaved repeats. *In a plan*: all "
        f"of `make_plan`. Ours, in bold, are compiled. TRL {document['trl']} packs an Arrow table and copies its "
        "tokens. The others are written in Python for this benchmark."
    )
    hardest = some_rows((*heads, "sequences / s", "in a plan"), rows, lambda row: row[:2] == (HARD[0], f"{HARD[1]:,}"))
    return answer, hardest, note, *packing_deals(document)


def packing_deals(document: dict[str, Any]) -> tuple[str, str, str]:
    """Returns the waiting of ranks and the variation of steps, by each deal of the same rows."""
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
            f"{row['row_randomness']:.3f}",
        )
        for row in document["deals"]
    ]
    heads = ("lengths", "ranks", "rows", "deal", "waiting", "steps vary", "steps cost", "fill", "randomness")
    of = {row["deal"]: row for row in document["deals"] if (row["data"], row["ranks"], row["rows_of_batch"]) == EIGHT}
    balanced, steps = of["Balanced"], of["RandomSteps"]
    answer = (
        f"On lengths of mean 1,400, 8 ranks of 8 rows wait {100 * steps['straggler_waste']:.2f} % with `RandomSteps` "
        f"and {100 * balanced['straggler_waste']:.2f} % with `Balanced`. With `RandomSteps` the mean length of steps "
        f"varies {steps['step_length_variance']:.1f} times as much as that of random samples, with `Balanced` "
        f"{balanced['step_length_variance']:.1f} times as much."
    )
    note = (
        "*Rows*: rows of a batch. *Waiting*: the share of time that ranks wait for the slowest of their step, if only "
        "attention costs time. *Steps vary*: the variance of the mean length of steps, relative to random samples. "
        "*Steps cost*: the standard deviation of the cost of a whole step, as a share of the mean. `Balanced` puts "
        "batches of similar cost into a step, and `Mixed` random ones. `RandomSteps` divides the rows of a random step."
    )
    shown = tuple(map(str, EIGHT[:2]))
    return answer, some_rows(heads, rows, lambda row: row[:2] == shown and row[2] in ("1", "8")), note


HARD = ("mean 1,400", 100_000)  # lengths that leave room in a row, and their number
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
        f"{row['row_randomness']:.3f}",
        percent(row["cost_spread"]),
        rate(row["seconds"]),
        rate(row["plan_seconds"]) if "plan_seconds" in row else "",
    )


def edges(document: dict[str, Any]) -> tuple[str, ...]:
    """Compares the seconds of optimal edges with the recurrence of the paper."""
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
    note = "An empty cell: the recurrence was not tried."
    return answer, table(heads, rows), note


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
        f"Empty rows in the last batch of a shape count too. Budgets: {budgets}. *Multiples of 8*: padded lengths and "
        "rows. *Powers of two*: the longest ones needed."
    )
    return answer, some_rows(names, padded, lambda row: "multiples" not in row[0]), note, *multiples(document)


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

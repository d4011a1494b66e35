"""The sections on packed rows, bucket edges and few shapes."""

from __future__ import annotations

from statistics import median
from typing import Any

from lengthwise_recipes.pages import percent, table
from sections.shared import some_rows


def packing(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns fill and randomness of the rows of each packer, and its sequences per second."""
    rows = [packing_row(row) for row in document["rows"] if (row["data"], row["sequences"]) == HARD]
    heads = ("packer", "fill", "randomness", "attention spread", "sequences / s")
    hard = {row["method"]: row for row in document["rows"] if (row["data"], row["sequences"]) == HARD}
    pool, best = hard["pool of 1,024"], hard["best-fit"]
    answer = (
        f"Rows from a pool of 1,024 sequences are {percent(pool['fill'])} full, and rows by best fit "
        f"{percent(best['fill'])}. Randomness is 1 if the lengths in a row are random. It is "
        f"{pool['row_randomness']:.2f} with the pool and {best['row_randomness']:.2f} by best fit."
    )
    note = (
        f"{HARD[1]:,} log-normal lengths of {HARD[0]}, sigma {document['sigma']:g}, in rows of "
        f"{document['capacity']:,}; the JSON has others. *Fill*: the share of computed tokens that are data. "
        "*Attention spread*: the standard deviation of the sum of squared lengths of a row, as a share of the mean. "
        f"*Sequences / s*: the packing alone, the median of {document['repeats']} repeats. Ours, in bold, are "
        f"compiled. TRL {document['trl']} packs an Arrow table. The others are written in Python."
    )
    return answer, table(heads, rows), note, *packing_deals(document)


def packing_deals(document: dict[str, Any]) -> tuple[str, str, str]:
    """Returns the waiting of ranks and the variation of steps, by each deal of the same rows."""
    rows = [
        (
            str(row["rows_of_batch"]),
            f"`{row['deal']}`",
            f"{100 * row['straggler_waste']:.2f} %",
            f"{row['step_length_variance']:.2f}",
        )
        for row in document["deals"]
        if (row["data"], row["ranks"]) == EIGHT[:2] and row["rows_of_batch"] in (1, 8)
    ]
    heads = ("rows", "deal", "waiting", "steps vary")
    of = {row["deal"]: row for row in document["deals"] if (row["data"], row["ranks"], row["rows_of_batch"]) == EIGHT}
    balanced, steps = of["Balanced"], of["RandomSteps"]
    answer = (
        f"8 ranks of 8 rows wait {100 * steps['straggler_waste']:.2f} % with `RandomSteps`, and "
        f"{100 * balanced['straggler_waste']:.2f} % with `Balanced`, whose steps vary more in length:"
    )
    note = (
        "*Rows*: rows of a batch. *Waiting* is that of attention. *Steps vary*: the variance of the mean length of "
        "steps, relative to random samples."
    )
    return answer, table(heads, rows), note


HARD = ("mean 1,400", 100_000)  # lengths that leave room in a row, and their number
EIGHT = ("mean 1,400", 8, 8)  # lengths, ranks, and rows of a batch


def packing_row(row: dict[str, Any]) -> tuple[str, ...]:
    rate = row["sequences"] / median(row["seconds"])
    return (
        f"**{row['method']}**" if row["ours"] else row["method"],
        f"{100 * row['fill']:.2f} %",
        f"{row['row_randomness']:.3f}",
        percent(row["cost_spread"]),
        f"{float(f'{rate:.2g}'):,.0f}",
    )


def edges(document: dict[str, Any]) -> tuple[str, ...]:
    """Compares the seconds of optimal edges with the recurrence of the paper."""
    last, compared = document["rows"][-1], [row for row in document["rows"] if "recurrence_seconds" in row]
    agrees = "the same optimum" if all(row["same_optimum"] for row in compared) else "ANOTHER OPTIMUM"
    answer = (
        f"`optimal_edges` finds the edges of {document['buckets']} buckets for {last['distinct_lengths']:,} distinct "
        f"lengths in {last['seconds']:.2f} seconds of one core. For {compared[-1]['distinct_lengths']:,} it takes "
        f"{compared[-1]['seconds']:.3f} seconds, and the paper's recurrence, with {agrees}, "
        f"{compared[-1]['recurrence_seconds']:.3f}."
    )
    return (answer,)


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
    return "multiples" not in row[0] and not row[1].startswith(("equal", "quantiles"))


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

"""The sections on whole steps: padding, mixing and waiting."""

from __future__ import annotations

from typing import Any

from lengthwise_recipes.pages import percent, table

SHOWN_RANKS = 8


def steps(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns the padding of random steps by their number of batches, then all ways to make steps of 8."""
    by = {(row["data"], row["way"], row["ranks"]): row for row in document["rows"]}
    names = ("data", "way", "ranks")
    data, ways, ranks = (list(dict.fromkeys(row[name] for row in document["rows"])) for name in names)
    padded = [
        (f"{name}, {way}", *(percent(by[name, way, count]["padding_share"]) for count in ranks))
        for name in data
        for way in ("random steps", "bound")
        if (name, way, ranks[0]) in by
    ]
    rows = [(name, way, *step_cells(by[name, way, SHOWN_RANKS])) for name in data for way in ways if way != "bound"]
    budgets = ", ".join(f"{budget:,} on {name}" for name, budget in document["budgets"].items())
    heads = ("lengths", "steps of", "padding", "step mixing", "vary", "waiting", "costliest")
    least, most = (percent(by[data[0], "random steps", count]["padding_share"]) for count in (ranks[0], ranks[-1]))
    answer = (
        f"Random steps pad less if a step has more batches: on {data[0]} lengths {least} with {ranks[0]} batch "
        f"and {most} with {ranks[-1]}."
    )
    note = (
        f"First table: padding by the number of batches in a step, under a budget ({budgets}). *Bound*: the padding of "
        "equally many optimal buckets, the least of unlimited random steps. Finite steps of a long tail pad less. "
        f"Second table: steps of {SHOWN_RANKS} batches; the JSON has 1 to {ranks[-1]}. *Vary*: the variance of "
        "the mean length of steps, relative to random samples. *Waiting*: the share of time that ranks wait for the "
        "costliest. *Costliest*: the padded frames of the costliest batch. `batch_rebalance` has the mean number of "
        "sequences of random steps, and no budget."
    )
    return answer, table(("batches in a step", *map(str, ranks)), padded), table(heads, rows), note


def step_cells(row: dict[str, Any]) -> tuple[str, ...]:
    vary = row["step_length_variance"]
    return (
        percent(row["padding_share"]),
        f"{row['step_mixing']:.3f}",
        f"{vary:.2g}" if vary < 100 else f"{vary:.0f}",
        percent(row["straggler_waste"]),
        f"{row['largest_cost']:,.0f}",
    )


WAITING_RANKS = (2, 8, 32)


def waiting(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns mixing and waiting of each deal, for some numbers of ranks."""
    by = {(row["data"], row["cut"], row["way"], row["ranks"]): row for row in document["rows"]}
    kinds = {"fixed": f"{document['batch_size']} sequences", "budget": "a budget"}
    rows = [
        (
            f"{name}, {kinds[cut]}",
            way,
            percent(by[name, cut, way, 8]["padding_share"]),
            *(cell for ranks in WAITING_RANKS for cell in waiting_cells(by[name, cut, way, ranks])),
        )
        for name, cut, way in dict.fromkeys((row["data"], row["cut"], row["way"]) for row in document["rows"])
    ]
    measures = (f"{measure}, {ranks}" for ranks in WAITING_RANKS for measure in ("step mixing", "waiting"))
    name = list(dict.fromkeys(row["data"] for row in document["rows"]))[-1]
    least, steps = (by[name, "fixed", way, 8] for way in ("balanced", "random steps"))
    answer = (
        f"On {name}, 8 ranks take batches of {kinds['fixed']}. Step mixing is {least['step_mixing']:.2f} if batches "
        f"of similar cost share a step, and ranks wait {percent(least['straggler_waste'])}. With random steps it is "
        f"{steps['step_mixing']:.2f}: they wait {percent(steps['straggler_waste'])}, and pad "
        f"{percent(steps['padding_share'])} instead of {percent(least['padding_share'])}."
    )
    note = (
        f"Batches of max-entropy at {percent(document['padding'])} padding, dealt to "
        f"{', '.join(map(str, WAITING_RANKS))} ranks; below them random steps. The padding is that for 8 ranks; "
        "the JSON has 1 to 64 ranks. Batches under a budget cost about the same: any of them may share a step, and "
        "ranks hardly wait."
    )
    return answer, table(("batches of", "deal", "padding", *measures), rows), note


def waiting_cells(row: dict[str, Any]) -> tuple[str, ...]:
    return f"{row['step_mixing']:.2f}", percent(row["straggler_waste"])

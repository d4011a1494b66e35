"""The sections on whole steps: padding, their mixing, and waiting."""

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


SHOWN_DATA = ("long-tailed", "LJSpeech", "chats")
SHOWN_WORLDS = ((1, 1), (8, 4))
SHOWN_WAYS = ("default", "default of before", "group_by_length", "30 buckets (NeMo, lhotse)")


def prices(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns the price of each way, by lengths and world, for frames and for attention."""
    names = ("data", "way", "world_size", "micro_batches", "quadratic")
    by = {tuple(row[name] for name in names): row for row in document["rows"]}
    cases = list(dict.fromkeys((row["data"], *(row[name] for name in names[2:])) for row in document["rows"]))

    def at(way: str, case: tuple[Any, ...]) -> float:
        return by[case[0], way, *case[1:]]["price"]

    costs = (0.0, max(case[-1] for case in cases))
    rows = [
        (
            f"{name}, {ranks} x {each}",
            way,
            *(cell for cost in costs for cell in price_cells(by[name, way, ranks, each, cost])),
        )
        for name in SHOWN_DATA
        for ranks, each in SHOWN_WORLDS
        for way in SHOWN_WAYS
    ]
    heads = ("price, frames", "steps mix", "price, attention", "steps mix")
    grouped = max(at("default", case) / at("group_by_length", case) for case in cases)
    dearer = [case for case in cases if at("default", case) > at(SHOWN_WAYS[-1], case)]
    named = dict.fromkeys(name for name, *_ in dearer)
    answer = (
        f"The default computes at most {max(at('default', case) for case in cases):.2f} for each unit of the data, "
        f"waiting counted, and at most {grouped:.3f} times as much as group_by_length on the same lengths and ranks. "
        f"Thirty buckets, as NeMo and lhotse draw them, compute less in {len(dearer)} of {len(cases)} cases: "
        f"{' and '.join(named)}. Their steps mix little."
    )
    note = (
        "*Price*: the cost that all ranks compute for each unit of the data's own, waiting counted. It is of frames, "
        f"or of attention: L (1 + {costs[-1]:g} L) for a sequence of length L. The default then has this cost as "
        "`balance`. *Steps mix*: the mixing of the steps of one epoch, 1 if they are random samples. All but "
        "group_by_length have the same budget of frames, and no batch of theirs is over it. The JSON has more worlds, "
        "lengths and ways."
    )
    return answer, table(("lengths, ranks x micro-batches", "batches", *heads), rows), note


def price_cells(row: dict[str, Any]) -> tuple[str, ...]:
    return f"{row['price']:.3f}", f"{row['step_mixing']:.2f}"

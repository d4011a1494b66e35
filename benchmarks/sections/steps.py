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
    padded = [(name, *(percent(by[name, "random steps", count]["padding_share"]) for count in ranks)) for name in data]
    shown = [way for way in ways if way != "bound" and "max-entropy" not in way]
    rows = [(name, way, *step_cells(by[name, way, SHOWN_RANKS])) for name in data[:2] for way in shown]
    budgets = ", ".join(f"{budget:,} on {name}" for name, budget in document["budgets"].items())
    heads = ("lengths", "steps of", "padding", "computed", "waiting", "steps mix", "costliest")
    least, most = (percent(by[data[0], "random steps", count]["padding_share"]) for count in (ranks[0], ranks[-1]))
    answer = (
        f"Random steps pad less if a step has more batches: on {data[0]} lengths {least} with {ranks[0]} batch "
        f"and {most} with {ranks[-1]}."
    )
    note = (
        f"First table: padding of random steps under a budget ({budgets}). Second table: steps of {SHOWN_RANKS} "
        f"batches; the JSON has 1 to {ranks[-1]}, and other deals. *Random batches*: under that budget. *Costliest*: "
        "the padded frames of the costliest batch. `batch_rebalance` has the mean number of sequences of random steps, "
        "and no budget."
    )
    return answer, table(("batches in a step", *map(str, ranks)), padded), table(heads, rows), note


def step_cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        percent(row["padding_share"]),
        f"{1.0 / (1.0 - row['padding_share']):.2f}",
        percent(row["straggler_waste"]),
        f"{row['step_mixing']:.2f}",
        f"{row['largest_cost']:,.0f}",
    )


SHOWN_DATA = ("long-tailed", "LJSpeech", "chats")
SHOWN_WORLDS = ((1, 1), (8, 4))
SHOWN_WAYS = ("default", "group_by_length", "30 buckets (NeMo, lhotse)")


def prices(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns what each way computes and how long its ranks wait, by lengths and world."""
    names = ("data", "way", "world_size", "micro_batches", "quadratic")
    by = {tuple(row[name] for name in names): row for row in document["rows"]}
    cases = list(dict.fromkeys((row["data"], *(row[name] for name in names[2:])) for row in document["rows"]))

    def at(way: str, case: tuple[Any, ...]) -> float:
        return by[case[0], way, *case[1:]]["price"]

    costs = (0.0, max(case[-1] for case in cases))
    rows = [
        (
            f"{name}, {ranks} x {each}",
            way.partition(" (")[0],
            *price_cells(*(by[name, way, ranks, each, cost] for cost in costs)),
        )
        for name in SHOWN_DATA
        for ranks, each in SHOWN_WORLDS
        for way in SHOWN_WAYS
    ]
    heads = ("padding", "computed", "waiting", "steps mix", "waiting, attention", "steps mix, attention")
    grouped = max(at("default", case) / at("group_by_length", case) for case in cases)
    dearer = [case for case in cases if at("default", case) > at(SHOWN_WAYS[-1], case)]
    named = dict.fromkeys(name for name, *_ in dearer)
    answer = (
        f"The *price* of the default, computed / (1 - waiting), is at most "
        f"{max(at('default', case) for case in cases):.2f}, and at most {grouped:.3f} times that of group_by_length on "
        "the same lengths and ranks. Thirty buckets, as NeMo and lhotse draw them, have a lower price in "
        f"{len(dearer)} of {len(cases)} cases: {' and '.join(named)}. Their steps mix little."
    )
    note = (
        f"*Attention*: L frames cost L (1 + {costs[-1]:g} L), and the default has this cost as `balance`. All but "
        "group_by_length have the same budget of frames, and no batch of theirs is over it. The JSON has more worlds, "
        "lengths and ways, and the prices of each."
    )
    return answer, table(("lengths, ranks x micro-batches", "batches", *heads), rows), note


def price_cells(row: dict[str, Any], attention: dict[str, Any]) -> tuple[str, ...]:
    computed = f"{1.0 / (1.0 - row['padding_share']):.2f}"
    steps_cells = [(percent(case["waiting"]), f"{case['step_mixing']:.2f}") for case in (row, attention)]
    return percent(row["padding_share"]), computed, *steps_cells[0], *steps_cells[1]

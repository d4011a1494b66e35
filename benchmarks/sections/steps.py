"""Whole steps: what they pad, mix and wait."""

from __future__ import annotations

from typing import Any

from lengthwise_recipes.pages import percent, table
from sections.shared import folded


def step_limits(document: dict[str, Any]) -> tuple[str, ...]:
    """For each setting: random steps, and both orders near three shares of what these pad."""
    rows, names = [], ("lengths", "cut", "batches")
    for setting in dict.fromkeys(tuple(row[name] for name in names) for row in document["rows"]):
        points = [row for row in document["rows"] if tuple(row[name] for name in names) == setting]
        shown = [points[0]]
        for share in SHARES_OF_RANDOM_STEPS:
            for order in ("max-entropy", "semi-sorted"):
                target = share * points[0]["padding_share"]
                near = [row for row in points[1:] if row["order"] == order]
                found = min(near, key=lambda row: abs(row["padding_share"] - target))
                shown += [found] if abs(found["padding_share"] - target) <= 0.25 * target else []
        cut = str(document["batch"]) if setting[1] == "FixedSize" else "a budget"
        rows += [(setting[0], cut, str(setting[2]), *step_limits_cells(row)) for row in shown]
    ours = [row for row in document["rows"] if row["order"] == "max-entropy"]
    below = [row for row in ours if row["step_mixing"] < 0.95 * row["limit"]]
    least = min(row["step_mixing"] / row["limit"] for row in ours)
    random = {tuple(row[name] for name in names): row["padding_share"] for row in document["rows"][::-1]}
    pads = min(row["padding_share"] / random[tuple(row[name] for name in names)] for row in below)
    answer = (
        f"Steps of max-entropy batches have at least 95 % of the limit at {len(ours) - len(below)} of {len(ours)} "
        f"settings, and at least {100 * least:.0f} % at all others. There they pad nearly as much as random steps: "
        f"{100 * pads:.0f} % of it or more."
    )
    note = (
        "*Limit*: `mixing_limit(world_size=...)`, of everything that the padded lengths of a step tell. *Step mixing* "
        "is of their mean alone, which tells less: so steps can have more than the limit of it. *Vary*: the variance "
        "of the mean length of steps, 1 as that of random samples. *Waiting*: the share of time that ranks wait for "
        "the costliest. A budget is 16 sequences of the mean length, or the longest. Random steps are dealt as "
        "`RandomSteps`, the others as `Stratified`: a batch of every stratum. Rows lie within a quarter of 90, 50 and "
        "20 % of the padding of random steps; the JSON has more. "
        f"Both are estimated in {document['bins']} bins, on {document['sequences']:,} sequences of one seed's epochs."
    )
    heads = ("lengths", "batch", "steps of", "strategy", "padding", "step mixing", "limit", "of it", "vary", "waiting")
    first = rows[0][0], rows[0][2]
    return answer, folded(heads, dict.fromkeys(rows), lambda row: (row[0], row[2]) == first), note


SHARES_OF_RANDOM_STEPS = (0.9, 0.5, 0.2)


def step_limits_cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of steps: what it pads, mixes and waits for."""
    share = f"{row['step_mixing'] / row['limit']:.2f}"
    mixing, limit = (f"{row[name]:.3f}" for name in ("step_mixing", "limit"))
    varies, waits = f"{row['step_length_variance']:.1f}", percent(row["straggler_waste"])
    return f"`{row['order']}`", percent(row["padding_share"]), mixing, limit, share, varies, waits


SHOWN_RANKS = (8, 32)


def steps(document: dict[str, Any]) -> tuple[str, ...]:
    """What random steps pad by their number of batches; then every way to make steps, for 8 and 32 batches."""
    by = {(row["data"], row["way"], row["ranks"]): row for row in document["rows"]}
    names = ("data", "way", "ranks")
    data, ways, ranks = (list(dict.fromkeys(row[name] for row in document["rows"])) for name in names)
    padded = [
        (f"{name}, {way}", *(percent(by[name, way, each]["padding_share"]) for each in ranks))
        for name in data
        for way in ("random steps", "bound")
        if (name, way, ranks[0]) in by
    ]
    rows = [
        (name, way, *(cell for each in SHOWN_RANKS for cell in step_cells(by[name, way, each])))
        for name in data
        for way in ways
        if way != "bound"
    ]
    budgets = ", ".join(f"{budget:,} on {name}" for name, budget in document["budgets"].items())
    of_each = ("padding", "step mixing", "vary", "waiting", "costliest")
    heads = ("lengths", "steps of", *(f"{head}, {each}" for each in SHOWN_RANKS for head in of_each))
    few, many = (percent(by[data[0], "random steps", each]["padding_share"]) for each in (ranks[0], ranks[-1]))
    answer = (
        f"The more batches make a step, the less random steps pad: on {data[0]} lengths {few} with {ranks[0]} batch "
        f"and {many} with {ranks[-1]}."
    )
    note = (
        f"First table: padding by the number of batches in a step, under a budget ({budgets}). *Bound*: what as many "
        "optimal buckets pad, the least for random steps without end. Finite steps of a long tail pad less. Second "
        f"table: steps of {' batches; all rows also of '.join(map(str, SHOWN_RANKS))}. *Vary*: the variance of the "
        "mean length of steps, 1 as that of random samples. *Waiting*: the share of time that ranks wait for the "
        "costliest. *Costliest*: the padded frames of the costliest batch. `batch_rebalance` takes as many sequences a "
        "step as random steps do on average, and knows no budget."
    )
    ways_of_8 = folded(heads, rows, lambda _: True, range(2 + len(of_each)))
    return answer, table(("batches in a step", *map(str, ranks)), padded), ways_of_8, note


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
    """What each deal mixes and waits, for some numbers of ranks."""
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
    of_each = (f"{what}, {ranks}" for ranks in WAITING_RANKS for what in ("step mixing", "waiting"))
    name = list(dict.fromkeys(row["data"] for row in document["rows"]))[-1]
    least, some, steps = (by[name, "fixed", way, 8] for way in ("balanced", "balanced, waiting 5 %", "random steps"))
    answer = (
        f"On {name}, 8 ranks take batches of {kinds['fixed']}. Step mixing is {least['step_mixing']:.2f} where ranks "
        f"wait least, and {some['step_mixing']:.2f} where they may wait 5 % of the time. With random steps it is "
        f"{steps['step_mixing']:.2f}: they wait {percent(steps['straggler_waste'])}, and pad "
        f"{percent(steps['padding_share'])} instead of {percent(some['padding_share'])}."
    )
    note = (
        f"Batches of max-entropy at {percent(document['padding'])} padding, dealt to "
        f"{', '.join(map(str, WAITING_RANKS))} ranks; below them random steps. The padding is that for 8 ranks; "
        "the JSON has 1 to 64 ranks. *Balanced, waiting 5 %*: `Balanced(waiting=0.05)`. Where even batches of similar "
        "cost wait longer, it deals these, and warns. Batches under a budget cost about the same. There any of them "
        "may share a step, and ranks wait less than 5 %."
    )
    last = f"{name}, {kinds['fixed']}", f"{name}, {kinds['budget']}"
    return answer, folded(("batches of", "deal", "padding", *of_each), rows, lambda row: row[0] in last), note


def waiting_cells(row: dict[str, Any]) -> tuple[str, ...]:
    return f"{row['step_mixing']:.2f}", percent(row["straggler_waste"])

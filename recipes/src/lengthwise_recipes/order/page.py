"""The section of results on the page of the experiment, made only from JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from lengthwise_recipes.intervals import Interval, interval
from lengthwise_recipes.order import outcomes
from lengthwise_recipes.order.outcomes import Cell, column, differences, mean_difference
from lengthwise_recipes.order.steps import RULER
from lengthwise_recipes.order.study import PARTS, RATES, SEARCH_SEEDS, Part
from lengthwise_recipes.pages import machine_note, percent, table, within
from lengthwise_recipes.quality.page import bold, detectable, signed

DEPARTURES = (
    "The GRU's first search had its best rate, 0.032, at the end of the five: they became 0.008 to 0.128. Only the "
    "best two under the first seed run under the others. Each pair gets three seeds before the next begins, GRU first. "
    "After the first runs of the search the code became faster; a run of the GRU gave the same loss before and after. "
    "Three pairs of the other orders ran early, to explain the control; two processes wrote two results, which were "
    "joined. Grouped steps under a token mean were added when its other results were known. "
    "Some best rates are at the end of the five. With momentum it is 0.8: random steps, and grouped on catalogues. "
    "With the transformer it is 0.032: *tokens* and *half* on catalogues, *half* on phonemes, and random steps. For "
    "random steps 0.032 is best"
)
AFTERWARDS = (
    "Found afterwards: a step's gradient is a sum over its tokens, so steps of long sequences weigh more, whatever "
    "their content."
)
NOTE = (
    "*Worth*: random sequences that train as well as {size} grouped ones. *Course*: grouped at 1/4 and 1/2. *Kinds*: "
    "speech, code, numbers; or short, middle, long. Arms: *random/1* is random steps, *library* `RandomSteps`, "
    "*noise/x* `MaxEntropy` padding x, *tokens* equal tokens in each step, *half* half of each step grouped, *trainer* "
    "the order of `group_by_length`. Seconds of random steps are those of the search, which measures no VR."
)


def results(document: Mapping[str, Any], *, link: str) -> str:
    """Returns the section of results; data and models with fewer than two whole seeds are left out."""
    groups = document["groups"]
    shown = {part: [cell for cell in part.cells if outcomes.whole_seeds(groups, part, cell) > 1] for part in PARTS}
    shown = {part: cells for part, cells in shown.items() if cells}
    if PARTS[0] not in shown:
        return "None yet."
    ruled = [part for part in shown if RULER[1] in part.arms]
    sections = [text for part in ruled for text in _section(groups, part, shown[part])]
    for arms in dict.fromkeys(tuple(part.arms) for part in shown if part not in ruled):
        sections += _table_of(groups, {part: cells for part, cells in shown.items() if tuple(part.arms) == arms})
    departures = f"**Departures from the plan.** {DEPARTURES}{_beyond(groups)}."
    return "\n\n".join((*_answers(groups, shown), *sections, departures, machine_note(document, link=link)))


def _answers(groups: Any, shown: Mapping[Part, Sequence[Cell]]) -> list[str]:
    """Returns the primary outcome, and a sentence for each condition of the plan that has its runs."""
    primary, cells = PARTS[0], shown.get(PARTS[0], [])
    rulers = [(part, cell) for part, cells in shown.items() if "random/4" in part.arms for cell in cells]
    grouped, library = (mean_difference(groups, primary, arm, cells) for arm in ("grouped", "library"))
    running = len(cells) < len(primary.cells) or grouped.runs < primary.seeds
    lead = (
        f"**{grouped.runs} of {primary.seeds} seeds, {len(cells)} of {len(primary.cells)} pairs of data and model"
        f"{', running' * running}.** Grouped steps end {signed(grouped)} above random ones. We would detect "
        f"{detectable(grouped)}. `RandomSteps`: {signed(library)}."
    )
    gaps: dict[str, list[float]] = {}
    for part, cell in rulers:
        shrink, log_ratio = (read(groups, part, cell).mean for read in (outcomes.shrink, outcomes.log_ratio))
        gaps.setdefault(cell[0], []).append(shrink - log_ratio)
    texts = ", ".join(f"{fmean(gap):+.1f} on {data}" for data, gap in gaps.items())
    by_gru = sum(abs(gap[0]) > 1 for gap in gaps.values())
    checks = {"library": rulers, "grouped": [pair for pair in rulers if pair[1][0] == "control"]}
    worst = {arm: np.abs([0, *(differences(groups, *on, arm).mean() for on in at)]).max() for arm, at in checks.items()}
    more = next(part for part in PARTS if part.name == "more orders")
    equal = ", ".join(
        f"{100 * differences(groups, more, cell, 'tokens').mean():+.1f} % on {', '.join(cell)}"
        for cell in shown.get(more, [])
        if cell[0] == "control"
    )
    with_tokens = f" With equally many tokens in each step grouping costs {equal}." if equal else ""
    void = f", so it is. {AFTERWARDS}{with_tokens}" if not max(worst.values()) <= 0.01 else "."
    sentences = [
        f"Largest mean difference of `RandomSteps`: {percent(worst['library'])}; of grouped steps on control: "
        f"{percent(worst['grouped'])}. Beyond 1 % the plan calls the experiment void{void}",
        f"The primary interval {'lies' if grouped.high < 0.01 else 'does not lie'} below 1 %.",
        f"r - log2 VR: {texts}; beyond 1 on {sum(abs(fmean(gap)) > 1 for gap in gaps.values())} of {len(gaps)}. These "
        f"are means over models, chosen after the results: by the GRU alone it is {by_gru}. From 2 on, the plan says "
        "that variance is not the mechanism.",
    ]
    noisy, gaps_of = [part for part in shown if part.arms[-1].startswith("noise/")], list[Interval]()
    for part in noisy:
        arms, cells = ("grouped", part.arms[-1]), shown[part]
        pairs = [[differences(groups, part, cell, arm) for arm in arms] for cell in cells]
        gaps_of += [interval(padded - grouped) for grouped, padded in pairs]
        falls = [[2 ** outcomes.log_ratio(groups, part, cell, arm).mean for arm in arms] for cell in cells]
        sentences.append(
            f"{part.name.capitalize()} that pad {percent(float(part.arms[-1][6:]))} end "
            f"{' and '.join(map(signed, gaps_of[-len(cells) :]))} from sorted ones, of random's loss; VR falls from "
            f"{' and from '.join(f'{before:.2f} to {after:.2f}' for before, after in falls)}."
        )
    if noisy and all(gap.high >= 0 for gap in gaps_of):
        sentences[-1] += " The seeds do not show that padding pays."
    for part in (part for part in shown if part.setting.passes > 1):
        passes = mean_difference(groups, part, "grouped", shown[part])
        once = [differences(groups, primary, cell, "grouped")[: passes.runs] for cell in shown[part]]
        calls = "calls" if passes.high < 0.005 else "does not call"
        sentences += [
            f"Five passes: grouped steps end {signed(passes)}; one: {signed(interval(np.mean(once, axis=0)))}."
        ]
        sentences[-1] += f" The plan {calls} the cost passing."
    return [lead, "\n".join(f"- {sentence}" for sentence in sentences)]


def _beyond(groups: Any) -> str:
    """Says how much worse the loss of the transformer's random steps is at a rate above the five, if one was tried."""
    worse, top = [], max(RATES["transformer"])
    names = [part.group(data, "transformer", "random/1") for part in PARTS[:2] for data in part.data]
    for search in (groups.get(name, {}).get("search", {}) for name in names):
        rows = zip(*(search.get(name, ()) for name in ("seed", "rate", "loss")), strict=True)
        losses = {rate: loss for seed, rate, loss in rows if seed == SEARCH_SEEDS[0]}
        worse += [loss / losses[top] - 1 for rate, loss in losses.items() if rate > top]
    if not worse:
        return ""
    return (
        f"; twice that, tried later under one search seed, ends {percent(min(worse))} to {percent(max(worse))} above it"
    )


def _section(groups: Any, part: Part, cells: Sequence[Cell]) -> list[str]:
    """Returns the tables of a part with a ruler, with a row for each data set and model."""
    arms = [arm for arm in part.arms if arm not in RULER]
    heads, rows, means = ["data, model", "seeds", *(arm.replace("library", "`RandomSteps`") for arm in arms)], [], []
    for cell in cells:
        powers = [read(groups, part, cell) for read in (outcomes.shrink, outcomes.log_ratio)]
        worths = [f"{part.setting.size / 2**power.mean:.0f}" for power in powers]
        texts = [f"{power.mean:.1f}{within(power.low, power.high, digits=1)}" for power in powers]
        rows.append((", ".join(cell), *_losses(groups, part, cell), *texts, *worths))
        means.append((", ".join(cell), *_means(groups, part, cell)))
    tables = table([*heads, "r", "log2 VR", "worth", "by VR"], rows), table(("data, model", *_MEANS), means)
    facts = "; ".join(f"{arm} {_facts(groups, part, cells, arm)}" for arm in ("random/1", *arms))
    note = f"{NOTE.format(size=part.setting.size) if part is PARTS[0] else ''} Padding, waiting and seconds: {facts}."
    return [f"### {part.name.capitalize()}", tables[0], note.strip(), tables[1]]


def _table_of(groups: Any, parts: Mapping[Part, Sequence[Cell]]) -> list[str]:
    """Returns one table of parts with the same arms, with a row for each part, data set and model."""
    names = [part.name for part in parts]
    arms = [arm for arm in next(iter(parts)).arms if arm not in RULER]
    rows = [
        (", ".join((*cell, *[part.name][: len(parts) - 1])), *_losses(groups, part, cell))
        for part, cells in parts.items()
        for cell in cells
    ]
    return [f"### {', '.join(names).capitalize()}", table(("data, model", "seeds", *arms), rows)]


def _losses(groups: Any, part: Part, cell: Cell) -> list[str]:
    """Returns the seeds and the differences from random steps, for the arms without the ruler."""
    arms = (arm for arm in part.arms if arm not in RULER)
    losses = (bold(interval(differences(groups, part, cell, arm))) for arm in arms)
    return [str(outcomes.whole_seeds(groups, part, cell)), *losses]


_MEANS = ("ruler, %", "course, %", "kinds, %", "VR")


def _means(groups: Any, part: Part, cell: Cell) -> list[str]:
    """Returns means over the seeds, under `_MEANS`."""
    ruler = [differences(groups, part, cell, arm).mean() for arm in RULER[1:]]
    course, kinds = (differences(groups, part, cell, "grouped", name).mean(axis=0) for name in ("curve", "kinds"))
    ratios = outcomes.ratios(groups, part, cell, "grouped").mean(axis=0)
    shares = ("/".join(f"{100 * value:+.1f}" for value in values) for values in (ruler, course, kinds))
    return [*shares, "/".join(f"{ratio:.1f}" for ratio in ratios)]


def _facts(groups: Any, part: Part, cells: Sequence[Cell], arm: str) -> str:
    padding, waiting = (
        fmean(column(groups, part, cell, arm, name).mean() for cell in cells) for name in ("padding", "waiting")
    )
    kind = "search" if arm == "random/1" else "runs"
    seconds = fmean(fmean(groups[part.group(*cell, arm)][kind]["seconds"]) for cell in cells)
    return f"{padding:.1%}, {waiting:.1%}, {seconds:.0f}"

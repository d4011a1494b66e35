"""The section of results on the page of the experiment, made only from JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from lengthwise_recipes.intervals import Interval, interval
from lengthwise_recipes.order import outcomes
from lengthwise_recipes.order.data import KINDS, THIRDS
from lengthwise_recipes.order.outcomes import Cell, column, differences, mean_difference
from lengthwise_recipes.order.steps import RULER
from lengthwise_recipes.order.study import PARTS, Part
from lengthwise_recipes.pages import machine_note, percent, table
from lengthwise_recipes.quality.page import bold, detectable, signed

DEPARTURES = (
    "The rates of the GRU were 0.002 to 0.032. In the first search runs the best was 0.032, so they became 0.008 to "
    "0.128. Those runs, of search seeds alone, stay in the JSON.",
    "All rates run under the first search seed, but only the best two under the other two, to save time.",
    "Data sets and models come one after the other until each has three seeds, and the GRU comes first.",
)
NAMES = {
    "random/1": "random, B",
    "grouped": "grouped",
    "library": "`RandomSteps`",
    "tokens": "grouped, equal tokens",
    "half": "half grouped",
    "trainer": "`group_by_length`",
}
_FACTS = ("rate", "padding", "waiting", "seconds")


def results(document: Mapping[str, Any], *, link: str) -> str:
    """Returns the section of results; data and models without a whole seed are left out."""
    groups = document["groups"]
    done = {part: [cell for cell in part.cells if outcomes.whole_seeds(groups, part, cell)] for part in PARTS}
    done = {part: cells for part, cells in done.items() if cells}
    if not done:
        return "None yet."
    sections = [text for part, cells in done.items() for text in _section(groups, part, cells)]
    departures = ["### Departures from the plan", "\n".join(f"- {sentence}" for sentence in DEPARTURES)]
    return "\n\n".join((*_answers(groups, done), *sections, *departures, machine_note(document, link=link)))


def _answers(groups: Any, done: Mapping[Part, Sequence[Cell]]) -> list[str]:
    """Returns the primary outcome, and a sentence for each condition of the plan that has its runs."""
    primary, cells = PARTS[0], done.get(PARTS[0], [])
    rulers = {part: cells for part, cells in done.items() if "random/4" in part.arms}
    grouped, library = (mean_difference(groups, primary, arm, cells) for arm in ("grouped", "library"))
    missing = len(primary.cells) - len(cells)
    lead = (
        f"**{grouped.runs} of {primary.seeds} seeds{', running' * (missing > 0 or grouped.runs < primary.seeds)}; "
        f"{missing} of {len(primary.cells)} pairs of data and model are missing.** Steps grouped by length end with a "
        f"held-out loss of {signed(grouped)} over random steps: the mean over "
        f"{_listed([', '.join(cell) for cell in cells])}. We would detect {detectable(grouped)}. Our check: "
        f"`RandomSteps` end with {signed(library)}."
    )
    gaps: dict[str, list[float]] = {}
    for part, data, model in ((part, *cell) for part, cells in rulers.items() for cell in cells):
        pair = outcomes.shrink(groups, part, (data, model)), outcomes.log_ratio(groups, part, (data, model))
        gaps.setdefault(data, []).append(pair[0].mean - pair[1].mean)
    texts = _listed([f"{fmean(gap):+.1f} on {data}" for data, gap in gaps.items()])
    checks = [(part, cell, "library") for part, cells in rulers.items() for cell in cells]
    checks += [(part, cell, "grouped") for part, cells in rulers.items() for cell in cells if cell[0] == "control"]
    worst = max(abs(differences(groups, *check).mean()) for check in checks)
    sentences = [
        f"The primary interval {'lies' if grouped.high < 0.01 else 'does not lie'} below 1 %.",
        f"r - log2 VR is {texts}. Beyond 1 on two data sets, variance is not the mechanism.",
        f"The largest mean difference of a check is {percent(worst)}. Above 1 % the experiment is void.",
    ]
    for part in (part for part in done if part.setting.passes > 1):
        passes = signed(mean_difference(groups, part, "grouped", done[part]))
        sentences.append(f"After five passes grouped steps are at {passes}. Below 0.5 % the cost is passing.")
    return [lead, "The conditions of the plan:", "\n".join(f"- {sentence}" for sentence in sentences)]


def _section(groups: Any, part: Part, cells: Sequence[Cell]) -> list[str]:
    """Returns the tables of a part: with a row for each data set and model, and with one for each arm."""

    def by_cell(title: str, heads: Sequence[str], row: Any) -> list[str]:
        return [title, table(("data, model", *heads), [(", ".join(cell), *row(groups, part, cell)) for cell in cells])]

    others = [arm for arm in part.arms if arm != "random/1"]
    compared = [_label(arm) for arm in part.compare]
    size, seeds = part.setting.size, [outcomes.whole_seeds(groups, part, cell) for cell in cells]
    intro = f"Seeds: {_range(seeds, 'd')} of {part.seeds}; B = {size}. Losses are minus those of random steps."
    texts = [f"### {part.name.capitalize()}"]
    if "random/4" in part.arms:
        intro += f" *Worth*: the random sequences that train as well as {size} grouped ones, {size} / 2^r, or by VR."
        texts += by_cell(intro, ("seeds", "grouped", "`RandomSteps`", "r", "log2 VR", "worth", "by VR"), _worths)
        texts += by_cell("Smaller random steps:", ("loss at B", "B/4", "B/16", "B/64"), _ruler)
        texts += by_cell("Grouped steps during a run, and for each kind of sequence:", ("1/4", "1/2", "kinds"), _course)
    else:
        texts += by_cell(intro, list(map(_label, others)), _losses)
    if part.compare:
        texts += by_cell("VR after 1/6, 1/2 and 5/6 of the updates of random runs:", compared, _ratios)
    return [*texts, table(("arm", *_FACTS), [(_label(arm), *_facts(groups, part, cells, arm)) for arm in part.arms])]


def _worths(groups: Any, part: Part, cell: Cell) -> list[str]:
    pair = outcomes.shrink(groups, part, cell), outcomes.log_ratio(groups, part, cell)
    losses = _losses(groups, part, cell, ("grouped", "library"))
    worths = [f"{part.setting.size / 2**bounds.mean:.0f}" for bounds in pair]
    return [str(outcomes.whole_seeds(groups, part, cell)), *losses, *map(_bounds, pair), *worths]


def _ruler(groups: Any, part: Part, cell: Cell) -> list[str]:
    return [f"{column(groups, part, cell, RULER[0], 'loss').mean():.3f}", *_losses(groups, part, cell, RULER[1:])]


def _losses(groups: Any, part: Part, cell: Cell, arms: Sequence[str] = ()) -> list[str]:
    return [bold(interval(differences(groups, part, cell, arm))) for arm in arms or part.arms if arm != "random/1"]


def _course(groups: Any, part: Part, cell: Cell) -> list[str]:
    points = differences(groups, part, cell, "grouped", "curve").T
    kinds = differences(groups, part, cell, "grouped", "kinds").mean(axis=0)
    shown = [f"{name} {100 * kind:+.1f} %" for name, kind in zip(KINDS.get(cell[0], THIRDS), kinds, strict=True)]
    return [*(signed(interval(point)) for point in points), ", ".join(shown)]


def _ratios(groups: Any, part: Part, cell: Cell) -> list[str]:
    means = [outcomes.ratios(groups, part, cell, arm).mean(axis=0) for arm in part.compare]
    return [", ".join(f"{ratio:.1f}" for ratio in row) for row in means]


def _facts(groups: Any, part: Part, cells: Sequence[Cell], arm: str) -> list[str]:
    """Returns rate, padding, waiting and seconds of an arm: the range over data and models."""
    rates, paddings, waits, seconds = (
        [column(groups, part, cell, arm, name).mean() for cell in cells] for name in _FACTS
    )
    shares = [_range([100 * share for share in shares], ".1f") + " %" for shares in (paddings, waits)]
    return [_range(rates, "g"), *shares, _range(seconds, ".1f")]


def _range(values: Sequence[float], form: str) -> str:
    return " to ".join(dict.fromkeys(format(end, form) for end in (min(values), max(values))))


def _label(arm: str) -> str:
    name, _, knob = arm.partition("/")
    noise = f"{100 * float(knob):g} % padding" if name == "noise" else ""
    return NAMES.get(arm, noise or f"random, B/{knob}")


def _bounds(bounds: Interval) -> str:
    return f"{bounds.mean:.1f}" + ("" if bounds.unknown else f" ({bounds.low:.1f} to {bounds.high:.1f})")


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, ["; ".join(words[:-1]), words[-1]]))

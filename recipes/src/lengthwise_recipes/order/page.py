"""The section of results on the page of the experiment, made only from JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lengthwise_recipes.intervals import Interval, interval
from lengthwise_recipes.order import outcomes
from lengthwise_recipes.order.data import KINDS, THIRDS
from lengthwise_recipes.order.outcomes import Cell, cells_of, column, differences
from lengthwise_recipes.order.steps import RULER
from lengthwise_recipes.order.study import PARTS, Part
from lengthwise_recipes.order.training import CHECKPOINTS, POINTS
from lengthwise_recipes.pages import machine_note, percent, table
from lengthwise_recipes.quality.page import bold, detectable, signed

DEPARTURES = ("None so far.",)
PERCENT_BOUND = 0.01  # of the plan: for the primary outcome, and for both checks
NAMES = {
    "random/1": "random",
    "grouped": "grouped",
    "library": "`RandomSteps`",
    "tokens": "grouped, equal tokens",
    "half": "half grouped",
    "trainer": "`group_by_length`",
}


def results(document: Mapping[str, Any], *, link: str) -> str:
    """Returns the section of results; parts without a whole seed are left out."""
    groups = document["groups"]
    done = [part for part in PARTS if outcomes.whole_seeds(groups, part)]
    if not done:
        return "None yet."
    parts = [_ruler_part(groups, part) if "random/4" in part.arms else _other_part(groups, part) for part in done]
    departures = "\n".join(f"- {sentence}" for sentence in DEPARTURES)
    tail = (f"### Departures from the plan\n\n{departures}", machine_note(document, link=link))
    return "\n\n".join((lead(groups), *verdicts(groups, done), *parts, *tail))


def lead(groups: Any) -> str:
    """Returns the answer of the primary part, and what its seeds could have told."""
    part = PARTS[0]
    grouped, library = (outcomes.mean_difference(groups, part, arm) for arm in ("grouped", "library"))
    seeds = outcomes.whole_seeds(groups, part)
    return (
        f"**{seeds} of {part.seeds} seeds{', running' * (seeds < part.seeds)}.** Steps grouped by length end with a "
        f"held-out loss of {signed(grouped)} over random steps, the mean of {_listed(part.data)} and both models. We "
        f"would detect {detectable(grouped)}. Our check: `RandomSteps` end with {signed(library)}."
    )


def verdicts(groups: Any, done: Sequence[Part]) -> list[str]:
    """Returns a sentence for each condition of the plan that has its runs."""
    primary, rulers = PARTS[0], [part for part in done if "random/4" in part.arms]
    low = outcomes.mean_difference(groups, primary, "grouped").high < PERCENT_BOUND
    sentences = [f"The primary interval lies {'' if low else 'not '}below 1 %."]
    gaps = {data: _gap(groups, part, data) for part in rulers for data in part.data}
    texts = _listed([f"{gap:+.1f} on {data}" for data, gap in gaps.items()])
    sentences.append(f"r - log2 VR, as the mean over the models: {texts}. The plan asks for at most 1 either way.")
    checks = [(part, cell, "library") for part in rulers for cell in cells_of(part)]
    checks += [(part, cell, "grouped") for part in rulers for cell in cells_of(part) if cell[0] == "control"]
    worst = max((abs(differences(groups, *check).mean()) for check in checks), default=0.0)
    sentences.append(f"The largest mean difference of a check is {percent(worst)}; above 1 % the experiment is void.")
    for part in done:
        if part.name == "five passes":
            passes = signed(outcomes.mean_difference(groups, part, "grouped"))
            sentences.append(f"After five passes: {passes}. Below 0.5 % the cost is passing.")
    return ["By the conditions of the plan:", "\n".join(f"- {sentence}" for sentence in sentences)]


def _gap(groups: Any, part: Part, data: str) -> float:
    gaps = [
        outcomes.shrink(groups, part, (data, model), "grouped").mean
        - outcomes.log_ratio(groups, part, (data, model), "grouped").mean
        for model in part.models
    ]
    return sum(gaps) / len(gaps)


def _ruler_part(groups: Any, part: Part) -> str:
    """Returns the tables of a part with the ruler: outcomes, ruler, course, kinds, variance ratios, and each arm."""
    cells = cells_of(part)
    size = part.setting.size
    worths = [
        (outcomes.shrink(groups, part, cell, "grouped"), outcomes.log_ratio(groups, part, cell, "grouped"))
        for cell in cells
    ]
    main = [
        (
            _name(cell),
            *(bold(interval(differences(groups, part, cell, arm))) for arm in ("grouped", "library")),
            *(_plain(bounds) for bounds in pair),
            *(f"{size / 2**bounds.mean:.0f}" for bounds in pair),
        )
        for cell, pair in zip(cells, worths, strict=True)
    ]
    heads = ("data, model", "grouped", "`RandomSteps`", "r", "log2 VR", "worth", "worth by VR")
    texts = [
        f"### {part.name.capitalize()}\n\n{_seeds(groups, part)}",
        table(heads, main),
        f"*Worth*: the random sequences that train as well as {size} grouped ones, {size} / 2^r; by VR, {size} / VR.",
        "The ruler, smaller random steps over those of B:",
        table(
            ("data, model", "loss of random", "B/4", "B/16", "B/64"), [_ruler_row(groups, part, cell) for cell in cells]
        ),
        "Grouped minus random at parts of the run, and for each kind of sequence at its end:",
        table(
            ("data, model", *(f"{point:g}" for point in POINTS), "kinds"),
            [_course_row(groups, part, cell) for cell in cells],
        ),
        f"VR of steps that are {_listed([NAMES[arm] for arm in part.compare])}, after "
        f"{_listed([f'{point:.2f}' for point in CHECKPOINTS])} of the updates of random runs:",
        table(
            ("data, model", *(NAMES[arm] for arm in part.compare)), [_ratio_row(groups, part, cell) for cell in cells]
        ),
        _arms_table(groups, part),
    ]
    return "\n\n".join(texts)


def _ruler_row(groups: Any, part: Part, cell: Cell) -> tuple[str, ...]:
    loss = column(groups, part, cell, "random/1", "loss").mean()
    return (_name(cell), f"{loss:.3f}", *(signed(interval(differences(groups, part, cell, arm))) for arm in RULER[1:]))


def _course_row(groups: Any, part: Part, cell: Cell) -> tuple[str, ...]:
    points = [*differences(groups, part, cell, "grouped", "curve").T, differences(groups, part, cell, "grouped")]
    kinds = differences(groups, part, cell, "grouped", "kinds").T
    names = KINDS.get(cell[0], THIRDS)
    by_kind = [f"{name} {100 * kind.mean():+.1f} %" for name, kind in zip(names, kinds, strict=True)]
    return (_name(cell), *(signed(interval(point)) for point in points), ", ".join(by_kind))


def _ratio_row(groups: Any, part: Part, cell: Cell) -> tuple[str, ...]:
    means = (outcomes.ratios(groups, part, cell, arm).mean(axis=0) for arm in part.compare)
    return (_name(cell), *(", ".join(f"{ratio:.1f}" for ratio in ratios) for ratios in means))


def _other_part(groups: Any, part: Part) -> str:
    """Returns the differences of a part without a ruler, and each arm."""
    rows = [
        (_label(arm), *(bold(interval(differences(groups, part, cell, arm))) for cell in cells_of(part)))
        for arm in part.arms
        if arm != "random/1"
    ]
    shown = table(("arm", *map(_name, cells_of(part))), rows)
    return "\n\n".join((f"### {part.name.capitalize()}\n\n{_seeds(groups, part)}", shown, _arms_table(groups, part)))


def _arms_table(groups: Any, part: Part) -> str:
    """Returns rate, padding, waiting and seconds of each arm; ranges over data and models."""
    rows = []
    for arm in part.arms:
        runs = [[column(groups, part, cell, arm, name).mean() for name in _FACTS] for cell in cells_of(part)]
        rates, *shares, seconds = zip(*runs, strict=True)
        ranges = (_range(tuple(100 * value for value in values), ".1f", " %") for values in shares)
        rows.append((_label(arm), _range(rates, "g"), *ranges, _range(seconds, ".1f")))
    return table(("arm", "rate", "padding", "waiting", "seconds"), rows)


_FACTS = ("rate", "padding", "waiting", "seconds")


def _range(values: Sequence[float], form: str, unit: str = "") -> str:
    ends = dict.fromkeys(format(end, form) for end in (min(values), max(values)))
    return " to ".join(ends) + unit


def _seeds(groups: Any, part: Part) -> str:
    return f"{outcomes.whole_seeds(groups, part)} of {part.seeds} seeds. Held-out loss, minus that of random steps:"


def _label(arm: str) -> str:
    name, _, knob = arm.partition("/")
    if name == "noise":
        return f"{100 * float(knob):g} % padding"
    return NAMES.get(arm, f"random, B/{knob}")


def _name(cell: Cell) -> str:
    return ", ".join(cell)


def _plain(bounds: Interval) -> str:
    return f"{bounds.mean:.1f}" + ("" if bounds.unknown else f" ({bounds.low:.1f} to {bounds.high:.1f})")


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))

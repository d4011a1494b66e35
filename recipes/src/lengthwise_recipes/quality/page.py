"""The page of the study, made from the JSON of its tasks alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lengthwise_recipes.intervals import Interval, read_interval
from lengthwise_recipes.pages import features_note, machine_note, percent, table
from lengthwise_recipes.quality.answers import PLACES, Tally, answers, record, signed_text
from lengthwise_recipes.quality.comparisons import DECIDING
from lengthwise_recipes.quality.figure import group_of, short_label
from lengthwise_recipes.quality.power import power_table

QUESTION = "Does more mixing give a better model, at equal padding and in equal training time?"
METHOD = (
    "How it was measured: every strategy with a knob is brought to the same padding on these lengths. All start from "
    "the same weights and take as many epochs. All are judged by the same held-out sequences in the same random "
    "batches. No knob, learning rate or number of epochs was chosen by the test sequences; the verdict, and the "
    "padding that is recommended, are read off them.\n\nHow to read it: intervals are of 95 %, by Student's t over the "
    "seeds. Differences are taken seed by seed; those that can be told apart from 0 stand in bold. In equal time a "
    "strategy that pads less takes more epochs, so what it wins there is speed. At equal padding nearly as many epochs "
    "fit in the time."
)
POWER = (
    "What the seeds could have told: the smallest difference of loss between max-entropy batching and another order of "
    "its padding that would be told apart in 4 of 5 tries (80 % power; two-sided 5 %, Student's t over the paired "
    "seeds). It is in percent of the other's loss, the mean over the comparisons (least to greatest). A smaller "
    "difference may be there and was not seen:"
)
RECORDS = (
    "Every order with a knob beside the others of its padding, on all tasks: in how many comparisons its loss is lower "
    "than the other's, and in how many higher. The comparisons of one padding share the runs of the order, so they "
    "fall together:"
)
HEADS = ("strategy", "compared at", "padding", "mixing", "steps", "s / epoch")
LOSS_HEADS = {
    "last": "validation loss, last epoch",
    "equal_seconds": "validation loss, equal time",
    "test_last": "test loss, last epoch",
    "test_equal_seconds": "test loss, equal time",
}
SPARE = ("steps", LOSS_HEADS["last"], LOSS_HEADS["equal_seconds"])  # of the heads: left out where room is scarce


EARLIER = (
    "By the same measure: in how many comparisons the loss of max-entropy batching was lower than another order's, and "
    "in how many higher. Nothing above counts these."
)


def page(documents: Mapping[str, Mapping[str, Any]], earlier: Mapping[str, Mapping[str, Any]] | None = None) -> str:
    """The page in Markdown; its pictures lie beside it, as `figure_name` names them.

    Args:
        documents: What `quality.study` gave for each task, as read back from JSON, by where the page finds it.
        earlier: What it had given before, at other paddings or on another machine.
    """
    found = list(documents.values())
    first, *others = answers(found)
    parts = ["# What mixing is worth", QUESTION, first, "\n".join(f"- {each}" for each in others), METHOD]
    parts += [POWER, power_table(found, LOSS_HEADS), RECORDS, records_table(found)]
    for link, document in documents.items():
        parts += section(document, json_link=link)
    if earlier:
        parts += ["## Earlier results", EARLIER, earlier_table(earlier)]
    return "\n\n".join(parts) + "\n"


def earlier_table(documents: Mapping[str, Mapping[str, Any]]) -> str:
    """One row for each padding of each result."""
    rows = [
        (
            f"{document['task']}, [{document['date'][:10]}]({link})",
            percent(document["paddings"][place]),
            str(document["settings"]["seeds"]),
            *(_lower_and_higher(record([document], document["ours"], measure, place)) for measure in LOSS_HEADS),
        )
        for link, document in documents.items()
        for place in range(len(document["paddings"]))
    ]
    return table(("result", "padding", "seeds", *LOSS_HEADS.values()), rows)


def records_table(documents: Sequence[Mapping[str, Any]]) -> str:
    """One row for each order that was brought to a padding."""
    orders = dict.fromkeys(
        each["order"] for document in documents for each in document["strategies"] if each["padding"] is not None
    )
    rows = [
        (
            f"`{order}`",
            *(_lower_and_higher(record(documents, order, measure)) for measure in LOSS_HEADS),
            *(_lower_and_higher(record(documents, order, DECIDING, place)) for place in PLACES.values()),
        )
        for order in orders
    ]
    places = [f"{LOSS_HEADS[DECIDING]}, {name} padding" for name in PLACES]
    return table(("order", *LOSS_HEADS.values(), *places), rows)


def _lower_and_higher(found: Tally) -> str:
    return f"{found.lower} lower, {found.higher} higher of {found.total}"


def section(document: Mapping[str, Any], *, json_link: str) -> list[str]:
    """One task: what was trained, its tables and its picture."""
    name = document["task"]
    return [
        f"## {name.capitalize()}",
        settings_note(document),
        strategies_table(document),
        f"Loss in {document['loss']['unit']}. *Equal time* is {document['equal_seconds']:.0f} s of planning and "
        "training: what the fastest strategy takes for all epochs. Between epochs a loss is on a straight line. *s / "
        "epoch*: the strategies train an epoch in turn, each round in an order of its own; this is the median over the "
        f"rounds of how long a strategy took beside the others. {seconds_note(document)} *Dynamic sizes* are those of "
        "Ge et al. 2021, at a constant learning rate, at one that follows the size of a step, and at one that follows "
        f"its root.{left_out_note(document)}",
        "The loss of max-entropy batching less another strategy's at the same padding:",
        comparisons_table(document),
        correlations_note(document),
        f"![Test loss minus that of random batches, by strategy; left is better]({figure_name(name)})",
        machine_note(document, link=json_link),
    ]


def figure_name(task: str) -> str:
    return f"quality-{task}.png"


def strategies_table(document: Mapping[str, Any]) -> str:
    """One row for each strategy."""
    rows = ((f"`{label}`", *cells) for label, *cells in strategy_cells(document))
    return table(strategy_heads(document), rows)


def strategy_heads(document: Mapping[str, Any]) -> tuple[str, ...]:
    return (*HEADS, *LOSS_HEADS.values(), *document["metrics"].values())


def strategy_cells(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The table's cells under `strategy_heads`, as text."""
    return [
        (
            short_label(each),
            group_of(each),
            percent(each["padding_share"]),
            f"{each['mixing']:.2f}",
            f"{each['steps']:.0f}",
            f"{each['seconds_per_epoch']:.2f}",
            *(reaching(read_interval(each["losses"][measure])) for measure in LOSS_HEADS),
            *(
                reaching(read_interval(each["metrics"][name]), of=100.0, unit=" %", digits=1)
                for name in document["metrics"]
            ),
        )
        for each in document["strategies"]
    ]


def seconds_note(document: Mapping[str, Any]) -> str:
    """How far the seconds of strategies differ that compute as much: what a comparison in equal time shows of speed."""
    groups: dict[float, list[float]] = {}
    for each in document["strategies"]:
        if each["padding"] is not None and not each["dynamic"]:
            groups.setdefault(each["padding"], []).append(each["seconds_per_epoch"])
    differ = max(max(seconds) / min(seconds) - 1.0 for seconds in groups.values())
    return f"At equal padding, where as much is computed, seconds of an epoch differ by up to {percent(differ)}."


def left_out_note(document: Mapping[str, Any]) -> str:
    return f" Left out: {'; '.join(document['left_out'])}." if document["left_out"] else ""


def comparisons_table(document: Mapping[str, Any]) -> str:
    """One row for each other strategy at each padding."""
    orders = {each["label"]: each["order"] for each in document["strategies"]}
    found = {
        (each["padding"], each["other"], each["measure"]): read_interval(each["difference"])
        for each in document["comparisons"]
        if orders[each["one"]] == document["ours"]
    }
    pairs = dict.fromkeys((padding, other) for padding, other, _ in found)
    rows = [
        (f"`{other}`", percent(padding), *(bold(found[padding, other, measure]) for measure in LOSS_HEADS))
        for padding, other in pairs
    ]
    return table(("other", "padding", *LOSS_HEADS.values()), rows)


def correlations_note(document: Mapping[str, Any]) -> str:
    """How mixing and loss go together at each padding."""
    parts = [
        f"{bold(read_interval(each['correlation']))} over {each['strategies']} strategies at {percent(each['padding'])}"
        for each in document["correlations"]
        if each["measure"] == "test_last"
    ]
    if not parts:
        return "At no padding are there strategies enough for a correlation of mixing and loss."
    return (
        "Rank correlation of mixing and test loss after the last epoch, below 0 where more mixing goes with less loss: "
        f"{'; '.join(parts)}."
    )


def settings_note(document: Mapping[str, Any]) -> str:
    """What was trained on what."""
    settings, data = document["settings"], document["data"]
    network = ", ".join(f"{name} {value:g}" for name, value in data["network"].items() if not isinstance(value, bool))
    return (
        f"{document['words']}: {document['sequences']:,} sequences of {data['name']}; {data['split']}. "
        f"Network: {network}. {settings['optimizer'].capitalize()} at a rate of {settings['learning_rate']:g}, batches "
        f"of {document['batch_size']}; epochs: {settings['epochs']}, seeds: {settings['seeds']}."
        f"{'' if document['task'] == 'handwriting' else f' {features_note(data)}'}"
    )


def reaching(found: Interval, *, of: float = 1.0, unit: str = "", digits: int = 3) -> str:
    """A mean and how far its interval reaches.

    >>> reaching(Interval(mean=0.015, low=0.0125, high=0.0175, runs=2), of=100.0, unit=" %", digits=2)
    '1.50 ± 0.25 %'
    """
    if math.isnan(found.mean):
        return "not known"
    reach = "" if found.unknown else f" ± {of * (found.high - found.mean):.{digits}f}"
    return f"{of * found.mean:.{digits}f}{reach}{unit}"


def bold(found: Interval) -> str:
    """A difference and its interval, in bold where it excludes 0.

    >>> bold(Interval(mean=0.5, low=0.25, high=0.75, runs=2))
    '**+0.500 (+0.250 to +0.750)**'
    """
    text = signed_text(found, mark="")
    return f"**{text}**" if found.excludes_zero else text

"""The page of the study, made only from the JSON of its tasks."""

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
    "How it was measured: the knobs of all strategies are set to the same padding. All strategies start from the same "
    "weights and train for the same number of epochs. Losses are measured on the same held-out sequences. The test "
    "sequences chose no knob, no learning rate and no number of epochs. The verdict follows from them.\n\n"
    "How to read it:\n\n"
    "- **Intervals** are of 95 %, by Student's t over the seeds. Differences are computed seed by seed. Those that can "
    "be told apart from 0 are in bold.\n"
    "- **Equal time** is the time of the fastest strategy for all epochs, with planning. Between epochs, losses are "
    "interpolated linearly. With less padding, more epochs fit in equal time. At equal padding nearly the same number "
    "fits.\n"
    "- **s / epoch**: in each round every strategy trains one epoch, in another order each time. This is the median "
    "over the rounds, relative to the other strategies.\n"
    "- **Dynamic sizes** are those of Ge et al. 2021, at three learning rates: constant, in proportion to the size of "
    "a step, and in proportion to its root."
)
POWER = (
    "The smallest difference from the loss of another order of equal padding that these seeds would show in 4 of 5 "
    "tries (80 % power; two-sided 5 %). It is in percent of that loss: the mean over the comparisons (least to "
    "greatest). Smaller differences may exist:"
)
RECORDS = (
    "Every order with a knob, compared with the other orders of its padding on all tasks: in how many comparisons its "
    "loss is lower, and in how many higher. Comparisons of one padding share the runs of the order, so they are not "
    "independent:"
)
HEADS = ("strategy", "compared at", "padding", "mixing", "steps", "s / epoch")
LOSS_HEADS = {
    "last": "validation loss, last epoch",
    "equal_seconds": "validation loss, equal time",
    "test_last": "test loss, last epoch",
    "test_equal_seconds": "test loss, equal time",
}
TEST_HEADS = {measure: head for measure, head in LOSS_HEADS.items() if measure.startswith("test")}
VALIDATION = [head for head in LOSS_HEADS.values() if head not in TEST_HEADS.values()]
SPARE = ("steps", *VALIDATION)  # left out of narrow tables
EARLIER = "In how many comparisons max-entropy batching had a lower or a higher loss. The counts above leave these out."


def page(documents: Mapping[str, Mapping[str, Any]], older: Mapping[str, Mapping[str, Any]] | None = None) -> str:
    """Returns the page in Markdown. Its pictures are in the same folder, with the names of `figure_name`.

    Args:
        documents: The document of `quality.study` for each task, read from JSON, by its link on the page.
        older: Earlier documents, at other paddings or from another machine.
    """
    latest = list(documents.values())
    conclusion, *sentences = answers(latest)
    bullets = "\n".join(f"- {sentence}" for sentence in sentences)
    features = dict.fromkeys(features_note(each["data"]) for each in latest if each["task"] != "handwriting")
    parts = ["# What mixing is worth", QUESTION, conclusion, bullets, METHOD, *features]
    parts += [POWER, power_table(latest, LOSS_HEADS), RECORDS, records_table(latest)]
    for link, document in documents.items():
        parts += section(document, json_link=link)
    if older:
        parts += ["## Earlier results", EARLIER, earlier_table(older)]
    return "\n\n".join(parts) + "\n"


def earlier_table(documents: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns a table with a row for each padding of each result."""
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
    """Returns a table with a row for each order with a knob."""
    orders = dict.fromkeys(
        row["order"] for document in documents for row in document["strategies"] if row["padding"] is not None
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


def _lower_and_higher(counts: Tally) -> str:
    if counts.lower == counts.higher == 0:
        return f"none of {counts.total}"
    return f"{counts.lower} lower, {counts.higher} higher of {counts.total}"


def section(document: Mapping[str, Any], *, json_link: str) -> list[str]:
    """Returns the section of a task: its settings, tables and picture."""
    name = document["task"]
    return [
        f"## {name.capitalize()}",
        settings_note(document),
        strategies_table(document),
        f"Loss in {document['loss']['unit']}; the JSON has the same on validation sequences. Equal time is "
        f"{document['equal_seconds']:.0f} s. {seconds_note(document)}"
        f"{left_out_note(document)}",
        "The loss of max-entropy batching minus that of another strategy at the same padding:",
        comparisons_table(document),
        correlations_note(document),
        f"![Test loss minus that of random batches, by strategy; left is better]({figure_name(name)})",
        machine_note(document, link=json_link),
    ]


def figure_name(task: str) -> str:
    return f"quality-{task}.png"


def strategies_table(document: Mapping[str, Any]) -> str:
    """Returns a table with a row for each strategy, without the losses on validation sequences."""
    heads = strategy_heads(document)
    shown = [place for place, head in enumerate(heads) if head not in VALIDATION]
    rows = ((f"`{label}`", *cells) for label, *cells in strategy_cells(document))
    return table([heads[place] for place in shown], ([row[place] for place in shown] for row in rows))


def strategy_heads(document: Mapping[str, Any]) -> tuple[str, ...]:
    return (*HEADS, *LOSS_HEADS.values(), *document["metrics"].values())


def strategy_cells(document: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Returns the cells of the table under `strategy_heads`, as text."""
    return [
        (
            short_label(row),
            group_of(row),
            percent(row["padding_share"]),
            f"{row['mixing']:.2f}",
            f"{row['steps']:.0f}",
            f"{row['seconds_per_epoch']:.2f}",
            *(reaching(read_interval(row["losses"][measure])) for measure in LOSS_HEADS),
            *(
                reaching(read_interval(row["metrics"][name]), of=100.0, unit=" %", digits=1)
                for name in document["metrics"]
            ),
        )
        for row in document["strategies"]
    ]


def seconds_note(document: Mapping[str, Any]) -> str:
    """Returns a sentence on the time differences between strategies of equal padding, which compute equally much."""
    groups: dict[float, list[float]] = {}
    for row in document["strategies"]:
        if row["padding"] is not None and not row["dynamic"]:
            groups.setdefault(row["padding"], []).append(row["seconds_per_epoch"])
    difference = max(max(seconds) / min(seconds) - 1.0 for seconds in groups.values())
    return (
        "At equal padding strategies compute equally much, but the seconds of an epoch differ by up to "
        f"{percent(difference)}."
    )


def left_out_note(document: Mapping[str, Any]) -> str:
    return f" Left out: {'; '.join(document['left_out'])}." if document["left_out"] else ""


def comparisons_table(document: Mapping[str, Any]) -> str:
    """Returns a table with a row for each other strategy at each padding."""
    orders = {row["label"]: row["order"] for row in document["strategies"]}
    differences = {
        (row["padding"], row["other"], row["measure"]): read_interval(row["difference"])
        for row in document["comparisons"]
        if orders[row["one"]] == document["ours"]
    }
    pairs = dict.fromkeys((padding, label) for padding, label, _ in differences)
    rows = [
        (f"`{label}`", percent(padding), *(bold(differences[padding, label, measure]) for measure in TEST_HEADS))
        for padding, label in pairs
    ]
    return table(("other", "padding", *TEST_HEADS.values()), rows)


def correlations_note(document: Mapping[str, Any]) -> str:
    """Returns a sentence on the correlation of mixing and loss at each padding."""
    parts = [
        f"{bold(read_interval(row['correlation']))} over {row['strategies']} strategies at {percent(row['padding'])}"
        for row in document["correlations"]
        if row["measure"] == "test_last"
    ]
    if not parts:
        return "No padding has enough strategies for a correlation of mixing and loss."
    return (
        "Rank correlation of mixing and test loss after the last epoch, below 0 if more mixing goes with less loss: "
        f"{'; '.join(parts)}."
    )


def settings_note(document: Mapping[str, Any]) -> str:
    """Returns a sentence on the data, the network and the settings."""
    settings, data = document["settings"], document["data"]
    network = ", ".join(f"{name} {value:g}" for name, value in data["network"].items() if not isinstance(value, bool))
    return (
        f"{document['words']}: {document['sequences']:,} sequences of {data['name']}; {data['split']}. "
        f"Network: {network}. {settings['optimizer'].capitalize()} at a rate of {settings['learning_rate']:g}, batches "
        f"of {document['batch_size']}; epochs: {settings['epochs']}, seeds: {settings['seeds']}."
    )


def reaching(mean: Interval, *, of: float = 1.0, unit: str = "", digits: int = 3) -> str:
    """Writes a mean and half the width of its interval.

    >>> reaching(Interval(mean=0.015, low=0.0125, high=0.0175, runs=2), of=100.0, unit=" %", digits=2)
    '1.50 ± 0.25 %'
    """
    if math.isnan(mean.mean):
        return "not known"
    reach = "" if mean.unknown else f" ± {of * (mean.high - mean.mean):.{digits}f}"
    return f"{of * mean.mean:.{digits}f}{reach}{unit}"


def bold(difference: Interval) -> str:
    """Writes a difference and its interval, in bold if it excludes 0.

    >>> bold(Interval(mean=0.5, low=0.25, high=0.75, runs=2))
    '**+0.500 (+0.250 to +0.750)**'
    """
    text = signed_text(difference, mark="")
    return f"**{text}**" if difference.excludes_zero else text

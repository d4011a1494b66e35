"""The page of the study and its picture, made only from the JSON of its tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lengthwise_recipes.intervals import CONFIDENCE, Interval, interval
from lengthwise_recipes.pages import machine_note, percent, table
from lengthwise_recipes.quality import contrasts
from lengthwise_recipes.quality.contrasts import LAST, Contrast, Document, Equal

MIXING = (
    "*Mixing* measures how random the lengths in batches are ([why](../../docs/theory.md)): near 1 in random batches, "
    "and near 0 in sorted ones, which are shuffled."
)
BETWEEN = (
    "If loss rises or falls steadily with mixing, no order in between differs more from random batches than sorted "
    "batches do."
)
TIME = "*Equal time*: the slower strategy stops when the faster one has trained all its epochs."
UNIT = (
    "Differences are in percent of the loss, with intervals of 95 % (Student's t over the seeds), bold if they exclude "
    "0. *Detectable* is the smallest difference that we would detect in 4 of 5 studies (80 % power, two-sided 5 %). "
    "The last row is computed from the means over the tasks, one for each seed. It says nothing about other tasks."
)
METHOD = (
    "The knob of each order is fitted to the padding in the table; the JSON has what it came to. All strategies start "
    "from the same weights and train for the same number of epochs. Differences are computed seed by seed. The test "
    "sequences chose no knob, no learning rate and no number of epochs. Losses between epochs are interpolated "
    "linearly. In each round every strategy trains one epoch. Seconds are medians over the rounds, relative to the "
    "median strategy of each round."
)
LOSSES = (
    f"A loss is the mean over the last {LAST} epochs, on test sequences. We chose {LAST} by the widths of the "
    "intervals of 2026-11-22, not by the differences."
)
DYNAMIC = (
    "Dynamic sizes (Ge et al. 2021) put more short sequences into a batch, so an epoch has fewer steps. Each order has "
    "the learning rate that was best on validation sequences: constant, or in proportion to the size of a step, or to "
    "its root. The fixed size has one rate. The table has the loss of each order minus that with a fixed size, at "
    "about the same padding. At equal steps, the fixed size has trained fewer epochs."
)
HEADS = ("strategy", "compared at", "padding", "mixing", "steps", "s / epoch", "test loss", "test loss, equal time")
RATES = {"none": "constant", "linear": "size", "root": "root"}  # by the scaling of the learning rate
SPARE = ("steps",)  # left out of narrow tables
FIGURE = "quality.svg"
PICTURE = "Test loss minus that of random batches, after equally many epochs; left is better"


def page(documents: Mapping[str, Document]) -> str:
    """Returns the page in Markdown. Its picture, `FIGURE`, is in the same folder.

    Args:
        documents: The document of `quality.study` for each task, read from JSON, by its link on the page.
    """
    latest = list(documents.values())
    answer, *facts = lead(latest)
    parts = [
        "# What mixing is worth",
        answer,
        f"{MIXING} {' '.join(facts)}",
        "## Sorted and random batches",
        "The loss of sorted batches minus that of random batches:",
        contrast_table(latest, contrasts.sorted_to_random),
        f"{TIME} {UNIT}",
        "On 2026-11-22, with the plans of then, handwriting had -4.6 % (-12.5 to +3.3).",
        early_note(latest),
        f"![{PICTURE}]({FIGURE})",
        chance_sentence(latest),
        "## Orders at equal padding",
        f"{orders_sentence(latest)} {span_sentence(latest)}",
        contrast_table(latest, contrasts.ours_to_orders),
        "The loss of max-entropy minus the mean loss of the other orders at its padding, as a mean over the paddings. "
        "Earlier studies, of 2026-11-21 and 22, had +0.9 % (+0.1 to +1.8) and +0.3 % (-0.7 to +1.3) for synthesis.",
        "## Dynamic sizes",
        DYNAMIC,
        dynamic_table(latest),
        "## All strategies",
        f"{METHOD} {LOSSES}",
        losses_table(latest),
        "Losses are in the units below, ± half the width of the interval. The JSON has the loss of every epoch, the "
        "other measures, and the knob of every order.",
    ]
    for link, document in documents.items():
        task = document["task"].capitalize()
        parts += [f"### {task}", settings_note(document), machine_note(document, link=link)]
    return "\n\n".join(parts) + "\n"


def lead(documents: Sequence[Document]) -> list[str]:
    """Returns the answer on sorted and random batches, then the sentences that it rests on."""
    by_task = {document["task"]: interval(contrasts.sorted_to_random(document, "epochs")) for document in documents}
    if any(difference.unknown for difference in by_task.values()):
        return ["Sorted and random batches cannot be compared: there is one seed alone, or a run diverged."]
    apart = [task for task, difference in by_task.items() if difference.excludes_zero]
    shown = f"differ on {_listed(apart)}" if apart else f"show no difference on {_listed(list(by_task))}"
    in_time = {document["task"]: interval(contrasts.sorted_to_random(document, "time")) for document in documents}
    faster = {task: difference for task, difference in in_time.items() if difference.excludes_zero}
    alike = [task for task, difference in in_time.items() if not (difference.excludes_zero or difference.unknown)]
    ties = f". They show no difference on {_listed(alike)}" if alike else ""
    when = "In equal time (when the faster one has its last 3 epochs), where speed counts,"
    speed = f" {when} the losses differ: {_signed_tasks(faster)}{ties}." if faster else ""
    seeds = documents[0]["settings"]["seeds"]
    sorted_mixing, random_mixing = (_span(documents, {order}) for order in ("sorted", documents[0]["reference"]))
    return [
        f"After equally many epochs, the test losses of sorted and of random batches {shown}. Sorted minus random, in "
        f"percent of the loss: {_signed_tasks(by_task)}. With {seeds} seeds we would detect "
        f"{_listed([detectable(difference) for difference in by_task.values()])} in 4 of 5 studies.{speed}",
        f"Sorted batches have a mixing of {sorted_mixing}, random ones of {random_mixing}.",
        BETWEEN,
    ]


def _signed_tasks(differences: Mapping[str, Interval]) -> str:
    return _listed([f"{task} {signed(difference)}" for task, difference in differences.items()])


def orders_sentence(documents: Sequence[Document]) -> str:
    """Returns the answer on max-entropy and the other orders at its padding."""
    difference = contrasts.pooled(documents, contrasts.ours_to_orders, "epochs")
    if difference.unknown:
        return "Whether max-entropy has another loss than other orders at its padding is not known."
    relation = "differs" if difference.excludes_zero else "shows no difference"
    return (
        f"At equal padding the test loss of max-entropy {relation} from the mean of other orders: "
        f"{signed(difference)}. We would detect {detectable(difference)}."
    )


def span_sentence(documents: Sequence[Document]) -> str:
    """Returns a sentence on the mixing of all orders with a knob."""
    orders = {row["order"] for document in documents for row in document["strategies"] if row["padding"] is not None}
    return (
        f"All these orders have a mixing of {_span(documents, orders)}, so this comparison could hardly show an effect "
        "of mixing."
    )


def _span(documents: Sequence[Document], orders: set[str]) -> str:
    """Returns the least and the greatest mixing of orders with a fixed size, as text."""
    rows = (row for document in documents for row in document["strategies"])
    mixing = [row["mixing"] for row in rows if row["order"] in orders and not row["dynamic"]]
    return " to ".join(dict.fromkeys(f"{bound:.2f}" for bound in (min(mixing), max(mixing))))


def contrast_table(documents: Sequence[Document], contrast: Contrast) -> str:
    """Returns a table with a row for each task, and one for their mean."""
    rows = [(document["task"], *_contrast_cells([document], contrast)) for document in documents]
    if len(documents) > 1:
        rows.append(("mean of the tasks", *_contrast_cells(documents, contrast)))
    return table(("task", "equal epochs", "detectable", "equal time", "detectable"), rows)


def _contrast_cells(documents: Sequence[Document], contrast: Contrast) -> list[str]:
    equals: tuple[Equal, Equal] = ("epochs", "time")
    differences = [contrasts.pooled(documents, contrast, equal) for equal in equals]
    return [cell for difference in differences for cell in (bold(difference), detectable(difference))]


def early_note(documents: Sequence[Document]) -> str:
    """Returns a paragraph on the first half of the epochs."""
    by_seed = {document["task"]: contrasts.sorted_to_random_early(document) for document in documents}
    mean = interval(np.mean(list(by_seed.values()), axis=0))
    tasks = _listed([f"{task} {bold(interval(differences))}" for task, differences in by_seed.items()])
    return (
        f"Looked at afterwards, with the results known: over the first half of the epochs the difference is {tasks}. "
        f"The mean of the tasks is {bold(mean)}. So a loss early in training may say nothing of the last."
    )


def dynamic_table(documents: Sequence[Document]) -> str:
    """Returns a table with a row for each task and order."""
    rows: list[tuple[str, ...]] = []
    for document in documents:
        by_label = contrasts.strategies_of(document)
        for label, fixed in contrasts.dynamic_pairs(document):
            row = by_label[label]
            equals: tuple[Equal, Equal] = ("epochs", "steps")
            differences = [
                interval(contrasts.relative_differences(document, label, [fixed], equal)) for equal in equals
            ]
            rate = RATES[row["learning_rate_scaling"]]
            steps = f"{row['steps']:.0f}, fixed {by_label[fixed]['steps']:.0f}"
            rows.append((document["task"], f"`{row['order']}`", rate, steps, *map(bold, differences)))
    return table(("task", "order", "rate", "steps an epoch", "equal epochs", "equal steps"), rows)


def losses_table(documents: Sequence[Document]) -> str:
    """Returns a table with a row for each order at each padding, and for each task its mixing and test loss."""
    by_group = [_fixed_rows(document) for document in documents]
    groups = dict.fromkeys(key for groups in by_group for key in groups)
    rows = [
        (
            f"`{order}`",
            padding_name(documents, place),
            *(
                cell
                for document, group in zip(documents, by_group, strict=True)
                for cell in _loss_cells(document, group.get((place, order)))
            ),
        )
        for place, order in groups
    ]
    heads = [f"{document['task']}: {head}" for document in documents for head in ("mixing", "loss")]
    return table(("order", "padding", *heads), rows)


def _loss_cells(document: Document, row: Mapping[str, Any] | None) -> tuple[str, str]:
    if row is None:
        return ("", "")
    return (f"{row['mixing']:.2f}", reaching(interval(contrasts.mean_losses(document, row["label"]))))


def _fixed_rows(document: Document) -> dict[tuple[int | None, str], Mapping[str, Any]]:
    """Returns the strategies with a fixed size, by the place of their padding in the document, and their order."""
    places = {None: None, **{padding: place for place, padding in enumerate(document["paddings"])}}
    return {(places[row["padding"]], row["order"]): row for row in document["strategies"] if not row["dynamic"]}


def padding_name(documents: Sequence[Document], place: int | None) -> str:
    """Names the padding at a place of all documents.

    >>> padding_name([{"paddings": [0.05, 0.1]}, {"paddings": [0.055, 0.1]}], 0)
    '5 to 5.5 %'
    """
    if place is None:
        return "no knob"
    shares = sorted({100 * document["paddings"][place] for document in documents if place < len(document["paddings"])})
    return f"{' to '.join(dict.fromkeys(f'{share:g}' for share in (shares[0], shares[-1])))} %"


def write_figure(documents: Sequence[Document], path: Path) -> None:
    """Draws the relative difference of each order with a fixed size from random batches, in a panel for each task."""
    from lengthwise_recipes.pictures import loss_differences, save

    groups: dict[str, dict[str, list[Interval]]] = {}
    for (place, order), differences in _to_random(documents).items():
        name = padding_name(documents, place)
        groups.setdefault(name if place is None else f"{name} padding", {})[order] = differences
    title = "Test loss minus that of random batches, as a share of it"
    seeds = documents[0]["settings"]["seeds"]
    notes = [
        "After equally many epochs; left is better",
        f"Means of {seeds} seeds with 95 % intervals; filled: 0 lies outside",
    ]
    tasks = [document["task"] for document in documents]
    save(loss_differences(groups, tasks, title, notes), path)


def chance_sentence(documents: Sequence[Document]) -> str:
    """Returns a sentence on how many differences of the picture exclude 0, and how many would by chance."""
    differences = [difference for row in _to_random(documents).values() for difference in row]
    apart, count = sum(difference.excludes_zero for difference in differences), len(differences)
    by_chance = (1.0 - CONFIDENCE) * count
    return f"0 lies outside {apart} of these {count} intervals. By chance it would lie outside about {by_chance:.1f}."


def _to_random(documents: Sequence[Document]) -> dict[tuple[int | None, str], list[Interval]]:
    """Returns for each order with a fixed size its relative difference from random batches on each task."""
    by_document = [_fixed_rows(document) for document in documents]
    keys = dict.fromkeys(key for rows in by_document for key in rows)
    return {
        key: [_difference(document, rows.get(key)) for document, rows in zip(documents, by_document, strict=True)]
        for key in keys
        if key[1] != documents[0]["reference"]
    }


def _difference(document: Document, row: Mapping[str, Any] | None) -> Interval:
    if row is None:
        return interval([math.nan])
    return interval(contrasts.relative_differences(document, row["label"], [document["reference"]], "epochs"))


def strategy_cells(document: Document) -> list[tuple[str, ...]]:
    """Returns the cells of the table of a task, as text, under `HEADS` and the names of its metrics."""
    labels = [row["label"] for row in document["strategies"]]
    pace = contrasts.paces(document, labels, "time")
    return [
        (
            row["label"].replace(", dynamic sizes", ""),
            _group_of(row),
            percent(row["padding_share"]),
            f"{row['mixing']:.2f}",
            f"{row['steps']:.0f}",
            f"{row['seconds_per_epoch']:.2f}",
            reaching(interval(contrasts.mean_losses(document, row["label"]))),
            reaching(interval(contrasts.mean_losses(document, row["label"], pace=pace[row["label"]]))),
            *(_metric(document, row["label"], name) for name in document["metrics"]),
        )
        for row in document["strategies"]
    ]


def _group_of(row: Mapping[str, Any]) -> str:
    if row["dynamic"]:
        return "dynamic sizes"
    return "no knob" if row["padding"] is None else f"{100 * row['padding']:g} % padding"


def _metric(document: Document, label: str, name: str) -> str:
    values = [run["metrics"][name] for run in document["runs"] if run["strategy"] == label]
    shares = [math.nan if value is None else value for value in values]
    return reaching(interval(shares), of=100.0, unit=" %", digits=1)


def settings_note(document: Document) -> str:
    """Returns a sentence on the data, the network and the settings."""
    settings, data = document["settings"], document["data"]
    network = ", ".join(f"{name} {value:g}" for name, value in data["network"].items() if not isinstance(value, bool))
    left_out = f" Left out: {'; '.join(document['left_out'])}." if document["left_out"] else ""
    features = f" Features by {data['features']}." if "features" in data else ""
    return (
        f"{document['words']}: {document['sequences']:,} sequences of {data['name']}; {data['split']}. "
        f"Network: {network}. {settings['optimizer'].capitalize()} at a rate of {settings['learning_rate']:g}, batches "
        f"of {document['batch_size']}; epochs: {settings['epochs']}, seeds: {settings['seeds']}. Loss in "
        f"{document['loss']['unit']}.{left_out}{features}"
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


def signed(difference: Interval) -> str:
    """Writes a relative difference and its interval in percent.

    >>> signed(Interval(mean=-0.123, low=-0.2, high=0.05, runs=5))
    '-12.3 % (-20.0 to +5.0)'
    """
    if difference.unknown:
        return "not known"
    return f"{100 * difference.mean:+.1f} % ({100 * difference.low:+.1f} to {100 * difference.high:+.1f})"


def bold(difference: Interval) -> str:
    """Writes as `signed`, in bold if the interval excludes 0.

    >>> bold(Interval(mean=0.5, low=0.25, high=0.75, runs=2))
    '**+50.0 % (+25.0 to +75.0)**'
    """
    return f"**{signed(difference)}**" if difference.excludes_zero else signed(difference)


def detectable(difference: Interval) -> str:
    """Writes the smallest difference that such runs would detect in 4 of 5 studies."""
    return "nothing" if difference.unknown else percent(difference.smallest_difference)


def _listed(words: Sequence[str]) -> str:
    """Joins words by commas and a last "and"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))

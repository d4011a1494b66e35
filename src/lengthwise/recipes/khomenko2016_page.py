"""The page and the figures of the rerun of Khomenko et al. 2016, made from its JSON alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from lengthwise.recipes.pages import claims_table, measured, percent, spread, table

FIGURES = {
    "lengths": "The lengths trained on and 6 optimal buckets (figure 2).",
    "speed-up": "Epoch time and speed-up by the number of buckets (figure 4).",
    "buckets": "Validation loss by time and epochs for each number of buckets (figure 3).",
    "processes": "Validation loss by time and epochs for each number of processes (figure 5).",
}


def page(document: Mapping[str, Any], *, json_link: str) -> str:
    """The page in Markdown; its pictures lie beside it, as `write_figures` names them.

    Args:
        document: What `khomenko2016.reproduce` gave, as read back from JSON.
        json_link: Where the page finds it.
    """
    done = [claim["verdict"] for claim in document["claims"]]
    counts = ", ".join(f"{done.count(verdict)} {verdict}" for verdict in dict.fromkeys(done))
    parts = [
        "# Khomenko et al. 2016: accelerating recurrent neural network training by sequence bucketing",
        f"Of {len(done)} claims: {counts}. The paper's data are not public, and it tells neither network nor batch "
        f"size; what was trained here is said below. {measured(document, link=json_link)}",
        claims_table(document["claims"]),
        "## For which lengths buckets give 4 times",
        headline(document),
        bounds_table(document),
        "Padded frames in one bucket over those in Q optimal ones, each sequence padded to the edge of its bucket; "
        f"families of {document['sequences_of_families']:,} sequences.",
        "## Buckets",
        buckets_table(document["buckets"], document),
        settings_note(document["buckets"], document["size"]),
        *([] if document["processes"] is None else ["## Processes", processes_table(document["processes"])]),
        "## Figures",
        *(f"![{text}]({figure_name(name)})\n\n{text}" for name, text in figures_of(document).items()),
    ]
    return "\n\n".join(parts) + "\n"


def write_figures(document: Mapping[str, Any], folder: Path) -> None:
    """Draws the figures of the paper into a folder."""
    from lengthwise import plot

    lengths = np.repeat(document["lengths"]["values"], document["lengths"]["counts"])
    rows = document["buckets"]["rows"]
    bounds = {int(buckets): bound for buckets, bound in document["bounds"][0]["speed_ups"].items()}
    drawn = {
        "lengths": plot.bucket_histogram(lengths, document["edges"]["6"], unit="points"),
        "speed-up": plot.speed_up_bars(_seconds(rows, bounds), bounds),
        "buckets": plot.learning_curves(rows),
    }
    if document["processes"] is not None:
        drawn["processes"] = plot.learning_curves(document["processes"]["rows"])
    for name, figure in drawn.items():
        plot.save(figure, folder / figure_name(name))


def figures_of(document: Mapping[str, Any]) -> dict[str, str]:
    """The figures that there are, and what each shows."""
    return {name: text for name, text in FIGURES.items() if name != "processes" or document["processes"] is not None}


def figure_name(name: str) -> str:
    return f"khomenko2016-{name}.png"


def headline(document: Mapping[str, Any]) -> str:
    """For which lengths the paper's 4 times holds, in one sentence of computed numbers."""
    trained, *others = ((bound["lengths"], bound["speed_ups"]["3"]) for bound in document["bounds"])
    others = [(name, value) for name, value in others if not name.startswith("log-normal")]
    enough = ", ".join(f"{name} ({value:.1f})" for name, value in others if value >= 4.0)
    too_few = ", ".join(f"{name} ({value:.1f})" for name, value in others if value < 4.0)
    return (
        f"That Q = 3 is 4 times faster than Q = 1 is a property of the lengths: of log-normal ones it holds from a "
        f"sigma of {document['sigma_that_allows_4']:.3f} on, and of these too: {enough}; it cannot hold of these: "
        f"{too_few}; and the lengths trained on here allow {trained[1]:.2f}."
    )


def bounds_table(document: Mapping[str, Any]) -> str:
    """What Q buckets can win on each kind of lengths."""
    columns = [buckets for buckets in document["bounds"][0]["speed_ups"] if buckets != "1"]
    rows = [
        (
            bound["lengths"],
            f"{bound['sequences']:,}",
            *(f"{bound['speed_ups'][buckets]:.2f}" for buckets in columns),
            f"{bound['limit']:.2f}",
        )
        for bound in document["bounds"]
    ]
    return table(("lengths", "sequences", *(f"Q = {buckets}" for buckets in columns), "longest / mean"), rows)


def buckets_table(study: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """One row for each number of buckets, and one for batches padded to their own longest."""
    bounds = {f"Q = {buckets}": bound for buckets, bound in document["bounds"][0]["speed_ups"].items()}
    rows = []
    for each in study["summary"]:
        ups = document["speed_ups"][each["strategy"]]
        name = each["strategy"]
        rows.append(
            (
                name if name in bounds else f"{name}, padded to each batch's longest",
                ", ".join(map(str, document["edges"].get(name.removeprefix("Q = "), []))),
                percent(each["padding_share"]),
                f"{each['seconds_per_epoch']:.2f}",
                spread({"mean": fmean(ups), "least": min(ups), "greatest": max(ups)}),
                f"{bounds[name]:.2f}" if name in bounds else "",
                spread(each["best_validation_loss"]),
                percent(each["character_error_rate"]["mean"]),
            )
        )
    heads = ("buckets", "edges", "padding", "s / epoch", "speed-up", "at most", "least validation loss", "CER")
    return table(heads, rows)


def processes_table(study: Mapping[str, Any]) -> str:
    """One row for each number of processes."""
    rows = [
        (
            str(each["processes"]),
            f"{each['steps']:.0f}",
            f"{each['seconds_per_epoch']:.2f}",
            f"{1 / each['share_of_first_seconds']:.2f}",
            percent(each["straggler_waste"]),
            spread(each["best_validation_loss"]),
            percent(each["character_error_rate"]["mean"]),
        )
        for each in study["summary"]
    ]
    heads = ("processes", "steps", "s / epoch", "speed-up", "straggler waste", "least validation loss", "CER")
    note = (
        "6 buckets; parameters averaged after each epoch by equation 3 with alpha = 1 and beta = 1e-6, portions of the "
        "data dealt anew each epoch. Straggler waste is the share of their time that the plan leaves to waiting."
    )
    return f"{table(heads, rows)}\n\n{note}"


def settings_note(study: Mapping[str, Any], size: Mapping[str, Any]) -> str:
    """What was trained on what."""
    data, settings = study["data"], study["settings"]
    return (
        f"{data['train_samples']:,} {data['name']}, {data['symbols']} symbols, and {data['validation_samples']:,} to "
        f"validate on; {data['split']}. Bidirectional LSTM, layers: {settings['layers']}, cells each way: "
        f"{settings['hidden']}; CTC; ADADELTA; {size['batch_size']} sequences a batch, shorter buckets first; epochs: "
        f"{settings['epochs']}, seeds: {settings['seeds']}. Validation loss in nats a symbol, mean over seeds (least "
        "to greatest); CER is the character error rate after the last epoch."
    )


def _seconds(rows: list[dict[str, Any]], bounds: Mapping[int, float]) -> dict[int, list[float]]:
    """Mean seconds of an epoch for each seed, by the number of buckets."""
    seeds = sorted({row["seed"] for row in rows})
    return {
        buckets: [
            fmean(row["seconds"] for row in rows if (row["strategy"], row["seed"]) == (f"Q = {buckets}", seed))
            for seed in seeds
        ]
        for buckets in bounds
    }

"""The page and the figures of the rerun of Khomenko et al. 2016, made only from its JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

import lengthwise as lw
from lengthwise_recipes import pages
from lengthwise_recipes.khomenko2016.claims import (
    BUCKETS,
    BUCKETS_OF_PROCESSES,
    SHUFFLED,
    claims_of,
    epoch_seconds,
    hardware,
    label,
    name_alone,
    rows_on,
    speed_ups,
)
from lengthwise_recipes.pages import over_seeds, percent, spread, table
from lengthwise_recipes.study.results import EpochRow, timed_rows

PAPER = "khomenko2016"
NAMES = {SHUFFLED: f"{SHUFFLED}, batches in random order", "random": "random, padded to each batch's longest"}
FIGURES = {
    "lengths": "The lengths trained on and 6 optimal buckets (figure 2).",
    "speed-up": "Epoch time and speed-up by the number of buckets, on each number of processes, with the "
    "speed-up of the padded frames (figure 4).",
    "buckets": "Validation loss by time and epochs for each number of buckets, on one process (figure 3).",
    "processes": "Validation loss by time and epochs for each number of processes, with 6 buckets (figure 5).",
}


def page(document: Mapping[str, Any], *, json_link: str) -> str:
    """Returns the page in Markdown of a document read from JSON; the pictures of `write_figures` are in its folder."""
    claims = claims_of(document)
    captions = {name: text for name, text in FIGURES.items() if name != "processes" or several(document)}
    parts = [
        "# Khomenko et al. 2016: accelerating recurrent neural network training by sequence bucketing",
        f"{pages.verdicts(claims)} The paper's data are not public, and the paper does not say its network or batch "
        "size.",
        pages.machine_note(document, link=json_link),
        pages.judgement(claims),
        "## For which lengths 3 buckets compute 4 times fewer frames",
        headline(document),
        bounds_table(document),
        "The table has the padded frames with one bucket over those with Q optimal buckets, each sequence padded to "
        f"the edge of its bucket. From *all alike* on lengths of {document['sequences_of_families']:,} are computed.",
        "## Buckets",
        buckets_table(document),
        settings_note(document["study"], document["size"]),
        *(processes_parts(document) if several(document) else []),
        *(compiled_parts(document) if document.get("compiled") else []),
        pages.figures(PAPER, captions),
    ]
    return "\n\n".join(parts) + "\n"


def write_figures(document: Mapping[str, Any], folder: Path) -> None:
    """Draws the figures of the paper into a folder."""
    from lengthwise_recipes.pictures import DASHES, learning_curves, rising_looks, save, speed_up_curves

    lengths = np.repeat(document["lengths"]["values"], document["lengths"]["counts"])
    rising = rising_looks([label(buckets) for buckets in BUCKETS])
    rising[SHUFFLED] = rising[label(BUCKETS_OF_PROCESSES)]._replace(dash=DASHES[1])
    alone = [row for row in document["study"]["rows"] if row["processes"] == 1]
    bounds = {int(buckets): bound for buckets, bound in document["bounds"][0]["speed_ups"].items()}
    figures = {"speed-up": speed_up_curves(series(document), bounds), "buckets": learning_curves(alone, looks=rising)}
    if several(document):
        figures["processes"] = _draw_processes(document["study"]["rows"])
    figures["lengths"] = lw.report.histogram(lengths, edges=document["edges"]["6"], unit="points")
    for name, figure in figures.items():
        save(figure, folder / pages.figure_name(PAPER, name))


def _draw_processes(rows: Sequence[Mapping[str, Any]]) -> Any:
    from lengthwise_recipes.pictures import learning_curves, rising_looks

    chosen = [row for row in rows if name_alone(row["strategy"]) == label(BUCKETS_OF_PROCESSES)]
    named = [{**row, "strategy": processes_label(row["processes"])} for row in chosen]
    looks = rising_looks(dict.fromkeys(row["strategy"] for row in named))
    return learning_curves(named, looks=looks, title=f"{label(BUCKETS_OF_PROCESSES)}, parameters averaged every epoch")


def several(document: Mapping[str, Any]) -> bool:
    """Returns True if any run had more than one process."""
    return len(document["size"]["processes"]) > 1


def series(document: Mapping[str, Any]) -> dict[str, dict[int, list[float]]]:
    """Returns figure 4: median seconds of an epoch under each seed, by processes and by the number of buckets."""
    by_name = {
        processes_label(processes): {buckets: seconds[label(buckets)] for buckets in BUCKETS}
        for processes, seconds in by_processes(document, epoch_seconds).items()
    }
    compiled = {int(buckets): [median(times["seconds"])] for buckets, times in document.get("compiled", {}).items()}
    return by_name | ({"compiled": compiled} if compiled else {})


def by_processes(
    document: Mapping[str, Any], measure: Callable[[Sequence[EpochRow], str], list[float]]
) -> dict[int, dict[str, list[float]]]:
    """Applies `measure` to each run, by processes and by the run's name on one process."""
    rows = timed_rows(document["study"])
    groups = {processes: rows_on(rows, processes) for processes in sorted({row.processes for row in rows})}
    return {
        processes: {name: measure(group, name) for name in dict.fromkeys(row.strategy for row in group)}
        for processes, group in groups.items()
    }


def processes_label(processes: int) -> str:
    """Names a number of processes.

    >>> processes_label(1), processes_label(4)
    ('1 process', '4 processes')
    """
    return f"{processes} process{'es' * (processes > 1)}"


def headline(document: Mapping[str, Any]) -> str:
    """Lists the lengths for which 3 buckets compute 4 times fewer frames, and those for which they do not."""
    _, *families = ((bound["lengths"], bound["speed_ups"]["3"]) for bound in document["bounds"])
    fast = ", ".join(f"{name} ({value:.1f})" for name, value in families if value >= 4.0)
    slow = ", ".join(f"{name} ({value:.1f})" for name, value in families if value < 4.0)
    return (
        "The lengths decide how many times fewer frames are computed with Q = 3 than with Q = 1. It is 4 times or more "
        f"for log-normal lengths from a sigma of {document['sigma_that_allows_4']:.3f} on, and for these: {fast}. It "
        f"is less for these: {slow}."
    )


def bounds_table(document: Mapping[str, Any]) -> str:
    """Returns the bound of Q buckets on each kind of lengths."""
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


def buckets_table(document: Mapping[str, Any]) -> str:
    """Returns a row for each run on one process."""
    buckets_by_name = {label(buckets): str(buckets) for buckets in BUCKETS} | {SHUFFLED: str(BUCKETS_OF_PROCESSES)}
    bounds = document["bounds"][0]["speed_ups"]
    seconds, ups = (by_processes(document, measure)[1] for measure in (epoch_seconds, speed_ups))
    rows = []
    for summary in (summary for summary in document["study"]["summary"] if summary["processes"] == 1):
        name = summary["strategy"]
        buckets = buckets_by_name.get(name, "")
        rows.append(
            (
                NAMES.get(name, name),
                ", ".join(map(str, document["edges"].get(buckets, []))),
                percent(summary["padding_share"]),
                f"{fmean(seconds[name]):.2f}",
                over_seeds(ups[name]),
                f"{bounds[buckets]:.2f}" if buckets else "",
                spread(summary["best_validation_loss"]),
                percent(summary["character_error_rate"]["mean"]),
            )
        )
    heads = ("buckets", "edges", "padding", "s / epoch", "speed-up", "by frames", "least validation loss", "CER")
    return table(heads, rows)


def processes_parts(document: Mapping[str, Any]) -> list[str]:
    """Returns the sections on several processes."""
    return [
        "## Buckets on several processes",
        times_table(document),
        "Speed-up over Q = 1 on the same number of processes; mean over seeds (least to greatest). The processes "
        f"{hardware(document)}; the paper's figure 4 was measured on 6 GPUs.",
        "## Processes",
        processes_table(document),
        "These runs have 6 buckets. After each epoch the parameters are averaged by equation 3 with alpha = 1 and "
        "beta = 1e-6, and the data are dealt to the processes again. Deviation: the paper spawns new processes for "
        "each epoch; ours live through the run and keep the sums of ADADELTA. Waiting is the share of time that "
        "processes wait for each other, computed from the plan.",
    ]


def compiled_parts(document: Mapping[str, Any]) -> list[str]:
    """Returns the section on one compiled model for each bucket."""
    seconds = {buckets: median(times["seconds"]) for buckets, times in document["compiled"].items()}
    rows = [
        (
            label(int(buckets)),
            f"{times['compile_seconds']:.1f}",
            f"{times['load_seconds']:.1f}",
            f"{seconds[buckets]:.2f}",
            f"{seconds['1'] / seconds[buckets]:.2f}",
            f"{document['bounds'][0]['speed_ups'][buckets]:.2f}",
        )
        for buckets, times in document["compiled"].items()
    ]
    heads = ("buckets", "compiling, s", "loading, s", "s / epoch", "speed-up", "by frames")
    return [
        "## One compiled model for each bucket",
        table(heads, rows),
        "The paper compiles a model for each bucket and stores it. Here JAX does, with the same weights for all. "
        f"Median of {document['size']['compiled']} epochs.",
    ]


def times_table(document: Mapping[str, Any]) -> str:
    """Returns figure 4 in numbers: seconds and speed-up by buckets (rows) and several processes (columns)."""
    seconds, ups = (by_processes(document, measure) for measure in (epoch_seconds, speed_ups))
    del seconds[1]  # the table of buckets has them
    columns = [values[processes] for processes in seconds for values in (seconds, ups)]
    rows = [(name, *(over_seeds(column[name]) for column in columns)) for name in map(label, BUCKETS)]
    heads = [head for processes in map(processes_label, seconds) for head in (f"{processes}, s / epoch", "speed-up")]
    return table(("buckets", *heads), rows)


def processes_table(document: Mapping[str, Any]) -> str:
    """Returns figure 5 in numbers: one row per number of processes."""
    name, study = label(BUCKETS_OF_PROCESSES), document["study"]
    seconds = {processes: fmean(runs[name]) for processes, runs in by_processes(document, epoch_seconds).items()}
    rows = [
        (
            str(summary["processes"]),
            f"{summary['steps']:.0f}",
            f"{seconds[summary['processes']]:.2f}",
            f"{seconds[1] / seconds[summary['processes']]:.2f}",
            percent(summary["straggler_waste"]),
            spread(summary["best_validation_loss"]),
            percent(summary["character_error_rate"]["mean"]),
        )
        for summary in study["summary"]
        if name_alone(summary["strategy"]) == name
    ]
    heads = ("processes", "steps", "s / epoch", "speed-up", "waiting", "least validation loss", "CER")
    return table(heads, rows)


def settings_note(study: Mapping[str, Any], size: Mapping[str, Any]) -> str:
    """Describes data, network and settings."""
    data, settings = study["data"], study["settings"]
    return (
        f"Data: {data['train_samples']:,} {data['name']}, of {data['symbols']} symbols, and "
        f"{data['validation_samples']:,} that validate; {data['split']}. The paper validates on a random 5 % of the "
        f"samples. Network: bidirectional LSTM with CTC, layers: {settings['layers']}, cells "
        f"each way: {settings['hidden']}, points of the pen in a frame: {settings['stack']}. ADADELTA, gradients "
        f"clipped to a norm of {settings['clipped_norm']:g}. Batches of {size['batch_size']}, shorter buckets first. "
        f"Epochs: {settings['epochs']}, seeds: {settings['seeds']}. Times and speed-ups are those of "
        f"{pages.timed_epoch(size)}, as means. Validation loss is in nats a symbol, as a mean over seeds "
        "(least to greatest). CER is the character error rate after the last epoch."
    )

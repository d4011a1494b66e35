"""The page and the figures of the rerun of Doetsch et al. 2017, made from its JSON alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import lengthwise as lw
from lengthwise_recipes.claims import RULE
from lengthwise_recipes.doetsch2017.batchings import (
    BUCKET_SPAN,
    COUNTED,
    FIGURE_BINS,
    MXNET,
    PAPER_CHUNKS,
    RANDOM,
    SORTED,
    bins_label,
    chunk_label,
    figure_batchings,
)
from lengthwise_recipes.doetsch2017.claims import Row, claims_of, paper_rows
from lengthwise_recipes.doetsch2017.outcomes import ratios
from lengthwise_recipes.pages import (
    claims_table,
    features_note,
    machine_note,
    percent,
    reasons,
    table,
    verdicts,
    within,
)

FIGURES = {
    "order": f"Lengths in the order of an epoch: random, sorted, buckets that span {BUCKET_SPAN} frames each and "
    f"alternated sorting with {FIGURE_BINS} bins (figure 1).",
    "loss": "Cross-entropy of validation frames by training time: a panel for every batching, beside random order.",
    "loss-epochs": "The same by epochs.",
}
CHUNKS = "#8C5A3C"  # the colour of which sizes of chunks are shades
HEADS = ("batches", "utt/s", "of whole", "paper", "memory, MB", "of whole", "paper")
HEADS_OF_ERROR = ("WER, %", "of whole", "paper", "frame error", "padding", "mixing", "steps")


def page(document: Mapping[str, Any], *, json_link: str) -> str:
    """The page in Markdown; its pictures lie beside it, as `write_figures` names them.

    Args:
        document: What `rerun.reproduce` gave, as read back from JSON.
        json_link: Where the page finds it.
    """
    claims, (first, second, others) = claims_of(document), labels_of(document)
    parts = [
        "# Doetsch et al. 2017: batch construction strategies for recurrent neural networks",
        f"{verdicts(claims)} The paper's speech, CHiME-4, is not public, and it tells neither the cells "
        f"of its network nor its epochs; what was trained here is said below.",
        machine_note(document, link=json_link),
        claims_table(claims),
        RULE,
        reasons(claims),
        "## Chunks (table 1)",
        rows_table(document, first),
        "## Orders (table 2)",
        rows_table(document, second),
        f"{bins_note(document)} Buckets: spans of {BUCKET_SPAN} frames, batches of one size, padded to the edge.",
        "## Beyond the paper",
        rows_table(document, [RANDOM, *others]),
        f'"{COUNTED}" is random order with padding counted in the {document["size"]["frames"]:,} frames of a batch, as '
        "a budget that bounds memory must: so it makes more steps of fewer utterances.",
        f"{settings_note(document)} {words_note(document)} {features_note(document['study']['data'])} {COLUMNS}",
        "## Figures",
        *(f"![{text}]({figure_name(name)})\n\n{text}" for name, text in FIGURES.items()),
    ]
    return "\n\n".join(parts) + "\n"


def write_figures(document: Mapping[str, Any], folder: Path) -> None:
    """Draws the figures into a folder."""
    from lengthwise_recipes.pictures import learning_panels, order_dots, save, shade_looks

    lengths, rows = np.array(document["lengths"]), document["study"]["rows"]
    plans = {label: lw.make_plan(lengths, batching) for label, batching in figure_batchings(lengths).items()}
    looks = shade_looks(map(chunk_label, PAPER_CHUNKS), CHUNKS)
    label = "validation loss (nats per frame)"
    drawn = {
        "order": order_dots(lengths, plans),
        "loss": learning_panels(rows, loss_label=label, looks=looks),
        "loss-epochs": learning_panels(rows, against="epoch", loss_label=label, looks=looks),
    }
    for name, figure in drawn.items():
        save(figure, folder / figure_name(name))


def figure_name(name: str) -> str:
    return f"doetsch2017-{name}.png"


def labels_of(document: Mapping[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """The rows of table 1, those of table 2, and the others."""
    first = [*map(chunk_label, PAPER_CHUNKS), RANDOM]
    second = [RANDOM, SORTED, MXNET, *map(bins_label, document["size"]["bins"])]
    return first, second, [label for label in document["outcomes"] if label not in {*first, *second}]


def rows_table(document: Mapping[str, Any], labels: Iterable[str]) -> str:
    """One row for each batching: speed, memory and rates, as they are and in those of random whole utterances."""
    outcomes, papers = document["outcomes"], paper_rows(document["size"]["bins"])
    cells = [row_cells(label, outcomes[label], outcomes[RANDOM], papers) for label in labels]
    return table(HEADS + HEADS_OF_ERROR, cells)


def row_cells(
    label: str, outcome: Mapping[str, Any], whole: Mapping[str, Any], papers: Mapping[str, Row]
) -> tuple[str, ...]:
    """The cells of a row; no paper's number where the paper has no such row."""
    paper, base = papers.get(label), papers[RANDOM]
    speed, error = "utterances_per_second", "word_error_rates"
    return (
        f"`{label}`",
        f"{fmean(outcome[speed]):.1f}{within(min(outcome[speed]), max(outcome[speed]))}",
        of_whole(outcome[speed], whole[speed]),
        times(paper.speed, base.speed) if paper else "",
        f"{outcome['peak_bytes'] / 1e6:.0f}" if outcome["peak_bytes"] else "",
        times(outcome["peak_bytes"], whole["peak_bytes"]),
        times(paper.memory, base.memory) if paper else "",
        error_cell(outcome[error]),
        of_whole(outcome[error], whole[error]),
        times(paper.error, base.error) if paper else "",
        percent(fmean(outcome["frame_error_rates"])),
        percent(outcome["padding_share"]),
        f"{outcome['mixing']:.2f}",
        f"{outcome['steps']:.0f}",
    )


def times(value: float | None, base: float | None) -> str:
    """How many times one is the other; nothing where one is not known.

    >>> times(3.0, 2.0), times(None, 2.0)
    ('1.50', '')
    """
    return f"{value / base:.2f}" if value is not None and base else ""


def of_whole(values: list[float], whole: list[float]) -> str:
    """The mean over the seeds of how many times one is the other; nothing where the other is 0 under one.

    >>> of_whole([3.0, 8.0], [1.0, 4.0])
    '2.50'
    """
    return f"{fmean(ratios(values, whole)):.2f}" if all(whole) else ""


def error_cell(rates: list[float]) -> str:
    """A mean rate in percent, and from where to where the seeds reach.

    >>> error_cell([0.2, 0.1])
    '15.0 (10.0 to 20.0)'
    """
    low, high = (f"{100 * pick(rates):.1f}" for pick in (min, max))
    return f"{100 * fmean(rates):.1f}" + ("" if low == high else f" ({low} to {high})")


def bins_note(document: Mapping[str, Any]) -> str:
    """What stands for the paper's numbers of bins."""
    data, bins = document["study"]["data"], document["size"]["bins"]
    listed = ", ".join(f"{count} ({data['train_utterances'] / count:.0f})" for count in bins)
    return (
        f"Numbers of bins (utterances in each): {listed}; they stand in the columns of the paper's 8, 64 and 256, "
        "whose bins held 1,092, 137 and 34 utterances if the paper trained on one microphone of CHiME-4, six times as "
        "many if on all. Sorted and alternated batches are taken in order, as in the paper, the others in random order."
    )


def settings_note(document: Mapping[str, Any]) -> str:
    """What was trained on what."""
    study, size = document["study"], document["size"]
    data, network, settings = study["data"], study["data"]["network"], study["settings"]
    stacked = f", {network['stack']} of them a frame of the network" if network["stack"] > 1 else ""
    return (
        f"{data['train_utterances']:,} utterances of {data['name']}, {data['train_frames']:,} frames of 10 ms{stacked}"
        f", from {data['shortest']} to {data['longest']}; {data['validation_utterances']:,} to validate on and "
        f"{data['test_utterances']:,} to decode; {data['split']}. {network['layers']} bidirectional LSTM layers, cells "
        f"each way: {network['hidden']}; Adam at {settings['learning_rate']:g}, gradients clipped to a norm of "
        f"{settings['clipped_norm']:g}; {size['frames']:,} frames a batch, padding not counted, so that there are "
        f"about as many steps whatever is padded, as in the paper; epochs: {size['epochs']}, seeds: {size['seeds']}."
    )


def words_note(document: Mapping[str, Any]) -> str:
    """By what words are told, and what stands in their place in the paper."""
    data = document["study"]["data"]
    own = "word_states" in data["labelling"]
    told = (
        f"Every word has {data['labelling']['word_states']} states of its own and is as likely after any other"
        if own
        else "The states of units in context are tied, and the language model is a bigram"
    )
    return (
        f"{told}, where the paper has tied states of phones in context and a 4-gram: {data['states']} states in all, "
        f"labelled by a GMM-HMM whose own word error rate is {percent(document['gmm_word_error_rate'])}; scale of the "
        f"language model: {document['lm_scale']:g}."
    )


COLUMNS = (
    "WER is of the words decoded after the last epoch, frame error the share of wrong states among the network's "
    "validation frames (of frames that are joined, the state of the middle one counts); means over seeds (least to "
    "greatest). Speed is that of the median epoch, memory what a step takes on the costliest batch that the first seed "
    "trains on. *Of whole*: over that of random whole utterances, under the same seed."
)

"""The page and the figures of the rerun of Doetsch et al. 2017, made only from its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import lengthwise as lw
from lengthwise_recipes import pages
from lengthwise_recipes.doetsch2017.batchings import BUCKET_SPAN, FIGURE_BINS, MXNET, OURS, RANDOM, figure_batchings
from lengthwise_recipes.doetsch2017.claims import CHUNKS, Row, claims_of, labels_of_orders, paper_rows
from lengthwise_recipes.doetsch2017.outcomes import ratios
from lengthwise_recipes.pages import over_seeds, percent

PAPER = "doetsch2017"
FIGURES = {
    "order": f"Lengths in the order of an epoch: random, sorted, buckets that span {BUCKET_SPAN} frames each and "
    f"alternated sorting with {FIGURE_BINS} bins (figure 1).",
    "loss": "Cross-entropy of validation frames by training time: a panel for each batching, with random order for "
    "comparison.",
    "loss-epochs": "Cross-entropy of validation frames by epochs, in the same panels.",
}
HEADS = ("batches", "utt/s", "utt/s of whole", "paper", "memory, MB", "of whole", "paper")
HEADS_OF_ERROR = ("WER, %", "of whole", "paper", "padding")


def page(document: Mapping[str, Any], *, json_link: str) -> str:
    """Returns the page in Markdown of a document read from JSON; the pictures of `write_figures` are in its folder."""
    claims = claims_of(document)
    parts = [
        "# Doetsch et al. 2017: batch construction strategies for recurrent neural networks",
        f"{pages.verdicts(claims)} The paper's speech, CHiME-4, is not public; if the paper took all six microphones, "
        "claims 5 to 10 are not comparable. It says neither how many cells its network has nor how long it trains.",
        pages.machine_note(document, link=json_link),
        pages.judgement(claims),
        "## Chunks (table 1)",
        rows_table(document, [*CHUNKS, RANDOM]),
        "## Orders (table 2)",
        rows_table(document, [*labels_of_orders(document["size"]["bins"]), OURS]),
        f"{bins_note(document)} `{OURS}` is not in the paper. `{MXNET}` has buckets that span {BUCKET_SPAN} frames "
        "each, and batches of one size, padded to the edge of their bucket.",
        f"{settings_note(document)}\n\n{words_note(document)} Features by {document['study']['data']['features']}.",
        columns_note(document["size"]),
        pages.figures(PAPER, FIGURES),
    ]
    return "\n\n".join(parts) + "\n"


def nearer(document: Mapping[str, Any], *, json_link: str) -> str:
    """Returns a section on a rerun that is nearer to the paper in its utterances and bins, or in its states."""
    data, size = document["study"]["data"], document["size"]
    what = (
        "states of phonemes in context" if "units" in data["labelling"] else "as many utterances as one microphone gave"
    )
    alone = " A single seed cannot tell error rates apart." if size["seeds"] == 1 else ""
    parts = [
        f"## With {what}",
        f"Utterances: {size['count']:,}, frames: {data['train_frames']:,}, seeds: {size['seeds']}, states: "
        f"{data['states']}, word error rate of the GMM-HMM: {percent(document['gmm_word_error_rate'])}. The claims "
        f"above are {pages.by_verdict(claims_of(document))}.{alone}",
        rows_table(document, [*CHUNKS, *labels_of_orders(size["bins"]), OURS], columns=(0, 2, 7, 8)),
        pages.machine_note(document, link=json_link),
    ]
    return "\n\n".join(parts) + "\n"


def write_figures(document: Mapping[str, Any], folder: Path) -> None:
    """Draws the figures into a folder."""
    from lengthwise_recipes.pictures import learning_panels, order_dots, save

    lengths, rows = np.array(document["lengths"]), document["study"]["rows"]
    plans = {label: lw.make_plan(lengths, batching) for label, batching in figure_batchings(lengths).items()}
    label = "validation loss (nats per frame)"
    figures = {
        "order": order_dots(lengths, plans),
        "loss": learning_panels(rows, loss_label=label),
        "loss-epochs": learning_panels(rows, against="epoch", loss_label=label),
    }
    for name, figure in figures.items():
        save(figure, folder / pages.figure_name(PAPER, name))


def rows_table(document: Mapping[str, Any], labels: Iterable[str], columns: Sequence[int] = range(11)) -> str:
    """Returns one row per batching: speed, memory and error rates, and their ratios to random whole utterances."""
    outcomes, papers = document["outcomes"], paper_rows(document["size"]["bins"])
    rows = [HEADS + HEADS_OF_ERROR, *(row_cells(label, outcomes[label], outcomes[RANDOM], papers) for label in labels)]
    heads, *cells = ([row[place] for place in columns] for row in rows)
    return pages.table(heads, cells)


def row_cells(
    label: str, outcome: Mapping[str, Any], random: Mapping[str, Any], papers: Mapping[str, Row]
) -> tuple[str, ...]:
    """Returns the cells of a row; the paper's are empty if it has no such row."""
    paper, base = papers.get(label), papers[RANDOM]
    speed, error = "utterances_per_second", "word_error_rates"
    return (
        f"`{label}`",
        f"{fmean(outcome[speed]):.1f}{pages.within(min(outcome[speed]), max(outcome[speed]))}",
        of_whole(outcome[speed], random[speed]),
        of_whole([paper.speed], [base.speed]) if paper else "",
        f"{outcome['peak_bytes'] / 1e6:.0f}" if outcome["peak_bytes"] else "",
        of_whole([outcome["peak_bytes"]], [random["peak_bytes"]]),
        of_whole([paper.memory], [base.memory]) if paper else "",
        over_seeds([100 * rate for rate in outcome[error]], digits=1),
        of_whole(outcome[error], random[error]),
        of_whole([paper.error], [base.error]) if paper else "",
        percent(outcome["padding_share"]),
    )


def of_whole(values: list[float], bases: list[float]) -> str:
    """Returns the mean ratio over seeds as text, empty if a base is 0 or None.

    >>> of_whole([3.0, 8.0], [1.0, 4.0])
    '2.50'
    """
    return f"{fmean(ratios(values, bases)):.2f}" if all(bases) else ""


def bins_note(document: Mapping[str, Any]) -> str:
    """Explains which of our numbers of bins stand for the paper's."""
    data, bins = document["study"]["data"], document["size"]["bins"]
    listed = ", ".join(f"{count} ({data['train_utterances'] / count:.0f})" for count in bins)
    return (
        f"Numbers of bins (utterances in each): {listed}. They are compared with the paper's 8, 64 and 256 bins. Those "
        "held 1,092, 137 and 34 utterances if the paper trained on one microphone of CHiME-4, and six times as many if "
        "it trained on all. Sorted and alternated batches are trained in order, as in the paper, the others in random "
        "order."
    )


def settings_note(document: Mapping[str, Any]) -> str:
    """Describes data, network and settings."""
    study, size = document["study"], document["size"]
    data, network, settings = study["data"], study["data"]["network"], study["settings"]
    stacked = f"; the network reads {network['stack']} of them as one" if network["stack"] > 1 else ""
    return (
        f"Data: {data['train_utterances']:,} utterances of {data['name']}, of {data['shortest']} to {data['longest']} "
        f"frames of 10 ms, {data['train_frames']:,} in all{stacked}. Another {data['validation_utterances']:,} "
        f"validate, and {data['test_utterances']:,} are decoded; {data['split']}.\n\n"
        f"Network: {network['layers']} bidirectional LSTM layers, cells each way: {network['hidden']}. Adam at "
        f"{settings['learning_rate']:g}, gradients clipped to a norm of {settings['clipped_norm']:g}. Epochs: "
        f"{size['epochs']}, seeds: {size['seeds']}. A batch has {size['frames']:,} frames, padding not counted, so all "
        "batchings have about the same number of steps, as in the paper."
    )


def words_note(document: Mapping[str, Any]) -> str:
    """Describes states and language model, and those of the paper."""
    data = document["study"]["data"]
    own, any_order = data["labelling"].get("word_states"), data["any_order"]
    states = f"Every word has {own} states of its own" if own else "The states of units in context are tied"
    words = "all words are equally likely" if any_order else "the language model is a bigram"
    # After any word, each word and the end of the utterance have the same probability.
    nats = document["lm_scale"] * float(np.log(data["vocabulary"] + 1))
    penalty = f", which is here a penalty of {nats:.1f} nats for each word" if any_order else ""
    return (
        f"{states}, and {words}. The paper has tied states of phones in context and a 4-gram. A GMM-HMM with a word "
        f"error rate of {percent(document['gmm_word_error_rate'])} labels frames with {data['states']} states. Scale "
        f"of the language model: {document['lm_scale']:g}{penalty}."
    )


def columns_note(size: Mapping[str, Any]) -> str:
    """Explains the columns."""
    return (
        "Columns: *WER* is the word error rate after the last epoch. All numbers but memory are means, some with the "
        f"least and the greatest. Speed is that of {pages.timed_epoch(size)}. Memory is that of a step on the "
        "costliest batch of all epochs of the first seed. *Of whole* is a number over that of `random`, seed by seed."
    )

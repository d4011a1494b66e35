"""The page of the rerun of Ge et al. 2021, made only from its JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lengthwise_recipes import pages
from lengthwise_recipes.ge2021.batchings import PAPER_KNOBS
from lengthwise_recipes.ge2021.claims import claims_of
from lengthwise_recipes.ge2021.figures import FIGURES, PAPER
from lengthwise_recipes.ge2021.outcomes import AVERAGE, PAPER_EPOCHS, STAGES, Outcome, outcomes_of, reduction
from lengthwise_recipes.ge2021.printed import SAVED, TABLE_2, printed_reduction
from lengthwise_recipes.ge2021.table1 import UNITS, read_row, tally
from lengthwise_recipes.intervals import interval
from lengthwise_recipes.pages import percent, spread, table
from lengthwise_recipes.synthesis.network import SPOKEN_TEXTS

NAMES = (
    "The names are the paper's. RAND: random order; SB: sorted; SSB: semi-sorted, with the randomisation factor LRF; "
    "BKT: bucketed; ATS: alternated sorting. -DBS: dynamic batch sizes; -BR: the batches are shuffled. ZPR: the share "
    "of padding, a mean over batches; ABL: the mean padded length of a batch; VL: validation loss. ME is max-entropy "
    "batching, ours. A claim that holds on the paper's lengths alone holds partly."
)


def page(document: Mapping[str, Any], *, json_link: str) -> str:
    """Returns the page in Markdown of a document read from JSON; the pictures of `write_figures` are in its folder."""
    claims = claims_of(document)
    parts = [
        "# Ge et al. 2021: speed up training with variable length inputs by efficient batching strategies",
        f"{pages.verdicts(claims)} The losses are those of {document['size']['epochs']} epochs; the paper has "
        f"{PAPER_EPOCHS}.",
        pages.machine_note(document, link=json_link),
        NAMES,
        pages.judgement(claims),
        "## Table 1: the knobs",
        knobs_table(document),
        *printed_table(document),
        "## Table 2: padding, time and loss",
        strategies_table(document),
        f"{settings_note(document)} Features by {document['study']['data']['features']}. {columns_note(document)}",
        paper_table(),
        "## Table 3: time saved",
        saved_table(document),
        "## Table 4: A/B comparisons",
        parts_table(document),
        "## Max-entropy batching, at the padding of semi-sorted batching",
        ours_table(document),
        "## Beyond the paper: speaking without true frames",
        speaking(document),
        pages.figures(PAPER, FIGURES),
    ]
    return "\n\n".join(parts) + "\n"


def longer(document: Mapping[str, Any], *, json_link: str) -> str:
    """Returns a section on a rerun of more epochs and fewer seeds."""
    epochs, seeds = (document["size"][name] for name in ("epochs", "seeds"))
    tests = {summary["strategy"]: summary["tests"] for summary in document["study"]["summary"]}
    losses = [
        f"{label} {spread(outcome[STAGES[-1]], digits=3)} ({tests[label]['attention_focus']['mean']:.2f})"
        for label, outcome in document["outcomes"].items()
    ]
    claims = claims_of(document)
    of_losses = [claim for claim in claims if claim.size]
    listed = pages.by_verdict(of_losses, first=len(claims) - len(of_losses) + 1)
    alone = " A single seed cannot tell losses apart." if seeds == 1 else ""
    falls = [
        [f"{pair['from']} to {pair['to']} {_fall(pair)}" for pair in part]
        for part in (*document["parts"], document["ours"])
    ]
    parts = [
        f"## With {epochs} epochs",
        f"RAND takes {epochs * document['outcomes']['RAND']['steps']['mean']:,.0f} steps, in the paper 144,100; seeds: "
        f"{seeds}. The last {len(of_losses)} claims: {listed}.{alone}",
        f"VL_3 (and weight of attention): {', '.join(losses)}. It falls from",
        "\n".join(f"- {', '.join(part)}" for part in falls),
        speaking(document),
        pages.machine_note(document, link=json_link),
    ]
    return "\n\n".join(parts) + "\n"


def knobs_table(document: Mapping[str, Any]) -> str:
    """Returns the knobs of the paper's three strategies and of ours, with their padding."""
    printed = {"SSB-BR": "0.1", "BKT-BR": "1,024", "ATS-BR": "58", "ME-BR": ""}
    rows = [
        (label, f"`{document['strategies'][label]}`", knob, *_padding(document, label))
        for label, knob in printed.items()
    ]
    heads = ("strategy", "knob", "in the paper", "batches", "ZPR, %", "ABL, frames")
    note = (
        "Bucket size and bins are those whose ZPR is closest to that of SSB-BR and not above it, as in the paper. "
        f"{_paper_knobs_note(document)}ME pads as SSB-BR does. Means over seeds."
    )
    return f"{table(heads, rows)}\n\n{note}"


def _paper_knobs_note(document: Mapping[str, Any]) -> str:
    """Returns the knobs chosen on the paper's own lengths; empty without these lengths."""
    knobs = document["paper_knobs"]
    if not knobs:
        return ""
    lrf, buckets, bins = (f"{100 * knobs['rates'][order]:.2f}" for order in PAPER_KNOBS)
    return (
        f"On {len(knobs['falls']['bucketed'])} random training sets of the paper's own lengths, these are buckets of "
        f"{knobs['bucket_size']:,} and {knobs['bins']} bins: ZPR {buckets} and {bins} %, and {lrf} % with LRF 0.1. "
    )


def printed_table(document: Mapping[str, Any]) -> list[str]:
    """Returns every number of table 1 on the paper's own lengths; empty without these lengths."""
    if not document["table1"]:
        return []
    rows = list(map(read_row, document["table1"]))
    cells = [
        (
            f"`{row.strategy}`",
            row.sizes,
            UNITS[row.quantity],
            f"{row.paper:.2f}",
            f"{row.mean:.2f}{pages.within(row.least, row.greatest)}",
        )
        for row in rows
        if (row.sizes, row.quantity) != ("fixed", "batches")
    ]
    heads = ("strategy", "batch size", "quantity", "paper", "ours (least to greatest)")
    note = f"The paper's own knobs on its own lengths, random training sets of its size. {tally(rows)}"
    return [note, table(heads, cells)]


def strategies_table(document: Mapping[str, Any]) -> str:
    """Returns one row for each trained strategy."""
    peaks = {summary["strategy"]: summary["peak_bytes"] for summary in document["study"]["summary"]}
    rows = [
        (
            label,
            f"`{document['strategies'][label]}`",
            *_padding(document, label)[1:],
            f"{outcome['steps']['mean']:.1f}",
            spread(outcome["seconds"]),
            "" if peaks[label] is None else f"{peaks[label] / 1e6:.0f}",
            *(spread(outcome[name], digits=3).split(" (")[0] for name in STAGES[:-1]),
            *(spread(outcome[name], digits=3) for name in (STAGES[-1], AVERAGE)),
        )
        for label, outcome in document["outcomes"].items()
    ]
    heads = ("strategy", "as written here", "ZPR, %", "ABL, frames", "steps", "s / epoch", "peak, MB", *STAGES, AVERAGE)
    return table(heads, rows)


def paper_table() -> str:
    """Returns the losses of the printed table 2, and describes its training."""
    rows = [(label, *(f"{loss:.3f}" for loss in printed.losses)) for label, printed in TABLE_2.items()]
    heads = ("in the paper", *STAGES, AVERAGE)
    note = (
        "The paper trains a modified version of NVIDIA's Tacotron 2 on 10,480 of the 13,100 clips of LJSpeech, at "
        "22.05 kHz. The other 2,620 validate. Frames have 12.5 ms, the base batch 16 clips. It uses 32-bit numbers on "
        "one GeForce GTX 1080. It validates every second epoch; VL_1, VL_2 and VL_3 are after epochs 100, 160 and 220. "
        "Losses of other recordings or networks can be compared in percent alone, in table 4."
    )
    return f"{table(heads, rows)}\n\n{note}"


def settings_note(document: Mapping[str, Any]) -> str:
    """Describes data, network and settings."""
    size, data, trained = document["size"], document["study"]["data"], document["study"]["settings"]
    return (
        f"Data: {data['train_sequences']:,} recordings, {data['name']}; {data['split']}. Skipped: "
        f"{len(data['skipped'])}. Network: Tacotron 2 of {size['width']:g} times the width of Shen et al. 2018 (Ge et "
        f"al. print none), mel bands: {size['bands']}, frames a decoder step: {size['reduction']}. Adam, rate "
        f"{trained['learning_rate']:g}, weight decay {trained['weight_decay']:g}. Base batch: {size['batch_size']}, "
        f"epochs: {trained['epochs']}, seeds: {trained['seeds']}. Validated on "
        f"{data['validation_sequences']:,}."
    )


def columns_note(document: Mapping[str, Any]) -> str:
    """Explains names and columns."""
    epochs = ", ".join(map(str, document["stages"]))
    return (
        "A dynamic batch closes once it has reached the padded frames of a base batch of the longest sequence. By the "
        "rule that the paper prints, `B_i L_i <= B_0 L_max < B_{i+1} L_{i+1}`, and that the authors' public code has "
        "(branch ssb-dbs), no batch would exceed them. In training ours sorts from short to long, theirs from long to "
        "short. With DBS, ZPR and ABL are weighted by batch size, as in the paper. "
        f"{', '.join(STAGES)}: validation loss after epochs {epochs}, averaged with its neighbours; {AVERAGE}: the "
        "mean from the first of these to the last. Seconds are those "
        f"of {pages.timed_epoch(document['size'])}, planning included. Means (least to greatest)."
    )


def saved_table(document: Mapping[str, Any]) -> str:
    """Returns the time that each strategy saves per epoch against RAND."""
    rows = []
    for label, outcome in document["outcomes"].items():
        if label != "RAND":
            ours = {name: 100 * value for name, value in outcome["saved"].items()}
            paper = f"{SAVED[label]:.2f} %" if label in SAVED else ""
            rows.append((label, paper, f"{spread(ours)} %", percent(outcome["saved_frames"])))
    heads = ("from RAND to", "paper saves", "ours saves", "padded frames saved")
    return f"{table(heads, rows)}\n\nOur copy of the paper's other minutes is damaged."


def parts_table(document: Mapping[str, Any]) -> str:
    """Returns the pairs of table 4, part by part."""
    by_label = outcomes_of(document)
    rows = [
        (
            pair["from"],
            pair["to"],
            _fall(pair),
            _could_tell(by_label, pair),
            f"{printed_reduction(pair['from'], pair['to']):.2f} %",
        )
        for part in document["parts"]
        for pair in part
    ]
    heads = ("from", "to", "fall of VL_3", "could tell apart", "in the paper")
    return table(heads, rows)


def ours_table(document: Mapping[str, Any]) -> str:
    """Compares max-entropy batching with semi-sorted batching of the same padding."""
    by_label = outcomes_of(document)
    rows = [
        (
            pair["from"],
            pair["to"],
            *(percent(document["padding"][pair[side]]["padding_share"]["mean"]) for side in ("from", "to")),
            *(f"{document['padding'][pair[side]]['mixing']['mean']:.3f}" for side in ("from", "to")),
            _fall(pair),
            _could_tell(by_label, pair),
        )
        for pair in document["ours"]
    ]
    heads = ("from", "to", "padding", "to padding", "mixing", "to mixing", "reduction", "could tell apart")
    return f"{table(heads, rows)}\n\nPadding, mixing and, in claims 3 to 5, batches of the data are over four epochs."


def speaking(document: Mapping[str, Any]) -> str:
    """Returns how well the networks speak the validation texts without true frames, after the last epoch."""
    tests = [summary["tests"] for summary in document["study"]["summary"]]
    names = ("stopped_share", "duration_error", "attention_focus")
    stopped, error, focus = (sorted(test[name]["mean"] for test in tests)[:: len(tests) - 1] for name in names)
    return (
        f"After {document['size']['epochs']} epochs the networks stop by themselves after "
        f"{' to '.join(dict.fromkeys(map(percent, stopped)))} of {SPOKEN_TEXTS} texts; |spoken - true frames| / true "
        f"frames is {percent(error[0])} to {percent(error[1])}; the largest weight of attention, a mean over steps, is "
        f"{focus[0]:.2f} to {focus[1]:.2f} (1: each step reads one character)."
    )


def _padding(document: Mapping[str, Any], label: str) -> tuple[str, str, str]:
    """Returns batches, ZPR in percent and ABL in frames, means over seeds."""
    padding = document["padding"][label]
    return f"{padding['batches']['mean']:.1f}", f"{100 * padding['zpr']['mean']:.2f}", f"{padding['abl']['mean']:.1f}"


def _could_tell(by_label: Mapping[str, Outcome], pair: Mapping[str, Any]) -> str:
    """Returns the smallest reduction of VL_3 that the seeds of a pair could detect."""
    smallest = interval(100 * reduction(by_label[pair["from"]], by_label[pair["to"]])).smallest_difference
    return f"{smallest:.2f} %" if math.isfinite(smallest) else "nothing"


def _fall(pair: Mapping[str, Any]) -> str:
    """Returns the fall of VL_3 in a pair, in percent."""
    falls = {name: None if value is None else 100 * value for name, value in pair["reduction"].items()}
    return spread(falls) if None in falls.values() else f"{spread(falls)} %"

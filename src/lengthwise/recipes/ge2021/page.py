"""The page of the rerun of Ge et al. 2021, made from its JSON alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lengthwise.recipes.ge2021.figures import FIGURES, figure_name
from lengthwise.recipes.ge2021.outcomes import AVERAGE, STAGES
from lengthwise.recipes.ge2021.printed import SAVED, TABLE_2, TABLE_4, printed_reduction
from lengthwise.recipes.pages import claims_table, measured, percent, spread, table, verdicts

UNITS = {"batches": "batches", "zpr": "ZPR, %", "abl": "ABL, frames"}


def page(document: Mapping[str, Any], *, json_link: str) -> str:
    """The page in Markdown; its pictures lie beside it, as `figures.write_figures` names them.

    Args:
        document: What `rerun.reproduce` gave, as read back from JSON.
        json_link: Where the page finds it.
    """
    parts = [
        "# Ge et al. 2021: speed up training with variable length inputs by efficient batching strategies",
        f"{verdicts(document['claims'])} What was trained is said below. {measured(document, link=json_link)}",
        claims_table(document["claims"]),
        "## Table 1: the knobs",
        knobs_table(document),
        *printed_table(document),
        "## Table 2: padding, time and loss",
        strategies_table(document),
        settings_note(document),
        "## Table 3: time saved",
        saved_table(document),
        "## Table 4: A/B comparisons",
        parts_table(document),
        "## Max-entropy batching, at the padding of semi-sorted batching",
        ours_table(document),
        "## Beyond the paper: speaking without true frames",
        speaking_table(document),
        "## Figures",
        *(f"![{text}]({figure_name(name)})\n\n{text}" for name, text in FIGURES.items()),
    ]
    return "\n\n".join(parts) + "\n"


def knobs_table(document: Mapping[str, Any]) -> str:
    """The knobs of the paper's three strategies and of ours, and what they come to."""
    knobs = document["knobs"]
    chosen = {
        "SSB-BR": ("LRF", knobs["randomization_factor"], "0.1"),
        "BKT-BR": ("bucket size", knobs["bucket_size"], "1,024"),
        "ATS-BR": ("bins", knobs["bins"], "58"),
        "ME-BR": ("scale", knobs["scale"], ""),
    }
    rows = [
        (label, f"{name} {value:g}", printed, *_padding(document, label), *_printed(label))
        for label, (name, value, printed) in chosen.items()
    ]
    heads = ("strategy", "knob", "in the paper", "batches", "ZPR, %", "ABL, frames", "paper's ZPR", "paper's ABL")
    note = (
        "Bucket size and bins are those whose ZPR is closest to that of SSB-BR and not above it, as in the paper; "
        "max-entropy batching (ME) has noise of the scale, in frames, whose padding share is closest to that of "
        "SSB-BR. Means over seeds."
    )
    return f"{table(heads, rows)}\n\n{note}"


def printed_table(document: Mapping[str, Any]) -> list[str]:
    """Every number of table 1 on the paper's own lengths, where they were given."""
    if not document["table1"]:
        return []
    rows = [
        (
            f"`{row['strategy']}`",
            row["sizes"],
            UNITS[row["quantity"]],
            *(f"{row[name]:.2f}" for name in ("paper", "mean", "least", "greatest")),
            "reproduced" if row["reproduced"] else "not",
        )
        for row in document["table1"]
    ]
    heads = ("strategy", "batch size", "quantity", "paper", "ours", "least", "greatest", "verdict")
    return ["The paper's own knobs on its own lengths, random training sets of its size:", table(heads, rows)]


def strategies_table(document: Mapping[str, Any]) -> str:
    """One row for each strategy trained."""
    peaks = {each["strategy"]: each["peak_bytes"] for each in document["study"]["summary"]}
    rows = [
        (
            label,
            f"`{document['strategies'][label]}`",
            *_padding(document, label)[1:],
            f"{each['steps']['mean']:.1f}",
            spread(each["seconds"]),
            "" if peaks[label] is None else f"{peaks[label] / 2**20:.0f}",
            *(spread(each[name], digits=3) for name in (*STAGES, AVERAGE)),
            f"{TABLE_2[label].losses[2]:.3f}" if label in TABLE_2 else "",
        )
        for label, each in document["outcomes"].items()
    ]
    heads = ("strategy", "as written here", "ZPR, %", "ABL, frames", "steps", "s / epoch", "peak, MB", *STAGES, AVERAGE)
    return table((*heads, "paper's VL_3"), rows)


def settings_note(document: Mapping[str, Any]) -> str:
    """What was trained on what, and what the columns mean."""
    study, size = document["study"], document["size"]
    data, trained = study["data"], study["settings"]
    epochs = ", ".join(map(str, document["stages"]))
    return (
        f"{data['train_sequences']:,} recordings, {data['name']}, and {data['validation_sequences']:,} to validate on; "
        f"{data['split']}; skipped: {len(data['skipped'])}. Tacotron 2 of {size['width']:g} times the paper's width, "
        f"mel bands: {size['bands']}, frames a decoder step: {size['reduction']}; Adam, rate "
        f"{trained['learning_rate']:g}, weight decay {trained['weight_decay']:g}; base batch {size['batch_size']}; "
        f"epochs: {trained['epochs']}, seeds: {trained['seeds']}. BR: batches shuffled; without it in order. DBS: "
        "dynamic batch sizes, a batch is closed once it has reached the base batch of the longest; ZPR and ABL are "
        f"then weighted by batch size. {', '.join(STAGES)}: validation loss after epochs {epochs}, each the mean with "
        f"its neighbours; {AVERAGE}: the mean from the first of these to the last. Seconds are those of "
        "the median epoch, planning included. Means over seeds (least to greatest)."
    )


def saved_table(document: Mapping[str, Any]) -> str:
    """By how much an epoch is shorter than one of RAND."""
    rows = []
    for label, each in document["outcomes"].items():
        if label != "RAND":
            ours = {name: 100 * value for name, value in each["saved"].items()}
            paper = f"{SAVED[label]:.2f} %" if label in SAVED else ""
            rows.append((label, paper, f"{spread(ours)} %", percent(each["saved_frames"])))
    return table(("from RAND to", "paper", "ours", "padded frames saved"), rows)


def parts_table(document: Mapping[str, Any]) -> str:
    """The pairs of table 4, part by part."""
    rows = [
        (f"{part.title}: {pair['from']}", pair["to"], *_falls(document, pair), f"{printed_reduction(*names):.2f} %")
        for part, pairs in zip(TABLE_4, document["parts"], strict=True)
        for pair, names in zip(pairs, part.pairs, strict=True)
    ]
    return table(("from", "to", "VL_3", "to VL_3", "reduction", "in the paper"), rows)


def ours_table(document: Mapping[str, Any]) -> str:
    """Max-entropy batching beside semi-sorted batching of the same padding."""
    rows = [
        (
            pair["from"],
            pair["to"],
            *(percent(document["padding"][pair[side]]["padding_share"]["mean"]) for side in ("from", "to")),
            *(f"{document['padding'][pair[side]]['mixing']['mean']:.3f}" for side in ("from", "to")),
            *_falls(document, pair),
        )
        for pair in document["ours"]
    ]
    heads = ("from", "to", "padding", "to padding", "mixing", "to mixing", "VL_3", "to VL_3", "reduction")
    note = (
        "Mixing is exp(-I), I the mutual information of a sequence's length and the length it is padded to: 1 where a "
        "batch tells nothing of the lengths in it. Both are of four epochs together."
    )
    return f"{table(heads, rows)}\n\n{note}"


def speaking_table(document: Mapping[str, Any]) -> str:
    """What each network says of the validation texts on its own after the last epoch."""
    rows = [
        (
            each["strategy"],
            percent(each["tests"]["stopped_share"]["mean"]),
            percent(each["tests"]["duration_error"]["mean"]),
            f"{each['tests']['attention_focus']['mean']:.2f}",
        )
        for each in document["study"]["summary"]
    ]
    note = (
        "Stopped: the share of the validation texts after which the network stopped by itself. Duration error: the "
        "mean of |frames said - true frames| / true frames. Attention focus: the mean over steps of the largest "
        "weight, 1 where each step reads one character. Means over seeds, after the last epoch."
    )
    return f"{table(('strategy', 'stopped', 'duration error', 'attention focus'), rows)}\n\n{note}"


def _padding(document: Mapping[str, Any], label: str) -> tuple[str, str, str]:
    """Batches, ZPR in percent and ABL in frames, means over seeds."""
    each = document["padding"][label]
    return f"{each['batches']['mean']:.1f}", f"{100 * each['zpr']['mean']:.2f}", f"{each['abl']['mean']:.1f}"


def _printed(label: str) -> tuple[str, str]:
    return (f"{TABLE_2[label].zpr:.2f}", f"{TABLE_2[label].abl:.2f}") if label in TABLE_2 else ("", "")


def _falls(document: Mapping[str, Any], pair: Mapping[str, Any]) -> tuple[str, str, str]:
    """VL_3 of both strategies of a pair, and by how many percent it falls."""
    before, after = (spread(document["outcomes"][pair[side]][STAGES[-1]], digits=3) for side in ("from", "to"))
    falls = {name: None if value is None else 100 * value for name, value in pair["reduction"].items()}
    return before, after, spread(falls) if None in falls.values() else f"{spread(falls)} %"

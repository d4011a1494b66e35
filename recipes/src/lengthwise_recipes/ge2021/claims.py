"""Judges the claims of Ge et al. 2021 on epoch time and validation loss by a rerun; `plan_claims` those on plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.claims import (
    NONE,
    Claim,
    Size,
    listing,
    of_each,
    of_effect,
    of_likeness,
    of_order,
    tells_greater,
)
from lengthwise_recipes.ge2021.batchings import CHOICES
from lengthwise_recipes.ge2021.outcomes import Outcome, frame_saving, outcomes_of, reduction, time_saving
from lengthwise_recipes.ge2021.plan_claims import claim_of_curves, claims_of_plans, prepared_again_claim
from lengthwise_recipes.ge2021.printed import (
    ALIKE,
    COUNTS,
    FIXED_COUNT,
    SAVED,
    TABLE_2,
    TABLE_4,
    printed_reduction,
)
from lengthwise_recipes.ge2021.table1 import MEAN_FRAMES, TRAINING_CLIPS, read_row
from lengthwise_recipes.intervals import interval

Outcomes = Mapping[str, Outcome]

POINTS = 2.0  # similar strategies may differ by this many percentage points
REORDERED = TABLE_4[1]  # pairs of the same batches, in order and in random order


def claims_of(document: Mapping[str, Any]) -> list[Claim]:
    """Judges the claims from a rerun's document, read from JSON, by the current rule."""
    by_label = outcomes_of(document)
    padding = {
        label: {name: np.array(spread["values"]) for name, spread in measures.items()}
        for label, measures in document["padding"].items()
    }
    table1 = list(map(read_row, document["table1"]))
    frames = np.array(document["lengths"]["values"]) @ np.array(document["lengths"]["counts"])
    size = Size(
        ours=int(frames), paper=round(TRAINING_CLIPS * MEAN_FRAMES), source=f"{TRAINING_CLIPS:,} clips of LJSpeech"
    )
    alike, *counts = claims_of_plans(padding, document["knobs"], size, table1)
    trained, printed = document["knobs"]["falls"], document["paper_knobs"] and document["paper_knobs"]["falls"]
    curves = claim_of_curves(trained, printed, None if table1 else size)
    prepared = [prepared_again_claim(document["parted"])] if document["parted"] else []
    losses = [replace(claim, size=size) for claim in claims_of_losses(by_label)]
    return [alike, curves, *counts, *prepared, *claims_of_times(by_label), *losses]


def claims_of_times(by_label: Outcomes) -> list[Claim]:
    """Judges the claims on epoch time, in table 3 and the text before it."""
    saved = [_saved_claim(by_label, label) for label in SAVED]
    return [*saved, _saved_alike_claim(by_label), _randomized_claim(by_label)]


def claims_of_losses(by_label: Outcomes) -> list[Claim]:
    """Judges what section 6 says of the loss: a remark on padding, and the five conclusions on VL_3."""
    sorting, randomizing, sizing = TABLE_4
    judged = [
        _similar_claim(by_label),
        _behind_random_claim(by_label),
        _same_time_claim(by_label),
        _ahead_of_random_claim(by_label),
        _part_claim(by_label, sorting, "4", "SSB is better than SB, above all without BR and DBS"),
        _part_claim(by_label, randomizing, "5", "BR lowers VL_3, most where the randomness is low"),
        _part_claim(by_label, sizing, "5", "DBS lowers VL_3, most where the randomness is low"),
    ]
    return [_padding_claim(by_label), *(replace(claim, kind="validation loss") for claim in judged)]


def _saved_claim(by_label: Outcomes, label: str) -> Claim:
    ours = 100 * time_saving(by_label["RAND"], by_label[label])
    random_steps, steps = (by_label[name].steps.mean() for name in ("RAND", label))
    dynamic, frames = CHOICES[label].dynamic, 100 * frame_saving(by_label["RAND"], by_label[label])
    printed_frames = 100 * (1.0 - TABLE_2[label].abl / TABLE_2["RAND"].abl)
    printed_steps = COUNTS[label.partition("-")[0]] if dynamic else FIXED_COUNT
    holds = of_effect(ours.tolist(), SAVED[label])
    rule = (
        " Dynamic sizes are by our rule, not by the printed one, so the claim holds partly at most." if dynamic else ""
    )
    return Claim(
        claim=f"an epoch takes {SAVED[label]:.2f} % less time with {label} than with RAND",
        where="6, table 3",
        paper=f"{SAVED[label]:.2f} %",
        ours=ours.tolist(),
        effect=SAVED[label],
        unit="%",
        kind="epoch time",
        holds=of_each(holds, NONE) if dynamic else holds,
        why=f"{frames:.1f} % fewer frames are computed (the paper: {printed_frames:.1f} %), in {steps:.0f} steps "
        f"where RAND takes {random_steps:.0f} (the paper: {printed_steps} and {FIXED_COUNT}).{rule}",
    )


def _saved_alike_claim(by_label: Outcomes) -> Claim:
    shares = 100 * np.stack([time_saving(by_label["RAND"], by_label[label]) for label in ALIKE])
    differences = shares[1:] - shares[0]
    farthest = int(np.abs(differences.mean(axis=1)).argmax())
    apart = [label for label, points in zip(ALIKE[1:], differences, strict=True) if interval(points).excludes_zero]
    telling = f" The times tell {' and '.join(apart)} from {ALIKE[0]}." if apart else ""
    return Claim(
        claim="BKT-BR and ATS-BR save about as much time as SSB-BR; ours: the larger of the two differences, in points",
        where="6, table 2",
        paper="similar",
        ours=differences[farthest].tolist(),
        effect=POINTS,
        likeness=True,
        unit="points",
        kind="epoch time",
        holds=of_likeness(POINTS, *differences),
        why=f"Of RAND's epoch {listing(shares)} % are saved with {', '.join(ALIKE)}. We count "
        f"at most {POINTS:g} points as similar.{telling}",
    )


def _randomized_claim(by_label: Outcomes) -> Claim:
    shares = 100 * np.stack([time_saving(by_label[base], by_label[shuffled]) for base, shuffled in REORDERED])
    ours, means = shares.mean(axis=0), shares.mean(axis=1)
    shorter = int(np.sum(means > 0.0))
    names = ", ".join(base for base, _ in REORDERED)
    opposite = (
        " The times tell the opposite: with BR it is longer." if len(ours) > 1 and tells_greater(0.0, ours) else ""
    )
    return Claim(
        claim=f"with BR an epoch is slightly shorter than without, with each of {names}; ours: percent shorter, "
        "mean of three",
        where="6",
        paper="slightly",
        ours=ours.tolist(),
        unit="%",
        kind="epoch time",
        holds=_all_above_zero(ours, shares),
        why=f"Means: {listing(means)} % with {names}: shorter with {shorter} of {len(means)}.{opposite} "
        "The batches of a pair differ only in their order, so memory, caches or chance make the difference. The paper "
        "suspects the allocation of memory.",
    )


def _padding_claim(by_label: Outcomes) -> Claim:
    labels = ("SB-BR", *ALIKE)
    last = {label: by_label[label].training_losses[:, -1] for label in ("RAND", *labels)}
    rises = 100 * np.stack([last[label] / last["RAND"] - 1.0 for label in labels])
    return Claim(
        claim="the squared error tends to be higher in batches with less padding; ours: percent by which the training "
        f"loss of the last epoch is higher with {labels[0]} than with RAND",
        where="6",
        paper="higher",
        ours=rises[0].tolist(),
        unit="%",
        holds=of_order(*((rise, 0.0) for rise in rises)),
        why=f"Means over seeds: {listing(rises)} % with {', '.join(labels)}. The loss is a mean over frames with "
        "padding, which is easy to predict. So all strategies validate on the same random batches, as in the paper.",
    )


def _similar_claim(by_label: Outcomes) -> Claim:
    pairs = [(label, ALIKE[0]) for label in ALIKE[1:]]
    falls, printed = _reductions(by_label, pairs), [printed_reduction(*pair) for pair in pairs]
    return Claim(
        claim="SSB-BR performs similarly to BKT-BR and ATS-BR; ours: percent by which its VL_3 is below theirs, mean "
        "of two",
        where="6, conclusion 1",
        paper=f"{np.mean(printed):.2f} %",
        ours=falls.mean(axis=0).tolist(),
        effect=POINTS,
        likeness=True,
        unit="%",
        holds=of_likeness(POINTS, *falls),
        why=f"Means over seeds: {listing(falls)} % below BKT-BR and ATS-BR (the paper: {listing(printed)}); a "
        f"difference of at most {POINTS:g} % counts as similar.",
    )


def _behind_random_claim(by_label: Outcomes) -> Claim:
    pairs = [("RAND", label) for label in ALIKE]
    rises, printed = -_reductions(by_label, pairs), [-printed_reduction(*pair) for pair in pairs]
    return Claim(
        claim="SSB-BR, BKT-BR and ATS-BR do not perform as well as RAND after equal epochs; ours: percent by which "
        "their VL_3 is above RAND's, mean of three",
        where="6, conclusion 2",
        paper=f"{np.mean(printed):.2f} %",
        ours=rises.mean(axis=0).tolist(),
        effect=float(np.mean(printed)),
        unit="%",
        holds=_all_above_zero(rises.mean(axis=0), rises),
        why=f"Means over seeds: {listing(rises)} % with {', '.join(ALIKE)} (the paper: {listing(printed)}).",
    )


def _same_time_claim(by_label: Outcomes) -> Claim:
    falls = 100 * np.stack([ahead_in_time(by_label["RAND"], by_label[label]) for label in ALIKE])
    return Claim(
        claim="within the same time SSB-BR, BKT-BR and ATS-BR can perform better than RAND; ours: percent by which "
        "their final loss is below RAND's at that time, mean of three",
        where="6, conclusion 2",
        paper="better",
        ours=falls.mean(axis=0).tolist(),
        unit="%",
        holds=_all_above_zero(falls.mean(axis=0), falls),
        why=f"Means over seeds: {listing(falls)} % with {', '.join(ALIKE)}. This is speed: in the same time they take "
        "more epochs. Losses are means with those of the epochs beside, one of which may end later.",
    )


def ahead_in_time(random: Outcome, faster: Outcome) -> NDArray[np.float64]:
    """Returns the share by which the loss of one run is below RAND's when the faster one ends, [seeds]."""
    end = min(len(run.losses[0]) * run.seconds for run in (random, faster))
    return 1.0 - faster.loss_at(end) / random.loss_at(end)


def _ahead_of_random_claim(by_label: Outcomes) -> Claim:
    ours, printed = 100 * reduction(by_label["RAND"], by_label["SSB-DBS-BR"]), printed_reduction("RAND", "SSB-DBS-BR")
    random_steps, steps = (by_label[label].steps.sum(axis=1).mean() for label in ("RAND", "SSB-DBS-BR"))
    return Claim(
        claim="SSB-DBS-BR surpasses RAND after equal epochs; ours: percent by which its VL_3 is below RAND's",
        where="6, conclusion 3",
        paper=f"{printed:.2f} %",
        ours=ours.tolist(),
        effect=printed,
        unit="%",
        holds=of_effect(ours.tolist(), printed),
        why=f"It is below under {np.sum(ours > 0.0)} of {len(ours)} seeds, after {steps:.0f} steps where RAND takes "
        f"{random_steps:.0f}.{_told({'RAND to SSB-DBS-BR': ours})}",
    )


def _part_claim(by_label: Outcomes, part: tuple[tuple[str, str], ...], conclusion: str, text: str) -> Claim:
    """Judges a part of table 4: all falls are above 0, and the first is the largest."""
    falls, printed = _reductions(by_label, part), [printed_reduction(*pair) for pair in part]
    names, (base, changed) = [" to ".join(pair) for pair in part], part[0]
    return Claim(
        claim=f"{text}; ours: fall in percent from {base} to {changed}",
        where=f"6, conclusion {conclusion}; table 4",
        paper=f"{printed[0]:.2f} %",
        ours=falls[0].tolist(),
        effect=printed[0],
        unit="%",
        holds=of_order(*((fall, 0.0) for fall in falls), *((falls[0], fall) for fall in falls[1:])),
        why=f"Means over seeds: {listing(falls)} % ({', '.join(names)}; the paper: {listing(printed)})."
        f"{_told(dict(zip(names, falls, strict=True)))}",
    )


def _told(falls: Mapping[str, NDArray[np.float64]]) -> str:
    """Returns a sentence on the pairs of which the seeds tell that VL_3 falls, and on those of which it rises."""
    falls = {name: fall for name, fall in falls.items() if len(fall) > 1}
    falling = [name for name, fall in falls.items() if tells_greater(fall, 0.0)]
    rising = [name for name, fall in falls.items() if tells_greater(0.0, fall)]
    lower = f" The seeds tell a lower VL_3 from {', '.join(falling)}." if falling else ""
    return lower + (f" The seeds tell the opposite, a higher VL_3, from {', '.join(rising)}." if rising else "")


def _all_above_zero(mean: NDArray[np.float64], shares: NDArray[np.float64]) -> str:
    return of_order((mean, 0.0), *((share, 0.0) for share in shares))


def _reductions(by_label: Outcomes, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """Returns how many percent VL_3 falls from the first strategy of each pair to the second, [pairs, seeds]."""
    return 100 * np.stack([reduction(by_label[base], by_label[changed]) for base, changed in pairs])

"""Judges the claims of Ge et al. 2021 on padding, epoch time and validation loss by a rerun."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.claims import CLOSE, NONE, Claim, Regime, name_data, of_effect, of_likeness, of_order
from lengthwise_recipes.ge2021.batchings import CHOICES, FACTORS, PAPER_KNOBS
from lengthwise_recipes.ge2021.outcomes import PAPER_EPOCHS, Outcome, frame_saving, outcomes, reduction, time_saving
from lengthwise_recipes.ge2021.printed import (
    ALIKE,
    COUNTS,
    FIXED_COUNT,
    SAVED,
    TABLE_2,
    TABLE_4,
    Part,
    printed_reduction,
)
from lengthwise_recipes.ge2021.table1 import STRATEGIES, TOLERANCES, TRAINING_CLIPS, Row, read_row
from lengthwise_recipes.pages import within
from lengthwise_recipes.study.results import read_rows

Outcomes = Mapping[str, Outcome]
Fields = Mapping[str, Any]  # of `batchings.Knobs`
Measured = Mapping[str, Mapping[str, NDArray[np.float64]]]
Rows = Mapping[tuple[str, str, str], Row]  # by strategy, sizes and quantity

POINTS = 2.0  # similar strategies may differ by this many percentage points
RATE_POINTS = 0.5  # their ZPR may differ by this many percentage points
REORDERED = TABLE_4[1]  # pairs of the same batches, in order and in random order


def claims_of(document: Mapping[str, Any]) -> list[Claim]:
    """Judges the claims from a rerun's document, read from JSON, by the current rule."""
    by_label = outcomes(read_rows(document["study"]["rows"]))
    padding = {
        label: {name: np.array(spread["values"]) for name, spread in measures.items()}
        for label, measures in document["padding"].items()
    }
    table1 = list(map(read_row, document["table1"]))
    recordings = sum(document["lengths"]["counts"])
    alike, *counts = claims_of_plans(padding, document["knobs"], recordings, table1)
    falls = (document["paper_knobs"] or document["knobs"])["falls"]
    curves = claim_of_curves(falls, None if table1 else _count_recordings(recordings))
    claims = [alike, curves, *counts, *claims_of_times(by_label), *claims_of_losses(by_label)]
    return name_data(claims, f"on {document['study']['data']['name']}", "on LJSpeech")


def claims_of_plans(padding: Measured, knobs: Fields, recordings: int, table1: Sequence[Row] = ()) -> list[Claim]:
    """Judges the claims on padding and batch counts, in tables 1 and 2 and section 4.

    Args:
        padding: From `batchings.measure_batching`, for every strategy and RAND-DBS.
        knobs: Knobs for the same lengths.
        recordings: Number of training lengths; the claims are comparable if there are enough.
        table1: The paper's table 1 on its own lengths. ZPR and batches are judged on it unless it is empty.
    """
    rows = {(row.strategy, row.sizes, row.quantity): row for row in table1}
    if rows:
        counts = [_paper_count_claim(padding, rows, label) for label in COUNTS]
        return [_paper_alike_claim(padding, knobs, rows), *counts]
    trained = [_trained_alike_claim(padding, knobs), *(_trained_count_claim(padding, label) for label in COUNTS)]
    return [dataclasses.replace(claim, regime=_count_recordings(recordings)) for claim in trained]


def claims_of_times(by_label: Outcomes) -> list[Claim]:
    """Judges the claims on epoch time, in table 3 and the text before it."""
    saved = [_saved_claim(by_label, label) for label in SAVED]
    return [*saved, _saved_alike_claim(by_label), _randomized_claim(by_label)]


def claims_of_losses(by_label: Outcomes) -> list[Claim]:
    """Judges the five conclusions of section 6 on VL_3, which are comparable after the paper's number of steps."""
    sorting, randomizing, sizing = TABLE_4
    steps = float(by_label["RAND"].steps.sum(axis=1).mean())
    regime = Regime(what="steps of RAND", ours=steps, paper=FIXED_COUNT * PAPER_EPOCHS)
    judged = [
        _similar_claim(by_label),
        _behind_random_claim(by_label),
        _same_time_claim(by_label),
        _ahead_of_random_claim(by_label),
        _part_claim(by_label, sorting, "4", "SSB is better than SB, above all without BR and DBS"),
        _part_claim(by_label, randomizing, "5", "BR lowers VL_3, most where the randomness is low"),
        _part_claim(by_label, sizing, "5", "DBS lowers VL_3, most where the randomness is low"),
    ]
    return [dataclasses.replace(claim, regime=regime, kind="validation loss") for claim in judged]


def _paper_alike_claim(padding: Measured, knobs: Fields, rows: Rows) -> Claim:
    labels = [STRATEGIES[label] for label in ALIKE]
    rates = np.array([rows[label, "fixed", "zpr"].values for label in labels])
    trained = _largest_differences(np.stack([padding[label]["zpr"] for label in ALIKE]))
    return _alike_claim(
        _largest_differences(rates),
        f"On the paper's own lengths with its knobs, ZPR {_means(rates)} % with {', '.join(ALIKE)}. On the recordings "
        f"trained on, buckets of {knobs['bucket_size']} and {knobs['bins']} bins come closest, and the difference is "
        f"{100 * trained.mean():.2f} points.",
    )


def _trained_alike_claim(padding: Measured, knobs: Fields) -> Claim:
    lengths = [float(padding[label]["abl"].mean()) for label in ALIKE]
    return _alike_claim(
        100 * _largest_differences(np.stack([padding[label]["zpr"] for label in ALIKE])),
        f"On the recordings trained on, buckets of {knobs['bucket_size']} and {knobs['bins']} bins (the paper: "
        f"{PAPER_KNOBS['bucketed']} and {PAPER_KNOBS['alternated']}) come closest without more padding, if possible. "
        f"The difference depends on the lengths. ABL {_listing(lengths, 1)} frames.",
    )


def _alike_claim(points: NDArray[np.float64], why: str) -> Claim:
    printed = max(abs(TABLE_2[label].zpr - TABLE_2[ALIKE[0]].zpr) for label in ALIKE)
    return Claim(
        claim="semi-sorted, bucket and alternated-sorting batching have about the same ZPR with the knobs chosen; "
        "ours: the largest difference, in points",
        where="3, table 1",
        paper=f"{printed:.2f}",
        ours=points.tolist(),
        effect=RATE_POINTS,
        holds=of_likeness(RATE_POINTS, points),
        why=why,
    )


def _largest_differences(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the largest difference from the first strategy under each seed: [strategies, seeds] to [seeds]."""
    return np.abs(values[1:] - values[0]).max(axis=0)


def claim_of_curves(falls: Mapping[str, Sequence[float]], regime: Regime | None) -> Claim:
    """Judges the curves of ZPR by `Knobs.falls`; the paper's own lengths need no regime."""
    points = 100 * np.array([falls[order] for order in PAPER_KNOBS])
    lrf, smoother = points[0], points[1:].min(axis=0)
    return Claim(
        claim="tuning LRF gives a smoother curve of ZPR than bucket size and number of bins do; ours: the largest fall "
        "of ZPR while the smoother of the two rises, less that of LRF, in points",
        where="3, figure 2; 6, conclusion 1",
        paper="smoother",
        ours=(smoother - lrf).tolist(),
        regime=regime,
        holds=of_order((smoother, lrf)),
        why=f"Within the range of all three curves, the largest falls are {_means(points)} points with LRF, bucket "
        f"size and number of bins, means over training sets. LRF takes any value, here {FACTORS} up to 1. The paper "
        "shows a figure and no measure; we chose this one when we had seen our curves.",
    )


def _count_recordings(ours: int) -> Regime:
    return Regime(what="recordings in the training set", ours=ours, paper=TRAINING_CLIPS)


def _paper_count_claim(padding: Measured, rows: Rows, label: str) -> Claim:
    strategy = STRATEGIES[_with_random_steps(label)]
    fixed, dynamic = (rows[strategy, sizes, "batches"] for sizes in ("fixed", "dynamic"))
    ours = 100 * (1 - np.array(dynamic.values) / np.array(fixed.values))
    return _count_claim(
        label,
        ours,
        dynamic.holds,
        f"On the paper's own lengths {fixed.mean:.1f} batches become {dynamic.mean:.1f}"
        f"{within(dynamic.least, dynamic.greatest, digits=0)}. The plan of a seed has no noise: the number is "
        f"reproduced in the range of ours, partly up to {100 * TOLERANCES['batches']:g} % off. On the recordings "
        f"trained on {_describe_counts(padding, label)}.",
    )


def _trained_count_claim(padding: Measured, label: str) -> Claim:
    fixed, dynamic = _counts(padding, label)
    ours = 100 * (1 - dynamic / fixed)
    return _count_claim(
        label,
        ours,
        of_effect(ours.tolist(), _printed_fall(label)),
        f"On the recordings trained on {_describe_counts(padding, label)}. The number depends on the lengths.",
    )


def _count_claim(label: str, ours: NDArray[np.float64], holds: str, why: str) -> Claim:
    return Claim(
        claim=f"dynamic batch sizes make {COUNTS[label]} batches of {FIXED_COUNT} with {label}; ours: percent fewer",
        where="4",
        paper=f"{_printed_fall(label):.2f} %",
        ours=ours.tolist(),
        effect=_printed_fall(label),
        unit="%",
        holds=holds,
        why=why,
    )


def _printed_fall(label: str) -> float:
    """Returns how many percent fewer batches dynamic sizes make in the paper."""
    return 100 * (1 - COUNTS[label] / FIXED_COUNT)


def _counts(padding: Measured, label: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the numbers of batches of fixed and of dynamic size, both [seeds]."""
    return padding[_with_random_steps(label)]["batches"], padding[f"{label}-DBS"]["batches"]


def _describe_counts(padding: Measured, label: str) -> str:
    fixed, dynamic = _counts(padding, label)
    return f"{fixed.mean():.1f} batches become {dynamic.mean():.1f}"


def _with_random_steps(label: str) -> str:
    """Returns the strategy with the same order of sequences and shuffled batches; RAND already shuffles them."""
    return label if label == "RAND" else f"{label}-BR"


def _saved_claim(by_label: Outcomes, label: str) -> Claim:
    """Judges the time saved, none unless the mean is above the noise."""
    ours, noise = 100 * time_saving(by_label["RAND"], by_label[label]), noise_points(by_label, label)
    random_steps, steps = (by_label[name].steps.mean() for name in ("RAND", label))
    printed_steps = COUNTS[label.partition("-")[0]] if CHOICES[label].dynamic else FIXED_COUNT
    return Claim(
        claim=f"an epoch takes {SAVED[label]:.2f} % less time with {label} than with RAND",
        where="6, table 3",
        paper=f"{SAVED[label]:.2f} %",
        ours=ours.tolist(),
        effect=SAVED[label],
        regime=Regime(
            what="percent fewer frames computed",
            ours=100 * frame_saving(by_label["RAND"], by_label[label]),
            paper=100 * (1.0 - TABLE_2[label].abl / TABLE_2["RAND"].abl),
            least=1.0 - CLOSE,
            digits=1,
        ),
        unit="%",
        kind="epoch time",
        holds=of_effect(ours.tolist(), SAVED[label]) if ours.mean() > noise else NONE,
        why=f"{frame_saving(by_label['RAND'], by_label[label]):.1%} fewer frames are computed, the most that less "
        f"padding can save, in {steps:.0f} steps where RAND takes {random_steps:.0f} (the paper: {printed_steps} and "
        f"{FIXED_COUNT}); the same batches in another order differ by {noise:.2f} points of RAND's epoch.",
    )


def _saved_alike_claim(by_label: Outcomes) -> Claim:
    shares = 100 * np.stack([time_saving(by_label["RAND"], by_label[label]) for label in ALIKE])
    differences, noise = shares[1:] - shares[0], noise_points(by_label, ALIKE[0])
    farthest = int(np.abs(differences.mean(axis=1)).argmax())
    tolerance = max(POINTS, noise)
    return Claim(
        claim="BKT-BR and ATS-BR save about as much time as SSB-BR; ours: the larger of the two differences, in points",
        where="6, table 2",
        paper="similar",
        ours=differences[farthest].tolist(),
        effect=tolerance,
        holds=of_likeness(tolerance, *differences),
        why=f"Of RAND's epoch {_means(shares)} % are saved, mean over seeds, with {', '.join(ALIKE)}; the same batches "
        f"in another order differ by {noise:.2f} points, so a difference of at most {tolerance:.2f} counts as similar.",
    )


def noise_points(by_label: Outcomes, label: str) -> float:
    """Returns how much epochs of the same batches in another order differ, in points of RAND's epoch.

    It is the largest mean difference between a strategy with and without BR, whose batch sizes are dynamic or fixed
    like those of `label`. Only the order differs in these pairs, so a smaller difference between strategies is noise.
    """
    dynamic = CHOICES[label].dynamic
    pairs = [pair for pair in REORDERED.pairs if CHOICES[pair[0]].dynamic == dynamic]
    shares = np.array([[time_saving(by_label["RAND"], by_label[name]) for name in pair] for pair in pairs])
    return float(100 * np.abs(shares[:, 0] - shares[:, 1]).mean(axis=1).max())


def _randomized_claim(by_label: Outcomes) -> Claim:
    shares = 100 * np.stack([time_saving(by_label[base], by_label[shuffled]) for base, shuffled in REORDERED.pairs])
    ours, means = shares.mean(axis=0), shares.mean(axis=1)
    shorter = int(np.sum(means > 0.0))
    names = ", ".join(base for base, _ in REORDERED.pairs)
    return Claim(
        claim=f"with BR an epoch is slightly shorter than without, with each of {names}; ours: percent shorter, "
        "mean of three",
        where="6",
        paper="slightly",
        ours=ours.tolist(),
        unit="%",
        holds=_all_above_zero(ours, shares),
        why=f"Means over seeds: {_listing(means)} % with {names}: shorter with {shorter} of {len(means)}. The batches "
        "of a pair differ only in their order. So the difference is noise or caches of the machine, and shows how far "
        "two equal epochs differ here. The paper suspects the allocation of memory.",
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
        unit="%",
        holds=of_likeness(POINTS, *falls),
        why=f"Means over seeds: {_means(falls)} % below BKT-BR and ATS-BR (the paper: {_listing(printed)}); a "
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
        why=f"Means over seeds: {_means(rises)} % with {', '.join(ALIKE)} (the paper: {_listing(printed)}).",
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
        why=f"Means over seeds: {_means(falls)} % with {', '.join(ALIKE)}. This is speed: in the same time they take "
        "more epochs.",
    )


def ahead_in_time(random: Outcome, faster: Outcome) -> NDArray[np.float64]:
    """Returns the share by which the loss of one run is below RAND's when the shorter run ends, [seeds]."""
    end = np.minimum(random.seconds.sum(axis=1), faster.seconds.sum(axis=1))
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
        f"{random_steps:.0f}.",
    )


def _part_claim(by_label: Outcomes, part: Part, conclusion: str, text: str) -> Claim:
    """Judges a part of table 4: all falls are above 0, and the first is the largest."""
    falls, printed = _reductions(by_label, part.pairs), [printed_reduction(*pair) for pair in part.pairs]
    base, changed = part.pairs[0]
    return Claim(
        claim=f"{text}; ours: fall in percent from {base} to {changed}",
        where=f"6, conclusion {conclusion}; table 4",
        paper=f"{printed[0]:.2f} %",
        ours=falls[0].tolist(),
        effect=printed[0],
        unit="%",
        holds=of_order(*((fall, 0.0) for fall in falls), *((falls[0], fall) for fall in falls[1:])),
        why=f"Means over seeds: {_means(falls)} % ({', '.join(map(' to '.join, part.pairs))}; the paper: "
        f"{_listing(printed)}).",
    )


def _all_above_zero(mean: NDArray[np.float64], shares: NDArray[np.float64]) -> str:
    return of_order((mean, 0.0), *((share, 0.0) for share in shares))


def _reductions(by_label: Outcomes, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """Returns how many percent VL_3 falls from the first strategy of each pair to the second, [pairs, seeds]."""
    return 100 * np.stack([reduction(by_label[base], by_label[changed]) for base, changed in pairs])


def _means(values: NDArray[np.float64]) -> str:
    """Lists the means over the seeds of `values` [strategies, seeds]."""
    return _listing(values.mean(axis=1))


def _listing(values: Sequence[float] | NDArray[np.float64], digits: int = 2) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)

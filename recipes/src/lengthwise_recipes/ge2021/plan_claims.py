"""Judges the claims of Ge et al. 2021 on the padding and the number of batches, which need plans alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise_recipes.claims import (
    NONE,
    WHOLE,
    Claim,
    Size,
    extent,
    listing,
    of_each,
    of_effect,
    of_likeness,
    of_order,
    tells_greater,
)
from lengthwise_recipes.ge2021.batchings import FACTORS, PAPER_KNOBS
from lengthwise_recipes.ge2021.printed import ALIKE, COUNTS, FIXED_COUNT, TABLE_2
from lengthwise_recipes.ge2021.table1 import PRINTED_RULE, STRATEGIES, Row
from lengthwise_recipes.pages import within

Fields = Mapping[str, Any]  # of `batchings.Knobs`
Measured = Mapping[str, Mapping[str, NDArray[np.float64]]]
Rows = Mapping[tuple[str, str, str], Row]  # by strategy, sizes and quantity

SIZES = ("fixed", "dynamic")
WIDER = ("SSB", "SB")  # with dynamic sizes they pad more
RATE_POINTS = 0.5  # similar strategies may differ by this many percentage points of ZPR


def claims_of_plans(padding: Measured, knobs: Fields, size: Size, table1: Sequence[Row] = ()) -> list[Claim]:
    """Judges the claims on padding and batch counts, in tables 1 and 2 and section 4.

    Args:
        padding: From `batchings.measure_batching`, for every strategy and RAND-DBS.
        knobs: Knobs for the same lengths.
        size: Size of the recordings trained on.
        table1: The paper's table 1 on its own lengths. ZPR and batches are judged on it, too, unless it is empty.
    """
    rows = {(row.strategy, row.sizes, row.quantity): row for row in table1}
    of_trained = {label: [100 * padding[f"{label}-{end}"]["zpr"] for end in ("BR", "DBS")] for label in WIDER}
    if rows:
        counts = [_paper_count_claim(padding, rows, label) for label in COUNTS]
        rates = {label: [rows[STRATEGIES[f"{label}-BR"], sizes, "zpr"].values for sizes in SIZES] for label in WIDER}
        return [_paper_alike_claim(padding, knobs, rows), *counts, _wider_claim(rates, of_trained)]
    counts = [_trained_count_claim(padding, label) for label in COUNTS]
    trained = [_trained_alike_claim(padding, knobs), *counts, _wider_claim(of_trained)]
    return [dataclasses.replace(claim, size=size) for claim in trained]


def claim_of_curves(
    trained: Mapping[str, Sequence[float]], printed: Mapping[str, Sequence[float]] | None, size: Size | None
) -> Claim:
    """Judges the curves of ZPR by `Knobs.falls`.

    Args:
        trained: Of the recordings trained on.
        printed: Of the paper's own lengths. None if they are missing.
        size: Size of the recordings, if `printed` is missing.
    """
    points = [100 * np.array([falls[order] for order in PAPER_KNOBS]) for falls in (printed, trained) if falls]
    pairs = [(drops[1:].min(axis=0), drops[0]) for drops in points]
    smoother, lrf = pairs[0]
    note = f" On the recordings trained on, they are {listing(points[-1])} points." if printed else ""
    note += " There the seeds tell the opposite." if printed and tells_greater(*pairs[-1][::-1]) else ""
    return Claim(
        claim="tuning LRF gives a smoother curve of ZPR than bucket size and number of bins do; ours: the largest drop "
        "of ZPR as the knob rises, with the smoother of the other two knobs minus with LRF, in points",
        where="3, figure 2; 6, conclusion 1",
        paper="smoother",
        ours=(smoother - lrf).tolist(),
        size=size,
        unit="points",
        holds=of_order(*pairs),
        why=f"Within the range of all three curves, the largest drops are {listing(points[0])} points with LRF, bucket "
        f"size and number of bins, means over training sets.{note} More values of a knob find larger drops: LRF takes "
        f"any value, here {FACTORS} up to 1, and the others all that they can have. The paper shows a figure and no "
        "measure; we chose this one when we had seen our curves.",
    )


def prepared_again_claim(parted: Mapping[str, Sequence[float]]) -> Claim:
    """Judges section 5 by `table1.parted_share` of SB and SSB, under each seed."""
    points = {label: 100 * np.array(shares) for label, shares in parted.items()}
    return Claim(
        claim="preparing the training set again in each epoch adds randomness, even to sorted batches; ours: percent "
        "of the pairs in a batch of SB that are apart in the next epoch",
        where="5",
        paper="more",
        ours=points["SB"].tolist(),
        unit="%",
        holds=of_order(*((values, 0.0) for values in points.values())),
        why=f"On the paper's own lengths {listing(list(points.values()))} % with {', '.join(points)}; without it, none "
        "are apart. The cost, a few seconds in the paper, is the planning in the seconds of table 2.",
    )


def _paper_alike_claim(padding: Measured, knobs: Fields, rows: Rows) -> Claim:
    labels = [STRATEGIES[label] for label in ALIKE]
    rates = np.array([rows[label, "fixed", "zpr"].values for label in labels])
    trained = _largest_differences(np.stack([padding[label]["zpr"] for label in ALIKE]))
    return _alike_claim(
        _largest_differences(rates),
        100 * trained,
        f"On the paper's own lengths with its knobs, ZPR {listing(rates)} % with {', '.join(ALIKE)}. On the recordings "
        f"trained on, buckets of {knobs['bucket_size']} and {knobs['bins']} bins come closest, and the difference is "
        f"{100 * trained.mean():.2f} points{within(100 * trained.min(), 100 * trained.max())}.",
    )


def _trained_alike_claim(padding: Measured, knobs: Fields) -> Claim:
    lengths = [float(padding[label]["abl"].mean()) for label in ALIKE]
    points = 100 * _largest_differences(np.stack([padding[label]["zpr"] for label in ALIKE]))
    return _alike_claim(
        points,
        points,
        f"On the recordings trained on, buckets of {knobs['bucket_size']} and {knobs['bins']} bins (the paper: "
        f"{PAPER_KNOBS['bucketed']} and {PAPER_KNOBS['alternated']}) come closest without more padding, if possible. "
        f"The difference depends on the lengths. ABL {listing(lengths, '.1f')} frames.",
    )


def _alike_claim(points: NDArray[np.float64], trained: NDArray[np.float64], why: str) -> Claim:
    """Judges the points of the largest difference; in part if those of the recordings trained on are apart."""
    alike, alike_trained = (of_likeness(RATE_POINTS, differences) for differences in (points, trained))
    printed = max(abs(TABLE_2[label].zpr - TABLE_2[ALIKE[0]].zpr) for label in ALIKE)
    return Claim(
        claim="semi-sorted, bucket and alternated-sorting batching have about the same ZPR with the knobs chosen; "
        "ours: the largest difference, in points",
        where="3, table 1",
        paper=f"{printed:.2f}",
        ours=points.tolist(),
        effect=RATE_POINTS,
        likeness=True,
        unit="points",
        holds=extent(whole=alike == alike_trained == WHOLE, part=alike != NONE),
        why=f"{why} A difference of at most {RATE_POINTS:g} points counts as about the same.",
    )


def _largest_differences(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the largest difference from the first strategy under each seed: [strategies, seeds] to [seeds]."""
    return np.abs(values[1:] - values[0]).max(axis=0)


def _paper_count_claim(padding: Measured, rows: Rows, label: str) -> Claim:
    strategy = STRATEGIES[_with_random_steps(label)]
    fixed, dynamic, printed = (rows[strategy, sizes, "batches"] for sizes in (*SIZES, PRINTED_RULE))
    ours, by_printed_rule = (100 * (1 - np.array(row.values) / np.array(fixed.values)) for row in (dynamic, printed))
    trained = 100 * (1 - np.divide(*_counts(padding, label)[::-1]))
    return _count_claim(
        label,
        ours,
        of_each(*(of_effect(falls.tolist(), _printed_fall(label)) for falls in (ours, by_printed_rule, trained))),
        f"On the paper's own lengths {fixed.mean:.1f} batches become {dynamic.mean:.1f}"
        f"{within(dynamic.least, dynamic.greatest, digits=0)}, and {printed.mean:.1f} by the rule that the paper "
        f"prints, {by_printed_rule.mean():.2f} % fewer. On the recordings trained on "
        f"{_describe_counts(padding, label)}.",
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


def _wider_claim(*rates: Mapping[str, Sequence[ArrayLike]]) -> Claim:
    """Judges the ZPR in percent by strategy, first of fixed and then of dynamic sizes, each [seeds]; on all lengths."""
    all_rises = [
        {label: np.diff(np.array(pair), axis=0)[0] for label, pair in of_lengths.items()} for of_lengths in rates
    ]
    rises, trained = all_rises[0], all_rises[1:]
    printed = {label: TABLE_2[f"{label}-DBS"].zpr - TABLE_2[label].zpr for label in WIDER}
    return Claim(
        claim="dynamic batch sizes raise the ZPR of sorted and semi-sorted batches; ours: points added with SSB",
        where="4, table 2",
        paper=f"{printed['SSB']:.2f}",
        ours=rises["SSB"].tolist(),
        effect=printed["SSB"],
        unit="points",
        holds=of_each(*(of_effect(each[label].tolist(), printed[label]) for each in all_rises for label in WIDER)),
        why=f"Points added, means over seeds: {listing(list(rises.values()))} with {', '.join(WIDER)} (the paper: "
        f"{listing(list(printed.values()))})."
        + "".join(f" On the recordings trained on {listing(list(each.values()))}." for each in trained),
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

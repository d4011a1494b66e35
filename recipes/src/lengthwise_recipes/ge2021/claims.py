"""What Ge et al. 2021 claim of padding, epoch time and validation loss, and what a rerun says of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.claims import Claim, Regime, extent
from lengthwise_recipes.ge2021.batchings import CHOICES, FACTORS, PAPER_KNOBS, Knobs
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
from lengthwise_recipes.ge2021.table1 import STRATEGIES, TOLERANCES, TRAINING_CLIPS, Row
from lengthwise_recipes.pages import within
from lengthwise_recipes.study.results import read_rows

Outcomes = Mapping[str, Outcome]
Measured = Mapping[str, Mapping[str, NDArray[np.float64]]]
Rows = Mapping[tuple[str, str, str], Row]  # by strategy, sizes and quantity

CLOSE = 0.15  # of the paper's number: by what ours may miss it
POINTS = 2.0  # of percent: by what two strategies that are alike may differ
RATE_POINTS = 0.5  # of ZPR: the same for their padding
REORDERED = TABLE_4[1]  # pairs of the same batches, in order and in random order


def claims_of(document: Mapping[str, Any]) -> list[Claim]:
    """The claims of a rerun's document, as read back from JSON: judged by today's rule, whenever it was measured."""
    found, known = outcomes(read_rows(document["study"]["rows"])), document["knobs"]
    knobs = Knobs(**{field.name: known[field.name] for field in dataclasses.fields(Knobs)})
    padding = {
        label: {name: np.array(each.get("values", [each["mean"]])) for name, each in measures.items()}
        for label, measures in document["padding"].items()
    }
    table1 = [Row(**row) for row in document["table1"]]
    plans = claims_of_plans(padding, knobs, sum(document["lengths"]["counts"]), table1)
    return [*plans, *claims_of_times(found), *claims_of_losses(found)]


def claims_of_plans(padding: Measured, knobs: Knobs, recordings: int, table1: Sequence[Row] = ()) -> list[Claim]:
    """What the paper claims of padding and batch counts, tables 1 and 2 and section 4.

    Args:
        padding: What `batchings.measured` says of every strategy, and of RAND-DBS.
        knobs: Of the same lengths.
        recordings: How many lengths there are: fewer make another regime.
        table1: The paper's table 1 on its own lengths; where given, the ZPR and the batches are judged on it.
    """
    rows = {(row.strategy, row.sizes, row.quantity): row for row in table1}
    own = Regime(what="recordings in the training set", ours=recordings, paper=TRAINING_CLIPS)
    if rows:
        judged = [
            _paper_alike_claim(padding, knobs, rows),
            *(_paper_count_claim(padding, rows, label) for label in COUNTS),
        ]
    else:
        trained = [_trained_alike_claim(padding, knobs), *(_trained_count_claim(padding, label) for label in COUNTS)]
        judged = [dataclasses.replace(each, regime=own) for each in trained]
    alike, *counts = judged
    return [alike, dataclasses.replace(_smooth_claim(knobs), regime=own), *counts]


def claims_of_times(found: Outcomes) -> list[Claim]:
    """What the paper claims of minutes an epoch, table 3 and the text before it."""
    return [*(_saved_claim(found, label) for label in SAVED), _saved_alike_claim(found), _randomized_claim(found)]


def claims_of_losses(found: Outcomes) -> list[Claim]:
    """The five conclusions of section 6, each a claim about VL_3 after as many steps as the paper takes."""
    sorting, randomizing, sizing = TABLE_4
    steps = float(found["RAND"].steps.sum(axis=1).mean())
    trained = Regime(what="steps of RAND", ours=steps, paper=FIXED_COUNT * PAPER_EPOCHS)
    made = [
        _similar_claim(found),
        _behind_random_claim(found),
        _same_time_claim(found),
        _ahead_of_random_claim(found),
        _part_claim(found, sorting, "4", "SSB is better than SB, above all without BR and DBS", every=False),
        _part_claim(found, randomizing, "5", "BR lowers VL_3, most where the randomness is low", every=True),
        _part_claim(found, sizing, "5", "DBS lowers VL_3, most where the randomness is low", every=True),
    ]
    return [dataclasses.replace(each, regime=trained) for each in made]


def _paper_alike_claim(padding: Measured, knobs: Knobs, rows: Rows) -> Claim:
    labels = [STRATEGIES[label] for label in ALIKE]
    rates = np.array([rows[label, "fixed", "zpr"].values for label in labels])
    trained = _largest_differences(np.stack([padding[label]["zpr"] for label in ALIKE]))
    return _alike_claim(
        _largest_differences(rates),
        f"On the paper's own lengths with its knobs, ZPR {_means(rates)} % with {', '.join(ALIKE)}; on the recordings "
        f"trained on, buckets of {knobs.bucket_size} and {knobs.bins} bins come closest, and the difference is "
        f"{100 * trained.mean():.2f} points.",
    )


def _trained_alike_claim(padding: Measured, knobs: Knobs) -> Claim:
    lengths = [float(padding[label]["abl"].mean()) for label in ALIKE]
    return _alike_claim(
        100 * _largest_differences(np.stack([padding[label]["zpr"] for label in ALIKE])),
        f"On the recordings trained on, buckets of {knobs.bucket_size} and {knobs.bins} bins (the paper: "
        f"{PAPER_KNOBS['bucketed']} and {PAPER_KNOBS['alternated']}) come closest and pad no more, if any do; how "
        f"close depends on the lengths; ABL {_listing(lengths, 1)} frames.",
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
        holds=extent(whole=points.max() <= RATE_POINTS, part=points.mean() <= POINTS),
        why=why,
    )


def _largest_differences(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much the others differ from the first at most, under each seed: [strategies, seeds] to [seeds]."""
    return np.abs(values[1:] - values[0]).max(axis=0)


def _smooth_claim(knobs: Knobs) -> Claim:
    ours, buckets, bins = (100 * knobs.largest_steps[name] for name in PAPER_KNOBS)
    return Claim(
        claim="tuning LRF gives a smoother curve of ZPR than bucket size and number of bins do; ours: the largest "
        "change of ZPR from one value to the next, in points",
        where="3, figure 2; 6, conclusion 1",
        paper="smoother",
        ours=[ours],
        holds=extent(whole=ours < min(buckets, bins), part=ours < max(buckets, bins)),
        why=f"It changes by up to {buckets:.2f} points from one bucket size to the next, by up to {bins:.2f} from one "
        f"number of bins to the next; LRF takes any value, here {FACTORS} up to 1.",
    )


def _paper_count_claim(padding: Measured, rows: Rows, label: str) -> Claim:
    strategy = STRATEGIES[_with_random_steps(label)]
    before, after = (rows[strategy, sizes, "batches"] for sizes in ("fixed", "dynamic"))
    ours = 100 * (1 - np.array(after.values) / np.array(before.values))
    return _count_claim(
        label,
        ours,
        whole=after.reproduced,
        why=f"On the paper's own lengths {before.mean:.1f} batches become {after.mean:.1f}"
        f"{within(after.least, after.greatest, digits=0)}, and {100 * TOLERANCES['batches']:g} % off is near enough; "
        f"on the recordings trained on {_describe_counts(padding, label)}.",
    )


def _trained_count_claim(padding: Measured, label: str) -> Claim:
    before, after = _counts(padding, label)
    ours = 100 * (1 - after / before)
    printed = _printed_fall(label)
    return _count_claim(
        label,
        ours,
        whole=abs(ours.mean() - printed) <= CLOSE * printed,
        why=f"On the recordings trained on {_describe_counts(padding, label)}; how many fewer depends on the lengths.",
    )


def _count_claim(label: str, ours: NDArray[np.float64], *, whole: bool, why: str) -> Claim:
    return Claim(
        claim=f"dynamic batch sizes make {COUNTS[label]} batches of {FIXED_COUNT} with {label}; ours: how many "
        "percent fewer",
        where="4",
        paper=f"{_printed_fall(label):.2f} %",
        ours=ours.tolist(),
        effect=_printed_fall(label),
        unit="%",
        holds=extent(whole=whole, part=ours.min() > 0.0),
        why=why,
    )


def _printed_fall(label: str) -> float:
    """By how many percent dynamic sizes make fewer batches in the paper."""
    return 100 * (1 - COUNTS[label] / FIXED_COUNT)


def _counts(padding: Measured, label: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Batches of fixed and of dynamic size, each [seeds]."""
    return padding[_with_random_steps(label)]["batches"], padding[f"{label}-DBS"]["batches"]


def _describe_counts(padding: Measured, label: str) -> str:
    before, after = _counts(padding, label)
    return f"{before.mean():.1f} batches become {after.mean():.1f}"


def _with_random_steps(label: str) -> str:
    """The same order of sequences in batches of random order: RAND needs no BR for that."""
    return label if label == "RAND" else f"{label}-BR"


def _saved_claim(found: Outcomes, label: str) -> Claim:
    """Reproduced where under each seed little less is saved, partly where anything is, if it is more than noise."""
    ours, noise = 100 * time_saving(found["RAND"], found[label]), noise_points(found, label)
    before, after = (found[name].steps.mean() for name in ("RAND", label))
    above = bool(ours.mean() > noise)
    return Claim(
        claim=f"an epoch takes {SAVED[label]:.2f} % less time with {label} than with RAND",
        where="6, table 3",
        paper=f"{SAVED[label]:.2f} %",
        ours=ours.tolist(),
        effect=SAVED[label],
        regime=Regime(
            what="percent fewer frames computed",
            ours=100 * frame_saving(found["RAND"], found[label]),
            paper=100 * (1.0 - TABLE_2[label].abl / TABLE_2["RAND"].abl),
            least=1.0 - CLOSE,
            digits=1,
        ),
        unit="%",
        holds=extent(whole=above and ours.min() >= SAVED[label] * (1 - CLOSE), part=above),
        why=f"{frame_saving(found['RAND'], found[label]):.1%} fewer frames are computed, which is what padding alone "
        f"allows, in {after:.0f} steps where RAND takes {before:.0f}; the same batches in another order differ by "
        f"{noise:.2f} points of RAND's epoch.",
    )


def _saved_alike_claim(found: Outcomes) -> Claim:
    shares = 100 * np.stack([time_saving(found["RAND"], found[label]) for label in ALIKE])
    differences, noise = shares[1:] - shares[0], noise_points(found, ALIKE[0])
    farthest = int(np.abs(differences.mean(axis=1)).argmax())
    near = max(POINTS, noise)
    return Claim(
        claim="BKT-BR and ATS-BR save about as much time as SSB-BR; ours: by how many points more is saved by the one "
        "that differs more, mean over seeds",
        where="6, table 2",
        paper="similar",
        ours=differences[farthest].tolist(),
        effect=near,
        holds=extent(whole=np.abs(differences).max() <= near, part=np.abs(differences.mean(axis=1)).max() <= near),
        why=f"Of RAND's epoch {_means(shares)} % are saved, mean over seeds, with {', '.join(ALIKE)}; the same batches "
        f"in another order differ by {noise:.2f} points, so a difference of at most {near:.2f} counts as similar.",
    )


def noise_points(found: Outcomes, label: str) -> float:
    """By how many points of RAND's epoch two epochs of the same batches in another order differ, mean over seeds.

    The largest of the differences with and without BR, of the pairs whose batch sizes are dynamic or fixed as those of
    `label` are: nothing but the order differs, so what is no larger says nothing of two strategies.
    """
    dynamic = CHOICES[label].dynamic
    pairs = [pair for pair in REORDERED.pairs if CHOICES[pair[0]].dynamic == dynamic]
    shares = np.array([[time_saving(found["RAND"], found[each]) for each in pair] for pair in pairs])
    return float(100 * np.abs(shares[:, 0] - shares[:, 1]).mean(axis=1).max())


def _randomized_claim(found: Outcomes) -> Claim:
    """Reproduced where each mean over seeds and each mean of three is above 0; partly where most are, and all together.

    The paper says it of each of the three.
    """
    shares = 100 * np.stack([time_saving(found[before], found[after]) for before, after in REORDERED.pairs])
    ours, means = shares.mean(axis=0), shares.mean(axis=1)
    shorter = int(np.sum(means > 0.0))
    names = ", ".join(before for before, _ in REORDERED.pairs)
    return Claim(
        claim=f"with BR an epoch is slightly shorter than without, with each of {names}; ours: by how many percent, "
        "mean of three",
        where="6",
        paper="slightly",
        ours=ours.tolist(),
        unit="%",
        holds=extent(whole=means.min() > 0.0 and ours.min() > 0.0, part=2 * shorter > len(means) and ours.mean() > 0.0),
        why=f"Means over seeds: {_listing(means)} % with {names}: shorter with {shorter} of {len(means)}. The batches "
        "of a pair are the same but for their order. So what differs is the machine's noise or its caches. It says "
        "how far two equal epochs differ here. The paper suspects the allocation of memory.",
    )


def _similar_claim(found: Outcomes) -> Claim:
    pairs = [(label, ALIKE[0]) for label in ALIKE[1:]]
    falls, printed = _reductions(found, pairs), [printed_reduction(*pair) for pair in pairs]
    return Claim(
        claim="SSB-BR performs similarly to BKT-BR and ATS-BR; ours: by how many percent its VL_3 is below theirs, "
        "mean of two",
        where="6, conclusion 1",
        paper=f"{np.mean(printed):.2f} %",
        ours=falls.mean(axis=0).tolist(),
        effect=POINTS,
        unit="%",
        holds=extent(whole=np.abs(falls).max() <= POINTS, part=np.abs(falls.mean(axis=1)).max() <= POINTS),
        why=f"Means over seeds: {_means(falls)} % below BKT-BR and ATS-BR (the paper: {_listing(printed)}); a "
        f"difference of at most {POINTS:g} % counts as similar.",
    )


def _behind_random_claim(found: Outcomes) -> Claim:
    pairs = [("RAND", label) for label in ALIKE]
    rises, printed = -_reductions(found, pairs), [-printed_reduction(*pair) for pair in pairs]
    return Claim(
        claim="SSB-BR, BKT-BR and ATS-BR do not perform as well as RAND in as many epochs; ours: by how many percent "
        "their VL_3 is above RAND's, mean of three",
        where="6, conclusion 2",
        paper=f"{np.mean(printed):.2f} %",
        ours=rises.mean(axis=0).tolist(),
        effect=float(np.mean(printed)),
        unit="%",
        holds=extent(whole=rises.mean(axis=1).min() > 0.0, part=rises.mean() > 0.0),
        why=f"Means over seeds: {_means(rises)} % with {', '.join(ALIKE)} (the paper: {_listing(printed)}).",
    )


def _same_time_claim(found: Outcomes) -> Claim:
    falls = 100 * np.stack([ahead_in_time(found["RAND"], found[label]) for label in ALIKE])
    return Claim(
        claim="within the same time SSB-BR, BKT-BR and ATS-BR can perform better than RAND; ours: by how many percent "
        "their loss at their end is below RAND's at that time, mean of three",
        where="6, conclusion 2",
        paper="better",
        ours=falls.mean(axis=0).tolist(),
        unit="%",
        holds=extent(whole=falls.mean(axis=1).min() > 0.0, part=falls.mean() > 0.0),
        why=f"Means over seeds: {_means(falls)} % with {', '.join(ALIKE)}. This is speed: in the same time they take "
        "more epochs.",
    )


def ahead_in_time(random: Outcome, other: Outcome) -> NDArray[np.float64]:
    """By what share the loss of one run is below another's when the shorter of the two ends [seeds]."""
    end = np.minimum(random.seconds.sum(axis=1), other.seconds.sum(axis=1))
    return 1.0 - other.loss_at(end) / random.loss_at(end)


def _ahead_of_random_claim(found: Outcomes) -> Claim:
    ours = 100 * reduction(found["RAND"], found["SSB-DBS-BR"])
    before, after = (found[label].steps.sum(axis=1).mean() for label in ("RAND", "SSB-DBS-BR"))
    return Claim(
        claim="SSB-DBS-BR surpasses RAND in as many epochs; ours: by how many percent its VL_3 is below RAND's",
        where="6, conclusion 3",
        paper=f"{printed_reduction('RAND', 'SSB-DBS-BR'):.2f} %",
        ours=ours.tolist(),
        effect=printed_reduction("RAND", "SSB-DBS-BR"),
        unit="%",
        holds=extent(whole=ours.min() > 0.0, part=ours.mean() > 0.0),
        why=f"It is below under {np.sum(ours > 0.0)} of {len(ours)} seeds, after {after:.0f} steps where RAND takes "
        f"{before:.0f}.",
    )


def _part_claim(found: Outcomes, part: Part, conclusion: str, text: str, *, every: bool) -> Claim:
    """Of a part of table 4: the first fall is the largest and above 0 under each seed; all means are where `every`."""
    falls, printed = _reductions(found, part.pairs), [printed_reduction(*pair) for pair in part.pairs]
    means = falls.mean(axis=1)
    before, after = part.pairs[0]
    return Claim(
        claim=f"{text}; ours: by how many percent from {before} to {after}",
        where=f"6, conclusion {conclusion}; table 4",
        paper=f"{printed[0]:.2f} %",
        ours=falls[0].tolist(),
        effect=printed[0],
        unit="%",
        holds=extent(
            whole=falls[0].min() > 0.0 and means.argmax() == 0 and (means.min() > 0.0 or not every),
            part=means[0] > 0.0,
        ),
        why=f"Means over seeds: {_listing(means)} % ({', '.join(map(' to '.join, part.pairs))}; the paper: "
        f"{_listing(printed)}).",
    )


def _reductions(found: Outcomes, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """By how many percent VL_3 falls from the one strategy of each pair to the other [pairs, seeds]."""
    return 100 * np.stack([reduction(found[before], found[after]) for before, after in pairs])


def _means(values: NDArray[np.float64]) -> str:
    """The mean over the seeds of each row of `values` [strategies, seeds]."""
    return _listing(values.mean(axis=1))


def _listing(values: Sequence[float] | NDArray[np.float64], digits: int = 2) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)

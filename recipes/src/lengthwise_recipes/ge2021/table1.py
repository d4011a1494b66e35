"""The paper's numbers and ours: Ge et al. 2021, table 1, the padding of table 2 and the batch counts of section 4.

    lengthwise reproduce ge2021-table1 --lengths ljspeech_lengths.csv:frames_12p5ms

The paper splits LJSpeech's 13,100 clips at random into 10,480 for training and 2,620 for validation. Its choice of
clips is unknown, so each seed draws another one.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes.claims import NONE, PART, WHOLE, extent

CLIPS = 13_100
TRAINING_CLIPS = 10_480
MEAN_FRAMES = 525.8  # of LJSpeech's clips
BATCH_SIZE = 16

# strategy -> (batches, ZPR in percent, ABL in frames), as printed; None if the paper prints none.
FIXED = {
    "random": (655, 32.02, 773.82),
    "sorted": (655, 0.16, 526.43),
    "semi-sorted:0.1": (655, 6.22, 556.22),
    "bucketed:1024": (655, 6.10, 553.40),
    "alternated:58": (655, 6.08, 552.48),
}
DYNAMIC = {
    "random": (606, None, None),
    "semi-sorted:0.1": (449, 6.62, 557.68),
    "sorted": (419, 0.47, 527.15),
}

PRINTED_RULE = "printed rule"  # dynamic sizes by the rule that the paper prints

# Their names in table 2, with batches in random order (BR).
STRATEGIES = {
    "RAND": "random",
    "SB-BR": "sorted",
    "SSB-BR": "semi-sorted:0.1",
    "BKT-BR": "bucketed:1024",
    "ATS-BR": "alternated:58",
}

_WEIGHTED = ("batches", "weighted_zero_padding_rate", "weighted_average_batch_length")

# A number out of the range of our seeds holds partly if our mean differs by no more than this. The tolerances are about
# the distance of single seeds from their mean for RAND, where it is largest.
TOLERANCES = {"batches": 0.02, "zpr": 0.5, "abl": 2.0}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One number of the paper, and ours.

    Attributes:
        sizes: "fixed" at 16, "dynamic" from 16 by the rule closest to the paper's counts, or `PRINTED_RULE`.
        quantity: "batches", "zpr" in percent, or "abl" in frames.
        paper: The printed number.
        mean, least, greatest: Our numbers over the seeds.
        values: Our number under each seed.
    """

    strategy: str
    sizes: str
    quantity: str
    paper: float
    mean: float
    least: float
    greatest: float
    values: tuple[float, ...]

    @property
    def holds(self) -> str:
        """The part that holds, one of `HOLDS`.

        Plans have no noise, so the whole holds only if the paper's number lies in the range of ours, to the two
        digits printed; a part holds if our mean is within `TOLERANCES` of it.
        """
        tolerance = TOLERANCES[self.quantity] * (self.paper if self.quantity == "batches" else 1)
        in_range = round(self.least, 2) <= self.paper <= round(self.greatest, 2)
        return extent(whole=in_range, part=abs(self.mean - self.paper) <= tolerance)


def read_row(fields: Mapping[str, Any]) -> Row:
    """Reads a row from JSON."""
    numbers: dict[str, Any] = {**fields, "values": tuple(fields["values"])}
    return Row(**numbers)


def table1(samples: Mapping[int, NDArray[np.int64]]) -> list[Row]:
    """Measures every number of the paper in one epoch for each seed.

    Args:
        samples: The lengths of each seed's training set, in 12.5 ms frames.
    """
    plain = lw.FixedSize(BATCH_SIZE)
    dynamic, hard = (lw.DynamicSize(BATCH_SIZE, rule=rule) for rule in ("paper", "hard"))
    rows: list[Row] = []
    for name, printed in FIXED.items():
        measured = [_measure(sample, parse_strategy(name, cut=plain), seed) for seed, sample in samples.items()]
        rows += _rows(name, "fixed", printed, measured, ("batches", "zero_padding_rate", "average_batch_length"))
    for name, printed in DYNAMIC.items():
        measured = [_measure(sample, parse_strategy(name, cut=dynamic), seed) for seed, sample in samples.items()]
        rows += _rows(name, "dynamic", printed, measured, _WEIGHTED)
    for name, (count, *_) in DYNAMIC.items():
        measured = [_measure(sample, parse_strategy(name, cut=hard), seed) for seed, sample in samples.items()]
        rows += _rows(name, PRINTED_RULE, (count, None, None), measured, _WEIGHTED)
    return rows


def can_be_ljspeech(lengths: NDArray[np.int64]) -> bool:
    """Returns True if lengths can be LJSpeech's in 12.5 ms frames, at least the paper's training clips.

    Other lengths are not comparable with the paper. The mean may be 1 % off, since ways to round frames differ.
    """
    count_fits = TRAINING_CLIPS <= len(lengths) <= CLIPS
    return count_fits and abs(float(lengths.mean()) - MEAN_FRAMES) <= 0.01 * MEAN_FRAMES


def tally(rows: Sequence[Row]) -> str:
    """Returns sentences with the numbers reproduced, those that hold partly, and the counts by the printed rule.

    >>> tally([]).partition(".")[0]
    'Of 0 numbers of the paper 0 are reproduced: they lie in the range of ours'
    """
    counts, printed = (Counter(row.holds for row in rows if (row.sizes == PRINTED_RULE) == by) for by in (False, True))
    counted = sum((row.sizes, row.quantity) == ("fixed", "batches") for row in rows)
    share, points, frames = (TOLERANCES[quantity] for quantity in ("batches", "zpr", "abl"))
    return (
        f"Of {counts.total()} numbers of the paper {counts[WHOLE]} are reproduced: they lie in the range of ours. For "
        f"{counted} counts of batches of a fixed size this is arithmetic. {counts[PART]} hold partly: our mean is "
        f"within {100 * share:g} % of the batches, {points:g} points of ZPR, {frames:g} frames of ABL. {counts[NONE]} "
        "are not reproduced. We chose the rule of dynamic sizes: it comes closer to the paper's counts than the "
        f"printed rule. By the printed rule {printed[WHOLE]} of {printed.total()} counts are reproduced."
    )


def _measure(lengths: NDArray[np.int64], batching: lw.Batching, seed: int) -> dict[str, Any]:
    return lw.measure(lw.make_plan(lengths, batching, seed=seed), lengths).as_dict()


def _rows(
    strategy: str, sizes: str, printed: tuple[float | None, ...], measured: list[dict[str, Any]], names: tuple[str, ...]
) -> list[Row]:
    """Returns one row for each printed number."""
    rows = []
    for quantity, paper, name in zip(TOLERANCES, printed, names, strict=True):
        if paper is None:
            continue
        ours = np.array([measures[name] for measures in measured]) * (100 if quantity == "zpr" else 1)
        row = Row(
            strategy=strategy,
            sizes=sizes,
            quantity=quantity,
            paper=paper,
            mean=float(ours.mean()),
            least=float(ours.min()),
            greatest=float(ours.max()),
            values=tuple(ours.tolist()),
        )
        rows.append(row)
    return rows

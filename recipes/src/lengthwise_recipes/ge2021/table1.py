"""The paper's numbers and ours: Ge et al. 2021, table 1, the padding of table 2 and the batch counts of section 4.

    lengthwise reproduce ge2021-table1 --lengths ljspeech_lengths.csv:frames_12p5ms

The paper splits LJSpeech's 13,100 clips at random into 10,480 for training and 2,620 for validation. Its choice of
clips is unknown, so each seed draws another one.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes.claims import NONE, PART, WHOLE, extent
from lengthwise_recipes.ge2021.printed import COUNTS, FIXED_COUNT, TABLE_2

CLIPS = 13_100
TRAINING_CLIPS = 10_480
MEAN_FRAMES = 525.8  # of LJSpeech's clips
BATCH_SIZE = 16

PRINTED_RULE = "printed rule"  # dynamic sizes by the rule that the paper prints
UNITS = {"batches": "batches", "zpr": "ZPR, %", "abl": "ABL, frames"}

# The strategies by their names in table 2, with batches in random order (BR).
STRATEGIES = {
    "RAND": "random",
    "SB-BR": "sorted",
    "SSB-BR": "semi-sorted:0.1",
    "BKT-BR": "bucketed:1024",
    "ATS-BR": "alternated:58",
}

# strategy -> (batches, ZPR in percent, ABL in frames), as printed; None if the paper prints none.
FIXED = {strategy: (FIXED_COUNT, TABLE_2[label].zpr, TABLE_2[label].abl) for label, strategy in STRATEGIES.items()}
DYNAMIC = {
    "random": (COUNTS["RAND"], None, None),
    "semi-sorted:0.1": (COUNTS["SSB"], TABLE_2["SSB-DBS"].zpr, TABLE_2["SSB-DBS"].abl),
    "sorted": (COUNTS["SB"], TABLE_2["SB-DBS"].zpr, TABLE_2["SB-DBS"].abl),
}

_PLAIN = ("batches", "zero_padding_rate", "average_batch_length")
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
    """Measures every number of the paper in one epoch for each seed; `samples` has its lengths in 12.5 ms frames."""
    cuts = {
        "fixed": lw.FixedSize(BATCH_SIZE),
        "dynamic": lw.DynamicSize(BATCH_SIZE, rule="paper"),
        PRINTED_RULE: lw.DynamicSize(BATCH_SIZE, rule="hard"),
    }
    counts = {strategy: (count, None, None) for strategy, (count, *_) in DYNAMIC.items()}
    return [
        row
        for (sizes, cut), printed in zip(cuts.items(), (FIXED, DYNAMIC, counts), strict=True)
        for strategy, numbers in printed.items()
        for row in _rows(samples, strategy, sizes, cut, numbers)
    ]


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


def _rows(
    samples: Mapping[int, NDArray[np.int64]],
    strategy: str,
    sizes: str,
    cut: lw.FixedSize | lw.DynamicSize,
    printed: tuple[float | None, ...],
) -> Iterator[Row]:
    """Yields one row for each printed number."""
    batching = parse_strategy(strategy, cut=cut)
    measures = [lw.measure(lw.make_plan(sample, batching, seed=seed), sample) for seed, sample in samples.items()]
    for quantity, paper, name in zip(TOLERANCES, printed, _PLAIN if sizes == "fixed" else _WEIGHTED, strict=True):
        if paper is not None:
            ours = np.array([getattr(measure, name) for measure in measures]) * (100 if quantity == "zpr" else 1)
            yield Row(
                strategy=strategy,
                sizes=sizes,
                quantity=quantity,
                paper=paper,
                mean=float(ours.mean()),
                least=float(ours.min()),
                greatest=float(ours.max()),
                values=tuple(ours.tolist()),
            )

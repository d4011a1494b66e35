"""The paper's numbers and ours: Ge et al. 2021, table 1, the padding of table 2 and the batch counts of section 4.

    lengthwise reproduce ge2021-table1 --lengths ljspeech_lengths.csv:frames_12p5ms

The paper splits LJSpeech's 13,100 clips at random into 10,480 for training and 2,620 for validation. Its choice of
clips is unknown, so each seed draws another one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes.ge2021.printed import COUNTS, FIXED_COUNT, TABLE_2

CLIPS = 13_100
TRAINING_CLIPS = 10_480
MEAN_FRAMES = 525.8  # of LJSpeech's clips
BATCH_SIZE = 16

PRINTED_RULE = "printed rule"  # dynamic sizes by the rule that the paper prints
IN_RANGE = {True: "yes", False: "no"}
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
    def in_range(self) -> bool:
        """True if the paper's number lies in the range of ours, to the two digits printed."""
        return round(self.least, 2) <= self.paper <= round(self.greatest, 2)


@dataclasses.dataclass(frozen=True, slots=True)
class LongToShort:
    """An order without boundaries from its end: the authors' code sorts from long to short."""

    order: lw.Order

    def __call__(self, sizes: NDArray[np.float64], key: Any) -> lw.Ordered:
        """Returns the sequences of the order, the last one first.

        >>> batching = lw.Batching(cut=lw.FixedSize(2), order=LongToShort(lw.Sorted()), arrange=lw.InOrder())
        >>> lw.make_plan([5, 9, 2, 4], batching).sequences
        array([1, 0, 3, 2])
        """
        ordered = self.order(sizes, key)
        return ordered._replace(sequences=ordered.sequences[::-1].copy())


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


def parted_share(sample: NDArray[np.int64], strategy: str, *, seed: int) -> float:
    """Returns the share of the pairs in a batch of the first epoch that no batch of the next one holds."""
    batching = parse_strategy(strategy, cut=lw.FixedSize(BATCH_SIZE))
    first, second = (_pairs(lw.make_plan(sample, batching, seed=seed, epoch=epoch)) for epoch in (0, 1))
    return 1.0 - len(np.intersect1d(first, second)) / len(first)


def _pairs(plan: lw.Plan) -> NDArray[np.int64]:
    """Returns a number for each pair of sequences that share a batch."""
    batches = (np.sort(batch) for batch in plan.batches(rank=0))
    return np.concatenate([(batch[:, None] * plan.count + batch)[np.triu_indices(len(batch), 1)] for batch in batches])


def can_be_ljspeech(lengths: NDArray[np.int64]) -> bool:
    """Returns True if lengths can be LJSpeech's in 12.5 ms frames, at least the paper's training clips.

    Other lengths are not comparable with the paper. The mean may be 1 % off, since ways to round frames differ.
    """
    count_fits = TRAINING_CLIPS <= len(lengths) <= CLIPS
    return count_fits and abs(float(lengths.mean()) - MEAN_FRAMES) <= 0.01 * MEAN_FRAMES


def tally(rows: Sequence[Row]) -> str:
    """Returns sentences with the numbers in our range, and those by the printed rule.

    >>> tally([]).partition(".")[0]
    'Of 0 numbers of the paper 0 lie in the range of ours'
    """
    ours, printed = ([row.in_range for row in rows if (row.sizes == PRINTED_RULE) == by] for by in (False, True))
    counted = sum((row.sizes, row.quantity) == ("fixed", "batches") for row in rows)
    return (
        f"Of {len(ours)} numbers of the paper {sum(ours)} lie in the range of ours. {counted} of them, left out "
        "here, count batches of a fixed size. Dynamic batches are cut from long to short, as in the "
        "authors' code. We chose the rule that closes them: it comes closer to the paper's counts than the printed "
        f"rule, by which {sum(printed)} of {len(printed)} counts are in the range."
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
    if sizes != "fixed":
        batching = dataclasses.replace(batching, order=LongToShort(batching.order))
    measures = [lw.measure(lw.make_plan(sample, batching, seed=seed), sample) for seed, sample in samples.items()]
    for quantity, paper, name in zip(UNITS, printed, _PLAIN if sizes == "fixed" else _WEIGHTED, strict=True):
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

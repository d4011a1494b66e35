"""The batchings of Ge et al. 2021, table 2, and two of ours, with knobs that suit the lengths at hand.

The paper takes semi-sorted batching with a local randomization factor (LRF) of 0.1, and the bucket size and the number
of bins whose zero padding rate (ZPR) is "smaller but closest" to that: 1,024 and 58 on LJSpeech. Here both are found in
the same way, among bucket sizes that are multiples of the batch size and among all numbers of bins. Max-entropy
batching (ME), ours, is asked for the padding that comes closest to what semi-sorted batching pads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise._checks import check_whole

RANDOMIZATION_FACTOR = 0.1  # LRF, table 1
PAPER_KNOBS = {"semi-sorted": RANDOMIZATION_FACTOR, "bucketed": 1024, "alternated": 58}
EPOCHS = 4  # plans that a padding rate is the mean of
ASKED = np.linspace(0.5, 1.5, 5)  # what is asked of max-entropy batching, in what semi-sorted batching pads
FACTORS = 100  # values of the LRF up to 1, of which its largest step is told


class Choice(NamedTuple):
    """A row of table 2: an order, whether batch sizes are dynamic (DBS) and whether batches are shuffled (BR)."""

    order: str
    dynamic: bool = False
    shuffled: bool = True


CHOICES = {
    "RAND": Choice("random"),
    "SB-BR": Choice("sorted"),
    "SSB-BR": Choice("semi-sorted"),
    "BKT-BR": Choice("bucketed"),
    "ATS-BR": Choice("alternated"),
    "SB": Choice("sorted", shuffled=False),
    "SSB": Choice("semi-sorted", shuffled=False),
    "SB-DBS": Choice("sorted", dynamic=True, shuffled=False),
    "SSB-DBS": Choice("semi-sorted", dynamic=True, shuffled=False),
    "SSB-DBS-BR": Choice("semi-sorted", dynamic=True),
    "ME-BR": Choice("max-entropy"),
    "ME-DBS-BR": Choice("max-entropy", dynamic=True),
}
# Not trained by the paper nor here; section 4 counts its batches.
COUNTED = {"RAND-DBS": Choice("random", dynamic=True)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Knobs:
    """The value of each knob, and how far its ZPR moves from one value to the next at most.

    Attributes:
        bucket_size: Sequences in a bucket.
        bins: Of alternated sorting.
        padding: Asked of max-entropy batching, a share.
        dynamic_padding: The same where batch sizes are dynamic.
        largest_steps: By order, the largest change of the ZPR between neighbouring values, a share: `FACTORS` of
            the LRF up to 1, and all bucket sizes and numbers of bins.
    """

    bucket_size: int
    bins: int
    padding: float
    dynamic_padding: float
    largest_steps: Mapping[str, float]

    def of(self, choice: Choice) -> float | None:
        """The value for a row of table 2; None where its order has no knob."""
        values = {"semi-sorted": RANDOMIZATION_FACTOR, "bucketed": self.bucket_size, "alternated": self.bins}
        padding = self.dynamic_padding if choice.dynamic else self.padding
        return (values | {"max-entropy": padding}).get(choice.order)


def find_knobs(lengths: NDArray[np.int64], batch_size: int) -> Knobs:
    """Finds the knobs for these lengths, each rate the mean of `EPOCHS` plans of seed 0.

    Args:
        lengths: [n], of the training set.
        batch_size: B0, the base batch size.

    Raises:
        ValueError: There are not two batches of sequences.

    References:
        Ge et al. 2021, section 3 and figure 2.
    """
    remedy = "Give more sequences, or a smaller batch size."
    count = check_whole("lengths", len(lengths), minimum=2 * batch_size, remedy=remedy)
    fixed = lw.FixedSize(batch_size)
    values: dict[str, Sequence[float]] = {
        "semi-sorted": [place / FACTORS for place in range(1, FACTORS + 1)],
        "bucketed": range(batch_size, count, batch_size),
        "alternated": range(1, -(-count // batch_size) + 1),
    }
    curves = {name: padding_rates(lengths, name, taken, cut=fixed) for name, taken in values.items()}
    target = padding_rates(lengths, "semi-sorted", [RANDOMIZATION_FACTOR], cut=fixed)[0]
    return Knobs(
        bucket_size=int(closest(values["bucketed"], curves["bucketed"], target)),
        bins=int(closest(values["alternated"], curves["alternated"], target)),
        padding=_padding_like_semi_sorted(lengths, fixed),
        dynamic_padding=_padding_like_semi_sorted(lengths, cut_of(Choice("max-entropy", dynamic=True), batch_size)),
        largest_steps={name: float(np.abs(np.diff(rates)).max(initial=0.0)) for name, rates in curves.items()},
    )


def batchings(knobs: Knobs, batch_size: int) -> dict[str, lw.Batching]:
    """The batching of each row of table 2, and of ours."""
    return {label: batching_of(choice, knobs, batch_size) for label, choice in CHOICES.items()}


def batching_of(choice: Choice, knobs: Knobs, batch_size: int) -> lw.Batching:
    return lw.strategy(named(choice, knobs), cut=cut_of(choice, batch_size))


def named(choice: Choice, knobs: Knobs) -> str:
    """The strategy as the command line writes it.

    >>> named(Choice("sorted", shuffled=False), Knobs(bucket_size=64, bins=4, padding=0.1, dynamic_padding=0.1,
    ...     largest_steps={}))
    'sorted,arrange=in-order'
    """
    value = knobs.of(choice)
    return choice.order + ("" if value is None else f":{value:g}") + ("" if choice.shuffled else ",arrange=in-order")


def cut_of(choice: Choice, batch_size: int) -> lw.FixedSize | lw.DynamicSize:
    """Batches of one size, or by the rule that gives the paper's own counts of batches, which overshoots the base."""
    return lw.DynamicSize(batch_size, rule="paper") if choice.dynamic else lw.FixedSize(batch_size)


def measured(lengths: NDArray[np.int64], batching: lw.Batching, *, seeds: int) -> dict[str, NDArray[np.float64]]:
    """What the plans of the first `EPOCHS` epochs come to, means under each seed, each [seeds].

    Returns:
        "batches"; "zpr", a share, and "abl", in frames, both weighted by the batch sizes where these are dynamic as in
        section 4; "padding_share"; and "mixing" of the epochs together.
    """
    plans = [
        [lw.make_plan(lengths, batching, seed=seed, epoch=epoch + 1) for epoch in range(EPOCHS)]
        for seed in range(seeds)
    ]
    weighted = "weighted_" if isinstance(batching.cut, lw.DynamicSize) else ""
    fields = {
        "batches": "batches",
        "zpr": f"{weighted}zero_padding_rate",
        "abl": f"{weighted}average_batch_length",
        "padding_share": "padding_share",
    }
    measures = [[lw.measure(plan, lengths) for plan in run] for run in plans]
    means = {
        name: np.array([[getattr(each, field) for each in run] for run in measures], float).mean(axis=1)
        for name, field in fields.items()
    }
    return means | {"mixing": np.array([lw.mixing(run, lengths) for run in plans])}


def padding_rates(
    lengths: NDArray[np.int64], order: str, values: Sequence[float], *, cut: lw.Cut, of: str = "zero_padding_rate"
) -> NDArray[np.float64]:
    """What an order pads at each value of its knob, the mean of `EPOCHS` plans of seed 0: [values].

    Args:
        of: The measure: any share that `lw.measure` gives.
    """
    named_batchings = [lw.strategy(f"{order}:{value:g}", cut=cut) for value in values]
    plans = [[lw.make_plan(lengths, each, epoch=epoch) for epoch in range(EPOCHS)] for each in named_batchings]
    return np.array([[getattr(lw.measure(plan, lengths), of) for plan in run] for run in plans]).mean(axis=1)


def closest(values: Sequence[float], rates: NDArray[np.float64], target: float) -> float:
    """The value whose rate is closest to the target and not above it; where all are above it, closest of all.

    >>> closest([16, 32, 48], np.array([0.01, 0.05, 0.08]), 0.07)
    32
    """
    allowed = rates <= target
    misses = np.where(allowed | ~allowed.any(), np.abs(rates - target), np.inf)
    return values[int(misses.argmin())]


def _padding_like_semi_sorted(lengths: NDArray[np.int64], cut: lw.Cut) -> float:
    """What to ask of max-entropy batching for the padding share of semi-sorted batching, on a line through `ASKED`."""
    target = padding_rates(lengths, "semi-sorted", [RANDOMIZATION_FACTOR], cut=cut, of="padding_share")[0]
    asked = target * ASKED
    rates = padding_rates(lengths, "max-entropy", asked.tolist(), cut=cut, of="padding_share")
    return float(f"{np.interp(target, np.maximum.accumulate(rates), asked):.4g}")

"""The batchings of Ge et al. 2021, table 2, and two of ours, with knobs chosen for the lengths.

The paper takes semi-sorted batching with a local randomization factor (LRF) of 0.1. Its bucket size and number of bins
have the zero padding rate (ZPR) that is "smaller but closest" to that: 1,024 and 58 on LJSpeech. We choose both in the
same way, among all multiples of the batch size and all numbers of bins. Max-entropy batching (ME), ours, gets the
scale of noise whose padding share is closest to that of semi-sorted batching.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import check_whole, value_error
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes.knobs import fit_knob, padding_share

RANDOMIZATION_FACTOR = 0.1  # LRF, table 1
PAPER_KNOBS = {"semi-sorted": RANDOMIZATION_FACTOR, "bucketed": 1024, "alternated": 58}
EPOCHS = 4  # a padding rate is the mean over the plans of these
FACTORS = 100  # values of the LRF up to 1, among which we look for the largest step of the ZPR


class Choice(NamedTuple):
    """A row of table 2: an order, with or without dynamic batch sizes (DBS) and shuffled batches (BR)."""

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
# Neither the paper nor we train it, but section 4 counts its batches.
COUNTED = {"RAND-DBS": Choice("random", dynamic=True)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Knobs:
    """The value of each knob, and the largest step of its ZPR.

    Attributes:
        bucket_size: Sequences in a bucket.
        bins: Number of bins of alternated sorting.
        scale: Mean of the noise of max-entropy batching, in frames.
        dynamic_scale: The same for dynamic batch sizes.
        largest_steps: By order, the largest change of the ZPR between neighbouring values, a share. The values are
            `FACTORS` of the LRF up to 1, and all bucket sizes and numbers of bins.
    """

    bucket_size: int
    bins: int
    scale: float
    dynamic_scale: float
    largest_steps: Mapping[str, float]

    def name_order(self, order: str, *, dynamic: bool) -> str:
        """Returns an order with its knob, as on the command line."""
        scale = self.dynamic_scale if dynamic else self.scale
        values = {
            "semi-sorted": f":{RANDOMIZATION_FACTOR}",
            "bucketed": f":{self.bucket_size}",
            "alternated": f":{self.bins}",
            "max-entropy": f",scale={scale:g}",
        }
        return order + values.get(order, "")


def find_knobs(lengths: NDArray[np.int64], batch_size: int) -> Knobs:
    """Finds the knobs for these lengths; every rate is the mean of `EPOCHS` plans of seed 0.

    Unlike in the paper, there are at least two batches in a bucket and two bins, since less would be sorting.

    Args:
        lengths: Lengths of the training set, [n].
        batch_size: B0, the base batch size.

    Raises:
        ValueError: There are at most two batches of sequences, or all have one length.

    References:
        Ge et al. 2021, section 3 and figure 2.
    """
    remedy = "Give more sequences, or a smaller batch size."
    count = check_whole("lengths", len(lengths), minimum=2 * batch_size + 1, remedy=remedy)
    if lengths.min() == lengths.max():
        remedy = "Where nothing is padded, no batching saves anything."
        raise value_error("lengths", "different from each other", int(lengths.max()), remedy)
    fixed = lw.FixedSize(batch_size)
    values: dict[str, Sequence[float]] = {
        "semi-sorted": [place / FACTORS for place in range(1, FACTORS + 1)],
        "bucketed": range(2 * batch_size, count, batch_size),
        "alternated": range(2, -(-count // batch_size) + 1),
    }
    curves = {name: padding_rates(lengths, name, knob_values, cut=fixed) for name, knob_values in values.items()}
    target = padding_rates(lengths, "semi-sorted", [RANDOMIZATION_FACTOR], cut=fixed)[0]
    return Knobs(
        bucket_size=int(closest(values["bucketed"], curves["bucketed"], target)),
        bins=int(closest(values["alternated"], curves["alternated"], target)),
        scale=_scale_like_semi_sorted(lengths, fixed),
        dynamic_scale=_scale_like_semi_sorted(lengths, lw.DynamicSize(batch_size, rule="paper")),
        largest_steps={name: float(np.abs(np.diff(rates)).max(initial=0.0)) for name, rates in curves.items()},
    )


def batchings(knobs: Knobs, batch_size: int) -> dict[str, lw.Batching]:
    """Returns the batching of each row of table 2, and of ours."""
    return {label: batching_of(choice, knobs, batch_size) for label, choice in CHOICES.items()}


def batching_of(choice: Choice, knobs: Knobs, batch_size: int) -> lw.Batching:
    return parse_strategy(name_strategy(choice, knobs), cut=cut_of(choice, batch_size))


def name_strategy(choice: Choice, knobs: Knobs) -> str:
    """Returns the strategy as on the command line.

    >>> knobs = Knobs(bucket_size=64, bins=4, scale=9.5, dynamic_scale=8.0, largest_steps={})
    >>> name_strategy(Choice("max-entropy", dynamic=True, shuffled=False), knobs)
    'max-entropy,scale=8,arrange=in-order'
    """
    return knobs.name_order(choice.order, dynamic=choice.dynamic) + ("" if choice.shuffled else ",arrange=in-order")


def cut_of(choice: Choice, batch_size: int) -> lw.FixedSize | lw.DynamicSize:
    """Returns a fixed size, or the dynamic rule closest to the paper's counts of batches, which may exceed B0."""
    return lw.DynamicSize(batch_size, rule="paper") if choice.dynamic else lw.FixedSize(batch_size)


def measure_batching(
    lengths: NDArray[np.int64], batching: lw.Batching, *, seeds: int
) -> dict[str, NDArray[np.float64]]:
    """Measures the plans of the first `EPOCHS` epochs.

    Returns:
        Means under each seed, [seeds]: "batches", "zpr" (a share), "abl" (in frames), "padding_share", and "mixing" of
        the epochs together. For dynamic sizes ZPR and ABL are weighted by batch size, as in section 4.
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
        name: np.array([[getattr(measure, field) for measure in run] for run in measures], float).mean(axis=1)
        for name, field in fields.items()
    }
    return means | {"mixing": np.array([lw.measure(run, lengths).mixing for run in plans])}


def padding_rates(
    lengths: NDArray[np.int64], order: str, values: Sequence[float], *, cut: lw.FixedSize
) -> NDArray[np.float64]:
    """Returns the ZPR of an order at each value of its knob, [values]: means of `EPOCHS` plans of seed 0."""
    candidates = [parse_strategy(f"{order}:{value}", cut=cut) for value in values]
    plans = [[lw.make_plan(lengths, batching, epoch=epoch) for epoch in range(EPOCHS)] for batching in candidates]
    return np.array([[lw.measure(plan, lengths).zero_padding_rate for plan in run] for run in plans]).mean(axis=1)


def closest(values: Sequence[float], rates: NDArray[np.float64], target: float) -> float:
    """Returns the value whose rate is closest to the target and not above it, or closest if all are above.

    >>> closest([16, 32, 48], np.array([0.01, 0.05, 0.08]), 0.07)
    32
    """
    allowed = rates <= target
    misses = np.where(allowed | ~allowed.any(), np.abs(rates - target), np.inf)
    return values[int(misses.argmin())]


def _scale_like_semi_sorted(lengths: NDArray[np.int64], cut: lw.FixedSize | lw.DynamicSize) -> float:
    """Returns the scale of max-entropy batching whose padding share is closest to that of semi-sorted batching."""
    target = padding_share(lengths, parse_strategy(f"semi-sorted:{RANDOMIZATION_FACTOR}", cut=cut))
    return fit_knob(lengths, "max-entropy", target, cut=cut).knob

"""The batchings of Ge et al. 2021, table 2, and two of ours, with knobs chosen for the lengths.

The paper takes semi-sorted batching with a local randomization factor (LRF) of 0.1. Its bucket size and number of bins
have the zero padding rate (ZPR) that is "smaller but closest" to that: 1,024 and 58 on LJSpeech. We choose both in the
same way, among all multiples of the batch size and all numbers of bins. Max-entropy batching (ME), ours, is asked for
the padding share of semi-sorted batching.
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
from lengthwise_recipes.knobs import padding_share
from lengthwise_recipes.mixing import measure_mixing

RANDOMIZATION_FACTOR = 0.1  # LRF, table 1
PAPER_KNOBS = {"semi-sorted": RANDOMIZATION_FACTOR, "bucketed": 1024, "alternated": 58}
EPOCHS = 4  # a padding rate is the mean over the plans of these
FACTORS = 100  # values of the LRF up to 1, on which its curve of ZPR is measured


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
    """The value of each knob, and the curves of the paper's three.

    Attributes:
        bucket_size: Sequences in a bucket.
        bins: Number of bins of alternated sorting.
        padding: The padding share that max-entropy batching is asked for.
        dynamic_padding: The same for dynamic batch sizes.
        rates: By order, the mean ZPR at the value of its knob.
        falls: By order, the most that the ZPR falls while the knob rises, for each training set.
    """

    bucket_size: int
    bins: int
    padding: float
    dynamic_padding: float
    rates: Mapping[str, float]
    falls: Mapping[str, Sequence[float]]


def find_knobs(sets: Sequence[NDArray[np.int64]], batch_size: int) -> Knobs:
    """Finds the knobs for the mean ZPR of one plan of each training set: of epoch 0 for the first, of 1 for the next.

    Unlike in the paper, there are at least two batches in a bucket and two bins, since less would be sorting.

    Args:
        sets: Lengths of training sets of one size, each [n]. For a single training set, the same lengths several times.
        batch_size: B0, the base batch size.

    Raises:
        ValueError: There are at most two batches of sequences, or all have one length.

    References:
        Ge et al. 2021, section 3 and figure 2.
    """
    lengths = sets[0]
    remedy = "Give more sequences, or a smaller batch size."
    count = check_whole("lengths", len(lengths), minimum=2 * batch_size + 1, remedy=remedy)
    if lengths.min() == lengths.max():
        remedy = "Where nothing is padded, no batching saves anything."
        raise value_error("lengths", "different from each other", int(lengths.max()), remedy)
    fixed, dynamic = lw.FixedSize(batch_size), lw.DynamicSize(batch_size, rule="paper")
    values: dict[str, Sequence[float]] = {
        "semi-sorted": [place / FACTORS for place in range(1, FACTORS + 1)],
        "bucketed": range(2 * batch_size, count, batch_size),
        "alternated": range(2, -(-count // batch_size) + 1),
    }
    curves = {order: padding_rates(sets, order, knobs, cut=fixed) for order, knobs in values.items()}
    means = {order: rates.mean(axis=1) for order, rates in curves.items()}
    target = float(means["semi-sorted"][values["semi-sorted"].index(RANDOMIZATION_FACTOR)])
    places = {order: closest(rates, target) for order, rates in means.items()}
    semi_sorted = f"semi-sorted:{RANDOMIZATION_FACTOR}"
    padding, dynamic_padding = (
        padding_share(lengths, parse_strategy(semi_sorted, cut=cut)) for cut in (fixed, dynamic)
    )
    return Knobs(
        bucket_size=int(values["bucketed"][places["bucketed"]]),
        bins=int(values["alternated"][places["alternated"]]),
        padding=round(padding, 4),
        dynamic_padding=round(dynamic_padding, 4),
        rates={order: float(means[order][place]) for order, place in places.items()},
        falls=largest_falls(curves),
    )


def batchings(knobs: Knobs, batch_size: int) -> dict[str, lw.Batching]:
    """Returns the batching of each row of table 2, and of ours."""
    return {label: batching_of(choice, knobs, batch_size) for label, choice in CHOICES.items()}


def batching_of(choice: Choice, knobs: Knobs, batch_size: int) -> lw.Batching:
    # Of the two rules of dynamic sizes this is closer to the paper's counts of batches; a batch may exceed B0.
    cut = lw.DynamicSize(batch_size, rule="paper") if choice.dynamic else lw.FixedSize(batch_size)
    return parse_strategy(name_strategy(choice, knobs), cut=cut)


def name_strategy(choice: Choice, knobs: Knobs) -> str:
    """Returns the strategy as on the command line.

    >>> knobs = Knobs(bucket_size=64, bins=4, padding=0.06, dynamic_padding=0.07, rates={}, falls={})
    >>> name_strategy(Choice("max-entropy", dynamic=True, shuffled=False), knobs)
    'max-entropy:0.07,arrange=in-order'
    """
    values = {
        "semi-sorted": RANDOMIZATION_FACTOR,
        "bucketed": knobs.bucket_size,
        "alternated": knobs.bins,
        "max-entropy": knobs.dynamic_padding if choice.dynamic else knobs.padding,
    }
    value = f":{values[choice.order]}" if choice.order in values else ""
    return choice.order + value + ("" if choice.shuffled else ",arrange=in-order")


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
    return means | {"mixing": np.array([measure_mixing(run, lengths) for run in plans])}


def padding_rates(
    sets: Sequence[NDArray[np.int64]], order: str, values: Sequence[float], *, cut: lw.FixedSize
) -> NDArray[np.float64]:
    """Returns the ZPR of an order at each value of its knob in a plan of each training set, [values, sets]."""
    candidates = [parse_strategy(f"{order}:{value}", cut=cut) for value in values]
    return np.array(
        [
            [
                lw.measure(lw.make_plan(lengths, batching, epoch=epoch), lengths).zero_padding_rate
                for epoch, lengths in enumerate(sets)
            ]
            for batching in candidates
        ]
    )


def closest(rates: NDArray[np.float64], target: float) -> int:
    """Returns the place of the rate that is closest to the target and not above it, or closest if all are above.

    >>> closest(np.array([0.01, 0.05, 0.08]), 0.07)
    1
    """
    allowed = rates <= target
    return int(np.where(allowed | ~allowed.any(), np.abs(rates - target), np.inf).argmin())


def largest_falls(curves: Mapping[str, NDArray[np.float64]]) -> dict[str, list[float]]:
    """Returns the most that each curve [values, sets] falls below an earlier value, within the range of all curves.

    >>> largest_falls({"a": np.array([[1.0], [2.0], [4.0]]), "b": np.array([[0.0], [3.0], [2.0], [6.0], [1.0]])})
    {'a': [0.0], 'b': [3.0]}
    """
    low = np.max([rates.min(axis=0) for rates in curves.values()], axis=0)
    high = np.min([rates.max(axis=0) for rates in curves.values()], axis=0)
    shared = {order: np.clip(rates, low, high) for order, rates in curves.items()}
    return {order: (np.maximum.accumulate(rates) - rates).max(axis=0).tolist() for order, rates in shared.items()}

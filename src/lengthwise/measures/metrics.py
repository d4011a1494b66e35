"""The worth of plans: padding, mixing, waiting and accounting. Reads plans, makes none.

lengths   [n] or [n, dims]   as the plans were made for; several dimensions count by their sum
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise.measures.epochs import Batches, Epochs, join, read_epochs
from lengthwise.measures.mixing import check_bins, fine_bins, mix_batches, mix_pairs, mix_steps
from lengthwise.planning.plan import Plan

_FILLING = 163_840  # sequences that fill 256 bins of mixing; short data need several epochs for them
MOST_EPOCHS = 32
# Measured over several epochs; counts and padding stay those of the first.
_OVER_EPOCHS = ("mixing", "pair_mixing", "step_mixing", "step_length_variance", "straggler_waste", "mixing_bins")


@dataclass(frozen=True, kw_only=True, slots=True)
class Measures:
    """The measures of one plan, or of several epochs as of one long one.

    Shares are 0..1, lengths in the unit of the lengths, costs in the unit of the budget. Counts are sums over epochs.
    `print` shows the few that most people need, in words.

    Attributes:
        sequences: Sequences (or chunks) that were to be planned.
        batches: Batches, each counted once an epoch.
        steps: Optimiser steps.
        epochs: Plans that were measured together.
        rows: Rows of all batches: as many as sequences, unless a cut packs several into a row.
        zero_padding_rate: ZPR, Ge et al. 2021, equation 1: the plain mean over batches of 1 - mean length / padded
            length.
        weighted_zero_padding_rate: The same, batches weighted by their size (section 4, for dynamic batch sizes).
        padding_share: The share of all computed frames that are padding: what the hardware pays.
        fill: The share that is not: how full batches are, or packed rows. Rows that a collate function adds do not
            count, for one fixed shape say.
        average_batch_length: ABL, the plain mean over batches of the padded length.
        weighted_average_batch_length: The same, batches weighted by their size.
        smallest_batch: Sequences in the smallest batch.
        mean_batch: Sequences in a batch on average.
        largest_batch: Sequences in the largest batch.
        largest_cost: What the costliest batch costs.
        mixing: exp(-I(X; T)), with X the length of a sequence and T the length its batch is padded to: 1 where a batch
            tells nothing about the lengths in it, near 0 where it tells everything. 1 of packed rows, which are all
            padded to one length: see `pair_mixing`.
        step_mixing: The same for steps; T is the mean padded length over the sequences of the step.
        mixing_bins: The equal-mass bins of both estimates. Mixing below about 1 / bins cannot be told from 0.
        pair_mixing: exp(-I) of the lengths of two sequences that share a row, or, where rows are not packed, a batch: 1
            where one tells nothing about the other. Sequences that are alone there do not count.
        step_length_correlation: The correlation of the mean lengths of successive steps of an epoch (lag 1); 0 for
            fewer than three steps.
        step_length_variance: How much the mean length of steps varies, beside random samples of as many sequences: 1 is
            as much, 0 not at all, 50 fifty times as much. 1 if each epoch is one step.
        straggler_waste: The share of rank time spent waiting for the costliest rank of each step.
        cost_spread: The standard deviation of what batches cost, as a share of the mean cost.
        dropped: Sequences in no batch of their epoch.
        repeated: Sequences that are taken more than once in their epoch; `loss_scales` scales all but the first by 0.
        over_max_cost: Batches that cost more than the cut allows.
    """

    sequences: int
    batches: int
    steps: int
    epochs: int
    rows: int
    zero_padding_rate: float
    weighted_zero_padding_rate: float
    padding_share: float
    fill: float
    average_batch_length: float
    weighted_average_batch_length: float
    smallest_batch: int
    mean_batch: float
    largest_batch: int
    largest_cost: float
    mixing: float
    step_mixing: float
    mixing_bins: int
    pair_mixing: float
    step_length_correlation: float
    step_length_variance: float
    straggler_waste: float
    cost_spread: float
    dropped: int
    repeated: int
    over_max_cost: int

    def __str__(self) -> str:
        """The measures that most people need, each with what it means; `repr` has all of them."""
        epochs = f" in {self.epochs} epochs" if self.epochs > 1 else ""
        smallest, largest = (f"{size:,}" for size in (self.smallest_batch, self.largest_batch))
        sizes = smallest if smallest == largest else f"{smallest} to {largest}"
        lines = [
            f"{self.sequences:,} sequences in {self.batches:,} batches of {sizes}, {self.steps:,} steps{epochs}",
            f"padding  {100 * self.padding_share:5.1f} %  of the computed frames",
        ]
        # Unpacked, each place of a batch is a row, and some rows may be filled up. Packed, rows hold several sequences.
        packed = self.rows < round(self.mean_batch * self.batches)
        if packed:
            # Packed rows are all padded to one length, which says nothing of the sequences in them.
            lines.append(f"mixing   {self.pair_mixing:5.2f}    of rows: 1 if a sequence tells nothing of its row")
        else:
            lines.append(f"mixing   {self.mixing:5.2f}    of batches: 1 as random ones, near 0 as sorted ones")
        if self.steps < self.batches:
            if not packed:
                lines.append(f"         {self.step_mixing:5.2f}    of steps, which the gradient sees")
            lines.append(f"waiting  {100 * self.straggler_waste:5.1f} %  of the time of all ranks")
        left = f"{self.dropped:,} sequences dropped, {self.repeated:,} repeated"
        return "\n".join([*lines, f"{left}; {self.over_max_cost:,} batches over the budget"])

    def as_dict(self) -> dict[str, Any]:
        """The measures by name, JSON-ready."""
        return asdict(self)


def measure(
    plans: Plan | Batches | Sequence[Plan],
    lengths: ArrayLike,
    *,
    bins: int | None = None,
    world_size: int | None = None,
    micro_batches: int | None = None,
) -> Measures:
    """Measures a plan, the plans of several epochs, or the batches of any sampler: `list(sampler)`.

    For batches without a plan, the measures assume the following. Each batch is padded to its longest sequence, and
    costs its padded frames. There is no budget, so `over_max_cost` is 0. Which batches share a step cannot be
    known: a step is one batch, unless `world_size` says otherwise. A sequence may stand in several batches, or several
    times in one: `repeated` counts it once, and the padding counts it every time. `dropped` counts those in no batch.

    Of a plan, a batch that stands in a step more than once, to fill it, counts once in all measures of batches.

    Args:
        plans: A plan; a list of plans, one an epoch, of the same lengths; or a list of batches, each a list or an array
            of sequence numbers from 0.
        lengths: [n] or [n, dims], those of all sequences, in the order of their numbers.
        bins: Bins of mixing on each axis, up to 4,096; by default 2 to 128, by the number of sequences. Several epochs
            fill more bins than one. In small batches mixing falls with finer bins: a batch of 16 tells one of its 16
            lengths exactly.
        world_size: For batches without a plan: how many ranks take them in turn, batch k of a step by rank k.
        micro_batches: For batches without a plan: how many of them each rank takes in one step. The first
            `world_size` batches of a step are the first of each rank.

    Raises:
        ValueError: `lengths` are not those of a plan; a batch is empty, or holds a number that no sequence has; the
            batches do not fill whole steps; a world is given with a plan.
        TypeError: Neither plans nor batches.

    >>> lengths = [5, 9, 2, 4]
    >>> measures = measure([[0, 1], [2, 2]], lengths)  # padded to 9 and 2
    >>> measures.padding_share  # 4 of 22 frames
    0.18181818181818177
    >>> measures.dropped, measures.repeated  # sequence 3; sequence 2
    (1, 1)

    References:
        Ge et al. 2021, equation 1 and section 4. Mixing: the data-processing inequality; see `mixing_limit`.
    """
    epochs = read_epochs(plans, lengths, world_size=world_size, micro_batches=micro_batches)
    several = epochs.plans
    bins = check_bins(bins, epochs.places)
    used, padded, sizes = epochs.used, epochs.padded.astype(np.float64), epochs.sizes
    rows, costs = (join([getattr(plan, name) for plan in several]) for name in ("row_counts", "costs"))
    step_means = epochs.split_steps(epochs.add_steps(used) / epochs.step_sizes)
    # A batch of the lengths 5 and 9 uses 14 of 18 frames: a rate of 4/18.
    rates = 1.0 - used / (rows * padded)
    fill = float(used.sum() / (rows @ padded)) if len(rows) else 1.0
    mixing = mix_batches(epochs, bins)
    # On one rank without micro-batches a step is a batch.
    in_step = max(plan.grid[0].size if plan.steps else 0 for plan in several)
    return Measures(
        sequences=sum(plan.count for plan in several),
        batches=len(sizes),
        steps=sum(plan.steps for plan in several),
        epochs=len(several),
        rows=int(rows.sum()),
        zero_padding_rate=_mean(rates),
        weighted_zero_padding_rate=_mean(rates, rows),
        padding_share=1.0 - fill,
        fill=fill,
        average_batch_length=_mean(padded),
        weighted_average_batch_length=_mean(padded, rows),
        smallest_batch=int(sizes.min(initial=np.iinfo(np.int64).max)) if len(sizes) else 0,
        mean_batch=_mean(sizes),
        largest_batch=int(sizes.max(initial=0)),
        largest_cost=float(costs.max(initial=0.0)),
        mixing=mixing,
        step_mixing=mix_steps(epochs, bins) if in_step > 1 else mixing,
        mixing_bins=bins,
        pair_mixing=mix_pairs(epochs),
        step_length_correlation=_lag_one(step_means),
        step_length_variance=_vary(epochs, step_means),
        straggler_waste=_waste(several),
        cost_spread=_spread(costs),
        dropped=sum(len(plan.dropped()) for plan in several),
        repeated=sum(len(plan.repeated()) for plan in several),
        over_max_cost=sum(len(plan.over_max_cost()) for plan in several),
    )


def epochs_to_pool(count: int) -> int:
    """Counts the epochs of `count` sequences that fill 256 bins, at most 32.

    >>> epochs_to_pool(10_480)
    16
    """
    return min(-(-_FILLING // max(count, 1)), MOST_EPOCHS)


def measure_pooled(plans: Sequence[Plan], lengths: ArrayLike) -> Measures:
    """Measures all epochs as one, in as many bins as their sequences fill together."""
    return measure(plans, lengths, bins=fine_bins(sum(plan.count for plan in plans)))


def join_measures(first: Measures, together: Measures) -> dict[str, Any]:
    """Returns the measures of the first epoch by name; those that need several epochs are of all of them `together`."""
    of_all = together.as_dict()
    return first.as_dict() | {name: of_all[name] for name in _OVER_EPOCHS} | {"mixing_epochs": together.epochs}


def sum_frames(plan: Plan, lengths: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The frames of data of each batch, and those that are computed, padding included: [batches] each."""
    epochs = read_epochs(plan, lengths)
    return epochs.used, epochs.plans[0].row_counts * epochs.padded


def _waste(plans: Sequence[Plan]) -> float:
    largest = max(float(plan.costs.max(initial=0.0)) for plan in plans)
    if not largest:  # no steps, or batches that cost nothing: no rank waits
        return 0.0
    # In units of about the largest cost, a power of two, so that no sum overflows and no quotient is rounded.
    exponent = -np.frexp(largest)[1]
    ranks = [np.ldexp(plan.costs, exponent)[plan.grid].sum(axis=1) for plan in plans]
    # Ranks that cost [3, 1] in a step work 2 on average while the step takes 3: a third of their time is waiting.
    worked = sum(float(costs_of_ranks.mean(axis=1).sum()) for costs_of_ranks in ranks)
    return 1.0 - worked / sum(float(costs_of_ranks.max(axis=1).sum()) for costs_of_ranks in ranks)


def _spread(costs: NDArray[np.float64]) -> float:
    largest = float(costs.max(initial=0.0))
    if not largest:
        return 0.0
    scaled = np.ldexp(costs, -np.frexp(largest)[1])  # so that no square overflows
    return float(scaled.std() / scaled.mean())


def _vary(epochs: Epochs, step_means: Sequence[NDArray[np.float64]]) -> float:
    """How far the mean lengths of steps lie from that of the epoch, squared, in units of what random samples have.

    The mean of s out of n numbers, drawn at random, has a variance of V/s x (n - s)/(n - 1), where V is the variance of
    the n (Cochran 1977, "Sampling techniques", theorem 2.2). Of [1, 3] one is drawn: V = 1, and the mean varies by 1.
    """
    ratios = []
    for lengths, sizes, means in zip(epochs.taken, epochs.split_steps(epochs.step_sizes), step_means, strict=True):
        # A step that takes the whole epoch always has the epoch's mean: a variance of 0, which is left out below.
        mean, variance = (float(lengths.mean()), float(lengths.var())) if len(lengths) else (0.0, 0.0)
        of_samples = variance / sizes * (len(lengths) - sizes) / max(1, len(lengths) - 1)
        parts = of_samples > 0
        ratios.append((means[parts] - mean) ** 2 / of_samples[parts])
    together = np.concatenate(ratios)
    return float(together.mean()) if len(together) else 1.0


def _lag_one(epochs: Sequence[NDArray[np.float64]]) -> float:
    """The correlation of successive numbers within the series given; no pair spans two of them."""
    long = [series for series in epochs if len(series) >= 3]
    if not long:
        return 0.0
    early, late = np.concatenate([means[:-1] for means in long]), np.concatenate([means[1:] for means in long])
    # The series [1, 2, 4] gives the pairs (1, 2) and (2, 4): early [1, 2], late [2, 4].
    early, late = early - early.mean(), late - late.mean()
    norm = float(np.sqrt((early @ early) * (late @ late)))
    return float(np.clip((early @ late) / norm, -1.0, 1.0)) if norm else 0.0  # rounded, it may lie beyond


def _mean(values: NDArray[Any], weights: NDArray[Any] | None = None) -> float:
    return float(np.average(values, weights=weights)) if len(values) else 0.0

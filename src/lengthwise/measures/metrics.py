"""The measures of plans: padding, randomness, waiting and counts.

lengths   [n] or [n, dims]   the lengths of the plans; several dimensions count by their sum
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise._html import write_table
from lengthwise.choices.cost import Cost, costs_of, costs_of_rows
from lengthwise.measures.epochs import Batches, Epochs, join, read_epochs
from lengthwise.measures.randomness import measure_randomness
from lengthwise.planning.plan import Plan

_FILLING = 163_840  # sequences that show randomness well: small data sets need several epochs to have so many
MOST_EPOCHS = 8
# `measure_epochs` estimates these over several epochs.
_OVER_EPOCHS = ("randomness", "step_length_variance", "straggler_waste", "batch_straggler_waste")


@dataclass(frozen=True, kw_only=True, slots=True)
class Measures:
    """The measures of one plan, or of several epochs as one long epoch.

    Shares are 0..1, lengths in the unit of the lengths, costs in the unit of the budget. Counts are sums over epochs.
    `print` shows the most important ones, in words.

    Attributes:
        sequences: The number of sequences (or chunks) to plan.
        batches: The number of batches, each counted once an epoch.
        steps: The number of optimiser steps.
        epochs: The number of plans that were measured together.
        rows: The number of rows in all batches: one for each sequence, unless the cut packs sequences into rows, or
            fills rows up to a multiple.
        zero_padding_rate: ZPR, Ge et al. 2021, equation 1: the plain mean over batches of 1 - mean length / padded
            length.
        weighted_zero_padding_rate: ZPR with batches weighted by their rows (section 4, for dynamic batch sizes).
        padding_share: The share of all computed frames that is padding: the cost for the hardware.
        fill: 1 - `padding_share`. Rows that only a collate function adds, for a fixed shape, do not count.
        average_batch_length: ABL, the plain mean over batches of the padded length.
        weighted_average_batch_length: ABL with batches weighted by their rows.
        smallest_batch: The number of sequences in the smallest batch.
        mean_batch: The mean number of sequences in a batch.
        largest_batch: The number of sequences in the largest batch.
        largest_cost: The cost of the costliest batch.
        randomness: exp(-I), with I the mutual information of the lengths of two sequences of a step. It is 1 if the
            lengths are independent, as in random batches, and near 0 if one determines the other. Sequences that are
            alone in a step do not count.
        step_length_correlation: The correlation of the mean lengths of successive steps of an epoch (lag 1); 0 for
            fewer than three steps.
        step_length_variance: The variance of the mean length of steps, divided by that of random samples of the same
            sizes. It is 1 if each epoch is one step.
        straggler_waste: The share of rank time spent waiting for the costliest rank of each step.
        batch_straggler_waste: The same if ranks wait for each other after every micro-batch, as under FSDP.
        cost_spread: The standard deviation of the costs of batches, as a share of the mean cost.
        dropped: The number of sequences in no batch of their epoch.
        repeated: The number of sequences taken more than once in an epoch. `loss_scales` gives a scale of 0 to all
            batches but the first that take them.
        over_max_cost: The number of batches that cost more than the cut allows.

    >>> measures = measure([[0, 1], [2, 3]], [5, 9, 2, 4])  # padded to 9 and 4
    >>> measures.batches, measures.largest_cost, round(measures.padding_share, 3)  # 6 of 26 frames
    (2, 18.0, 0.231)
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
    randomness: float
    step_length_correlation: float
    step_length_variance: float
    straggler_waste: float
    batch_straggler_waste: float
    cost_spread: float
    dropped: int
    repeated: int
    over_max_cost: int

    @property
    def price(self) -> float:
        """The frames computed for each frame of data, waiting included: 1 / `fill` / (1 - `straggler_waste`)."""
        return 1.0 / self.fill / (1.0 - self.straggler_waste)

    def __str__(self) -> str:
        """Returns the most important measures, with their meanings; `repr` has all of them."""
        (first, last), rows = self._describe()
        return "\n".join([first, *(f"{name:8} {value:7}  {meaning}" for name, value, meaning in rows), last])

    def _repr_html_(self) -> str:
        """Returns what `print` shows, as a table for notebooks."""
        counts, rows = self._describe()
        return write_table(rows, numbers=[1], text="\n".join(counts))

    def _describe(self) -> tuple[list[str], list[tuple[str, str, str]]]:
        """Returns two lines of counts, and the name, the value and the meaning of each measure."""
        epochs = f" in {self.epochs} epochs" if self.epochs > 1 else ""
        smallest, largest = (f"{size:,}" for size in (self.smallest_batch, self.largest_batch))
        sizes = smallest if smallest == largest else f"{smallest} to {largest}"
        alike = "1: steps are random samples; near 0: all lengths of a step are alike"
        rows = [
            ("padding", f"{100 * self.padding_share:5.1f} %", "of the computed frames"),
            ("computed", f"{1.0 / self.fill:5.2f}", "frames for each frame of data"),
            ("random", f"{self.randomness:5.2f}", alike),
        ]
        if self.steps < self.batches:
            waiting = "of the time of all ranks"
            if self.batch_straggler_waste > self.straggler_waste:
                waiting += f"; {100 * self.batch_straggler_waste:.1f} % if they meet after every micro-batch"
            rows.append(("waiting", f"{100 * self.straggler_waste:5.1f} %", waiting))
            price = "the frames computed, divided by the share of time without waiting"
            rows.append(("price", f"{self.price:5.2f}", price))
        counts = [
            f"{self.sequences:,} sequences in {self.batches:,} batches of {sizes}, {self.steps:,} steps{epochs}",
            f"dropped: {self.dropped:,}, repeated: {self.repeated:,}, batches over the budget: {self.over_max_cost:,}",
        ]
        return counts, rows

    def as_dict(self) -> dict[str, Any]:
        """Returns the measures by name, for JSON."""
        return asdict(self)


def measure(
    plans: Plan | Batches | Sequence[Plan],
    lengths: ArrayLike,
    *,
    world_size: int | None = None,
    micro_batches: int | None = None,
) -> Measures:
    """Measures a plan, the plans of several epochs, or the batches of any sampler: `list(sampler)`.

    Batches without a plan are assumed to be padded to their longest sequence, and to cost their padded frames. They
    have no budget, so `over_max_cost` is 0. A step is one batch, unless you give `world_size` or `micro_batches`. If a
    sequence is in several batches, `repeated` counts it once, and `padding_share` every time. `dropped` counts the
    sequences in no batch.

    A batch that a plan repeats to fill a step counts once in all measures of batches.

    Args:
        plans: A plan; a list of plans of the same lengths, one for each epoch; or a list of batches. A batch is a list
            or an array of sequence numbers from 0.
        lengths: [n] or [n, dims], the lengths of all sequences, in the order of their numbers.
        world_size: For batches without a plan: the number of ranks; rank k takes batch k of a step.
        micro_batches: For batches without a plan: the number of batches of each rank in one step. The first
            `world_size` batches of a step are the first of each rank.

    Raises:
        ValueError: `lengths` do not match a plan, or a world is given with a plan. Or a batch is empty or has an
            unknown sequence number, or the batches do not fill whole steps.
        TypeError: `plans` are neither plans nor batches.

    >>> lengths = [5, 9, 2, 4]
    >>> measures = measure([[0, 1], [2, 2]], lengths)  # padded to 9 and 2
    >>> measures.padding_share  # 4 of 22 frames
    0.18181818181818177
    >>> measures.dropped, measures.repeated  # sequence 3; sequence 2
    (1, 1)

    References:
        Ge et al. 2021, equation 1 and section 4.
    """
    epochs = read_epochs(plans, lengths, world_size=world_size, micro_batches=micro_batches)
    several = epochs.plans
    useful, padded, sizes = epochs.useful, epochs.padded_lengths.astype(np.float64), epochs.sizes
    rows, costs = (join([getattr(plan, name) for plan in several]) for name in ("row_counts", "costs"))
    step_means = epochs.split_steps(epochs.add_steps(useful) / epochs.step_sizes)
    # A batch of the lengths 5 and 9 uses 14 of 18 frames: a rate of 4/18.
    rates = 1.0 - useful / (rows * padded)
    fill = float(useful.sum() / (rows @ padded)) if len(rows) else 1.0
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
        randomness=measure_randomness(epochs),
        step_length_correlation=_lag_one(step_means),
        step_length_variance=_vary(epochs, step_means),
        straggler_waste=_waste(several),
        batch_straggler_waste=_waste(several, after_batches=True),
        cost_spread=_spread(costs),
        dropped=sum(len(plan.dropped()) for plan in several),
        repeated=sum(len(plan.repeated()) for plan in several),
        over_max_cost=sum(len(plan.over_max_cost()) for plan in several),
    )


def epochs_to_pool(count: int) -> int:
    """Returns the number of epochs of `count` sequences that show randomness well, at most 8.

    >>> epochs_to_pool(10_480), epochs_to_pool(100_000)
    (8, 2)
    """
    return min(-(-_FILLING // max(count, 1)), MOST_EPOCHS)


def measure_epochs(plans: Sequence[Plan], lengths: ArrayLike) -> Measures:
    """Measures the first epoch; estimates what few steps show poorly, such as randomness, over all `plans`."""
    first = measure(plans[0], lengths)
    if len(plans) == 1:
        return first
    together = measure(plans, lengths)
    return replace(first, **{name: getattr(together, name) for name in _OVER_EPOCHS})


def sum_frames(plan: Plan, lengths: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the frames of data and the computed frames, padding included, of each batch: two arrays [batches]."""
    epochs = read_epochs(plan, lengths)
    return epochs.useful, epochs.plans[0].row_counts * epochs.padded_lengths


def wait_under(plans: Sequence[Plan], lengths: ArrayLike, cost: Cost) -> float:
    """Returns the share of the time that ranks wait for each other if batches take the time of another cost."""
    costs = []
    for plan in plans:
        if plan.row_offsets is None:
            costs.append(costs_of(cost, plan.row_counts, plan.padded_lengths))
        else:  # a sequence in a row attends to itself alone
            items = np.asarray(lengths) if plan.spans is None else plan.spans[:, 2] - plan.spans[:, 1]
            capacity = int(plan.padded_lengths.max(initial=0))
            costs.append(costs_of_rows(cost, items[plan.numbers, None], plan.offsets, capacity))
    return _waste(plans, costs)


def price_of(plan: Plan, lengths: ArrayLike) -> float:
    """Returns `Measures.price` without the other measures, which take longer."""
    used, computed = (float(frames.sum()) for frames in sum_frames(plan, lengths))
    return computed / max(used, 1.0) / (1.0 - _waste([plan]))


def _waste(
    plans: Sequence[Plan], costs: Sequence[NDArray[np.float64]] | None = None, *, after_batches: bool = False
) -> float:
    """Returns the share of waiting under `costs`, by default those that ranks share evenly."""
    costs = costs or [plan.costs if plan.balances is None else plan.balances for plan in plans]
    largest = max(float(batch_costs.max(initial=0.0)) for batch_costs in costs)
    if not largest:  # no steps, or batches that cost nothing: no rank waits
        return 0.0
    # Divide by a power of two near the largest cost: no sum overflows, and the division rounds nothing.
    exponent = -np.frexp(largest)[1]
    ranks = [np.ldexp(batch_costs, exponent)[plan.grid] for plan, batch_costs in zip(plans, costs, strict=True)]
    # Ranks meet after each step, or after each of its micro-batches: [meetings, ranks].
    ranks = [grid.reshape(-1, grid.shape[2]) if after_batches else grid.sum(axis=1) for grid in ranks]
    # Ranks that cost [3, 1] in a step work 2 on average while the step takes 3: a third of their time is waiting.
    work = sum(float(costs_of_ranks.mean(axis=1).sum()) for costs_of_ranks in ranks)
    return 1.0 - work / sum(float(costs_of_ranks.max(axis=1).sum()) for costs_of_ranks in ranks)


def _spread(costs: NDArray[np.float64]) -> float:
    largest = float(costs.max(initial=0.0))
    if not largest:
        return 0.0
    scaled = np.ldexp(costs, -np.frexp(largest)[1])  # so that no square overflows
    return float(scaled.std() / scaled.mean())


def _vary(epochs: Epochs, step_means: Sequence[NDArray[np.float64]]) -> float:
    """Returns the variance of the mean lengths of steps, divided by that of random samples of the same sizes.

    The mean of s random numbers out of n has the variance V/s x (n - s)/(n - 1), where V is the variance of the n
    (Cochran 1977, "Sampling techniques", theorem 2.2). For one of [1, 3], V = 1, and the variance is 1.
    """
    ratios = []
    for lengths, sizes, means in zip(epochs.lengths, epochs.split_steps(epochs.step_sizes), step_means, strict=True):
        # A step that holds the whole epoch has the variance 0. It is left out below.
        mean, variance = (float(lengths.mean()), float(lengths.var())) if len(lengths) else (0.0, 0.0)
        of_samples = variance / sizes * (len(lengths) - sizes) / max(1, len(lengths) - 1)
        parts = of_samples > 0
        ratios.append((means[parts] - mean) ** 2 / of_samples[parts])
    together = np.concatenate(ratios)
    return float(together.mean()) if len(together) else 1.0


def _lag_one(epochs: Sequence[NDArray[np.float64]]) -> float:
    """Returns the correlation of successive numbers within each series; no pair spans two series."""
    long = [series for series in epochs if len(series) >= 3]
    if not long:
        return 0.0
    early, late = np.concatenate([means[:-1] for means in long]), np.concatenate([means[1:] for means in long])
    # The series [1, 2, 4] gives the pairs (1, 2) and (2, 4): early [1, 2], late [2, 4].
    early, late = early - early.mean(), late - late.mean()
    norm = float(np.sqrt((early @ early) * (late @ late)))
    return float(np.clip((early @ late) / norm, -1.0, 1.0)) if norm else 0.0  # rounding may go beyond 1


def _mean(values: NDArray[Any], weights: NDArray[Any] | None = None) -> float:
    return float(np.average(values, weights=weights)) if len(values) else 0.0

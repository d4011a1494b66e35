"""How near does each order come to the limits of batches, of epochs and of steps?

    python -m lengthwise_recipes.limits.measured [FILE[:COLUMN] ...] [--json limits.json]

The long-tailed example, and the lengths of each FILE. Batches of 16 and of 64, and of as many padded frames as 16 and
64 sequences of the mean length have, or of the longest; then steps of 4 and of 16 batches of 16. Every setting of an
order stands beside the limits at its own padding. That of epochs is for as many batches of a fixed size, and under a
budget for as many empty places as the epoch has that leaves most empty. That of steps is of everything that the padded
lengths of a step tell; mixing is of their mean alone, which tells less.

Lengths and padded lengths are put into the groups of the limits, so that the limits are those of the mixing that is
measured. The epochs of one seed are pooled until they are 655,360 sequences.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma
from tqdm import tqdm

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes import record
from lengthwise_recipes.limits.bounds import batch_limit, epoch_limit, step_limit
from lengthwise_recipes.limits.levels import group_levels

BATCHES = (16, 64)
BINS, BINS_OF_STEPS = 1024, 256
SEQUENCES = 655_360
KNOBS: dict[str, tuple[float, ...]] = {
    "max-entropy": (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7),
    "semi-sorted": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0),
    "alternated": (2, 4, 8, 16, 32, 64, 128),
    "bucketed": (128, 256, 512, 1024, 2048),
    "optimal": (2, 4, 8, 16, 32, 64),
}
STEPS = (4, 16)  # batches of a step
SHARES = (0.9, 0.75, 0.5, 0.35, 0.2, 0.1)  # of the padding of random steps
NOISES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)  # of semi-sorted batches in steps


def main() -> None:
    """Measures, and writes the result."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="*", help="files of lengths, each with its column where it has several")
    options.add_argument("--json", type=Path, default=Path("limits.json"))
    chosen = options.parse_args()
    warnings.filterwarnings("ignore", message="`padding` must be within")  # the row says what was reached
    sets = {"long-tailed": lw.example_lengths("long-tailed")}
    for name in chosen.files:
        path, _, column = name.partition(":")
        sets[name] = lw.read_lengths(path, column=column or None)
    rows = [row for name, lengths in sets.items() for row in [*batch_rows(name, lengths), *step_rows(name, lengths)]]
    prints = {name: lw.fingerprint(lengths) for name, lengths in sets.items()}
    document = {"bins": BINS, "bins_of_steps": BINS_OF_STEPS, "sequences": SEQUENCES, "fingerprints": prints}
    record.write(chosen.json, {**document, "rows": rows}, module="lengthwise_recipes.limits.measured")


def batch_rows(name: str, lengths: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """A row for each setting of each order under each cut, and for random and sorted batches."""
    knobs = [f"{order}:{knob:g}" for order, values in KNOBS.items() for knob in values]
    for cut in (*map(lw.FixedSize, BATCHES), *(lw.Budget(frames(lengths, batch)) for batch in BATCHES)):
        bound = {"batch_size": cut.batch_size} if isinstance(cut, lw.FixedSize) else {"budget": cut.budget}
        for strategy in tqdm(["random", "sorted", *knobs], desc=f"{name}, {bound}", disable=None):
            order = parse_strategy(strategy, cut=cut).order
            # Batches as the order has them: no steps are formed before them.
            plans = pooled(lengths, lw.Batching(cut=cut, order=order, deal=lw.Balanced()))
            yield {"lengths": name, **bound, "strategy": strategy, **beside_limits(lengths, plans, bound)}


def beside_limits(lengths: NDArray[np.int64], plans: list[lw.Plan], bound: dict[str, Any]) -> dict[str, Any]:
    """Padding and mixing, with the limits at that padding; most epochs have as many batches."""
    padding = lw.measure(plans, lengths).padding_share
    epoch: dict[str, int] = {"batches": max(len(plan.batch_sizes) for plan in plans)}
    if "budget" in bound:
        left = [(bound["budget"] // plan.padded_lengths[:, 0] - plan.batch_sizes).sum() for plan in plans]
        epoch = {"empty_places": int(max(left))}
    shorter = np.concatenate([lengths[plan.sequences] for plan in plans])
    padded = np.concatenate([np.repeat(plan.padded_lengths[:, 0], plan.batch_sizes) for plan in plans])
    return {
        **epoch,
        "padding_share": padding,
        "mixing": mixing(group(shorter, lengths, BINS), group(padded, lengths, BINS)),
        "limit": lw.mixing_limit(lengths, padding, bins=BINS),
        "batch_limit": batch_limit(lengths, padding, **bound, bins=BINS),
        "epoch_limit": epoch_limit(lengths, padding, **bound, **epoch, bins=BINS),
    }


def step_rows(name: str, lengths: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """Each cut and number of batches: random steps first, then what asks for less padding."""
    for cut in (lw.FixedSize(BATCHES[0]), lw.Budget(frames(lengths, BATCHES[0]))):
        for batches in tqdm(STEPS, desc=f"{name}, steps, {cut}", disable=None):
            row = {"lengths": name, "cut": type(cut).__name__, "batches": batches}
            random = of_steps(lengths, lw.Batching(cut=cut, order=lw.Shuffled(), deal=lw.RandomSteps()), batches)
            yield {**row, "strategy": "random", **random}
            orders = [lw.MaxEntropy(padding=share * random["padding_share"]) for share in SHARES]
            for order in (*orders, *map(lw.SemiSorted, NOISES)):
                batching = lw.Batching(cut=cut, order=order, deal=lw.Stratified())
                yield {**row, "strategy": str(order), **of_steps(lengths, batching, batches)}


def of_steps(lengths: NDArray[np.int64], batching: lw.Batching, batches: int) -> dict[str, Any]:
    """Padding, waiting and mixing of steps, and the limit at that padding."""
    plans = pooled(lengths, batching, batches)
    measures = lw.measure(plans, lengths, bins=BINS_OF_STEPS)
    names = ("padding_share", "straggler_waste", "step_length_variance", "step_mixing")
    limit = step_limit(lengths, measures.padding_share, batches, bins=BINS_OF_STEPS)
    return {**{name: getattr(measures, name) for name in names}, "limit": limit}


def pooled(lengths: NDArray[np.int64], batching: lw.Batching, batches: int = 1) -> list[lw.Plan]:
    """The plans of as many epochs as make `SEQUENCES`, in steps of `batches` batches."""
    epochs = range(-(-SEQUENCES // len(lengths)))
    return [lw.make_plan(lengths, batching, epoch=epoch, world_size=batches) for epoch in epochs]


def frames(lengths: NDArray[np.int64], batch: int) -> int:
    """A budget of `batch` sequences of the mean length, or of the longest."""
    return max(int(lengths.max()), round(batch * float(lengths.mean())))


def group(values: NDArray[np.int64], lengths: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """The group of each value, as the limits of `lengths` tell them apart."""
    return np.searchsorted(group_levels(lengths.astype(np.float64), bins).lowest, values, side="right") - 1


def mixing(shorter: NDArray[np.int64], padded: NDArray[np.int64]) -> float:
    """exp(-I) of two groups of each sequence, by Grassberger's estimate (2003) of each entropy in I."""
    both = shorter * (padded.max() + 1) + padded
    return float(np.exp(min(0.0, entropy(both) - entropy(shorter) - entropy(padded))))


def entropy(cells: NDArray[np.int64]) -> float:
    """In nats: log n less the mean of G(m) over all, m how many share a cell; G(m) nears log m."""
    counts = np.unique(cells, return_counts=True)[1].astype(np.float64)
    signs = np.where(counts % 2, -0.5, 0.5)
    nearly_logs = digamma(counts) + signs * (digamma((counts + 1) / 2) - digamma(counts / 2))
    return float(np.log(len(cells)) - counts @ nearly_logs / len(cells))


if __name__ == "__main__":
    main()

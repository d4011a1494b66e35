"""Compares each order with the limits of batches, of epochs and of steps.

    python -m lengthwise_recipes.limits.measured [FILE[:COLUMN] ...] [--json limits.json]

It uses the long-tailed example and the lengths of each FILE. Batches have 16 or 64 sequences, or a budget of 16 or 64
sequences of the mean length, at least the longest length. Steps have 4 or 16 batches of 16. Each setting of an order is
compared with the limits at its own padding:

- The limit of epochs is for the same number of batches; under a budget for the most empty places of any epoch.
- The limit of steps covers all information in the padded lengths of a step. Mixing uses only their mean.

Lengths and padded lengths are put into the groups of the limits. The epochs of one seed are pooled until they have
655,360 sequences.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes import record
from lengthwise_recipes.limits.bounds import batch_limit, epoch_limit, mixing_limit, step_limit
from lengthwise_recipes.limits.levels import group_levels
from lengthwise_recipes.mixing import measure_mixing, mixing_of

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
    options.add_argument("files", nargs="*", help="files of lengths; add :COLUMN to a file of several columns")
    options.add_argument("--json", type=Path, default=Path("limits.json"))
    arguments = options.parse_args()
    warnings.filterwarnings("ignore", message="`padding` must be within")  # the row has the padding that was reached
    sets = {"long-tailed": lw.example_lengths("long-tailed")}
    for name in arguments.files:
        path, _, column = name.partition(":")
        sets[name] = lw.read_lengths(path, column=column or None)
    rows = [row for name, lengths in sets.items() for row in [*batch_rows(name, lengths), *step_rows(name, lengths)]]
    prints = {name: lw.fingerprint(lengths) for name, lengths in sets.items()}
    document = {"bins": BINS, "bins_of_steps": BINS_OF_STEPS, "sequences": SEQUENCES, "fingerprints": prints}
    record.write(arguments.json, {**document, "rows": rows}, module="lengthwise_recipes.limits.measured")


def batch_rows(name: str, lengths: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """Yields a row for each setting of each order under each cut, and for random and sorted batches."""
    knobs = [f"{order}:{knob:g}" for order, values in KNOBS.items() for knob in values]
    for cut in (*map(lw.FixedSize, BATCHES), *(lw.Budget(frames(lengths, batch)) for batch in BATCHES)):
        bound = {"batch_size": cut.batch_size} if isinstance(cut, lw.FixedSize) else {"budget": cut.budget}
        for strategy in tqdm(["random", "sorted", *knobs], desc=f"{name}, {bound}", disable=None):
            order = parse_strategy(strategy, cut=cut).order
            # The batches of the order itself: `Balanced` does not form steps first.
            plans = pooled(lengths, lw.Batching(cut=cut, order=order, deal=lw.Balanced()))
            yield {"lengths": name, **bound, "strategy": strategy, **compare_with_limits(lengths, plans, bound)}


def compare_with_limits(lengths: NDArray[np.int64], plans: list[lw.Plan], bound: dict[str, Any]) -> dict[str, Any]:
    """Returns padding and mixing, and the limits at that padding."""
    padding = lw.measure(plans, lengths).padding_share
    epoch: dict[str, int] = {"batches": max(len(plan.batch_sizes) for plan in plans)}
    if "budget" in bound:
        empty_counts = [(bound["budget"] // plan.padded_lengths[:, 0] - plan.batch_sizes).sum() for plan in plans]
        epoch = {"empty_places": int(max(empty_counts))}
    shorter = np.concatenate([lengths[plan.sequences] for plan in plans])
    padded = np.concatenate([np.repeat(plan.padded_lengths[:, 0], plan.batch_sizes) for plan in plans])
    return {
        **epoch,
        "padding_share": padding,
        "mixing": mixing_of(group(shorter, lengths, BINS), group(padded, lengths, BINS)),
        "limit": mixing_limit(lengths, padding, bins=BINS),
        "batch_limit": batch_limit(lengths, padding, **bound, bins=BINS),
        "epoch_limit": epoch_limit(lengths, padding, **bound, **epoch, bins=BINS),
    }


def step_rows(name: str, lengths: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """Yields rows for each cut and number of batches: random steps first, then orders with less padding."""
    for cut in (lw.FixedSize(BATCHES[0]), lw.Budget(frames(lengths, BATCHES[0]))):
        for batches in tqdm(STEPS, desc=f"{name}, steps, {cut}", disable=None):
            row = {"lengths": name, "cut": type(cut).__name__, "batches": batches}
            random = measure_steps(lengths, lw.Batching(cut=cut, order=lw.Shuffled(), deal=lw.RandomSteps()), batches)
            yield {**row, "strategy": "random", **random}
            orders = [lw.MaxEntropy(padding=share * random["padding_share"]) for share in SHARES]
            for order in (*orders, *map(lw.SemiSorted, NOISES)):
                batching = lw.Batching(cut=cut, order=order, deal=lw.Stratified())
                yield {**row, "strategy": str(order), **measure_steps(lengths, batching, batches)}


def measure_steps(lengths: NDArray[np.int64], batching: lw.Batching, batches: int) -> dict[str, Any]:
    """Returns padding, waiting and mixing of steps, and the limit at that padding."""
    plans = pooled(lengths, batching, batches)
    measures = lw.measure(plans, lengths)
    names = ("padding_share", "straggler_waste", "step_length_variance")
    mixing = measure_mixing(plans, lengths, bins=BINS_OF_STEPS, steps=True)
    limit = step_limit(lengths, measures.padding_share, batches, bins=BINS_OF_STEPS)
    return {**{name: getattr(measures, name) for name in names}, "step_mixing": mixing, "limit": limit}


def pooled(lengths: NDArray[np.int64], batching: lw.Batching, batches: int = 1) -> list[lw.Plan]:
    """Returns the plans of enough epochs for `SEQUENCES`, in steps of `batches` batches."""
    epochs = range(-(-SEQUENCES // len(lengths)))
    return [lw.make_plan(lengths, batching, epoch=epoch, world_size=batches) for epoch in epochs]


def frames(lengths: NDArray[np.int64], batch: int) -> int:
    """Returns a budget of `batch` sequences of the mean length, at least the longest length."""
    return max(int(lengths.max()), round(batch * float(lengths.mean())))


def group(values: NDArray[np.int64], lengths: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """Returns the number of the group of each value, in the groups that the limits make of `lengths`."""
    return np.searchsorted(group_levels(lengths.astype(np.float64), bins).lowest, values, side="right") - 1


if __name__ == "__main__":
    main()

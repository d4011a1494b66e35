"""Measures padding, variation of lengths and waiting of steps of k batches.

    python benchmarks/steps.py

For k = 1 to 64 ranks it compares ways to make steps under the same budget: random batches, max-entropy batches with
every deal, and steps that are random samples. Every measure is of all epochs of a seed together. The bound is the
padding of `optimal_edges` with k buckets, the least of random steps of unlimited size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import DATA, parser, write
from tqdm import tqdm

import lengthwise as lw
from lengthwise.measures.epochs import plan_batches
from lengthwise_recipes.mixing import measure_mixing

SEEDS = range(3)
EPOCHS = 4
RANKS = (1, 2, 4, 8, 16, 32, 64)
BUDGETS = {"long-tailed": 20_000, "LJSpeech": 12_800, "Multi30k en-de": 4_096}
MEASURES = ("padding_share", "step_length_variance", "straggler_waste", "largest_cost")


def main() -> None:
    """Measures, and writes the result."""
    parser(__doc__).parse_args()
    rows = []
    for name, lengths in data().items():
        for ranks in tqdm(RANKS, desc=name, disable=None):
            rows += [{"data": name, "ranks": ranks, **row} for row in rows_of(lengths, BUDGETS[name], ranks)]
    print(write("steps", {"seeds": list(SEEDS), "epochs": EPOCHS, "budgets": BUDGETS, "rows": rows}))


def data() -> dict[str, NDArray[np.int64]]:
    """Returns generated lengths, and real ones if they are there."""
    sets = {"long-tailed": lw.example_lengths()}
    speech, text = DATA / "ljspeech" / "ljspeech_lengths.csv", DATA / "lengths" / "multi30k_train_en_de_tokens.npy"
    if speech.exists():
        sets["LJSpeech"] = lw.read_lengths(speech, column="frames_12p5ms")
    if text.exists():
        sets["Multi30k en-de"] = lw.read_lengths(text)
    return sets


def batchings(budget: int) -> dict[str, lw.Batching]:
    """Returns the ways to make steps, by name."""
    ours = {"cut": lw.Budget(budget), "order": lw.MaxEntropy(padding=0.05)}
    return {
        "random batches": lw.Batching(cut=lw.Budget(budget), order=lw.Shuffled(), deal=lw.Mixed()),
        "max-entropy 5 %, balanced": lw.Batching(**ours, deal=lw.Balanced()),
        "max-entropy 5 %, mixed": lw.Batching(**ours, deal=lw.Mixed()),
        "max-entropy 5 %, stratified": lw.Batching(**ours, deal=lw.Stratified()),
        "random steps": lw.Batching(cut=lw.Budget(budget), order=lw.Shuffled(), deal=lw.RandomSteps()),
        "default": lw.Batching(budget=budget),
    }


def rows_of(lengths: NDArray[np.int64], budget: int, ranks: int) -> list[dict[str, Any]]:
    """Returns a row for each way."""
    rows = []
    for name, batching in batchings(budget).items():
        plans = [
            [lw.make_plan(lengths, batching, seed=seed, epoch=epoch, world_size=ranks) for epoch in range(EPOCHS)]
            for seed in SEEDS
        ]
        rows.append({"way": name, **measured(plans, lengths)})
    if lengths.ndim == 1:
        rows.append({"way": "bound", "padding_share": bound(lengths, ranks)})
    return rows


def plans_of(epochs: list[Any], lengths: NDArray[np.int64], ranks: int) -> list[lw.Plan]:
    """Makes a plan of each epoch of a sampler's batches, so that several are measured together."""
    return [plan_batches(batches, lengths, lw.World(ranks, 1)) for batches in epochs]


def measured(seeds: list[list[lw.Plan]], lengths: NDArray[np.int64]) -> dict[str, Any]:
    """Returns the mean over the seeds of each measure, and its range."""
    measures = [lw.measure(plans, lengths) for plans in seeds]
    by_name = {name: [getattr(seed, name) for seed in measures] for name in MEASURES}
    by_name["step_mixing"] = [measure_mixing(plans, lengths, steps=True) for plans in seeds]
    ends = {f"{name}_ends": [min(values), max(values)] for name, values in by_name.items()}
    return {name: float(np.mean(values)) for name, values in by_name.items()} | ends


def bound(lengths: NDArray[np.int64], ranks: int) -> float:
    """Returns the padding share if each length is padded to the next of the best `ranks` edges."""
    edges = np.array(lw.optimal_edges(lengths, buckets=ranks))
    return 1.0 - float(lengths.sum()) / float(edges[np.searchsorted(edges, lengths)].sum())


if __name__ == "__main__":
    main()

"""Measures mixing and waiting of steps of k batches, with batches of equal counts or of equal cost.

    python benchmarks/waiting.py

For k = 1 to 64 ranks it compares the deals of max-entropy batches of 5 % padding (batches of similar cost, strata, and
random batches) with steps that are random samples. Every measure is of all epochs of a seed together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import parser, write
from steps import BUDGETS, EPOCHS, RANKS, SEEDS, data, measured
from tqdm import tqdm

import lengthwise as lw

BATCH_SIZE = 16
PADDING = 0.05


def main() -> None:
    """Measures, and writes the result."""
    parser(__doc__).parse_args()
    rows = []
    for name, lengths in data().items():
        if lengths.ndim == 1:
            for kind, cut in {"fixed": lw.FixedSize(BATCH_SIZE), "budget": lw.Budget(BUDGETS[name])}.items():
                for ranks in tqdm(RANKS, desc=f"{name}, {kind}", disable=None):
                    about = {"data": name, "cut": kind, "ranks": ranks}
                    rows += [about | row for row in rows_of(lengths, cut, ranks)]
    facts = {"seeds": list(SEEDS), "epochs": EPOCHS, "padding": PADDING, "batch_size": BATCH_SIZE, "budgets": BUDGETS}
    print(write("waiting", {**facts, "rows": rows}))


def rows_of(lengths: NDArray[np.int64], cut: lw.Cut, ranks: int) -> list[dict[str, Any]]:
    """Returns a row for each deal."""
    order = lw.MaxEntropy(padding=PADDING)
    deals = {"balanced": lw.Balanced(), "mixed": lw.Mixed(), "stratified": lw.Stratified()}
    ways = {name: lw.Batching(cut=cut, order=order, deal=deal) for name, deal in deals.items()}
    ways["random steps"] = lw.Batching(cut=cut, order=lw.Shuffled(), deal=lw.RandomSteps())
    rows = []
    for name, batching in ways.items():
        plans = [
            [lw.make_plan(lengths, batching, seed=seed, epoch=epoch, world_size=ranks) for epoch in range(EPOCHS)]
            for seed in SEEDS
        ]
        rows.append({"way": name, **measured(plans, lambda epochs: lw.measure(epochs, lengths))})
    return rows


if __name__ == "__main__":
    main()

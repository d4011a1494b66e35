"""Measures the padding of a few shapes, by the way to choose them, and the waiting caused by multiples of counts.

    python benchmarks/shapes.py

Shapes: the computed frames of an epoch if each batch is padded to its shape, with empty rows.

Multiples: the waiting of ranks if every batch of a random step has a multiple of a count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from record import parser, write
from steps import data
from tqdm import tqdm

import lengthwise as lw
from lengthwise.choices.buckets import quantile_edges, uniform_edges
from lengthwise.planning.few_shapes import shape_costs

SHAPES = (1, 2, 4, 8, 16, 32)
BUDGETS = {"long-tailed": 20_000, "LJSpeech": 12_800}  # padded frames
COUNTS = (1, 2, 4, 8)  # multiples of counts
TIMES = (1, 4)  # budgets of the multiples, as multiples of the budget
RANKS = 8
EPOCHS = 5
Edges = Callable[[NDArray[np.int64], int], ArrayLike]


def main() -> None:
    """Measures, and writes the result."""
    parser(__doc__).parse_args()
    rows: dict[str, list[dict[str, Any]]] = {"shapes": [], "multiples": []}
    for name in tqdm(BUDGETS, disable=None):
        lengths, budget = data()[name], BUDGETS[name]
        for multiple in (1, 8):
            cut = lw.Budget(budget, multiple_of=multiple, count_multiple_of=multiple)
            rows["shapes"] += [{"data": name, "multiple": multiple, **row} for row in shape_rows(lengths, cut, ways())]
        rows["multiples"] += [{"data": name, **row} for row in multiple_rows(lengths, budget)]
    facts = {"budgets": BUDGETS, "shape_counts": SHAPES, "ranks": RANKS, "epochs": EPOCHS}
    print(write("shapes", {**facts, **rows}))


def ways() -> dict[str, Edges]:
    """Returns other ways to choose the padded lengths."""
    return {
        "optimal_edges": lw.optimal_edges,
        "quantiles": quantile_edges,
        "equal widths": uniform_edges,
        "powers of two": powers_of_two,
    }


def powers_of_two(lengths: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Returns the largest needed powers of two, at most `count`: 64, 128, 256."""
    most = int(lengths.max() - 1).bit_length()
    return 2 ** np.arange(max(0, most - count + 1), most + 1)


def shape_rows(lengths: NDArray[np.int64], cut: lw.Budget, edges_by_way: dict[str, Edges]) -> list[dict[str, Any]]:
    """Returns the padding share with 1, 2, 4, ... shapes, for each way to choose the padded lengths."""
    useful = int(lengths.sum())
    start = time.perf_counter()
    best = shape_costs(lengths, max(SHAPES), cut)
    seconds = time.perf_counter() - start
    rows: list[dict[str, Any]] = [
        {"way": "optimal_shapes", "padding": [1.0 - useful / best[count - 1] for count in SHAPES], "seconds": seconds}
    ]
    for way, edges in edges_by_way.items():
        shares = [1.0 - useful / cost_of_edges(lengths, edges(lengths, count), cut) for count in SHAPES]
        rows.append({"way": way, "padding": shares})
    return rows


def cost_of_edges(lengths: NDArray[np.int64], edges: ArrayLike, cut: lw.Budget) -> float:
    """Returns the frames of an epoch with these padded lengths, if each batch has its full shape."""
    edges = np.unique(-(-np.asarray(edges) // cut.multiple_of) * cut.multiple_of)
    edges, counts = np.unique(edges[np.searchsorted(edges, lengths)], return_counts=True)
    filled = -(-counts // cut.count_multiple_of) * cut.count_multiple_of
    rows = np.minimum(cut.batch_sizes(edges[:, None], cost=lw.Padded(), longest=edges[-1:]).astype(np.int64), filled)
    return float((-(-counts // rows) * rows * edges).sum())


def multiple_rows(lengths: NDArray[np.int64], budget: int) -> list[dict[str, Any]]:
    """Returns waiting and padding of random steps, by the multiple of the counts."""
    rows = []
    for times in TIMES:
        for multiple in COUNTS:
            cut = lw.Budget(times * budget, count_multiple_of=multiple)
            batching = lw.Batching(cut=cut, order=lw.Shuffled(), deal=lw.RandomSteps())
            plans = [lw.make_plan(lengths, batching, epoch=epoch, world_size=RANKS) for epoch in range(EPOCHS)]
            measures = lw.measure(plans, lengths)
            row = {"budget": times * budget, "multiple": multiple, "padding": measures.padding_share}
            rows.append(row | {"waiting": measures.straggler_waste})
    return rows


if __name__ == "__main__":
    main()

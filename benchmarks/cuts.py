"""How far is the greedy cut of an order from the best one?

    python benchmarks/cuts.py

The same orders are cut greedily, by "optimal" (as few batches, the least cost) and, for a cost that prices a batch,
by "cheapest". Every number is the mean over epochs; seconds are those of the cut alone, the least of three runs.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import parser, write
from steps import data
from tqdm import tqdm

import lengthwise as lw

EPOCHS = 3
REPEATS = 3
STRATEGIES = ("random", "sorted", "semi-sorted:0.1", "alternated:58", "bucketed:1024", "max-entropy:0.1")
BUDGETS = {"long-tailed": (10_000, 20_000, 80_000), "LJSpeech": (3_200, 12_800, 51_200)}  # padded frames
MILLION = 1_000_000


def main() -> None:
    """Measures, and writes the result."""
    parser(__doc__).parse_args()
    sets = {name: lengths for name, lengths in data().items() if lengths.ndim == 1}
    cuts = []
    for name, lengths in sets.items():
        for budget in tqdm(BUDGETS[name], desc=name, disable=None):
            cuts += [{"data": name, **row} for row in rows_of(lengths, budget)]
    print(write("cuts", {"epochs": EPOCHS, "cuts": cuts, "million": million(sets["long-tailed"])}))


def costs_of(budget: int) -> dict[str, tuple[lw.Cost, float, tuple[str, ...]]]:
    """The costs, the budget in the unit of each, and how to cut by it."""
    plain = ("greedy", "optimal")
    return {
        "padded": (lw.Padded(), budget, plain),
        # At 500 frames attention costs as much as all else.
        "quadratic": (lw.Quadratic(linear=1.0, quadratic=0.002), 5.0 * budget, plain),
        # A batch costs a tenth of the frames that it may hold, beside these.
        "per batch": (lw.Quadratic(per_batch=0.1 * budget), 1.1 * budget, (*plain, "cheapest")),
    }


def rows_of(lengths: NDArray[np.int64], budget: int) -> list[dict[str, Any]]:
    """One row for each strategy, cost and way to cut: all ways cut the same orders."""
    rows = []
    for strategy in STRATEGIES:
        for name, (cost, most, ways) in costs_of(budget).items():
            orders = orders_of(lengths, strategy, lw.Budget(most, oversize="alone"), cost)
            found = {by: measure(orders, lw.Budget(most, by=by, oversize="alone"), cost) for by in ways}
            for by, row in found.items():
                saved = 1.0 - row["cost"] / found["greedy"]["cost"]
                rows.append({"budget": budget, "strategy": strategy, "cost_of": name, "by": by, **row, "saved": saved})
    return rows


def orders_of(lengths: NDArray[np.int64], strategy: str, cut: lw.Budget, cost: lw.Cost) -> list[NDArray[np.int64]]:
    """The lengths in the orders of some epochs, fitted for the greedy cut."""
    order = lw.strategy(strategy, cut=cut, cost=cost).order
    batching = lw.Batching(cut=cut, order=order, deal=lw.InTurn(), arrange=lw.InOrder(), cost=cost)
    return [lengths[lw.make_plan(lengths, batching, epoch=epoch).sequences] for epoch in range(EPOCHS)]


def measure(orders: list[NDArray[np.int64]], cut: lw.Budget, cost: lw.Cost) -> dict[str, float]:
    """What a cut of the orders costs and pads, no borders of buckets minded, and how long it takes."""
    batches, costs, frames = 0, 0.0, 0
    for ordered in orders:
        offsets = cut_of(cut, ordered, cost)
        counts, longest = np.diff(offsets), np.maximum.reduceat(ordered, offsets[:-1])
        batches += len(counts)
        costs += float(cost(counts, longest[:, None]).sum())
        frames += int(counts @ longest)
    padding = 1.0 - sum(int(ordered.sum()) for ordered in orders) / frames
    row = {"batches": batches / len(orders), "cost": costs / len(orders), "padding": padding}
    return row | {"seconds": seconds_of(cut, orders[0], cost)}


def cut_of(cut: lw.Budget, ordered: NDArray[np.int64], cost: lw.Cost) -> NDArray[np.int64]:
    rows = ordered[:, None]
    return cut(rows, np.empty(0, np.int64), cost=cost, longest=rows.max(axis=0)).offsets


def seconds_of(cut: lw.Budget, ordered: NDArray[np.int64], cost: lw.Cost) -> float:
    """The least time of a cut of the lengths in this order."""
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        cut_of(cut, ordered, cost)
        taken.append(time.perf_counter() - start)
    return min(taken)


def million(lengths: NDArray[np.int64]) -> list[dict[str, Any]]:
    """How long a million lengths take, in random order and sorted."""
    many = np.random.default_rng(0).permutation(np.resize(lengths, MILLION))
    rows = []
    for order, ordered in {"random": many, "sorted": np.sort(many)}.items():
        for by in ("greedy", "optimal"):
            seconds = seconds_of(lw.Budget(20_000, by=by), ordered, lw.Padded())
            rows.append({"order": order, "by": by, "seconds": seconds})
    return rows


if __name__ == "__main__":
    main()

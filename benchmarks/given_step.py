"""Cuts rollouts into micro-batches for every rank: `plan_step`, and what trainers write by hand.

    python benchmarks/given_step.py

A micro-batch is a row of at most so many tokens. Ranks share the cost of a model of width 4,096: 24,576 L + L^2.
Karmarkar-Karp shares out sequences to ranks, then to micro-batches, one more until they fit. First fit deals sequences
to ranks in turn. Both are written here. Ranks meet once a step, or after every micro-batch. Seconds are of one core.
"""

from __future__ import annotations

import heapq
import time
import timeit
from functools import partial
from typing import Any

import numpy as np
from record import parser, write

import lengthwise as lw

SHAPES = {
    "answers with a long tail": lambda chance, count: chance.lognormal(6.8, 1.0, count),
    "agents, 50-fold spread": lambda chance, count: 650.0 * 50.0 ** chance.random(count),
    "images and text": lambda chance, count: chance.gamma(2.0, 150.0, count) + chance.choice((300, 1300, 4800), count),
}
WORLDS = {8: 16_384, 32: 32_768, 256: 32_768}  # ranks, tokens of a micro-batch


def main() -> None:
    """Measures, and writes the result."""
    parser(__doc__).parse_args()
    cases = [(shape, ranks, 64 * ranks, seed) for shape in SHAPES for ranks in WORLDS for seed in range(3)]
    cases.append(("answers with a long tail", 256, 100_000, 0))
    print(write("given-step", {"capacities": WORLDS, "rows": [row for case in cases for row in measure(*case)]}))


def measure(shape: str, ranks: int, count: int, seed: int) -> Any:
    """Yields a row for each way to cut a step: its micro-batches, its largest, both waits and seconds."""
    lengths = SHAPES[shape](np.random.default_rng(seed), count).astype(np.int64).clip(16, WORLDS[ranks])
    costs, cut = 24_576.0 * lengths + lengths**2.0, lw.Rows(WORLDS[ranks])
    batching = lw.Batching(cut=cut, cost=lw.Quadratic(linear=24_576.0, quadratic=1.0))
    about = {"shape": shape, "ranks": ranks, "sequences": count, "seed": seed}
    about["least"] = -(-int(lengths.sum()) // (cut.capacity * ranks))
    ways: dict[str, Any] = {meet: partial(lw.plan_step, batching=batching, meet=meet) for meet in ("step", "batch")}
    ways |= {"Karmarkar-Karp": by_differencing, "first fit": by_first_fit} if count == 64 * ranks else {}
    for name, way in ways.items():
        answer = way(lengths, world_size=ranks)  # the first may compile
        seconds = min(
            timeit.repeat(partial(way, lengths, world_size=ranks), timer=time.process_time, number=1, repeat=3)
        )
        grid = [list(answer.batches(rank)) for rank in range(ranks)] if isinstance(answer, lw.Plan) else answer
        table = np.zeros((max(map(len, grid)), ranks))  # a rank with fewer batches waits for the others
        for rank, batches in enumerate(grid):
            table[: len(batches), rank] = sorted((costs[batch].sum() for batch in batches), reverse=True)
        times = {"wait_step": table.sum(axis=0).max(), "wait_batch": table.max(axis=1).sum(), "bound": costs.max()}
        waits = {key: max(0.0, 1.0 - table.sum() / ranks / value) for key, value in times.items()}
        tokens = max(int(lengths[batch].sum()) for batches in grid for batch in batches)
        yield about | {"way": name, "seconds": seconds, "micro_batches": len(table), "tokens": tokens} | waits


def by_differencing(lengths: np.ndarray, world_size: int) -> list[list[np.ndarray]]:
    """Shares out sequences to ranks by the largest differencing method, and each rank's to micro-batches."""
    costs, count, most = 24_576.0 * lengths + lengths**2.0, 0, np.inf
    parts, grid = difference(costs, world_size), []
    while most > WORLDS[world_size]:
        count += 1
        grid = [[part[own] for own in difference(costs[part], count)] for part in parts]
        most = max(lengths[batch].sum() for batches in grid for batch in batches)
    return grid


def difference(costs: np.ndarray, count: int) -> list[np.ndarray]:
    """Divides items into sets of about equal cost (Karmarkar and Karp 1982)."""
    items = enumerate(costs.tolist())
    heap = sorted((-cost, item, [(cost, [item])] + [(0.0, [])] * (count - 1)) for item, cost in items)
    while len(heap) > 1:
        (_, tick, one), (_, _, other) = heapq.heappop(heap), heapq.heappop(heap)
        joined = sorted((a + b, some + more) for (a, some), (b, more) in zip(one, other[::-1], strict=True))[::-1]
        heapq.heappush(heap, (joined[-1][0] - joined[0][0], tick, joined))
    return [np.array(items, np.int64) for _, items in heap[0][2]]


def by_first_fit(lengths: np.ndarray, world_size: int) -> list[list[list[int]]]:
    """Deals sequences to ranks in turn; each goes into the first micro-batch that has room."""
    grid: list[list[list[int]]] = [[] for _ in range(world_size)]
    for item, length in enumerate(lengths.tolist()):
        own = grid[item % world_size]
        batch = next((batch for batch in own if lengths[batch].sum() + length <= WORLDS[world_size]), [])
        grid[item % world_size] = own if batch else [*own, batch]
        batch.append(item)
    return grid


if __name__ == "__main__":
    main()

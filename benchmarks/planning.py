"""Measures the seconds and the memory of a plan.

    python benchmarks/planning.py [--counts 1000000,10000000] [--repeats 3]

It plans log-normal lengths by seven strategies under a budget, and pairs of lengths in random steps, on 1 and 8 ranks,
with compiled kernels. Seconds are those of one core, without other programs, the best of some repeats. Before each
repeat NumPy permutes equally many numbers, as a unit of comparison. Memory is the peak beyond the lengths themselves.
The first epoch also fits the order; later epochs reuse the fit.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from record import parser, write
from tqdm import tqdm

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategies

STRATEGIES = "random,sorted,alternated:1000,windowed:4096,bucketed:1024,max-entropy:0.05,random-steps"
BUDGET = 20_000  # padded frames, for each dimension of the lengths


def main() -> None:
    """Times every plan and writes the result."""
    options = parser(__doc__)
    options.add_argument("--counts", default="1000000,10000000")
    options.add_argument("--repeats", type=int, default=3)
    arguments = options.parse_args()
    rows = []
    for count in map(int, arguments.counts.split(",")):
        lengths = lw.example_lengths("long-tailed", count=count)
        cases = [(name, lengths, batching) for name, batching in parse_strategies(STRATEGIES, cut=cut(1)).items()]
        cases.append(
            ("random-steps, pairs", pairs_of(lengths), parse_strategies("random-steps", cut=cut(2))["random-steps"])
        )
        for (name, case_lengths, batching), ranks in tqdm(
            [(case, ranks) for case in cases for ranks in (1, 8)], disable=None
        ):
            row = measure_plan(case_lengths, batching, ranks, arguments.repeats)
            rows.append({"count": count, "strategy": name, "world_size": ranks, **row})
    print(write("planning", {"budget": BUDGET, "rows": rows}))


def cut(dims: int) -> lw.Budget:
    """Returns the budget of sequences that have `dims` lengths each."""
    return lw.Budget(BUDGET * dims)


def pairs_of(lengths: np.ndarray) -> np.ndarray:
    """Returns pairs of each length and a similar one, like sentences and translations: [n, 2]."""
    factors = np.random.default_rng(0).lognormal(0.0, 0.25, len(lengths))
    return np.stack([lengths, np.maximum(1, (lengths * factors).astype(np.int64))], axis=1)


def measure_plan(lengths: np.ndarray, batching: lw.Batching, ranks: int, repeats: int) -> dict[str, float]:
    """Returns seconds of the plan and of a permutation by NumPy, and the peak memory in bytes per sequence."""
    lw.make_plan(lengths[:64], batching, world_size=ranks)  # compiles
    generator = np.random.default_rng(0)
    first = core_seconds(lambda: lw.make_plan(lengths, batching, world_size=ranks))
    permutations, plans = [], []
    for epoch in range(repeats):
        permutations.append(core_seconds(lambda: generator.permutation(len(lengths))))
        plans.append(core_seconds(lambda epoch=epoch: lw.make_plan(lengths, batching, world_size=ranks, epoch=epoch)))
    tracemalloc.start()
    lw.make_plan(lengths, batching, world_size=ranks)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "seconds": min(plans),
        "first_epoch_seconds": first,
        "permutation_seconds": min(permutations),
        "bytes_per_sequence": peak / len(lengths),
    }


def core_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()

"""How long does a plan take?

    python benchmarks/planning.py [--count 1000000] [--dims 2]

Every strategy under every kind of cut, for 1, 8 and 1,024 ranks, on log-normal lengths, after the kernels have been
compiled. With two lengths a sequence, the second is about as long as the first: a quarter more or less. The best of
some repeats, in seconds of one core: what else the machine does is left out. Before each repeat NumPy permutes as many
numbers, so that plans are also told in its permutations. Memory is the peak beyond the lengths given. Then each plan is
measured. At last it is made on one core and on two in turn, by the clock on the wall.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # its threads would count as work while they wait for some

import numpy as np
from record import parser, write
from tqdm import tqdm

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategies

STRATEGIES = (
    "random,sorted,semi-sorted:0.1,alternated:1000,windowed:4096,bucketed:1024,optimal:16,quantile:16,mxnet:16,"
    "max-entropy:0.05,random-steps"
)
BUDGET = 20_000  # padded frames, for each length of a sequence


def main() -> None:
    """Times every plan and writes the result."""
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=1_000_000)
    options.add_argument("--dims", type=int, choices=(1, 2), default=1)
    options.add_argument("--repeats", type=int, default=3)
    arguments = options.parse_args()
    use_cores(1)
    lengths = lw.example_lengths("long-tailed", count=arguments.count)
    if arguments.dims == 2:
        lengths = pairs_of(lengths)
    cases = [
        (label, name, batching, ranks)
        for name, cut in cuts(BUDGET * arguments.dims).items()
        for label, batching in parse_strategies(STRATEGIES, cut=cut).items()
        for ranks in (1, 8, 1024)
    ]
    rows = []
    for label, name, batching, ranks in tqdm(cases, disable=None):
        row = measured(lengths, batching, ranks, arguments.repeats)
        rows.append({"strategy": label, "cut": name, "world_size": ranks, **row})
    what = "planning" if arguments.dims == 1 else "planning-pairs"
    path = write(f"{what}-{arguments.count}", {"count": arguments.count, "rows": rows})
    seconds = [row["seconds"] for row in rows]
    print(f"slowest {max(seconds):.3f} s, median {np.median(seconds):.3f} s; {path}")


def cuts(budget: int) -> dict[str, lw.FixedSize | lw.Budget | lw.DynamicSize]:
    return {"fixed:16": lw.FixedSize(16), f"budget:{budget}": lw.Budget(budget), "dynamic:16": lw.DynamicSize(16)}


def pairs_of(lengths: np.ndarray) -> np.ndarray:
    """Each length and another beside it, as of a sentence and its translation: [n, 2]."""
    factors = np.random.default_rng(0).lognormal(0.0, 0.25, len(lengths))
    return np.stack([lengths, np.maximum(1, (lengths * factors).astype(np.int64))], axis=1)


def measured(lengths: np.ndarray, batching: lw.Batching, ranks: int, repeats: int) -> dict[str, object]:
    """Seconds of the plan and of NumPy's permutation, and the peak of memory in bytes a sequence."""
    lw.make_plan(lengths[:64], batching, world_size=ranks)  # compiles
    chance = np.random.default_rng(0)
    # The first epoch fits the order too, which the next ones find in memory.
    first = core_seconds(lambda: lw.make_plan(lengths, batching, world_size=ranks, epoch=0))
    permutations, plans, measures = [], [], []
    walls: dict[int, list[float]] = {1: [], 2: []}
    for epoch in range(repeats):
        permutations.append(core_seconds(lambda: chance.permutation(len(lengths))))
        plans.append(core_seconds(lambda epoch=epoch: lw.make_plan(lengths, batching, world_size=ranks, epoch=epoch)))
        plan = lw.make_plan(lengths, batching, world_size=ranks, epoch=epoch)
        measures.append(core_seconds(lambda plan=plan: lw.measure(plan, lengths)))
        del plan
        for cores, seconds in 2 * list(walls.items()):
            use_cores(cores)
            start = time.perf_counter()
            lw.make_plan(lengths, batching, world_size=ranks, epoch=epoch)
            seconds.append(time.perf_counter() - start)
        use_cores(1)
    return {
        "seconds": min(plans),
        "repeats": plans,
        "first_epoch_seconds": first,
        "permutation_seconds": min(permutations),
        "measure_seconds": min(measures),
        "two_cores": min(walls[1]) / min(walls[2]),
        "bytes_per_sequence": peak_bytes(lambda: lw.make_plan(lengths, batching, world_size=ranks)) / len(lengths),
    }


def use_cores(count: int) -> None:
    os.environ["OMP_NUM_THREADS"] = str(count)


def core_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def peak_bytes(work: Callable[[], object]) -> int:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


if __name__ == "__main__":
    main()

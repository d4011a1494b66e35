"""How long does a plan take?

    python benchmarks/planning.py [--count 1000000]

Every strategy under every kind of cut, for 1, 8 and 1,024 ranks, on log-normal lengths, after the kernels have been
compiled. The best of some repeats, in seconds of one core: what else the machine does is left out. Before each repeat
NumPy permutes as many numbers, so that plans are also told in its permutations. Memory is the peak beyond the lengths
given. Then each plan is measured.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from record import parser, write
from tqdm import tqdm

import lengthwise as lw
from lengthwise import _compile

STRATEGIES = (
    "random,sorted,semi-sorted:0.1,alternated:1000,windowed:4096,bucketed:1024,optimal:16,quantile:16,mxnet:16,"
    "max-entropy:0.05,max-entropy:0.05,noise=exponential,random-steps"
)
CUTS = {"fixed:16": lw.FixedSize(16), "budget:20000": lw.Budget(20_000), "dynamic:16": lw.DynamicSize(16)}


def main() -> None:
    """Times every plan and writes the result."""
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=1_000_000)
    options.add_argument("--repeats", type=int, default=3)
    arguments = options.parse_args()
    _compile.BEFORE_READING = _compile.BEFORE_COMPILING = 0.0  # small calls run as machine code, too
    lengths = lw.example_lengths("long-tailed", count=arguments.count)
    cases = [
        (label, name, batching, ranks)
        for name, cut in CUTS.items()
        for label, batching in lw.strategies(STRATEGIES, cut=cut).items()
        for ranks in (1, 8, 1024)
    ]
    rows = []
    for label, name, batching, ranks in tqdm(cases, disable=None):
        row = measured(lengths, batching, ranks, arguments.repeats)
        rows.append({"strategy": label, "cut": name, "world_size": ranks, **row})
    path = write(f"planning-{arguments.count}", {"count": arguments.count, "rows": rows})
    seconds = [row["seconds"] for row in rows]
    print(f"slowest {max(seconds):.3f} s, median {np.median(seconds):.3f} s; {path}")


def measured(lengths: np.ndarray, batching: lw.Batching, ranks: int, repeats: int) -> dict[str, object]:
    """Seconds of the plan and of NumPy's permutation, and the peak of memory in bytes a sequence."""
    lw.make_plan(lengths[:64], batching, world_size=ranks)  # compiles
    chance = np.random.default_rng(0)
    # The first epoch fits the order too, which the next ones find in memory.
    first = core_seconds(lambda: lw.make_plan(lengths, batching, world_size=ranks, epoch=0))
    permutations, plans, measures = [], [], []
    for epoch in range(repeats):
        permutations.append(core_seconds(lambda: chance.permutation(len(lengths))))
        plans.append(core_seconds(lambda epoch=epoch: lw.make_plan(lengths, batching, world_size=ranks, epoch=epoch)))
        plan = lw.make_plan(lengths, batching, world_size=ranks, epoch=epoch)
        measures.append(core_seconds(lambda plan=plan: lw.measure(plan, lengths)))
    return {
        "seconds": min(plans),
        "repeats": plans,
        "first_epoch_seconds": first,
        "permutation_seconds": min(permutations),
        "measure_seconds": min(measures),
        "bytes_per_sequence": peak_bytes(lambda: lw.make_plan(lengths, batching, world_size=ranks)) / len(lengths),
    }


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

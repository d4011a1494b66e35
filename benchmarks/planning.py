"""How long does a plan take?

    python benchmarks/planning.py [--count 1000000]

Every strategy under every kind of cut, for 1 and 8 ranks, on log-normal lengths; the best of some repeats, after the
kernels have been compiled. One core.
"""

from __future__ import annotations

import time

import numpy as np
from record import parser, write
from tqdm import tqdm

import lengthwise as lw

STRATEGIES = (
    "random,sorted,semi-sorted:0.1,alternated:1000,windowed:4096,bucketed:1024,optimal:16,quantile:16,mxnet:16,"
    "max-entropy:0.05,max-entropy:0.05,noise=exponential"
)
CUTS = {"fixed:16": lw.FixedSize(16), "budget:20000": lw.Budget(20_000), "dynamic:16": lw.DynamicSize(16)}


def main() -> None:
    """Times every plan and writes the result."""
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=1_000_000)
    options.add_argument("--repeats", type=int, default=3)
    arguments = options.parse_args()
    lengths = lw.example_lengths("long-tailed", count=arguments.count)
    cases = [
        (label, name, batching, ranks)
        for name, cut in CUTS.items()
        for label, batching in lw.strategies(STRATEGIES, cut=cut).items()
        for ranks in (1, 8)
    ]
    rows = []
    for label, name, batching, ranks in tqdm(cases, disable=None):
        lw.make_plan(lengths[:64], batching, world_size=ranks)
        seconds = [timed(lengths, batching, ranks, epoch) for epoch in range(arguments.repeats)]
        rows.append({"strategy": label, "cut": name, "world_size": ranks, "seconds": min(seconds), "repeats": seconds})
    path = write(f"planning-{arguments.count}", {"count": arguments.count, "rows": rows})
    seconds = [row["seconds"] for row in rows]
    print(f"slowest {max(seconds):.3f} s, median {np.median(seconds):.3f} s; {path}")


def timed(lengths: np.ndarray, batching: lw.Batching, ranks: int, epoch: int) -> float:
    start = time.perf_counter()
    lw.make_plan(lengths, batching, epoch=epoch, world_size=ranks)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

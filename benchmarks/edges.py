"""Times optimal bucket edges, compared with the recurrence of the paper.

    python benchmarks/edges.py

Both are compiled. The recurrence is quadratic in the longest length, so it is timed only for short lengths.
"""

from __future__ import annotations

import time

import numba
import numpy as np
from numpy.typing import NDArray
from record import parser, write

import lengthwise as lw
from lengthwise.choices.buckets import padded_frames

BUCKETS = 32
COUNTS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
QUADRATIC_MOST = 10_000
REPEATS = 3


@numba.njit
def recurrence(counts, buckets):
    """Returns the least padded frames for counts[length] (Khomenko et al. 2016, section III.A, indices corrected)."""
    size = counts.size
    reached = np.cumsum(counts)
    previous = np.full(size, np.int64(2**62))
    previous[0] = 0
    for _ in range(buckets):
        best = np.full(size, np.int64(2**62))
        for i in range(1, size):
            for j in range(i):
                best[i] = min(best[i], previous[j] + i * (reached[i] - reached[j]))
        previous = best
    return previous[size - 1]


def main() -> None:
    """Times both and writes the result."""
    parser(__doc__).parse_args()
    lw.optimal_edges([1, 2, 3], 2)
    recurrence(np.array([0, 1, 1]), 2)
    rows = []
    for count in COUNTS:
        lengths = np.random.default_rng(0).permutation(np.arange(1, count + 1))
        row = {"distinct_lengths": count, "seconds": best_of(lambda sample: lw.optimal_edges(sample, BUCKETS), lengths)}
        if count <= QUADRATIC_MOST:
            histogram = np.bincount(lengths)
            row["recurrence_seconds"] = best_of(lambda sample: recurrence(sample, BUCKETS), histogram)
            padded = padded_frames(lengths, lw.optimal_edges(lengths, BUCKETS))
            row["same_optimum"] = bool(padded == recurrence(histogram, BUCKETS))
        rows.append(row)
        print(row)
    print(write("edges", {"buckets": BUCKETS, "rows": rows}))


def best_of(work, sample: NDArray[np.int64]) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work(sample)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()

"""How long do optimal bucket edges take, against the recurrence as the paper prints it? And what do those of pairs pad?

    python benchmarks/edges.py

Both in compiled code. The paper's is quadratic in the longest length and is timed where it takes seconds at most.

Edges of two lengths are found by search. Beside them: a grid, of optimal edges of each length, the best of all grids of
no more cells; and buckets of the sum of both lengths, optimal for the sum, each padded to the longest of either length.
How far the search is from the optimum is measured on random sets for which all edges can be tried.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from record import DATA, parser, write

import lengthwise as lw

BUCKETS = 32
COUNTS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
QUADRATIC_MOST = 10_000
REPEATS = 3
PAIRS = {"Multi30k en-de": "multi30k_train_en_de_tokens.npy", "GSM8K": "gsm8k_train_question_answer_tokens.npy"}
PAIR_BUCKETS = (4, 8, 16, 32, 64)
# Random sets: sequences, the longest length, lengths a sequence, the most buckets, and how many sets.
SMALL = ((12, 7, 2, 4, 400), (9, 30, 2, 3, 300), (40, 6, 2, 4, 300), (12, 4, 3, 3, 200), (200, 7, 2, 4, 60))


@numba.njit
def recurrence(counts, buckets):
    """Khomenko et al. 2016, section III.A, the indices as meant, on counts[length]: the least padded frames."""
    size = counts.size
    reached = np.cumsum(counts)
    before = np.full(size, np.int64(2**62))
    before[0] = 0
    for _ in range(buckets):
        best = np.full(size, np.int64(2**62))
        for i in range(1, size):
            for j in range(i):
                best[i] = min(best[i], before[j] + i * (reached[i] - reached[j]))
        before = best
    return before[size - 1]


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
            padded = lw.padded_frames(lengths, lw.optimal_edges(lengths, BUCKETS))
            row["same_optimum"] = bool(padded == recurrence(histogram, BUCKETS))
        rows.append(row)
        print(row)
    pairs = [row for name, path in PAIRS.items() if (DATA / "lengths" / path).exists() for row in rows_of(name, path)]
    small = [near_optimum(*each) for each in SMALL]
    print(write("edges", {"buckets": BUCKETS, "rows": rows, "pairs": pairs, "small": small}))


def rows_of(name: str, path: str) -> list[dict[str, Any]]:
    """What each kind of buckets pads, by how many they are."""
    lengths, rows = lw.read_lengths(DATA / "lengths" / path), []
    for buckets in PAIR_BUCKETS:
        found = {"search": lw.optimal_edges(lengths, buckets), "grid": best_grid(lengths, buckets)}
        found["sum"] = of_sums(lengths, buckets)
        padding = {kind: 1.0 - int(lengths.sum()) / lw.padded_frames(lengths, edges) for kind, edges in found.items()}
        seconds = best_of(lambda sample, most=buckets: lw.optimal_edges(sample, most), lengths)
        rows.append({"data": name, "sequences": len(lengths), "buckets": buckets, **padding, "seconds": seconds})
        print(rows[-1])
    return rows


def best_grid(lengths: NDArray[np.int64], buckets: int) -> NDArray[np.int64]:
    """Optimal edges of each length, crossed: of all numbers of edges whose product is within `buckets`, the best."""
    grids = []
    for first in range(1, buckets + 1):
        edges = [lw.optimal_edges(lengths[:, 0], first), lw.optimal_edges(lengths[:, 1], buckets // first)]
        grids.append(np.array(list(itertools.product(*edges))))
    return min(grids, key=lambda grid: lw.padded_frames(lengths, grid))


def of_sums(lengths: NDArray[np.int64], buckets: int) -> NDArray[np.int64]:
    """Optimal edges of the sums of both lengths: the longest of each length in every bucket of sums."""
    sums = lengths.sum(axis=1)
    bucket = np.searchsorted(lw.optimal_edges(sums, buckets), sums)
    return np.array([lengths[bucket == number].max(axis=0) for number in np.unique(bucket)])


def near_optimum(count: int, longest: int, dims: int, most: int, sets: int) -> dict[str, Any]:
    """How many more frames than the optimum the search takes, as a share, on random sets."""
    chance, above = np.random.default_rng(0), []
    for _ in range(sets):
        lengths, buckets = chance.integers(1, longest + 1, (count, dims)), int(chance.integers(2, most + 1))
        least = least_frames(lengths, buckets)
        above.append(lw.padded_frames(lengths, lw.optimal_edges(lengths, buckets)) / least - 1.0)
    row = {"sequences": count, "longest": longest, "dims": dims, "most_buckets": most, "sets": sets}
    row |= {"optimal": int(np.sum(np.array(above) < 1e-12)), "mean": float(np.mean(above)), "most": float(max(above))}
    print(row)
    return row


def least_frames(lengths: NDArray[np.int64], buckets: int) -> int:
    """The fewest padded frames of any buckets: all sets of rows are tried, of the edges that sequences have."""
    corners = np.array(list(itertools.product(*(np.unique(column) for column in lengths.T))))
    holds = (lengths[:, None, :] <= corners).all(axis=2)
    frames = np.where(holds, corners.sum(axis=1), 2**40)
    chosen = np.array(list(itertools.combinations(range(len(corners)), min(buckets, len(corners)))))
    parts = np.array_split(chosen, 1 + len(chosen) // 20_000)
    return min(int(frames[:, part].min(axis=2).sum(axis=0).min()) for part in parts)


def best_of(work, sample: NDArray[np.int64]) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work(sample)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()

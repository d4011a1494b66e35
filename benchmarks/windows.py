"""Measures the costs of windows, and their padding and mixing, compared with one plan of all lengths.

    python benchmarks/windows.py [--count 1000000000] [--folder DIR]

1. Windows of 2**12 to 2**20 of two million lengths, compared with the whole plan: padding, mixing of steps, seconds.
2. An epoch of `--count` lengths, drawn into a temporary file of uint16 that is mapped into memory: every window is
   planned once, and every sequence is counted. Seconds and peak memory.
3. The lengths of one window from a cold disk, by blocks and one by one. The file is dropped from the page cache before.

Everything runs on one core.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import parser, write
from tqdm import tqdm

import lengthwise as lw
from lengthwise.planning.windows import Window
from lengthwise_recipes.mixing import measure_mixing

PADDING, BUDGET = 0.05, 96_000  # frames in a batch: about 190 sequences
COMPARED = 2**21
POWERS = range(12, 21, 2)
RANKS = (1, 8)
EPOCHS = 2  # the best seconds of them
DRAWN = 2**24  # lengths at a time
COLD = 2**16  # the window that is read from a cold disk
BLOCKS = (1, 64, 2048)


def main() -> None:
    """Measures and writes the result."""
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=10**9)
    options.add_argument("--folder", help="where the temporary file is made")
    arguments = options.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    batching = lw.Batching(budget=BUDGET, padding=PADDING)
    lengths = draw(np.random.default_rng(0), COMPARED)
    rows = [compare(lengths, batching, window, ranks) for ranks in RANKS for window in (None, *(2**p for p in POWERS))]
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "lengths.npy"
        save(path, arguments.count)
        cold = [read_cold(path, batching, block) for block in BLOCKS]
        epoch = take_epoch(path, batching)
    document = {"padding": PADDING, "budget": BUDGET, "compared": COMPARED, "rows": rows, "epoch": epoch, "cold": cold}
    print(write("windows", document))


def draw(generator: np.random.Generator, count: int) -> NDArray[np.uint16]:
    """Draws log-normal lengths of mean 500, from 10 to 6,000."""
    lengths = np.rint(generator.lognormal(np.log(500) - 0.245, 0.7, count))
    return np.clip(lengths, 10, 6_000).astype(np.uint16)


def compare(lengths: NDArray[np.uint16], batching: lw.Batching, window: int | None, ranks: int) -> dict[str, Any]:
    """Returns a row of windows of a size, or of the plan of all lengths if `window` is None."""
    seconds: list[float] = []
    plan = lw.make_plan(lengths[:4096], batching, world_size=ranks)  # compiles the kernels
    for epoch in range(EPOCHS):
        start = time.perf_counter()
        if window is None:
            plan = lw.make_plan(lengths, batching, epoch=epoch, world_size=ranks)
            seconds.append(time.perf_counter() - start)
            continue
        windows = lw.Windows(lengths, batching, window=window, block=min(window // 64, 2048), world_size=ranks)
        window_plans = [windows.plan(epoch, number) for number in range(len(windows))]
        seconds.append(time.perf_counter() - start)
        plan = join(window_plans, lengths)
    batches, steps = (measure_mixing(plan, lengths, steps=steps) for steps in (False, True))
    row = {"window": window, "world_size": ranks, "seconds": min(seconds), "repeats": seconds}
    row |= {"padding": lw.measure(plan, lengths).padding_share, "mixing": batches, "step_mixing": steps}
    print(row, flush=True)
    return row


def join(windows: list[Window], lengths: NDArray[np.uint16]) -> lw.Plan:
    """Joins the windows of an epoch into one plan."""
    plans = [window.plan for window in windows]
    batches = np.cumsum([0, *(len(plan.costs) for plan in plans)])
    sizes = np.concatenate([plan.batch_sizes for plan in plans])
    return lw.Plan(
        sequences=np.concatenate([window.numbers[window.plan.sequences] for window in windows]),
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        padded_lengths=np.concatenate([plan.padded_lengths for plan in plans]),
        costs=np.concatenate([plan.costs for plan in plans]),
        grid=np.concatenate([plan.grid + first_batch for plan, first_batch in zip(plans, batches, strict=False)]),
        spans=None,
        count=len(lengths),
        batching=plans[0].batching,
        seed=0,
        epoch=0,
        lengths_fingerprint=lw.fingerprint(lengths),
        max_cost=plans[0].max_cost,
    )


def save(path: Path, count: int) -> None:
    """Draws `count` lengths into a `.npy` file, and flushes it to disk."""
    file = np.lib.format.open_memmap(path, "w+", np.uint16, (count,))
    generator = np.random.default_rng(1)
    for start in tqdm(range(0, count, DRAWN), desc="draw", disable=None):
        file[start : start + DRAWN] = draw(generator, min(DRAWN, count - start))
    file.flush()


def forget(path: Path) -> None:
    """Drops the file from the page cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_cold(path: Path, batching: lw.Batching, block: int) -> dict[str, Any]:
    """Times reading the lengths of one window, from disk and once more from memory."""
    windows = lw.Windows(path, batching, window=COLD, block=block)
    numbers = windows.numbers(0, 0)
    forget(path)
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        np.asarray(windows.lengths)[numbers].sum()
        seconds.append(time.perf_counter() - start)
    row = {"block": block, "window": COLD, "cold_seconds": seconds[0], "warm_seconds": seconds[1]}
    print(row, flush=True)
    return row


def take_epoch(path: Path, batching: lw.Batching) -> dict[str, Any]:
    """Plans every window of an epoch of the file, and counts its batches and sequences."""
    windows = lw.Windows(path, batching)
    seen = np.full(len(windows.lengths), False)  # for the check only, windows do not need it
    watch = Watch()
    real = computed = batches = steps = sequences = 0
    twice = False
    start = time.perf_counter()
    for window in progress(windows):
        plan = window.plan
        members = window.numbers[plan.sequences]
        twice = twice or bool(seen[members].any())
        seen[members] = True
        sequences += len(members)
        computed += int(plan.batch_sizes @ plan.padded_lengths[:, 0])
        real += int(np.asarray(windows.lengths)[members].sum(dtype=np.int64))
        batches, steps = batches + len(plan.costs), steps + plan.steps
    seconds = time.perf_counter() - start
    return {
        "each_once": bool(seen.all()) and not twice,
        "count": sequences,
        "windows": len(windows),
        "seconds": seconds,
        "batches": batches,
        "steps": steps,
        "padding": 1 - real / computed,
        "peak_megabytes": watch.stop() / 1e6,
    }


def progress(windows: lw.Windows) -> Iterator[Window]:
    for number in tqdm(range(len(windows)), desc="plan", disable=None):
        yield windows.plan(0, number)


class Watch:
    """Measures every 10 ms the anonymous memory of the process, beyond that at the start."""

    def __init__(self) -> None:
        self._before = self._peak = memory()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Returns the peak in bytes."""
        self._over.set()
        self._thread.join()
        return self._peak - self._before

    def _look(self) -> None:
        while not self._over.wait(0.01):
            self._peak = max(self._peak, memory())


def memory() -> int:
    match = re.search(r"RssAnon:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(match.group(1)) * 1024 if match else 0


if __name__ == "__main__":
    main()

"""Times the first plan of a program.

    python benchmarks/first_plan.py [--repeats 5]

1. The import and the first plan in a fresh process, with an empty cache of kernels (cold) and with a full one (warm).
   Cases take turns; the medians count.
2. The first plan of a few hundred new lengths in a process that has planned other lengths before, with the fit of the
   order; and the plan of the next epoch of the new lengths.

Seconds are those of one core, without other programs.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

from record import parser, write

import lengthwise as lw

PROGRAM = """
import json, time
start = time.process_time()
import lengthwise as lw
imported = time.process_time()
lengths = [50 + 37 * k % 901 for k in range({count})]
begun = time.process_time()
lw.make_plan(lengths, {batching}, world_size={ranks})
print(json.dumps({{"import": imported - start, "plan": time.process_time() - begun}}))
"""
BATCHINGS = {
    "random": ("lw.Batching(order=lw.Shuffled(), budget=20_000)", 1),
    "the default": ("lw.Batching(budget=20_000)", 1),
    "the default, 8 ranks": ("lw.Batching(budget=20_000)", 8),
    "optimal:8": ("lw.Batching(order=lw.Bucketed(buckets=8), budget=20_000)", 1),
}
# The lengths of an example, and those of LJSpeech. Loading and compiling take most of the time, not planning.
COUNTS = 1_000, 13_100
FEW, SETS, BEFORE = 300, 60, 40  # lengths in a set, timed sets, and sets that are planned before the timed ones
BATCHINGS_OF_FEW = {
    "budget of 8,000": lw.Batching(budget=8_000),
    "budget of 20,000": lw.Batching(budget=20_000),
    "16 a batch": lw.Batching(cut=lw.FixedSize(16)),
}


def main() -> None:
    """Measures every case and writes the result."""
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=5)
    arguments = options.parse_args()
    cases = list(itertools.product(COUNTS, BATCHINGS))
    runs: dict[tuple[int, str], list[dict[str, dict[str, float]]]] = {case: [] for case in cases}
    for _ in range(arguments.repeats):
        for count, name in cases:
            batching, ranks = BATCHINGS[name]
            states = {"cold": PROGRAM, "warm": PROGRAM}
            with tempfile.TemporaryDirectory() as folder:
                runs[count, name].append(
                    {
                        state: in_fresh_process(program.format(count=count, batching=batching, ranks=ranks), folder)
                        for state, program in states.items()
                    }
                )
    rows = [{"count": count, "case": name, **medians(of_case)} for (count, name), of_case in runs.items()]
    small_rows = [time_few(name, batching, ranks) for name, batching in BATCHINGS_OF_FEW.items() for ranks in (1, 8)]
    for row in rows + small_rows:
        print(row)
    print(write("first-plan", {"repeats": arguments.repeats, "rows": rows, "few": small_rows}))


def in_fresh_process(program: str, cache: str) -> dict[str, float]:
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", program]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def time_few(name: str, batching: lw.Batching, ranks: int) -> dict[str, object]:
    """Times the first plan of new lengths, and the plan of their next epoch."""
    sets = lw.example_lengths("long-tailed", count=FEW * (BEFORE + SETS)).reshape(-1, FEW)
    seconds: list[list[float]] = [[], []]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a padding that few lengths cannot reach
        for lengths in sets:
            for epoch, epoch_seconds in enumerate(seconds):
                start = time.process_time()
                lw.make_plan(lengths, batching, world_size=ranks, epoch=epoch)
                epoch_seconds.append(time.process_time() - start)
    first, second = (statistics.median(epoch_seconds[BEFORE:]) for epoch_seconds in seconds)
    return {"count": FEW, "case": name, "world_size": ranks, "new_seconds": first, "later_seconds": second}


def medians(runs: list[dict[str, dict[str, float]]]) -> dict[str, float]:
    """Returns the median seconds of the import, and of the first plan with an empty and a full cache."""
    seconds = {"import_seconds": statistics.median(run["warm"]["import"] for run in runs)}
    for state in ("cold", "warm"):
        seconds[f"{state}_seconds"] = statistics.median(run[state]["plan"] for run in runs)
    return seconds


if __name__ == "__main__":
    main()
